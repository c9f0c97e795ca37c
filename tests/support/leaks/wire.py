"""One kept connection to a server, and every byte of its answers."""

import http.client
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: all of it in ``raw``, the status line and the headers too."""

    status: int
    headers: dict[str, str]
    body: bytes
    raw: bytes

    def json(self) -> Any:  # noqa: ANN401 - whatever the server said
        """The body, read."""
        return json.loads(self.body)


class Wire:
    """A connection for one thread."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)

    def send(
        self,
        credential: str | None,
        method: str,
        path: str,
        body: object = None,
        params: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """Send a request and read the answer to its end."""
        sent = dict(headers or {})
        if credential is not None:
            sent["Authorization"] = f"Bearer {credential}"
        payload = None
        if body is not None:
            payload = json.dumps(body).encode()
            sent["Content-Type"] = "application/json"
        target = f"{path}?{urlencode(params, doseq=True)}" if params else path
        self._connection.request(method, target, payload, sent)
        response = self._connection.getresponse()
        got = response.read()
        named = {name.lower(): value for name, value in response.getheaders()}
        head = f"{response.status} {response.reason}\n" + "".join(f"{n}: {v}\n" for n, v in response.getheaders())
        return Answer(response.status, named, got, head.encode() + got)

    def close(self) -> None:
        """Let go."""
        self._connection.close()

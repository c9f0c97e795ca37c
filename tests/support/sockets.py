"""Requests written to a socket by hand, whole or in part."""

import json
import select
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

PATIENCE = 60.0


@dataclass
class Raw:
    """A connection to a server."""

    url: str
    small: bool = False
    line: socket.socket = field(init=False)

    def __post_init__(self) -> None:
        self.connect()

    def connect(self) -> None:
        """Connect."""
        host, port = self.url.removeprefix("http://").split(":")
        self.line = socket.socket()
        if self.small:
            self.line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        self.line.settimeout(PATIENCE)
        self.line.connect((host, int(port)))

    def send(self, data: bytes) -> bool:
        """Send it all; whether the server still takes it."""
        try:
            self.line.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True

    def head(self, path: str, credential: str | None, *lines: str) -> bool:
        """Send the head of a request with a JSON body."""
        known = [] if credential is None else [f"Authorization: Bearer {credential}"]
        head = [f"POST {path} HTTP/1.1", "Host: x", "Content-Type: application/json", *known, *lines]
        return self.send("\r\n".join([*head, "", ""]).encode())

    def chunk(self, data: bytes) -> bool:
        """Send a part of a chunked body; an empty one ends it."""
        return self.send(b"%x\r\n%s\r\n" % (len(data), data))

    def answered(self, seconds: float = PATIENCE) -> bool:
        """Whether there is something to read, or the connection has ended."""
        return bool(select.select([self.line], [], [], seconds)[0])

    def answer(self) -> tuple[int, dict[str, Any]]:
        """The status and the document of the next answer; 0 when the connection has ended without one."""
        read = b""
        try:
            while b"\r\n\r\n" not in read and (more := self.line.recv(65_536)):
                read += more
            head, _, body = read.partition(b"\r\n\r\n")
            if not head:
                return 0, {}
            fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
            while len(body) < int(fields[b"content-length"]) and (more := self.line.recv(65_536)):
                body += more
        except ConnectionResetError:
            return 0, {}
        return int(head.split()[1]), json.loads(body)

    def ends(self) -> bool:
        """Whether the server closes the connection, whatever it still says."""
        try:
            while self.line.recv(65_536):
                pass
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        """Hang up."""
        self.line.close()


@contextmanager
def connections(url: str, count: int) -> Iterator[list[Raw]]:
    """So many connections, closed at the end."""
    with ExitStack() as stack:
        made = [Raw(url) for _ in range(count)]
        for each in made:
            stack.callback(each.close)
        yield made


def until(happened: Any, seconds: float = PATIENCE) -> None:  # noqa: ANN401 - a condition
    """Wait until something holds."""
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.02)

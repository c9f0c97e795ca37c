"""The whole of Memplane in this process, on one SQLite file: no server, no network, the same contract."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
from pydantic import SecretStr
from starlette.types import ASGIApp, Message

from memplane.application.keys.api_keys import NewKey, first_scopes
from memplane.bootstrap import DEFAULT_TENANT, SQLITE, Application, prepare
from memplane.client import Memplane
from memplane.entrypoints.http.app import create_app
from memplane.settings import Settings

URL = "http://memplane.local"


class Direct(httpx2.AsyncBaseTransport):
    """Hands each request to an application in this process and waits for the whole answer.

    httpx2's own looks for another event loop's library in the file system on every request, which takes longer than
    finding the caller's key.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Ask the application.

        Raises:
            ConnectError: it gave no answer.
        """
        url = request.url
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": request.method,
            "scheme": url.scheme,
            "path": url.path,
            "raw_path": url.raw_path.split(b"?")[0],
            "query_string": url.query,
            "root_path": "",
            "headers": [(name.lower(), value) for name, value in request.headers.raw],
            "client": None,
            "server": (url.host, url.port),
        }
        incoming = [{"type": "http.request", "body": await request.aread(), "more_body": False}]
        answer: list[Message] = []

        async def receive() -> Message:
            return incoming.pop() if incoming else {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            answer.append(message)

        await self._app(scope, receive, send)
        if not answer:
            raise httpx2.ConnectError("the application gave no answer", request=request)
        body = b"".join(part.get("body", b"") for part in answer[1:])
        return httpx2.Response(answer[0]["status"], headers=answer[0].get("headers", []), content=body)


@asynccontextmanager
async def open(  # noqa: A001 - a file is opened
    path: str | os.PathLike[str], *, agent: str = "supervisor", policies: Path | None = None
) -> AsyncIterator[Memplane]:
    """Memplane in this process, on one SQLite file, with the interface of the client and no server.

    Use it as ``async with memplane.open("memory.db") as memory: …``.

    Args:
        path: the file; made when it is new.
        agent: whose allowlist counts.
        policies: folder of the policy files; the shipped ones unless said.

    Raises:
        StorageUnavailable: the file cannot be used.
        Invalid: the policy has no such agent.
    """
    chosen = policies or Settings().policies
    url = SecretStr(f"{SQLITE}{Path(path)}")
    settings = Settings(storage="sqlite", database_url=url, policies=chosen, rate_per_second=0)
    prepared = await asyncio.to_thread(prepare, settings)
    wired = await asyncio.to_thread(Application, settings, prepared.url)
    await wired.open()
    try:
        policy = wired.policies.current
        allowed = policy.allowlist(agent)
        await wired.ensure_tenant(DEFAULT_TENANT)
        new = NewKey(agent=agent, trust=allowed.trust, scopes=first_scopes(policy, agent))
        credential = wired.keys.local(DEFAULT_TENANT, new)
        app = create_app(wired, max_body_bytes=settings.max_body_bytes)
        async with Memplane(URL, credential, transport=Direct(app)) as client:
            yield client
    finally:
        await wired.close()

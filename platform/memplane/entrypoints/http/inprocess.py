"""The whole of Memplane in this process, on one SQLite file: no server, no network, the same contract."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
from pydantic import SecretStr

from memplane.application.keys import NewKey
from memplane.bootstrap import DEFAULT_TENANT, SQLITE, Application, prepare
from memplane.client import Memplane
from memplane.entrypoints.http.app import create_app
from memplane.settings import Settings

URL = "http://memplane.local"


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
    settings = Settings(storage="sqlite", database_url=SecretStr(f"{SQLITE}{Path(path)}"), policies=chosen)
    prepared = await asyncio.to_thread(prepare, settings)
    wired = await asyncio.to_thread(Application, settings, prepared.url)
    await wired.open()
    try:
        allowed = wired.policies.current.allowlist(agent)
        await wired.ensure_tenant(DEFAULT_TENANT)
        credential = wired.keys.local(DEFAULT_TENANT, NewKey(agent=agent, trust=allowed.trust))
        app = create_app(wired, max_body_bytes=settings.max_body_bytes)
        async with Memplane(URL, credential, transport=httpx2.ASGITransport(app)) as client:
            yield client
    finally:
        await wired.close()

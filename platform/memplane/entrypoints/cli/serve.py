"""`memplane serve`: the database, the keys and the HTTP server in one command."""

import asyncio
import logging
import os
import socket

import uvicorn

from memplane.adapters.key_file import KeyFile
from memplane.bootstrap import Application, ensure_keys, prepare
from memplane.settings import Settings

LOOPBACK = ("127.0.0.1", "localhost", "::1")


class _Server(uvicorn.Server):
    """A server that says in one line when it serves."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then tell."""
        await super().startup(sockets=sockets)
        if self.started:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            print(f"ready http://{f'[{host}]' if ':' in host else host}:{port}", flush=True)  # noqa: T201 - the contract


def serve(settings: Settings) -> int:
    """Serve until told to stop.

    Returns:
        The exit code: 0 after an ordinary stop, 3 when the server could not start.
    """
    logging.basicConfig(level=settings.log_level, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    prepared = prepare(settings)
    try:
        if settings.host in LOOPBACK:
            asyncio.run(first_keys(settings, prepared.url))
        os.environ["MEMPLANE_DATABASE_URL"] = prepared.url
        config = uvicorn.Config(
            "memplane.entrypoints.http.app:from_environment",
            factory=True,
            host=settings.host,
            port=settings.port,
            log_level=settings.log_level.lower(),
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=10,
        )
        server = _Server(config)
        server.run()
        return 0 if server.started else 3
    finally:
        prepared.stop()


async def first_keys(settings: Settings, url: str) -> KeyFile:
    """Make the keys of a single-user server."""
    application = Application(settings, url)
    await application.open()
    try:
        return await ensure_keys(application, settings.data)
    finally:
        await application.close()

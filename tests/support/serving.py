"""The wired application and its HTTP server, running in a thread of the test process."""

import asyncio
import socket
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, TypeVar

import httpx2
import uvicorn
import uvloop

from memplane.bootstrap import Application
from memplane.entrypoints.http.app import create_app
from memplane.settings import Settings
from support.cluster import Database

T = TypeVar("T")
PATIENCE = 30.0
"""Seconds after which something that never happens has failed."""


class LoopThread:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="test-loop", daemon=True)
        self._thread.start()

    def start(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        """Begin a coroutine."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end."""
        return self.start(work).result(PATIENCE)

    def close(self) -> None:
        """End the loop and its thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
        finally:
            self._loop.close()


class RunningApplication:
    """An opened application.

    Attributes:
        wired: every use case; its coroutines are run by :meth:`run`.
        database: what it runs on.
    """

    def __init__(self, wired: Application, database: Database, loop: LoopThread) -> None:
        self.wired = wired
        self.database = database
        self._loop = loop

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine of the application in its own event loop."""
        return self._loop.run(work)


class RunningServer(RunningApplication):
    """An application behind a real HTTP server.

    Attributes:
        url: where it listens.
        client: an HTTP client for any thread; it sends no credentials by itself.
    """

    def __init__(self, application: RunningApplication, loop: LoopThread, url: str, client: httpx2.Client) -> None:
        super().__init__(application.wired, application.database, loop)
        self.url = url
        self.client = client


@contextmanager
def running_application(database: Database, **chosen: Any) -> Iterator[RunningApplication]:  # noqa: ANN401 - any setting
    """An application on a database, opened, and closed at the end."""
    loop = LoopThread()
    try:
        wired = Application(_settings(chosen), database.url)
        loop.run(wired.open())
        try:
            yield RunningApplication(wired, database, loop)
        finally:
            loop.run(wired.close())
    finally:
        loop.close()


@contextmanager
def running_server(database: Database, **chosen: Any) -> Iterator[RunningServer]:  # noqa: ANN401 - any setting
    """An HTTP server on a database, on a free port of the loopback interface."""
    settings = _settings(chosen)
    loop = LoopThread()
    try:
        wired = Application(settings, database.url)
        app = create_app(wired, max_body_bytes=settings.max_body_bytes)
        with socket.create_server(("127.0.0.1", 0)) as listening, _served(app, listening, loop):
            url = f"http://127.0.0.1:{listening.getsockname()[1]}"
            limits = httpx2.Limits(max_connections=64)
            # no proxy of the environment stands between a test and its server; nothing here is encrypted
            with httpx2.Client(base_url=url, timeout=PATIENCE, limits=limits, trust_env=False, verify=False) as client:
                yield RunningServer(RunningApplication(wired, database, loop), loop, url, client)
    finally:
        loop.close()


class _Server(uvicorn.Server):
    """A server that tells another thread when it serves."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.settled = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().startup(sockets=sockets)
        finally:
            self.settled.set()


@contextmanager
def _served(app: Any, listening: socket.socket, loop: LoopThread) -> Iterator[None]:  # noqa: ANN401 - an ASGI application
    config = uvicorn.Config(app, lifespan="on", http="httptools", ws="none", log_config=None, access_log=False)
    server = _Server(config)
    serving = loop.start(server.serve(sockets=[listening]))
    serving.add_done_callback(lambda _: server.settled.set())
    server.settled.wait(PATIENCE)
    if not server.started:
        server.should_exit = True
        serving.result(PATIENCE)
        raise RuntimeError("the server did not start")
    try:
        yield
    finally:
        server.should_exit = True
        serving.result(PATIENCE)


def _settings(chosen: dict[str, Any]) -> Settings:
    return Settings(**({"pool_size": 8} | chosen))

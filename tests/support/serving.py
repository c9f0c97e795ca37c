"""The wired application and its HTTP server, running in a thread of the test process."""

import asyncio
import socket
import threading
from collections import defaultdict
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import cache
from typing import Any, Literal, TypeVar

import httpx2
import uvicorn
import uvloop
from starlette.types import ASGIApp, Receive, Scope, Send

from memplane.adapters.pii.choice import finder_of
from memplane.adapters.policy import PolicyFiles
from memplane.bootstrap import Application, policies_of
from memplane.domain.privacy import pii
from memplane.entrypoints.cli.admin.server_process import KEEP_ALIVE_SECONDS, connection_limits
from memplane.entrypoints.connections import limited_protocol
from memplane.entrypoints.http.app import create_app
from memplane.settings import Settings
from support.cluster import Database
from support.documented import Documented
from support.files import File

T = TypeVar("T")
PATIENCE = 120.0
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

    def __init__(self, wired: Application, database: Database | File, loop: LoopThread) -> None:
        self.wired = wired
        self.database = database
        self._loop = loop

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine of the application in its own event loop."""
        return self._loop.run(work)

    def start(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        """Begin a coroutine of the application in its own event loop."""
        return self._loop.start(work)


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
def running_application(database: Database | File, **chosen: Any) -> Iterator[RunningApplication]:  # noqa: ANN401 - any setting
    """An application on a database, opened, and closed at the end."""
    loop = LoopThread()
    try:
        wired = _wired(_settings(chosen), database)
        loop.run(wired.open())
        try:
            yield RunningApplication(wired, database, loop)
        finally:
            loop.run(wired.close())
    finally:
        loop.close()


@contextmanager
def running_server(database: Database | File, **chosen: Any) -> Iterator[RunningServer]:  # noqa: ANN401 - any setting
    """An HTTP server on a database, on a free port of the loopback interface."""
    settings = _settings(chosen)
    with _listening() as (loop, listening, url, client):
        wired = _wired(settings, database)
        with _app(wired, settings.max_body_bytes) as app, _served(app, listening, loop, "on", settings):
            yield RunningServer(RunningApplication(wired, database, loop), loop, url, client)


@cache
def _shipped() -> PolicyFiles:
    """The shipped policy, read once."""
    return policies_of(None)


def _wired(settings: Settings, database: Database | File) -> Application:
    usual = settings.policies is None and finder_of(settings) is pii.find
    return Application(settings, database.url, _shipped() if usual else None)


_APPS: defaultdict[int, list[Documented]] = defaultdict(list)
"""HTTP faces that nobody uses, by their bound: to work out all routes takes longer than most tests."""


@contextmanager
def _app(wired: Application, max_body_bytes: int) -> Iterator[Documented]:
    """An HTTP face of an application, which had others before."""
    idle = _APPS[max_body_bytes]
    app = idle.pop() if idle else Documented(create_app(wired, max_body_bytes=max_body_bytes))
    app.face.state.memplane = wired
    try:
        yield app
    finally:
        idle.append(app)


@contextmanager
def _listening() -> Iterator[tuple[LoopThread, socket.socket, str, httpx2.Client]]:
    """A loop to serve in, a free port of the loopback interface, its address and a client of it."""
    loop = LoopThread()
    try:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            url = f"http://127.0.0.1:{listening.getsockname()[1]}"
            limits = httpx2.Limits(max_connections=64)
            # no proxy of the environment stands between a test and its server; nothing here is encrypted
            with httpx2.Client(base_url=url, timeout=PATIENCE, limits=limits, trust_env=False, verify=False) as client:
                yield loop, listening, url, client
    finally:
        loop.close()


class SharedServer:
    """One HTTP server for applications that come one after another, each on a file of its own."""

    def __init__(self, loop: LoopThread, url: str, client: httpx2.Client) -> None:
        self._loop = loop
        self._url = url
        self._client = client
        self._app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request to the application of this moment."""
        assert self._app is not None
        await self._app(scope, receive, send)

    @contextmanager
    def serving(self, file: File) -> Iterator[RunningServer]:
        """Serve a file."""
        settings = _settings({})
        wired = _wired(settings, file)
        with _app(wired, settings.max_body_bytes) as self._app:
            self._loop.run(wired.open())
            try:
                yield RunningServer(RunningApplication(wired, file, self._loop), self._loop, self._url, self._client)
            finally:
                self._loop.run(wired.close())


@contextmanager
def shared_server() -> Iterator[SharedServer]:
    """A server that nothing is behind yet."""
    with _listening() as (loop, listening, url, client):
        shared = SharedServer(loop, url, client)
        with _served(shared, listening, loop, "off", _settings({})):
            yield shared


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
def _served(
    app: ASGIApp, listening: socket.socket, loop: LoopThread, lifespan: Literal["on", "off"], settings: Settings
) -> Iterator[None]:
    config = uvicorn.Config(
        app, lifespan=lifespan, http=limited_protocol(connection_limits(settings)), ws="none", log_config=None,
        access_log=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
    )  # fmt: skip
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
    # a test asks as fast as it can, and many things at once; those of the rates and of turns choose
    return Settings(**({"pool_size": 8, "rate_per_second": 0, "tenant_share": 0, "jobs": False} | chosen))

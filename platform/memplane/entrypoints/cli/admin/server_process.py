"""Serving: the database, the keys and the HTTP server in one process."""

import asyncio
import errno
import gc
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import typer
import uvicorn
from pydantic_core import to_json

from memplane.bootstrap import Application, PreparedDatabase, ledger_of, prepare
from memplane.domain.errors import SettingsError
from memplane.entrypoints.cli.admin.database import first_keys, run_on_database
from memplane.entrypoints.cli.admin.signals import Interrupts
from memplane.entrypoints.cli.output import ExitCode
from memplane.entrypoints.connections import ConnectionLimits, limited_protocol, within_file_limit
from memplane.settings import Settings

LOOPBACK = ("127.0.0.1", "localhost", "::1")
STOP_SECONDS = 10
KEEP_ALIVE_SECONDS = 75
"""An unused connection is kept so long: more than the minute after which proxies and clients give theirs up."""
SWITCH_SECONDS = 0.0005
"""The longest that a worker thread and the event loop wait for each other; Python's own 5 ms is half a question."""


class _Server(uvicorn.Server):
    """A server that says in one line when it serves."""

    def __init__(self, config: uvicorn.Config, settings: Settings, *, as_json: bool) -> None:
        super().__init__(config)
        self._settings = settings
        self._as_json = as_json

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then tell."""
        await super().startup(sockets=sockets)
        gc.freeze()  # what was loaded stays: the collector need not walk it during a request
        gc.enable()
        if self.started:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
            told = {"ready": url, "pid": os.getpid(), "data": str(self._settings.data)}
            typer.echo(to_json(told) if self._as_json else f"ready {url}")


def run_server(settings: Settings, *, as_json: bool) -> ExitCode:
    """Serve until told to stop.

    Raises:
        MemplaneError: the server could not start.
    """
    sys.setswitchinterval(SWITCH_SECONDS)
    with (
        _uncollected(),
        Interrupts.intercept() as interrupts,
        _listener(settings.host, settings.port) as listener,
        _prepared(settings, interrupts) as prepared,
    ):
        _hand_over(settings, prepared.url, prepared.worker_url)
        server = _Server(_config(settings), settings, as_json=as_json)
        try:
            server.run(sockets=[listener])
        except KeyboardInterrupt:  # the server has stopped in an orderly way, and now passes the signal on
            if not server.started:
                raise
        return ExitCode.OK if server.started else ExitCode.NOT_STARTED


@contextmanager
def _uncollected() -> Iterator[None]:
    """Load without the garbage collector: hardly anything of what is loaded until the server serves is garbage."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextmanager
def _prepared(settings: Settings, interrupts: Interrupts) -> Iterator[PreparedDatabase]:
    """A database that is ready, with its keys; both are let go of afterwards, whatever happens."""
    with ExitStack() as cleanup:
        with interrupts.kept_back():  # a database that is half started could not be stopped
            prepared = prepare(settings, attach=False)  # it would end with its owner, and this server be without it
            cleanup.callback(prepared.stop)
        with interrupts.kept_back():
            single = settings.host in LOOPBACK
            asyncio.run(
                first_keys(settings, prepared.url) if single else run_on_database(settings, prepared.url, _fits)
            )
        yield prepared


def _hand_over(settings: Settings, url: str, worker_url: str | None) -> None:
    """Put into the environment, which the application reads, what was found out or came from the command line."""
    known = {"DATABASE_URL": url, "DATA": str(settings.data), "HOST": settings.host, "PORT": str(settings.port)}
    if (ledger := ledger_of(settings)) is not None:
        known["ERASURE_LEDGER"] = str(ledger)
    if worker_url is not None:
        known["WORKER_URL"] = worker_url
    os.environ.update({f"MEMPLANE_{name}": value for name, value in known.items()})


def _config(settings: Settings) -> uvicorn.Config:
    return uvicorn.Config(
        "memplane.entrypoints.http.app:from_environment",
        factory=True,
        log_config=None,  # its loggers write as all do
        log_level=settings.log_level.lower(),
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=STOP_SECONDS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        http=limited_protocol(connection_limits(settings)),
        ws="none",
    )


def connection_limits(settings: Settings) -> ConnectionLimits:
    """What the operator lets connections do, as far as this process has file descriptors for them."""
    most = within_file_limit(settings.connections)
    seconds = (settings.header_seconds, settings.body_seconds, settings.send_seconds)
    return ConnectionLimits(most, settings.connections_per_address, *seconds)


async def _fits(application: Application) -> None:
    """The database answers and its role is safe: opening said so, before there is a server to fail in."""
    await application.storage.ready()


@contextmanager
def _listener(host: str, port: int) -> Iterator[socket.socket]:
    """The socket to serve on, taken before the database starts, so that a port in use is told at once.

    Raises:
        SettingsError: the address cannot be listened on.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise SettingsError(f"MEMPLANE_HOST: '{host}' is no address of this machine ({error.strerror})") from error
    with socket.socket(family, kind, protocol) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(address)
        except OSError as error:
            raise SettingsError(_refused(host, port, error)) from error
        yield listener


def _refused(host: str, port: int, error: OSError) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return (
                f"port {port} of {host} is in use: stop what listens there, or choose another with --port (0: any free)"
            )
        case errno.EACCES:
            return f"port {port} of {host} needs more rights than this user has: choose one above 1023 with --port"
        case errno.EADDRNOTAVAIL:
            return f"MEMPLANE_HOST: '{host}' is no address of this machine"
        case _:
            return f"port {port} of {host} cannot be listened on: {error.strerror}"

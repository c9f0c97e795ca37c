"""`memplane worker`: background work in a process of its own."""

import asyncio
import os
import signal

import typer
from pydantic import SecretStr
from pydantic_core import to_json

from memplane.domain.errors import MemplaneError
from memplane.entrypoints.cli.options import Data, Storage, settings_of
from memplane.entrypoints.cli.output import ExitCode, Json, report
from memplane.settings import Settings


def worker(data: Data = None, storage: Storage = None, json: Json = False) -> None:
    """Do background work until told to stop, beside servers and other workers.

    Its one line on standard output is `ready`, once it works. On PostgreSQL it takes jobs by MEMPLANE_WORKER_URL and
    does them by MEMPLANE_DATABASE_URL.
    """
    settings = settings_of(data=data, storage=storage)
    from memplane.entrypoints.logs import configure  # noqa: PLC0415 - what help does not wait for

    configure(settings.log_level, settings.log_format)
    try:
        _work(settings, as_json=json)
    except (MemplaneError, OSError) as error:
        raise typer.Exit(report(error, ExitCode.NOT_STARTED)) from error


def _work(settings: Settings, *, as_json: bool) -> None:
    from memplane.bootstrap import prepare  # noqa: PLC0415 - what help does not wait for
    from memplane.entrypoints.cli.admin.database import require_database  # noqa: PLC0415 - as above

    require_database(settings)
    prepared = prepare(settings)
    try:
        named = (
            settings
            if prepared.worker_url is None
            else settings.model_copy(update={"worker_url": SecretStr(prepared.worker_url)})
        )
        asyncio.run(_until_told(named, prepared.url, as_json=as_json))
    finally:
        prepared.stop()


async def _until_told(settings: Settings, url: str, *, as_json: bool) -> None:
    from memplane.bootstrap import Application, with_ledger  # noqa: PLC0415 - what help does not wait for

    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, told.set)
    application = Application(with_ledger(settings), url)
    try:
        await application.open()
        await application.work()
        typer.echo(to_json({"ready": True, "pid": os.getpid()}) if as_json else "ready")
        await told.wait()
    finally:
        await application.close()

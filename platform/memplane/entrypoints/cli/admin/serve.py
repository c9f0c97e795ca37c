"""`memplane serve`: the database, the keys and the HTTP server in one command."""

from typing import Annotated

import typer

from memplane.domain.errors import MemplaneError
from memplane.entrypoints.cli.options import Data, Storage, settings_of
from memplane.entrypoints.cli.output import ExitCode, Json, report


def serve(
    data: Data = None,
    storage: Storage = None,
    port: Annotated[int | None, typer.Option(help="Port; 0 for any free one.")] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    json: Json = False,
) -> None:
    """Run the server. Its one line on standard output is `ready URL`, once it serves."""
    settings = settings_of(data=data, storage=storage, port=port, host=host)
    from memplane.entrypoints.cli.admin.server_process import run_server  # noqa: PLC0415 - the server, which no other command waits for
    from memplane.entrypoints.logs import configure  # noqa: PLC0415 - as above

    configure(settings.log_level, settings.log_format)
    try:
        code = run_server(settings, as_json=json)
    except (MemplaneError, OSError) as error:
        code = report(error, ExitCode.NOT_STARTED)
    raise typer.Exit(code)

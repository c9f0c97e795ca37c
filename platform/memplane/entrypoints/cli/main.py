"""The command line."""

from pathlib import Path
from typing import Annotated

import typer

from memplane.entrypoints.cli.serve import serve as run_server
from memplane.settings import Settings

app = typer.Typer(name="memplane", no_args_is_help=True, add_completion=False)


@app.callback()
def root() -> None:
    """Memplane: the memory plane for teams of AI agents."""


@app.command()
def serve(
    data: Annotated[Path | None, typer.Option(help="Data folder of the embedded database and the keys.")] = None,
    port: Annotated[int | None, typer.Option(help="Port; 0 for any free one.")] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
) -> None:
    """Run the server."""
    given = {name: value for name, value in (("data", data), ("port", port), ("host", host)) if value is not None}
    raise typer.Exit(run_server(Settings(**given)))


def main() -> None:
    """Run the command line."""
    app()

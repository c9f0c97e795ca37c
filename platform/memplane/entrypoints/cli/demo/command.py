"""`memplane demo`: a story in the terminal, told by a real server that is gone afterwards."""

from pathlib import Path
from typing import Annotated

import typer

from memplane.entrypoints.cli.output import Json


def demo(
    policies: Annotated[
        Path | None, typer.Option(help="Tell it under your own policy folder.", show_default="the shipped one")
    ] = None,
    json: Json = False,
) -> None:
    """Tell what each agent gets, what it is refused, and why: a story on a throw-away server."""
    from memplane.entrypoints.cli.demo.narration import tell  # noqa: PLC0415 - the database, which no other command waits for

    raise typer.Exit(tell(policies, as_json=json))

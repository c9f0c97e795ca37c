"""The question before a command that takes something away: a person at a terminal answers, a script says ``--yes``."""

import sys
from typing import Annotated

import typer

Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


def require_terminal(*, yes: bool) -> bool:
    """Whether a person has to be asked.

    Raises:
        typer.BadParameter: there is no terminal to ask at, and ``--yes`` was not given.
    """
    if yes:
        return False
    if not sys.stdin.isatty():
        raise typer.BadParameter("this asks at a terminal before it changes anything, and there is none: add --yes")
    return True


def confirm(consequence: str) -> None:
    """Ask at the terminal whether to go on, once it is said what will happen, to whom, and if it can be undone.

    Raises:
        typer.Abort: the answer is no.
    """
    typer.echo(consequence, err=True)
    typer.confirm("Go on?", abort=True, err=True)

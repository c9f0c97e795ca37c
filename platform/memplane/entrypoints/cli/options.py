"""Options that several commands have, and the settings that come of them."""

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal
from uuid import UUID

import typer
from pydantic import SecretStr, ValidationError

from memplane.contracts.mistakes import mistakes
from memplane.domain.errors import SettingsError
from memplane.settings import Settings

DEFAULT_URL = "http://127.0.0.1:7077"
DEFAULT_AGENT = "supervisor"
POSTGRES = ("postgresql://", "postgres://")


def id_of(where: str) -> Callable[[str | UUID], UUID]:
    """What reads an id from the command line, and says of one that is none where ids are shown."""

    def read(value: str | UUID) -> UUID:
        try:
            return value if isinstance(value, UUID) else UUID(value)
        except ValueError:
            raise typer.BadParameter(f"'{value}' is no id; {where} ids") from None

    return read


memory_id_of = id_of("`memplane list` and `memplane query` show")


def moment_of(value: str | datetime) -> datetime:
    """A day, which means its first moment, or an RFC 3339 time; without a zone it is UTC.

    Raises:
        typer.BadParameter: it is none.
    """
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    except ValueError:
        raise typer.BadParameter(f"'{value}' is no time: write 2026-05-31 or 2026-05-31T18:00Z") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


Data = Annotated[
    Path | None, typer.Option(help="Data folder of the embedded database and keys.json.", envvar="MEMPLANE_DATA")
]
Storage = Annotated[
    Literal["postgres", "sqlite"] | None,
    typer.Option(
        help="The database in the data folder: an embedded PostgreSQL, or one SQLite file.", envvar="MEMPLANE_STORAGE"
    ),
]
Url = Annotated[str, typer.Option(help="The server.", envvar="MEMPLANE_URL")]
Key = Annotated[
    str | None, typer.Option(help="API key; without it, the agent's in DATA/keys.json.", envvar="MEMPLANE_KEY")
]
Agent = Annotated[
    str | None,
    typer.Option(help="Agent to speak as.", show_default=f"the key's own; without a key: {DEFAULT_AGENT}"),
]
AdminKey = Annotated[
    str | None, typer.Option(help="API key; without it, the administrator's in DATA/keys.json.", envvar="MEMPLANE_KEY")
]
Within = Annotated[
    str | None,
    typer.Option("--agent", help="Only what this agent may read and write.", show_default="all that the key may"),
]
User = Annotated[str, typer.Option("--user", help="The user whom it is about.")]
OneUser = Annotated[str | None, typer.Option("--user", help="The user whom it is about.", show_default=False)]
Shared = Annotated[
    bool, typer.Option("--shared", help="It is about no user: shared knowledge, part of every user's recall.")
]
AnyUser = Annotated[str | None, typer.Option("--user", help="Only this user's.")]
Id = Annotated[UUID, typer.Argument(metavar="ID", help="The memory's id.", parser=memory_id_of)]
Words = Annotated[str | None, typer.Argument(help="The text; '-' or nothing: from standard input.")]
Limit = Annotated[int, typer.Option(min=1, max=200, help="The most items of the page.")]
Cursor = Annotated[str | None, typer.Option(help="The `next` of the page before.")]
IfVersion = Annotated[int | None, typer.Option(min=1, help="Only if the memory still is at this version.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what it would do, and store nothing.")]
ValidFrom = Annotated[datetime | None, typer.Option(help="Since when it is so: a day or a time.", parser=moment_of)]
ValidUntil = Annotated[datetime | None, typer.Option(help="Until when it is so: a day or a time.", parser=moment_of)]


def settings_of(**given: object) -> Settings:
    """The environment's settings, with what the command line gave over them; ``None`` means not given.

    Raises:
        SettingsError: a value cannot be one; the setting is named, its value is not.
    """
    try:
        settings = Settings(**{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]  # checked there
    except ValidationError as error:
        wrong = list(mistakes(error.errors(include_input=False, include_url=False)))
        told = "; ".join(f"MEMPLANE_{field.split('.')[0].upper()}: {mistake}" for field, mistake in wrong if field)
        told = told or "; ".join(mistake for _, mistake in wrong)  # of several settings that do not go together
        raise SettingsError(told) from error
    for name in ("database_url", "migration_url"):
        secret: SecretStr | None = getattr(settings, name)
        if secret is not None and not secret.get_secret_value().startswith(POSTGRES):
            raise SettingsError(f"MEMPLANE_{name.upper()}: a database's URL begins with {POSTGRES[0]}")
    if settings.storage == "sqlite" and settings.database_url is not None:
        raise SettingsError(
            "MEMPLANE_DATABASE_URL names a PostgreSQL database and the storage is sqlite: unset one of the two"
        )
    return settings


def given_options(**options: object) -> dict[str, object]:
    """What was given on the command line."""
    return {name: value for name, value in options.items() if value not in (None, [])}


def words_of(argument: str | None) -> str:
    """The text of an argument, or of standard input.

    Raises:
        typer.BadParameter: there is none.
    """
    if argument is not None and argument != "-":
        return argument
    if sys.stdin.isatty() and argument is None:
        raise typer.BadParameter("give the text as an argument, or on standard input")
    return sys.stdin.read().removesuffix("\n")


def owner_of(user: str | None, *, shared: bool) -> str | None:
    """The user that a command names, or none for what is shared.

    Raises:
        typer.BadParameter: it names both, or neither.
    """
    if (user is None) is not shared:
        raise typer.BadParameter("name the user with --user, or say --shared for what is about no user; not both")
    return user

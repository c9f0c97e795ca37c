"""Options that several commands have, and the settings that come of them."""

from pathlib import Path
from typing import Annotated, Literal

import typer
from pydantic import SecretStr, ValidationError

from memplane.domain.errors import SettingsError
from memplane.settings import Settings

DEFAULT_URL = "http://127.0.0.1:7077"
DEFAULT_AGENT = "supervisor"
POSTGRES = ("postgresql://", "postgres://")

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
Agent = Annotated[str | None, typer.Option(help=f"Agent to speak as [the key's own; without a key: {DEFAULT_AGENT}].")]
User = Annotated[str, typer.Option("--user", help="The user whom it is about.")]
AnyUser = Annotated[str | None, typer.Option("--user", help="Only this user's.")]


def settings_of(**given: object) -> Settings:
    """The environment's settings, with what the command line gave over them; ``None`` means not given.

    Raises:
        SettingsError: a value cannot be one; the setting is named, its value is not.
    """
    try:
        settings = Settings(**{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]  # checked there
    except ValidationError as error:
        found = error.errors(include_input=False, include_url=False)
        told = "; ".join(f"MEMPLANE_{'_'.join(map(str, each['loc'])).upper()}: {each['msg']}" for each in found)
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

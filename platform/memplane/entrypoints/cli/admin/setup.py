"""`memplane init` and `memplane migrate`: what is prepared before a server runs."""

from rich.text import Text

from memplane.adapters.files.key_file import NAME
from memplane.entrypoints.cli.options import Data, Storage, settings_of
from memplane.entrypoints.cli.output import Json, plain, show


def init(data: Data = None, storage: Storage = None, json: Json = False) -> None:
    """Prepare the data folder, its database and its keys, without serving. Safe to run again."""
    from memplane.entrypoints.cli.admin.database import initialise  # noqa: PLC0415 - the database, which help does not wait for

    settings = settings_of(data=data, storage=storage)
    keys, revision = initialise(settings)
    path, agents = settings.data / NAME, sorted(keys.agents)
    document = {"data": settings.data, "keys": path, "agents": agents, "revision": revision}
    told = (
        plain(f"The database of {settings.data} is ready, at schema revision {revision}."),
        plain(f"Keys of the administrator and of {', '.join(agents)} are in {path}."),
        Text("Next: memplane serve"),
    )
    show(document, *told, as_json=json)


def migrate(data: Data = None, storage: Storage = None, json: Json = False) -> None:
    """Bring the database to this version's schema.

    The database is the one of MEMPLANE_MIGRATION_URL, which names the schema's owner, or the one in the data folder.
    Safe to run again.
    """
    from memplane.entrypoints.cli.admin.database import migrate_named  # noqa: PLC0415 - the database, which help does not wait for

    where, revision = migrate_named(settings_of(data=data, storage=storage))
    told = plain(f"{where[0].upper()}{where[1:]} is at schema revision {revision}.")
    show({"database": where, "revision": revision}, told, as_json=json)

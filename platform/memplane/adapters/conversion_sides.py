"""The two sides of a conversion: a SQLite file, and a tenant on PostgreSQL."""

from contextlib import ExitStack
from pathlib import Path

from memplane.adapters.conversion import Side
from memplane.domain.errors import StorageUnavailable

FILE = "sqlite:///"
POSTGRES = ("postgresql://", "postgres://")
DEFAULT_TENANT = "default"


def file_side(where: str, cleanup: ExitStack, _tenant: str | None, app_role: str | None) -> Side:
    """A SQLite file; made and migrated first when there is a role."""
    from memplane.adapters.sqlite import provision  # noqa: PLC0415 - loaded when it is chosen

    path = Path(where.removeprefix(FILE)).absolute()
    if app_role is not None:
        provision.migrate(path)
    elif not path.is_file():
        raise StorageUnavailable(f"{path}: there is no such file")
    engine = provision.checked(path)
    cleanup.callback(engine.dispose)
    return Side(str(path), engine, DEFAULT_TENANT)


def postgres_side(where: str, cleanup: ExitStack, tenant: str | None, app_role: str | None) -> Side:
    """A tenant of a PostgreSQL database, by its owner's URL or by the folder of an embedded one; migrated likewise."""
    from memplane.adapters.postgres import provision  # noqa: PLC0415 - loaded when it is chosen

    url = name = where
    if not where.startswith(POSTGRES):
        from memplane.adapters.postgres.embedded import EmbeddedPostgres  # noqa: PLC0415 - loaded when it is chosen

        server = cleanup.enter_context(EmbeddedPostgres.start(Path(where)))
        provision.provision_embedded(server)
        url = server.url(user=provision.OWNER_ROLE, database=provision.DATABASE)
        name = f"the database of {Path(where).absolute()}"
    elif app_role is not None:
        provision.migrate(url, app_role)
    engine = provision.checked(url)
    cleanup.callback(engine.dispose)
    return Side(name if name != url else engine.url.render_as_string(), engine, tenant or DEFAULT_TENANT)

"""The two sides of a conversion: a SQLite file, and a tenant on PostgreSQL."""

from contextlib import ExitStack
from pathlib import Path

from memplane.adapters.conversion.conversion import Side
from memplane.domain.errors import StorageUnavailable

FILE = "sqlite:///"
POSTGRES = ("postgresql://", "postgres://")
DEFAULT_TENANT = "default"


def file_side(where: str, cleanup: ExitStack, _tenant: str | None, app_role: str | None) -> Side:
    """A SQLite file; made and migrated first when there is a role."""
    from memplane.adapters.sqlite import provisioning  # noqa: PLC0415 - loaded when it is chosen

    path = Path(where.removeprefix(FILE)).absolute()
    if app_role is not None:
        provisioning.migrate(path)
    elif not path.is_file():
        raise StorageUnavailable(f"{path}: there is no such file")
    engine = provisioning.checked_engine(path)
    cleanup.callback(engine.dispose)
    return Side(str(path), engine, DEFAULT_TENANT)


def postgres_side(where: str, cleanup: ExitStack, tenant: str | None, app_role: str | None) -> Side:
    """A tenant of a PostgreSQL database, by its owner's URL or by the folder of an embedded one; migrated likewise."""
    from memplane.adapters.postgres import provisioning  # noqa: PLC0415 - loaded when it is chosen

    url = name = where
    if not where.startswith(POSTGRES):
        from memplane.adapters.postgres.embedded.embedded_postgres import EmbeddedPostgres  # noqa: PLC0415 - loaded when it is chosen

        server = cleanup.enter_context(EmbeddedPostgres.start(Path(where)))
        provisioning.provision_embedded(server)
        url = server.url(user=provisioning.OWNER_ROLE, database=provisioning.DATABASE)
        name = f"the database of {Path(where).absolute()}"
    elif app_role is not None:
        provisioning.migrate(url, app_role)
    engine = provisioning.checked_engine(url)
    cleanup.callback(engine.dispose)
    return Side(name if name != url else engine.url.render_as_string(), engine, tenant or DEFAULT_TENANT)

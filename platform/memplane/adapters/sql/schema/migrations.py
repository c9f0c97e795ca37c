"""Bringing a database to the schema that this code needs."""

from alembic import command
from alembic.config import Config

from memplane.adapters.sql.schema.revisions import scripts_folder

WORKER_ROLE = "memplane_worker"


def upgrade(url: str, app_role: str, revision: str = "head", *, worker_role: str = WORKER_ROLE) -> None:
    """Run the migrations as the owner of the schema.

    Args:
        url: the owner's database URL, with driver.
        app_role: the application's role, which receives its grants.
        revision: the target.
        worker_role: the role that takes jobs out of the queue, which receives its grants.
    """
    command.upgrade(_config(url, app_role, worker_role), revision)


def downgrade(url: str, app_role: str, revision: str) -> None:
    """Undo migrations, down to a revision."""
    command.downgrade(_config(url, app_role, WORKER_ROLE), revision)


def _config(url: str, app_role: str, worker_role: str) -> Config:
    config = Config()
    config.set_main_option("script_location", str(scripts_folder()).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["url"] = url
    config.attributes["app_role"] = app_role
    config.attributes["worker_role"] = worker_role
    return config

"""The revisions told by the files' names are those that the migrations declare."""

from alembic.config import Config
from alembic.script import ScriptDirectory

from memplane.adapters.sql.schema.revisions import head, revisions, scripts_folder


def test_revisions_are_those_of_the_migrations_in_one_line() -> None:
    config = Config()
    config.set_main_option("script_location", str(scripts_folder()))
    scripts = list(ScriptDirectory.from_config(config).walk_revisions())
    assert [script.revision for script in reversed(scripts)] == list(revisions())
    assert [script.down_revision for script in reversed(scripts)] == [None, *revisions()[:-1]]
    assert head() == revisions()[-1]

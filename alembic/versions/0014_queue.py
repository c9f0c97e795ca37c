"""Background work on a queue: runs of jobs can wait, be tried again, parked and cancelled; on PostgreSQL procrastinate
carries the messages, in a schema of its own, and a role of its own takes them out.
"""

from contextlib import closing
from pathlib import Path

import sqlalchemy as sa
from alembic import context, op
from uuid_utils.compat import uuid7

from memplane.adapters.sql.schema.types import UtcTime

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

SCHEMA = "procrastinate"
LIBRARY = Path(__file__).with_name("0014_procrastinate_3_10.sql")
"""The library's own schema as of its release 3.10: a later release comes with a migration of its own."""
TABLES = ("procrastinate_jobs", "procrastinate_events", "procrastinate_workers", "procrastinate_periodic_defers")
_TENANT = "nullif(current_setting('memplane.tenant', true), '')"


def upgrade() -> None:
    op.add_column("job_runs", sa.Column("id", sa.Uuid()))
    op.add_column("job_runs", sa.Column("state", sa.String(length=16), nullable=False, server_default="done"))
    op.add_column("job_runs", sa.Column("attempts", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("job_runs", sa.Column("due_at", UtcTime()))
    op.add_column("job_runs", sa.Column("error", sa.Text()))
    _name_runs()
    op.create_index("uq_job_runs_tenant_id_id", "job_runs", ["tenant_id", "id"], unique=True)
    op.create_index("ix_job_runs_state", "job_runs", ["tenant_id", "state"])
    if op.get_context().dialect.name == "postgresql":
        _queue()


def downgrade() -> None:
    if op.get_context().dialect.name == "postgresql":
        op.execute(f"DROP SCHEMA {SCHEMA} CASCADE")
    op.drop_index("ix_job_runs_state", "job_runs")
    op.drop_index("uq_job_runs_tenant_id_id", "job_runs")
    for column in ("error", "due_at", "attempts", "state", "id"):
        op.drop_column("job_runs", column)


def _name_runs() -> None:
    """Ids for the runs that there are; those that had not ended have nobody at work any more while this runs."""
    runs = sa.table(
        "job_runs",
        *(sa.column(name, sa.String) for name in ("tenant_id", "name", "period", "state")),
        sa.column("id", sa.Uuid()),
        sa.column("finished_at", UtcTime()),
    )
    key = (runs.c.tenant_id, runs.c.name, runs.c.period)
    connection = op.get_bind()
    forced = connection.dialect.name == "postgresql"
    if forced:  # the owner is bound by row-level security as everybody is
        op.execute("ALTER TABLE job_runs NO FORCE ROW LEVEL SECURITY")
    for tenant, name, period in connection.execute(sa.select(*key)).fetchall():
        which = sa.and_(*(column == value for column, value in zip(key, (tenant, name, period), strict=True)))
        connection.execute(sa.update(runs).where(which).values(id=uuid7()))
    connection.execute(sa.update(runs).where(runs.c.finished_at.is_(None)).values(state="running"))
    if forced:
        op.execute("ALTER TABLE job_runs FORCE ROW LEVEL SECURITY")


def _queue() -> None:
    quote = op.get_context().dialect.identifier_preparer.quote
    attributes = context.config.attributes
    app, worker = quote(attributes["app_role"]), quote(attributes["worker_role"])
    connection = op.get_bind()
    path = connection.scalar(sa.text("SHOW search_path"))
    op.execute(f"CREATE SCHEMA {SCHEMA}")
    op.execute(f"SET LOCAL search_path = {SCHEMA}")
    with closing(connection.connection.cursor()) as cursor:  # the driver's own: its percent signs are no placeholders
        cursor.execute(LIBRARY.read_text(encoding="utf-8"))
    # whoever calls them, they mean these tables
    for (function,) in connection.execute(
        sa.text("SELECT oid::regprocedure::text FROM pg_proc WHERE pronamespace = CAST(:schema AS regnamespace)"),
        {"schema": SCHEMA},
    ).fetchall():
        op.execute(f"ALTER FUNCTION {function} SET search_path = {SCHEMA}, pg_temp")
    connection.execute(sa.text("SELECT set_config('search_path', :path, true)"), {"path": path})
    for table in TABLES:
        op.execute(f"ALTER TABLE {SCHEMA}.{table} ENABLE ROW LEVEL SECURITY")
        op.execute(f"ALTER TABLE {SCHEMA}.{table} FORCE ROW LEVEL SECURITY")
        # its rows come and go all the time, and what finds the next one must know how few there are
        op.execute(
            f"ALTER TABLE {SCHEMA}.{table}"
            " SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02)"
        )
        op.execute(f"CREATE POLICY worker ON {SCHEMA}.{table} TO {worker} USING (true)")
    # a tenant puts messages in, and sees its own; it takes none out
    op.execute(
        f"CREATE POLICY tenant_isolation ON {SCHEMA}.procrastinate_jobs TO {app}"
        f" USING (args ->> 'tenant_id' = {_TENANT})"
    )
    own = f"EXISTS (SELECT 1 FROM {SCHEMA}.procrastinate_jobs j WHERE j.id = job_id)"  # noqa: S608 - our own names
    op.execute(f"CREATE POLICY tenant_isolation ON {SCHEMA}.procrastinate_events TO {app} USING ({own})")
    op.execute(f"GRANT USAGE ON SCHEMA {SCHEMA} TO {app}, {worker}")
    op.execute(f"GRANT SELECT, INSERT ON {SCHEMA}.procrastinate_jobs, {SCHEMA}.procrastinate_events TO {app}")
    op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {SCHEMA} TO {worker}")
    op.execute(f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA {SCHEMA} TO {app}, {worker}")

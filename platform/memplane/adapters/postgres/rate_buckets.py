"""Buckets of tokens in PostgreSQL, one for each key, shared by every server."""

import sqlalchemy as sa

from memplane.adapters.sql.schema.columns import name_column, tenant_column, time_column

PASSING = sa.MetaData(naming_convention={"pk": "pk_%(table_name)s"})
"""Tables of PostgreSQL alone whose rows nobody would miss: they are not converted, and a crash may empty them."""

rate_limits = sa.Table(
    "rate_limits",
    PASSING,
    tenant_column(),
    name_column("key_id", nullable=False),
    sa.Column("tokens", sa.Double, nullable=False),
    sa.Column("granted", sa.Integer, nullable=False),  # what the last call was given
    time_column("refilled_at", nullable=False),
    # no reference to the tenant or the key: the row may be there before theirs, and outlive it
    sa.PrimaryKeyConstraint("tenant_id", "key_id"),
    prefixes=["UNLOGGED"],
)

sa.Table(
    "unit_removals",
    PASSING,
    tenant_column(),
    name_column("user_id", nullable=False),
    sa.Column("removed_in", sa.BigInteger, nullable=False),
    sa.PrimaryKeyConstraint("tenant_id", "user_id"),
)

# One statement, and so one short lock of one row, by its primary key: refill for the time that went by, then give what
# is wanted, or at least what is needed, or nothing.
DRAW = """
WITH named AS (SELECT set_config('memplane.tenant', %(tenant)s, true) AS tenant)
INSERT INTO rate_limits AS b (tenant_id, key_id, tokens, granted, refilled_at)
SELECT named.tenant, %(key)s, %(burst)s::int - first.granted, first.granted, clock_timestamp()
  FROM named CROSS JOIN (SELECT least(%(wanted)s::int, %(burst)s::int) AS granted) AS first
    ON CONFLICT (tenant_id, key_id) DO UPDATE SET (tokens, granted, refilled_at) = (
SELECT full_to.level - given.granted, given.granted, seen.at
  FROM (SELECT greatest(b.refilled_at, clock_timestamp()) AS at) AS seen
 CROSS JOIN LATERAL (SELECT least(%(burst)s::int,
                                  b.tokens + %(rate)s::float8 * extract(epoch FROM seen.at - b.refilled_at)) AS level
                    ) AS full_to
 CROSS JOIN LATERAL (SELECT CASE WHEN full_to.level >= %(wanted)s::int THEN %(wanted)s::int
                                 WHEN full_to.level >= %(needed)s::int THEN %(needed)s::int
                                 ELSE 0 END AS granted) AS given)
RETURNING granted, tokens AS left"""

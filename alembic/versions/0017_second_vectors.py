"""Room for a second vector in each row, so that another embedding model can be brought in beside the one in force."""

import sqlalchemy as sa
from alembic import op

from memplane.adapters.sql.schema.types import Embedding

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

TABLES = ("memories", "turns")


def upgrade() -> None:
    for table in TABLES:
        op.add_column(table, sa.Column("embedding_2", Embedding()))


def downgrade() -> None:
    for table in TABLES:
        op.drop_column(table, "embedding_2")

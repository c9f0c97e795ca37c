"""A tenant removed whole, as the schema's owner: refused at once, deleted batch by batch, with a receipt.

A receipt without an end is the mark of a removal under way: by it the database refuses every transaction of the tenant
that begins later. Nothing is deleted before those that began earlier have ended, so no request sees half of a tenant.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from memplane.adapters.conversion.conversion import Side
from memplane.adapters.postgres.rate_buckets import PASSING
from memplane.adapters.sql.schema import tables
from memplane.adapters.sql.schema.columns import id_column, name_column, tenant_column, time_column
from memplane.adapters.sql.schema.types import Json
from memplane.application.erasure.erasure_replay import TENANT_REMOVAL
from memplane.application.ports import Clock
from memplane.domain.errors import RecordNotFound, StateConflict, StorageUnavailable
from memplane.domain.language.text import instant
from memplane.domain.memory.memory import new_id
from memplane.domain.privacy.audit_chain import Head

OPERATOR = sa.MetaData(naming_convention={"pk": "pk_%(table_name)s"})
"""Tables of PostgreSQL alone that belong to no tenant: they are neither converted nor removed with one."""
tenant_removals = sa.Table(
    "tenant_removals",
    OPERATOR,
    tenant_column(),
    id_column(),
    name_column("actor", nullable=False),
    sa.Column("counts", Json, nullable=False),
    sa.Column("head", sa.String(100), nullable=False),
    sa.Column("unsealed", sa.BigInteger, nullable=False),
    time_column("started_at", nullable=False),
    time_column("finished_at"),
    sa.PrimaryKeyConstraint("tenant_id"),  # a name is used once
)
REFUSED = "MP001"
"""The SQLSTATE of a transaction of a removed tenant."""
REQUIRE_TENANT = "(SELECT public.tenant_refused(r.tenant_id) FROM tenant_removals r WHERE r.tenant_id = %(tenant)s)"
"""Fails for a removed tenant, and is null for every other; served by pk_tenant_removals."""

BATCH = 2_000
"""Rows of one transaction."""
WAIT_SECONDS = 120.0
"""The longest wait for transactions that began before the tenant was refused."""
_POLL_SECONDS = 0.05
_LAST = ("user_usage",)
"""Kept by triggers on other tables."""
DELETED = (
    *(each for each in reversed(tables.metadata.sorted_tables) if each.name not in {*_LAST, tables.tenants.name}),
    *(tables.metadata.tables[name] for name in _LAST),
    *PASSING.sorted_tables,
)
"""Every table with rows of tenants but the tenants themselves: rows before those that they refer to."""
_MESSAGES = sa.text("DELETE FROM procrastinate.procrastinate_jobs WHERE args ->> 'tenant_id' = :tenant")
_WAITING = sa.text("SELECT count(*) FROM procrastinate.procrastinate_jobs WHERE args ->> 'tenant_id' = :tenant")
# A virtual transaction is there from before its first look at the database until its end. Administrators serve nobody.
_OPEN = sa.text("""
SELECT l.virtualtransaction, l.pid FROM pg_locks l
  JOIN pg_stat_activity a ON a.pid = l.pid
  JOIN pg_roles r ON r.oid = a.usesysid
 WHERE l.locktype = 'virtualxid' AND l.granted AND a.datname = current_database()
   AND r.rolname <> current_user AND NOT r.rolsuper""")
_ALONE = sa.text("SELECT pg_try_advisory_lock(hashtextextended('memplane.tenant_removal:' || :tenant, 0))")
_NOT_ALONE = sa.text("SELECT pg_advisory_unlock(hashtextextended('memplane.tenant_removal:' || :tenant, 0))")

Note = Callable[[Mapping[str, object]], None]
Progress = Callable[[str, int], None]
"""Hears of a table, and how many rows have been deleted from it."""


@dataclass(frozen=True, slots=True)
class Removal:
    """The receipt of a removal.

    Attributes:
        tenant: the tenant that was removed.
        id: of the receipt; none for a dry run.
        actor: who removed it.
        head: of the chain over its history before the removal, ``position:hash``.
        unsealed: entries of the history after that head.
        started_at: when the tenant was refused for the first time.
        finished_at: when nothing was left; none while it is under way.
        counts: rows that were deleted, by table.
    """

    tenant: str
    id: UUID | None
    actor: str
    head: str
    unsealed: int
    started_at: datetime
    finished_at: datetime | None = None
    counts: Mapping[str, int] = field(default_factory=dict)

    def note(self) -> dict[str, object]:
        """The receipt as a line of a ledger."""
        return {
            "type": TENANT_REMOVAL,
            "tenant": self.tenant,
            "subject": self.tenant,
            "receipt": str(self.id),
            "actor": self.actor,
            "history_head": self.head,
            "history_unsealed": self.unsealed,
            "counts": dict(self.counts),
            "started_at": self.started_at.isoformat(),
            "finished_at": None if self.finished_at is None else self.finished_at.isoformat(),
        }


def removal_of(note: Mapping[str, Any]) -> Removal:
    """A receipt from a line of a ledger.

    Raises:
        KeyError, TypeError, ValueError: the line is not whole.
    """
    finished = note["finished_at"]
    return Removal(
        tenant=note["tenant"],
        id=UUID(note["receipt"]),
        actor=note["actor"],
        head=note["history_head"],
        unsealed=note["history_unsealed"],
        started_at=instant(note["started_at"]),
        finished_at=None if finished is None else instant(finished),
        counts=note["counts"],
    )


class RemoveTenant:
    """Removes the tenant of a side, whose engine connects as the schema's owner.

    Args:
        side: the database and the tenant.
        note: writes a line to the ledger, and returns when it is on the disk.
        clock: the time.
    """

    def __init__(self, side: Side, note: Note, clock: Clock) -> None:
        self._side = side
        self._note = note
        self._clock = clock

    def preview(self, actor: str) -> Removal:
        """What a removal would delete; nothing is changed.

        Raises:
            NotFound: there is no such tenant.
            StorageUnavailable, StorageError: the database does not answer, or refuses.
        """
        with self._side.transaction() as connection:
            found = self._known(connection) or self._begun(connection, actor)
            counts = {each.name: self._count(connection, each) for each in (*DELETED, tables.tenants)}
            counts["messages"] = connection.execute(_WAITING, {"tenant": self._side.tenant}).scalar_one()
        return replace(found, id=None, counts={name: count for name, count in counts.items() if count})

    def run(self, actor: str, progress: Progress = lambda _table, _rows: None) -> Removal:
        """Remove the tenant, or go on with a removal that was interrupted; of a removed one the receipt.

        Raises:
            NotFound: there is no such tenant, and there was none that was removed.
            Conflict: another process removes it at this moment.
            StorageUnavailable: the database does not answer, the ledger cannot be written, or a transaction that
                began before does not end.
            StorageError: the database refuses a statement.
        """
        return self._removed(lambda connection: self._begun(connection, actor), progress)

    def replay(self, noted: Removal, progress: Progress = lambda _table, _rows: None) -> Removal | None:
        """Remove a tenant again that a restored backup has brought back, under its own receipt.

        Returns:
            The receipt; ``None`` where this database knows that the removal is finished.

        Raises:
            Conflict, StorageUnavailable, StorageError: as for :meth:`run`.
        """
        with self._side.transaction() as connection:
            known = self._known(connection)
            if known is not None and known.finished_at is not None:
                return None
            if known is None and not self._exists(connection):  # it stays refused, and its name is not used again
                absent = replace(noted, finished_at=noted.finished_at or self._clock(), counts={})
                self._insert(connection, absent)
                return absent
        again = replace(noted, finished_at=None, counts={})
        return self._removed(lambda _connection: again, progress)

    def _removed(self, begin: Callable[[sa.Connection], Removal], progress: Progress) -> Removal:
        with self._alone():
            removal = self._refused(begin)
            if removal.finished_at is not None:
                return removal
            self._await_earlier()
            before = None
            while before is None or removal.counts != before:  # until a pass finds nothing more
                before = removal.counts
                for table in DELETED:
                    removal = self._emptied(removal, table, progress)
                removal = self._without_messages(removal)
            return self._finished(removal)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """As the only process that removes the tenant."""
        with self._side.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            if not connection.execute(_ALONE, {"tenant": self._side.tenant}).scalar_one():
                raise StateConflict(f"another process removes the tenant '{self._side.tenant}' at this moment")
            try:
                yield
            finally:
                with suppress(sa.exc.DBAPIError):  # a broken session has lost it already
                    connection.execute(_NOT_ALONE, {"tenant": self._side.tenant})
                connection.invalidate()

    def _refused(self, begin: Callable[[sa.Connection], Removal]) -> Removal:
        """The removal, from whose commit on every transaction of the tenant is refused."""
        with self._side.transaction() as connection:
            known = self._known(connection)
            if known is not None:
                return known
            removal = begin(connection)
            self._insert(connection, removal)
            k = tables.api_keys.c
            connection.execute(
                sa.update(tables.api_keys)
                .where(k.tenant_id == self._side.tenant, k.revoked_at.is_(None))
                .values(revoked_at=removal.started_at)
            )
            # before the commit: a removal that is noted and was not begun is done when the note is replayed
            self._note(removal.note())
        return removal

    def _begun(self, connection: sa.Connection, actor: str) -> Removal:
        """The receipt of a new removal.

        Raises:
            NotFound: there is no such tenant.
        """
        if not self._exists(connection):
            raise RecordNotFound(f"there is no tenant '{self._side.tenant}'")
        h = tables.history.c
        mine = h.tenant_id == self._side.tenant
        last = sa.select(h.position, h.link).where(mine, h.position.is_not(None)).order_by(h.position.desc()).limit(1)
        row = connection.execute(last).first()
        head = Head() if row is None else Head(row.position, row.link)
        unsealed = sa.select(sa.func.count()).select_from(tables.history).where(mine, h.position.is_(None))
        return Removal(
            self._side.tenant, new_id(), actor, str(head), connection.execute(unsealed).scalar_one(), self._clock()
        )

    def _await_earlier(self) -> None:
        """Return when the transactions have ended that began before the tenant was refused.

        Raises:
            StorageUnavailable: one of them does not end.
        """
        end = time.monotonic() + WAIT_SECONDS
        earlier = self._open()
        while earlier := earlier & self._open():
            if time.monotonic() > end:
                pids = ", ".join(sorted({str(pid) for _, pid in earlier}))
                raise StorageUnavailable(
                    "nothing was deleted yet: transactions that began before the tenant was refused are still open "
                    f"(processes {pids} of the database); end them and run the command again"
                )
            time.sleep(_POLL_SECONDS)

    def _open(self) -> set[tuple[str, int]]:
        with self._side.transaction() as connection:
            return {(row.virtualtransaction, row.pid) for row in connection.execute(_OPEN)}

    def _emptied(self, removal: Removal, table: sa.Table, progress: Progress) -> Removal:
        """Delete the tenant's rows of a table; each batch is a transaction that counts them in the receipt."""
        name = table.name
        statement = sa.text(
            f"DELETE FROM {name} WHERE ctid = ANY (ARRAY("  # noqa: S608 - our own names
            f"SELECT ctid FROM {name} WHERE tenant_id = :tenant LIMIT :most))"
        )
        deleted = BATCH
        while deleted == BATCH:
            with self._side.transaction() as connection:
                deleted = connection.execute(statement, {"tenant": self._side.tenant, "most": BATCH}).rowcount
                removal = self._counted(connection, removal, name, deleted)
            if deleted:
                progress(name, removal.counts[name])
        return removal

    def _without_messages(self, removal: Removal) -> Removal:
        with self._side.transaction() as connection:
            deleted = connection.execute(_MESSAGES, {"tenant": self._side.tenant}).rowcount
            return self._counted(connection, removal, "messages", deleted)

    def _counted(self, connection: sa.Connection, removal: Removal, name: str, deleted: int) -> Removal:
        if not deleted:
            return removal
        counts = {**removal.counts, name: removal.counts.get(name, 0) + deleted}
        self._keep(connection, counts=counts)
        return replace(removal, counts=counts)

    def _finished(self, removal: Removal) -> Removal:
        """Delete the tenant itself: its row can only go when nothing refers to it."""
        with self._side.transaction() as connection:
            t = tables.tenants
            counts = dict(removal.counts)
            counts[t.name] = connection.execute(sa.delete(t).where(t.c.tenant_id == self._side.tenant)).rowcount
            done = replace(removal, counts=counts, finished_at=self._clock())
            self._keep(connection, counts=counts, finished_at=done.finished_at)
            self._note(done.note())
        return done

    def _known(self, connection: sa.Connection) -> Removal | None:
        r = tenant_removals.c
        row = connection.execute(sa.select(tenant_removals).where(r.tenant_id == self._side.tenant)).mappings().first()
        if row is None:
            return None
        named = {name: row[name] for name in Removal.__slots__ if name != "tenant"}
        return Removal(tenant=self._side.tenant, **named)

    def _insert(self, connection: sa.Connection, removal: Removal) -> None:
        row = {name: getattr(removal, name) for name in Removal.__slots__ if name != "tenant"}
        row["counts"] = dict(removal.counts)
        connection.execute(sa.insert(tenant_removals).values(tenant_id=self._side.tenant, **row))

    def _keep(self, connection: sa.Connection, **values: object) -> None:
        mine = tenant_removals.c.tenant_id == self._side.tenant
        connection.execute(sa.update(tenant_removals).where(mine).values(**values))

    def _exists(self, connection: sa.Connection) -> bool:
        found = sa.select(sa.literal(1)).where(tables.tenants.c.tenant_id == self._side.tenant)
        return connection.execute(found).first() is not None

    def _count(self, connection: sa.Connection, table: sa.Table) -> int:
        mine = table.c.tenant_id == self._side.tenant
        return connection.execute(sa.select(sa.func.count()).select_from(table).where(mine)).scalar_one()

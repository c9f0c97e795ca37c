"""No statement of the request path reads a whole table: the plans of what the application really sends.

The application's own readers and stores run against some twenty thousand rows of each kind, and every statement that
they send is explained as the application's role, once for its values and once as the generic plan that a prepared
statement may be given.
"""

import asyncio
import hashlib
import inspect
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import numpy as np
import psycopg
import pytest
import sqlalchemy as sa
from pgvector.psycopg import register_vector_async

from memplane.adapters.postgres.arrays import register_arrays
from memplane.adapters.postgres.scopes import ScopeMemory
from memplane.adapters.postgres.search import PostgresReader, by_cursors
from memplane.adapters.postgres.storage import PostgresStorage
from memplane.adapters.sql.checkpoints import SqlCheckpointReader, SqlCheckpoints
from memplane.adapters.sql.consent_stores import SqlConsents
from memplane.adapters.sql.gateway_stores import SqlAnswers, SqlGraph, SqlTombstones
from memplane.adapters.sql.portable import SqlPortableReader
from memplane.adapters.sql.reader import SqlReader
from memplane.adapters.sql.stores import SqlJournal, SqlKeys, SqlMemories, SqlThreads
from memplane.application.checkpoint_records import NewCheckpoint, Place, Summary, Supervised, Thread, Wanted
from memplane.application.records import (
    ChangedMemory,
    ContextField,
    EntityQuery,
    Look,
    Proposal,
    ProposalQuery,
    Query,
    SearchMaterial,
    Signal,
    Told,
)
from memplane.application.transaction import UnitOfWork
from memplane.domain.consent import ProposalState
from memplane.domain.delta import ChangeEvent
from memplane.domain.entities import mentions
from memplane.domain.lineage import Placement
from memplane.domain.memory import (
    RETRIEVABLE_TRUST,
    Memory,
    MemoryText,
    MemoryType,
    Source,
    State,
    TrustState,
    Visibility,
)
from memplane.domain.principal import Reach
from memplane.domain.scope import Filters, Scope
from memplane.domain.terms import terms
from support.cluster import Database
from support.plans import TENANT, Explainer, Sent, nodes, planned, told, unserved

NOW = datetime(2026, 6, 1, tzinfo=UTC)
OF, PLACE = frozenset({"user-3"}), Place(Thread("user-3", "thread-7"))
VECTOR = np.full(256, 1 / 16, dtype=np.float32)


def check(explainer: Explainer, sent: Sent, *, beyond_tenant: bool = True) -> None:
    """Every statement that looks something up is served by an index, whatever its values."""
    looked = [(text, values) for text, values in sent.statements if re.search(r"\bFROM\b|\bUPDATE\b", text)]
    assert looked
    for text, values in looked:
        for plan in explainer.plans(text, values):
            assert unserved(plan, beyond_tenant=beyond_tenant) == [], f"{text}\n{told(plan)}"


def scope(users: frozenset[str] | None = None, **filters: Any) -> Scope:  # noqa: ANN401 - any filter
    return Scope(
        tenant=TENANT,
        categories=("tasks", "goals", "projects"),
        visibilities=frozenset(Visibility),
        trust_levels=("full", "inner", "familiar", "public"),
        users=users,
        now=NOW,
        turns=True,
        trust_states=RETRIEVABLE_TRUST,
        filters=Filters(**filters),
    )


def asked(**narrower: Any) -> ProposalQuery:  # noqa: ANN401 - any field
    return replace(ProposalQuery(TENANT, ("profile", "tasks"), None, NOW), **narrower)


def nth(number: int) -> UUID:
    """The id of the tenant's nth memory and turn, by the rule that filled the tables."""
    return UUID(hashlib.md5(f"{TENANT}{number}".encode(), usedforsecurity=False).hexdigest())


QUESTION = Query(terms("what to do before the release"), ("release",), VECTOR, names=("release", "name-3", "alias-7"))
WITHOUT_VECTOR = Query(terms("what to do"), (), None)
NAMED = scope(user_id="user-3")
BOUND = scope(users=frozenset({"user-3", "user-4"}))
FILTERED = scope(
    user_id="user-3", thread_id="thread-7", tags=("x",), entity="ana", pinned=False, importance_min=1, updated_after=NOW
)
WHOLE_TENANT = scope()
IDS = [nth(number) for number in range(3, 103, 20)]


async def asked_again(reader: PostgresReader) -> None:
    """A scope that is remembered at the second question, looked at for the third, and brought up to date."""
    scopes = ScopeMemory(len(VECTOR), 2**30)
    reader._scopes = scopes
    for _ in range(3):
        await reader.candidates(NAMED, QUESTION)
    (kept,) = scopes._kept.values()
    kept.look = replace(kept.look, horizon=kept.look.changed, running=kept.look.running + 1)
    await reader.candidates(NAMED, QUESTION)


READS: dict[str, Callable[[PostgresReader], Awaitable[object]]] = {
    "candidates of a user": lambda reader: reader.candidates(NAMED, QUESTION),
    "candidates without a vector": lambda reader: reader.candidates(NAMED, WITHOUT_VECTOR),
    "candidates of a key's users": lambda reader: reader.candidates(BOUND, QUESTION),
    "candidates, filtered": lambda reader: reader.candidates(FILTERED, QUESTION),
    "candidates of a remembered scope": asked_again,
    "turns to export": lambda reader: reader.portable.turns(NAMED, None, 100),
    "memories to export": lambda reader: reader.portable.memories(NAMED, nth(3), 100),
    "ids to export": lambda reader: reader.portable.memory_ids(NAMED, nth(3), 100),
    "histories to export": lambda reader: reader.portable.histories(NAMED, IDS, None, 100),
    "relations to export": lambda reader: reader.portable.relations(NAMED, IDS),
    "entities to export": lambda reader: reader.portable.entities(NAMED, None, 100),
    "fields to export": lambda reader: reader.portable.fields(NAMED, None, 100),
    "tombstones to export": lambda reader: reader.portable.tombstones(NAMED, ["tasks"], None, 100),
    "newest of a user": lambda reader: reader.newest(NAMED, 8),
    "newest of a key's users": lambda reader: reader.newest(BOUND, 8),
    "newest of a tenant": lambda reader: reader.newest(WHOLE_TENANT, 8),
    "units": lambda reader: reader.units(NAMED, [*IDS, UUID(int=1)]),
    "units of a tenant": lambda reader: reader.units(WHOLE_TENANT, [*IDS, UUID(int=1)]),
    "first page": lambda reader: reader.memories(NAMED, before=None, limit=50),
    "later page": lambda reader: reader.memories(NAMED, before=IDS[0], limit=50),
    "later page of a tenant": lambda reader: reader.memories(WHOLE_TENANT, before=IDS[0], limit=50),
    "edges and units": lambda reader: reader.edges_and_units(NAMED, IDS, 1_000, IDS),
    "related": lambda reader: reader.related(NAMED, IDS, 20),
    "thread users": lambda reader: reader.thread_users(WHOLE_TENANT, "thread-7"),
    "thread users of a key": lambda reader: reader.thread_users(BOUND, "thread-7"),
    "window": lambda reader: reader.window(NAMED, "thread-7", 100),
    "revision": lambda reader: reader.revision(NAMED, "user-3", "thread-7"),
    "changes": lambda reader: reader.changes(NAMED, "user-3", "thread-7", 10, 500),
    "changed after a moment": lambda reader: reader.changed_after(NAMED, IDS, NOW),
    "entities": lambda reader: reader.entities(NAMED, EntityQuery(), 50),
    "entities by name": lambda reader: reader.entities(NAMED, EntityQuery("person", "name-3"), 50),
    "entity": lambda reader: reader.entities(WHOLE_TENANT, EntityQuery(ids=(nth(3),)), 1),
    "entity of a key": lambda reader: reader.entities(BOUND, EntityQuery(ids=(nth(3),)), 1),
    "around": lambda reader: reader.around(NAMED, nth(3), 5, 5),
    "whole": lambda reader: reader.whole(NAMED, nth(3)),
    "at another moment": lambda reader: reader.candidates(NAMED.as_of(NOW, NOW), QUESTION),
    "history": lambda reader: reader.history(NAMED, nth(3), before=None, limit=50),
    "head of a thread": lambda reader: reader.checkpoints.find(Wanted(OF, "thread-7", "", head=True, limit=1)),
    "checkpoint by id": lambda reader: reader.checkpoints.find(Wanted(OF, "thread-7", "", ids=("00000143",))),
    "page of a thread": lambda reader: reader.checkpoints.find(Wanted(OF, "thread-7", "", before="1", limit=5)),
    "page of one channel": lambda reader: reader.checkpoints.find(Wanted(OF, "thread-7", "", channels=("messages",))),
    "checkpoints of a user": lambda reader: reader.checkpoints.find(Wanted(OF, limit=5)),
    "metadata of a thread": lambda reader: reader.checkpoints.told(Wanted(OF, "thread-7")),
    "who has a thread": lambda reader: reader.checkpoints.users("thread-7", None),
    "items of a store": lambda reader: reader.items(NAMED, ("plans",)),
    "memories by the caller's names": lambda reader: reader.named(NAMED, ["memory-3", "memory-23"]),
    "supervisor": lambda reader: reader.checkpoints.supervised(PLACE.thread),
    "proposals of a user": lambda reader: reader.proposals(
        asked(user_id="user-3", state=ProposalState.PENDING), before=None, limit=50
    ),
    "proposals of a key's users": lambda reader: reader.proposals(
        asked(users=frozenset({"user-3"})), before=None, limit=50
    ),
    "proposals of a tenant": lambda reader: reader.proposals(asked(), before=IDS[0], limit=50),
    "proposals by their ids": lambda reader: reader.proposals(asked(ids=tuple(IDS)), before=None, limit=50),
    "context": lambda reader: reader.context(replace(NAMED, turns=False), 200),
    "later history": lambda reader: reader.history(NAMED, nth(3), before=IDS[0], limit=50),
}

# these walk a tenant's newest until they have enough
OF_A_TENANT = {
    "newest of a tenant",
    "newest of a key's users",
    "later page of a tenant",
    "proposals of a tenant",
    "proposals of a key's users",
}


@pytest.mark.parametrize("read", READS)
def test_a_read_is_served_by_indexes(busy: Database, explainer: Explainer, read: str) -> None:
    sent = Sent()

    async def run() -> None:
        connection = await psycopg.AsyncConnection.connect(
            busy.url, row_factory=psycopg.rows.dict_row, cursor_factory=sent.cursor_class()
        )
        async with connection:
            await register_vector_async(connection)
            register_arrays(connection)
            await connection.execute("SELECT set_config('memplane.tenant', %s, true)", (TENANT,))
            await READS[read](PostgresReader(by_cursors(connection), TENANT))

    asyncio.run(run())
    check(explainer, sent, beyond_tenant=read not in OF_A_TENANT)


def memory(**fields: object) -> Memory:
    text = MemoryText(content="The release is on Friday.")
    return Memory(
        id=UUID(int=7), user_id="user-3", category="tasks", type=MemoryType.SEMANTIC, visibility=Visibility.PRIVATE,
        text=text, trust_state=TrustState.CONFIRMED, source=Source.USER, state=State.ACTIVE, value_hash="value-3",
        recorded_at=NOW, updated_at=NOW, **fields,
    )  # fmt: skip


PROPOSAL = Proposal(
    UUID(int=8), "user-3", "city", "Oslo", nth(3), 0.9, "key:ana", "sha256:0", NOW, NOW + timedelta(days=7)
)
FIELD = ContextField("user-3", "city", "value-3", "Oslo", "profile", nth(3), nth(3), nth(3), "key:ana", "sha256:0", NOW)
SIGNAL = Signal("user-3", "tone", "value-3", nth(3), nth(3), 0.9, NOW)
MATERIAL = SearchMaterial(terms("release friday"), VECTOR)
MENTIONED = mentions("Ask Ana Ruiz and bo@example.com.")
TOLD = Told((ChangedMemory(nth(3), ChangeEvent.CREATED, "tasks"),), NOW, datetime.max.replace(tzinfo=UTC), 8)


def look(new: Memory) -> Look:
    return Look(new, MATERIAL, replace(NAMED, turns=False), 10, MENTIONED)


CHECKPOINT = NewCheckpoint("00009999", "00009143", {}, {}, (), empty=False, summary=Summary(1, "loop", None, ()))

WRITES: dict[str, Callable[[UnitOfWork], Awaitable[object]]] = {
    "duplicate by value": lambda uow: uow.memories.find_duplicate(memory()),
    "duplicate by name": lambda uow: uow.memories.find_duplicate(memory(external_id="memory-3")),
    "lock": lambda uow: uow.memories.lock(NAMED, nth(3)),
    "lock without a user": lambda uow: uow.memories.lock(WHOLE_TENANT, nth(3)),
    "find": lambda uow: uow.memories.find(NAMED, nth(3)),
    "nearest": lambda uow: uow.memories.nearest(NAMED, MATERIAL, 10),
    "buried": lambda uow: uow.tombstones.held("user-3", "tasks"),
    "rejected": lambda uow: uow.memories.rejected("user-3", "tasks", 200),
    "linked": lambda uow: uow.graph.linked(nth(3), "disputes"),
    "look": lambda uow: uow.look(look(memory())),
    "look by name": lambda uow: uow.look(look(memory(external_id="memory-3"))),
    "entities": lambda uow: uow.graph.entities("user-3", MENTIONED, NOW),
    "mentioned anew": lambda uow: uow.graph.mention(replace(memory(version=2), id=nth(3)), [nth(4)]),
    "name": lambda uow: uow.graph.name("user-3", nth(3), "Anna", "anna"),
    "fold": lambda uow: uow.graph.fold(nth(3), nth(23), ("Ana", "ana")),
    "past of a name": lambda uow: uow.memories.find_past(memory(external_id="memory-3")),
    "answered": lambda uow: uow.answers.answered("key-3", "once-3"),
    "propose": lambda uow: uow.consents.propose(PROPOSAL, "value-3"),
    "lock a proposal": lambda uow: uow.consents.lock(nth(3)),
    "an acknowledging turn": lambda uow: uow.consents.acknowledges_other(PROPOSAL, nth(3)),
    "others that waited": lambda uow: uow.consents.others_waited(PROPOSAL, NOW),
    "lift": lambda uow: uow.tombstones.lift("user-3", "tasks", ["value-3"], NOW),
    "deleted of a user": lambda uow: uow.upkeep.deleted(replace(NAMED, turns=False), None, NOW, 100),
    "purge": lambda uow: uow.upkeep.purge([memory()]),
    "decide": lambda uow: uow.consents.decide(replace(PROPOSAL, id=nth(3))),
    "decided fields": lambda uow: uow.consents.fields("user-3", "city"),
    "keep a field": lambda uow: uow.consents.keep(FIELD, alone=True),
    "signals": lambda uow: uow.consents.signals("user-3", "tone", "value-3", NOW),
    "tell": lambda uow: uow.threads.tell("user-3", {"another": NOW, "one more": NOW}, TOLD),
    "replace": lambda uow: uow.memories.replace(memory(), MATERIAL),
    "existing turns": lambda uow: uow.threads.existing_turns("user-3", "thread-7", ["turn-3", "turn-4"]),
    "advance": lambda uow: uow.threads.advance("user-3", "thread-7", NOW, revs=1, turns=1),
    "revision": lambda uow: uow.threads.revision("user-3", "thread-7"),
    "count accesses": lambda uow: uow.journal.count_accesses(dict.fromkeys(IDS, 1), NOW),
    "lock a key": lambda uow: uow.keys.lock(f"{TENANT}7"),
    "end a key": lambda uow: uow.keys.end(f"{TENANT}7", NOW),
    "keys were used": lambda uow: uow.keys.used({f"{TENANT}7": NOW, f"{TENANT}8": NOW}),
    "open a thread": lambda uow: uow.checkpoints.open(PLACE.thread, NOW),
    "lock a thread": lambda uow: uow.checkpoints.lock(PLACE.thread),
    "arrive": lambda uow: uow.checkpoints.arrive(PLACE, "00009999", NOW),
    "add a checkpoint": lambda uow: uow.checkpoints.add(
        PLACE, CHECKPOINT, Placement.HEAD, Supervised(PLACE.thread, updated_at=NOW)
    ),
    "keep a supervisor": lambda uow: uow.checkpoints.keep(Supervised(PLACE.thread, updated_at=NOW)),
    "nodes": lambda uow: uow.checkpoints.nodes(PLACE.thread),
    "threads of runs": lambda uow: uow.checkpoints.threads_of(["run"], OF),
    "remove": lambda uow: uow.checkpoints.remove(
        PLACE.thread, [("", "00009143")], {("", "00001143"): None}, [("", "00001143")]
    ),
    "copy": lambda uow: uow.checkpoints.copy(PLACE.thread, Thread("user-3", "another"), NOW),
    "delete a thread": lambda uow: uow.checkpoints.delete(PLACE.thread),
    "history of keys": lambda uow: uow.keys.history([f"{TENANT}7"], IDS[0], 50),
    "history of all keys": lambda uow: uow.keys.history(None, IDS[0], 50),
    "erase checkpoints": lambda uow: uow.checkpoints.erase("user-3"),
    "forgotten words": lambda uow: uow.journal.forget([nth(3)]),
    "known erasures": lambda uow: uow.erasures.known(["subject"]),
    "erasure keys": lambda uow: uow.erasures.keys(),
    "buried of an erased user": lambda uow: uow.erasures.buried("user-3", "tasks", ["value-3"]),
    "graves": lambda uow: uow.erasures.graves("user-3", ("tasks", "value-3"), 100),
    "memories to erase": lambda uow: uow.erasures.memories("user-3", 100),
    "turns to erase": lambda uow: uow.erasures.turns("user-3", 100),
    "drawn from": lambda uow: uow.erasures.drawn(IDS, "user-3"),
    "derived from": lambda uow: uow.upkeep.derived(IDS),
    "tombstones to erase": lambda uow: uow.erasures.rejected("user-3", 100),
    "stated fields": lambda uow: uow.erasures.stated("user-3", 100),
    "removed units": lambda uow: uow.erasures.remove(IDS, IDS),
    "erased checkpoints": lambda uow: uow.checkpoints.erased("user-3"),
    "revoke": lambda uow: uow.keys.revoke(f"{TENANT}7", NOW),
}
STORES = (
    SqlMemories,
    SqlThreads,
    SqlJournal,
    SqlKeys,
    SqlTombstones,
    SqlGraph,
    SqlAnswers,
    SqlConsents,
    SqlCheckpoints,
)
READERS = (SqlReader, SqlCheckpointReader, SqlPortableReader)
INSERTS = {
    "add_writes",
    "add",
    "add_turns",
    "log",
    "record",
    "events",
    "link",
    "bury",
    "keep",
    "signal",
    "note",
}  # these look nothing up
LISTS = {"all", "crowded"}  # an administrator's list of keys, and the threads that pruning goes through


class NotKept(Exception):
    """Takes a transaction back."""


def record(database: Database, write: Callable[[UnitOfWork], Awaitable[object]]) -> Sent:
    """What a write sends, in a transaction that is taken back."""
    sent = Sent()

    async def work(uow: UnitOfWork) -> None:
        await write(uow)
        raise NotKept

    async def run() -> None:
        storage = PostgresStorage(database.url, pool_size=2)
        noting = sent.cursor_class()

        def note_all(connection: Any, _record: object) -> None:  # noqa: ANN401 - SQLAlchemy's hook
            connection.driver_connection.cursor_factory = noting

        sa.event.listen(storage._engine.sync_engine, "connect", note_all)
        await storage.open()
        try:
            with pytest.raises(NotKept):
                await storage.write(Reach(TENANT), work)
        finally:
            await storage.close()

    asyncio.run(run())
    return sent


@pytest.mark.parametrize("write", WRITES)
def test_a_write_looks_up_by_indexes(busy: Database, explainer: Explainer, write: str) -> None:
    check(explainer, record(busy, WRITES[write]))


def test_a_key_is_found_by_its_index(explainer: Explainer) -> None:
    sent = Sent([("SELECT * FROM api_keys WHERE key_id = %s", (f"{TENANT}7",))])
    source = inspect.getsource(PostgresStorage.find_key)
    assert sent.statements[0][0] in source  # what is explained is what is sent
    check(explainer, sent)


@pytest.mark.parametrize("write", ["duplicate by value", "duplicate by name"])
def test_a_duplicate_is_found_by_its_own_index(busy: Database, explainer: Explainer, write: str) -> None:
    """However many memories the user has, and although the index holds active ones alone."""
    for text, values in record(busy, WRITES[write]).statements:
        if "FROM memories" in text:
            for plan in explainer.plans(text, values):
                used = {node["Index Name"] for node in nodes(plan) if "Index Name" in node}
                assert used <= {"uq_memories_value", "uq_memories_external", "pk_memories"}, told(plan)


CONTROLS = {
    "ix_memories_user": "SELECT id FROM memories WHERE tenant_id = %(t)s AND user_id = %(u)s ORDER BY id DESC LIMIT 8",
    "ix_turns_user": "SELECT id FROM turns WHERE tenant_id = %(t)s AND user_id = %(u)s ORDER BY id DESC LIMIT 8",
    "ix_api_keys_key": "SELECT 1 FROM api_keys WHERE key_id = %(t)s",
}


@pytest.mark.parametrize("index", CONTROLS)
def test_a_missing_index_would_be_found(busy: Database, index: str) -> None:
    statement, values = f"EXPLAIN (FORMAT JSON) {CONTROLS[index]}", {"t": TENANT, "u": "user-3"}
    with psycopg.connect(busy.admin_url) as connection:
        before = planned(connection, statement, values)
        connection.execute(f"DROP INDEX {index}")
        after = planned(connection, statement, values)
        connection.rollback()
    assert unserved(before, beyond_tenant=True) == [], told(before)
    assert unserved(after, beyond_tenant=True) != [], told(after)


def test_every_read_and_write_is_explained() -> None:
    methods = {name for kind in (*READERS, *STORES) for name in vars(kind) if not name.startswith("_")}
    called = {name for function in (*READS.values(), *WRITES.values()) for name in function.__code__.co_names}
    assert methods - called - INSERTS - LISTS == {"rows", "rows_of_all", "nearest_of"}  # the last is part of a look

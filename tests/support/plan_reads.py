"""Every read that is explained: what the application's own readers send for it."""

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import numpy as np

from memplane.adapters.postgres.scope_cache import ScopeCache
from memplane.adapters.postgres.search import PostgresReader
from memplane.adapters.sql.queries.portable_reader import SqlPortableReader
from memplane.adapters.sql.queries.reader import SqlReader
from memplane.adapters.sql.queries.tracking_reader import SqlTrackingReader
from memplane.adapters.sql.stores.checkpoints import SqlCheckpointReader
from memplane.application.checkpoints.checkpoint_records import CheckpointQuery, Namespace, Thread
from memplane.application.operations.tracking_records import EventFilters, EventPageQuery, TurnSpan
from memplane.application.recall.search_material import Query
from memplane.application.records import EntityQuery, ProposalQuery, TombstoneQuery
from memplane.domain.consent.consent_rules import ProposalState
from memplane.domain.language.terms import terms
from memplane.domain.memory.memory import RETRIEVABLE_TRUST, Visibility
from memplane.domain.memory.scope import Filters, Scope
from support.plans import TENANT

NOW = datetime(2026, 6, 1, tzinfo=UTC)
OF, PLACE = frozenset({"user-3"}), Namespace(Thread("user-3", "thread-7"))
VECTOR = np.full(256, 1 / 16, dtype=np.float32)


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


def tracked(*, every: bool = False, before: UUID | None = None, **filters: Any) -> EventPageQuery:  # noqa: ANN401 - any filter
    return EventPageQuery(EventFilters(**filters), every=every, stores=True, before=before, limit=50)


def nth(number: int) -> UUID:
    """The id of the tenant's nth memory and turn, by the rule that filled the tables."""
    return UUID(hashlib.md5(f"{TENANT}{number}".encode(), usedforsecurity=False).hexdigest())


QUESTION = Query(terms("what to do before the release"), ("release",), VECTOR, names=("release", "name-3", "alias-7"))
WITHOUT_VECTOR = Query(terms("what to do"), (), None)
NAMED = scope(user_id="user-3")
BOUND = scope(users=frozenset({"user-3", "user-4"}))
SHARING = NAMED.with_shared(("tasks",))
BOUND_SHARING = BOUND.with_shared(("tasks",))
FILTERED = scope(
    user_id="user-3",
    thread_id="thread-7",
    tags=("x",),
    entities=("ana", "ben"),
    types=("semantic", "episodic"),
    visibility="private",
    pinned=False,
    importance_min=1,
    updated_after=NOW,
)
WHOLE_TENANT = scope()
ALWAYS_TOLD = [(scope(user_id="user-3", **lane), 340) for lane in ({"pinned": True}, {"importance_min": 4}, {})]
IDS = [nth(number) for number in range(3, 103, 20)]


def refusing(**narrower: Any) -> TombstoneQuery:  # noqa: ANN401 - fields of the query
    return replace(TombstoneQuery(TENANT, ("profile", "tasks", "field:city")), **narrower)


async def asked_again(reader: PostgresReader) -> None:
    """A scope that is remembered at the second question, looked at for the third, and brought up to date."""
    scopes = ScopeCache(len(VECTOR), 2**30)
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
    "candidates and what is shared": lambda reader: reader.candidates(SHARING, QUESTION),
    "candidates of a key's users and what is shared": lambda reader: reader.candidates(BOUND_SHARING, QUESTION),
    "newest and what is shared": lambda reader: reader.newest(BOUND_SHARING, 8),
    "units and what is shared": lambda reader: reader.units(BOUND_SHARING, [*IDS, UUID(int=1)]),
    "page of a key and what is shared": lambda reader: reader.memories(BOUND_SHARING, before=IDS[0], limit=50),
    "page of what is shared": lambda reader: reader.memories(SHARING.shared_alone, before=IDS[0], limit=50),
    "conflicts and what is shared": lambda reader: reader.conflicts(BOUND_SHARING, IDS, limit=60),
    "related and what is shared": lambda reader: reader.related_memories(BOUND_SHARING, IDS, 20),
    "edges and what is shared": lambda reader: reader.edges_and_units(BOUND_SHARING, IDS, 1_000, IDS),
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
    "conflicts of a user": lambda reader: reader.conflicts(NAMED, limit=50),
    "later conflicts of a key's users": lambda reader: reader.conflicts(BOUND, before=nth(3), limit=50),
    "later conflicts of a tenant": lambda reader: reader.conflicts(WHOLE_TENANT, before=nth(3), limit=50),
    "conflicts of memories": lambda reader: reader.conflicts(NAMED, IDS, limit=60),
    "related": lambda reader: reader.related_memories(NAMED, IDS, 20),
    "turns of a thread": lambda reader: reader.turns_of(NAMED, "thread-7", TurnSpan(), 50),
    "later turns of a thread": lambda reader: reader.turns_of(NAMED, "thread-7", TurnSpan(after=3), 50),
    "events of a user": lambda reader: reader.tracking.events(NAMED, tracked(user_id="user-3", op="create")),
    "later events of a user": lambda reader: reader.tracking.events(NAMED, tracked(before=nth(3), user_id="user-3")),
    "events of a key's users": lambda reader: reader.tracking.events(BOUND, tracked(since=NOW)),
    "events of a tenant": lambda reader: reader.tracking.events(WHOLE_TENANT, tracked(every=True, before=nth(3))),
    "groups of a user": lambda reader: reader.tracking.memories(NAMED, 1_000),
    "groups of a tenant": lambda reader: reader.tracking.memories(WHOLE_TENANT, 1_000),
    "recall on demand of a user": lambda reader: reader.tracking.on_demand(NAMED, NOW),
    "recall on demand of a tenant": lambda reader: reader.tracking.on_demand(WHOLE_TENANT, NOW),
    "thread users": lambda reader: reader.thread_users(WHOLE_TENANT, "thread-7"),
    "thread users of a key": lambda reader: reader.thread_users(BOUND, "thread-7"),
    "a context": lambda reader: reader.pages_and_window(ALWAYS_TOLD, NAMED, "thread-7", 100),
    "revision": lambda reader: reader.revision(NAMED, "user-3", "thread-7"),
    "changes": lambda reader: reader.changes(NAMED, "user-3", "thread-7", 10, 500),
    "changed memories": lambda reader: reader.changed_memories(NAMED, "user-3", "thread-7", 10, 3),
    "changed after a moment": lambda reader: reader.changed_after(NAMED, IDS, NOW),
    "entities": lambda reader: reader.entities(NAMED, EntityQuery(), 50),
    "entities by name": lambda reader: reader.entities(NAMED, EntityQuery("person", "name-3"), 50),
    "entity": lambda reader: reader.entities(WHOLE_TENANT, EntityQuery(ids=(nth(3),)), 1),
    "entities of what is shared": lambda reader: reader.entities(BOUND_SHARING.shared_alone, EntityQuery(), 50),
    "entity of a key, or shared": lambda reader: reader.entities(BOUND_SHARING, EntityQuery(ids=(nth(3),)), 1),
    "entity of a key": lambda reader: reader.entities(BOUND, EntityQuery(ids=(nth(3),)), 1),
    "profile of an entity": lambda reader: reader.profile(NAMED, nth(3), nth(40), (21, 20)),
    "profile of an entity of a tenant": lambda reader: reader.profile(WHOLE_TENANT, nth(3), None, (21, 20)),
    "around": lambda reader: reader.around(NAMED, nth(3), 5, 5),
    "whole": lambda reader: reader.whole(NAMED, nth(3)),
    "at another moment": lambda reader: reader.candidates(NAMED.as_of(NOW, NOW), QUESTION),
    "history": lambda reader: reader.history(NAMED, nth(3), before=None, limit=50),
    "head of a thread": lambda reader: reader.checkpoints.find(CheckpointQuery(OF, "thread-7", "", head=True, limit=1)),
    "checkpoint by id": lambda reader: reader.checkpoints.find(CheckpointQuery(OF, "thread-7", "", ids=("00000143",))),
    "page of a thread": lambda reader: reader.checkpoints.find(
        CheckpointQuery(OF, "thread-7", "", before="1", limit=5)
    ),
    "page of one channel": lambda reader: reader.checkpoints.find(
        CheckpointQuery(OF, "thread-7", "", channels=("messages",))
    ),
    "checkpoints of a user": lambda reader: reader.checkpoints.find(CheckpointQuery(OF, limit=5)),
    "metadata of a thread": lambda reader: reader.checkpoints.metadata(CheckpointQuery(OF, "thread-7")),
    "who has a thread": lambda reader: reader.checkpoints.users("thread-7", None),
    "items of a store": lambda reader: reader.items(NAMED, ("plans",)),
    "memories by the caller's names": lambda reader: reader.memories_by_name(NAMED, ["memory-3", "memory-23"]),
    "supervisor": lambda reader: reader.checkpoints.supervisor_state(PLACE.thread),
    "proposals of a user": lambda reader: reader.proposals(
        asked(user_id="user-3", state=ProposalState.PENDING), before=None, limit=50
    ),
    "proposals of a key's users": lambda reader: reader.proposals(
        asked(users=frozenset({"user-3"})), before=None, limit=50
    ),
    "proposals of a tenant": lambda reader: reader.proposals(asked(), before=IDS[0], limit=50),
    "proposals by their ids": lambda reader: reader.proposals(asked(ids=tuple(IDS)), before=None, limit=50),
    "verdicts of a user": lambda reader: reader.verdicts(refusing(scopes=["user-3"]), before=None, limit=50),
    "later verdicts of a user": lambda reader: reader.verdicts(refusing(scopes=["user-3"]), before=IDS[0], limit=50),
    "verdicts of a tenant": lambda reader: reader.verdicts(refusing(), before=IDS[0], limit=50),
    "verdicts by their ids": lambda reader: reader.verdicts(refusing(ids=IDS), before=None, limit=50),
    "values of erased users": lambda reader: reader.verdicts(refusing(erased=True), before=IDS[0], limit=50),
    "merged user": lambda reader: reader.merged_into("user-3"),
    "time zones": lambda reader: reader.time_zones(["user-3", "user-4"]),
    "context": lambda reader: reader.context(replace(NAMED, turns=False), 200),
    "later history": lambda reader: reader.history(NAMED, nth(3), before=IDS[0], limit=50),
}

OF_A_TENANT = {
    "newest of a tenant",
    "later page of a tenant",
    "proposals of a tenant",
    "proposals of a key's users",
    "later conflicts of a tenant",
    "events of a tenant",
    "events of a key's users",
    "groups of a tenant",
    "recall on demand of a tenant",
    "verdicts of a tenant",
    "values of erased users",
}
"""These walk a tenant's newest, or its open conflicts, until they have enough."""
READERS = (SqlReader, SqlCheckpointReader, SqlPortableReader, SqlTrackingReader)

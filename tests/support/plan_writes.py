"""Every write that is explained: what the application's own stores send for it."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from memplane.adapters.sql.stores.audit_chain import SqlChain
from memplane.adapters.sql.stores.checkpoints import SqlCheckpoints
from memplane.adapters.sql.stores.consent_stores import SqlConsents
from memplane.adapters.sql.stores.erasures import SqlErasures
from memplane.adapters.sql.stores.gateway_stores import SqlAnswers, SqlGraph, SqlTombstones
from memplane.adapters.sql.stores.jobs.budgets import SqlBudgets
from memplane.adapters.sql.stores.jobs.co_recalls import SqlCoRecalls
from memplane.adapters.sql.stores.jobs.enrichments import SqlEnrichments
from memplane.adapters.sql.stores.jobs.graph_repairs import SqlRepairs
from memplane.adapters.sql.stores.jobs.job_runs import SqlJobRuns
from memplane.adapters.sql.stores.jobs.job_users import SqlJobUsers
from memplane.adapters.sql.stores.jobs.pairs import SqlPairs
from memplane.adapters.sql.stores.jobs.text_repairs import SqlTextRepairs
from memplane.adapters.sql.stores.jobs.upkeep import SqlUpkeep
from memplane.adapters.sql.stores.memory_stores import SqlJournal, SqlKeys, SqlMemories, SqlThreads
from memplane.adapters.sql.stores.portable_store import SqlPortableStore
from memplane.adapters.sql.stores.reverts import SqlReverts
from memplane.adapters.sql.stores.session_closings import SqlClosings
from memplane.adapters.sql.stores.turn_deletions import SqlRemovals
from memplane.adapters.sql.stores.vectors import SqlVectors
from memplane.application.checkpoints.checkpoint_records import (
    CheckpointSummary,
    NewCheckpoint,
    SupervisorState,
    Thread,
)
from memplane.application.jobs.job_records import Due, JobRun, TokensSpent
from memplane.application.jobs.job_records import MemorySelection as Jobs
from memplane.application.jobs.pair_records import PairCheck
from memplane.application.jobs.reconciliation.reconcile_records import HeldRelation
from memplane.application.jobs.user_job_records import News
from memplane.application.jobs.vector_records import Kind, Text
from memplane.application.recall.search_material import SearchMaterial
from memplane.application.records import ChangedMemory, ChangeNotice, ContextField, Edge, Proposal, Signal, WriteLookup
from memplane.application.reverts.revert_ports import RevertedWriter
from memplane.application.transaction import UnitOfWork
from memplane.application.transfer.portable_records import NamedEntity
from memplane.application.turns.session_records import Unread
from memplane.application.turns.turn_deletion_ports import KeptAnswer
from memplane.domain.checkpoints.lineage import Placement
from memplane.domain.language.enrichment import Enriched
from memplane.domain.language.entities import Mention, mentions
from memplane.domain.language.terms import terms
from memplane.domain.memory.conflict_verdicts import POSSIBLE_CONFLICT, ConflictVerdict
from memplane.domain.memory.delta import ChangeEvent
from memplane.domain.memory.history import HistoryEvent
from memplane.domain.memory.memory import (
    Layer,
    Memory,
    MemoryText,
    MemoryType,
    Role,
    Source,
    State,
    TrustState,
    Turn,
    Visibility,
)
from memplane.domain.memory.revert_rules import RecordedChange
from memplane.domain.memory.undo_records import UndoKind, UndoRecord
from memplane.domain.ranking.embedding_models import Column
from support.plan_reads import IDS, NAMED, NOW, OF, PLACE, VECTOR, WHOLE_TENANT, nth
from support.plans import TENANT


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
NEWS = News("job-7", (MemoryType.SEMANTIC,), True, NOW - timedelta(days=3), NOW - timedelta(days=1))
FIELD = ContextField("user-3", "city", "value-3", "Oslo", "profile", nth(3), nth(3), nth(3), "key:ana", "sha256:0", NOW)
SIGNAL = Signal("user-3", "tone", "value-3", nth(3), nth(3), 0.9, NOW)
HELD = [HeldRelation(nth(3), "related_to", 0.5, (nth(4), nth(5)), "user-3", "user-3", nth(6), 0.6)]
MATERIAL = SearchMaterial(terms("release friday"), VECTOR)
TEXT = Text(nth(3), "user-3", 1, "The release is on Friday.")
TURN = Turn(nth(3), "user-3", "thread-7", 3, 7, Role.USER, "Which hall?", NOW)
MENTIONED = mentions("Ask Ana Ruiz and bo@example.com.")
ENRICHED = Enriched(MENTIONED, (Mention("person", "Name", "name-3"),))
TOLD = ChangeNotice((ChangedMemory(nth(3), ChangeEvent.CREATED, "tasks"),), NOW, datetime.max.replace(tzinfo=UTC), 8)


def look(new: Memory) -> WriteLookup:
    return WriteLookup(new, MATERIAL, replace(NAMED, turns=False), 10, MENTIONED)


CHECKPOINT = NewCheckpoint(
    "00009999", "00009143", {}, {}, (), empty=False, summary=CheckpointSummary(1, "loop", None, ())
)


async def reconciled(uow: UnitOfWork) -> None:
    """Conflicts that are listed both ways, decided on."""
    listed = [Edge(*ends, 0.7, POSSIBLE_CONFLICT) for ends in ((nth(3), nth(23)), (nth(23), nth(3)))]
    await uow.graph.link(listed, NOW)
    await uow.graph.reconcile(listed[0], NOW)


async def settled(uow: UnitOfWork) -> None:
    """A conflict that was decided on, decided otherwise."""
    await uow.graph.link([Edge(nth(3), nth(23), 0.7, ConflictVerdict.NEWER.relation)], NOW)
    for conflict in (await uow.graph.ended_by_verdict(nth(3))).values():
        await uow.graph.settle_conflict(conflict, ConflictVerdict.KEEP_BOTH, NOW)


async def dropped(uow: UnitOfWork) -> None:
    """A conflict that is listed, no longer suspected."""
    await uow.graph.link([Edge(nth(3), nth(23), 0.7, POSSIBLE_CONFLICT)], NOW)
    await uow.graph.drop_conflicts(nth(3), set())


BY_KEY = RevertedWriter("key-3", None, NOW - timedelta(days=1))
BY_AGENT = RevertedWriter(None, "agent-3", NOW - timedelta(days=1), frozenset({"key-3", "key-4"}))
DEED = RecordedChange(nth(3), nth(3), "user-3", HistoryEvent.PIN, "agent:a", "key-3", NOW, changes={})
DONE = UndoRecord(nth(3), "user-3", nth(3), UndoKind.ALIAS, "agent:a", "key-3", NOW, {})


async def folded(uow: UnitOfWork) -> None:
    """An entity taken out of another again."""
    before = await uow.reverts.standing(nth(3), nth(4))
    await uow.graph.fold(nth(3), nth(4), ("Ana", "ana"))
    await uow.reverts.unfold(before)


WRITES: dict[str, Callable[[UnitOfWork], Awaitable[object]]] = {
    "duplicate by value": lambda uow: uow.memories.find_duplicate(memory()),
    "duplicate by name": lambda uow: uow.memories.find_duplicate(memory(external_id="memory-3")),
    "lock": lambda uow: uow.memories.lock(NAMED, nth(3)),
    "lock without a user": lambda uow: uow.memories.lock(WHOLE_TENANT, nth(3)),
    "find": lambda uow: uow.memories.find(NAMED, nth(3)),
    "nearest": lambda uow: uow.memories.nearest(NAMED, MATERIAL, 10),
    "buried": lambda uow: uow.tombstones.load("user-3", "tasks"),
    "rejected": lambda uow: uow.memories.rejected_texts("user-3", "tasks", 200),
    "linked": lambda uow: uow.graph.linked_ids(nth(3), "disputes"),
    "conflicts": lambda uow: uow.graph.conflicts(IDS),
    "conflict": lambda uow: uow.graph.conflict(nth(3)),
    "reconcile": lambda uow: uow.graph.reconcile(Edge(nth(3), nth(23), 0.7), NOW),
    "reconcile what is listed": reconciled,
    "settle a conflict": settled,
    "what a verdict ended": lambda uow: uow.graph.ended_by_verdict(nth(3)),
    "drop conflicts": lambda uow: uow.graph.drop_conflicts(nth(3), set()),
    "drop what is listed": dropped,
    "look": lambda uow: uow.look(look(memory())),
    "look by name": lambda uow: uow.look(look(memory(external_id="memory-3"))),
    "entities": lambda uow: uow.graph.entities("user-3", MENTIONED, NOW),
    "mentioned anew": lambda uow: uow.graph.mention(replace(memory(version=2), id=nth(3)), [nth(4)]),
    "name": lambda uow: uow.graph.name("user-3", nth(3), "Anna", "anna"),
    "fold": lambda uow: uow.graph.fold(nth(3), nth(23), ("Ana", "ana")),
    "past of a name": lambda uow: uow.memories.find_past(memory(external_id="memory-3")),
    "answered": lambda uow: uow.answers.find_answer("key-3", "once-3"),
    "propose": lambda uow: uow.consents.propose(PROPOSAL, "value-3"),
    "lock a proposal": lambda uow: uow.consents.lock(nth(3)),
    "an acknowledging turn": lambda uow: uow.consents.acknowledges_other(PROPOSAL, nth(3)),
    "others asked later": lambda uow: uow.consents.asked_later(PROPOSAL, NOW),
    "a verdict": lambda uow: uow.tombstones.verdict(nth(3)),
    "memories of a verdict": lambda uow: uow.tombstones.rejected_at("user-3", NOW),
    "lift a verdict": lambda uow: uow.tombstones.lift_verdict(nth(3)),
    "lift": lambda uow: uow.tombstones.lift("user-3", "tasks", ["value-3"], NOW),
    "deleted of a user": lambda uow: uow.upkeep.lock_deleted(replace(NAMED, turns=False), None, NOW, 100),
    "purge": lambda uow: uow.upkeep.purge([memory()]),
    "decide": lambda uow: uow.consents.decide(replace(PROPOSAL, id=nth(3))),
    "decided fields": lambda uow: uow.consents.fields("user-3", "city"),
    "keep a field": lambda uow: uow.consents.keep(FIELD, alone=True),
    "signals": lambda uow: uow.consents.signals("user-3", "tone", "value-3", NOW),
    "tell": lambda uow: uow.threads.publish("user-3", {"another": NOW, "one more": NOW}, TOLD),
    "replace": lambda uow: uow.memories.replace(memory(), MATERIAL),
    "release names": lambda uow: uow.threads.release_names(IDS),
    "last recorded": lambda uow: uow.memories.last_recorded("user-3"),
    "notes": lambda uow: uow.journal.notes(nth(3)),
    "share material": lambda uow: uow.memories.share_material(nth(3), nth(23)),
    "nearest of the past": lambda uow: uow.memories.nearest(
        replace(NAMED, states=(State.SUPERSEDED,), lasting_beyond=NOW), MATERIAL, 20
    ),
    "existing turns": lambda uow: uow.threads.existing_turns("user-3", "thread-7", ["turn-3", "turn-4"]),
    "advance": lambda uow: uow.threads.advance("user-3", "thread-7", NOW, revs=1, turns=1),
    "revision": lambda uow: uow.threads.revision("user-3", "thread-7"),
    "count accesses": lambda uow: uow.journal.count_accesses(dict.fromkeys(IDS, 1), NOW),
    "lock a key": lambda uow: uow.keys.lock(f"{TENANT}7"),
    "end a key": lambda uow: uow.keys.end(f"{TENANT}7", NOW),
    "keys were used": lambda uow: uow.keys.note_uses({f"{TENANT}7": NOW, f"{TENANT}8": NOW}),
    "open a thread": lambda uow: uow.checkpoints.open(PLACE.thread, NOW),
    "lock a thread": lambda uow: uow.checkpoints.lock(PLACE.thread),
    "arrive": lambda uow: uow.checkpoints.arrive(PLACE, "00009999", NOW),
    "add a checkpoint": lambda uow: uow.checkpoints.add(
        PLACE, CHECKPOINT, Placement.HEAD, SupervisorState(PLACE.thread, updated_at=NOW)
    ),
    "keep a supervisor": lambda uow: uow.checkpoints.keep(SupervisorState(PLACE.thread, updated_at=NOW)),
    "nodes": lambda uow: uow.checkpoints.nodes(PLACE.thread),
    "threads of runs": lambda uow: uow.checkpoints.threads_of(["run"], OF),
    "remove": lambda uow: uow.checkpoints.remove(
        PLACE.thread, [("", "00009143")], {("", "00001143"): None}, [("", "00001143")]
    ),
    "copy": lambda uow: uow.checkpoints.copy(PLACE.thread, Thread("user-3", "another"), NOW),
    "delete a thread": lambda uow: uow.checkpoints.delete(PLACE.thread),
    "history of keys": lambda uow: uow.keys.history([f"{TENANT}7"], IDS[0], 50),
    "history of all keys": lambda uow: uow.keys.history(None, IDS[0], 50),
    "any unfinished erasure": lambda uow: uow.erasures.next_unfinished(),
    "any unfinished erasure, later": lambda uow: uow.erasures.next_unfinished(nth(3)),
    "a page to erase": lambda uow: uow.erasures.sweep("user-3", 100),
    "the rest to erase": lambda uow: uow.erasures.finish("nobody", NOW),
    "how much there is to erase": lambda uow: uow.erasures.count("user-3"),
    "what was recalled together": lambda uow: uow.co_recalls.note({(nth(3), nth(4)): "user-3"}, NOW),
    "users with memories": lambda uow: uow.co_recalls.users("user-3", 20),
    "pairs of users": lambda uow: uow.co_recalls.of(["user-3", "user-4"]),
    "strengthen pairs": lambda uow: uow.co_recalls.strengthen(dict.fromkeys(IDS, 0.5)),
    "forget pairs": lambda uow: uow.co_recalls.forget(IDS),
    "memories to check": lambda uow: uow.repairs.derived_texts(Kind.MEMORIES, None, 250),
    "memories to check, later": lambda uow: uow.repairs.derived_texts(Kind.MEMORIES, nth(3), 250),
    "turns to check": lambda uow: uow.repairs.derived_texts(Kind.TURNS, nth(3), 250),
    "lock memories to repair": lambda uow: uow.repairs.lock(Kind.MEMORIES, IDS),
    "lock turns to repair": lambda uow: uow.repairs.lock(Kind.TURNS, IDS),
    "repair memories": lambda uow: uow.repairs.refit(Kind.MEMORIES, [(nth(3), MATERIAL)]),
    "repair turns": lambda uow: uow.repairs.refit(Kind.TURNS, [(nth(3), MATERIAL)]),
    "purged sources": lambda uow: uow.repairs.find_vanished([*IDS, UUID(int=9)]),
    "name other sources": lambda uow: uow.repairs.rest_on({nth(3): ([str(nth(7))], 1)}),
    "lead from sources": lambda uow: uow.repairs.note_sources({nth(3): [str(nth(7))]}),
    "relations to check": lambda uow: uow.repairs.relations(None, 1000),
    "relations to check, later": lambda uow: uow.repairs.relations(nth(3), 1000),
    "unlink": lambda uow: uow.repairs.unlink(HELD, HELD),
    "mentions to check": lambda uow: uow.repairs.mentions(None, 1000),
    "mentions to check, later": lambda uow: uow.repairs.mentions((nth(3), nth(4)), 1000),
    "unmention": lambda uow: uow.repairs.unmention([(nth(3), nth(4))]),
    "entities to check": lambda uow: uow.repairs.entities(None, 1000),
    "entities to check, later": lambda uow: uow.repairs.entities(nth(3), 1000),
    "needless entities": lambda uow: uow.repairs.needless(IDS),
    "memories that may be alone": lambda uow: uow.repairs.placings(None, 2000),
    "memories that may be alone, later": lambda uow: uow.repairs.placings(("user-3", nth(3)), 2000),
    "memories around": lambda uow: uow.repairs.around("user-3", None, 500),
    "memories around, older": lambda uow: uow.repairs.around("user-3", nth(3), 500),
    "memories by ids": lambda uow: uow.repairs.memories(IDS),
    "memories with relations": lambda uow: uow.repairs.with_relations(IDS),
    "memories to enrich": lambda uow: uow.enrichments.due("rules/1", None, 200),
    "memories to enrich, later": lambda uow: uow.enrichments.due("rules/1", nth(3), 200),
    "lock memories to enrich": lambda uow: uow.enrichments.lock("rules/1", IDS),
    "counted entities": lambda uow: uow.enrichments.counts(IDS),
    "keep entities": lambda uow: uow.enrichments.keep("user-3", {nth(3): ENRICHED}, NOW),
    "mark memories": lambda uow: uow.enrichments.mark(IDS, "rules/1"),
    "named entities": lambda uow: uow.graph.entity_ids("user-3", MENTIONED, NOW),
    "names that are known": lambda uow: uow.graph.known_names("user-3", MENTIONED),
    "resting conversations": lambda uow: uow.closings.resting(NOW, 20),
    "resting conversations of a user": lambda uow: uow.closings.resting(NOW, 20, "user-3"),
    "the beginning of a conversation": lambda uow: uow.closings.began_at("user-3", "thread-7"),
    "unread conversations": lambda uow: uow.closings.unread(NOW, 20, 30),
    "consolidated conversations": lambda uow: uow.closings.read_to([("user-3", "thread-7"), ("user-4", "thread-7")]),
    "a consolidated conversation": lambda uow: uow.closings.mark_consolidated(
        [Unread("user-3", "thread-7", "a", 3, 7)]
    ),
    "postponed conversations": lambda uow: uow.closings.postpone([("user-3", "thread-7")], NOW),
    "turns that are left": lambda uow: uow.closings.remaining(IDS),
    "doubted memories": lambda uow: uow.upkeep.doubt(IDS, 0.3),
    "facts of a day": lambda uow: uow.budgets.facts_extracted(["user-3", "user-4"], NOW.date()),
    "a closing": lambda uow: uow.closings.find("user-3", "thread-7"),
    "a turn to delete": lambda uow: uow.removals.lock("user-3", nth(3)),
    "other turns of facts": lambda uow: uow.removals.turns_of("user-3", IDS),
    "a deleted turn": lambda uow: uow.removals.remove(TURN),
    "a field that lapses": lambda uow: uow.removals.lapse("user-3", "tone", "value-3"),
    "what waits": lambda uow: uow.removals.proposals(["user-3", "user-4"]),
    "withdrawn proposals": lambda uow: uow.removals.withdraw(IDS),
    "decisions on a turn": lambda uow: uow.removals.unquote(["user-3"], IDS, IDS),
    "answers that tell of a turn": lambda uow: uow.removals.answers(TURN),
    "an answer that tells less": lambda uow: uow.removals.tell_less(
        [(KeptAnswer(f"{TENANT}7", "key-3", {}), {}), (KeptAnswer(f"{TENANT}7", "key-4", {}), {"status": 200})]
    ),
    "names of deleted turns": lambda uow: uow.removals.tombstoned_keys("user-3", "turn:name", ["value-3"]),
    "a job that looks again": lambda uow: uow.job_users.forget("job-7", "user-3"),
    "users with something to compare": lambda uow: uow.pairs.next_user("user-3", NOW),
    "what may be compared": lambda uow: uow.pairs.recent_facts("user-3", NOW - timedelta(days=90), NOW, 500),
    "what is compared": lambda uow: uow.pairs.candidates("user-3", IDS),
    "what took another's place": lambda uow: uow.pairs.related_pairs(IDS, "supersedes"),
    "what holds a field": lambda uow: uow.pairs.field_holders("user-3"),
    "pairs that were compared": lambda uow: uow.pairs.past_checks("user-3", NOW),
    "pairs to note": lambda uow: uow.pairs.note("user-3", [PairCheck("pair-3", "same", NOW)]),
    "old pairs": lambda uow: uow.pairs.sweep(NOW, 500),
    "users for insights": lambda uow: uow.job_users.due(NEWS, None, 200),
    "users for insights, later": lambda uow: uow.job_users.due(NEWS, nth(3), 200),
    "users for a reflection": lambda uow: uow.job_users.due(replace(NEWS, turns=False, least=3), None, 200),
    "when a job was done": lambda uow: uow.job_users.last_done("job-7", ["user-3", "user-4"]),
    "turns that are there": lambda uow: uow.job_users.there("user-3", IDS),
    "a user's time zone": lambda uow: uow.settings.set_time_zone("user-3", "Europe/Oslo", "agent:x", NOW),
    "what a user has": lambda uow: uow.usage.of_user("user-3", "2026-06-01"),
    "what a user writes": lambda uow: uow.usage.spend("user-3", "2026-06-01", 1),
    "what a tenant has": lambda uow: uow.usage.of_tenant("2026-06-01"),
    "users who are active": lambda uow: uow.activity.note(["user-3", "user-new"], NOW, NOW - timedelta(14), new=True),
    "users who come back": lambda uow: uow.activity.note(["user-3"], NOW, NOW + timedelta(1), new=False),
    "when users were there": lambda uow: uow.activity.of(["user-3", "user-4"]),
    "idle memories": lambda uow: uow.upkeep.due(
        Jobs(Due.IDLE, NOW, 2, {"event": 4}, NOW - timedelta(days=14)), nth(3), 500
    ),
    "fading memories": lambda uow: uow.upkeep.due(Jobs(Due.DECAYING, NOW, present_since=NOW), None, 500),
    "due memories": lambda uow: uow.upkeep.due(Jobs(Due.EXPIRED, NOW), None, 500),
    "due memories, later": lambda uow: uow.upkeep.due(Jobs(Due.DECAYING, NOW), nth(3), 500),
    "memories to purge": lambda uow: uow.upkeep.due(Jobs(Due.PURGE, NOW), nth(3), 500),
    "memories to settle": lambda uow: uow.upkeep.due(Jobs(Due.PROMOTED, NOW, 3), None, 500),
    "lock due memories": lambda uow: uow.upkeep.lock_due(Jobs(Due.EXPIRED, NOW), IDS),
    "lock memories": lambda uow: uow.upkeep.lock_active(IDS),
    "move memories": lambda uow: uow.upkeep.move(IDS, State.ARCHIVED, None, NOW),
    "settle memories": lambda uow: uow.upkeep.promote(IDS),
    "crowded users": lambda uow: uow.upkeep.next_crowded_user(500, Layer.MID, "user-3"),
    "weighed memories": lambda uow: uow.upkeep.weigh_memories("user-3", Layer.MID),
    "report": lambda uow: uow.upkeep.tally(NOW),
    "report of a user": lambda uow: uow.upkeep.tally(NOW, "user-3"),
    "a crowded user": lambda uow: uow.upkeep.next_crowded_user(500, Layer.MID, None, "user-3"),
    "idle memories of a user": lambda uow: uow.upkeep.due(
        Jobs(Due.IDLE, NOW, 2, {"event": 4}, NOW - timedelta(days=14), "user-3"), nth(3), 500
    ),
    "due memories of a user": lambda uow: uow.upkeep.due(Jobs(Due.EXPIRED, NOW, user="user-3"), None, 500),
    "memories to purge of a user": lambda uow: uow.upkeep.due(Jobs(Due.PURGE, NOW, user="user-3"), nth(3), 500),
    "memories to settle of a user": lambda uow: uow.upkeep.due(Jobs(Due.PROMOTED, NOW, 3, user="user-3"), None, 500),
    "reserve tokens": lambda uow: uow.budgets.reserve("user-3", NOW.date(), 7, 70),
    "settle tokens": lambda uow: uow.budgets.settle("user-3", NOW.date(), 7, TokensSpent(1, 2)),
    "old changes": lambda uow: uow.upkeep.old_changes(NOW, 500),
    "changes to prune": lambda uow: uow.upkeep.prune_changes(IDS),
    "events to prune": lambda uow: uow.upkeep.prune_events(NOW, 500),
    "old answers": lambda uow: uow.upkeep.sweep_answers(NOW - timedelta(days=1), NOW, 500),
    "old counts of tokens": lambda uow: uow.budgets.sweep(NOW.date()),
    "a run of a job": lambda uow: uow.jobs.find("ttl", "7"),
    "a run by its id": lambda uow: uow.jobs.by_id(nth(3)),
    "a run to remove": lambda uow: uow.jobs.remove(JobRun("session_close", "7", NOW, NOW, id=nth(3))),
    "the last run": lambda uow: uow.jobs.last("ttl"),
    "forgotten runs": lambda uow: uow.jobs.lock_expired(NOW, NOW),
    "end of the chain": lambda uow: uow.chain.state(),
    "the chain's head": lambda uow: uow.chain.head(),
    "a link of the chain": lambda uow: uow.chain.at(7),
    "unsealed history": lambda uow: uow.chain.next_unsealed(500),
    "chained history": lambda uow: uow.chain.entries(7, 500),
    "seals": lambda uow: uow.chain.seals(7, 500),
    "last seal": lambda uow: uow.chain.last_seal(),
    "who took words": lambda uow: uow.chain.erasers(IDS),
    "whose memories": lambda uow: uow.portable.holders(IDS),
    "whose turns": lambda uow: uow.portable.speakers(IDS),
    "rivals of restored memories": lambda uow: uow.portable.rivals([memory(external_id="memory-3")]),
    "known entities": lambda uow: uow.portable.add_entities(
        "user-3", [NamedEntity(nth(3), "person", "Name", "name-3", NOW)]
    ),
    "known entries": lambda uow: uow.portable.known_entries(IDS),
    "known proposals": lambda uow: uow.portable.known_proposals("user-3", IDS),
    "what was agreed to": lambda uow: uow.portable.consented_fields("user-3"),
    "erase checkpoints": lambda uow: uow.checkpoints.erase("user-3"),
    "forgotten words": lambda uow: uow.journal.forget([nth(3)]),
    "known erasures": lambda uow: uow.erasures.of_subjects(["subject"]),
    "erasure keys": lambda uow: uow.erasures.keys(),
    "fences of a user": lambda uow: uow.erasures.fences(["user-3"]),
    "checkpoints of a merged user": lambda uow: uow.checkpoints.merged_into("user-3"),
    "merges of users": lambda uow: uow.merges.standing(["user-3"]),
    "merged names": lambda uow: uow.merges.aliases("user-3"),
    "categories of rejected values": lambda uow: uow.merges.rejected_in("user-3"),
    "versions": lambda uow: uow.merges.versions(IDS),
    "buried of an erased user": lambda uow: uow.erasures.has_tombstone("user-3", "tasks", ["value-3"]),
    "graves": lambda uow: uow.erasures.graves("user-3", "erased", ("tasks", "value-3"), 100),
    "memories to erase": lambda uow: uow.erasures.memories("user-3", 100),
    "turns to erase": lambda uow: uow.erasures.turns("user-3", 100),
    "drawn from": lambda uow: uow.erasures.derived_from(IDS, "user-3"),
    "whose are derived from": lambda uow: uow.upkeep.users_of_derived(IDS),
    "derived from": lambda uow: uow.upkeep.lock_derived(IDS),
    "tombstones to erase": lambda uow: uow.erasures.take_tombstones("user-3", 100),
    "stated fields": lambda uow: uow.erasures.field_values("user-3", 100),
    "removed units": lambda uow: uow.erasures.remove(IDS, IDS),
    "erased checkpoints": lambda uow: uow.checkpoints.erasure_times("user-3"),
    "count of vectors": lambda uow: uow.vectors.count(),
    "texts without a vector": lambda uow: uow.vectors.without(Kind.MEMORIES, Column.SECOND, nth(3), 250),
    "turns without a vector": lambda uow: uow.vectors.without(Kind.TURNS, Column.SECOND, None, 250),
    "store vectors": lambda uow: uow.vectors.keep(Kind.MEMORIES, Column.SECOND, [(TEXT, VECTOR)]),
    "holders of a vector": lambda uow: uow.vectors.holders(Kind.MEMORIES, Column.FIRST, nth(3), 250),
    "clear vectors": lambda uow: uow.vectors.clear(Kind.TURNS, Column.SECOND, IDS),
    "revoke": lambda uow: uow.keys.revoke(f"{TENANT}7", NOW),
    "users of a key's changes": lambda uow: uow.reverts.users(BY_KEY),
    "users of an agent's changes": lambda uow: uow.reverts.users(BY_AGENT),
    "changes of a key": lambda uow: uow.reverts.deeds_of(BY_KEY, "user-3", nth(3), 2_000),
    "changes of an agent": lambda uow: uow.reverts.deeds_of(BY_AGENT, "user-3", None, 2_000),
    "changes of memories": lambda uow: uow.reverts.deeds_on(IDS, NOW),
    "what a key changed besides": lambda uow: uow.reverts.writer_records(BY_KEY, "user-3", NOW),
    "what an agent changed besides": lambda uow: uow.reverts.writer_records(BY_AGENT, "user-3", NOW),
    "fields that were decided on": lambda uow: uow.reverts.decision_records("user-3", NOW),
    "who proposed": lambda uow: uow.reverts.proposal_records(IDS),
    "turns of a key": lambda uow: uow.reverts.turns(BY_KEY, "user-3", NOW),
    "turns of an agent": lambda uow: uow.reverts.turns(BY_AGENT, "user-3", NOW),
    "memories to revert": lambda uow: uow.reverts.memories(IDS),
    "what others ended": lambda uow: uow.reverts.ended_by("user-3", IDS),
    "changed memories": lambda uow: uow.reverts.changed_since("user-3", NOW),
    "memories in the way": lambda uow: uow.reverts.holding([memory(external_id="memory-3")]),
    "what is disputed": lambda uow: uow.reverts.disputes(IDS),
    "rejected memories": lambda uow: uow.reverts.rejected_memories("user-3", IDS),
    "fields of a user": lambda uow: uow.reverts.fields("user-3"),
    "what turns spoke for": lambda uow: uow.reverts.corroborations("user-3"),
    "merged entities taken apart": folded,
    "memories as they were": lambda uow: uow.reverts.replace([(replace(memory(version=2), id=nth(3)), MATERIAL)]),
    "entities of reworded memories": lambda uow: uow.reverts.mention({nth(3): [nth(4)]}),
    "turns to take back": lambda uow: uow.reverts.remove_turns("user-3", [TURN]),
    "former fields": lambda uow: uow.reverts.put_fields([FIELD], [replace(FIELD, field_value="Bergen")]),
    "reopened proposals": lambda uow: uow.reverts.reopen(IDS),
    "what was rejected since": lambda uow: uow.reverts.tombstones_since("user-3", NOW),
    "lifted tombstones": lambda uow: uow.reverts.lift(IDS),
    "relations to remove": lambda uow: uow.reverts.unlink("supersedes", [(nth(3), nth(4))]),
    "reopened conversations": lambda uow: uow.reverts.reopen_sessions("user-3", IDS),
    "a name taken away": lambda uow: uow.reverts.unname(nth(3), "alias-3"),
    "marked changes": lambda uow: uow.reverts.mark(nth(5), [DEED], [DONE]),
    "unmarked changes": lambda uow: uow.reverts.unmark("user-3", [nth(5)]),
    "refused writes": lambda uow: uow.reverts.count_refused("user-3", NOW, ["tasks"]),
    "keys that a key made": lambda uow: uow.reverts.keys_made(BY_KEY),
    "checkpoints of a key": lambda uow: uow.reverts.checkpoints(BY_KEY, None),
    "checkpoints of an agent": lambda uow: uow.reverts.checkpoints(BY_AGENT, ["user-3"]),
    "keys that an agent made": lambda uow: uow.reverts.keys_made(BY_AGENT),
}
OF_A_NIGHT = {
    "due memories", "due memories, later", "memories to purge", "memories to settle", "crowded users",
    "the rest to erase", "report", "unsealed history", "chained history", "forgotten runs", "end of the chain",
    "the chain's head", "resting conversations", "count of vectors", "texts without a vector", "turns without a vector",
    "holders of a vector", "idle memories", "fading memories",
    "unread conversations", "old changes", "events to prune",
    "users with something to compare",
    "memories to enrich", "memories to enrich, later",
    "users with memories",
    "memories to check", "memories to check, later", "turns to check", "relations to check",
    "relations to check, later", "mentions to check", "mentions to check, later", "entities to check",
    "entities to check, later", "memories that may be alone", "memories that may be alone, later",
}  # fmt: skip
"""These are of a tenant as a whole."""
OF_NOBODY = {
    "memories to check", "memories to check, later", "mentions to check", "mentions to check, later",
    "entities to check", "entities to check, later", "users of a key's changes", "users of an agent's changes",
}  # fmt: skip
"""Jobs alone send these, or keys that are bound to no user: whose so many rows are is never looked up for them."""
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
    SqlErasures,
    SqlUpkeep,
    SqlJobRuns,
    SqlChain,
    SqlPortableStore,
    SqlClosings,
    SqlPairs,
    SqlBudgets,
    SqlVectors,
    SqlJobUsers,
    SqlEnrichments,
    SqlTextRepairs,
    SqlRepairs,
    SqlRemovals,
    SqlCoRecalls,
    SqlReverts,
)
INSERTS = {
    "add", "add_history", "add_key", "add_memories", "add_mentions", "add_proposals", "add_relations", "add_turns",
    "add_writes", "bury", "draw", "events", "keep", "keep_undo", "link", "log", "note", "post", "record",
    "restore", "seal", "send", "signal",
}  # fmt: skip
"""These look nothing up."""
LISTS = {"all", "crowded_threads", "latest", "users"}
"""All keys or runs for an administrator, all threads for pruning, all users for a replay."""
OTHERWISE = {"alone", "fade", "forget_history", "next_due", "sweep_proposals"}
"""A lock; as `promote`; a function of the database; SQLite's queue; once a night, of which half may have lapsed."""

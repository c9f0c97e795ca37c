"""Take back what one key or agent wrote, changed and decided since a moment."""

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from uuid import UUID

from memplane.application.limits.idempotency import Once, raise_if_done
from memplane.application.memories.authorization import require_full
from memplane.application.memories.gateway import Gateway, Write, clean_id
from memplane.application.memories.placement import SUPERSEDES
from memplane.application.memories.recovery import reachable
from memplane.application.ports import Clock, Policies, Storage
from memplane.application.recall.search_material import SearchMaterial, Vector
from memplane.application.records import ChangeEntry, StoredAnswer
from memplane.application.reverts.revert_lookup import MOST, Within, WriterChanges, look
from memplane.application.reverts.revert_placement import places_of
from memplane.application.reverts.revert_plan import (
    MOST_ITEMS,
    RevertItem,
    RevertPlan,
    RevertRules,
    plan_revert,
    texts_of,
)
from memplane.application.reverts.revert_ports import RevertedWriter
from memplane.application.transaction import UnitOfWork
from memplane.domain.errors import InvalidRequest, RecordNotFound, StateConflict
from memplane.domain.identity.principal import SUBJECT, KeyScope, Principal
from memplane.domain.language.entities import Mention, mentions
from memplane.domain.language.terms import terms
from memplane.domain.memory.conflict_verdicts import COMPATIBLE
from memplane.domain.memory.delta import ChangeEvent
from memplane.domain.memory.derivation import concluded_by
from memplane.domain.memory.history import HistoryEntry, HistoryEvent
from memplane.domain.memory.memory import RETRIEVABLE_TRUST, Memory, MemoryText, State, Turn, new_id
from memplane.domain.memory.revert_rules import StayReason
from memplane.domain.memory.undo_records import UndoKind
from memplane.domain.policy.policy import Policy
from memplane.domain.ranking.embedding_models import EmbeddingModel

MOST_BATCHES = 20
"""Transactions of one request."""
MOST_SHOWN = 20_000
"""Entries of a user's history that a dry run looks at."""
_TRIES = 4
Materials = dict[MemoryText, SearchMaterial]


@dataclass(frozen=True, slots=True)
class RevertSelection:
    """Whose changes are taken back, and since when; one of key and agent."""

    since: datetime
    key_id: str | None = None
    agent: str | None = None


@dataclass(slots=True)
class Receipt:
    """What was taken back, or would be.

    Attributes:
        id: of this receipt; ``None`` for a dry run.
        finished: whether nothing is left to take back.
        counts: how many, by what was done to what.
        kept: how many stay, and are listed with the reason.
        items: the first of both.
        lost: how many cannot be taken back, or only in part, by what they are.
        keys: that the writer made.
        checkpoints: how many are as the writer saved them: each holds a graph's whole state, and stays.
    """

    id: UUID | None
    wanted: RevertSelection
    policy_hash: str
    started_at: datetime
    finished: bool = False
    counts: Counter[str] = field(default_factory=Counter)
    kept: int = 0
    items: list[RevertItem] = field(default_factory=list)
    lost: Counter[str] = field(default_factory=Counter)
    keys: Sequence[str] = ()
    checkpoints: int = 0

    def add(self, plan: RevertPlan) -> None:
        """Add what was done to one user."""
        self.counts.update(plan.counts)
        self.lost.update(plan.lost)
        self.kept += sum(each.reason is not None for each in plan.items)
        first = sorted(plan.items, key=lambda each: each.reason is None)
        self.items += first[: MOST_ITEMS - len(self.items)]


class _Changed(Exception):
    """What is taken back is not as it was when its search material was made."""


class RevertWrites:
    """Takes back what a writer did, for fully trusted keys with the scope ``admin``, as far as their agents reach.

    One transaction for each user, under the user's lock, of so many entries at most, the newest first: what a writer
    did to one user belongs together, and what was done to different users does not. What was taken back is noted in the
    same transaction, so that one that was interrupted goes on when it is asked for again.
    """

    def __init__(self, storage: Storage, policies: Policies, gateway: Gateway, clock: Clock) -> None:
        self._storage = storage
        self._policies = policies
        self._gateway = gateway
        self._clock = clock

    async def __call__(
        self, principal: Principal, wanted: RevertSelection, agent: str | None = None, *, dry_run: bool = False,
        once: Once[Receipt] | None = None,
    ) -> Receipt:  # fmt: skip
        """Take back what a key or an agent wrote, changed and decided, or so much of it as a request may take.

        What others did since is kept; where the two cannot be told apart, it stays and is listed with the reason.

        Args:
            principal: the caller.
            wanted: whose changes, and since when.
            agent: the agent to act for; ``None`` for the key's own, or for all where it has none and may act for each.
            dry_run: whether to say only what would be done.
            once: what to keep of the receipt.

        Raises:
            ScopeForbidden: the caller's key lacks ``admin``.
            TrustTooLow: it is not fully trusted.
            AgentForbidden: it does not reach the agent to act for.
            NotFound: there is no such key, or no such agent, neither in the policy nor among what is stored.
            Invalid: not exactly one of key and agent is named.
        """
        policy, now = self._gateway.begin(principal, KeyScope.ADMIN)
        require_full(principal, "revert what another wrote")
        within = _within(principal, policy, agent)
        if (wanted.key_id is None) == (wanted.agent is None):
            raise InvalidRequest("key, agent: name one of the two", field="key")
        await raise_if_done(self._storage, principal, once)
        receipt = Receipt(None if dry_run else new_id(), wanted, policy.digest, now)
        begun = partial(_begun, users=principal.users, turns=within.turns, wanted=wanted, receipt=receipt)
        writer, users = await self._storage.write(principal.reach, begun)
        if writer.agent is not None and not users and writer.agent not in policy.allowlists:
            raise RecordNotFound("no such agent: the policy has none of this name, and nothing is stored by one")
        receipt.finished = await self._each(principal.as_operator(), policy, writer, within, receipt, users)
        if receipt.id is not None and receipt.finished and once is not None:
            await self._storage.write(principal.reach, partial(self._ended, principal, receipt=receipt, once=once))
        return receipt

    async def _each(
        self, principal: Principal, policy: Policy, writer: RevertedWriter, within: Within, receipt: Receipt,
        users: Sequence[str],
    ) -> bool:  # fmt: skip
        """User by user; whether all of it was done."""
        batches = 0
        for user in users:
            more = True
            while more:
                if batches == MOST_BATCHES:
                    return False
                plan = await self._user(principal, policy, (writer, within, user), receipt.id)
                if plan is None:
                    break
                batches += 1
                receipt.add(plan)
                more = plan.found.more
                if receipt.id is None:
                    if more:
                        return False
                    break
        return True

    async def _user(
        self, principal: Principal, policy: Policy, of: tuple[RevertedWriter, Within, str], receipt: UUID | None
    ) -> RevertPlan | None:
        """Take back one transaction's worth of what was done to a user; ``None`` when there is nothing."""
        writer, within, user = of
        now = self._clock()
        most = MOST if receipt is not None else MOST_SHOWN
        materials: Materials = {}

        async def seen(uow: UnitOfWork) -> tuple[WriterChanges, EmbeddingModel | None]:
            return await look(uow, writer, user, within, most), uow.in_force.model

        async def work(write: Write, name: UUID) -> RevertPlan | None:
            here = await look(write.uow, writer, user, within, MOST)
            if here.empty:
                return None
            if not {each.text for each in texts_of(here)} <= materials.keys():
                raise _Changed
            plan = await _planned(policy, writer, here, materials, write.uow.in_force.model, write.now)
            await _carried_out(write, plan, materials, name)
            if plan.counts:
                await write.uow.journal.record([_entry(write, writer, name, plan)])
            return plan

        for _ in range(_TRIES):
            found, model = await self._storage.write(principal.reach, seen)
            if found.empty:
                return None
            missing = list({each.text for each in texts_of(found)} - materials.keys())
            materials.update(zip(missing, await self._gateway.material(*missing), strict=True))
            if receipt is None:
                return await _planned(policy, writer, found, materials, model, now)
            try:
                return await self._gateway.run(principal, policy, now, partial(work, name=receipt), users=[user])
            except _Changed:
                continue
        raise StateConflict("other writers keep changing the memories to revert; try again")

    async def _ended(self, principal: Principal, uow: UnitOfWork, *, receipt: Receipt, once: Once[Receipt]) -> None:
        """Keep the answer."""
        answered = StoredAnswer(once.request, once.answer(receipt))
        await uow.answers.keep(principal.namespace, once.key, answered, self._clock(), None)


def _entry(write: Write, writer: RevertedWriter, receipt: UUID, plan: RevertPlan) -> HistoryEntry:
    """What one transaction took back, under the receipt's id: all of them add up, whatever became of the request."""
    meta: dict[str, object] = {
        "receipt": str(receipt), "counts": dict(plan.counts), "since": writer.since.isoformat(),
        "key": write.principal.key_id,
    }  # fmt: skip
    meta |= {name: of for name, of in (("of_key", writer.key_id), ("of_agent", writer.agent)) if of}
    by = (write.principal.actor, write.policy.digest, write.now)
    return HistoryEntry(new_id(), receipt, HistoryEvent.REVERT, *by, meta=meta)


def _within(principal: Principal, policy: Policy, agent: str | None) -> Within:
    categories = frozenset(reachable(principal, policy, agent))
    whole = agent is None and principal.is_operator and principal.users is None
    whole = whole and categories == frozenset(policy.categories)
    return Within(categories, policy.turns_category in categories, whole, principal.users)


async def _begun(
    uow: UnitOfWork, *, users: Collection[str] | None, turns: bool, wanted: RevertSelection, receipt: Receipt
) -> tuple[RevertedWriter, list[str]]:
    """Whose changes are taken back, and of which users there may be any: of those to whom the caller is bound, if any.

    Raises:
        NotFound: there is no such key.
    """
    keys = await uow.keys.all()
    key_id, agent = clean_id(wanted.key_id, "key"), clean_id(wanted.agent, "agent")
    if key_id is not None and not key_id.startswith(SUBJECT) and all(each.key_id != key_id for each in keys):
        raise RecordNotFound("no such key")
    of_agent = frozenset(each.key_id for each in keys if agent is not None and each.agent == agent)
    writer = RevertedWriter(key_id, agent, wanted.since, of_agent)
    receipt.keys = await uow.reverts.keys_made(writer)
    if turns:  # a checkpoint holds a conversation
        receipt.checkpoints = await uow.reverts.checkpoints(writer, users)
    return writer, await uow.reverts.users(writer) if users is None else sorted(users)


async def _planned(
    policy: Policy,
    writer: RevertedWriter,
    found: WriterChanges,
    materials: Materials,
    model: EmbeddingModel | None,
    now: datetime,
) -> RevertPlan:
    def vector(memory: Memory) -> Vector | None:
        material = materials.get(memory.text)
        return None if material is None or model is None else material.vector(model)

    name = "" if model is None else model.name
    rules = RevertRules(
        writer, vector, policy.merging.bands_for(name), policy.consent, now, policy.lifecycle.purge_after
    )  # fmt: skip
    return await asyncio.to_thread(plan_revert, found, rules)


async def _carried_out(write: Write, plan: RevertPlan, materials: Materials, receipt: UUID) -> None:
    """Write the plan, its history entries and the changes for threads."""
    found, store = plan.found, write.uow.reverts
    meta: dict[str, object] = {"receipt": str(receipt)}
    write.about([found.user])
    await _stored(write, plan, materials, meta)
    if plan.withdrawn:
        await write.uow.removals.withdraw([each.id for each in plan.withdrawn])
    await store.reopen([each.id for each in plan.reopened])
    # what the writer's own turns or memories said is not approved with the value
    quoting = [each.id for each in plan.reopened if each.memory_id in found.repeated]
    await write.uow.removals.unquote([found.user], quoting, found.lost_ids)
    await store.put_fields(plan.fields_gone, plan.fields_back)
    await store.lift([each.id for each in plan.lifted])
    await write.uow.tombstones.restore(plan.buried_again)
    await store.unlink(COMPATIBLE, plan.reconciled)
    back = [(name, by) for name, by in _former(plan)]
    await store.unlink(SUPERSEDES, back)
    await write.uow.graph.link(plan.linked, write.now)
    await _entities(write, plan)
    await store.reopen_sessions(found.user, found.going)
    await _turns_removed(write, found.turns, meta)
    for user, job in sorted({(each.user_id, job) for each in _gone(plan) if (job := concluded_by(each))}):
        await write.uow.job_users.forget(job, user)
    deeds = {deed.id: deed for deeds in found.deeds.values() for deed in deeds} | {deed.id: deed for deed in found.own}
    await store.mark(receipt, [deed for name, deed in deeds.items() if name in found.gone], found.noted)
    await store.unmark(found.user, found.undone)
    await write.settle(found.user, None)


def _gone(plan: RevertPlan) -> list[Memory]:
    return [plan.found.memories[name] for name in plan.found.going]


def _former(plan: RevertPlan) -> list[tuple[UUID, UUID]]:
    """Memories that are active again, with what was in their place."""
    return [
        (name, before.superseded_by)
        for name, (before, after) in plan.stored.items()
        if after.state is State.ACTIVE and before.superseded_by is not None
    ]


async def _stored(write: Write, plan: RevertPlan, materials: Materials, meta: Mapping[str, object]) -> None:
    await _made_way(write, plan)
    rows: list[tuple[Memory, SearchMaterial | None]] = []
    reworded: dict[UUID, Memory] = {}
    for name, (before, after) in plan.stored.items():
        now = replace(after, updated_at=write.now, version=before.version + 1)
        material = None
        if after.text != before.text:
            material, reworded[name] = await _material(materials, after), now
        rows.append((now, material))
        cause = {"cause": "source_reverted"} if name in plan.found.derived else {}
        write.record_change(HistoryEvent.REVERT, _told(before, now), now, before, {**meta, **cause})
    await write.uow.reverts.replace(rows)
    await _mentioned(write, reworded)


async def _made_way(write: Write, plan: RevertPlan) -> None:
    """Supersede a restored memory where an unrelated one already holds its value or external id."""
    active = [after for _, after in plan.stored.values() if after.state is State.ACTIVE]
    others = await write.uow.reverts.holding(active) if active else []
    places = {place: other for other in others if other.id not in plan.stored for place in places_of(other)}
    for memory in active:
        other = next((places[place] for place in places_of(memory) if place in places), None)
        if other is not None:
            before, after = plan.stored[memory.id]
            gone = replace(after, state=State.SUPERSEDED, superseded_by=other.id, superseded_at=write.now)
            plan.stored[memory.id] = (before, gone)
            plan.note_memory(memory, "kept", StayReason.VALUE_STANDS)


async def _material(materials: Materials, memory: Memory) -> SearchMaterial:
    """Of words that were joined here the vector is that of the nearest ones that are known."""
    known = materials.get(memory.text)
    if known is not None:
        return known
    same = next((each for text, each in materials.items() if text.content == memory.text.content), None)
    if same is None:
        raise _Changed
    words = await asyncio.to_thread(terms, memory.text.searchable(), memory.text.lang)
    return SearchMaterial(words, same.embedding)


async def _mentioned(write: Write, reworded: Mapping[UUID, Memory]) -> None:
    """Link memories whose words changed with the entities that they mention: one look-up for each user."""
    found = await asyncio.to_thread(
        lambda: {name: mentions(memory.text.searchable()) for name, memory in reworded.items()}
    )
    linked: dict[UUID, Sequence[UUID]] = {}
    for user in sorted({memory.user_id for memory in reworded.values()}):
        mine = [name for name, memory in reworded.items() if memory.user_id == user]
        named: Mapping[tuple[str, str], UUID] = {}
        wanted: list[Mention] = [each for name in mine for each in found[name]]
        if wanted:
            named = await write.uow.graph.entity_ids(user, wanted, write.now)
        linked |= {name: sorted({named[each.kind, each.key] for each in found[name]}) for name in mine}
    if linked:
        await write.uow.reverts.mention(linked)


async def _entities(write: Write, plan: RevertPlan) -> None:
    for each in plan.entities:
        if each.kind is UndoKind.ALIAS:
            done = await write.uow.reverts.unname(each.about, str(each.changes["key"]))
        else:
            done = await write.uow.reverts.unfold(each.changes)
        if not done:
            item = next(n for n, item in enumerate(plan.items) if (item.kind, item.id) == ("entity", each.about))
            plan.items[item] = replace(plan.items[item], what="kept", reason=StayReason.MERGED_SINCE)
            plan.counts["entities_changed"] -= 1
    plan.counts = +plan.counts


async def _turns_removed(write: Write, turns: Sequence[Turn], meta: Mapping[str, object]) -> None:
    """Remove turns; each thread is told of its own, and the history has an entry without words for each."""
    if not turns:
        return
    threads, category = write.uow.threads, write.policy.turns_category
    user = turns[0].user_id
    await write.uow.reverts.remove_turns(user, turns)
    changes: list[ChangeEntry] = []
    for thread in sorted({turn.thread_id for turn in turns}):
        mine = [turn for turn in turns if turn.thread_id == thread]
        last = await threads.advance(user, thread, write.now, revs=len(mine))
        first = last.rev - len(mine)
        changes += [
            ChangeEntry(user, thread, first + nth, turn.id, ChangeEvent.DELETED, category, write.now)
            for nth, turn in enumerate(mine, 1)
        ]
    await threads.log(changes)
    for turn in turns:
        write.reverted_turn(turn, meta)


def _told(before: Memory, after: Memory) -> ChangeEvent | None:
    """What threads are told of a memory that is as it would be without the writer."""
    was = before.state is State.ACTIVE and before.trust_state in RETRIEVABLE_TRUST
    will = after.state is State.ACTIVE and after.trust_state in RETRIEVABLE_TRUST
    if was and will:
        return ChangeEvent.UPDATED
    if will:
        return ChangeEvent.RESTORED
    if not was:
        return None
    return _GONE.get(after.state, ChangeEvent.SUPERSEDED)


_GONE = {State.SOFT_DELETED: ChangeEvent.SOFT_DELETED, State.ARCHIVED: ChangeEvent.ARCHIVED}

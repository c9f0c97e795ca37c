"""Merging an anonymous user into a known one, and undoing it while the policy allows."""

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from uuid import UUID

from memplane.application.jobs.consolidation import PairVerdicts, apply_verdicts, states_sensitive_field
from memplane.application.jobs.inference.pair_judgement import PairJudgement
from memplane.application.jobs.job_records import TokensSpent
from memplane.application.limits.idempotency import Once
from memplane.application.memories.authorization import require_every_category, require_full
from memplane.application.memories.dry_run import DryRun
from memplane.application.memories.gateway import Gateway, Write, clean_id
from memplane.application.memories.placement import SUPERSEDES
from memplane.application.memories.supersession import is_erased
from memplane.application.ports import Clock, Policies, Storage
from memplane.application.records import Edge
from memplane.application.transaction import UnitOfWork
from memplane.application.users.user_merge_ports import MergedMemoryRecord, UnmergeCounts
from memplane.domain.consent.consent_rules import MULTIPLE
from memplane.domain.errors import InvalidRequest, LimitExceeded, RecordNotFound, StateConflict, StorageError
from memplane.domain.identity.principal import KeyScope, Principal
from memplane.domain.identity.user_merges import UserMerge
from memplane.domain.jobs.pair_selection import GLANCED, POOL, Pair, PairRelation, absorb, choose_pairs, resolve_pair
from memplane.domain.memory.delta import ChangeEvent
from memplane.domain.memory.history import HistoryEntry, HistoryEvent
from memplane.domain.memory.memory import RETRIEVABLE_TRUST, Memory, State, TrustState, new_id
from memplane.domain.memory.tombstones import said_keys
from memplane.domain.memory.undo_records import difference
from memplane.domain.memory.write_decisions import COMPARED
from memplane.domain.policy.policy import Policy
from memplane.domain.privacy.erasure import checkpoint_lock

MAX_PAGE = 200
MOST_UNITS = 20_000
"""Memories and turns of a user that can be merged: all of it moves in one transaction."""
MOST_PAIRS = 200
"""Pairs of the two users' memories that are decided on at once; the job ``consolidation`` compares the rest."""
MOST_TOLD = 200
"""New memories that threads are told of, the most important."""
MOST_REVIEWED = 5_000
"""Memories of the known user that are compared with what the other one rejected, the newest."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STAYING = frozenset({"history", "user_merges"})
"""Tables whose rows keep the name of the merged user."""
_NOT_COUNTED = frozenset({"relations", "token_budgets", "job_users", "user_activity", "user_settings", "user_usage"})
"""Tables that both users' rows are not simply added up in."""


@dataclass(slots=True)
class UserMergePlan:
    """What becomes of memories beside their user.

    Attributes:
        before: memories of both users, by id, as they were.
        after: those that the merge changes.
        folded: memories of the merged user with the one of the other user that says the same.
        outcomes: how many, by what became of them.
    """

    before: dict[UUID, Memory] = field(default_factory=dict)
    after: dict[UUID, Memory] = field(default_factory=dict)
    folded: dict[UUID, UUID] = field(default_factory=dict)
    outcomes: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class UnmergeResult:
    """A merge that was undone, how many rows went back, and how many stay because they were changed since."""

    merge: UserMerge
    returned: Mapping[str, int]
    kept: Mapping[str, int]


class MergeUsers:
    """Merges users, for fully trusted keys with the scope ``admin`` that reach both users and every category.

    All of it is one transaction: after a crash either both users are as they were, or all belongs to the known one.
    """

    def __init__(self, storage: Storage, policies: Policies, gateway: Gateway, clock: Clock) -> None:
        self._storage = storage
        self._policies = policies
        self._gateway = gateway
        self._clock = clock

    async def __call__(
        self, principal: Principal, user_id: str, into: str, *, dry_run: bool = False,
        once: Once[UserMerge] | None = None,
    ) -> UserMerge:  # fmt: skip
        """Move everything of a user to another one, whose name stands for both from then on.

        Raises:
            ScopeForbidden, TrustTooLow, UserForbidden, CategoryForbidden: as for an erasure.
            Invalid: both are the same user.
            NotFound: there is nothing of the user.
            UserMerged: one of them was merged before.
            UserErased: one of them is being erased.
            LimitExceeded: the user has too much for one transaction.
        """
        policy, now = self._policies.current, self._clock()
        user = _authorised(principal, policy, user_id)
        target = _authorised(principal, policy, into, "into")
        if user == target:
            raise InvalidRequest("into: is the same user", field="into")
        until = now + policy.lifecycle.merge_revertible
        merge = UserMerge(new_id(), user, target, principal.actor, policy.digest, now, until)
        gateway = DryRun(self._gateway) if dry_run else self._gateway

        async def work(write: Write) -> UserMerge:
            return await _merged(write, merge)

        operator = principal.as_operator()
        return await gateway.run(operator, policy, now, work, users=[user, target], once=None if dry_run else once)

    async def list(
        self, principal: Principal, user_id: str | None = None, *, before: UUID | None = None, limit: int = 50
    ) -> tuple[Sequence[UserMerge], bool]:
        """A page of merges, standing and undone ones, newest first, and whether there are more.

        Raises:
            ScopeForbidden: the key lacks ``admin``.
            UserForbidden: it may not touch the user.
            LimitExceeded: the page is too long.
        """
        principal.require(KeyScope.ADMIN)
        if not 1 <= limit <= MAX_PAGE:
            raise LimitExceeded(f"limit: {limit}, it must be 1 to {MAX_PAGE}", field="limit")
        user = clean_id(user_id, "user_id")
        if user is not None:
            principal.touch(user)

        async def look(uow: UnitOfWork) -> list[UserMerge]:
            return await uow.merges.page(user, principal.users, before, limit + 1)

        found = await self._storage.write(principal.reach, look)
        return found[:limit], len(found) > limit

    async def undo(
        self, principal: Principal, user_id: str, *, dry_run: bool = False, once: Once[UnmergeResult] | None = None
    ) -> UnmergeResult:
        """Give a merged user back what moved and was not changed since; the rest stays with the other user.

        Raises:
            ScopeForbidden, TrustTooLow, UserForbidden, CategoryForbidden: as for an erasure.
            NotFound: the user was not merged.
            Conflict: it is too late, or a later merge has to be undone first.
        """
        policy, now = self._policies.current, self._clock()
        user = _authorised(principal, policy, user_id)
        if once is not None and not dry_run:
            await self._gateway.raise_if_done(principal, once)
        async with self._storage.reading(principal.reach) as reader:
            into = await reader.merged_into(user)
        if into is None:
            raise RecordNotFound(_NOT_MERGED)
        target = principal.touch(into)
        gateway = DryRun(self._gateway) if dry_run else self._gateway

        async def work(write: Write) -> UnmergeResult:
            return await _unmerged(write, user, target)

        operator = principal.as_operator()
        return await gateway.run(operator, policy, now, work, users=[target], once=None if dry_run else once)


_NOT_MERGED = "this user is not merged into another one"


def _authorised(principal: Principal, policy: Policy, user_id: str, name: str = "user_id") -> str:
    principal.require(KeyScope.ADMIN)
    require_full(principal, "merge users")
    user = principal.touch(clean_id(user_id, name) or "")
    require_every_category(principal, policy, "a merge of users")
    return user


async def _merged(write: Write, merge: UserMerge) -> UserMerge:
    uow, mine, into = write.uow, merge.from_user, merge.into_user
    await uow.reach_every_user()
    await uow.lock_users([checkpoint_lock(mine), checkpoint_lock(into)])
    before, there = await uow.erasures.count(mine), await uow.erasures.count(into)
    if not before:
        raise RecordNotFound("nothing is stored of this user")
    if (units := before.get("memories", 0) + before.get("turns", 0)) > MOST_UNITS:
        raise LimitExceeded(f"user_id: {units} memories and turns, at most {MOST_UNITS} can be merged", field="user_id")
    plan = UserMergePlan({each.id: each for each in await uow.erasures.memories(mine, MOST_UNITS)})
    moved = frozenset(plan.before)
    await _planned(write, merge, plan)
    await uow.reverts.replace([(each, None) for each in plan.after.values()])
    await uow.merges.keep(merge)
    folded = await uow.merges.move(merge, MULTIPLE, write.policy.lifecycle.away)
    after, left = await uow.erasures.count(into), await uow.erasures.count(mine)
    counts = _verified((before, there), (after, left), folded)
    await _noted(write, merge, plan, moved)
    await _compared(write, merge, plan, moved)
    done = replace(merge, counts=counts | {"outcomes": dict(plan.outcomes)})
    await _recorded(write, done, plan, moved)
    return done


def _verified(
    before: tuple[Mapping[str, int], Mapping[str, int]],
    after: tuple[Mapping[str, int], Mapping[str, int]],
    folded: Mapping[str, int],
) -> dict[str, Mapping[str, int]]:
    """The rows of each table, before and after; a merge that loses one is taken back.

    Raises:
        StorageError: the sums differ, or something is left of the merged user.
    """
    counts: dict[str, Mapping[str, int]] = {}
    (mine, there), (now, left) = before, after
    for name in sorted({*mine, *there, *now} - _STAYING):
        counts[name] = {
            "moved": mine.get(name, 0) - folded.get(name, 0), "folded": folded.get(name, 0),
            "before": there.get(name, 0), "after": now.get(name, 0),
        }  # fmt: skip
        if name not in _NOT_COUNTED and counts[name]["moved"] + there.get(name, 0) != now.get(name, 0):
            raise StorageError(f"the merge would not keep every row of '{name}'; nothing was changed")
    if rest := sorted(left.keys() - _STAYING):
        raise StorageError(f"the merge would leave rows behind in {', '.join(rest)}; nothing was changed")
    return counts


async def _planned(write: Write, merge: UserMerge, plan: UserMergePlan) -> None:
    """What becomes of memories of the same value or name, and of those that one of the two users rejected."""
    active = [each for each in plan.before.values() if each.state is State.ACTIVE]
    others = await write.uow.reverts.holding([replace(each, user_id=merge.into_user) for each in active])
    values = {_value(each): each for each in others}
    names = {each.external_id for each in others if each.external_id is not None}
    buried = await _held(write, merge.into_user, {each.category for each in active})
    for each in active:
        said = said_keys(each.text, each.attributes)
        since = min(filter(None, (each.event_time, each.valid_from, each.recorded_at)))
        if not buried[each.category].isdisjoint(said) or await is_erased(
            write, merge.into_user, each.category, said, since
        ):
            _reject(write, plan, each)
        elif (same := values.get(_value(each))) is not None:
            _fold(write, plan, each, same)
        elif each.external_id in names:
            plan.after[each.id] = replace(each, external_id=None, version=each.version + 1)
            plan.outcomes["external_ids_dropped"] += 1
    own = await _held(write, merge.from_user, await write.uow.merges.rejected_in(merge.from_user))
    for each in await write.uow.merges.active(merge.into_user, sorted(own), MOST_REVIEWED):
        if not own[each.category].isdisjoint(said_keys(each.text, each.attributes)):
            plan.before[each.id] = each
            _reject(write, plan, plan.after.get(each.id, each))


async def _held(write: Write, user: str, categories: Collection[str]) -> Mapping[str, frozenset[str]]:
    return {name: await write.uow.tombstones.load(user, name) for name in sorted(categories)}


def _value(memory: Memory) -> tuple[object, ...]:
    return memory.category, memory.type, memory.visibility, memory.min_trust, memory.value_hash


def _reject(write: Write, plan: UserMergePlan, memory: Memory) -> None:
    plan.after[memory.id] = replace(
        memory, state=State.SOFT_DELETED, trust_state=TrustState.REJECTED, updated_at=write.now,
        purge_at=write.now + write.policy.lifecycle.purge_after, version=memory.version + 1,
    )  # fmt: skip
    plan.outcomes["rejected"] += 1


def _fold(write: Write, plan: UserMergePlan, memory: Memory, same: Memory) -> None:
    plan.before[same.id] = same
    plan.after[same.id] = absorb(same, memory, write.now)
    plan.after[memory.id] = replace(
        memory, state=State.SUPERSEDED, superseded_by=same.id, superseded_at=write.now, updated_at=write.now,
        version=memory.version + 1,
    )  # fmt: skip
    plan.folded[memory.id] = same.id
    plan.outcomes["same_value"] += 1


async def _noted(write: Write, merge: UserMerge, plan: UserMergePlan, moved: Collection[UUID]) -> None:
    """History of every memory that moved or was changed; threads are told of the most important new ones."""
    # without the former name: an erasure of that user must not leave it in the other one's history
    receipt: dict[str, object] = {"receipt": str(merge.id)}
    now = {name: replace(plan.after.get(name, plan.before[name]), user_id=merge.into_user) for name in plan.before}
    new = [now[name] for name in moved if now[name].state is State.ACTIVE]
    new.sort(key=lambda each: (each.importance, each.recorded_at), reverse=True)
    told = {each.id for each in new[:MOST_TOLD]}
    for name, memory in now.items():
        before = plan.before[name]
        if name in moved:
            why = {"superseded_by": str(plan.folded[name])} if name in plan.folded else {}
            change = ChangeEvent.CREATED if name in told else None
            write.record_change(HistoryEvent.USER_MERGE, change, memory, before, receipt | why)
        elif memory.state is State.SOFT_DELETED:
            write.record_change(HistoryEvent.REJECT, ChangeEvent.SOFT_DELETED, memory, before, receipt)
        else:
            write.record_change(HistoryEvent.MERGE, ChangeEvent.MERGED, memory, before, receipt)
    edges = [Edge(same, name, 1.0, SUPERSEDES) for name, same in plan.folded.items()]
    await write.uow.graph.link(edges, write.now)
    await write.settle(merge.into_user, None)


async def _compared(write: Write, merge: UserMerge, plan: UserMergePlan, moved: Collection[UUID]) -> None:
    """Compare what moved with what was there by the rules of consolidation: what is proven ends, doubts are listed."""
    uow, user = write.uow, merge.into_user
    new = [name for name in moved if _is_compared(plan.after.get(name, plan.before[name]), write.now)][:POOL]
    glances = await uow.pairs.recent_facts(user, _EPOCH, write.now, GLANCED)
    there = [each.id for each in glances if each.id not in moved][:POOL]
    if not new or not there:
        return
    pool = await uow.pairs.candidates(user, [*new, *there])
    known = await uow.pairs.related_pairs([*new, *there], SUPERSEDES)
    model = "" if uow.in_force.model is None else uow.in_force.model.name
    bands = write.policy.merging.bands_for(model)
    pairs = [
        each for each in await asyncio.to_thread(choose_pairs, pool, bands, known) if len(each.ids & set(new)) == 1
    ]
    held = await uow.pairs.field_holders(user) | _fixed(write.policy, pairs)
    ruled = [PairJudgement(each, each.ruled) for each in pairs if each.ruled is not None][:MOST_PAIRS]
    kept = [each.pair for each in ruled if _stays(each, held)]
    suspected = [*kept, *(each for each in pairs if each.suspected)][:MOST_PAIRS]
    for each in pairs:
        plan.before |= {memory.id: memory for memory in (each.earlier, each.later) if memory.id not in moved} | {
            name: plan.before[name] for name in each.ids if name in plan.before
        }
    batch = await apply_verdicts(write, PairVerdicts(user, ruled, suspected, held, TokensSpent(), None), write.now)
    plan.outcomes.update({name: int(batch.counts[name]) for name in ("merged", "superseded", "conflicts")})


def _is_compared(memory: Memory, now: datetime) -> bool:
    """Whether a memory holds at a moment, and is of a kind that is compared."""
    ends = [each for each in (memory.expires_at, memory.valid_until) if each is not None]
    return (
        memory.state is State.ACTIVE and memory.type in COMPARED and memory.trust_state in RETRIEVABLE_TRUST
        and all(each > now for each in ends) and (memory.valid_from is None or memory.valid_from <= now)
    )  # fmt: skip


def _fixed(policy: Policy, pairs: Sequence[Pair]) -> frozenset[UUID]:
    either = {each.id: each for pair in pairs for each in (pair.earlier, pair.later)}
    return frozenset(each.id for each in either.values() if each.pinned or states_sensitive_field(policy, each))


def _stays(judged: PairJudgement, held: Collection[UUID]) -> bool:
    """Whether two memories contradict each other and both stay."""
    contradicts = judged.judgement in {PairRelation.UPDATE, PairRelation.CONTRADICTION}
    return contradicts and resolve_pair(judged.pair, judged.judgement, held) is None


async def _recorded(write: Write, merge: UserMerge, plan: UserMergePlan, moved: Collection[UUID]) -> None:
    """Store the receipt, and what it takes to undo the merge."""
    uow = write.uow
    entries = []
    for each in await uow.reverts.memories(sorted(plan.before)):
        changes = difference(plan.before[each.id], each)
        if changes or each.id in moved:
            entries.append(MergedMemoryRecord(each.id, each.version, each.id in moved, changes))
    await uow.merges.record(merge, entries)
    await uow.merges.keep(merge)
    meta = {
        "receipt": str(merge.id), "key": write.principal.key_id,
        "counts": {name: dict(each) for name, each in merge.counts.items()},
    }  # fmt: skip
    await uow.journal.record([_entry(write, merge, HistoryEvent.USER_MERGE, meta)])


def _entry(write: Write, merge: UserMerge, event: HistoryEvent, meta: Mapping[str, object]) -> HistoryEntry:
    return HistoryEntry(
        new_id(), merge.id, event, write.principal.actor, write.policy.digest, write.now, meta=meta,
        of_user=merge.into_user,
    )  # fmt: skip


async def _unmerged(write: Write, user: str, into: str) -> UnmergeResult:
    uow = write.uow
    await uow.reach_every_user()
    await uow.lock_users([user, checkpoint_lock(user), checkpoint_lock(into)])
    merge = (await uow.merges.standing([user])).get(user)
    if merge is None or merge.into_user != into:
        raise RecordNotFound(_NOT_MERGED)
    if write.now > merge.revertible_until:
        raise StateConflict(f"this merge could be undone until {merge.revertible_until.isoformat()}")
    if (later := await uow.merges.following(merge)) is not None:
        raise StateConflict(f"undo the merge of '{later.from_user}' first: it moved this user's records on")
    done: UnmergeCounts = await uow.merges.move_back(merge)
    undone = replace(merge, undone_at=write.now)
    await uow.merges.keep(undone)
    for memory in done.memories:
        write.record_change(HistoryEvent.USER_UNMERGE, None, memory, memory, {"receipt": str(merge.id)})
    meta = {"receipt": str(merge.id), "returned": dict(done.returned), "kept": dict(done.kept)}
    await uow.journal.record([_entry(write, merge, HistoryEvent.USER_UNMERGE, meta)])
    await write.settle(user, None)
    return UnmergeResult(undone, done.returned, done.kept)

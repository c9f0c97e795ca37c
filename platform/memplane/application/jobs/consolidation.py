"""The job `consolidation`: what a user's memories say twice becomes one, and what another one overrules is over."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

from memplane.application.consent.proposals import stated_in
from memplane.application.jobs.inference.language_model import ModelPrompt
from memplane.application.jobs.inference.llm_budget import LlmBudget
from memplane.application.jobs.inference.pair_judgement import PairAnswers, PairJudgement, judge_pairs
from memplane.application.jobs.job_records import TokensSpent
from memplane.application.jobs.lifecycle_jobs import JobBatch, Step
from memplane.application.jobs.pair_records import PairCheck
from memplane.application.memories.gateway import Write
from memplane.application.memories.placement import SUPERSEDES
from memplane.application.memories.supersession import evidence, is_rejected, supersede, suspect
from memplane.application.ports import Policies, Storage
from memplane.application.records import Edge
from memplane.application.transaction import UnitOfWork
from memplane.domain.errors import InvalidRequest, StateConflict, UserErased
from memplane.domain.identity.principal import Principal
from memplane.domain.jobs.pair_selection import (
    AGE,
    GLANCED,
    PAIRS,
    REMEMBERED,
    Pair,
    PairCandidate,
    PairRelation,
    PairResolution,
    absorb,
    as_overruled,
    choose_memories,
    choose_pairs,
    resolve_pair,
)
from memplane.domain.language.comparison.comparison import ComparisonVerdict
from memplane.domain.memory.delta import ChangeEvent
from memplane.domain.memory.history import HistoryEvent
from memplane.domain.memory.memory import Memory
from memplane.domain.memory.write_decisions import Neighbour, said_at
from memplane.domain.policy.policy import Policy

logger = logging.getLogger("memplane.jobs")
SWEPT = 500
"""Old notes of pairs that a batch removes: more than it makes."""


@dataclass(frozen=True, slots=True)
class UserPairs:
    """What there is of the next user.

    Attributes:
        pool: the memories that are compared.
        held: those that hold a field of the profile.
        checks: the pairs that were compared lately.
        known: those that took each other's place once.
        model: names the embedding model that their vectors are of.
    """

    user_id: str
    pool: Sequence[PairCandidate]
    held: frozenset[UUID]
    checks: Sequence[PairCheck]
    known: Collection[frozenset[UUID]]
    model: str


@dataclass(frozen=True, slots=True)
class PairVerdicts:
    """What the pairs of a user come to, worked out before the transaction opens."""

    user_id: str
    judged: Sequence[PairJudgement]
    suspected: Sequence[Pair]
    held: frozenset[UUID]
    spent: TokensSpent
    skipped: str | None


class ConsolidateDaily:
    """Prepares the batches of the job: a user each, whose pairs are judged before a transaction opens.

    Args:
        storage: where memories are.
        policies: the bands, and which fields are sensitive.
        thinking: a language model for what the rules cannot tell.
        about: makes its prompt.
    """

    def __init__(
        self, storage: Storage, policies: Policies, thinking: LlmBudget, about: Callable[[str], ModelPrompt]
    ) -> None:
        self._storage = storage
        self._policies = policies
        self._thinking = thinking
        self._about = about

    async def __call__(self, principal: Principal, as_of: datetime, place: str | None) -> Step:
        """The next batch: the pairs of the user after ``place``, decided on by the step as far as nothing changed."""
        policy = self._policies.current
        found = await self._storage.write(principal.reach, lambda uow: _looked(uow, place, as_of))
        verdicts = None if found is None else await self._judged(principal.tenant, policy, found, as_of)

        async def step(write: Write, _as_of: datetime, _place: str | None) -> JobBatch:
            await write.uow.pairs.sweep(as_of - REMEMBERED, SWEPT)
            return JobBatch() if verdicts is None else await apply_verdicts(write, verdicts, as_of)

        return step

    async def _judged(self, tenant: str, policy: Policy, found: UserPairs, as_of: datetime) -> PairVerdicts:
        pairs, held = await asyncio.to_thread(_worked_out, policy, found)
        today = sum(each.checked_at.date() == as_of.date() for each in found.checks)
        room = max(PAIRS - today, 0)
        ruled = [PairJudgement(pair, pair.ruled) for pair in pairs if pair.ruled is not None][:room]
        open_ = [pair for pair in pairs if pair.ruled is None][: room - len(ruled)]
        heard = (
            await judge_pairs(self._thinking, self._about, (tenant, found.user_id), open_) if open_ else PairAnswers()
        )
        suspected = [pair for pair in pairs if pair.suspected][:PAIRS]
        return PairVerdicts(found.user_id, (*ruled, *heard.judged), suspected, held, heard.spent, heard.skipped)


async def _looked(uow: UnitOfWork, place: str | None, as_of: datetime) -> UserPairs | None:
    """The next user, and what is compared: a few statements, however many memories there are."""
    user = await uow.pairs.next_user(place, as_of - AGE)
    if user is None:
        return None
    glances = await uow.pairs.recent_facts(user, as_of - AGE, as_of, GLANCED)
    ids = choose_memories(glances, as_of)
    return UserPairs(
        user,
        await uow.pairs.candidates(user, ids),
        await uow.pairs.field_holders(user),
        await uow.pairs.past_checks(user, as_of - REMEMBERED),
        await uow.pairs.related_pairs(ids, SUPERSEDES),
        "" if uow.in_force.model is None else uow.in_force.model.name,
    )


def _worked_out(policy: Policy, found: UserPairs) -> tuple[list[Pair], frozenset[UUID]]:
    """The pairs that were not compared lately, and the memories that nothing overrules."""
    before = {each.fingerprint for each in found.checks}
    pairs = choose_pairs(found.pool, policy.merging.bands_for(found.model), found.known)
    fresh = [pair for pair in pairs if pair.fingerprint not in before]
    either = {each.id: each for pair in fresh for each in (pair.earlier, pair.later)}
    held = {each.id for each in either.values() if each.pinned or states_sensitive_field(policy, each)}
    return fresh, found.held | held


def states_sensitive_field(policy: Policy, memory: Memory) -> bool:
    """Whether a memory states a sensitive field of its user."""
    return any(stated.of is None for stated in stated_in(policy, memory))


@dataclass(slots=True)
class _Under:
    """The work on one user's pairs: memories as they are by now, locked, and what was done."""

    write: Write
    held: frozenset[UUID]
    now: dict[UUID, Memory]
    buried: dict[str, frozenset[str]] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    checks: list[PairCheck] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


async def apply_verdicts(write: Write, verdicts: PairVerdicts, as_of: datetime) -> JobBatch:
    """Let each verdict take effect, unless a memory changed since it was read; note all in the same transaction."""
    user = verdicts.user_id
    await write.uow.lock_users([user])
    try:
        await write.dig([user])
    except UserErased:
        return JobBatch({}, user, spent=verdicts.spent)
    ids = sorted({each for pair in _pairs(verdicts) for each in pair.ids})
    locked = {each.id: each for each in await write.uow.upkeep.lock_active(ids)}
    under = _Under(write, verdicts.held | await write.uow.pairs.field_holders(user), locked)
    read = {each.id: each.version for pair in _pairs(verdicts) for each in (pair.earlier, pair.later)}
    changed = {each for each in ids if each not in locked or locked[each].version != read[each]}
    for judged in verdicts.judged:
        if changed.isdisjoint(judged.pair.ids) and judged.pair.ids <= under.now.keys():
            await _decided(under, judged, as_of)
    for judged in verdicts.judged:
        pair, as_read = judged.pair, changed.isdisjoint(judged.pair.ids) and judged.pair.ids <= under.now.keys()
        if pair.suspected and judged.judgement is PairRelation.DIFFERENT and as_read:
            await write.uow.graph.reconcile(Edge(pair.later.id, pair.earlier.id, _strength(pair)), write.now)
    for pair in verdicts.suspected:
        if changed.isdisjoint(pair.ids) and pair.ids <= under.now.keys():
            listed = await suspect(
                write, pair.later, [Neighbour(pair.earlier, pair.similarity, ComparisonVerdict.SUSPECTED)]
            )
            under.counts["conflicts"] += len(listed)
    await write.uow.graph.link(under.edges, write.now)
    await write.uow.pairs.note(user, under.checks)
    await write.settle(user, None)
    return JobBatch(_told(under.counts), user, spent=verdicts.spent, skipped=verdicts.skipped)


def _pairs(verdicts: PairVerdicts) -> list[Pair]:
    """Every pair that the batch decides on or lists."""
    return [*(judged.pair for judged in verdicts.judged), *verdicts.suspected]


def _told(counts: Counter[str]) -> dict[str, float]:
    """What a batch did; duplicates before and after are those among the pairs that it decided on."""
    names = ("pairs", "merged", "superseded", "kept", "conflicts")
    before = counts["duplicates"]
    told = {name: float(counts[name]) for name in names}
    left = before - counts["merged"]
    return {"users": 1.0, **told, "duplicates_before": float(before), "duplicates_after": float(left)}


async def _decided(under: _Under, judged: PairJudgement, as_of: datetime) -> None:
    """Let one verdict take effect as far as the rules allow, and note it: one that fails keeps no other from it."""
    pair = replace(judged.pair, earlier=under.now[judged.pair.earlier.id], later=under.now[judged.pair.later.id])
    judgement = judged.judgement
    if judged.prompt is not None and judgement is PairRelation.SAME and not pair.mergeable:
        judgement = PairRelation.UNSURE  # a model may be wrong, or lied to: their words show that they are apart
    done = resolve_pair(pair, judgement, under.held)
    try:
        took_effect = done is not None and await _carried_out(under, done, replace(judged, pair=pair))
    except (StateConflict, InvalidRequest) as error:
        logger.warning("two memories stay as they are: %s", error.code)
        took_effect = False
    under.checks.append(PairCheck(judged.pair.fingerprint, judgement.value, as_of, judged.prompt))
    under.counts["pairs"] += 1
    under.counts["duplicates"] += judgement is PairRelation.SAME
    if judgement in {PairRelation.SAME, PairRelation.UPDATE, PairRelation.CONTRADICTION}:
        name = ("merged" if judgement is PairRelation.SAME else "superseded") if took_effect else "kept"
        under.counts[name] += 1


async def _carried_out(under: _Under, done: PairResolution, judged: PairJudgement) -> bool:
    """Supersede what goes, in favour of what stays; False when a person rejected what would stay."""
    write, kept, gone = under.write, done.kept, done.gone
    if kept.category not in under.buried:
        under.buried[kept.category] = await write.uow.tombstones.load(kept.user_id, kept.category)
    if await is_rejected(write, kept, under.buried[kept.category]):
        return False
    why: dict[str, object] = {
        "verdict": judged.judgement.value,
        "similarity": round(judged.pair.similarity, 4),
        "prompt": judged.prompt,
    }
    async with write.attempt():
        if done.merged:
            stays = absorb(kept, gone, write.now)
            about = evidence(gone, merged=str(gone.id), said=gone.text.content, **why)
            write.record_change(HistoryEvent.MERGE, ChangeEvent.MERGED, stays, kept, about)
        else:
            stays = replace(
                kept, valid_from=kept.valid_from or said_at(kept), updated_at=write.now, version=kept.version + 1
            )
            write.record_change(HistoryEvent.LINK, None, stays, kept, {"supersedes": str(gone.id), **why})
        if not await write.uow.memories.replace(stays, None):
            raise StateConflict("another memory of this user and category says exactly this already")
        await supersede(write, gone if done.merged else as_overruled(gone), stays, why)
    under.now[stays.id] = stays
    del under.now[gone.id]
    under.edges.append(Edge(stays.id, gone.id, _strength(judged.pair), SUPERSEDES))
    return True


def _strength(pair: Pair) -> float:
    return round(min(max(pair.similarity, 0.0), 1.0), 4)

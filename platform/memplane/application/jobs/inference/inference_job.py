"""Jobs that conclude something of each user once in a while: who is due, what is asked, and how it is kept."""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Protocol, TypeVar
from uuid import UUID

from memplane.application.consent.proposals import QUEUED, require_consent, stated_in
from memplane.application.erasure.user_tombstones import gone_since
from memplane.application.jobs.inference.language_model import ModelPrompt
from memplane.application.jobs.inference.llm_budget import LlmBudget
from memplane.application.jobs.job_records import TokensSpent
from memplane.application.jobs.lifecycle_jobs import JobBatch, Step
from memplane.application.jobs.user_job_records import Newcomer, News
from memplane.application.memories.gateway import Gateway, Write
from memplane.application.memories.placement import Candidate, place
from memplane.application.memories.service import NewMemory, prepare
from memplane.application.memories.supersession import PendingWrites
from memplane.application.ports import Clock, Policies, Storage
from memplane.application.recall.search_material import SearchMaterial
from memplane.domain.errors import (
    BudgetSpent,
    InvalidRequest,
    MemplaneError,
    ModelAnswerInvalid,
    ModelUnavailable,
    NoModel,
    StateConflict,
)
from memplane.domain.identity.principal import Principal
from memplane.domain.jobs.inference_checks import Piece, readers_share, standing
from memplane.domain.language.profile_statements import Stated
from memplane.domain.memory.memory import RETRIEVABLE_TRUST, Memory, MemoryType, Source, Turn
from memplane.domain.memory.scope import Filters, Scope, read_scope
from memplane.domain.policy.policy import Policy

logger = logging.getLogger("memplane.jobs")
MOST = 5
"""Users of one batch: for each a model may be asked, which takes seconds."""
PAGE = 200
"""Units that are looked through for the next of them."""
NO_MODEL, NO_BUDGET, NO_ANSWER = "no model", "budget spent", "model unavailable"
_MERGED = frozenset({"merged", "duplicate"})
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Draft:
    """A conclusion that may be stored.

    Attributes:
        new: what it says, and what it rests on.
        source: which path brought it.
        pieces: what it rests on, as it was read.
    """

    new: NewMemory
    source: Source
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class InferenceNote:
    """What came of thinking about a user.

    Attributes:
        drafts: what was concluded.
        dropped: how many answers were not fit to be kept.
        spent: what a model took.
        skipped: why a model was not asked, or did not answer; ``None`` where it was not needed or did.
        finished: whether the user has had their turn; else the next run comes back to them.
    """

    drafts: tuple[Draft, ...] = ()
    dropped: int = 0
    spent: TokensSpent = field(default_factory=TokensSpent)
    skipped: str | None = None
    finished: bool = True


@dataclass(frozen=True, slots=True)
class About:
    """The user who is thought about, and within what.

    Attributes:
        scope: everything of the user that may be read for it.
        agent: as which it is written.
        thread_id: the conversation in which something happened last, or none.
        since: what is older is not new.
    """

    principal: Principal
    policy: Policy
    scope: Scope
    agent: str
    thread_id: str | None
    since: datetime

    @property
    def user_id(self) -> str:
        """Whom it is about."""
        return self.scope.filters.user_id or ""


class InferenceRule(Protocol):
    """What a job concludes of one user.

    Attributes:
        job: its name.
        category: where that goes.
        pause: so long after it was done for a user it is not done again.
        counted: what is counted of it, by name.
        by_rule: whether it concludes something without a model.
    """

    job: str
    category: str
    pause: timedelta
    counted: str
    by_rule: bool

    def news(self, as_of: datetime) -> News:
        """Who is due."""
        ...

    async def think(self, about: About) -> InferenceNote:
        """Read what there is of a user, and think about it; no transaction is open meanwhile."""
        ...


class InferenceJob:
    """Prepares the batches of such a job: users of whom there is something new are thought about one by one.

    Whoever is done is noted with the moment by which the run decides, in the transaction that stores what came of it
    and behind the lock of the user: two workers never conclude twice. Users follow in the order of what is new of
    them, so that a run reads what is new once, and nothing of anybody else.
    """

    def __init__(
        self, storage: Storage, policies: Policies, gateway: Gateway, clock: Clock, thinking: LlmBudget,
        conclude: InferenceRule,
    ) -> None:  # fmt: skip
        self._storage = storage
        self._policies = policies
        self._gateway = gateway
        self._clock = clock
        self._thinking = thinking
        self._conclude = conclude

    async def __call__(self, principal: Principal, as_of: datetime, place: str | None) -> Step:
        """The next batch: who is due is looked up and thought about here, and looked at again by the step."""
        policy, conclude = self._policies.current, self._conclude
        agent, categories = policy.keeper(conclude.category), readers_share(policy, conclude.category)
        if agent is None or conclude.category not in policy.categories:
            return _nothing(conclude.counted, self._without)
        if self._without is not None and not conclude.by_rule:
            return _nothing(conclude.counted, self._without)
        began, news = self._clock(), conclude.news(as_of)
        after = None if place is None else UUID(place)
        found = await self._storage.write(principal.reach, lambda uow: uow.job_users.due(news, after, PAGE))
        users, following = _next(found)
        kept: list[_Kept] = []
        for each in users:
            scope = read_scope(principal, policy, categories, began, Filters(user_id=each.user_id))
            about = About(principal, policy, scope.as_of(None, None), agent, each.thread_id, news.since)
            thought = await conclude.think(about)
            kept.append(await self._kept(about, thought, began))
            if thought.skipped == NO_ANSWER and not conclude.by_rule:  # it would not answer for the others either
                break
        skipped = [each.thought.skipped for each in kept]
        ended = not conclude.by_rule and (NO_ANSWER in skipped or set(skipped) == {NO_BUDGET})
        batch = _Batch(conclude, news, began, tuple(kept), None if ended else following, self._without)

        async def step(write: Write, decided_at: datetime, _place: str | None) -> JobBatch:
            return await _written(write, batch, decided_at)

        return step

    @property
    def _without(self) -> str | None:
        """Why the part of the work that needs a model is left out from the beginning."""
        return NO_MODEL if self._thinking.name is None else None

    async def _kept(self, about: About, thought: InferenceNote, now: datetime) -> "_Kept":
        """A thought with its memories as they may be stored; what the policy refuses is dropped."""
        memories: list[tuple[Memory, tuple[Stated, ...], Draft]] = []
        for draft in thought.drafts:
            over = standing([piece.unit for piece in draft.pieces])
            new = replace(
                draft.new,
                visibility=over.visibility,
                min_trust=over.min_trust,
                source_ids=tuple(dict.fromkeys(piece.id for piece in draft.pieces)),
                attributes={**draft.new.attributes, "job": self._conclude.job, "policy": about.policy.digest},
            )
            try:
                memory = prepare(about.principal, about.policy, new, now, about.agent, draft.source)
            except MemplaneError as error:
                logger.info("a conclusion of %s is not kept: %s", self._conclude.job, error.code)
                continue
            memory = replace(memory, authority=min(memory.authority, over.authority))
            memories.append((memory, stated_in(about.policy, memory), draft))
        material = await self._gateway.material(*(memory.text for memory, _, _ in memories)) if memories else []
        dropped = thought.dropped + len(thought.drafts) - len(memories)
        ready = [_Ready(*each, found) for each, found in zip(memories, material, strict=True)]
        return _Kept(about, replace(thought, dropped=dropped), tuple(ready))


@dataclass(frozen=True, slots=True)
class _Ready:
    memory: Memory
    stated: tuple[Stated, ...]
    draft: Draft
    material: SearchMaterial


@dataclass(frozen=True, slots=True)
class _Kept:
    about: About
    thought: InferenceNote
    ready: tuple[_Ready, ...]


@dataclass(frozen=True, slots=True)
class _Batch:
    conclude: InferenceRule
    news: News
    began: datetime
    kept: tuple[_Kept, ...]
    following: str | None
    skipped: str | None


def _next(found: Sequence[Newcomer]) -> tuple[list[Newcomer], str | None]:
    """The users of the next batch, and the unit behind which the one after it begins."""
    users: dict[str, Newcomer] = {}
    for each in found:
        if each.user_id not in users and len(users) == MOST:
            break
        users.setdefault(each.user_id, each)
        last = each
    whole = len(found) < PAGE and (not found or last is found[-1])
    return list(users.values()), None if whole else str(last.unit)


def _nothing(counted: str, skipped: str | None) -> Step:
    """Nobody is thought about: no agent of the policy writes such a thing, or there is no model for it."""

    async def step(_write: Write, _as_of: datetime, _place: str | None) -> JobBatch:
        return JobBatch({"users": 0, counted: 0, "merged": 0, "dropped": 0}, skipped=skipped)

    return step


async def _written(write: Write, batch: _Batch, as_of: datetime) -> JobBatch:
    """Store what was concluded, of each user for whom nobody did meanwhile, in a savepoint of its own."""
    job, counted = batch.conclude.job, batch.conclude.counted
    users = {each.about.user_id for each in batch.kept}
    await write.uow.lock_users(users)
    done = await write.uow.job_users.last_done(job, users)
    erased = await gone_since(write.uow.erasures, dict.fromkeys(users, batch.began))
    counts: Counter[str] = Counter({"users": 0, counted: 0, "merged": 0, "dropped": 0})
    spent, skipped = TokensSpent(), batch.skipped
    for each in batch.kept:
        user, thought = each.about.user_id, each.thought
        spent, skipped = spent + thought.spent, thought.skipped or skipped
        if user in erased or (user in done and done[user] > batch.news.rested):
            continue
        counts["dropped"] += thought.dropped
        counts.update(await _stored(write, each, counted))
        if thought.finished:
            counts["users"] += 1
            await write.uow.job_users.keep(job, user, as_of)
    return JobBatch(dict(counts), batch.following, spent=spent, skipped=skipped)


async def _stored(write: Write, kept: _Kept, counted: str) -> Counter[str]:
    """Store a user's conclusions whose sources are still as they were read; what became of them."""
    counts: Counter[str] = Counter()
    there = await _unchanged(write, kept) if kept.ready else frozenset()
    placed = PendingWrites()
    for ready in kept.ready:
        if not all(piece.id in there for piece in ready.draft.pieces):
            counts["dropped"] += 1
            continue
        memory = replace(ready.memory, recorded_at=write.now, updated_at=write.now)
        try:
            async with write.attempt():
                done = await require_consent(write, memory, ready.stated, write.policy.allowlist(kept.about.agent).read)
                done = done or await place(write, Candidate(memory, ready.material, kept.about.agent, placed))
        except (StateConflict, InvalidRequest) as error:
            logger.info("a conclusion is not kept: %s", error.code)
            counts["dropped"] += 1
            continue
        if done.outcome == "refused":
            counts["dropped"] += 1
        elif done.outcome != QUEUED:
            counts["merged" if done.outcome in _MERGED else counted] += 1
    await write.settle(kept.about.user_id, None)
    return counts


async def _unchanged(write: Write, kept: _Kept) -> frozenset[UUID]:
    """What conclusions rest on, of what is there and says what it said when it was read."""
    units = {piece.id: piece.unit for ready in kept.ready for piece in ready.draft.pieces}
    turns = [each.id for each in units.values() if isinstance(each, Turn)]
    found = await write.uow.job_users.there(kept.about.user_id, turns) if turns else frozenset[UUID]()
    memories = {each.id: each for each in units.values() if isinstance(each, Memory)}
    locked = await write.uow.upkeep.lock_active(sorted(memories)) if memories else []
    same = {
        each.id
        for each in locked
        if each.trust_state in RETRIEVABLE_TRUST and each.text == memories[each.id].text
        and _lies(each) == _lies(memories[each.id])
    }  # fmt: skip
    return found | same


def _lies(memory: Memory) -> tuple[str, str, str, str]:
    """Who may read a memory."""
    return memory.user_id, memory.category, memory.visibility, memory.min_trust


def of_type(scope: Scope, kind: MemoryType) -> Scope:
    """A scope's memories of one type."""
    return replace(scope, turns=False, filters=replace(scope.filters, types=(kind,)))


async def ask_model(
    thinking: LlmBudget, about: About, prompt: ModelPrompt, kind: type[T], most_tokens: int
) -> tuple[T | None, InferenceNote]:
    """Ask a model about a user: its answer, or none, and what is to be noted of having asked.

    A user about whom it answers nothing that can be read has had their turn; who could not be asked about has not.
    """
    if thinking.name is None:
        return None, InferenceNote(skipped=NO_MODEL)
    try:
        answer = await thinking.ask(about.principal.tenant, about.user_id, prompt, kind, most_tokens)
    except NoModel:
        return None, InferenceNote(skipped=NO_MODEL, finished=False)
    except BudgetSpent:
        return None, InferenceNote(skipped=NO_BUDGET, finished=False)
    except ModelUnavailable as error:
        spent = TokensSpent(error.input_tokens, error.output_tokens)
        return None, InferenceNote(spent=spent, skipped=NO_ANSWER, finished=False)
    except ModelAnswerInvalid as error:
        return None, InferenceNote(dropped=1, spent=TokensSpent(error.input_tokens, error.output_tokens))
    stamp = TokensSpent(answer.input_tokens, answer.output_tokens)
    return answer.value, InferenceNote(spent=stamp)


def provenance_of(thinking: LlmBudget, prompt: ModelPrompt) -> Mapping[str, object]:
    """What a memory carries of how it was made."""
    return {"prompt": prompt.version, "model": thinking.name or ""}

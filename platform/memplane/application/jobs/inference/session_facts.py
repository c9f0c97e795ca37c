"""The job `facts`: what a person stated in a conversation that was closed is kept, by rule and by a model."""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from uuid import UUID

from memplane.application.consent.proposals import require_consent, stated_in
from memplane.application.jobs.inference.fact_extraction import SHOWN, FactAnswer, Notes
from memplane.application.jobs.inference.language_model import Instructions
from memplane.application.jobs.inference.llm_budget import LlmBudget
from memplane.application.jobs.job_records import TokensSpent
from memplane.application.jobs.lifecycle_jobs import JobBatch, Prepare, Step
from memplane.application.jobs.session_jobs import CloseQuietSessions, SumUpSessions
from memplane.application.limits.offload import offload
from memplane.application.memories.gateway import Gateway, Write
from memplane.application.memories.placement import Candidate, place
from memplane.application.memories.service import NewMemory, prepare_drawn
from memplane.application.memories.supersession import PendingWrites
from memplane.application.ports import Policies, Storage
from memplane.application.recall.search_material import SearchMaterial
from memplane.application.transaction import UnitOfWork
from memplane.application.turns.extraction import (
    MAX_DRAWN,
    SKIPPED,
    LostFact,
    TurnFacts,
    TurnStatement,
    as_said,
    extract_facts,
    least_trusted,
    statements_of,
)
from memplane.application.turns.session_close import CloseSessions
from memplane.application.turns.session_records import Unread
from memplane.domain.errors import InvalidRequest, MemplaneError, StateConflict, UserErased
from memplane.domain.identity.principal import Principal
from memplane.domain.jobs.job_definitions import SESSION_CLOSE, FactMode
from memplane.domain.language.extraction.fact_grounding import SURE, Noted
from memplane.domain.language.extraction.procedure_extraction import PROCEDURAL
from memplane.domain.language.profile_statements import Stated
from memplane.domain.memory.memory import Memory, MemoryText, Role, Source, Turn, Visibility
from memplane.domain.memory.write_decisions import says_again
from memplane.domain.policy.policy import Policy

logger = logging.getLogger("memplane.jobs")
PART = 30
"""Turns that are consolidated at a time."""
MOST = 20
"""Conversations of one batch; it ends behind the first that a model was asked about."""
DOUBTED = 0.3
"""What is left of the confidence of a memory that is overruled."""
A_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class FactCandidate:
    """What a model noted, as it would be stored, and the sensitive fields that it states."""

    memory: Memory
    stated: Sequence[Stated]


@dataclass(frozen=True, slots=True)
class ConversationPart:
    """A part of a conversation, and what it comes to.

    Attributes:
        unread: the part.
        agent: by whose allowlist.
        ruled: what rules find, with the turn that states it.
        noted: what a model noted.
        again: when it is looked at again; ``None`` when it is done with.
        lost: what a turn states and is not stored, by the turn's id.
    """

    unread: Unread
    agent: str
    ruled: Sequence[tuple[Turn, TurnStatement, SearchMaterial]] = ()
    noted: Sequence[tuple[FactCandidate, SearchMaterial]] = ()
    again: datetime | None = None
    lost: Mapping[UUID, Sequence[LostFact]] = field(default_factory=dict)


@dataclass(slots=True)
class Around:
    """What stands around the parts of a batch, as the transaction finds it.

    Attributes:
        left: the turns that are still there.
        drawn: the memories that were drawn from each turn, in whatever state they are.
        facts: how many facts were drawn with a model on this day, by user.
    """

    left: frozenset[UUID]
    drawn: Mapping[UUID, list[Memory]]
    facts: dict[str, int]


class ConsolidateSessions:
    """Prepares the batches of the job: reading, asking and embedding come before a transaction opens."""

    def __init__(self, storage: Storage, policies: Policies, gateway: Gateway, notes: Notes) -> None:
        self._storage = storage
        self._policies = policies
        self._gateway = gateway
        self._notes = notes

    async def __call__(self, principal: Principal, as_of: datetime, _place: str | None) -> Step:
        """The next batch: what was said is drawn here, and placed by the step unless somebody did so meanwhile."""
        policy = self._policies.current
        agent = policy.keeper(policy.turns_category)
        if agent is None:
            return _nothing
        writer, rules, day = least_trusted(principal, policy), policy.workers.facts, as_of.date()

        async def look(uow: UnitOfWork) -> tuple[list[Unread], Mapping[str, int]]:
            due = await uow.closings.unread(as_of, MOST, PART)
            return due, await uow.budgets.facts_extracted({each.user_id for each in due}, day) if due else {}

        due, drawn = await self._storage.write(principal.reach, look)
        parts: list[ConversationPart] = []
        spent, skipped = TokensSpent(), None
        for each in due:
            speaker = each.agent if policy.keeps(each.agent, policy.turns_category) else agent
            room = rules.user_per_day - drawn.get(each.user_id, 0)
            wanted = tuple(
                name for name in policy.drawn_into(speaker) if name not in {policy.turns_category, PROCEDURAL}
            )
            found = await self._notes.of(principal.tenant, each, wanted, rules, room, as_of)
            ruled = rules.mode is not FactMode.LLM or self._notes.drawn_with["model"] is None
            parts.append(await self._part(writer, policy, each, speaker, found, as_of, ruled=ruled))
            spent, skipped = spent + found.spent, found.skipped or skipped
            if found.asked:
                break

        async def step(write: Write, _as_of: datetime, _place: str | None) -> JobBatch:
            if write.policy.digest != policy.digest:  # by another policy it is worked out anew
                return JobBatch({}, "again", spent=spent)
            counts = await _consolidated(write, parts, as_of)
            return JobBatch(counts, "again" if parts else None, spent=spent, skipped=skipped)

        return step

    async def _part(  # noqa: PLR0913 - what a part is made of
        self,
        writer: Principal,
        policy: Policy,
        of: Unread,
        agent: str,
        found: FactAnswer,
        as_of: datetime,
        *,
        ruled: bool,
    ) -> ConversationPart:
        size = sum(len(turn.text) for turn in of.turns)
        read = await offload(size, _ruled, writer, policy, of.turns, as_of, agent)
        stated = [(turn, each) for turn, facts in read for each in facts.statements]
        sensitive = {turn.id: {one.value.casefold() for one in each.sensitive} for turn, each in stated}
        if ruled:
            lost: dict[UUID, Sequence[LostFact]] = {turn.id: facts.lost for turn, facts in read}
        else:
            stated, lost = [], {turn.id: _not_shown(policy, turn) for turn, _ in read} if found.asked else {}
        stamp = {"facts": {**self._notes.drawn_with, "policy": policy.digest}}
        noted = await offload(size, _noted, writer, policy, of, found.facts, (as_of, agent, stamp, sensitive))
        texts = [*(each.memory.text for _, each in stated), *(each.memory.text for each in noted)]
        material = await self._gateway.material(*texts) if texts else []
        return ConversationPart(
            of,
            agent,
            [(*each, words) for each, words in zip(stated, material, strict=False)],
            list(zip(noted, material[len(stated) :], strict=True)),
            found.again,
            lost,
        )


def conversations(
    storage: Storage, policies: Policies, closing: CloseSessions, thinking: LlmBudget, instructions: Instructions
) -> Mapping[str, Prepare]:
    """The jobs that go by conversations, by name."""
    facts = ConsolidateSessions(storage, policies, closing.gateway, Notes(thinking, instructions))
    closers: dict[str, Prepare] = {
        "sessions": SumUpSessions(storage, policies, closing),
        SESSION_CLOSE: CloseQuietSessions(storage, policies, closing),
    }
    return {**closers, "facts": facts}


async def _nothing(_write: Write, _as_of: datetime, _place: str | None) -> JobBatch:
    """No agent of the policy hears the talk: nobody could be told what came of it."""
    return JobBatch({"parts": 0, "facts": 0})


def _ruled(
    writer: Principal, policy: Policy, turns: Sequence[Turn], as_of: datetime, agent: str
) -> list[tuple[Turn, TurnFacts]]:
    """What rules find in a person's turns."""
    said = [turn for turn in turns if turn.is_persons_word]
    return [(turn, statements_of(writer, policy, as_said(turn), as_of, agent)) for turn in said]


def _not_shown(policy: Policy, turn: Turn) -> Sequence[LostFact]:
    """What a model does not read of a turn, where no rule reads it either."""
    return [LostFact(policy.turns_category, SKIPPED)] if len(turn.text) > SHOWN[Role.USER] else []


def _noted(
    writer: Principal,
    policy: Policy,
    of: Unread,
    facts: Sequence[Noted],
    by: tuple[datetime, str, Mapping[str, object], Mapping[UUID, set[str]]],
) -> list[FactCandidate]:
    """What a model noted as memories; what the policy's own format refuses is left out.

    So is what tells of a sensitive value in words in which nobody would find it: the rules found it in the turn, and a
    person is asked.
    """
    as_of, agent, stamp, sensitive = by
    found = []
    for fact in facts:
        sources = [of.turns[number - 1] for number in dict.fromkeys(fact.turns)]
        actors = {turn.actor_id for turn in sources}
        new = NewMemory(
            of.user_id,
            fact.category,
            MemoryText(fact.text),
            visibility=Visibility.PRIVATE,
            actor_id=actors.pop() if len(actors) == 1 else None,
            role=Role.USER,
            thread_id=of.thread_id,
            importance=fact.importance,
            confidence=min(fact.confidence, SURE),
            source_ids=tuple(turn.id for turn in sources),
            valid_from=max(turn.event_time or turn.recorded_at for turn in sources),
            attributes=stamp,
        )
        try:
            memory = prepare_drawn(writer, policy, new, as_of, agent, Source.CONSOLIDATION)
        except MemplaneError:
            continue
        stated = stated_in(policy, memory)
        values = {value for turn in sources for value in sensitive.get(turn.id, ())}
        if any(each.of is None for each in stated) or not any(
            value in memory.text.content.casefold() for value in values
        ):
            found.append(FactCandidate(memory, stated))
    return found


async def _consolidated(write: Write, parts: Sequence[ConversationPart], as_of: datetime) -> Mapping[str, float]:
    """Place what a batch found, and note how far each conversation was consolidated."""
    closings = write.uow.closings
    counts: Counter[str] = Counter(parts=0, facts=0, superseded=0, left_out=0)
    if not parts:
        return counts
    await write.uow.lock_users({part.unread.user_id for part in parts})
    reached = await closings.read_to([part.unread.key for part in parts])
    fresh = [part for part in parts if reached.get(part.unread.key) == part.unread.seq]  # else somebody has done it
    around = await _around(write, fresh, as_of.date())
    done: list[Unread] = []
    for part in fresh:
        try:
            async with write.attempt():
                counts.update(await _placed(write, part, around, as_of.date()))
                await write.settle(part.unread.user_id, None)
        except UserErased:  # its conversations are going
            await closings.postpone([part.unread.key], as_of + A_DAY)
            continue
        except (StateConflict, InvalidRequest) as error:
            logger.warning("a part of a conversation is consolidated without facts: %s", error.code)
        if part.again is None:
            done.append(part.unread)
        else:
            await closings.postpone([part.unread.key], part.again)
    await closings.mark_consolidated(done)
    counts["parts"] = len(done)
    return counts


async def _around(write: Write, parts: Sequence[ConversationPart], day: date) -> Around:
    turns = {turn.id for part in parts for turn, _, _ in part.ruled}
    turns |= {each for part in parts for one, _ in part.noted for each in one.memory.source_ids}
    turns |= {turn for part in parts for turn, lost in part.lost.items() if lost}
    if not turns:
        return Around(frozenset(), {}, {})
    drawn: dict[UUID, list[Memory]] = {}
    for memory in await write.uow.upkeep.lock_derived(sorted(turns)):
        if "session" not in memory.attributes:  # what sums a conversation up is no fact of it
            for source in turns.intersection(memory.source_ids):
                drawn.setdefault(source, []).append(memory)
    users = {part.unread.user_id for part in parts}
    facts = dict(await write.uow.budgets.facts_extracted(users, day))
    return Around(await write.uow.closings.remaining(sorted(turns)), drawn, facts)


async def _placed(write: Write, part: ConversationPart, around: Around, day: date) -> Counter[str]:
    """Place what was found in a part: what rules find where nothing was drawn yet, and what a model noted besides."""
    user = part.unread.user_id
    await write.dig((user,))
    placed, counts = PendingWrites(), Counter[str]()
    written = Counter({turn: len(memories) for turn, memories in around.drawn.items()})
    for turn in (one for one in part.unread.turns if one.id in around.left and not written[one.id]):
        facts = [(statement, words) for said, statement, words in part.ruled if said.id == turn.id]
        for each in part.lost.get(turn.id, ()) if facts or part.again is None else ():  # else it is read again
            write.record_lost_fact(turn, each.category, each.status)
            counts["left_out"] += 1
        for one in await extract_facts(write, turn, facts, part.agent, placed):
            written[turn.id] += one.id is not None
            counts["facts"] += one.id is not None
            if one.action == "superseded":
                await _doubted(write, one.overruled, counts)
    before = around.facts.get(user, 0)
    room = write.policy.workers.facts.user_per_day - before
    own = 0
    for candidate, words in part.noted:
        sources = candidate.memory.source_ids
        if not around.left.issuperset(sources) or await _is_known(write, candidate.memory, around):
            continue
        if own >= room or any(written[each] >= MAX_DRAWN for each in sources):
            write.record_lost_fact(part.unread.turns[-1], candidate.memory.category, SKIPPED)
            counts["left_out"] += 1
        elif await _kept(write, part, candidate, words, placed, counts):
            written.update(sources)
            own += 1
    if own:
        await write.uow.budgets.draw(user, day, own)
        around.facts[user] = before + own
    counts["facts"] += own
    return counts


async def _is_known(write: Write, memory: Memory, around: Around) -> bool:
    """Whether its turns had said so before, whatever has become of that: what was deleted is not drawn again."""
    known = {each.id: each.text for source in memory.source_ids for each in around.drawn.get(source, ())}
    if not known:
        return False
    bands = write.policy.merging.bands_for(write.model)
    size = sum(len(each.content) for each in known.values())
    return await offload(size, says_again, memory.text, list(known.values()), bands)


async def _kept(
    write: Write,
    part: ConversationPart,
    candidate: FactCandidate,
    words: SearchMaterial,
    placed: PendingWrites,
    counts: Counter[str],
) -> bool:
    """Place one fact; one that cannot be placed keeps no other from it."""
    memory = replace(candidate.memory, recorded_at=write.now, updated_at=write.now)
    try:
        async with write.attempt():
            done = await require_consent(write, memory, candidate.stated, write.policy.allowlist(part.agent).read)
            if done is None:
                done = await place(write, Candidate(memory, words, part.agent, placed))
                if done.outcome == "superseded":
                    await _doubted(write, done.overruled, counts)
    except (StateConflict, InvalidRequest):
        return False
    return done.outcome != "refused"


async def _doubted(write: Write, overruled: Sequence[UUID], counts: Counter[str]) -> None:
    """What is overruled is hardly believed, should somebody restore it."""
    await write.uow.upkeep.doubt(overruled, DOUBTED)
    counts["superseded"] += len(overruled)

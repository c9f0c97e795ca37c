"""Facts that users state in their turns, drawn by rule and stored like any other memory."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

from memplane.application.consent.corroboration import corroborate
from memplane.application.consent.proposals import require_consent, stated_in
from memplane.application.limits.quotas import charge
from memplane.application.memories.authorization import AUTHORITY
from memplane.application.memories.gateway import Write
from memplane.application.memories.placement import STORED, Candidate, place
from memplane.application.memories.service import NewMemory, prepare_drawn
from memplane.application.memories.supersession import PendingWrites
from memplane.application.recall.search_material import SearchMaterial
from memplane.application.transaction import TransactionInterrupted
from memplane.application.turns.new_turn import NewTurn
from memplane.domain.errors import (
    EmbeddingMismatch,
    InvalidRequest,
    MemplaneError,
    QuotaExceeded,
    StateConflict,
    StorageUnavailable,
)
from memplane.domain.identity.principal import Principal
from memplane.domain.language.extraction.extraction import MOST as MOST_STATEMENTS
from memplane.domain.language.extraction.extraction import ExtractedFact, Omissions, claimed, extract
from memplane.domain.language.extraction.procedure_extraction import PROCEDURAL, dictated
from memplane.domain.language.profile_statements import Stated
from memplane.domain.language.profile_wording import core
from memplane.domain.language.text import words
from memplane.domain.memory.memory import Memory, MemoryText, MemoryType, Turn, Visibility
from memplane.domain.policy.policy import Policy
from memplane.domain.privacy.screening import plain

logger = logging.getLogger("memplane.extraction")
MAX_DRAWN = 3
READ = 4_000
"""Characters of a turn that are looked at for them: as many as rules read."""
MOST = 12
"""Of a turn's words that the history keeps of what was drawn from it."""
REFUSED = "refused"
FAILED = "failed"
ERROR, SKIPPED = "error", "skipped"
STEPS_IMPORTANCE, STEPS_CONFIDENCE = 3, 0.9
"""Of steps that a person dictates: nothing of that importance goes because nobody asks for it."""


@dataclass(frozen=True, slots=True)
class TurnStatement:
    """What a turn states, and the memory that it becomes, but for what only the stored turn can tell.

    Attributes:
        sensitive: the fields of the profile among it that change by consent only.
    """

    stated: ExtractedFact
    memory: Memory
    sensitive: tuple[Stated, ...] = ()


@dataclass(frozen=True, slots=True)
class ExtractedMemory:
    """A memory that was drawn from a turn, or the proposal that it became, and what was done with it, and to others."""

    id: UUID | None
    content: str
    category: str
    action: str
    overruled: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True)
class LostFact:
    """A fact of a turn that is not stored.

    Attributes:
        category: of the fact; ``None`` where it did not come to one.
        status: ``error`` when something broke, ``skipped`` when the policy keeps it out.
    """

    category: str | None
    status: str


@dataclass(frozen=True, slots=True)
class TurnFacts:
    """What a turn states, and what of it is lost.

    Attributes:
        statements: what is to be stored.
        lost: what is not, one by one; of what was not read, one for the turn.
        omissions: how much of it the limits leave out.
    """

    statements: tuple[TurnStatement, ...] = ()
    lost: tuple[LostFact, ...] = ()
    omissions: Omissions = field(default_factory=Omissions)


@dataclass(slots=True)
class _Reading:
    """What rules find in a turn.

    Attributes:
        facts: as many as are stored of a turn at most.
        beyond: those beyond.
        claims: what it says of sensitive fields.
        lost: what broke.
        omissions: what was not read, and procedures of too many steps.
    """

    facts: list[ExtractedFact] = field(default_factory=list)
    beyond: list[ExtractedFact] = field(default_factory=list)
    claims: list[ExtractedFact] = field(default_factory=list)
    lost: list[LostFact] = field(default_factory=list)
    omissions: Omissions = field(default_factory=Omissions)

    def omit(self, some: Omissions) -> None:
        """Note what one reader left out."""
        self.omissions |= some


def statements_of(principal: Principal, policy: Policy, turn: NewTurn, now: datetime, agent: str) -> TurnFacts:
    """What a user's turn states, in the categories that extraction may write, as the policy lets it be stored.

    Whatever goes wrong with a fact is logged and listed among what is lost: it costs neither the turn nor other facts.
    So is what the limits of extraction leave out.
    """
    reading = _read(policy, turn, agent, now)
    read, claims, lost = reading.facts, reading.claims, reading.lost
    found: list[TurnStatement] = []
    claiming: list[TurnStatement] = []
    for number, stated in enumerate((*read, *claims)):
        drawn = number < len(read)
        with sparing(lost, "preparing", stated):
            try:
                memory = prepare_drawn(principal, policy, _memory(turn, stated), now, agent)
                (found if drawn else claiming).append(TurnStatement(stated, memory, _sensitive(policy, stated, memory)))
            except MemplaneError:  # of no category that takes it, or what the policy's own format refuses
                if drawn or stated.field not in {each.field for each in read}:
                    lost.append(LostFact(stated.category, SKIPPED))
    kept, fresh = _with_claims(found, claiming)
    beyond = [each.memory.category for each in fresh[MAX_DRAWN:]] + _beyond(reading)
    lost += [LostFact(category, SKIPPED) for category in beyond]
    if reading.omissions.is_unread:
        lost.append(LostFact(policy.turns_category, SKIPPED))
    omissions = replace(reading.omissions, facts=len(beyond))
    return TurnFacts((*kept, *fresh[:MAX_DRAWN]), tuple(lost), omissions)


def _beyond(reading: _Reading) -> list[str]:
    """The categories of facts beyond the limit; a value of a sensitive field is not lost where its field is claimed."""
    fields = {each.field for each in reading.claims}
    facts = [each.category for each in reading.beyond if each.field not in fields]
    return facts + [PROCEDURAL] * reading.omissions.facts


def _with_claims(
    found: Sequence[TurnStatement], claims: Sequence[TurnStatement]
) -> tuple[list[TurnStatement], list[TurnStatement]]:
    """Statements, and besides those of sensitive fields that a turn makes in words that no rule draws.

    One that states several fields, on which nobody could decide one by one, gives way to one for each.
    """
    single = [each for each in found if len(each.sensitive) < 2]
    stated = [one for each in single for one in each.sensitive]
    known = {one.key for one in stated}
    fresh = [each for each in claims if not any(_is_part(one, other) for one in each.sensitive for other in stated)]
    covered = {stated.key for each in fresh for stated in each.sensitive} | known
    kept = [each for each in found if each in single or not {one.key for one in each.sensitive} <= covered]
    return kept, fresh


def _is_part(one: Stated, other: Stated) -> bool:
    """Whether of two values of one field one begins with the words of the other: `Kit`, `Kit Marlowe`."""
    a, b = (each.value.casefold().replace(".", " ").split() for each in (one, other))
    return one.field == other.field and a[: len(b)] == b[: len(a)]


def _read(policy: Policy, turn: NewTurn, agent: str, now: datetime) -> _Reading:
    """What rules find in a turn: the steps that it dictates, and facts; and what it says of sensitive fields."""
    found = _Reading()
    speaker = speaker_name(turn.actor_id)
    when = turn.local(turn.event_time or now)
    with sparing(found.lost, "extracting"):
        found.facts += _dictated(turn, found) if PROCEDURAL in policy.drawn_into(agent) else []
    room = MAX_DRAWN - len(found.facts)
    with sparing(found.lost, "extracting"):
        facts = extract(
            turn.text, speaker=speaker, when=when, limit=MOST_STATEMENTS, omitting=found.omit,
            failing=lambda error: found.lost.append(log_lost_fact(error, "extracting")),
        )  # fmt: skip
        found.facts, found.beyond = [*found.facts, *facts[:room]], facts[room:]
    with sparing(found.lost, "extracting"):
        said = claimed(turn.text, policy.consent.sensitive, speaker=speaker, when=when, omitting=found.omit)
        found.claims = [replace(each, category=policy.home_of(each.field or "", "")) for each in said]
    return found


def _dictated(turn: NewTurn, reading: _Reading) -> list[ExtractedFact]:
    """The steps that a user tells to be remembered."""
    told = dictated(turn.text, omitting=reading.omit)
    if told is None:
        return []
    kind = MemoryType.PROCEDURAL
    return [ExtractedFact(told.content, PROCEDURAL, kind, STEPS_IMPORTANCE, STEPS_CONFIDENCE, told.rule)]


@contextmanager
def sparing(lost: list[LostFact], stage: str, stated: ExtractedFact | None = None) -> Iterator[None]:
    """Note as lost what breaks within: no fact is worth the turn."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - whatever it is
        lost.append(log_lost_fact(error, stage, stated))


def log_lost_fact(error: Exception, stage: str, stated: ExtractedFact | None = None) -> LostFact:
    """Log that a fact could not be stored, by type and rule: the error's own message may quote what was said."""
    rule = stated.rule if stated else "unknown"
    logger.warning("a fact of a turn is not stored: %s while %s, rule %s", type(error).__name__, stage, rule)
    return LostFact(stated.category if stated else None, ERROR)


def is_readable(principal: Principal, policy: Policy, agent: str, memory: Memory) -> bool:
    """Whether the agent that recorded a turn may read what is drawn from it, by category and store.

    It depends on the turn's words and the policy alone: what is stored already plays no part.
    """
    return memory.category in policy.allowlist(agent).read and memory.visibility in policy.visible(principal.trust)


def _sensitive(policy: Policy, stated: ExtractedFact, memory: Memory) -> tuple[Stated, ...]:
    """The rule that drew a statement knows its field best, and the words its value."""
    found = stated_in(policy, memory)
    if stated.field is None or stated.value is None or stated.field not in policy.consent.sensitive:
        return found
    rules = policy.category(memory.category).pii
    value = plain(stated.value, rules, "text", policy.find_pii)
    same = [each for each in found if each.field == stated.field and _is_part(each, Stated(stated.field, value))]
    others = [each for each in found if each.field != stated.field]
    return (*same[:1], *others) if same else (Stated(stated.field, core(stated.field, value)), *others)


def as_said(turn: Turn) -> NewTurn:
    """A stored turn as it was said, for the rules to read it again."""
    return NewTurn(
        turn.user_id, turn.thread_id, turn.role, turn.text, turn.actor_id, turn.agent_id, turn.run_id,
        turn.event_time or turn.recorded_at, time_zone=turn.time_zone,
    )  # fmt: skip


def least_trusted(principal: Principal, policy: Policy) -> Principal:
    """The caller with the least trust that may write turns: a stored turn names its key, not how far it was trusted."""
    may = [
        trust
        for trust, level in policy.trust.items()
        if level.default_write is not None and Visibility.PRIVATE in level.sees
    ]
    return replace(principal, trust=min(may, key=AUTHORITY.__getitem__, default=principal.trust))


def speaker_name(actor: str | None) -> str | None:
    """An actor's id where it reads like a person's name."""
    words = (actor or "").split()
    named = 1 <= len(words) <= 3 and all(word[:1].isupper() and word.replace("-", "").isalpha() for word in words)
    return actor if named else None


async def extract_facts(
    write: Write, turn: Turn, facts: Sequence[tuple[TurnStatement, SearchMaterial]], agent: str, placed: PendingWrites
) -> tuple[ExtractedMemory, ...]:
    """Place what a turn states; fields of the profile that need consent become proposals.

    What cannot be placed costs nobody the turn.

    Raises:
        StorageUnavailable, EmbeddingMismatch, Interrupted: nothing can be stored at this moment.
    """
    done: list[ExtractedMemory] = []
    for statement, material in facts:
        memory = replace(statement.memory, source_ids=(turn.id,), valid_from=turn.event_time or turn.recorded_at)
        fresh = Candidate(memory, material, agent, placed, _drawn_by(turn, statement))
        done.append(await _drawn(write, turn, replace(statement, memory=memory), fresh))
    return tuple(done)


def _drawn_by(turn: Turn, statement: TurnStatement) -> Mapping[str, object]:
    """The frame that drew a statement, and the turn's words that are in it: whoever reads the one may read these."""
    taken = set(words(statement.memory.text.content))
    return {
        "frame": statement.stated.rule,
        "matched": [word for word in dict.fromkeys(words(turn.text[:READ])) if word in taken][:MOST],
    }


async def _drawn(write: Write, turn: Turn, statement: TurnStatement, fresh: Candidate) -> ExtractedMemory:
    """Place one fact, in a savepoint of its own."""
    stated, memory = statement.stated, statement.memory
    try:
        async with write.attempt():
            readable = write.policy.allowlist(fresh.agent).read
            result = await require_consent(write, memory, statement.sensitive, readable)
            if result is None:
                result = await place(write, fresh)
                await charge(write, memory.user_id, writes=0, stores=result.outcome in STORED)
                if result.outcome != REFUSED:
                    await corroborate(write, turn, stated, result.memory)
    except (StateConflict, InvalidRequest, QuotaExceeded) as error:
        if isinstance(error, QuotaExceeded):
            fresh.placed.clear()  # it names what was taken back
        write.record_refusal(memory)
        return ExtractedMemory(None, memory.text.content, stated.category, REFUSED)
    except (StorageUnavailable, EmbeddingMismatch, TransactionInterrupted):
        raise
    except Exception as error:  # noqa: BLE001 - whatever breaks here is not worth the turn
        fresh.placed.clear()  # it may name what was taken back
        write.record_lost_fact(turn, stated.category, log_lost_fact(error, "placing", stated).status)
        return ExtractedMemory(None, memory.text.content, stated.category, FAILED)
    stored = result.proposal or (None if result.outcome == REFUSED else result.memory.id)
    # the turn's own words: whether the agent may read what they were merged into is another matter
    return ExtractedMemory(stored, memory.text.content, stated.category, result.outcome, result.overruled)


def _memory(turn: NewTurn, stated: ExtractedFact) -> NewMemory:
    return NewMemory(
        turn.user_id,
        stated.category,
        MemoryText(stated.content),
        stated.type,
        agent_id=turn.agent_id,
        run_id=turn.run_id,
        actor_id=turn.actor_id,
        role=turn.role,
        thread_id=turn.thread_id,
        importance=stated.importance,
        confidence=stated.confidence,
        event_time=stated.event_time,
        attributes={"rule": stated.rule},
    )

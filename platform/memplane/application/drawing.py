"""Facts that users state in their turns, drawn by rule and stored like any other memory."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from memplane.application.beside import Placed
from memplane.application.corroborating import corroborate
from memplane.application.gateway import Write
from memplane.application.placing import Fresh, place
from memplane.application.proposing import held_back, stated_in
from memplane.application.remember import NewMemory, prepare
from memplane.application.targets import AUTHORITY
from memplane.application.turns import NewTurn
from memplane.application.vectors import SearchMaterial
from memplane.domain.errors import Conflict, Invalid, MemplaneError
from memplane.domain.extraction import Extracted, claimed, extract
from memplane.domain.memory import Memory, MemoryText, MemoryType, Source, Turn, Visibility
from memplane.domain.policy import Policy
from memplane.domain.principal import Principal
from memplane.domain.procedures import PROCEDURAL, dictated
from memplane.domain.profile_statements import Stated
from memplane.domain.screening import plain
from memplane.domain.tombstones import value_key

MAX_DRAWN = 3
REFUSED = "refused"
STEPS_IMPORTANCE, STEPS_CONFIDENCE = 3, 0.9
"""Of steps that a person dictates: nothing of that importance goes because nobody asks for it."""


@dataclass(frozen=True, slots=True)
class Statement:
    """What a turn states, and the memory that it becomes, but for what only the stored turn can tell.

    Attributes:
        sensitive: the fields of the profile among it that change by consent only.
    """

    stated: Extracted
    memory: Memory
    sensitive: tuple[Stated, ...] = ()


@dataclass(frozen=True, slots=True)
class Drawn:
    """A memory that was drawn from a turn, or the proposal that it became, and what was done with it, and to others."""

    id: UUID | None
    content: str
    category: str
    action: str
    overruled: tuple[UUID, ...] = ()


def statements_of(
    principal: Principal, policy: Policy, turn: NewTurn, now: datetime, agent: str
) -> Sequence[Statement]:
    """What a user's turn states, of the categories that the agent may write; as the policy lets it be stored."""
    found = _dictated(principal, policy, turn, now, agent)
    limit = MAX_DRAWN - len(found)
    for stated in extract(turn.text, speaker=speaker_name(turn.actor_id), when=turn.event_time, limit=limit):
        try:
            memory = prepare(principal, policy, _memory(turn, stated), now, agent, Source.EXTRACTION)
        except MemplaneError:
            continue  # not the agent's to write, or what the policy's own format refuses: no fact worth a turn
        found.append(Statement(stated, memory, _sensitive(policy, stated, memory)))
    return _with_claims(principal, policy, turn, (now, agent), found)


def _with_claims(
    principal: Principal, policy: Policy, turn: NewTurn, by: tuple[datetime, str], found: Sequence[Statement]
) -> list[Statement]:
    """Statements with those of sensitive fields besides that a turn makes in words that no rule draws.

    One that states several fields, on which nobody could decide one by one, gives way to one for each.
    """
    now, agent = by
    single = [each for each in found if len(each.sensitive) < 2]
    known = {stated.key for each in single for stated in each.sensitive}
    claims: list[Statement] = []
    for claim in claimed(turn.text, policy.consent.sensitive, speaker=speaker_name(turn.actor_id)):
        field, value = claim.field or "", claim.value or ""
        if (field, value_key(value)) in known:
            continue
        placed = replace(claim, category=policy.home_of(field, ""))
        try:
            memory = prepare(principal, policy, _memory(turn, placed), now, agent, Source.EXTRACTION)
        except MemplaneError:
            continue  # as above
        claims.append(Statement(placed, memory, _sensitive(policy, placed, memory)))
    covered = {stated.key for each in claims for stated in each.sensitive} | known
    kept = [each for each in found if each in single or not {one.key for one in each.sensitive} <= covered]
    return [*kept, *claims[:MAX_DRAWN]]


def _dictated(principal: Principal, policy: Policy, turn: NewTurn, now: datetime, agent: str) -> list[Statement]:
    """The steps that a user tells to be remembered, where the agent that records the turn writes procedures."""
    told = dictated(turn.text)
    if told is None or PROCEDURAL not in policy.allowlist(agent).write:
        return []
    stated = Extracted(told.content, PROCEDURAL, MemoryType.PROCEDURAL, STEPS_IMPORTANCE, STEPS_CONFIDENCE, told.rule)
    try:
        memory = prepare(principal, policy, _memory(turn, stated), now, agent, Source.EXTRACTION)
    except MemplaneError:
        return []  # as above
    return [Statement(stated, memory, _sensitive(policy, stated, memory))]


def _sensitive(policy: Policy, stated: Extracted, memory: Memory) -> tuple[Stated, ...]:
    """The rule that drew a statement knows its field and value best, unless the words say more of it."""
    found = stated_in(policy, memory)
    if stated.field is None or stated.value is None or stated.field not in policy.consent.sensitive:
        return found
    rules = policy.category(memory.category).pii
    value = plain(stated.value, rules, "text", policy.find_pii)
    longer = [each.value for each in found if each.field == stated.field and each.value.startswith(value)]
    others = [each for each in found if each.field != stated.field]
    return (Stated(stated.field, max((value, *longer), key=len)), *others)


def as_said(turn: Turn) -> NewTurn:
    """A stored turn as it was said, for the rules to read it again."""
    return NewTurn(
        turn.user_id, turn.thread_id, turn.role, turn.text, turn.actor_id, turn.agent_id, turn.run_id,
        turn.event_time or turn.recorded_at,
    )  # fmt: skip


def least_trusted(principal: Principal, policy: Policy) -> Principal:
    """The caller, as trusted as who is trusted least of those that may write turns: nobody notes who wrote one."""
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


async def draw(
    write: Write, turn: Turn, facts: Sequence[tuple[Statement, SearchMaterial]], agent: str, placed: Placed
) -> tuple[Drawn, ...]:
    """Place what a turn states; fields of the profile that need consent become proposals.

    What cannot be placed costs nobody the turn.
    """
    done: list[Drawn] = []
    for statement, material in facts:
        stated = statement.stated
        memory = replace(statement.memory, source_ids=(turn.id,), valid_from=turn.event_time or turn.recorded_at)
        try:
            async with write.attempt():
                result = await held_back(write, memory, statement.sensitive, write.policy.allowlist(agent).read)
                if result is None:
                    result = await place(write, Fresh(memory, material, agent, placed))
                    if result.outcome != REFUSED:
                        await corroborate(write, turn, stated, result.memory)
        except (Conflict, Invalid):
            done.append(Drawn(None, memory.text.content, stated.category, REFUSED))
            continue
        stored = result.proposal or (None if result.outcome == REFUSED else result.memory.id)
        # the turn's own words: whether the agent may read what they were merged into is another matter
        done.append(Drawn(stored, memory.text.content, stated.category, result.outcome, result.overruled))
    return tuple(done)


def _memory(turn: NewTurn, stated: Extracted) -> NewMemory:
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

"""Lines taken in as anybody may write them: each memory goes the way of a new one."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from memplane.application.consent.proposals import require_consent, stated_in
from memplane.application.limits.offload import in_thread
from memplane.application.limits.quotas import charge
from memplane.application.memories.gateway import Gateway, Write
from memplane.application.memories.placement import STORED, Candidate, place
from memplane.application.memories.service import NewMemory, prepare
from memplane.application.memories.shared_memories import refuse_conversations
from memplane.application.memories.supersession import PendingWrites, rejection_error
from memplane.application.recall.search_material import SearchMaterial
from memplane.application.transfer.import_records import UNCHANGED, Attempt, Incoming, Outcomes, Taking
from memplane.application.turns.ingestion import append, clean_turn
from memplane.application.turns.new_turn import NewTurn
from memplane.domain.errors import AccessForbidden, MemplaneError, QuotaExceeded
from memplane.domain.language.profile_statements import Stated
from memplane.domain.memory.memory import Memory, MemoryText, Source, Visibility

Admitted = tuple[Memory, Sequence[Stated]] | NewTurn | MemplaneError


async def import_add(gateway: Gateway, taking: Taking, lines: Sequence[Incoming]) -> Attempt:
    """What writes lines as new memories and turns.

    Raises:
        AgentForbidden: the key does not reach the agent.
    """
    speaker = taking.principal.speak_as(taking.agent)

    def admit() -> dict[int, Admitted]:
        return {
            number: _admitted(taking, line.record, speaker)
            for number, line in enumerate(lines)
            if isinstance(line.record, NewMemory | NewTurn)
        }

    admitted = await in_thread(admit)
    material = await _material(gateway, admitted)

    async def attempt(write: Write, outcomes: Outcomes) -> None:
        placed = PendingWrites()
        for number, each in admitted.items():
            try:
                if isinstance(each, MemplaneError):
                    raise each
                async with write.attempt():
                    outcomes.note(number, await _written(write, each, material[number], speaker, placed))
            except MemplaneError as error:
                if isinstance(error, QuotaExceeded):
                    placed.clear()  # it names what was taken back
                outcomes.refuse(number, error)
        for number, line in enumerate(lines):
            if line.record is not None and number not in admitted:
                outcomes.refuse(
                    number, AccessForbidden("only an administrator who restores an export may write this line")
                )

    return attempt


def _admitted(taking: Taking, new: NewMemory | NewTurn, agent: str) -> Admitted:
    """A line as it is stored, or why it may not be."""
    principal, policy, user_id = taking.principal, taking.policy, taking.user_id
    try:
        if isinstance(new, NewMemory):
            memory = prepare(
                principal, policy, replace(new, user_id=user_id or None), taking.now, agent, Source.MIGRATION
            )
            return memory, stated_in(policy, memory)
        refuse_conversations(user_id)
        policy.check_write(agent, policy.turns_category)
        policy.write_visibility(principal.trust, Visibility.PRIVATE)
        return clean_turn(principal, policy, replace(new, user_id=user_id), "text")
    except MemplaneError as error:
        return error


async def _material(gateway: Gateway, admitted: Mapping[int, Admitted]) -> dict[int, SearchMaterial]:
    words: dict[int, MemoryText | str] = {}
    for number, each in admitted.items():
        if isinstance(each, NewTurn):
            words[number] = each.text
        elif not isinstance(each, MemplaneError):
            words[number] = each[0].text
    return dict(zip(words, await gateway.material(*words.values()), strict=True))


async def _written(
    write: Write,
    each: tuple[Memory, Sequence[Stated]] | NewTurn,
    material: SearchMaterial,
    agent: str,
    placed: PendingWrites,
) -> str:
    """What became of a line.

    Raises:
        MemplaneError: it cannot be written.
    """
    if isinstance(each, NewTurn):
        (stored,) = await append(write, each.user_id, each.thread_id, [(each, material)])
        if stored.created:
            await charge(write, each.user_id)
        return "created" if stored.created else UNCHANGED
    memory, stated = each
    waiting = await require_consent(write, memory, stated, write.policy.allowlist(agent).read)
    done = waiting or await place(write, Candidate(memory, material, agent, placed))
    if done.outcome == "refused":
        raise rejection_error()
    await charge(write, memory.user_id, stores=done.outcome in STORED)
    return done.outcome

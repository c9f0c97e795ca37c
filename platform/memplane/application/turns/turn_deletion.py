"""Deleting one turn: it goes for good, with what was drawn, woven, noted and answered of it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from uuid import UUID

from memplane.application.limits.idempotency import Once
from memplane.application.memories.authorization import LASTING, require_full
from memplane.application.memories.cascade_delete import cascade_delete, delete_with_sources
from memplane.application.memories.gateway import Gateway, Write
from memplane.application.memories.supersession import PendingWrites
from memplane.application.ports import Storage
from memplane.application.records import ChangeEntry, TombstoneOrigin
from memplane.application.turns.extraction import extract_facts
from memplane.application.turns.reextraction import OtherMentions, Redrawing, said_elsewhere
from memplane.domain.consent.consent_rules import ProposalState
from memplane.domain.errors import RecordNotFound, StateConflict
from memplane.domain.identity.principal import Principal
from memplane.domain.language.extraction.extraction import Omissions
from memplane.domain.memory.delta import ChangeEvent
from memplane.domain.memory.derivation import without
from memplane.domain.memory.memory import Memory, State, Turn, Visibility
from memplane.domain.memory.scope import read_scope
from memplane.domain.memory.turn_hashes import DELETED, IDS, NAMES, id_key, name_key
from memplane.domain.policy.policy import Policy

MISSING = "no such turn"
_TRIES = 5


@dataclass(frozen=True, slots=True)
class TurnDeletionResult:
    """A turn that was deleted, and its thread's revision after it."""

    turn_id: UUID
    rev: int


class DeleteTurns:
    """Deletes turns, for fully trusted keys whose agent both reads and writes them: they are the evidence."""

    def __init__(self, storage: Storage, gateway: Gateway) -> None:
        self._storage = storage
        self._gateway = gateway
        self._redrawing = Redrawing(storage, gateway)

    async def __call__(
        self,
        principal: Principal,
        turn_id: UUID,
        agent: str | None = None,
        *,
        once: Once[TurnDeletionResult] | None = None,
    ) -> TurnDeletionResult:
        """Delete a turn for good, in one transaction with all that follows from that.

        What was derived from it alone, or woven from it, is deleted, of whatever user and in whatever store; a fact
        that was said in another turn too stays, in that one's words. Its conversation is summed up anew in the night.

        Raises:
            TrustTooLow: the key is not fully trusted.
            ScopeForbidden, AgentForbidden, CategoryForbidden, VisibilityForbidden: not allowed.
            NotFound: absent, deleted already, or not the caller's.
            Conflict: what was drawn from it is being changed at this moment.
        """
        policy, now = self._gateway.begin(principal)
        require_full(principal, "delete a turn")
        speaker = principal.act_as(agent)
        policy.check_write(speaker, policy.turns_category)
        policy.readable(speaker, (policy.turns_category,))
        policy.write_visibility(principal.trust, Visibility.PRIVATE)
        await self._gateway.raise_if_done(principal, once)
        turn = await self._found(principal, policy, now, turn_id)
        for left in reversed(range(_TRIES)):
            said = await self._redrawing.of(principal, policy, turn, now)
            try:
                return await self._removed(principal, policy, now, (turn, said), once)
            except _Changed:
                if not left:
                    raise StateConflict(
                        "what was drawn from the turn is being changed at this moment; try again"
                    ) from None
        raise AssertionError("unreachable")

    async def _found(self, principal: Principal, policy: Policy, now: datetime, turn_id: UUID) -> Turn:
        scope = read_scope(principal, policy, (policy.turns_category,), now)
        async with self._storage.reading(principal.reach) as reader:
            found = (await reader.units(scope, [turn_id])).get(turn_id)
        if not isinstance(found, Turn):
            raise RecordNotFound(MISSING)
        return found

    async def _removed(
        self, principal: Principal, policy: Policy, now: datetime, of: tuple[Turn, Mapping[UUID, OtherMentions]],
        once: Once[TurnDeletionResult] | None,
    ) -> TurnDeletionResult:  # fmt: skip
        seen, said = of

        async def work(write: Write) -> TurnDeletionResult:
            await write.uow.lock_users([seen.user_id])
            turn = await write.uow.removals.lock(seen.user_id, seen.id)
            if turn is None:
                raise RecordNotFound(MISSING)
            return await remove_turn(write, turn, said)

        return await self._gateway.run(principal, policy, now, work, users=[seen.user_id], once=once)


class _Changed(Exception):
    """What was drawn from a turn is not as it was when it was worked out what is said elsewhere."""


async def remove_turn(write: Write, turn: Turn, said: Mapping[UUID, OtherMentions]) -> TurnDeletionResult:
    """Remove a locked turn with all that follows from it.

    Raises:
        _Changed: something was drawn from it meanwhile.
    """
    uow = write.uow
    reworded = await _reworded(write, turn, said)
    values = await uow.removals.remove(turn)
    await _buried(write, turn)
    last = await uow.threads.advance(turn.user_id, turn.thread_id, write.now, revs=1)
    category = write.policy.turns_category
    change = ChangeEntry(
        turn.user_id, turn.thread_id, last.rev, turn.id, ChangeEvent.DELETED, category, write.now
    )  # fmt: skip
    await uow.threads.log([change])
    gone = [*reworded, *await cascade_delete(write, [turn.id, *(each.id for each in reworded)], [turn.id])]
    await _withdrawn(write, turn, gone)
    await _summed_up_anew(write, turn, {each.id for each in gone})
    placed = PendingWrites()
    for memory in (each for each in reworded if each.state is State.ACTIVE):  # what is past stays so
        for other, statement, material in said[memory.id].again:
            await extract_facts(write, other, [(statement, material)], said[memory.id].agent, placed)
    write.removed_turn(turn, await _lapsed(write, turn, values))
    answers = [(kept, untold(kept.answer, str(turn.id))) for kept in await uow.removals.answers(turn)]
    await uow.removals.tell_less([(kept, less) for kept, less in answers if less != kept.answer])
    return TurnDeletionResult(turn.id, await write.settle(turn.user_id, turn.thread_id) or last.rev)


async def _reworded(write: Write, turn: Turn, said: Mapping[UUID, OtherMentions]) -> list[Memory]:
    """Delete the facts that others' turns say too, in words that are this turn's: they are drawn anew from those.

    Raises:
        _Changed: one of them is not as it was read.
    """
    found = [each for each in await write.uow.upkeep.lock_derived([turn.id]) if said_elsewhere(each, turn)]
    if any(each.id not in said or said[each.id].version != each.version for each in found):
        raise _Changed
    gone = [each for each in found if each.state in LASTING and said[each.id].again]
    for each in gone:
        await delete_with_sources(write, without(each, [turn.id]), each, [turn.id])
    return gone


async def _lapsed(write: Write, turn: Turn, values: Sequence[tuple[str, str]]) -> list[str]:
    """Let go of the values that too few turns speak for now; their fields."""
    uow = write.uow
    return [
        field
        for field, key in values
        if not write.policy.consent.is_corroborated(await uow.consents.signals(turn.user_id, field, key, None))
        and await uow.removals.lapse(turn.user_id, field, key)
    ]


async def _buried(write: Write, turn: Turn) -> None:
    """Let the turn not come back under its name or id; its words may be said anew."""
    burial = TombstoneOrigin(DELETED, write.principal.actor, write.now, turn.id)
    await write.uow.tombstones.add(turn.user_id, IDS, [id_key(turn.id)], burial)
    if turn.external_id is not None:
        await write.uow.tombstones.add(turn.user_id, NAMES, [name_key(turn.thread_id, turn.external_id)], burial)


async def _withdrawn(write: Write, turn: Turn, gone: Sequence[Memory]) -> None:
    """Withdraw what waits for a decision and rests on what is deleted; what was decided stands without its draft."""
    ids = {turn.id, *(memory.id for memory in gone)}
    users, named = {turn.user_id, *(memory.user_id for memory in gone)}, {str(each) for each in ids}
    found = await write.uow.removals.proposals(users)
    rests = [each for each in found if each.evidence in ids or not named.isdisjoint(_drafted_of(each.meta))]
    waiting = [each.id for each in rests if each.state is ProposalState.PENDING]
    if waiting:
        await write.uow.removals.withdraw(waiting)
    decided = [each.id for each in rests if each.state is not ProposalState.PENDING]
    await write.uow.removals.unquote(users, decided, ids)


def _drafted_of(meta: Mapping[str, object]) -> Collection[str]:
    """What the memory was derived from that a proposal would become."""
    kept = meta.get("memory")
    found = kept.get("source_ids") if isinstance(kept, dict) else None
    return found if isinstance(found, list) else ()


async def _summed_up_anew(write: Write, turn: Turn, gone: Collection[UUID]) -> None:
    """Let the night close the conversation again, if its summary is gone; what it was consolidated to stays noted."""
    closing = await write.uow.closings.find(turn.user_id, turn.thread_id)
    if closing is not None and closing.summary_id in gone:
        await write.uow.closings.keep(replace(closing, seq=0, summary_id=None))


def untold(answer: Mapping[str, object], turn_id: str) -> Mapping[str, object]:
    """What may be kept of an answer that tells of a deleted turn: where it stood, and nothing that it said."""
    body = answer.get("body")
    if not isinstance(body, dict):
        return {}
    if isinstance(body.get("items"), list) and all(_stood(each) for each in body["items"]):
        items = [_silent(each) if each["turn_id"] == turn_id else each for each in body["items"]]
        return {**answer, "body": {**body, "items": items}}
    return {**answer, "body": _silent(body)} if _stood(body) else {}


def _stood(body: object) -> bool:
    """Whether it says where a turn stands."""
    return isinstance(body, dict) and {"turn_id", "seq", "rev", "extracted"} <= body.keys()


def _silent(body: Mapping[str, object]) -> Mapping[str, object]:
    return {**body, "extracted": [], "extracted_elsewhere": 0, "left_out": asdict(Omissions())}

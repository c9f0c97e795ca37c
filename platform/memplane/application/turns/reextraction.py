"""What a turn that is deleted shares with other turns: facts that these say too, in words of their own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from uuid import UUID

from memplane.application.limits.offload import offload
from memplane.application.memories.gateway import Gateway
from memplane.application.ports import Storage
from memplane.application.recall.search_material import SearchMaterial
from memplane.application.transaction import UnitOfWork
from memplane.application.turns.extraction import TurnStatement, as_said, least_trusted, statements_of
from memplane.domain.identity.principal import Principal
from memplane.domain.language.comparison.comparison import ANY_MODEL, ComparisonVerdict, compare
from memplane.domain.language.comparison.comparison import ParsedStatement as Compared
from memplane.domain.memory.memory import Memory, Source, TrustState, Turn
from memplane.domain.policy.policy import Policy

_Found = tuple[Memory, str, Sequence[tuple[Turn, TurnStatement]]]


@dataclass(frozen=True, slots=True)
class OtherMentions:
    """What other turns say of a fact that was drawn from a turn too.

    Attributes:
        version: of the memory, as it was read.
        agent: for whom it is drawn again.
        again: what these turns state in its place; none where it has their words already, or rules find no others.
    """

    version: int
    agent: str
    again: Sequence[tuple[Turn, TurnStatement, SearchMaterial]] = ()


def said_elsewhere(memory: Memory, turn: Turn) -> bool:
    """Whether a memory was drawn by rule from a turn and from others of the same user, and nobody confirmed it."""
    drawn = memory.source is Source.EXTRACTION and memory.trust_state is not TrustState.CONFIRMED
    return drawn and memory.user_id == turn.user_id and len(memory.source_ids) > 1


class Redrawing:
    """Reads the other turns of facts again, and makes search material, before a transaction opens."""

    def __init__(self, storage: Storage, gateway: Gateway) -> None:
        self._storage = storage
        self._gateway = gateway

    async def of(self, principal: Principal, policy: Policy, turn: Turn, now: datetime) -> Mapping[UUID, OtherMentions]:
        """What other turns say of the facts that were drawn from a turn and from them, by the facts' ids."""

        async def look(uow: UnitOfWork) -> tuple[list[Memory], list[Turn]]:
            found = [each for each in await uow.upkeep.lock_derived([turn.id]) if said_elsewhere(each, turn)]
            others = {source for each in found for source in each.source_ids} - {turn.id}
            return found, await uow.removals.turns_of(turn.user_id, others) if others else []

        facts, turns = await self._storage.write(principal.reach, look)
        if not facts:
            return {}
        size = sum(len(each.text) for each in turns)
        found = await offload(size, _said, least_trusted(principal, policy), policy, (facts, turns), now)
        texts = [statement.memory.text for _, _, stated in found for _, statement in stated]
        material = iter(await self._gateway.material(*texts) if texts else [])
        return {
            memory.id: OtherMentions(
                memory.version, agent, [(other, statement, next(material)) for other, statement in stated]
            )
            for memory, agent, stated in found
        }


def _said(
    writer: Principal, policy: Policy, of: tuple[Sequence[Memory], Sequence[Turn]], now: datetime
) -> list[_Found]:
    facts, turns = of

    @cache
    def stated(place: int, agent: str) -> Sequence[TurnStatement]:
        return statements_of(writer, policy, as_said(turns[place]), now, agent).statements

    found: list[_Found] = []
    for memory in facts:
        agent = _hearing(policy, memory.category)
        others = [place for place, each in enumerate(turns) if each.id in memory.source_ids and each.is_persons_word]
        nearest = [
            (turns[place], _weighed(best, memory))
            for place in others
            if agent is not None and (best := _nearest(policy, memory, stated(place, agent))) is not None
        ]
        own = any(statement.memory.text == memory.text for _, statement in nearest)
        found.append((memory, agent or "", () if own else nearest))
    return found


def _hearing(policy: Policy, category: str) -> str | None:
    """The first agent of the policy that reads and writes turns, from which facts of a category are drawn."""
    turns = policy.turns_category
    hears = (name for name, may in policy.allowlists.items() if turns in may.read and turns in may.write)
    return next((name for name in hears if category in policy.drawn_into(name)), None)


def _nearest(policy: Policy, memory: Memory, stated: Sequence[TurnStatement]) -> TurnStatement | None:
    """What of a turn's statements was counted into a memory: one of its kind that says the same, the most like it.

    Anybody may have named the turn as a source: one that says something else is no reason to say that anew.
    """
    words, told, bands = _words(memory), Compared.of(memory.text.content), policy.merging.bands_for(ANY_MODEL)
    alike = [
        each
        for each in stated
        if (each.memory.category, each.memory.type) == (memory.category, memory.type)
        and compare(Compared.of(each.memory.text.content), told, 1.0, bands) is ComparisonVerdict.SAME
    ]
    return max(
        alike, key=lambda each: len(words & _words(each.memory)) / len(words | _words(each.memory)), default=None
    )


def _weighed(statement: TurnStatement, memory: Memory) -> TurnStatement:
    """A statement of the weight that somebody gave the memory."""
    return replace(statement, memory=replace(statement.memory, importance=memory.importance, pinned=memory.pinned))


def _words(memory: Memory) -> set[str]:
    return set(memory.text.content.casefold().split())

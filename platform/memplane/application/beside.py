"""What stands beside a memory: its neighbours, what it overrules, and values that a person rejected."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from memplane.application.gateway import Write
from memplane.application.offload import in_thread, offload
from memplane.application.records import Edge, Suspected
from memplane.application.targets import require_weight
from memplane.application.vectors import SearchMaterial, Vector
from memplane.domain.comparison import Verdict
from memplane.domain.conflicts import POSSIBLE_CONFLICT
from memplane.domain.delta import ChangeEvent
from memplane.domain.errors import Conflict, ValueRejected
from memplane.domain.history import HistoryEvent
from memplane.domain.lifecycle import check_transition
from memplane.domain.memory import FULL_AUTHORITY, RETRIEVABLE_TRUST, Memory, State
from memplane.domain.reconciling import MAX_CONFLICTS, OVERRULES, Neighbour, compared, said_at, same_store, says_again
from memplane.domain.scope import Filters, Scope, trust_levels
from memplane.domain.tombstones import said_keys

NEIGHBOURS = 5
"""As many by meaning, and as many by words."""
CORRECTED = "corrected"
RESTORED = "restored"
_NEVER_SO = (CORRECTED, RESTORED)
_MAX_REJECTED = 200


@dataclass(slots=True)
class Placed:
    """Memories that were placed earlier in the same transaction, which a search may not see yet."""

    _memories: dict[UUID, Memory] = field(default_factory=dict)
    _vectors: dict[UUID, NDArray[np.float32]] = field(default_factory=dict)

    def note(self, memory: Memory, vector: Vector | None) -> None:
        """Remember a memory as it is now; one that is no longer believed is forgotten."""
        if memory.state is not State.ACTIVE or memory.trust_state not in RETRIEVABLE_TRUST:
            self.forget([memory.id])
        elif vector is not None:
            self._memories[memory.id] = memory
            self._vectors[memory.id] = vector
        elif memory.id in self._memories:
            self._memories[memory.id] = memory

    def forget(self, ids: Sequence[UUID]) -> None:
        """These are no longer there."""
        for memory_id in ids:
            self._memories.pop(memory_id, None)
            self._vectors.pop(memory_id, None)

    def clear(self) -> None:
        """Forget all of them."""
        self._memories.clear()
        self._vectors.clear()

    def near(self, memory: Memory, vector: NDArray[np.float32]) -> list[tuple[Memory, float]]:
        """The nearest of the same user, category and type, with their cosine."""
        if not self._vectors:
            return []
        cosines = np.stack(list(self._vectors.values())) @ vector
        found = [
            (other, float(cosine))
            for other, cosine in zip(self._memories.values(), cosines, strict=True)
            if (other.user_id, other.category, other.type) == (memory.user_id, memory.category, memory.type)
        ]
        return sorted(found, key=lambda pair: -pair[1])[:NEIGHBOURS]


async def neighbours(
    write: Write,
    memory: Memory,
    material: SearchMaterial,
    placed: Placed,
    near: Sequence[tuple[Memory, float]] | None = None,
) -> list[Neighbour]:
    """What a memory is to those of the same user and category that its writer sees; most similar first.

    Args:
        write: the write under way.
        memory: the memory.
        material: its search material.
        placed: what was placed in the same transaction.
        near: its nearest, when they were looked up before.
    """
    vector = write.vector(material)
    if vector is None:
        return []
    found = placed.near(memory, vector)
    known = {other.id for other, _ in found} | {memory.id}
    if near is None:
        near = await write.uow.memories.nearest(beside(write, memory), material, NEIGHBOURS)
    found += [(other, similarity) for other, similarity in near if other.id not in known]
    if memory.authority < FULL_AUTHORITY:
        # whoever is trusted less could surround what he contradicts with harmless neighbours of his own
        known |= {other.id for other, _ in near}
        heavier = replace(beside(write, memory), outweighing=memory.authority)
        more = await write.uow.memories.nearest(heavier, material, NEIGHBOURS)
        found += [(other, similarity) for other, similarity in more if other.id not in known]
    bands = write.policy.merging.bands_for(write.model)
    size = len(memory.text.content) + sum(len(other.text.content) for other, _ in found)
    return await offload(size, compared, memory, sorted(found, key=lambda pair: -pair[1]), bands)


def beside(write: Write, memory: Memory) -> Scope:
    """Where the neighbours of a memory are looked for."""
    principal, policy = write.principal, write.policy
    return Scope(
        tenant=principal.tenant,
        categories=(memory.category,),
        visibilities=policy.trust[principal.trust].sees | {memory.visibility},
        trust_levels=trust_levels(principal.trust),
        users=None,
        now=write.now,
        turns=False,
        filters=Filters(user_id=memory.user_id, type=memory.type),
    )


async def is_rejected(write: Write, memory: Memory, buried: frozenset[str] | None = None) -> bool:
    """Whether a memory says, in whatever words or field, what a person rejected or erased.

    Args:
        write: the write under way.
        memory: the memory.
        buried: keys of such values, when they were looked up before.
    """
    if buried is None:
        buried = await write.uow.tombstones.held(memory.user_id, memory.category)
    graves = await write.graves(memory.user_id)
    if not buried and not graves:
        return False
    said = await in_thread(said_keys, memory.text, memory.attributes)
    if not buried.isdisjoint(said) or await is_erased(write, memory.user_id, memory.category, said):
        return True
    if not buried:
        return False
    gone = await write.uow.memories.rejected(memory.user_id, memory.category, _MAX_REJECTED)
    bands = write.policy.merging.bands_for(write.model)
    return bool(gone) and await in_thread(says_again, memory.text, gone, bands)


async def is_erased(write: Write, user_id: str, where: str, values: Collection[str]) -> bool:
    """Whether one of some values, by their keys, was erased with its user."""
    for grave in await write.graves(user_id):
        if await write.uow.erasures.buried(grave.subject, where, grave.hashes(values)):
            return True
    return False


async def refuse_rejected(write: Write, memory: Memory) -> None:
    """Stop here when a memory says what a person rejected.

    Raises:
        ValueRejected: it does.
    """
    if await is_rejected(write, memory):
        raise rejected()


def rejected() -> ValueRejected:
    """Why a memory is not stored."""
    return ValueRejected("content: a person rejected or erased this value; it is not stored again", field="content")


async def overrule(
    write: Write,
    memory: Memory,
    material: SearchMaterial,
    why: dict[str, object],
    others: Sequence[Memory] = (),
    *,
    forgiving: bool = False,
) -> tuple[UUID, ...]:
    """Let whatever contradicts a memory be a thing of the past, for somebody has decided; what it was.

    Args:
        write: the write under way.
        memory: what holds from now on.
        material: its search material.
        why: for the history.
        others: memories that it overrules besides.
        forgiving: another memory may say the same.

    Raises:
        TrustTooLow: a more trusted writer stands behind one of them.
        Conflict: another memory says the same already.
    """
    around = await neighbours(write, memory, material, Placed())
    giving_way = {each.id for each in others}
    same = [
        n.memory
        for n in around
        if n.verdict is Verdict.SAME and same_store(n.memory, memory) and n.memory.id not in giving_way
    ]
    if same and not forgiving:
        raise Conflict("another memory of this user and category says this already", memory_id=str(same[0].id))
    rivals = {each.id: each for each in (*others, *(n.memory for n in around if n.verdict in OVERRULES))}
    for rival in rivals.values():
        require_weight(write.principal, rival)
        await supersede(write, rival, memory, why)
    return tuple(rivals)


async def suspect(write: Write, memory: Memory, suspected: Sequence[Neighbour]) -> tuple[UUID, ...]:
    """List a memory and those that it may contradict as possible conflicts; neither has more than three open ones.

    A pair of which it was decided that both hold is not listed again.

    Returns:
        The memories that it is newly listed with.
    """
    if not suspected:
        return ()
    graph = write.uow.graph
    known = await graph.conflicts([memory.id, *(n.memory.id for n in suspected)])
    mine = known.get(memory.id, Suspected())
    chosen = [
        n
        for n in suspected
        if n.memory.id not in mine.open | mine.compatible
        and len(known.get(n.memory.id, Suspected()).open) < MAX_CONFLICTS
    ][: max(MAX_CONFLICTS - len(mine.open), 0)]
    await graph.link([Edge(memory.id, n.memory.id, n.similarity, POSSIBLE_CONFLICT) for n in chosen], write.now)
    return tuple(n.memory.id for n in chosen)


async def supersede(write: Write, old: Memory, new: Memory | None, why: dict[str, object]) -> Memory:
    """Let a memory be a thing of the past: it is no longer believed, and no longer true since the new one was said.

    One that was wrong all along has no end: it was true at no time, see ``Scope.true_at``.
    """
    check_transition(old.state, State.SUPERSEDED)
    said = write.now if new is None else said_at(new)
    never = why.get("verdict") in _NEVER_SO or said <= said_at(replace(old, asserted_at=None))
    gone = replace(
        old,
        state=State.SUPERSEDED,
        superseded_by=None if new is None else new.id,
        superseded_at=write.now,
        valid_until=None if never else min(filter(None, (old.valid_until, said))),
        updated_at=write.now,
        version=old.version + 1,
    )
    await write.uow.memories.replace(gone, None)
    event = HistoryEvent.RETRACT if new is None else HistoryEvent.SUPERSEDE
    by: dict[str, object] = {}
    if new is not None:
        # the new words may lie in another store: who reads this entry must be allowed to read these too
        kept_in = {"visibility": new.visibility.value, "min_trust": new.min_trust}
        by = {"superseded_by": str(new.id), "said": new.text.content, "said_in": kept_in} | evidence(new)
    write.changed(event, ChangeEvent.SUPERSEDED, gone, old, why | by)
    return gone


def is_over(there: Memory, new: Memory, now: datetime) -> bool:
    """Whether a memory is no longer read while the new one, which says the same, would be."""
    if there.expires_at is not None and there.expires_at <= now:
        return True
    ended = there.valid_until is not None and there.valid_until <= now
    return ended and (new.valid_until is None or new.valid_until > now)


def later(one: datetime | None, other: datetime | None) -> datetime | None:
    """The later of two ends; none is later than any."""
    return None if one is None or other is None else max(one, other)


async def retire(write: Write, over: Memory) -> None:
    """Take a memory that expired, or is true no longer, out of the way of one that says the same anew."""
    if over.expires_at is None or over.expires_at > write.now:
        await supersede(write, over, None, {"verdict": "ended"})
        return
    await expire(write, over)


async def expire(write: Write, over: Memory) -> Memory:
    """Delete a memory that expired, as the night would."""
    gone = deleted(write, over)
    await write.uow.memories.replace(gone, None)
    write.changed(HistoryEvent.TTL, ChangeEvent.SOFT_DELETED, gone, over)
    return gone


def deleted(write: Write, memory: Memory) -> Memory:
    """A memory that is out of every read, and can be restored until its purge."""
    return replace(
        memory,
        state=State.SOFT_DELETED,
        purge_at=write.now + write.policy.lifecycle.purge_after,
        updated_at=write.now,
        version=memory.version + 1,
    )


def evidence(memory: Memory, **more: object) -> dict[str, object]:
    """What stands behind a memory, for the history."""
    sources = {"evidence": [str(source) for source in memory.source_ids]} if memory.source_ids else {}
    return {"source": memory.source.value, **sources, **more}

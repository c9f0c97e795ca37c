"""What becomes of a memory when something that it was derived from is deleted."""

from collections.abc import Collection
from dataclasses import replace
from enum import StrEnum
from uuid import UUID

from memplane.domain.memory.memory import Memory, MemoryType, Source, TrustState

SOURCE_DELETED = "source_deleted"
"""The cause that the history tells."""
_WOVEN = frozenset({MemoryType.INSIGHT, MemoryType.REFLECTION})
_WOVEN_BY = frozenset({Source.CONSOLIDATION, Source.REFLECTION})


class Fate(StrEnum):
    """What becomes of it."""

    GOES = "goes"
    STAYS = "stays"


def fate(memory: Memory, gone: Collection[UUID], authority: int) -> Fate:
    """Whether a derived memory goes with its sources, or stays on what is left of them.

    What was woven from several sources says something of each, so it goes with any of them: the job that made it makes
    it anew from what is left. What was drawn or copied goes with the last thing that says it: said twice, it stays.
    What a person confirmed stands by itself, and so does what a more trusted writer stands behind.

    Args:
        memory: the derived memory.
        gone: the sources that are deleted.
        authority: how far whoever deletes is trusted.
    """
    if memory.trust_state is TrustState.CONFIRMED or authority < memory.authority:
        return Fate.STAYS
    if memory.type in _WOVEN or memory.source in _WOVEN_BY:
        return Fate.GOES
    lost = sum(each in gone for each in memory.source_ids)
    said = max(memory.mention_count, len(memory.source_ids))
    return Fate.STAYS if said > lost else Fate.GOES


def without(memory: Memory, gone: Collection[UUID]) -> Memory:
    """A memory that no longer names some sources, and was said as many times less."""
    left = tuple(each for each in memory.source_ids if each not in gone)
    said = max(memory.mention_count - (len(memory.source_ids) - len(left)), 1)
    return replace(memory, source_ids=left, mention_count=said)


def concluded_by(memory: Memory) -> str | None:
    """The job that concluded a memory of what it knew of the user; ``None`` for any other memory."""
    job = memory.attributes.get("job")
    return job if memory.source in _WOVEN_BY and isinstance(job, str) else None

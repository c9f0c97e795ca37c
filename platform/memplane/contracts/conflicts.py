"""Pairs of memories that may contradict each other, and verdicts on them."""

from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from memplane.contracts.base import Message, Name, Owner, Request, Time
from memplane.contracts.dry_runs import DryRunnable, DryRunRequest
from memplane.contracts.memories import MemoryRecord
from memplane.domain.memory.conflict_verdicts import ConflictVerdict


class ConflictRecord(Message):
    """Two memories that may contradict each other, though their words do not prove it. Both hold until a verdict."""

    id: UUID
    user_id: Owner
    noted_at: Time
    older: MemoryRecord
    """The memory whose fact is older, by its own time."""
    newer: MemoryRecord


class ConflictList(Message):
    """A page of conflicts, newest first."""

    items: list[ConflictRecord]
    next: str | None
    """Cursor of the next page."""


class ConflictFilters(Request):
    """Which conflicts are asked for."""

    user_id: Name | None = None
    agent: Name | None = None
    """The agent to speak as; the key's own unless the key may act for others."""
    cursor: UUID | None = None
    """`next` of the page before."""
    limit: Annotated[int, Field(ge=1, le=200)] = 50


class ConflictVerdictRequest(DryRunRequest):
    """What is decided: both hold, or the newer or the older memory alone."""

    verdict: ConflictVerdict
    agent: Name | None = None
    """The agent to speak as; the key's own unless the key may act for others."""


class ConflictOutcome(DryRunnable):
    """What a verdict did."""

    outcome: Literal["kept_both", "superseded", "unchanged"]
    """`unchanged` when the same was decided before."""
    id: UUID
    kept: list[UUID]
    """The memories that hold."""
    superseded: UUID | None
    """The memory that does not hold any longer; it can be restored."""
    rev: int | None = None
    """The revision of its thread, for a memory with a thread."""

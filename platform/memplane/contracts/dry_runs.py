"""Dry runs: what a write would do."""

from typing import Literal
from uuid import UUID

from pydantic import JsonValue, StrictBool

from memplane.contracts.base import Message, Request
from memplane.domain.memory.history import HistoryEvent

NOT_STORED = UUID(int=0)
"""The id, in the answer to a dry run, of what does not exist because nothing was stored."""


class DryRunRequest(Request):
    """A write that can be tried first."""

    dry_run: StrictBool = False
    """Answer what would happen, and store nothing."""


class PlannedChange(Message):
    """A change of a memory that the write would make."""

    event: HistoryEvent
    memory_id: UUID | None
    """Null for a memory that does not exist yet."""
    category: str
    before: str | None
    after: str | None
    rule: str | None
    """The rule that decided: a verdict of the comparison, or a rule of the extraction."""
    words: dict[str, list[str]]
    """The words that it went by: `common`, `old` and `new` of two texts, or those `matched` in a turn."""
    meta: dict[str, JsonValue]
    """What else its history would note."""


class PlannedProposal(Message):
    """A change of a sensitive field that would wait for consent."""

    slot: str
    """The field."""
    category: str
    value: str
    content: str
    """The memory that it would become."""


class DryRunPlan(Message):
    """What a write would do, as far as the caller may read it. Nothing was stored."""

    status: Literal[200, 201, 202]
    """The HTTP status of the write."""
    changes: list[PlannedChange]
    """In the order in which they would be made; empty for a key without `memory:read`."""
    proposals: list[PlannedProposal]
    """Empty for a key without `memory:read`."""


class DryRunnable(Message):
    """The answer to a write, or to a dry run of it."""

    dry_run: DryRunPlan | None = None
    """Set in the answer to a dry run alone. There the id of what does not exist yet is the nil UUID
    `00000000-0000-0000-0000-000000000000`, and revisions and versions are those that the write would give."""

"""Conversations that are closed."""

from datetime import datetime
from uuid import UUID

from pydantic import Field

from memplane.contracts.base import Message, Name, Request


class CloseRequest(Request):
    """Close a conversation."""

    user_id: Name | None = Field(
        default=None, description="Whose it is; needed where several users have such a thread."
    )
    agent: Name | None = Field(default=None, description="The agent to speak as; the key's own when left out.")


class SessionSummary(Message):
    """What a conversation was about: sentences that were said in it, the longer ones cut."""

    request: str | None
    """What the user asked for first."""
    outcome: str | None
    """What was said to them last."""
    decisions: list[str]
    open_items: list[str]
    """What is left to do, and a last question that nobody answered."""


class ClosedSession(Message):
    """What closing a conversation did."""

    outcome: str
    """`closed`, or `unchanged` when nothing was said since it was closed last."""
    user_id: str
    thread_id: str
    first_seen: datetime
    closed_at: datetime
    summary: SessionSummary | None
    """None when nothing was said that can be told."""
    memory_id: UUID | None
    """The memory that holds the summary; none without one, or where a person rejected what it says."""
    rev: int
    left_out: int = 0
    """Sentences that the summary lacks because they state a sensitive field that nobody agreed to."""

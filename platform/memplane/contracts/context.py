"""The context call on the wire."""

from typing import Annotated, Literal

from pydantic import Field

from memplane.contracts.base import Message, Name
from memplane.contracts.query import DeltaHeader, QueryItem


class ContextRequest(Message):
    """What to tell an agent before it answers a message."""

    agent: Name | None = None
    """The agent to speak as; the key's own unless it may act for others."""
    user_id: Name
    thread_id: Name
    """The conversation: its last turns are told, and what changed in it."""
    message: Annotated[str, Field(max_length=100_000)] | None = None
    """What the user has just said; without it nothing is recalled by it."""
    since_rev: Annotated[int, Field(ge=0, le=2**53, strict=True)] | None = None
    """Tell what changed in the thread after this revision."""
    budget_tokens: Annotated[int, Field(ge=1, le=100_000, strict=True)] = 4096
    """The most tokens of the whole prompt: fence, headings and provenance included."""
    k: Annotated[int, Field(ge=1, le=200, strict=True)] = 20
    """The most items that are recalled by the message."""


class ContextSection(Message):
    """A labelled part of a context."""

    name: Literal["standing", "recalled", "window", "reflection", "related"]
    items: list[QueryItem]
    """In the order in which they are told."""
    tokens: int
    truncated: bool
    """Whether something of it did not fit."""


class ContextUsage(Message):
    """What a context costs."""

    tokens: int
    """Of the prompt."""
    budget: int
    truncated: bool
    candidates: int
    """How many memories and turns were searched for the message."""
    counter: str


class ContextAnswer(Message):
    """What an agent is told."""

    delta: DeltaHeader
    sections: list[ContextSection]
    """Those that hold something, in their order, which is that of their priority."""
    prompt: str | None
    """Everything as one fenced block, ready to stand before the message; null when there is nothing to tell."""
    usage: ContextUsage
    policy: str

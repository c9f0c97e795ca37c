"""The state of a supervisor in a thread."""

import math
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, JsonValue

from memplane.contracts.base import Message, Name, Request, Time

MAX_MEMBERS = 200
MAX_MESSAGES = 1_000


def _storable(value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Refuse what a database does not keep as it was sent."""
    for part in _parts(value):
        if isinstance(part, float) and not math.isfinite(part):
            raise ValueError("holds a number that JSON does not have")
        if isinstance(part, str) and ("\x00" in part or any("\ud800" <= each <= "\udfff" for each in part)):
            raise ValueError("holds a NUL character or a lone surrogate")
    return value


def _parts(value: JsonValue) -> Iterator[JsonValue]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from _parts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _parts(item)
    else:
        yield value


Document = Annotated[dict[str, JsonValue], Field(max_length=MAX_MEMBERS), AfterValidator(_storable)]
"""A JSON object of the supervisor's own."""


class CheckpointRequest(Request):
    """Sections of a supervisor's state; those that are left out stay as they are."""

    user_id: Name | None = None
    """Whose thread it is; may be left out by a key that is bound to one user."""
    graph: Document | None = None
    """The graph in brief; a LangGraph checkpointer writes it with every checkpoint."""
    memory: Document | None = None
    """What is known of the memory: its context, and the thread's revision."""
    conversation: Annotated[list[Document], Field(max_length=MAX_MESSAGES)] | None = None
    """The conversation, oldest first."""
    agents: Document | None = None
    """The states of agents, by name."""


class CheckpointRecord(Message):
    """The state of a supervisor in a thread."""

    user_id: str
    thread_id: str
    graph: dict[str, JsonValue] | None = None
    """The graph in brief: its last checkpoint, step and channels."""
    memory: dict[str, JsonValue] | None = None
    """What is known of the memory."""
    conversation: list[dict[str, JsonValue]] | None = None
    """The conversation, oldest first."""
    agents: dict[str, JsonValue] | None = None
    """The states of agents, by name."""
    version: int
    """Counts the changes; for `If-Match`."""
    created_at: Time
    updated_at: Time


class DeletedThread(Message):
    """A thread of which no checkpoint is left."""

    outcome: Literal["deleted"] = "deleted"
    user_id: str
    thread_id: str

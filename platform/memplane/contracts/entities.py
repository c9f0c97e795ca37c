"""Who and what memories mention."""

from typing import Annotated
from uuid import UUID

from pydantic import Field

from memplane.contracts.base import Message, Name, Request


class EntityRecord(Message):
    """A person, organisation, place, address or other name that memories mention."""

    id: UUID
    user_id: str
    kind: str
    name: str
    aliases: list[str]
    """Its other names."""
    memories: int | None
    """How many memories mention it, of those that the caller may read; null right after a merge."""


class EntityList(Message):
    """A user's entities, those that most memories mention first."""

    items: list[EntityRecord]


class EntityFilters(Request):
    """Which entities are asked for."""

    user_id: Name
    kind: Name | None = None
    """Of this kind alone: person, organisation, place, project, email, url, hashtag, handle, date or name."""
    name: Name | None = None
    """Of this name or alias alone."""
    limit: Annotated[int, Field(ge=1, le=200)] = 50
    agent: Name | None = None
    """The agent to speak as; the key's own unless the key may act for others."""


class AliasRequest(Request):
    """Another name of an entity."""

    alias: Annotated[str, Field(min_length=1, max_length=200)]
    agent: Name | None = None
    """The agent to speak as; the key's own unless the key may act for others."""


class MergeRequest(Request):
    """The entity that an entity is put into."""

    into: UUID
    agent: Name | None = None
    """The agent to speak as; the key's own unless the key may act for others."""

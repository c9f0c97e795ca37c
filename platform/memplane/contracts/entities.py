"""Who and what memories mention."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import Field, model_validator

from memplane.contracts.base import Message, Name, Owner, Request
from memplane.contracts.memories import MemoryRecord


class EntityRecord(Message):
    """A person, organisation, place, address or other name that memories mention."""

    id: UUID
    user_id: Owner
    kind: str
    name: str
    aliases: list[str]
    """Its other names."""
    memories: int | None
    """How many memories mention it, of those that the caller may read; null right after a merge."""


class RelatedEntityRecord(Message):
    """An entity that is mentioned beside another one."""

    id: UUID
    kind: str
    name: str
    memories: int
    """In how many memories that the caller may read."""


class EntityProfileRecord(EntityRecord):
    """An entity, and what memories that the caller may read say of it."""

    last_mentioned: datetime | None
    """When a memory that mentions it was last said."""
    related: list[RelatedEntityRecord]
    """Whom and what these memories mention besides, at most 20, those first that most do."""
    facts: list[MemoryRecord]
    """A page of these memories, newest first."""
    next: str | None
    """Cursor of the next page of facts."""


class EntityList(Message):
    """A user's entities, those that most memories mention first."""

    items: list[EntityRecord]


class EntityFilters(Request):
    """Which entities are asked for."""

    user_id: Name | None = None
    """Whose memories mention them."""
    shared: bool = False
    """In place of a user: those that shared knowledge mentions."""
    kind: Name | None = None
    """Of this kind alone: person, organisation, place, project, email, url, hashtag, handle, date or name."""
    name: Name | None = None
    """Of this name or alias alone."""
    limit: Annotated[int, Field(ge=1, le=200)] = 50
    agent: Name | None = None
    """The agent to speak as; the key's own unless the key may act for others."""

    @model_validator(mode="after")
    def _one_owner(self) -> "EntityFilters":
        if (self.user_id is None) is not self.shared:
            raise ValueError("user_id: name a user, or say shared=true; not both")
        return self


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

"""Keys, as an administrator sees and makes them."""

from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from memplane.contracts.base import Message, Name, Request, Time
from memplane.domain.identity.principal import KeyScope
from memplane.domain.policy.policy import Trust

MAX_AGENTS = 100
MAX_USERS = 1_000
MAX_GRACE_SECONDS = 90 * 24 * 3600


class KeyRecord(Message):
    """All of a key but its secret, of which only a hash is stored."""

    id: str
    """Its public part: what stands between `mp_` and the next underscore."""
    tenant: str
    agent: str | None
    """The agent that it speaks for."""
    act_for: list[str]
    """Further agents that a request may name; `*` is all."""
    users: list[str] | None
    """The only users that it may touch; null for every user of the tenant."""
    trust: Trust
    scopes: list[KeyScope]
    label: str | None
    created_at: Time
    expires_at: Time | None
    """When it ends; null for never."""
    revoked_at: Time | None
    last_used_at: Time | None
    """When it was last used, to about a minute; null for never."""


class KeyList(Message):
    """Keys, oldest first, revoked ones too."""

    items: list[KeyRecord]
    next: str | None
    """The cursor of the next page, if there is one."""


class KeyEventRecord(Message):
    """Something that was done to a key."""

    id: UUID
    key_id: str
    event: Literal["created", "rotated", "revoked"]
    actor: str
    """Who did it: `agent:…` or `key:…` of a caller, `operator` for who works on the database itself."""
    by_key: str | None
    """The id of the key that they called with, or `oidc:…` of a token; null for the operator."""
    meta: dict[str, str]
    """When the key ends since (`ends_at`), which key it `replaces`, or is `replaced_by`."""
    ts: Time


class KeyHistory(Message):
    """What was done to keys, newest first."""

    items: list[KeyEventRecord]
    next: str | None
    """The cursor of the next page, if there is one."""


class NewKeyRequest(Request):
    """What a new key is bound to. What is left out is the usual, as far as the caller has it itself."""

    agent: Name | None = None
    """The agent that it speaks for; without one, `act_for` is needed."""
    act_for: Annotated[list[Name], Field(max_length=MAX_AGENTS)] = []
    """Further agents that a request may name; `*` is all."""
    users: Annotated[list[Name], Field(min_length=1, max_length=MAX_USERS)] | None = None
    """The only users that it may touch; left out: the caller's."""
    trust: Trust | None = None
    """Its trust level; left out: the agent's by the policy."""
    scopes: Annotated[list[KeyScope], Field(min_length=1, max_length=len(KeyScope))] | None = None
    """What it may be used for; left out: `memory:read`, `memory:write` and `checkpoint`."""
    label: Name | None = None
    """A note."""
    expires_at: Time | None = None
    """When it ends; left out: never, or with the caller's key."""


class RotateKeyRequest(Request):
    """How a key is replaced."""

    grace_seconds: Annotated[int, Field(ge=0, le=MAX_GRACE_SECONDS)] = 0
    """How long the old key goes on working beside the new one."""
    expires_at: Time | None = None
    """When the new key ends; left out: when the old one would have."""


class CreatedKey(KeyRecord):
    """A new key with its credential."""

    outcome: Literal["created"] = "created"
    key: Annotated[str | None, Field(repr=False)]
    """The whole credential, shown this once; null when the request was carried out before (`Idempotency-Replayed`)."""


class RotatedKey(KeyRecord):
    """A new key in the place of another, with its credential."""

    outcome: Literal["rotated"] = "rotated"
    key: Annotated[str | None, Field(repr=False)]
    """The whole credential, shown this once; null when the request was carried out before (`Idempotency-Replayed`)."""
    replaces: str
    """The id of the key that it replaces."""
    replaced_ends_at: Time
    """When that one ends."""


class RevokedKey(Message):
    """A key that has ended."""

    outcome: Literal["revoked"] = "revoked"
    id: str

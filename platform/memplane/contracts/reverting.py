"""What one key or agent did, taken back, and the receipt of it."""

from datetime import datetime
from typing import Annotated, Literal, Self
from uuid import UUID

from pydantic import Field, StrictBool, model_validator

from memplane.contracts.base import Message, Name, Owner, Request, Time


class RevertRequest(Request):
    """Whose changes are taken back, and since when: those of a key, or of every key of an agent."""

    key_id: Name | None = None
    """The key's public id, or `oidc:` and the subject of tokens."""
    of_agent: Name | None = None
    """The agent."""
    since: Time
    """What was written earlier stays."""
    dry_run: StrictBool = False
    """Show what would be done, and change nothing."""
    agent: Name | None = None
    """The agent to act for; without one a key that may act for every agent reaches every category."""

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.key_id is None) == (self.of_agent is None):
            raise ValueError("name either key_id or of_agent")
        return self


class RevertedItem(Message):
    """One thing that was taken back, or that stays."""

    kind: Literal["memory", "turn", "proposal", "field", "conflict", "entity"]
    id: UUID
    user_id: Owner
    what: Literal["removed", "restored", "changed", "ended", "withdrawn", "reopened", "kept"]
    """`ended`: a memory that holds no more, such as one that the key had restored."""
    reason: Literal["rewritten", "vouched", "value_stands", "rejected", "approved", "merged_since"] | None = None
    """Why it stays: another writer rewrote it, stands behind it, gave its name to another memory, rejected its value,
    approved it, or merged it since."""


class CheckpointsLeft(Message):
    """Checkpoints of graphs that the writer saved since, and that stay."""

    count: Annotated[int, Field(ge=1)]
    """Checkpoints, and states of supervisors that nobody changed since; of an agent those of its keys alone."""
    reason: Literal["whole_state"] = "whole_state"
    """A checkpoint holds the whole state of a graph, in which nobody's part can be told from another's: let the graph
    go back to an older one, or delete what the thread has."""


class RevertReceipt(Message):
    """What was taken back; of a dry run, what would be."""

    receipt: UUID | None
    """Of this revert, as the history names it; none for a dry run."""
    outcome: Literal["reverted", "nothing_to_revert"]
    finished: bool
    """Whether nothing is left; if not, ask again: each request takes back a part."""
    reverted: dict[str, int]
    """How many, by what was done to what."""
    conflicts: int
    """How many stay as they are, listed first in `items` with the reason."""
    items: Annotated[list[RevertedItem], Field(max_length=200)]
    """The first of them; `reverted` and `conflicts` count all."""
    not_reverted: dict[str, int]
    """What cannot be taken back, or not exactly. `memories_purged` and `turns_deleted` are gone. Of `changes_inexact`,
    made before this was recorded, only the history tells. `memories_rebuilt` were changed, or said again, by others
    too since: what these did is done again without the writer's part, which is exact unless their writes built on one
    another so often that they would have gone elsewhere without it. Of `writes_refused_since`, by whomever, some may
    have been refused because of what is taken back now: send them again."""
    checkpoints: CheckpointsLeft | None
    """Checkpoints that stay; null when there are none, or when the caller may not read turns."""
    keys: list[str]
    """Keys that the writer made or renewed since: revoke them, and revert them too."""
    policy: str
    """Hash of the policy in force."""
    started_at: datetime

"""Lines that come in, and what becomes of each."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from memplane.application.memories.gateway import Write
from memplane.application.memories.service import NewMemory
from memplane.application.transfer.portable_records import Record
from memplane.application.turns.new_turn import NewTurn
from memplane.domain.errors import MemplaneError
from memplane.domain.identity.principal import Principal
from memplane.domain.policy.policy import Policy

SKIPPED = "skipped"
UNCHANGED = "unchanged"
REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Incoming:
    """One line: what it holds, or why it cannot be read, or neither where it only says something of the file."""

    record: Record | NewMemory | NewTurn | None = None
    error: MemplaneError | None = None


@dataclass(frozen=True, slots=True)
class Taking:
    """Who takes lines in, for whom, when, and by which policy.

    Attributes:
        principal: the caller.
        policy: the policy in force.
        now: when.
        user_id: whose the lines become.
        agent: the agent to act for, where one is named.
    """

    principal: Principal
    policy: Policy
    now: datetime
    user_id: str
    agent: str | None


@dataclass(slots=True)
class Outcomes:
    """What becomes of each line, by its place."""

    all: list[str]
    refused: dict[int, MemplaneError] = field(default_factory=dict)

    @classmethod
    def of(cls, lines: Sequence[Incoming]) -> "Outcomes":
        """Nothing yet, but for the lines that cannot be read."""
        found = cls([SKIPPED] * len(lines))
        for place, line in enumerate(lines):
            if line.error is not None:
                found.refuse(place, line.error)
        return found

    def refuse(self, place: int, error: MemplaneError) -> None:
        """A line is not taken."""
        self.all[place] = REFUSED
        self.refused[place] = error

    def note(self, place: int, outcome: str) -> None:
        """A line is taken."""
        self.all[place] = outcome


Attempt = Callable[[Write, Outcomes], Awaitable[None]]
"""Writes lines that are prepared, in one transaction; it may be tried again."""

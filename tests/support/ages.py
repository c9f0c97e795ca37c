"""A tenant whose days pass as a test says: the clock of its server, and its nights."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from memplane.domain.memory.lifecycle import LifecycleRules
from support.callers import USER, Caller, Tenant
from support.nights import Night, state

FADING = ("decay", "ttl", "layers", "size")
"""The jobs that make the system forget by age."""


class Clock:
    """A clock that begins at noon and goes where it is set."""

    def __init__(self) -> None:
        self.now = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)

    def __call__(self) -> datetime:
        """Now; each look is a little later than the last one."""
        self.now += timedelta(microseconds=1)
        return self.now


@dataclass
class Ages:
    """One tenant of a server whose clock this is."""

    tenant: Tenant
    clock: Clock
    caller: Caller = field(init=False)
    night: Night = field(init=False)

    def __post_init__(self) -> None:
        self.caller = self.tenant.caller("supervisor")
        self.night = Night(self.tenant, self.clock.now)

    def own(self, word: str, **fields: Any) -> str:  # noqa: ANN401 - of the memory
        """Have the user own something that no other memory is about."""
        return self.caller.remember(f"The user owns a {word}.", **({"category": "event"} | fields))

    def act(self, user: str = USER) -> None:
        """Have an agent write something that never goes, which counts as activity of the user."""
        nth = self.tenant.count("memories")
        self.caller.remember(f"Invoice {nth} was paid.", "tasks", user_id=user, importance=5)

    def off(self, days: float) -> None:
        """Let days pass without a night: the machine is off."""
        self.clock.now += timedelta(days=days)
        self.night.now = self.clock.now

    def away(self, days: int, jobs: Collection[str] = FADING, every: int = 1) -> None:
        """Let days pass with their nights, or only some of them, and without the user."""
        for _ in range(days // every):
            self.off(every)
            self.dark(jobs)

    def busy(self, days: int, jobs: Collection[str] = FADING, every: int = 1) -> None:
        """The same, and the user is there before each of these nights."""
        for _ in range(days // every):
            self.off(every)
            self.act()
            self.dark(jobs)

    def dark(self, jobs: Collection[str] = FADING) -> None:
        """One night."""
        self.night.now = self.clock.now
        for name in jobs:
            self.night.run(name)

    def written(self) -> None:
        """Have reads counted, and the activity of readers noted, as the server does every two seconds."""
        wired = self.tenant.server.wired
        self.tenant.server.run(wired._accesses.flush())
        self.tenant.server.run(wired.gateway.activity.flush())

    def put(self, memory: str, **columns: object) -> None:
        """Give columns of a memory other values."""
        assigned = ", ".join(f"{name} = %({name})s" for name in columns)
        self.tenant.rows(f"UPDATE memories SET {assigned} WHERE id = %(id)s", id=UUID(memory), **columns)

    def states(self, memories: Mapping[str, str], column: str = "state") -> dict[str, Any]:
        """A column of some memories, by their names."""
        return {name: state(self.tenant, each, column) for name, each in memories.items()}

    def rule(self, monkeypatch: pytest.MonkeyPatch, **changed: Any) -> None:  # noqa: ANN401 - of the rules
        """Let other rules be in force."""
        policies = self.tenant.server.wired.policies
        policy = replace(policies.current, lifecycle=replace(LifecycleRules(), **changed))
        monkeypatch.setattr(type(policies), "current", property(lambda _: policy))

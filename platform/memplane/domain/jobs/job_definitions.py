"""Background work: which jobs there are, when they are due, and how often one that fails is tried again."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

NIGHTLY = (
    "enrichment",
    *("sessions", "facts", "consolidation", "procedures", "insights", "reflections"),
    *("expiry", "proposals", "decay", "ttl", "layers", "size", "co_recall", "purge", "erasures", "seal"),
    *("reembed", "reconcile", "gc"),
)
"""The jobs that are done for a tenant as a whole, in the order of a night."""
SESSION_CLOSE = "session_close"
ON_DEMAND = (SESSION_CLOSE,)
"""Jobs that a write asks for, each run for one user; a run that is done is removed."""


class JobState(StrEnum):
    """Where a job stands."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    PARKED = "parked"
    CANCELLED = "cancelled"


LIVE = (JobState.WAITING, JobState.RUNNING)
"""States of a job that is still to come to an end by itself."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a job is due, again and again.

    Attributes:
        cron: as written: minute, hour, day of the month, month, day of the week; UTC.
        last: the latest moment that it names, at or before another.
    """

    cron: str
    last: Callable[[datetime], datetime] = field(compare=False, repr=False)


class Extraction(StrEnum):
    """How entities are looked for at night."""

    FAST = "fast"
    ACCURATE = "accurate"


@dataclass(frozen=True, slots=True)
class ModelRules:
    """What a language model may be asked for in a day, and what that costs.

    Attributes:
        tenant_tokens: the most tokens, read and written, for a tenant within a day (UTC); 0: it is never asked.
        user_tokens: likewise for each user.
        input_price: of a million tokens that it reads, in whatever currency the operator counts.
        output_price: of a million tokens that it writes.
    """

    tenant_tokens: int = 2_000_000
    user_tokens: int = 200_000
    input_price: float = 0.0
    output_price: float = 0.0

    def cost(self, input_tokens: int, output_tokens: int) -> float:
        """What so many tokens cost."""
        return (input_tokens * self.input_price + output_tokens * self.output_price) / 1_000_000


class FactMode(StrEnum):
    """How facts are drawn of a conversation that was closed."""

    RULES = "rules"
    HYBRID = "hybrid"
    LLM = "llm"


@dataclass(frozen=True, slots=True)
class FactRules:
    """How facts are drawn of a conversation that was closed.

    Attributes:
        mode: by rules alone, by rules and a model, or by a model alone.
        user_per_day: the most that a model draws of a user's words within a day (UTC).
    """

    mode: FactMode = FactMode.HYBRID
    user_per_day: int = 50


@dataclass(frozen=True, slots=True)
class WorkerRules:
    """How background work is done.

    Attributes:
        schedules: when each job is due; ``None`` for one that is switched off, which can still be run by hand.
        attempts: a job that fails so often without coming any further is parked.
        pause: before the second attempt; twice as long before each that follows.
        longest_pause: the most of that.
        model: what a language model may be asked for.
        entities: how entities are looked for: by rules alone, or with whatever models there are.
        facts: how facts are drawn of conversations.
        quiet: a conversation in which nothing was recorded for so long is closed when its user begins another one.
    """

    schedules: Mapping[str, Schedule | None] = field(default_factory=dict)
    attempts: int = 5
    pause: timedelta = timedelta(seconds=30)
    longest_pause: timedelta = timedelta(hours=1)
    model: ModelRules = ModelRules()
    entities: Extraction = Extraction.ACCURATE
    facts: FactRules = FactRules()
    quiet: timedelta = timedelta(minutes=10)

    def pause_after(self, attempts: int) -> timedelta:
        """How long a job waits that failed so often in a row."""
        return min(self.pause * (1 << min(max(attempts - 1, 0), 20)), self.longest_pause)

"""What callers say of the turns that they store."""

from dataclasses import dataclass
from datetime import datetime

from memplane.domain.memory import Role


@dataclass(frozen=True, slots=True)
class NewTurn:
    """What a caller says of a turn."""

    user_id: str
    thread_id: str
    role: Role
    text: str
    actor_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None
    event_time: datetime | None = None
    external_id: str | None = None
    auto_extract: bool = True

"""What callers say of the turns that they store."""

from dataclasses import dataclass
from datetime import datetime

from memplane.domain.identity.principal import KeyScope, Principal
from memplane.domain.language.time_zones import local
from memplane.domain.memory.memory import Role


@dataclass(frozen=True, slots=True)
class NewTurn:
    """What a caller says of a turn; ``vouched`` is False where an imported line says that nobody vouched for it.

    Attributes:
        time_zone: the zone or offset by which its relative dates are resolved; ``None``: UTC.
    """

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
    vouched: bool = True
    time_zone: str | None = None

    def local(self, moment: datetime) -> datetime:
        """A moment on the clock of the one who spoke."""
        return local(moment, self.time_zone)


def is_vouched(principal: Principal, role: Role, *, before: bool = True) -> bool:
    """Whether a turn counts as said by its speaker; what a person said needs the scope ``turns:user``.

    Args:
        principal: who records it.
        role: who spoke.
        before: what the line of an import says.
    """
    return role is not Role.USER or (before and KeyScope.USER_TURNS in principal.scopes)

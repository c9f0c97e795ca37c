"""When a user's memories were in use, and which days of an absence do not count towards their age."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Stretch:
    """A period in which a user was never away for longer than the policy counts.

    Attributes:
        last_at: on the day of its last activity.
        resumed_at: the first activity after it; ``None`` for the current stretch.
    """

    last_at: datetime
    resumed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Activity:
    """All stretches of a user; none for a user of whom no activity is known."""

    stretches: tuple[Stretch, ...] = ()

    def ages_since(self, used: datetime, now: datetime, away: timedelta) -> datetime:
        """The moment since which a memory would have aged as much if no day had been subtracted.

        Of each absence so many whole days (UTC) count; those beyond are subtracted, as far as the memory lived through
        them. A user without known activity counts as absent since the memory was used.

        Args:
            used: when the memory was used last.
            now: by when its age is asked for.
            away: so many days of an absence count.
        """
        if not self.stretches:
            return max(used, now - away)
        return used + sum((_subtracted(each, used, now, away) for each in self.stretches), timedelta())


def present_since(now: datetime, away: timedelta) -> datetime:
    """A user with activity since this moment is present; an earlier one is away, and does not age today."""
    return _midnight(now) - away


def stretches_of(moments: Iterable[datetime], away: timedelta) -> list[tuple[datetime, datetime]]:
    """The first and the last moment of each stretch that some moments of activity make, oldest first."""
    found: list[tuple[datetime, datetime]] = []
    for moment in sorted(moments):
        if found and found[-1][1] >= present_since(moment, away):
            found[-1] = (found[-1][0], moment)
        else:
            found.append((moment, moment))
    return found


def _subtracted(stretch: Stretch, used: datetime, now: datetime, away: timedelta) -> timedelta:
    begins = _midnight(stretch.last_at) + _DAY + away
    ends = now if stretch.resumed_at is None else min(_midnight(stretch.resumed_at), now)
    return max(ends - max(begins, used), timedelta())


def _midnight(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)

"""Time zones by which relative dates are resolved: IANA names, or the offset that a time came with."""

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from memplane.domain.errors import InvalidRequest

MAX_CHARS = 63
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+){0,2}")
_OFFSET = re.compile(r"([+-])(\d\d):(\d\d)")
_NOT_A_PLACE = frozenset({"localtime", "posixrules", "Factory"})
"""Files beside the zones, which name none."""


def time_zone(name: str) -> tzinfo:
    """The zone of an IANA name.

    Raises:
        Invalid: there is none of that name.
    """
    found = _zone(name)
    if found is None:
        raise InvalidRequest(
            f"time_zone: '{name[:MAX_CHARS]}' is not an IANA time zone such as Europe/Berlin", field="time_zone"
        )
    return found


@lru_cache(maxsize=1024)
def _zone(name: str) -> tzinfo | None:
    if len(name) > MAX_CHARS or not _NAME.fullmatch(name) or name in _NOT_A_PLACE:
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def offset_of(moment: datetime | None) -> str | None:
    """The offset that a time came with, such as ``+13:00``; ``None`` for UTC, and without a time."""
    offset = None if moment is None else moment.utcoffset()
    if not offset:
        return None
    minutes = round(offset.total_seconds() / 60)
    sign = "-" if minutes < 0 else "+"
    return f"{sign}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


def local(moment: datetime, name: str | None) -> datetime:
    """A time on the clock of a zone or an offset; on that of UTC where there is none, or it is not known here."""
    if name is None:
        return moment.astimezone(UTC)
    if parts := _OFFSET.fullmatch(name):
        offset = timedelta(hours=int(parts[2]), minutes=int(parts[3]))
        return moment.astimezone(timezone(-offset if parts[1] == "-" else offset))
    return moment.astimezone(_zone(name) or UTC)

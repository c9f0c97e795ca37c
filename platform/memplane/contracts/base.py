"""What every message has in common."""

import re
from datetime import UTC, date, datetime
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator

MAX_FIELDS = 100


class Message(BaseModel):
    """A message; an unknown field is an error, so that a typing mistake is not silently ignored."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True, frozen=True)


class Request(Message):
    """A message from a caller."""

    @model_validator(mode="before")
    @classmethod
    def _few_fields(cls, value: object) -> object:
        """Refuse at once what has far too many fields: telling of each one that is unknown would take seconds."""
        if isinstance(value, dict) and len(value) > MAX_FIELDS:
            raise ValueError(f"{len(value)} fields, at most {MAX_FIELDS}")
        return value


def _in_range(value: datetime) -> datetime:
    if not 2 <= value.year <= 9998:  # one year from both ends of the calendar, for the zone
        raise ValueError("the year must be 2 to 9998")
    return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)


_CALENDAR = re.compile(r"\d{4}-\d{2}-\d{2}")


def _of_calendar(value: object) -> object:
    """Refuse what would be read as seconds or milliseconds since 1970: which of the two, only its size would tell."""
    if isinstance(value, date) or (isinstance(value, str) and _CALENDAR.match(value)):
        return value
    raise ValueError("a time is written as RFC 3339 has it, such as 2025-07-01T09:30:00Z")


def _in_range_with_offset(value: datetime) -> datetime:
    _in_range(value)
    return value if value.tzinfo else value.replace(tzinfo=UTC)


Time = Annotated[datetime, BeforeValidator(_of_calendar), AfterValidator(_in_range)]
"""RFC 3339; a time without a zone is UTC."""

LocalTime = Annotated[datetime, BeforeValidator(_of_calendar), AfterValidator(_in_range_with_offset)]
"""The same, with the offset that it was given with."""

Name = Annotated[str, StringConstraints(min_length=1, max_length=255)]
"""A caller's own name for a user, thread, agent, run, actor or record."""

Owner = Annotated[str | None, BeforeValidator(lambda user: user or None)]
"""The user whom a record is about; null for none: it is shared."""

Category = Annotated[str, StringConstraints(min_length=1, max_length=63)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=100_000)]
Importance = Annotated[int, Field(ge=1, le=5, strict=True)]


class Problem(BaseModel):
    """An error, as RFC 9457 problem details."""

    model_config = ConfigDict(extra="allow", use_attribute_docstrings=True)

    type: str = "about:blank"
    title: str
    """The kind of problem, for people."""
    status: int
    """The HTTP status."""
    detail: str
    """What was wrong, where, and what to do."""
    code: str
    """Stable name of the problem, for programs."""

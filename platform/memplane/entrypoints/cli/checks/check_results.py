"""What a check of `memplane doctor` can come to."""

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """How a check came out."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found; the advice is for a problem or a warning."""

    check: str
    status: Status
    found: str
    advice: str = ""


class CheckSkipped(Exception):
    """What the check would look at is not there yet, as it may be."""


class Doubtful(Exception):
    """It works, with a limit that the operator should know."""

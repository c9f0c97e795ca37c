"""Possible conflicts: two memories that may contradict each other, though their words do not prove it."""

from enum import StrEnum

POSSIBLE_CONFLICT = "possible_conflict"
"""The relation between two memories that wait for a verdict."""
COMPATIBLE = "compatible"
"""The relation between two memories of which somebody decided that both hold."""


class ConflictVerdict(StrEnum):
    """What is decided about a possible conflict."""

    KEEP_BOTH = "keep_both"
    NEWER = "newer"
    OLDER = "older"

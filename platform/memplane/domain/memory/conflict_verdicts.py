"""Possible conflicts: two memories that may contradict each other, though their words do not prove it.

One is a relation between both. A verdict changes its kind and keeps its id.
"""

from collections.abc import Mapping
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

    @property
    def relation(self) -> str:
        """The kind of the relation once this is decided."""
        return _RELATIONS[self]


_RELATIONS: Mapping[ConflictVerdict, str] = {
    ConflictVerdict.KEEP_BOTH: COMPATIBLE,
    ConflictVerdict.NEWER: "newer_holds",
    ConflictVerdict.OLDER: "older_holds",
}
VERDICTS: Mapping[str, ConflictVerdict | None] = {
    POSSIBLE_CONFLICT: None,
    **{kind: verdict for verdict, kind in _RELATIONS.items()},
}
"""By kind of relation, what was decided; ``None`` while the conflict is open."""

"""What one text may be to another, and from which cosines it may be so."""

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """What the new text is to the old one."""

    SAME = "same"
    UPDATED = "updated"
    CONTRADICTED = "contradicted"
    RETRACTED = "retracted"
    SUSPECTED = "possible_conflict"
    RELATED = "related"
    UNRELATED = "unrelated"

    @property
    def supersedes(self) -> bool:
        """Whether the old text no longer holds."""
        return self in (Verdict.UPDATED, Verdict.CONTRADICTED, Verdict.RETRACTED)


@dataclass(frozen=True, slots=True)
class Bands:
    """Cosines from which a verdict may be given; measured for one embedding model.

    Attributes:
        auto: reworded with a misspelt word still counts as the same.
        update: a changed value updates the old text by its bare words.
        check: the same content words, or others of the same meaning, make the same fact; opposite ones a contradiction.
        fallback: a retraction takes effect, and whatever aligned words show clearly; below it, no old text is touched.
        link_min: two texts are related, whatever their words.
        shared_min: share of common content words (Jaccard, the user left out) from which two texts are related.
    """

    auto: float
    update: float
    check: float
    fallback: float
    link_min: float
    shared_min: float

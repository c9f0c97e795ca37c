"""What one text may be to another, and from which cosines it may be so."""

from dataclasses import dataclass
from enum import StrEnum


class ComparisonVerdict(StrEnum):
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
        return self in (ComparisonVerdict.UPDATED, ComparisonVerdict.CONTRADICTED, ComparisonVerdict.RETRACTED)


class Rule(StrEnum):
    """What decided a verdict.

    ``same_text``: nothing but spelling differs · ``words``: the content words of both · ``aligned_words``: words of
    one meaning or of opposite ones · ``reworded_value``: the value in other words · ``turned``: the same words the
    other way round · ``replaced_name``: one name in the place of another · ``both_may_hold`` and ``unproven``: the
    words look like a contradiction and do not prove it · ``similarity``: the meaning alone · ``shared_words``: enough
    words in common · ``none``.
    """

    SAME_TEXT = "same_text"
    WORDS = "words"
    ALIGNED = "aligned_words"
    REWORDED = "reworded_value"
    TURNED = "turned"
    REPLACED_NAME = "replaced_name"
    BOTH_MAY_HOLD = "both_may_hold"
    UNPROVEN = "unproven"
    SIMILARITY = "similarity"
    SHARED_WORDS = "shared_words"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict, and the rule that gave it."""

    verdict: ComparisonVerdict
    rule: Rule


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

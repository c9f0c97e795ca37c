"""What a new memory is to an old one of the same user and category: decided by rules, without any model call.

Words decide; the cosine of the embeddings only confirms them, because opposites and siblings (`likes`, `dislikes`;
`sister`, `brother`) stand close to each other in any embedding. In doubt two texts are related, never the same: a wrong
merge loses knowledge, a missed one only costs a line.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from memplane.domain.language.comparison.comparison_alignment import MAX_TRIED, Alignment, align
from memplane.domain.language.comparison.comparison_anchor import is_anchored
from memplane.domain.language.comparison.comparison_beside import may_both_hold
from memplane.domain.language.comparison.comparison_change import is_retracted, is_updated
from memplane.domain.language.comparison.comparison_denial import is_contradicted
from memplane.domain.language.comparison.comparison_parsing import ParsedStatement
from memplane.domain.language.comparison.comparison_proof import (
    ends_one_of_several,
    is_hypothetical,
    is_proven,
    names_replaced,
)
from memplane.domain.language.comparison.comparison_roles import (
    has_other_owner,
    has_other_verbs,
    is_crossed,
    is_doubly_denied,
    is_turned_round,
)
from memplane.domain.language.comparison.comparison_rules import verdict_of
from memplane.domain.language.comparison.comparison_same import is_apart, is_same, is_turned
from memplane.domain.language.comparison.comparison_verdicts import Bands, ComparisonVerdict, Judgement, Rule

__all__ = [
    "ANY_MODEL",
    "Bands",
    "ComparisonVerdict",
    "Judgement",
    "MergeRules",
    "ParsedStatement",
    "Rule",
    "compare",
    "compared_words",
    "judge",
]  # fmt: skip

_USER = frozenset({"user"})
MOST_WORDS = 12
"""Of the words that a history keeps of a comparison, on each side."""
ANY_MODEL = "*"
"""Names the bands of the embedding models that have none of their own."""


@dataclass(frozen=True, slots=True)
class MergeRules:
    """Bands by embedding model; ``"*"`` serves the models that are not named."""

    bands: Mapping[str, Bands]

    def bands_for(self, model: str) -> Bands:
        """The bands of a model, or those of the models that are not named."""
        found = self.bands.get(model)
        return self.bands[ANY_MODEL] if found is None else found


def compare(old: ParsedStatement, new: ParsedStatement, similarity: float, bands: Bands) -> ComparisonVerdict:
    """What the new text is to the old one: the verdict of :func:`judge`."""
    return judge(old, new, similarity, bands).verdict


def judge(old: ParsedStatement, new: ParsedStatement, similarity: float, bands: Bands) -> Judgement:
    """What the new text is to the old one, and by which rule.

    Args:
        old: the text that is stored.
        new: the text that comes in.
        similarity: cosine of their embeddings; 1 when there are none, so that words alone decide.
        bands: thresholds for the embedding model.
    """
    if similarity >= bands.fallback and not (old.reading.cut or new.reading.cut):
        lying = align(old.reading, new.reading)
        verdict, rule = verdict_of(old, new, similarity, bands), Rule.WORDS
        if verdict is None or _is_vetoed(verdict, lying):
            verdict, rule = _by_meaning(lying, similarity, bands), Rule.ALIGNED
        if verdict is ComparisonVerdict.UPDATED and similarity >= bands.check and _is_unchanged(lying):
            verdict, rule = ComparisonVerdict.SAME, Rule.REWORDED
        if verdict is ComparisonVerdict.SAME and is_turned(old.text, new.text):
            verdict, rule = ComparisonVerdict.RELATED, Rule.TURNED
        if verdict is None and names_replaced(lying) and is_proven(lying, ComparisonVerdict.UPDATED):
            verdict, rule = ComparisonVerdict.UPDATED, Rule.REPLACED_NAME
        found = None if verdict is None else Judgement(verdict, rule)
        if found is not None and found.verdict.supersedes:
            found = _proven(found, lying, old.text, new.text)
        if found is not None:
            return found
    if similarity >= bands.link_min:
        return Judgement(ComparisonVerdict.RELATED, Rule.SIMILARITY)
    common = len((old.keys & new.keys) - _USER)
    if common and common >= bands.shared_min * len((old.keys | new.keys) - _USER):
        return Judgement(ComparisonVerdict.RELATED, Rule.SHARED_WORDS)
    return Judgement(ComparisonVerdict.UNRELATED, Rule.NONE)


def compared_words(old: ParsedStatement, new: ParsedStatement) -> dict[str, list[str]]:
    """The content words by which two texts were compared: those of both, and those of each alone."""
    return {
        "common": _surfaces(new, old.keys & new.keys),
        "old": _surfaces(old, old.keys - new.keys),
        "new": _surfaces(new, new.keys - old.keys),
    }


def _surfaces(of: ParsedStatement, keys: AbstractSet[str]) -> list[str]:
    """Words as they are written, in their order."""
    return [token.surface for key, token in of.tokens.items() if key in keys][:MOST_WORDS]


def _proven(found: Judgement, lying: Alignment, old: str, new: str) -> Judgement | None:
    """A verdict that ends the old text, where the words prove it; else at most a suspicion."""
    verdict = found.verdict
    if is_hypothetical(old, new):
        return None
    if may_both_hold(lying, verdict, old, new):
        return Judgement(ComparisonVerdict.SUSPECTED, Rule.BOTH_MAY_HOLD) if is_anchored(lying) else None
    if is_proven(lying, verdict) and (verdict is ComparisonVerdict.UPDATED or not ends_one_of_several(lying, old)):
        return found
    return Judgement(ComparisonVerdict.SUSPECTED, Rule.UNPROVEN) if is_anchored(lying) else None


def _is_unchanged(lying: Alignment) -> bool:
    """Whether a value that looks like another one is the old one in other words: `k8s`, `Kubernetes`."""
    return lying.new.changed <= lying.old.changed and is_same(lying)


def _is_vetoed(verdict: ComparisonVerdict, lying: Alignment) -> bool:
    """Whether the aligned words show that a verdict of the bare words is wrong."""
    if verdict is ComparisonVerdict.SAME:
        return is_apart(lying) or is_crossed(lying) or has_other_owner(lying)
    if verdict is ComparisonVerdict.UPDATED:
        return lying.new.additive or (not lying.new.changed and (has_other_verbs(lying) or is_turned_round(lying)))
    return verdict is ComparisonVerdict.CONTRADICTED and is_doubly_denied(lying)


def _by_meaning(lying: Alignment, similarity: float, bands: Bands) -> ComparisonVerdict | None:
    """The verdict that aligned words give, if any."""
    if len(lying.lost) * len(lying.found) > MAX_TRIED:
        return None
    if similarity >= bands.check and is_same(lying):
        return ComparisonVerdict.SAME
    if is_updated(lying):
        return ComparisonVerdict.UPDATED
    if is_retracted(lying):
        return ComparisonVerdict.RETRACTED
    return ComparisonVerdict.CONTRADICTED if is_contradicted(lying) else None

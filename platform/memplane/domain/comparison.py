"""What a new memory is to an old one of the same user and category: decided by rules, without any model call.

Words decide; the cosine of the embeddings only confirms them, because opposites and siblings (`likes`, `dislikes`;
`sister`, `brother`) stand close to each other in any embedding. In doubt two texts are related, never the same: a wrong
merge loses knowledge, a missed one only costs a line.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from memplane.domain.comparison_alignment import MAX_TRIED, Alignment, align
from memplane.domain.comparison_anchor import is_anchored
from memplane.domain.comparison_beside import may_both_hold
from memplane.domain.comparison_change import is_retracted, is_updated
from memplane.domain.comparison_denial import is_contradicted
from memplane.domain.comparison_parsing import Statement
from memplane.domain.comparison_proof import ends_one_of_several, is_hypothetical, is_proven, names_replaced
from memplane.domain.comparison_roles import (
    has_other_owner,
    has_other_verbs,
    is_crossed,
    is_doubly_denied,
    is_turned_round,
)
from memplane.domain.comparison_rules import verdict_of
from memplane.domain.comparison_same import is_apart, is_same, is_turned
from memplane.domain.comparison_verdicts import Bands, Verdict

__all__ = ["ANY_MODEL", "Bands", "Compared", "MergeRules", "Statement", "Verdict", "compare", "compared_words"]

_USER = frozenset({"user"})
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


@dataclass(frozen=True, slots=True)
class Compared:
    """The words by which two texts are compared, as they were written, lower-case.

    Attributes:
        slot: what both say.
        old: what only the old text says.
        new: what only the new text says.
    """

    slot: tuple[str, ...]
    old: tuple[str, ...]
    new: tuple[str, ...]


def compared_words(old: str, new: str) -> Compared:
    """The words that two texts share, and those in which they differ."""
    lying = align(Statement.of(old).reading, Statement.of(new).reading)
    return Compared(
        tuple(match.new.low for match in sorted(lying.matches, key=lambda match: match.new.place)),
        tuple(term.low for term in lying.lost),
        tuple(term.low for term in lying.found),
    )


def compare(old: Statement, new: Statement, similarity: float, bands: Bands) -> Verdict:
    """What the new text is to the old one.

    Args:
        old: the text that is stored.
        new: the text that comes in.
        similarity: cosine of their embeddings; 1 when there are none, so that words alone decide.
        bands: thresholds for the embedding model.
    """
    if similarity >= bands.fallback and not (old.reading.cut or new.reading.cut):
        lying = align(old.reading, new.reading)
        verdict = verdict_of(old, new, similarity, bands)
        if verdict is None or _is_vetoed(verdict, lying):
            verdict = _by_meaning(lying, similarity, bands)
        if verdict is Verdict.UPDATED and similarity >= bands.check and _is_unchanged(lying):
            verdict = Verdict.SAME
        if verdict is Verdict.SAME and is_turned(old.text, new.text):
            verdict = Verdict.RELATED
        if verdict is None and names_replaced(lying) and is_proven(lying, Verdict.UPDATED):
            verdict = Verdict.UPDATED
        if verdict is not None and verdict.supersedes:
            verdict = _proven(verdict, lying, old.text, new.text)
        if verdict is not None:
            return verdict
    if similarity >= bands.link_min:
        return Verdict.RELATED
    common = len((old.keys & new.keys) - _USER)
    if common and common >= bands.shared_min * len((old.keys | new.keys) - _USER):
        return Verdict.RELATED
    return Verdict.UNRELATED


def _proven(verdict: Verdict, lying: Alignment, old: str, new: str) -> Verdict | None:
    """A verdict that ends the old text, where the words prove it; else at most a suspicion."""
    if is_hypothetical(old, new):
        return None
    if may_both_hold(lying, verdict, old, new):
        return Verdict.SUSPECTED if is_anchored(lying) else None
    if is_proven(lying, verdict) and (verdict is Verdict.UPDATED or not ends_one_of_several(lying, old)):
        return verdict
    return Verdict.SUSPECTED if is_anchored(lying) else None


def _is_unchanged(lying: Alignment) -> bool:
    """Whether a value that looks like another one is the old one in other words: `k8s`, `Kubernetes`."""
    return lying.new.changed <= lying.old.changed and is_same(lying)


def _is_vetoed(verdict: Verdict, lying: Alignment) -> bool:
    """Whether the aligned words show that a verdict of the bare words is wrong."""
    if verdict is Verdict.SAME:
        return is_apart(lying) or is_crossed(lying) or has_other_owner(lying)
    if verdict is Verdict.UPDATED:
        return lying.new.additive or (not lying.new.changed and (has_other_verbs(lying) or is_turned_round(lying)))
    return verdict is Verdict.CONTRADICTED and is_doubly_denied(lying)


def _by_meaning(lying: Alignment, similarity: float, bands: Bands) -> Verdict | None:
    """The verdict that aligned words give, if any."""
    if len(lying.lost) * len(lying.found) > MAX_TRIED:
        return None
    if similarity >= bands.check and is_same(lying):
        return Verdict.SAME
    if is_updated(lying):
        return Verdict.UPDATED
    if is_retracted(lying):
        return Verdict.RETRACTED
    return Verdict.CONTRADICTED if is_contradicted(lying) else None

"""The verdict on two sentences, for tests of the comparison."""

from memplane.domain.language.comparison.comparison import Bands, ComparisonVerdict, ParsedStatement, compare

BANDS = Bands(auto=0.6, update=0.25, check=0.2, fallback=0.1, link_min=0.3, shared_min=0.1)


def verdict(old: str, new: str, similarity: float = 0.9) -> ComparisonVerdict:
    """What the new sentence is to the old one."""
    return compare(ParsedStatement.of(old), ParsedStatement.of(new), similarity, BANDS)

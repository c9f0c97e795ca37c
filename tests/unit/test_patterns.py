"""No regular expression grows faster than its text, also where none of its callers bounds what it is given."""

import re
from collections.abc import Iterable

import pytest

from support.growing import Growth, Make, grammar, grown, growth, timed
from support.patterns import patterns

SIZE = 16_000


def grows(pattern: re.Pattern[str], texts: Iterable[tuple[str, Make]]) -> dict[str, Growth]:
    """The texts on which a search for a pattern grows faster than they do."""
    measured = {text: growth(timed(pattern.search), make, SIZE) for text, make in texts}
    return {text: each for text, each in measured.items() if not each.is_linear}


@pytest.mark.parametrize("module", patterns())
def test_a_search_grows_as_its_text_does(module: str) -> None:
    texts, found = grown(list(patterns()).index(module), 12), dict[str, str]()
    for where, pattern in patterns()[module].items():
        found |= {f"{where}, {text}": str(each) for text, each in grows(pattern, texts).items()}
    assert found == {}


def test_all_patterns_are_found() -> None:
    found = patterns()
    assert sum(map(len, found.values())) > 400
    assert "_TOKEN" in found["memplane.domain.language.comparison.comparison_words"]


@pytest.mark.parametrize(
    ("pattern", "text"), [(r"\s+$", "spaces, then an end"), (r"\d[\w.]* or more", "digits"), (r"[\w.+-]+@\w+", "stops")]
)
def test_one_that_grows_faster_is_found(pattern: str, text: str) -> None:
    """The control."""
    texts = [(name, make) for name, make in grammar() if name == text]
    assert list(grows(re.compile(pattern), texts)) == [text]

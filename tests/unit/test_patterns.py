"""No regular expression grows faster than its text, also where none of its callers bounds what it is given."""

import re

import pytest

from support.growing import Growth, Make, grown, growth, timed
from support.patterns import patterns

SIZE = 16_000


def grows(pattern: re.Pattern[str], number: int, size: int = SIZE) -> dict[str, Growth]:
    """The texts on which a search for a pattern grows faster than they do."""
    texts: list[tuple[str, Make]] = grown(number, 12)
    measured = {text: growth(timed(pattern.search), make, size) for text, make in texts}
    return {text: each for text, each in measured.items() if not each.is_linear}


@pytest.mark.parametrize("module", patterns())
def test_a_search_grows_as_its_text_does(module: str) -> None:
    number, found = list(patterns()).index(module), dict[str, str]()
    for where, pattern in patterns()[module].items():
        found |= {f"{where}, {text}": str(each) for text, each in grows(pattern, number).items()}
    assert found == {}


def test_all_patterns_are_found() -> None:
    found = patterns()
    assert sum(map(len, found.values())) > 400
    assert "_TOKEN" in found["memplane.domain.comparison_words"]


@pytest.mark.parametrize("pattern", [r"\s+$", r"\d[\w.]* or more", r"[\w.+-]+@\w+"])
def test_one_that_grows_faster_is_found(pattern: str) -> None:
    """The control."""
    texts = {text for number in range(12) for text in grows(re.compile(pattern), number)}
    assert texts

"""No regular expression grows faster than its text, also where none of its callers bounds what it is given."""

import re
from collections.abc import Mapping

import pytest

from support.growing import NOISE, Growth, Make, grown, growth, timed
from support.patterns import patterns

SIZE = 16_000
CAPPED: Mapping[str, int] = {}
"""Patterns that grow faster, and the characters that their callers give them at most."""


def grows(pattern: re.Pattern[str], number: int, size: int = SIZE) -> dict[str, Growth]:
    """The texts on which a search for a pattern grows faster than they do."""
    texts: list[tuple[str, Make]] = grown(number, 12)
    measured = {text: growth(timed(pattern.search), make, size) for text, make in texts}
    return {text: each for text, each in measured.items() if not each.is_linear}


@pytest.mark.parametrize("module", patterns())
def test_a_search_grows_as_its_text_does(module: str) -> None:
    number, found = list(patterns()).index(module), {}
    for where, pattern in patterns()[module].items():
        if f"{module}.{where}" not in CAPPED:
            found |= {f"{where}, {text}": str(each) for text, each in grows(pattern, number).items()}
    assert found == {}


@pytest.mark.parametrize("named", CAPPED)
def test_what_grows_faster_takes_next_to_nothing_within_its_bound(named: str) -> None:
    module = next(each for each in patterns() if named.startswith(f"{each}."))
    pattern = patterns()[module][named.removeprefix(f"{module}.")]
    for _, make in grown(0, 1):
        assert min(timed(pattern.search)(make(CAPPED[named])) for _ in range(3)) <= NOISE


def test_all_patterns_are_found() -> None:
    found = patterns()
    assert sum(map(len, found.values())) > 400
    assert "_TOKEN" in found["memplane.domain.comparison_words"]


@pytest.mark.parametrize("pattern", [r"\s+$", r"\d[\w.]* or more", r"[\w.+-]+@\w+"])
def test_one_that_grows_faster_is_found(pattern: str) -> None:
    """The control."""
    texts = {text for number in range(12) for text in grows(re.compile(pattern), number)}
    assert texts

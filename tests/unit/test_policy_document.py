"""Whichever of the two YAML parsers reads a policy file, it says the same."""

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from memplane.adapters.policy import shipped_policies
from memplane.adapters.policy.document import parse
from memplane.adapters.policy.report import Report
from memplane.domain.errors import PolicyError
from unit.small_policy import SMALL

PIECES = [
    "\n",
    "- ",
    ": ",
    "{",
    "]",
    "*a",
    "&a ",
    "!!str ",
    "? ",
    "| ",
    "'",
    '"\\U',
    "#",
    "\t",
    "\x85",
    "\u2028",
    "---\n",
    "%",
]


def flat(node: object) -> object:
    """A node with all below it, and where each begins."""
    if isinstance(node, list | tuple):
        return [flat(each) for each in node]
    if isinstance(node, yaml.Node):
        return node.tag, node.start_mark.line, flat(node.value)
    return node


def read(text: str) -> tuple[object, str | None]:
    """What is in a text, and the problems with it."""
    report = Report()
    found = flat(parse("a.yaml", text.encode(), report))
    try:
        report.raise_if_any()
    except PolicyError as error:
        return found, str(error)
    return found, None


def both(text: str, patch: pytest.MonkeyPatch) -> list[tuple[object, str | None]]:
    found = [read(text)]
    with patch.context() as without:
        without.setattr(yaml, "__with_libyaml__", False)
        return [*found, read(text)]


@pytest.mark.parametrize("file", sorted(each.name for each in shipped_policies().glob("*.yaml")))
def test_what_is_shipped(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert yaml.__with_libyaml__
    fast, slow = both((shipped_policies() / file).read_text(encoding="utf-8"), monkeypatch)
    assert fast == slow
    assert fast[0] is not None


@settings(max_examples=400, deadline=None, derandomize=True, database=None)
@given(st.sampled_from(sorted(SMALL)), st.integers(0, 10_000), st.integers(0, 6), st.lists(st.sampled_from(PIECES)))
def test_what_was_spoilt(file: str, start: int, length: int, pieces: list[str]) -> None:
    text = SMALL[file]
    start %= len(text)
    with pytest.MonkeyPatch.context() as patch:
        fast, slow = both(text[:start] + "".join(pieces) + text[start + length :], patch)
    assert fast == slow

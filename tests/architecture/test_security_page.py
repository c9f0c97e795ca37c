"""The security page says of each claim how it was shown, and what it says is so."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from support.promises.breaks import BREAKS

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "security.md"
PROMISES, CLAIMS = "### The promises of the contract", "### The claims of this page"
HOW = {"break", "contrast", "break, contrast"}
FOLDERS = ("tests/acceptance", "tests/acceptance/leaks", "tests/unit", "tests/integration")
"""Where a test file lies that a row names without its folder."""
FEWEST_BREAKS = 9
"""Of so many of the contract's fourteen promises at least, the tests are shown to fail without the protection."""


@dataclass(frozen=True)
class Row:
    """What is claimed, the tests that show it, and how they do."""

    claim: str
    shown_by: str
    how: str

    @property
    def tests(self) -> list[str]:
        """Files and tests that it names."""
        return [each for each in re.findall(r"`([^`]+)`", self.shown_by) if not each.startswith("make ")]


def rows(page: str, heading: str) -> list[Row]:
    """The rows of the table under a heading."""
    lines = page.split(heading, 1)[1].split("\n\n", 2)[1].splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    assert all(len(each) == 3 for each in cells), [each for each in cells if len(each) != 3]
    return [Row(*each) for each in cells]


@cache
def marked_in(file: Path) -> dict[str, bool]:
    """The tests of a file as pytest names them; whether each is marked as a break."""
    found: dict[str, bool] = {}

    def collect(body: list[ast.stmt], within: str = "") -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                collect(node.body, f"{within}{node.name}::")
            elif isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                marks = {ast.unparse(each) for each in node.decorator_list}
                found[f"{within}{node.name}"] = "pytest.mark.breaks" in marks

    collect(ast.parse(file.read_text(encoding="utf-8")).body)
    return found


def files_of(named: str) -> list[Path]:
    """The files that a name stands for: a path, a name without its folder, or a folder."""
    path = named.partition("::")[0]
    found = [ROOT / folder / path for folder in ("", *FOLDERS) if (ROOT / folder / path).exists()]
    return [each for place in found[:1] for each in ([place] if place.is_file() else sorted(place.rglob("test_*.py")))]


def wrong(row: Row) -> Iterator[str]:
    """What a row says that is not so."""
    if row.how not in HOW:
        yield f"{row.claim}: shown by {row.how!r}"
    if not row.tests:
        yield f"{row.claim}: names no test"
    broken = False
    for named in row.tests:
        files, test = files_of(named), named.partition("::")[2]
        if not files:
            yield f"{named}: no such file"
        for file in files:
            tests = marked_in(file)
            if test and test not in tests:
                yield f"{named}: no such test"
            broken |= tests.get(test, False) if test else any(tests.values())
    if row.how in HOW and broken is not ("break" in row.how):
        yield f"{row.claim}: shown by {row.how}, its tests {'have a break' if broken else 'have none'}"


@pytest.fixture(scope="module")
def page() -> str:
    return PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("heading", [PROMISES, CLAIMS])
def test_every_row_names_tests_that_there_are_and_says_how_they_show_it(page: str, heading: str) -> None:
    assert [fault for row in rows(page, heading) for fault in wrong(row)] == []


def test_every_promise_has_a_row_and_most_a_break(page: str) -> None:
    numbered = {int(found[1]): row for row in rows(page, PROMISES) if (found := re.match(r"(\d+)\. ", row.claim))}
    assert list(numbered) == list(range(1, 15))
    assert sum("break" in row.how for row in numbered.values()) >= FEWEST_BREAKS
    shared = {number for number, row in numbered.items() if "tests/acceptance/test_breaks.py" in row.shown_by}
    assert shared == {broken.promise for broken in BREAKS}


@pytest.mark.parametrize(
    ("said", "instead", "fault"),
    [
        ("test_derived.py::TestGoes", "test_derived.py::TestCame", "no such test"),
        ("test_jobs.py::TestOnce", "test_nights.py::TestOnce", "no such file"),
        ("again_has_one_effect` | break |", "again_has_one_effect` | proof |", "shown by 'proof'"),
        ("of every index | `tests", "of every index | `tests/acceptance/test_crash.py`, `tests", "have a break"),
        (
            "`tests/acceptance/test_breaks.py::test_a_break_is_noticed`, `tests/acceptance/test_filters.py",
            "`tests/acceptance/test_filters.py",
            "have none",
        ),
    ],
)
def test_a_row_that_says_what_is_not_so_is_found(page: str, said: str, instead: str, fault: str) -> None:
    """The control."""
    assert said in page
    faults = [each for row in rows(page.replace(said, instead, 1), PROMISES) for each in wrong(row)]
    assert len(faults) >= 1
    assert all(fault in each for each in faults)

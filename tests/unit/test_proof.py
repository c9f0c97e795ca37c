"""No supersession without proof: four hand-written lists of facts and changes, each fact with each change.

Their authors have seen neither the rules nor one another's lists. `SEAL` has the hashes from before the first run.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pytest

from memplane.domain.language.comparison.comparison import ComparisonVerdict, ParsedStatement, compare
from support.proof_cases import BESIDE, GAVE_WAY
from unit.verdicts import BANDS, verdict

LISTS = Path(__file__).resolve().parents[2] / "benchmarks" / "truth"
SETS = ("first", "second", "third", "fourth")
SIMILAR = 0.5
"""Above every band that lets words decide, so that nothing but words keeps two texts apart."""


@dataclass(frozen=True)
class Labelled:
    """A fact and a change: what the author says of them, and what the rules do."""

    label: str
    verdict: ComparisonVerdict
    fact: str
    change: str


def _rows(name: str, kind: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in (LISTS / name / f"{kind}.jsonl").read_text(encoding="utf-8").splitlines()]


@lru_cache
def pairs(name: str) -> tuple[Labelled, ...]:
    """Each fact of a set with each of its changes."""
    return tuple(_pairs(name))


def _pairs(name: str) -> Iterator[Labelled]:
    facts = [(row["id"], ParsedStatement.of(str(row["text"]))) for row in _rows(name, "facts")]
    for row in _rows(name, "changes"):
        change = ParsedStatement.of(str(row["text"]))
        for fact_id, fact in facts:
            label = next((each for each in ("overrules", "unclear") if fact_id in row[each]), "compatible")  # type: ignore[operator]  # a list
            yield Labelled(label, compare(fact, change, SIMILAR, BANDS), fact.text, change.text)


@pytest.mark.parametrize("name", [*SETS, "fifth"])
def test_the_lists_are_as_they_were_sealed(name: str) -> None:
    for line in (LISTS / name / "SEAL").read_text().splitlines():
        digest, file = line.split()
        assert hashlib.sha256((LISTS / name / file).read_bytes()).hexdigest() == digest


@pytest.mark.parametrize("name", SETS)
def test_nothing_compatible_is_overruled_or_merged(name: str) -> None:
    found = pairs(name)
    compatible = [each for each in found if each.label == "compatible"]
    assert len(compatible) > 9_000
    assert [each for each in compatible if each.verdict.supersedes or each.verdict is ComparisonVerdict.SAME] == []
    # the control: what is no longer so is recognised, if not always
    assert any(each.verdict.supersedes for each in found if each.label == "overrules")


@pytest.mark.parametrize("name", SETS)
def test_few_compatible_pairs_are_suspected(name: str) -> None:
    found = [each.verdict for each in pairs(name) if each.label == "compatible"]
    assert found.count(ComparisonVerdict.SUSPECTED) < len(found) / 100


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Ana is allergic to Ibuprofen.", "Ana moved to Berlin."),
        ("Tom has two children.", "Tom stopped smoking."),
        ("The user prefers aisle seats.", "The user allows two rounds of changes."),
        ("Ana takes ramipril in the morning.", "Ana takes ramipril in the evening."),
        ("Ana keeps her pay slips in a blue folder.", "Ana's pay was raised in March."),
        ("Ana works at Initech.", "The bank charged Ana a transfer fee."),
        ("The shop opens at 9.", "The shop has reduced hours in August."),
    ],
)
def test_a_shared_name_or_a_word_of_change_proves_nothing(old: str, new: str) -> None:
    verdict = compare(ParsedStatement.of(old), ParsedStatement.of(new), 0.9, BANDS)
    assert not verdict.supersedes
    assert verdict is not ComparisonVerdict.SAME


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Ana lives in Rome.", "Ana moved to Berlin."),
        ("Tom smokes.", "Tom stopped smoking."),
        ("Ana's salary is 4,000 euros a month.", "Ana's salary rose to 4,400 euros a month."),
        ("The shop opens at 9.", "The shop now opens at 10."),
        ("Ana's dentist is Dr Weber.", "Ana's dentist is now Dr Hahn."),
        ("The standup is on Tuesday.", "The standup was moved from Tuesday to Friday."),
    ],
)
def test_another_value_of_the_slot_proves_it(old: str, new: str) -> None:
    assert compare(ParsedStatement.of(old), ParsedStatement.of(new), 0.5, BANDS).supersedes


@pytest.mark.parametrize("principle", BESIDE)
def test_what_may_hold_beside_the_old_text_ends_nothing(principle: str) -> None:
    beside, changes = BESIDE[principle]
    for old, new in beside:
        for similarity in (0.15, 0.5, 0.95):
            found = verdict(old, new, similarity)
            assert not found.supersedes, (old, new)
            assert found is not ComparisonVerdict.SAME, (old, new)
    # the control: a change nearby is recognised
    assert [(old, new) for old, new in changes if not verdict(old, new).supersedes] == []


@pytest.mark.parametrize(("old", "new"), GAVE_WAY)
def test_what_is_said_to_have_given_way_is_ended(old: str, new: str) -> None:
    assert verdict(old, new).supersedes


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Ben uses Vim.", "Ben switched from Vim to VS Code for Java."),
        ("Ana's doctor trained in Rome.", "Ana's doctor moved from Rome to Paris."),
        ("The piano is in the hall.", "The piano stool was moved to the attic."),
        ("Ana is in a relationship with Tom.", "Ana is not in a relationship with Ben anymore."),
        ("The user wants to learn Japanese.", "The user gave up learning Spanish."),
    ],
)
def test_what_gave_way_elsewhere_ends_nothing(old: str, new: str) -> None:
    assert not verdict(old, new).supersedes

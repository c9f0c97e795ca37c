"""``merge.yaml``: what is read, what is refused, and which bands serve which model."""

import json
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from memplane.adapters.policy import shipped_policies
from memplane.adapters.policy.document import parse
from memplane.adapters.policy.merge import read_merge
from memplane.adapters.policy.report import Report
from memplane.adapters.policy.value import Value
from memplane.domain.errors import PolicyError
from memplane.domain.language.comparison.comparison import ANY_MODEL, Bands, MergeRules
from unit.verdicts import BANDS


def test_rules_serve_unnamed_models_with_the_fallback() -> None:
    other = Bands(1, 1, 1, 1, 1, 1)
    rules = MergeRules({ANY_MODEL: other, "named": BANDS})
    assert rules.bands_for("named") is BANDS
    assert rules.bands_for("unnamed") is other


def read(text: str) -> tuple[MergeRules, list[str]]:
    report = Report()
    node = parse("merge.yaml", text.encode(), report)
    rules = read_merge(Value(report=report, file="merge.yaml", key="", line=1, node=node))
    try:
        report.raise_if_any()
    except PolicyError as error:
        return rules, error.detail.splitlines()
    return rules, []


GOOD = """bands:
  "*":
    auto: 0.9
    update: 0.5
    check: 0.4
    fallback: 0.2
    link_min: 0.3
    shared_min: 0.2
"""


def shipped() -> Path:
    return shipped_policies() / "merge.yaml"


def schema() -> Draft202012Validator:
    return Draft202012Validator(json.loads((shipped_policies() / "schema" / "merge.schema.json").read_text()))


def test_the_file_is_read() -> None:
    assert read(GOOD) == (MergeRules({ANY_MODEL: Bands(0.9, 0.5, 0.4, 0.2, 0.3, 0.2)}), [])


def test_the_shipped_file_is_right() -> None:
    text = shipped().read_text(encoding="utf-8")
    rules, problems = read(text)
    assert not problems
    assert {ANY_MODEL, "wordllama-256"} <= set(rules.bands)
    assert text.splitlines()[0] == "# yaml-language-server: $schema=./schema/merge.schema.json"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("update: 0.5", "update: 0.95", "merge.yaml:4: bands.*.update: 0.95 is more than auto, 0.9"),
        ("fallback: 0.2", "fallback: 0.41", "merge.yaml:6: bands.*.fallback: 0.41 is more than check, 0.4"),
        ("link_min: 0.3", "link_min: 1", "merge.yaml:7: bands.*.link_min: 1 is more than auto, 0.9"),
        ("check: 0.4", "chek: 0.4", "merge.yaml:5: bands.*.chek: unknown key"),
        ("    shared_min: 0.2\n", "", "shared_min: missing"),
        ("auto: 0.9", "auto: 1.1", "merge.yaml:3: bands.*.auto: expected a number from 0 to 1"),
        ('"*"', "wordllama-256", "merge.yaml:1: bands.*: missing"),
    ],
)
def test_a_mistake_is_told_with_its_place(old: str, new: str, told: str) -> None:
    assert GOOD.count(old) == 1
    _, problems = read(GOOD.replace(old, new))
    assert any(told in problem for problem in problems), problems


def test_the_schema_accepts_what_is_right() -> None:

    schema().check_schema(schema().schema)
    assert schema().is_valid(yaml.safe_load(GOOD))
    assert schema().is_valid(yaml.safe_load(shipped().read_text(encoding="utf-8")))
    assert not schema().is_valid(yaml.safe_load(GOOD.replace("check", "chek")))

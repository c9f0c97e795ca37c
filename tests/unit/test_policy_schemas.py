"""The JSON Schemas that editors use: right in themselves, and of one mind with the loader."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from memplane.adapters.policy import KNOWN_FILES, load_policy, shipped_policies
from memplane.domain.errors import PolicyError
from memplane.domain.memory.memory import MemoryType, Visibility
from memplane.domain.policy.policy import ContextMode, RankingMethod, Trust
from memplane.domain.privacy.pii import Pii
from memplane.domain.privacy.screening import Screening
from unit.small_policy import (
    CATEGORIES,
    CONSENT,
    LIFECYCLE,
    MERGE,
    RANKING,
    SMALL,
    TRUST,
    WORKERS,
    WRITING,
    write_small,
)


def schema_of(file: str) -> dict[str, Any]:
    """The schema that the file's first line names."""
    first = (shipped_policies() / file).read_text(encoding="utf-8").splitlines()[0]
    name = first.removeprefix("# yaml-language-server: $schema=")
    assert name == f"./schema/{file.removesuffix('.yaml')}.schema.json"
    schema: dict[str, Any] = json.loads((shipped_policies() / name).read_text(encoding="utf-8"))
    return schema


def accepts(file: str, text: str) -> bool:
    """Whether the schema accepts the text."""
    return Draft202012Validator(schema_of(file)).is_valid(yaml.safe_load(text))


def closed_objects(node: object) -> list[dict[str, Any]]:
    """Every description of a mapping in a schema, those in conditions left out."""
    if isinstance(node, list):
        return [found for item in node for found in closed_objects(item)]
    if not isinstance(node, dict):
        return []
    here = [node] if node.get("type") == "object" else []
    return here + [found for key, item in node.items() if key not in {"if", "allOf"} for found in closed_objects(item)]


@pytest.mark.parametrize("file", KNOWN_FILES)
def test_a_schema_is_right_and_strict(file: str) -> None:
    schema = schema_of(file)
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert closed_objects(schema)
    for node in closed_objects(schema):
        assert node["additionalProperties"] is False or "propertyNames" in node
        for key, item in node.get("properties", {}).items():
            assert "description" in item or "$ref" in item, f"{file}: {key} is not described"


@pytest.mark.parametrize("file", KNOWN_FILES)
def test_a_schema_accepts_the_shipped_file_and_the_small_one(file: str) -> None:
    assert accepts(file, (shipped_policies() / file).read_text(encoding="utf-8"))
    assert accepts(file, SMALL[file])


def test_the_schemas_name_what_the_domain_knows() -> None:
    categories = schema_of(CATEGORIES)["$defs"]
    assert categories["category"]["properties"]["context"]["enum"] == list(ContextMode)
    assert categories["allowlist"]["else"]["properties"]["trust"]["enum"] == list(Trust)
    assert categories["screening"]["propertyNames"]["enum"] == [*Pii, "*"]
    assert categories["screening"]["additionalProperties"]["enum"] == list(Screening)
    trust = schema_of(TRUST)
    assert trust["properties"]["levels"]["required"] == list(Trust)
    assert trust["$defs"]["level"]["properties"]["default_write"]["enum"] == [*Visibility, "none"]
    assert list(schema_of(WRITING)["properties"]["types"]["properties"]) == list(MemoryType)
    assert schema_of(RANKING)["$defs"]["profile"]["properties"]["method"]["enum"] == list(RankingMethod)


AGREED = [
    (CATEGORIES, "context: all", "context: rag", "needs a length"),
    (CATEGORIES, "context: all", "context: all, rag_length: 3", "length without effect"),
    (CATEGORIES, "context: all", "context: some", "unknown mode"),
    (CATEGORIES, "context: all", "contxt: all", "unknown key"),
    (CATEGORIES, "rag_length: 20", "rag_length: 0", "too small"),
    (CATEGORIES, "rag_length: 20", "rag_length: 1001", "too large"),
    (CATEGORIES, "rag_length: 20", "rag_length: many", "no number"),
    (CATEGORIES, "name: notes", "name: Notes", "no name"),
    (CATEGORIES, "[goals, tasks]", "[goals, goals]", "listed twice"),
    (CATEGORIES, "[goals, tasks]", "goals", "no list"),
    (CATEGORIES, "    write: []\n", "", "missing key"),
    (CATEGORIES, "    write: []", "    write:", "nothing for a list"),
    (CATEGORIES, "trust: inner", "trust: outer", "unknown level"),
    (CATEGORIES, "  guest:", "  Guest:", "no agent name"),
    (TRUST, "  public: {sees: [], default_write: none}\n", "", "missing level"),
    (TRUST, "default_write: shared", "default_write: private", "store not seen"),
    (TRUST, "default_write: shared", "default_write: no", "truth value"),
    (TRUST, "sees: [social]", "sees: [socials]", "unknown store"),
    (WRITING, "max_sentences: 2", "max_sentences: 2.5", "fraction"),
    (WRITING, "  semantic:", "  semantics:", "unknown type"),
    (WRITING, "subjects: true", "subjects: 'true'", "text for a truth value"),
    (WRITING, "[i, it's]", "[I]", "upper case"),
    (WRITING, "[i, it's]", "[you all]", "two words"),
    (WRITING, "[i, it's]", "[on]", "truth value for text"),
    (WRITING, "[i, it's]", "[it\u2019s]", "curly apostrophe"),
    (RANKING, "  default:", "  usual:", "no default"),
    (RANKING, "method: rrf", "method: calibrated", "constant without effect"),
    (RANKING, "method: rrf", "method: lexical", "constant without effect"),
    (RANKING, "method: rrf", "method: semantic", "constant without effect"),
    (RANKING, "rrf_k: 60", "weights: {}", "weights without effect"),
    (RANKING, "method: calibrated", "method: semantic", "weights without effect"),
    (RANKING, '"*":', "other:", "no weights for other models"),
    (RANKING, ", actor: 0.25", "", "missing weight"),
    (RANKING, "actor: 0.25", "actor: 101", "weight too large"),
    (RANKING, "actor: 0.25", "actor: 0.25, insight: 2", "raised insight"),
    (RANKING, "after: [0.5]", "after: [1.5]", "neighbour too large"),
    (RANKING, "after: [0.5]", f"after: {[1] * 11}", "too many neighbours"),
    (CATEGORIES, "turns:", "pii: {emial: redact}\nturns:", "unknown kind of personal data"),
    (CATEGORIES, "[city]", "[city], pii: {email: hide}", "unknown rule for personal data"),
    (CATEGORIES, "turns:", "pii: [email]\nturns:", "no mapping for personal data"),
    (CATEGORIES, "turns:", "extraction: [goals]\nturns:", "no mapping for extraction"),
    (CATEGORIES, "turns:", "extraction: {}\nturns:", "extraction without a list"),
    (CATEGORIES, "turns:", "extraction: {write: [goals], read: []}\nturns:", "unknown key of extraction"),
    (MERGE, "auto: 0.8,", "auto: 0.8, merge: 0.7,", "unknown key of bands"),
    (MERGE, "bands:", "models: {}\nbands:", "unknown key of the file"),
    (MERGE, '"*":', "other-model:", "no bands for other models"),
    (MERGE, "auto: 0.9", "auto: 1.1", "band above one"),
    (MERGE, "shared_min: 0.25", "shared_min: -0.1", "share below nothing"),
    (MERGE, ", link_min: 0.85", "", "missing band"),
    (MERGE, "check: 0.5,", "check: half,", "no number for a band"),
    (MERGE, "bands:", "bnds:", "missing bands"),
    (CONSENT, "sensitive: [city]", "sensitive: [city, city]", "field listed twice"),
    (CONSENT, "[tone]", "[Tone]", "no name of a field"),
    (CONSENT, "proposal_days: 7", "proposal_days: 0", "no days"),
    (CONSENT, "proposal_days: 7", "proposal_days: 366", "too many days"),
    (CONSENT, "turns: 2", "turns: 0", "no turn"),
    (CONSENT, "turns: 2", "turns: 1.5", "half a turn"),
    (CONSENT, "0.9", "1.1", "surer than sure"),
    (CONSENT, "proposal_days", "propsal_days", "unknown key of consent"),
    (CONSENT, "benign: [tone]\n", "", "missing benign fields"),
    (LIFECYCLE, "days: 60", "days: 0", "no days at all"),
    (LIFECYCLE, "importance_below: 3", "importance_below: 7", "no importance"),
    (LIFECYCLE, "importance_below: 3", "importance_below: 3, categories: {tasks: 7}", "no importance of a category"),
    (LIFECYCLE, "importance_below: 3", "importance_below: 3, categories: {Tasks: 4}", "no name of a category"),
    (LIFECYCLE, "purge_days: 30", "purge_days: 30\naway: {days: 0}", "no days of an absence"),
    (LIFECYCLE, "purge_days: 30", "purge_days: 30\naway: {}", "an absence without days"),
    (LIFECYCLE, "floor: 0.05", "floor: 1.5", "surer than sure, to go"),
    (LIFECYCLE, "capacity: 500", "capacity: 0", "no room at all"),
    (LIFECYCLE, "prune_percent: 10", "prune_percent: 101", "more than everything"),
    (LIFECYCLE, "purge_days: 30", "purge_days: 30\nhour: 4", "unknown key of the lifecycle"),
    (WORKERS, '"25 4 1 * *"', '"25 4 1 *"', "four fields"),
    (WORKERS, '"25 4 1 * *"', "25", "no cron at all"),
    (WORKERS, "gc: off", "gc: on", "on, but when"),
    (WORKERS, "gc: off", "gcc: off", "unknown job"),
    (WORKERS, "  gc: off\n", "", "a job left out"),
    (WORKERS, "attempts: 5", "attempts: 0", "never tried"),
    (WORKERS, "pause_seconds: 30\n", "pause_seconds: 0\n", "no pause"),
    (WORKERS, "attempts: 5", "attempts: 5\nsessions: {quiet_minutes: 0}", "never quiet"),
    (WORKERS, "attempts: 5", "attempts: 5\nsessions: {}", "quiet, but for how long"),
    (WORKERS, "attempts: 5", "attempts: 5\nsessions: {rest: 1}", "unknown key of conversations"),
]


@pytest.mark.parametrize(("file", "old", "new"), [case[:3] for case in AGREED], ids=[case[3] for case in AGREED])
def test_what_the_schema_refuses_the_loader_refuses_too(file: str, old: str, new: str, tmp_path: Path) -> None:
    text = SMALL[file]
    assert text.count(old) == 1
    write_small(tmp_path)
    load_policy(tmp_path)
    assert accepts(file, text)

    (tmp_path / file).write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(PolicyError):
        load_policy(tmp_path)
    assert not accepts(file, text.replace(old, new))

"""A spaCy model as an extractor: a pipeline that is made here and saved to a folder, as an operator names one."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from memplane.adapters.ner.choice import extractors_of
from memplane.adapters.ner.rules import RuleExtractor
from memplane.application.jobs.inference.llm_budget import LlmBudget
from memplane.domain.errors import SettingsError
from memplane.domain.language.enrichment import Span
from memplane.settings import Settings


def test_without_spacy_or_its_model_the_setting_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="MEMPLANE_ENTITY_MODEL"):
        extractors_of(Settings(entity_model=str(tmp_path / "absent")), _no_model())


def test_with_nothing_the_rules_look_alone() -> None:
    (rules,) = extractors_of(Settings(), _no_model())
    assert isinstance(rules, RuleExtractor)


def _no_model() -> LlmBudget:
    unused: Any = None
    return LlmBudget(None, lambda: None, unused, unused, unused)


class TestPipeline:
    """With the library."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        spacy = pytest.importorskip("spacy")
        made = spacy.blank("en")
        ruler = made.add_pipe("entity_ruler")
        ruler.add_patterns(
            [
                {"label": "PERSON", "pattern": "kolonda"},
                {"label": "GPE", "pattern": "graz"},
                {"label": "WORK_OF_ART", "pattern": "salt road"},
                {"label": "DATE", "pattern": "monday"},
            ]
        )
        made.to_disk(tmp_path / "pipeline")
        return tmp_path / "pipeline"

    def test_its_names(self, folder: Path) -> None:
        rules, found = extractors_of(Settings(entity_model=str(folder)), _no_model())
        assert isinstance(rules, RuleExtractor)
        texts = ["on monday kolonda read salt road in graz", "", "nothing"]
        told = asyncio.run(found.find("a tenant", "a user", texts))
        expected = [(10, 17, "person"), (23, 32, "name"), (36, 40, "place")]
        assert [list(spans) for spans in told.spans] == [
            [Span(start, end, kind, 0.7) for start, end, kind in expected], [], []
        ]  # fmt: skip

    def test_another_model_has_another_version(self, folder: Path) -> None:
        version = extractors_of(Settings(entity_model=str(folder)), _no_model())[1].version
        assert extractors_of(Settings(entity_model=str(folder)), _no_model())[1].version == version
        meta = folder / "meta.json"
        meta.write_text(meta.read_text().replace('"version":"', '"version":"1'))
        assert extractors_of(Settings(entity_model=str(folder)), _no_model())[1].version != version

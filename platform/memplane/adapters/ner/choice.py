"""Who looks for names at night: the rules, and whatever models the operator named."""

from memplane.adapters.ner.model import ModelExtractor
from memplane.adapters.ner.rules import RuleExtractor
from memplane.application.jobs.enrichment_job import Extractor
from memplane.application.jobs.inference.llm_budget import LlmBudget
from memplane.settings import Settings


def extractors_of(settings: Settings, thinking: LlmBudget) -> tuple[Extractor, ...]:
    """The extractors of the settings, the rules first.

    Raises:
        SettingsError: a spaCy model is named, and it or spaCy is not installed.
    """
    found: list[Extractor] = [RuleExtractor()]
    if settings.entity_model is not None:
        from memplane.adapters.ner.spacy_model import SpacyExtractor  # noqa: PLC0415 - when it is chosen

        found.append(SpacyExtractor(settings.entity_model))
    if thinking.name is not None:
        found.append(ModelExtractor(thinking))
    return tuple(found)

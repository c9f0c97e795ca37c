"""Presidio, when it is installed: its pattern recognisers, and a spaCy model if the operator has one.

Nothing here reaches the network: no model is downloaded, and the list of top-level domains is the one that comes with
its library. Presidio and spaCy are imported when :func:`presidio` is called, and not before.
"""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

from memplane.adapters.pii.union import KINDS, LANGUAGE, LOCATION, UnionFinder
from memplane.domain.errors import SettingsError

INSTALL = "pip install 'memplane[presidio]'"

_RECOGNIZERS = {
    "CREDIT_CARD": "CreditCardRecognizer",
    "IBAN_CODE": "IbanRecognizer",
    "IP_ADDRESS": "IpRecognizer",
    "PHONE_NUMBER": "PhoneRecognizer",
    "UK_NHS": "NhsRecognizer",
    "US_DRIVER_LICENSE": "UsLicenseRecognizer",
}
_TOKEN = re.compile(r"\w+|\W+")


class WordsEngine:
    """An engine for Presidio that knows words and nothing of them: what is needed to look for cues before a number."""

    def __init__(self, artifacts: Any) -> None:  # noqa: ANN401 - a class of a library that may be absent
        self._artifacts = artifacts

    def is_loaded(self) -> bool:
        """Whether it is ready: always, for there is nothing to load."""
        return True

    def get_supported_entities(self) -> list[str]:
        """What it finds by itself: nothing."""
        return []

    def get_supported_languages(self) -> list[str]:
        """The name that its words go by."""
        return [LANGUAGE]

    def is_stopword(self, word: str, language: str) -> bool:  # noqa: ARG002 - Presidio's signature
        """Whether a word says nothing."""
        return False

    def is_punct(self, word: str, language: str) -> bool:  # noqa: ARG002 - Presidio's signature
        """Whether this is what stands between words."""
        return not any(c.isalnum() for c in word)

    def process_text(self, text: str, language: str) -> Any:  # noqa: ANN401 - a class of a library that may be absent
        """The words of a text in lower case, and where they stand."""
        found = [(match[0], match.start()) for match in _TOKEN.finditer(text)]
        artifacts = self._artifacts(
            entities=[],
            tokens=[token for token, _ in found],
            tokens_indices=[start for _, start in found],
            lemmas=[token.lower() for token, _ in found],
            nlp_engine=self,
            language=language,
        )
        artifacts.keywords = frozenset(artifacts.keywords)  # it is asked for each word before each result
        return artifacts


def presidio(model: str | None = None) -> UnionFinder:
    """A finder that has Presidio beside the own patterns; its libraries are loaded here.

    Args:
        model: an installed spaCy model, by its package's name or its folder; none: patterns alone.

    Raises:
        SettingsError: Presidio is not installed, or the model is not.
    """
    try:
        analyzer = import_module("presidio_analyzer")
        predefined = import_module("presidio_analyzer.predefined_recognizers")
        engines = import_module("presidio_analyzer.nlp_engine")
        suffixes = import_module("tldextract").TLDExtract(suffix_list_urls=(), cache_dir=None)
    except ImportError as error:
        raise SettingsError(
            f"MEMPLANE_PII is 'presidio', but Presidio cannot be loaded ({error}); install it: {INSTALL}"
        ) from error
    engine = WordsEngine(engines.NlpArtifacts) if model is None else _model_engine(engines, model)
    emails = predefined.EmailRecognizer(supported_language=LANGUAGE)
    # the library's own way asks the network for the list of top-level domains
    emails.validate_result = lambda written: bool(suffixes(written).fqdn)
    patterns = sorted(KINDS.keys() - {"EMAIL_ADDRESS", LOCATION})
    recognizers = [
        emails,
        *(getattr(predefined, _recognizer_of(name))(supported_language=LANGUAGE) for name in patterns),
    ]
    if model is not None:
        recognizers.append(predefined.SpacyRecognizer(supported_language=LANGUAGE, supported_entities=[LOCATION]))
    registry = analyzer.RecognizerRegistry(recognizers=recognizers, supported_languages=[LANGUAGE])
    whole = analyzer.AnalyzerEngine(registry=registry, nlp_engine=engine, supported_languages=[LANGUAGE])
    return UnionFinder(whole, KINDS if model is not None else KINDS.keys() - {LOCATION})


def _recognizer_of(entity: str) -> str:
    """The class that recognises an entity: ``UsSsnRecognizer`` for ``US_SSN``."""
    return _RECOGNIZERS.get(entity) or "".join(part.capitalize() for part in entity.split("_")) + "Recognizer"


def _model_engine(engines: Any, model: str) -> Any:  # noqa: ANN401 - a library that may be absent
    """Presidio's engine on a spaCy model, which Presidio itself would download if it were missing."""
    spacy = import_module("spacy")
    if not spacy.util.is_package(model) and not Path(model).is_dir():
        raise SettingsError(
            f"MEMPLANE_PII_MODEL: there is no spaCy model '{model}': install it (`python -m spacy download NAME`), "
            "name a folder that holds one, or leave the setting out"
        )
    try:
        loaded = spacy.load(model)
    except (OSError, ValueError, ImportError) as error:
        raise SettingsError(f"MEMPLANE_PII_MODEL: the spaCy model '{model}' cannot be loaded: {error}") from error
    every = {label for labels in loaded.pipe_labels.values() for label in labels}
    known = engines.NerModelConfiguration().model_to_presidio_entity_mapping
    others = [label for label in every if known.get(label) != LOCATION]
    engine = engines.SpacyNlpEngine(
        models=[{"lang_code": LANGUAGE, "model_name": model}],
        ner_model_configuration=engines.NerModelConfiguration(labels_to_ignore=others),
    )
    engine.nlp = {LANGUAGE: loaded}
    return engine

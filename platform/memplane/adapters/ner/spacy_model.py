"""A spaCy model that the operator has installed, as an extractor; nothing is downloaded."""

import asyncio
import hashlib
import threading
from collections.abc import Iterator, Sequence
from importlib import import_module, util
from pathlib import Path
from typing import Any

from memplane.application.jobs.enrichment_job import MOST, ExtractorResult
from memplane.domain.errors import SettingsError
from memplane.domain.language.enrichment import Span

INSTALL = "pip install 'memplane[spacy]'"
SETTING = "MEMPLANE_ENTITY_MODEL"
CONFIDENCE = 0.7
"""As much as of the rules what the words around a name make likely."""
KINDS = {
    "PERSON": "person", "PER": "person", "ORG": "organisation", "GPE": "place", "LOC": "place", "FAC": "place",
    "PRODUCT": "name", "WORK_OF_ART": "name", "EVENT": "name", "MISC": "name",
}  # fmt: skip
"""What spaCy's labels are here; dates, numbers, languages and peoples are no entities."""
_MAX_CHARS = 20_000


class SpacyExtractor:
    """Finds names with a pipeline that is loaded when it is needed first, in a thread of its own.

    Args:
        model: an installed spaCy model, by its package's name or its folder.

    Raises:
        SettingsError: spaCy is not installed, or there is no such model.
    """

    most = MOST
    thinks = False

    def __init__(self, model: str) -> None:
        if util.find_spec("spacy") is None:
            raise SettingsError(f"{SETTING} is set, but spaCy is not installed; install it: {INSTALL}")
        found = _meta(model)
        if found is None:
            raise SettingsError(
                f"{SETTING}: there is no spaCy model '{model}': install it (`python -m spacy download NAME`), name a"
                " folder that holds one, or leave the setting out"
            )
        self._model = model
        self._version = f"spacy/{Path(model).name}:{hashlib.sha256(found).hexdigest()[:12]}"
        self._pipeline: Any = None
        self._lock = threading.Lock()

    @property
    def version(self) -> str:
        """Which model, and the digits of what it says of itself."""
        return self._version

    async def find(self, tenant: str, user_id: str, texts: Sequence[str]) -> ExtractorResult:  # noqa: ARG002 - of the port
        """The names in each text.

        Raises:
            SettingsError: the model cannot be loaded.
        """
        return ExtractorResult(await asyncio.to_thread(self._found, texts))

    def _found(self, texts: Sequence[str]) -> list[list[Span]]:
        with self._lock:
            if self._pipeline is None:
                self._pipeline = self._loaded()
            documents = self._pipeline.pipe(text[:_MAX_CHARS] for text in texts)
            return [list(_spans(document)) for document in documents]

    def _loaded(self) -> Any:  # noqa: ANN401 - of a library that may be absent
        spacy = import_module("spacy")
        try:
            return spacy.load(self._model)
        except (OSError, ValueError, ImportError) as error:
            raise SettingsError(f"{SETTING}: the spaCy model '{self._model}' cannot be loaded: {error}") from error


def _spans(document: Any) -> Iterator[Span]:  # noqa: ANN401 - as above
    for entity in document.ents:
        kind = KINDS.get(entity.label_)
        if kind is not None:
            yield Span(entity.start_char, entity.end_char, kind, CONFIDENCE)


def _meta(model: str) -> bytes | None:
    """What a model says of itself, if it is there."""
    folder = Path(model)
    if not folder.is_dir():
        spec = util.find_spec(model) if model.isidentifier() else None
        if spec is None or spec.origin is None:
            return None
        folder = Path(spec.origin).parent
    file = folder / "meta.json"
    return file.read_bytes() if file.is_file() else None

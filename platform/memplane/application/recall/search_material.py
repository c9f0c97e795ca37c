"""What makes texts findable, a question ready for the search, and what a search finds."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from memplane.domain.errors import EmbeddingMismatch
from memplane.domain.language.terms import Terms
from memplane.domain.ranking.embedding_models import EmbeddingModel
from memplane.domain.ranking.signals import Signals

Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class TextVectors:
    """A text's vectors, by the models that may be in force when they are used; ``None`` where one finds nothing.

    Attributes:
        by_model: by the models' keys, the process's own first.
    """

    by_model: Mapping[str, Vector | None]

    def of(self, model: EmbeddingModel) -> Vector | None:
        """The vector of a model.

        Raises:
            EmbeddingMismatch: this process does not run it.
        """
        if model.key not in self.by_model:
            raise EmbeddingMismatch(
                f"this tenant's embedding model was or is being changed to {model}, which this process does not run: "
                f"name it by MEMPLANE_NEXT_EMBEDDING_MODEL, or MEMPLANE_EMBEDDING_MODEL, and start the process again"
            )
        return self.by_model[model.key]


Embedded = TextVectors | Vector | None
"""Vectors by several models, or a single one of the model in force, whichever that is."""


def vector_of(embedded: Embedded, model: EmbeddingModel | None) -> Vector | None:
    """The vector of a model; ``None`` for the model is that of a tenant which was never used.

    Raises:
        EmbeddingMismatch: this process does not run the model.
    """
    if not isinstance(embedded, TextVectors):
        return embedded
    return next(iter(embedded.by_model.values())) if model is None else embedded.of(model)


@dataclass(frozen=True, slots=True)
class SearchMaterial:
    """What makes a text findable: its terms and its embedding."""

    terms: Terms
    embedding: Embedded

    def vector(self, model: EmbeddingModel | None) -> Vector | None:
        """Its vector by a model.

        Raises:
            EmbeddingMismatch: this process does not run it.
        """
        return vector_of(self.embedding, model)


@dataclass(frozen=True, slots=True)
class Query:
    """A question, ready for the search statements.

    Attributes:
        terms: its terms.
        words: its words in lower case, for names.
        embedding: its vectors, or ``None``.
        names: keys of the entities that it may name; none where they do not matter.
    """

    terms: Terms
    words: tuple[str, ...]
    embedding: Embedded
    names: tuple[str, ...] = ()

    def by(self, model: EmbeddingModel | None) -> "Query":
        """The same with the vector of one model alone.

        Raises:
            EmbeddingMismatch: this process does not run it.
        """
        return replace(self, embedding=vector_of(self.embedding, model))

    @property
    def vector(self) -> Vector | None:
        """Its vector, once a model is chosen."""
        return vector_of(self.embedding, None)


class UnitIds(Protocol):
    """The ids of every unit in scope."""

    @property
    def packed(self) -> NDArray[np.void]:
        """All of them, 16 bytes each."""
        ...

    def followed_by(self, other: "UnitIds") -> "UnitIds":
        """These, and then others."""
        ...

    def __len__(self) -> int: ...

    def __getitem__(self, place: int) -> UUID: ...

    def places(self, wanted: bytes) -> NDArray[np.intp]:
        """Where each of some ids of 16 bytes stands, -1 for those that are not in scope."""
        ...


@dataclass(frozen=True, slots=True)
class Candidates:
    """Every unit in scope, with its raw signals; ``ids[i]`` belongs to row ``i`` of the signals.

    Attributes:
        ids: of the units.
        signals: of the units.
        model: by which similarity was measured; ``None`` for a tenant that was never used.
    """

    ids: UnitIds
    signals: Signals
    model: EmbeddingModel | None = None

    def followed_by(self, other: "Candidates") -> "Candidates":
        """These units, and then others that were measured for the same query."""
        if not len(other.ids):
            return self
        return replace(self, ids=self.ids.followed_by(other.ids), signals=self.signals.followed_by(other.signals))

"""Which embedding model a tenant's vectors are of, and how another one takes its place without a pause.

Each row has room for two vectors. One of the two columns is in force: questions are compared with it alone. A change
fills the other one, for every row that is there and with every write, and the two change places in one transaction;
then what is in force no longer is cleared.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from memplane.domain.errors import EmbeddingMismatch, StateConflict


class Column(StrEnum):
    """Where a row has a vector."""

    FIRST = "embedding"
    SECOND = "embedding_2"

    @property
    def other(self) -> "Column":
        """The other of the two."""
        return Column.SECOND if self is Column.FIRST else Column.FIRST


class Phase(StrEnum):
    """How far a change has come."""

    FILLING = "filling"
    CLEARING = "clearing"


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """What vectors are of: those of two models cannot be compared.

    Attributes:
        name: as ``ranking.yaml`` and ``merge.yaml`` call it.
        dimensions: length of a vector.
        fingerprint: what tells it from another model of the same name; ``None`` where the name says it all.
    """

    name: str
    dimensions: int
    fingerprint: str | None = None

    @property
    def key(self) -> str:
        """What tells it from every other model."""
        return f"{self.name}/{self.dimensions}/{self.fingerprint or ''}"

    def __str__(self) -> str:
        files = f", files {self.fingerprint}" if self.fingerprint else ""
        return f"{self.name} ({self.dimensions} dimensions{files})"

    def as_json(self) -> dict[str, object]:
        """As it is recorded."""
        found: dict[str, object] = {"model": self.name, "dimensions": self.dimensions}
        return found if self.fingerprint is None else found | {"fingerprint": self.fingerprint}

    @classmethod
    def of(cls, value: object) -> "EmbeddingModel":
        """As it was recorded.

        Raises:
            EmbeddingMismatch: it is a record of another form.
        """
        if isinstance(value, Mapping):
            name, dimensions, fingerprint = (value.get(each) for each in ("model", "dimensions", "fingerprint"))
            if isinstance(name, str) and isinstance(dimensions, int) and isinstance(fingerprint, str | None):
                return cls(name, dimensions, fingerprint)
        raise EmbeddingMismatch(f"this tenant's memories were embedded by {value}, which this version cannot read")


@dataclass(frozen=True, slots=True)
class EmbeddingChange:
    """A change under way.

    Attributes:
        phase: how far it has come.
        model: whose vectors the other column is filled with, or is cleared of.
    """

    phase: Phase
    model: EmbeddingModel


@dataclass(frozen=True, slots=True)
class InForce:
    """What a tenant's vectors are of.

    Attributes:
        model: of the column in force; ``None`` until the tenant is used for the first time.
        column: the column in force.
        change: under way, or none.
    """

    model: EmbeddingModel | None = None
    column: Column = Column.FIRST
    change: EmbeddingChange | None = None

    @property
    def write_models(self) -> Mapping[Column, EmbeddingModel | None]:
        """What a write stores a vector of, by column: while one is filled, both."""
        if self.change is None or self.change.phase is Phase.CLEARING:
            return {self.column: self.model}
        return {self.column: self.model, self.column.other: self.change.model}

    def begin_change(self, model: EmbeddingModel) -> "InForce":
        """The same with a change to a model under way.

        Raises:
            Conflict: there is one, or the model is in force already.
        """
        if self.change is not None:
            raise StateConflict(
                f"a change of the embedding model is under way ({self.change.phase} {self.change.model}): "
                f"wait until it is done, or cancel it"
            )
        if model == self.model:
            raise StateConflict(f"{model} is in force already")
        return replace(self, change=EmbeddingChange(Phase.FILLING, model))

    def switch(self) -> "InForce":
        """The other column in force, and the one that was to be cleared."""
        change = self._filling()
        return InForce(change.model, self.column.other, None if self.model is None else _clearing(self.model))

    def cancel_change(self) -> "InForce":
        """What was filled is to be cleared.

        Raises:
            Conflict: nothing is being filled: a change that has switched cannot be taken back.
        """
        return replace(self, change=_clearing(self._filling().model))

    def clear_column(self) -> "InForce":
        """The same, when nothing is left of the other column."""
        return replace(self, change=None)

    def _filling(self) -> EmbeddingChange:
        if self.change is None:
            raise StateConflict("no change of the embedding model is under way")
        if self.change.phase is not Phase.FILLING:
            raise StateConflict(f"the vectors of {self.change.model} are being cleared already")
        return self.change

    def as_json(self) -> dict[str, object]:
        """As it is recorded; at rest on the first column as a version without changes recorded it."""
        found = {} if self.model is None else self.model.as_json()
        if self.column is not Column.FIRST:
            found["column"] = str(self.column)
        if self.change is not None:
            found["change"] = {"phase": str(self.change.phase), **self.change.model.as_json()}
        return found

    @classmethod
    def of(cls, value: object) -> "InForce":
        """As it was recorded.

        Raises:
            EmbeddingMismatch: it is a record of another form.
        """
        if value is None:
            return cls()
        model = EmbeddingModel.of(value)
        found = dict(value) if isinstance(value, Mapping) else {}
        change = found.get("change")
        try:
            column = Column(found.get("column", Column.FIRST))
            under_way = None if change is None else EmbeddingChange(Phase(change["phase"]), EmbeddingModel.of(change))
        except (ValueError, TypeError, KeyError):
            raise EmbeddingMismatch(f"this tenant's memories were embedded by {model}, and {change}") from None
        return cls(model, column, under_way)


def _clearing(model: EmbeddingModel) -> EmbeddingChange:
    return EmbeddingChange(Phase.CLEARING, model)

"""Every unit in a scope, with its material in memory, measured for one query."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from memplane.adapters.sql.queries.material import Material, Numbers
from memplane.adapters.sql.queries.packing import PackedIds, count_units
from memplane.application.recall.search_material import Query
from memplane.domain.language.terms import Terms
from memplane.domain.ranking.priors import Priors, concatenate
from memplane.domain.ranking.signals import Posting, Signals
from memplane.domain.ranking.thread_neighbours import Surroundings, in_thread_order


def part_of(material: Material, places: Numbers) -> "UnitPart":
    """Units by their places, put in thread order."""
    return UnitPart(material, places[in_thread_order(material.thread[places], material.seq[places])])


@dataclass(frozen=True, slots=True)
class UnitPart:
    """Units in scope, in thread order, and what holds their material.

    Attributes:
        material: holds their material.
        places: where it holds them; right for as long as no row is removed.
    """

    material: Material
    places: Numbers


@dataclass(frozen=True, slots=True)
class Units:
    """Every unit in scope, part after part.

    Attributes:
        parts: by what holds their material.
        stands: for each place of a part's material, where the unit stands among all; -1 for one that is not in scope.
        ids: of the units.
        surroundings: who stands next to whom.
        priors: what speaks for them beside the question.
    """

    parts: Sequence[UnitPart]
    stands: Sequence[Numbers]
    ids: PackedIds
    surroundings: Surroundings
    priors: Priors

    @classmethod
    def of(cls, parts: Sequence[UnitPart]) -> "Units":
        """All units of some tables."""
        stands, start = [], 0
        for part in parts:
            places = np.full(part.material.count, -1, dtype=np.int64)
            places[part.places] = np.arange(start, start + len(part.places))
            stands.append(places)
            start += len(part.places)
        thread, seq, length, ids = (
            np.concatenate([getattr(part.material, column)[part.places] for part in parts])
            for column in ("thread", "seq", "length", "ids")
        )
        priors = concatenate([part.material.priors(part.places) for part in parts])
        return cls(parts, stands, PackedIds(ids), Surroundings(thread, seq, length), priors)

    def postings(self, terms: Terms) -> list[Posting]:
        """For each term, the units that hold it, and how often."""
        found: list[Posting] = []
        wanted = terms.wanted()
        for held in zip(*(part.material.holders(wanted) for part in self.parts), strict=True):
            places, counts = [], []
            for stands, (place, count) in zip(self.stands, held, strict=True):
                early = place < len(stands)  # what was added since the scope was found is not in it
                unit = stands[place[early]]
                places.append(unit[unit >= 0])
                counts.append(count[early][unit >= 0])
            found.append((np.concatenate(places), np.concatenate(counts)))
        return found


def measure(units: Units, query: Query, named: bytes) -> Signals:
    """The signals of units for a query, with who mentions what it names."""
    similarity = None
    vector = query.vector
    if vector is not None:
        similarity = np.concatenate([part.material.similarity(part.places, vector) for part in units.parts])
    return Signals(
        surroundings=units.surroundings,
        postings=units.postings(query.terms),
        similarity=similarity,
        actor=np.concatenate([part.material.actor_named(part.places, query.words) for part in units.parts]),
        priors=units.priors,
        entity=count_units(units.ids, named) if query.names else None,
    )

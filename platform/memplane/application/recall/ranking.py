"""The best units for a question, with what their scores are made of."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from memplane.application.limits.offload import in_thread
from memplane.application.ports import TenantReader, Unit
from memplane.application.recall.search_material import Candidates, Query
from memplane.domain.memory.memory import Memory
from memplane.domain.memory.scope import Scope
from memplane.domain.policy.policy import RankingProfile
from memplane.domain.ranking.embedding_models import EmbeddingModel
from memplane.domain.ranking.fusion import RELATION, QuerySignals, UnitScores, score
from memplane.domain.ranking.rendering import MAX_RELATED

MOST_EDGES = 1_000
MOST_LINKED = 10
"""Related memories that are read, strongest first, for the one or two that are returned."""
Link = tuple[UUID, UUID, float]
FEW = 4_000
"""Units up to which handing them to another thread takes longer than scoring them."""


@dataclass(frozen=True, slots=True)
class By:
    """What is ranked by.

    Attributes:
        profile: from the policy.
        model: the embedding model's name, until it is known which one measured the similarity.
        asked: what the question says beside its words.
        threshold: the least similarity of a unit, or without an embedding its least scaled text score.
    """

    profile: RankingProfile
    model: str
    asked: QuerySignals
    threshold: float | None = None


@dataclass(frozen=True, slots=True)
class ScoredUnit:
    """A unit's score, and what tells the parts that it was made of, and which of the question's words it matched."""

    id: UUID
    score: float
    explained: Callable[[], Mapping[str, object]]


@dataclass(frozen=True, slots=True)
class Ranking:
    """The best units, best first, and how many there were in scope.

    Attributes:
        standings: of the best units.
        candidates: how many units there were.
        units: of those that are likely to be told, what was read on the way; ``None`` for one that has gone since.
        model: by which similarity was measured; ``None`` where it was not.
        links: relations of the best units to others in scope that reach the threshold, strongest first: the unit, the
            other one, strength. ``None`` where they were not read.
    """

    standings: Sequence[ScoredUnit]
    candidates: int
    units: Mapping[UUID, Unit | None] = field(default_factory=dict)
    model: EmbeddingModel | None = None
    links: Sequence[Link] | None = None


def newest(ids: Sequence[UUID]) -> Ranking:
    """Units that are listed by time: their score is 1/(1 + place)."""
    standings = [_at(place, each) for place, each in enumerate(ids)]
    return Ranking(standings, len(standings))


def _at(place: int, unit: UUID) -> ScoredUnit:
    score = 1.0 / (1 + place)
    return ScoredUnit(unit, score, lambda: {"newest": score})


async def rank(  # noqa: PLR0913 - what is ranked, by what, and how much of it
    reader: TenantReader,
    scope: Scope,
    query: Query,
    by: By,
    limit: int,
    *,
    told: int = 0,
    among: Collection[UUID] | None = None,
) -> Ranking:
    """Score everything in scope; the best few then gain by their relations to others in scope.

    Args:
        reader: of the transaction.
        scope: what may be read.
        query: the question, as the database takes it.
        by: what is ranked by.
        limit: how many of the best are ranked.
        told: how many of them are likely to be told: they are read in the exchange that looks for relations.
        among: the only units that are ranked; ``None`` for all in scope.
    """
    candidates = await reader.candidates(scope, query)
    query = query.by(candidates.model)
    if candidates.model is not None:
        by = replace(by, model=candidates.model.name)
    if len(candidates.ids) <= FEW:
        pool, reached = _pool(candidates, query, by, limit, among)
    else:
        pool, reached = await in_thread(_pool, candidates, query, by, limit, among)
    units: dict[UUID, Unit | None] = {}
    links: list[Link] = []
    if pool:
        pool.sort(key=_order)
        ids = [standing.id for standing in pool]
        edges, found = await reader.edges_and_units(scope, ids, MOST_EDGES, ids[:told])
        units = {each: found.get(each) for each in ids[:told]}
        places = candidates.ids.places(b"".join(other.bytes for _, other, _ in edges)).tolist()
        if weight := by.profile.relation:
            strongest = _strongest(edges, places)
            pool = [_related(standing, strongest.get(standing.id, 0.0), weight) for standing in pool]
            pool.sort(key=_order)
        links = [
            edge
            for edge, place in zip(edges, places, strict=True)
            if place >= 0 and (reached is None or reached[place])
        ]
    return Ranking(pool, len(candidates.ids), units, candidates.model, links)


async def linked_to(
    reader: TenantReader,
    scope: Scope,
    ranking: Ranking,
    found: Sequence[Unit],
    least: float,
    *,
    there: Sequence[Unit] = (),
) -> list[tuple[UUID, Memory, float]]:
    """Memories in scope that a relation links to the found ones and that are not there yet, strongest first.

    Args:
        reader: of the transaction.
        scope: what may be read.
        ranking: of the question, with the relations that were read for it.
        found: the best units.
        least: the least strength of a relation.
        there: what else is there.

    Returns:
        Which of the found ones it is linked to, the memory, and the strength.
    """
    sources = [unit.id for unit in found if isinstance(unit, Memory)]
    if not sources:
        return []
    if ranking.links is None:
        return await reader.related_memories(scope, sources, MAX_RELATED * (len(sources) + 1), least=least)
    known, returned = {unit.id for unit in (*found, *there)}, set(sources)
    links = [
        (via, other, strength)
        for via, other, strength in ranking.links
        if strength >= least and via in returned and other not in known
    ]
    wanted = list(dict.fromkeys(other for _, other, _ in links))[:MOST_LINKED]
    units = dict(ranking.units)
    missing = [each for each in wanted if each not in units]
    units |= await reader.units(scope, missing) if missing else {}
    read = {each: unit for each in wanted if isinstance(unit := units.get(each), Memory)}
    return [(via, read[other], strength) for via, other, strength in links if other in read]


def _order(standing: ScoredUnit) -> tuple[float, UUID]:
    return -standing.score, standing.id


def _strongest(edges: Sequence[Link], places: Sequence[int]) -> Mapping[UUID, float]:
    """Of each of the best units, its strongest relation to another one in scope."""
    found: dict[UUID, float] = {}
    for (of, _, strength), place in zip(edges, places, strict=True):  # the strongest come first
        if place >= 0:
            found.setdefault(of, strength)
    return found


def _pool(
    candidates: Candidates, query: Query, by: By, limit: int, among: Collection[UUID] | None
) -> tuple[list[ScoredUnit], NDArray[np.bool_] | None]:
    """The best units by their signals, in no order; and which units reach the threshold, where there is one."""
    signals = candidates.signals
    scored = score(signals, by.profile, by.model, by.asked)
    reached = _reaching(scored, query, by.threshold)
    eligible = _both(reached, _among(candidates, among))
    best = scored.best(limit, eligible)
    by_hash = [query.terms.stems[term] for term in sorted(query.terms.stems)]

    def explaining(place: int, holds: NDArray[np.bool_]) -> Callable[[], Mapping[str, object]]:
        def explained() -> Mapping[str, object]:
            matched = [stem for stem, held in zip(by_hash, holds.tolist(), strict=True) if held]
            return {**scored.parts_of(place), "matched": matched}

        return explained

    pool = [
        ScoredUnit(candidates.ids[place], score, explaining(place, holds))
        for place, score, holds in zip(
            best.tolist(), scored.score[best].tolist(), signals.matched_terms(best), strict=True
        )
    ]
    return pool, reached


def _reaching(scored: UnitScores, query: Query, threshold: float | None) -> NDArray[np.bool_] | None:
    """Which units reach the threshold by their own similarity, or by the scaled text score without an embedding."""
    if threshold is None or not query.words:
        return None
    reached: NDArray[np.bool_] = scored.parts["lexical_scaled" if query.vector is None else "similarity"] >= threshold
    return reached


def _among(candidates: Candidates, among: Collection[UUID] | None) -> NDArray[np.bool_] | None:
    """Which units are among those that are asked for."""
    if among is None:
        return None
    places = candidates.ids.places(b"".join(each.bytes for each in among))
    found = np.zeros(len(candidates.ids), dtype=np.bool_)
    found[places[places >= 0]] = True
    return found


def _both(one: NDArray[np.bool_] | None, other: NDArray[np.bool_] | None) -> NDArray[np.bool_] | None:
    if one is None or other is None:
        return other if one is None else one
    return one & other


def _related(standing: ScoredUnit, strength: float, weight: float) -> ScoredUnit:
    told = standing.explained
    return ScoredUnit(standing.id, standing.score + weight * strength, lambda: {**told(), RELATION: strength})

"""The parts of the job `reconcile` that look at what joins memories: relations, mentions, entities, neighbours."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import groupby
from uuid import UUID

import numpy as np

from memplane.application.erasure.user_tombstones import gone_since
from memplane.application.jobs.lifecycle_jobs import JobBatch, Step
from memplane.application.jobs.reconciliation.reconcile_records import HeldRelation, Placing
from memplane.application.limits.offload import offload
from memplane.application.memories.gateway import Write
from memplane.application.ports import Policies, Storage
from memplane.application.records import Edge, LinkChange
from memplane.application.transaction import UnitOfWork
from memplane.domain.identity.principal import Principal
from memplane.domain.language.comparison.comparison import ComparisonVerdict
from memplane.domain.language.comparison.comparison_verdicts import Bands
from memplane.domain.memory.memory import Memory
from memplane.domain.memory.write_decisions import MAX_LINKS, compare_neighbours
from memplane.domain.ranking.co_recall import CO_RECALLED
from memplane.domain.ranking.embedding_models import EmbeddingModel

BATCH = 1_000
"""Rows of one batch."""
PLACED = 1_000
"""Memories that are looked at in one batch for whether they have neighbours."""
LINKED = 500
"""Memories whose neighbours are looked for in one batch."""
NEWEST = 5_000
"""Among how many of a user's memories, the newest, neighbours are looked for."""
USERS = 20
"""Users of one batch, at most."""
AROUND = 20_000
"""Vectors after which a batch takes no further user."""
AT_ONCE = 500
"""Vectors that are read in one transaction: on SQLite nobody writes meanwhile."""
SYMMETRIC = frozenset({"related_to", CO_RECALLED})
"""Kinds of relations that say the same both ways."""


class Relations:
    """Removes relations that lead nowhere or to somebody else, and of two that say the same the weaker."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    async def __call__(self, principal: Principal, after: str | None) -> Step:
        """The next batch."""
        begin = None if after is None else UUID(after)
        read = await self._storage.write(principal.reach, lambda uow: uow.repairs.relations(begin, BATCH))
        astray = [each for each in read if each.astray]
        doubles = [each for each in read if not each.astray and _is_double(each)]
        more = str(read[-1].id) if len(read) == BATCH else None

        async def step(write: Write, _as_of: datetime, _place: str | None) -> JobBatch:
            count = await write.uow.repairs.unlink(astray, doubles) if astray or doubles else 0
            return JobBatch({"relations": count}, more)

        return step


def _is_double(held: HeldRelation) -> bool:
    if held.relation_type not in SYMMETRIC or held.reverse is None or held.reverse_strength is None:
        return False
    return (held.strength, held.id) < (held.reverse_strength, held.reverse)


class Mentions:
    """Removes links with entities that lead nowhere, or to somebody else's."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    async def __call__(self, principal: Principal, after: str | None) -> Step:
        """The next batch."""
        begin = None if after is None else (UUID(after[:36]), UUID(after[36:]))
        read = await self._storage.write(principal.reach, lambda uow: uow.repairs.mentions(begin, BATCH))
        wrong = [(each.memory_id, each.entity_id) for each in read if each.astray]
        more = f"{read[-1].memory_id}{read[-1].entity_id}" if len(read) == BATCH else None

        async def step(write: Write, _as_of: datetime, _place: str | None) -> JobBatch:
            return JobBatch({"mentions": await write.uow.repairs.unmention(wrong) if wrong else 0}, more)

        return step


class OrphanEntities:
    """Removes entities that no memory mentions, unless somebody gave them another name."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    async def __call__(self, principal: Principal, after: str | None) -> Step:
        """The next batch."""
        begin = None if after is None else UUID(after)
        read = await self._storage.write(principal.reach, lambda uow: uow.repairs.entities(begin, BATCH))
        needless = [each for each in read if not each.needed]
        more = str(read[-1].id) if len(read) == BATCH else None

        async def step(write: Write, _as_of: datetime, _place: str | None) -> JobBatch:
            if not needless:
                return JobBatch(place=more)
            await write.uow.lock_users({each.user_id for each in needless})  # nobody links with them meanwhile
            return JobBatch({"entities": await write.uow.repairs.needless([each.id for each in needless])}, more)

        return step


@dataclass(frozen=True, slots=True)
class _Near:
    """What neighbours some memories have.

    Attributes:
        lonely: those without any relation.
        edges: what would link them.
        said: by id, the words of both ends.
        more: where the next batch begins.
    """

    lonely: frozenset[UUID]
    edges: Sequence[Edge]
    said: Mapping[UUID, Memory]
    more: str | None


class Links:
    """Links memories without any relation with those that are near them in meaning, as a write does."""

    def __init__(self, storage: Storage, policies: Policies) -> None:
        self._storage = storage
        self._policies = policies

    async def __call__(self, principal: Principal, after: str | None) -> Step:
        """The next batch."""
        begin = None
        if after is not None:
            begin = (after[36:], UUID(after[:36]))
        near = await self._near(principal, begin)

        async def step(write: Write, _as_of: datetime, _place: str | None) -> JobBatch:
            return JobBatch({"links": await _link(write, near) if near.edges else 0}, near.more)

        return step

    async def _near(self, principal: Principal, after: tuple[str, UUID] | None) -> _Near:
        page, model = await self._storage.write(principal.reach, lambda uow: _read(uow, after))
        lonely = [each for each in page if not each.linked][:LINKED]
        last = lonely[-1] if len(lonely) == LINKED else page[-1] if len(page) == PLACED else None
        bands = self._policies.current.merging.bands_for("*" if model is None else model.name)
        looked: list[Placing] = []
        pairs: list[tuple[UUID, UUID, float]] = []
        users = read = 0
        for user, group in groupby(lonely if model else (), key=lambda each: each.user_id):
            if users == USERS or read >= AROUND:
                last = looked[-1]
                break
            mine = list(group)
            around = await self._around(principal, user, model)
            ids = frozenset(each.id for each in mine)
            pairs += await offload(len(ids) * len(around), _nearest, ids, around, bands.link_min)
            looked += mine
            users, read = users + 1, read + len(around)
        more = None if last is None else f"{last.id}{last.user_id}"
        ids = frozenset(each.id for each in looked)
        if not pairs:
            return _Near(ids, (), {}, more)
        pairs.sort(key=lambda pair: -pair[2])
        ends = {end for one, other, _ in pairs for end in (one, other)}
        found = await self._storage.write(principal.reach, lambda uow: uow.repairs.memories(ends))
        said = {each.id: each for each in found}
        size = sum(len(each.text.content) for each in found)
        return _Near(ids, await offload(size, _edges, pairs, said, bands), said, more)

    async def _around(self, principal: Principal, user: str, model: EmbeddingModel | None) -> list[Placing]:
        """A user's newest memories with vectors of a model, in short transactions: who writes is let in between.

        There are none where another model came into force meanwhile.
        """
        found: list[Placing] = []
        oldest: UUID | None = None
        for _ in range(-(-NEWEST // AT_ONCE)):
            reading = partial(_older, user=user, before=oldest)
            read, in_force = await self._storage.write(principal.reach, reading)
            if in_force is None or in_force != model:
                return []
            size = (in_force.dimensions,)
            found += [each for each in read if each.vector is not None and each.vector.shape == size]
            if len(read) < AT_ONCE:
                break
            oldest = read[-1].id
        return found


async def _read(uow: UnitOfWork, after: tuple[str, UUID] | None) -> tuple[list[Placing], EmbeddingModel | None]:
    return await uow.repairs.placings(after, PLACED), uow.in_force.model


async def _older(uow: UnitOfWork, user: str, before: UUID | None) -> tuple[list[Placing], EmbeddingModel | None]:
    return await uow.repairs.around(user, before, AT_ONCE), uow.in_force.model


def _nearest(lonely: frozenset[UUID], around: Sequence[Placing], least: float) -> list[tuple[UUID, UUID, float]]:
    """Pairs of memories that are near each other, the newer first, each once; most similar first."""
    found: dict[tuple[UUID, UUID], float] = {}
    for _, group in groupby(sorted(around, key=lambda each: (*each.group, each.id)), key=lambda each: each.group):
        members = list(group)
        asking = [place for place, each in enumerate(members) if each.id in lonely]
        if not asking or len(members) == 1:
            continue
        vectors = np.stack([each.vector for each in members if each.vector is not None])
        cosines = vectors[asking] @ vectors.T
        cosines[np.arange(len(asking)), asking] = -1.0
        for row, place in enumerate(asking):
            for other in np.argsort(-cosines[row], kind="stable")[:MAX_LINKS].tolist():
                if cosines[row, other] >= least:
                    ends = sorted((members[place].id, members[other].id), reverse=True)
                    found[ends[0], ends[1]] = float(cosines[row, other])
    return sorted(((one, other, cosine) for (one, other), cosine in found.items()), key=lambda pair: -pair[2])


def _edges(pairs: Sequence[tuple[UUID, UUID, float]], said: Mapping[UUID, Memory], bands: Bands) -> list[Edge]:
    """What links memories that are related, and not one in place of another."""
    found = []
    for one, other, cosine in pairs:
        if one not in said or other not in said:
            continue
        (told,) = compare_neighbours(said[one], [(said[other], cosine)], bands)
        if told.verdict in {ComparisonVerdict.RELATED, ComparisonVerdict.SAME}:
            found.append(Edge(one, other, round(min(max(cosine, 0.0), 1.0), 4)))
    return found


async def _link(write: Write, near: _Near) -> int:
    """Link those that are still alone, with what still says what it said; how many are not alone any more."""
    repairs, users = write.uow.repairs, {each.user_id for each in near.said.values()}
    await write.uow.lock_users(users)
    gone = await gone_since(write.uow.erasures, dict.fromkeys(users, write.now))
    here = {each.id: each for each in await repairs.memories(near.said) if each.user_id not in gone}
    same = {name for name, each in here.items() if each.text == near.said[name].text}
    alone = set(near.said) - await repairs.with_relations(near.said)
    lonely = alone & near.lonely
    edges = [each for each in near.edges if {each.from_id, each.to_id} <= same and lonely & {each.from_id, each.to_id}]
    await write.uow.graph.link(edges, write.now)
    for each in edges:
        write.record_links(here[each.from_id], [LinkChange(here[each.to_id], each.kind, each.strength)])
    await write.settle("", None)
    return len(alone & {end for each in edges for end in (each.from_id, each.to_id)})

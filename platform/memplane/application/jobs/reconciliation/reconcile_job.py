"""The job `reconcile`: what was derived from memories and turns is looked through, and put right where it is not.

It goes through a tenant part by part, each in the order of ids. What is found is worked out before a transaction opens,
and looked at again inside it. A batch in which nothing is found writes nothing but its place.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby
from typing import Protocol
from uuid import UUID

from memplane.application.erasure.user_tombstones import gone_since
from memplane.application.jobs.enrichment_job import Extractor, mentions_of
from memplane.application.jobs.lifecycle_jobs import JobBatch, Step
from memplane.application.jobs.reconciliation.reconcile_records import DerivedText
from memplane.application.jobs.vector_records import Kind
from memplane.application.limits.offload import offload
from memplane.application.memories.gateway import Gateway, Write
from memplane.application.ports import Policies, Storage
from memplane.application.recall.search_material import SearchMaterial
from memplane.application.transaction import UnitOfWork
from memplane.domain.identity.principal import Principal
from memplane.domain.language.enrichment import Enriched
from memplane.domain.language.entities import mentions
from memplane.domain.language.terms import terms
from memplane.domain.memory.history import HistoryEvent
from memplane.domain.memory.memory import MemoryText, State
from memplane.domain.ranking.embedding_models import InForce

BATCH = 250
"""Texts of one batch."""
SOURCE_PURGED = "source_purged"
"""The cause that the history tells."""
KINDS = ("seen", "terms", "vectors", "sources", "relations", "mentions", "entities", "links")
"""What is counted: memories and turns that were looked at, and what of them was put right."""


class ReconcilePart(Protocol):
    """A part of the job: prepares its next batch, behind a place of its own."""

    async def __call__(self, principal: Principal, after: str | None) -> Step:
        """The next batch; its place is ``None`` at the end of the part."""
        ...


class Reconcile:
    """Prepares the batches of the job, part after part.

    Args:
        parts: by their names, in their order.
    """

    def __init__(self, parts: Mapping[str, ReconcilePart]) -> None:
        self._parts = parts

    async def __call__(self, principal: Principal, _as_of: datetime, place: str | None) -> Step:
        """The next batch."""
        names = list(self._parts)
        name, _, after = (place or names[0]).partition(":")
        step = await self._parts[name](principal, after or None)
        following = next(iter(names[names.index(name) + 1 :]), None)

        async def whole(write: Write, as_of: datetime, place: str | None) -> JobBatch:
            batch = await step(write, as_of, place)
            counts = dict.fromkeys(KINDS, 0) | dict(batch.counts)
            return replace(batch, counts=counts, place=following if batch.place is None else f"{name}:{batch.place}")

        return whole


@dataclass(frozen=True, slots=True)
class _Found:
    """What is to be put right of some texts.

    Attributes:
        held: by id, each as it was read.
        material: by id, search material of those that need other.
        faults: which of them by kind.
        lost: by id, sources that are there no longer.
        misnoted: those to which their sources do not lead.
        mentions: by id, what those mention that mention nothing.
    """

    held: Mapping[UUID, DerivedText] = field(default_factory=dict)
    material: Mapping[UUID, SearchMaterial] = field(default_factory=dict)
    lost: Mapping[UUID, Sequence[str]] = field(default_factory=dict)
    misnoted: frozenset[UUID] = frozenset()
    mentions: Mapping[UUID, Enriched] = field(default_factory=dict)

    @property
    def wanted(self) -> frozenset[UUID]:
        """All of them."""
        return frozenset({*self.material, *self.lost, *self.misnoted, *self.mentions})


class Texts:
    """The part that looks at memories or turns, one by one: terms, vectors, sources, and whether any name is linked.

    Args:
        kind: which of the two.
        storage: where they are.
        policies: say what no entity is made of.
        gateway: embeds.
        extractor: finds names.
    """

    def __init__(
        self, kind: Kind, storage: Storage, policies: Policies, gateway: Gateway, extractor: Extractor
    ) -> None:
        self._kind = kind
        self._storage = storage
        self._policies = policies
        self._gateway = gateway
        self._extractor = extractor

    async def __call__(self, principal: Principal, after: str | None) -> Step:
        """The next batch: texts are read, and embedded where that is needed, and stored by the step."""
        begin = None if after is None else UUID(after)
        in_force, read, gone = await self._storage.write(principal.reach, lambda uow: self._read(uow, begin))
        found = await self._found(principal, in_force, read, gone)
        more = str(read[-1].id) if len(read) == BATCH else None

        async def step(write: Write, _as_of: datetime, _place: str | None) -> JobBatch:
            counts = await _put_right(write, self._kind, found) if found.wanted else {}
            return JobBatch({"seen": len(read), **counts}, more)

        return step

    async def _read(self, uow: UnitOfWork, after: UUID | None) -> tuple[InForce, Sequence[DerivedText], frozenset[str]]:
        read = await uow.repairs.derived_texts(self._kind, after, BATCH)
        named = {name for each in read for name in each.sources}
        ids = {name: number for name in named if (number := _id_of(name)) is not None}
        gone = await uow.repairs.find_vanished(set(ids.values())) if ids else frozenset()
        return uow.in_force, read, frozenset(each for each in named if each not in ids or ids[each] in gone)

    async def _found(
        self, principal: Principal, in_force: InForce, read: Sequence[DerivedText], gone: frozenset[str]
    ) -> _Found:
        size = sum(len(each.searchable()[0]) for each in read)
        suspects = await offload(size, lambda: [each for each in read if not _is_right(each, in_force)])
        made = await self._gateway.material(*(each.said for each in suspects)) if suspects else []
        material = {each.id: new for each, new in zip(suspects, made, strict=True) if any(_faults(each, new, in_force))}
        lost = {each.id: found for each in read if (found := [name for name in each.sources if name in gone])}
        misnoted = frozenset(each.id for each in read if set(each.sources) != each.noted)
        nameless = [each for each in read if not each.mentions and each.state is State.ACTIVE]
        mentions = await self._mentioned(principal, nameless)
        return _Found({each.id: each for each in read}, material, lost, misnoted, mentions)

    async def _mentioned(self, principal: Principal, nameless: Sequence[DerivedText]) -> Mapping[UUID, Enriched]:
        """What memories mention of which nothing says that they do: of those that a write would have linked at all."""
        said = [(each, each.said) for each in nameless if isinstance(each.said, MemoryText)]
        size = sum(len(text.searchable()) for _, text in said)
        naming = await offload(size, lambda: [pair for pair in said if mentions(pair[1].searchable())])
        found: dict[UUID, Enriched] = {}
        for user, group in groupby(sorted(naming, key=lambda pair: pair[0].user_id), key=lambda pair: pair[0].user_id):
            mine = list(group)
            names = await self._extractor.find(principal.tenant, user, [text.searchable() for _, text in mine])
            for (each, text), spans in zip(mine, names.spans, strict=True):
                policy = self._policies.current
                told = await offload(len(spans) * 100, mentions_of, text, each.category, spans, policy)
                if told.mentions:
                    found[each.id] = told
        return found


def _id_of(name: str) -> UUID | None:
    try:
        return UUID(name)
    except ValueError:  # nothing has such a name
        return None


def _is_right(held: DerivedText, in_force: InForce) -> bool:
    return held.comparable(in_force) and held.fits(terms(*held.searchable()))


def _faults(held: DerivedText, material: SearchMaterial, in_force: InForce) -> tuple[bool, bool]:
    """Whether its terms are others, and whether its vector is none that it could have."""
    if held.vector is None:
        return not held.fits(material.terms), material.vector(in_force.model) is not None
    return not held.fits(material.terms), not held.comparable(in_force)


async def _put_right(write: Write, kind: Kind, found: _Found) -> Mapping[str, int]:
    """Repair what is still as it was read."""
    repairs, users = write.uow.repairs, {found.held[each].user_id for each in found.wanted}
    await write.uow.lock_users(users)
    gone = await gone_since(write.uow.erasures, dict.fromkeys(users, write.now))
    now = {each.id: each for each in await repairs.lock(kind, found.wanted) if each.user_id not in gone}
    same = {name: each for name, each in now.items() if each.said == found.held[name].said}
    faults = {
        name: _faults(each, found.material[name], write.uow.in_force)
        for name, each in same.items()
        if name in found.material
    }
    wrong = [name for name, kinds in faults.items() if any(kinds)]
    await repairs.refit(kind, [(name, found.material[name]) for name in wrong])
    return {
        "terms": sum(words for words, _ in faults.values()),
        "vectors": sum(vector for _, vector in faults.values()),
        "sources": await _sources(write, now, found),
        "mentions": await _mentions(write, same, found),
    }


async def _sources(write: Write, now: Mapping[UUID, DerivedText], found: _Found) -> int:
    """Drop the names of sources that were purged, and let the others lead to what names them."""
    repairs = write.uow.repairs
    same = [each for each in now.values() if each.sources == found.held[each.id].sources]
    lost = {each.id: found.lost[each.id] for each in same if each.id in found.lost}
    left = {each.id: [name for name in each.sources if name not in lost[each.id]] for each in same if each.id in lost}
    after = await repairs.rest_on({each: (names, len(lost[each])) for each, names in left.items()}) if left else []
    for memory in after:
        meta = {"cause": SOURCE_PURGED, "sources": sorted(lost[memory.id])}
        write.record_change(HistoryEvent.UPDATE, None, memory, memory, meta)
    if after:
        await write.settle("", None)  # it is no news to any thread
    misnoted = {each.id: left.get(each.id, each.sources) for each in same if set(each.sources) != each.noted}
    if misnoted:
        await repairs.note_sources(misnoted)
    return len({*left, *misnoted})


async def _mentions(write: Write, same: Mapping[UUID, DerivedText], found: _Found) -> int:
    """Link memories that still mention nothing with what their words name."""
    wanted = [same[name] for name in sorted(found.mentions) if name in same and not same[name].mentions]
    count = 0
    for user, group in groupby(sorted(wanted, key=lambda each: (each.user_id, each.id)), key=lambda each: each.user_id):
        mine = {each.id: found.mentions[each.id] for each in group if each.state is State.ACTIVE}
        count += await write.uow.enrichments.keep(user, mine, write.now) if mine else 0
    return count

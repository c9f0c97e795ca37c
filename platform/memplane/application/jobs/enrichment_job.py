"""The job `enrichment`: entities of memories that mention few of them, looked for by whoever may take time for it."""

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from typing import Protocol
from uuid import UUID

from memplane.application.erasure.user_tombstones import gone_since
from memplane.application.jobs.job_ports import Enrichments
from memplane.application.jobs.job_records import TokensSpent
from memplane.application.jobs.lifecycle_jobs import JobBatch, Step
from memplane.application.limits.offload import offload
from memplane.application.memories.gateway import Write
from memplane.application.ports import Policies, Storage
from memplane.domain.errors import BudgetSpent, ModelFailed, NoModel, StateConflict
from memplane.domain.identity.principal import Principal
from memplane.domain.jobs.job_definitions import Extraction
from memplane.domain.language.enrichment import FEW, Enriched, Span, enriched
from memplane.domain.memory.memory import Memory, MemoryText
from memplane.domain.policy.policy import Policy
from memplane.domain.privacy.screening import Screening

logger = logging.getLogger("memplane.jobs")
MOST = 200
"""Memories of one batch."""
_DIGITS = 16


@dataclass(frozen=True, slots=True)
class ExtractorResult:
    """What an extractor found.

    Attributes:
        spans: of each text.
        spent: what a language model took for it.
    """

    spans: Sequence[Sequence[Span]]
    spent: TokensSpent = field(default_factory=TokensSpent)


class Extractor(Protocol):
    """Finds names in texts; what it takes to be one, and how certain it is, and not which of several stands."""

    @property
    def version(self) -> str:
        """What it is, and which: memories are looked at again by another one."""
        ...

    @property
    def most(self) -> int:
        """Memories of one batch: what it takes minutes for is too much."""
        ...

    @property
    def thinks(self) -> bool:
        """Whether it asks the language model."""
        ...

    async def find(self, tenant: str, user_id: str, texts: Sequence[str]) -> ExtractorResult:
        """The names in each of a user's texts; no transaction is open meanwhile.

        Raises:
            NoModel, BudgetSpent, ModelFailed: it cannot look at present; others go on without it.
        """
        ...


@dataclass(frozen=True, slots=True)
class _Looked:
    """What was found in memories before the transaction opens.

    Attributes:
        memories: those that are due.
        found: by id what those with few entities mention.
        by: by id what looked at each.
        more: whether there may be others behind them.
        spent: what a language model took for it.
        skipped: why somebody did not look, if that is so.
    """

    memories: Sequence[Memory]
    found: Mapping[UUID, Enriched] = field(default_factory=dict)
    by: Mapping[UUID, str] = field(default_factory=dict)
    more: bool = False
    spent: TokensSpent = field(default_factory=TokensSpent)
    skipped: str | None = None


class EnrichEntities:
    """Prepares the batches of the job: names are looked for before a transaction opens.

    Args:
        storage: where the memories are.
        policies: say which of the extractors look.
        extractors: who can look; the first, which takes no time, always does.
    """

    def __init__(self, storage: Storage, policies: Policies, extractors: Sequence[Extractor]) -> None:
        self._storage = storage
        self._policies = policies
        self._extractors = extractors

    async def __call__(self, principal: Principal, _as_of: datetime, place: str | None) -> Step:
        """The next batch: memories are read and looked at here, and linked by the step as far as they still say so."""
        policy = self._policies.current
        extractors = self._chosen(policy)
        by = version_of(extractors)
        looked = await self._look(principal, policy, extractors, (by, place))

        async def step(write: Write, _as_of: datetime, _place: str | None) -> JobBatch:
            return await _keep(write, looked, by)

        return step

    def _chosen(self, policy: Policy) -> Sequence[Extractor]:
        return self._extractors if policy.workers.entities is Extraction.ACCURATE else self._extractors[:1]

    async def _look(
        self, principal: Principal, policy: Policy, extractors: Sequence[Extractor], where: tuple[str, str | None]
    ) -> _Looked:
        by, place = where
        most = min(each.most for each in extractors)
        after = None if place is None else UUID(place)
        memories, counts = await self._storage.write(
            principal.reach, lambda uow: _due(uow.enrichments, by, after, most)
        )
        found: dict[UUID, Enriched] = {}
        versions = dict.fromkeys((each.id for each in memories), by)
        accurate = policy.workers.entities is Extraction.ACCURATE
        skipped = "no model" if accurate and not any(each.thinks for each in extractors) else None
        spent = TokensSpent()
        few = sorted((each for each in memories if counts.get(each.id, 0) <= FEW), key=lambda each: each.user_id)
        for user, group in groupby(few, key=lambda each: each.user_id):
            mine = list(group)
            found_by, able, why = await _spans(principal.tenant, user, mine, extractors)
            skipped, spent = skipped or why, spent + found_by.spent
            for memory, some in zip(mine, found_by.spans, strict=True):
                found[memory.id] = await offload(
                    len(some) * 100, mentions_of, memory.text, memory.category, some, policy
                )
                versions[memory.id] = version_of(able)
        return _Looked(memories, found, versions, len(memories) == most, spent, skipped)


def version_of(extractors: Sequence[Extractor]) -> str:
    """By what memories are marked that these looked at."""
    named = "+".join(each.version for each in extractors)
    return f"{extractors[0].version}+{hashlib.sha256(named.encode()).hexdigest()[:_DIGITS]}"


async def _due(
    enrichments: Enrichments, by: str, after: UUID | None, most: int
) -> tuple[list[Memory], Mapping[UUID, int]]:
    memories = await enrichments.due(by, after, most)
    return memories, await enrichments.counts([each.id for each in memories]) if memories else {}


async def _spans(
    tenant: str, user_id: str, memories: Sequence[Memory], extractors: Sequence[Extractor]
) -> tuple[ExtractorResult, list[Extractor], str | None]:
    """What all extractors find in a user's memories, which of them could look, and why another could not."""
    texts = [each.text.searchable() for each in memories]
    spans: list[list[Span]] = [[] for _ in texts]
    spent = TokensSpent()
    able: list[Extractor] = []
    skipped: str | None = None
    for extractor in extractors:
        try:
            found = await extractor.find(tenant, user_id, texts)
        except (NoModel, BudgetSpent, ModelFailed) as error:
            skipped = skipped or error.code.replace("_", " ")
            spent += (
                TokensSpent(error.input_tokens, error.output_tokens)
                if isinstance(error, ModelFailed)
                else TokensSpent()
            )
            continue
        able.append(extractor)
        spent += found.spent
        spans = [[*mine, *more] for mine, more in zip(spans, found.spans, strict=True)]
    return ExtractorResult(spans, spent), able, skipped


def mentions_of(said: MemoryText, category: str, spans: Sequence[Span], policy: Policy) -> Enriched:
    """What a memory mentions; nothing where the policy of today hides what an earlier one let be stored."""
    text, known = said.searchable(), policy.categories.get(category)
    rules = {} if known is None else known.pii
    strict = [kind for kind, rule in rules.items() if rule is not Screening.TAG]
    hidden = [(one.start, one.end) for one in policy.find_pii(text, strict)] if strict else []
    return enriched(text, spans, hidden)


async def _keep(write: Write, looked: _Looked, by: str) -> JobBatch:
    """Link the memories that are still as they were looked at; those that are not are due again."""
    counts = {"seen": 0, "enriched": 0}
    if not looked.memories:
        return JobBatch(counts, skipped=looked.skipped)
    await write.uow.lock_users({each.user_id for each in looked.memories})
    gone = await gone_since(write.uow.erasures, dict.fromkeys((each.user_id for each in looked.memories), write.now))
    said = {each.id: each.text for each in looked.memories}
    here = await write.uow.enrichments.lock(by, list(said))
    same = [each for each in here if each.text == said[each.id] and each.user_id not in gone]
    for user, group in groupby(sorted(same, key=lambda each: (each.user_id, each.id)), key=lambda each: each.user_id):
        mine = list(group)
        try:
            async with write.attempt():
                counts["enriched"] += await _kept(write, user, mine, looked)
        except StateConflict as error:  # due again in another night
            logger.warning("entities of some memories are not kept yet: %s", error.code)
            continue
        counts["seen"] += len(mine)
    place = str(looked.memories[-1].id) if looked.more else None
    return JobBatch(counts, place, spent=looked.spent, skipped=looked.skipped)


async def _kept(write: Write, user: str, mine: Sequence[Memory], looked: _Looked) -> int:
    enrichments = write.uow.enrichments
    found = {each.id: looked.found[each.id] for each in mine if each.id in looked.found}
    changed = await enrichments.keep(user, found, write.now) if found else 0
    for version, ids in groupby(sorted(mine, key=lambda each: looked.by[each.id]), key=lambda each: looked.by[each.id]):
        await enrichments.mark([each.id for each in ids], version)
    return changed

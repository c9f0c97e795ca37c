"""What every read needs that a question ranks: its ports, how the question is understood, and how the read is noted."""

from collections.abc import Sequence
from dataclasses import dataclass

from memplane.application.memories.activity_log import ActivityLog
from memplane.application.ports import Accesses, Clock, Policies, Storage, Unit
from memplane.application.recall.embedders import Embedders
from memplane.application.recall.embedding_guard import EmbeddingGuard
from memplane.application.recall.search_material import Query
from memplane.application.records import Access, OperationalEvent
from memplane.domain.identity.principal import Principal
from memplane.domain.language.extraction.extraction_dates import names_time
from memplane.domain.language.query_hints import names_in, phrases_in, spans_in
from memplane.domain.language.terms import parse_query
from memplane.domain.language.text import normalise, words
from memplane.domain.language.time_zones import local
from memplane.domain.memory.memory import SHARED, Memory
from memplane.domain.memory.scope import Scope
from memplane.domain.policy.policy import Policy, RankingProfile
from memplane.domain.ranking.fusion import QuerySignals
from memplane.domain.ranking.rendering import RenderedItem

MAX_QUERY_TERMS = 64
SEARCH, ON_DEMAND = "search", "recall_on_demand"
"""What events call a read, and one that an agent asked for in the middle of a turn."""


@dataclass(frozen=True, slots=True)
class QueryContext:
    """The ports of a read that a question ranks."""

    storage: Storage
    policies: Policies
    embedders: Embedders
    guard: EmbeddingGuard
    accesses: Accesses
    activity: ActivityLog
    clock: Clock

    async def asked_of(
        self, text: str | None, profile: RankingProfile, principal: Principal, scope: Scope
    ) -> tuple[Query, QuerySignals]:
        """A question as the database takes it, and what it says beside its words; before a transaction opens.

        Times that it names are of the time zone of the user whom it is about, if it names one who set it.

        Raises:
            InvalidText: it cannot be read.
        """
        now = scope.now
        if text is None or not text.strip():
            return Query(parse_query(""), (), None), QuerySignals(now, wordless=True)
        clean = normalise(text, "query")
        vectors = await self.embedders.embed_query(clean)
        found = parse_query(clean, MAX_QUERY_TERMS)
        names = names_in(clean) if profile.by_entity else ()
        query = Query(terms=found, words=tuple(dict.fromkeys(words(clean))), embedding=vectors, names=names)
        zone = await self._zone(principal, scope.filters.user_id) if names_time(clean) else None
        return query, QuerySignals(now, spans_in(clean, local(now, zone)), phrases_in(clean, found))

    async def _zone(self, principal: Principal, user_id: str | None) -> str | None:
        if user_id is None:
            return None
        async with self.storage.reading(principal.reach) as reader:
            return (await reader.time_zones([user_id])).get(user_id)

    def note(
        self,
        principal: Principal,
        scope: Scope,
        items: Sequence[RenderedItem],
        place: tuple[str | None, str | None],
        *,
        found: bool = False,
        op: str = SEARCH,
    ) -> None:
        """Count the memories that were returned as read, and tell the operator of the search.

        Args:
            principal: who asked.
            scope: what was looked through.
            items: what was returned, the best first.
            place: whose conversation and which one, as far as they are known.
            found: whether a question found them; what relations brought beside was not.
            op: what the event calls it.
        """
        best = items[0].parts.get("similarity") if items else None
        event = OperationalEvent(
            node="context",
            op=op,
            status="ok",
            ts=scope.now,
            user_id=place[0],
            thread_id=place[1],
            sim=best if isinstance(best, float) else None,
        )
        memories = [(item.unit.id, item.via) for item in items if isinstance(item.unit, Memory)]
        best_of = tuple(each for each, via in memories if via is None) if found else ()
        self.accesses.note(Access(principal.tenant, tuple(each for each, _ in memories), event, best_of))
        named = scope.filters.user_id
        users = {item.unit.user_id for item in items}
        self.activity.note_read(principal, users if named is None else {named, *users & {SHARED}})


def work_on(units: Sequence[Unit]) -> int:
    """How much text is rendered, in short texts' characters: to look at one is a tenth of the work of reading it."""
    return sum(len(unit.text.content if isinstance(unit, Memory) else unit.text) for unit in units) // 10


def category_of(unit: Unit, policy: Policy) -> str:
    """A unit's category; for a turn the one that the policy gives to turns."""
    return unit.category if isinstance(unit, Memory) else policy.turns_category

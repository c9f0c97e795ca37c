"""Routes of statistics and operational events."""

from typing import Annotated

from fastapi import APIRouter, Query

from memplane.application.operations.tracking_records import EventFilters, OnDemand, Statistics, StoredEvent
from memplane.contracts.tracking import (
    AgeStatistics,
    EventList,
    EventQuery,
    EventRecord,
    HitStatistics,
    OnDemandStatistics,
    StatisticsQuery,
    StatisticsRecord,
)
from memplane.entrypoints.http.dependencies import App, Caller
from memplane.entrypoints.http.middleware.guard import AuthenticatedRoute
from memplane.entrypoints.http.routes.memories import failure_responses

router = APIRouter(prefix="/v1", route_class=AuthenticatedRoute, tags=["operation"])


@router.get("/stats", responses=failure_responses(409), summary="What there is, in numbers")
async def stats(app: App, caller: Caller, asked: Annotated[StatisticsQuery, Query()]) -> StatisticsRecord:
    """Memories by state, layer, category and type, hits, ages, and the share of turns that needed recall on demand.

    An agent's key counts what the agent may read; an administrator's without an agent its tenant.
    """
    return _statistics(await app.tracking.statistics(caller, asked.user_id, asked.days, asked.agent))


@router.get("/events", responses=failure_responses(409), summary="What was done")
async def events(app: App, caller: Caller, asked: Annotated[EventQuery, Query()]) -> EventList:
    """Operational events without words, newest first: of what the caller may read, or of an administrator's tenant."""
    filters = EventFilters(**{name: getattr(asked, name) for name in EventFilters.__slots__})
    page = await app.tracking.events(caller, filters, before=asked.cursor, limit=asked.limit, agent=asked.agent)
    return EventList(items=[_event(each) for each in page.items], next=None if page.next is None else str(page.next))


def _event(event: StoredEvent) -> EventRecord:
    return EventRecord(**{name: getattr(event, name) for name in EventRecord.model_fields})


def _statistics(found: Statistics) -> StatisticsRecord:
    return StatisticsRecord(
        **{name: getattr(found, name) for name in ("states", "layers", "categories", "types", "complete", "policy")},
        hits=HitStatistics(hits=found.hits, memories=found.hit, accesses=found.accesses),
        age=AgeStatistics(oldest=found.oldest, buckets=dict(found.ages)),
        on_demand=None if found.on_demand is None else _on_demand(found.on_demand),
    )


def _on_demand(found: OnDemand) -> OnDemandStatistics:
    return OnDemandStatistics(**{name: getattr(found, name) for name in OnDemandStatistics.model_fields})

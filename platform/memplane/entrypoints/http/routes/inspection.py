"""Routes that tell about one memory: why it is so, what came before and after, what it is related to."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query

from memplane.application.memories.explanation import Decay, FiredRule, QuestionScore
from memplane.contracts.base import Name
from memplane.contracts.inspection import (
    DecayRecord,
    RelatedList,
    RelatedRecord,
    RuleRecord,
    ScoreRecord,
    Timeline,
    WhyRecord,
)
from memplane.domain.memory.memory import Memory, Turn
from memplane.entrypoints.http import wire_conversion
from memplane.entrypoints.http.dependencies import Agent, App, Caller
from memplane.entrypoints.http.middleware.guard import AuthenticatedRoute
from memplane.entrypoints.http.routes.memories import Limit, failure_responses

router = APIRouter(prefix="/v1/memories/{memory_id}", route_class=AuthenticatedRoute, tags=["memories"])
Side = Annotated[int, Query(ge=0, le=200)]


@router.get("/why", responses=failure_responses(404), summary="Why a memory is as it is")
async def why(
    memory_id: UUID,
    app: App,
    caller: Caller,
    agent: Agent = None,
    query: Annotated[str | None, Query(max_length=8_000, description="Score it for this question.")] = None,
    ranking: Annotated[Name | None, Query(description="A profile of ranking.yaml, for the question.")] = None,
) -> WhyRecord:
    """Its sources, the rule that decided on it, what it weighs, and what was decided; in whatever state it is."""
    found = await app.explain(caller, memory_id, query=query, ranking=ranking, agent=agent)
    sources = [unit for unit in found.sources if isinstance(unit, Memory)]
    marks = await app.browse.conflicting(caller, [found.memory, *sources], agent)
    return WhyRecord(
        memory=wire_conversion.record_of(found.memory, marks),
        age_days=found.age_days,
        layer=found.memory.layer,
        hits=found.memory.hits,
        last_hit_at=found.memory.last_hit_at,
        decay=DecayRecord(**_fields(found.decay)),
        rule=None if found.rule is None else RuleRecord(**_fields(found.rule)),
        score=None if found.score is None else ScoreRecord(**_fields(found.score)),
        turns=[wire_conversion.turn_record_of(unit) for unit in found.sources if isinstance(unit, Turn)],
        memories=[wire_conversion.record_of(unit, marks) for unit in sources],
        decisions=[wire_conversion.history_record_of(entry) for entry in found.decisions],
    )


def _fields(part: Decay | FiredRule | QuestionScore) -> dict[str, Any]:
    return {name: getattr(part, name) for name in part.__slots__}


@router.get("/timeline", responses=failure_responses(404), summary="What was recorded around it")
async def timeline(
    memory_id: UUID, app: App, caller: Caller, before: Side = 5, after: Side = 5, agent: Agent = None
) -> Timeline:
    """Memories and turns of the same user that were recorded before and after it, oldest first, it among them."""
    found = await app.browse.timeline(caller, memory_id, before, after, agent)
    marks = await app.browse.conflicting(caller, [unit for unit in found if isinstance(unit, Memory)], agent)
    return Timeline(
        items=[
            wire_conversion.record_of(unit, marks) if isinstance(unit, Memory) else wire_conversion.turn_record_of(unit)
            for unit in found
        ]
    )


@router.get("/related", responses=failure_responses(404), summary="What it is related to")
async def related(memory_id: UUID, app: App, caller: Caller, limit: Limit = 10, agent: Agent = None) -> RelatedList:
    """Memories that relations link to it, strongest first."""
    found = await app.browse.related(caller, memory_id, limit, agent)
    marks = await app.browse.conflicting(caller, [memory for memory, _ in found], agent)
    items = [
        RelatedRecord(strength=strength, memory=wire_conversion.record_of(memory, marks)) for memory, strength in found
    ]
    return RelatedList(items=items)

"""Routes of entities: who and what memories mention."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import BaseModel

from memplane.application.records import Entity
from memplane.contracts.entities import (
    AliasRequest,
    EntityFilters,
    EntityList,
    EntityProfileRecord,
    EntityRecord,
    MergeRequest,
    RelatedEntityRecord,
)
from memplane.entrypoints.http import wire_conversion
from memplane.entrypoints.http.dependencies import Agent, App, Caller
from memplane.entrypoints.http.middleware.guard import AuthenticatedRoute
from memplane.entrypoints.http.middleware.idempotency_header import Repeatable
from memplane.entrypoints.http.routes.memories import Cursor, Limit, failure_responses

router = APIRouter(prefix="/v1/entities", route_class=AuthenticatedRoute, tags=["entities"])


@router.get("", responses=failure_responses(409), summary="Whom and what a user's memories mention")
async def entities(app: App, caller: Caller, asked: Annotated[EntityFilters, Query()]) -> EntityList:
    """Entities that memories which the caller may read mention, those that most mention first."""
    found = await app.entities.list(
        caller, asked.user_id, kind=asked.kind, name=asked.name, limit=asked.limit, agent=asked.agent
    )
    return EntityList(items=[_record(entity) for entity in found])


@router.get("/{entity_id}", responses=failure_responses(404), summary="One entity, and what is known of it")
async def entity(
    entity_id: UUID, app: App, caller: Caller, agent: Agent = None, cursor: Cursor = None, limit: Limit = 20
) -> EntityProfileRecord:
    """Its names, the memories that mention it, newest first, and whom they mention besides.

    Absent when no memory that the caller may read mentions it.
    """
    found, profile, more = await app.entities.profile(caller, entity_id, before=cursor, limit=limit, agent=agent)
    marks = await app.browse.conflicting(caller, profile.facts, agent)
    return EntityProfileRecord(
        **_record(found).model_dump(),
        last_mentioned=profile.last_mentioned,
        related=[
            RelatedEntityRecord(id=each.id, kind=each.kind, name=each.name, memories=each.memories)
            for each in profile.related
        ],
        facts=[wire_conversion.record_of(memory, marks) for memory in profile.facts],
        next=str(more) if more else None,
    )


@router.post("/{entity_id}/aliases", responses=failure_responses(404, 409, 413), summary="Give it another name")
async def alias(entity_id: UUID, app: App, caller: Caller, again: Repeatable, request: AliasRequest) -> EntityRecord:
    """From now on memories that say the name are linked to the entity, and it is found by the name."""
    once = again.once(_kept)
    return _record(await app.entities.alias(caller, entity_id, request.alias, request.agent, once=once))


@router.post("/{entity_id}/merge", responses=failure_responses(404, 409, 413), summary="Put it into another")
async def merge(entity_id: UUID, app: App, caller: Caller, again: Repeatable, request: MergeRequest) -> EntityRecord:
    """Its memories and names become the other's, and it is gone."""
    once = again.once(_kept)
    return _record(await app.entities.merge(caller, entity_id, request.into, request.agent, once=once))


def _kept(entity: Entity) -> tuple[int, BaseModel]:
    return 200, _record(entity)


def _record(entity: Entity) -> EntityRecord:
    return EntityRecord(
        id=entity.id,
        user_id=entity.user_id,
        kind=entity.kind,
        name=entity.name,
        aliases=list(entity.aliases),
        memories=entity.memories,
    )

"""The routes: parse a contract, call one use case, render."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Body, Header, Query, Response
from pydantic import BaseModel

from memplane.application.memories.browse import Listing
from memplane.application.memories.placement import Outcome
from memplane.application.memories.supersession import rejection_error
from memplane.application.operations.tracking_records import TurnSpan
from memplane.application.turns.ingestion import StoredTurn
from memplane.application.turns.turn_deletion import TurnDeletionResult
from memplane.contracts.base import Category, Name, Problem
from memplane.contracts.context import ContextAnswer, ContextRequest
from memplane.contracts.memories import (
    HistoryList,
    MemoryBatch,
    MemoryBatchRequest,
    MemoryChange,
    MemoryList,
    MemoryRecord,
    NewMemoryRequest,
    NewTurnRequest,
    ThreadDelta,
    TurnBatchOutcome,
    TurnBatchRequest,
    TurnDeletion,
    TurnList,
    TurnOutcome,
    WriteOutcome,
)
from memplane.contracts.query import QueryAnswer, QueryRequest
from memplane.domain.errors import InvalidRequest
from memplane.domain.memory.memory import Layer, MemoryType, State, TrustState
from memplane.domain.memory.scope import Filters
from memplane.entrypoints.http import examples, paths, wire_conversion
from memplane.entrypoints.http.dependencies import Agent, App, Caller, Dry
from memplane.entrypoints.http.execution import Execution, Status
from memplane.entrypoints.http.middleware import problems
from memplane.entrypoints.http.middleware.guard import AuthenticatedRoute
from memplane.entrypoints.http.middleware.idempotency_header import Repeatable


def failure_responses(*statuses: int, there: type[BaseModel] | None = None) -> dict[int | str, dict[str, Any]]:
    """The failures of a route, for its documentation, and what it answers with 200 when nothing new was made."""
    told = {
        401: "No valid key",
        403: "The key, agent or category does not allow it",
        404: "Absent, or not the caller's",
        408: "The body did not arrive in time",
        409: "Conflict",
        412: "Changed since the version in `If-Match`",
        413: "Body too large",
        422: "Invalid request",
        429: "Too many requests: try again after `Retry-After`",
        503: "Try again after `Retry-After`",
    }
    content = {"application/problem+json": {"schema": Problem.model_json_schema()}}
    found: dict[int | str, dict[str, Any]] = {
        status: {"description": told[status], "content": content}
        for status in (401, 403, 408, 422, 429, 503, *statuses)
    }
    return found if there is None else found | {200: {"model": there, "description": "It was there already"}}


paths.install()
router = APIRouter(prefix="/v1", route_class=AuthenticatedRoute)

Cursor = Annotated[UUID | None, Query(description="`next` of the page before.")]
Limit = Annotated[int, Query(ge=1, le=200)]
IfMatch = Annotated[
    str | None,
    Header(
        max_length=64,
        pattern=r'^\s*(\*|(W/)?"?[0-9]{1,9}"?)\s*$',
        description="The version that the caller holds, as a number or quoted.",
    ),
]


def _json(answer: QueryAnswer) -> Response:
    return Response(answer.model_dump_json(), media_type="application/json")


@router.post(
    "/memory/query",
    response_model=QueryAnswer,
    responses=failure_responses(409, 413),
    tags=["memory"],
    summary="Ask the memory",
)
async def query(
    request: Annotated[QueryRequest, Body(openapi_examples=examples.QUERY)], app: App, caller: Caller
) -> Response:
    """Rank what the agent may read by the question, within `top_k` and the budget of tokens."""
    question = wire_conversion.question_of(request)
    return _json(wire_conversion.answer_of(await app.recall(caller, question), question))


@router.post(
    "/context",
    response_model=ContextAnswer,
    responses=failure_responses(409, 413),
    tags=["memory"],
    summary="What an agent should know before it answers",
)
async def context(
    request: Annotated[ContextRequest, Body(openapi_examples=examples.CONTEXT)], app: App, caller: Caller
) -> Response:
    """What changed, what is always told, what fits the message and the conversation, as one block for a prompt."""
    told = await app.context(caller, wire_conversion.context_call_of(request))
    return Response(
        wire_conversion.context_of(told, request.budget_tokens).model_dump_json(), media_type="application/json"
    )


@router.post(
    "/turns",
    status_code=201,
    responses=failure_responses(409, 413, there=TurnOutcome),
    tags=["turns"],
    summary="Store a turn",
)
async def store_turn(
    request: Annotated[NewTurnRequest, Body(openapi_examples=examples.TURN)],
    app: App,
    caller: Caller,
    response: Response,
    again: Repeatable,
) -> TurnOutcome:
    """Store one message of a conversation, word for word; the next query finds it."""
    run = Execution.of(app, caller, request.agent, dry_run=request.dry_run)
    once = run.once(again, _one_stored)
    (stored,) = await run.writes.ingest(caller, [wire_conversion.new_turn_of(request)], request.agent, once=once)
    return await run.answer(wire_conversion.turn_outcome_of(stored), response, _status([stored]))


@router.post(
    "/turns:batch",
    status_code=201,
    responses=failure_responses(409, 413, there=TurnBatchOutcome),
    tags=["turns"],
    summary="Store many turns",
)
async def store_turns(
    request: TurnBatchRequest, app: App, caller: Caller, response: Response, again: Repeatable
) -> TurnBatchOutcome:
    """Store up to 1 000 turns, all or none."""
    agents = {turn.agent for turn in request.turns}
    if len(agents) > 1:
        raise InvalidRequest("turns: one call speaks as one agent; these name several", field="turns")
    agent = agents.pop()
    run = Execution.of(app, caller, agent, dry_run=request.dry_run)
    turns = [wire_conversion.new_turn_of(turn) for turn in request.turns]
    stored = await run.writes.ingest(caller, turns, agent, once=run.once(again, _all_stored))
    return await run.answer(_batch(stored), response, _status(stored))


@router.delete("/turns/{turn_id}", responses=failure_responses(404, 409), tags=["turns"], summary="Delete a turn")
async def delete_turn(
    turn_id: UUID, app: App, caller: Caller, again: Repeatable, agent: Agent = None, dry_run: Dry = False
) -> TurnDeletion:
    """Delete one turn for good, with what was derived from it alone; only for fully trusted keys."""
    run = Execution.of(app, caller, agent, dry_run=dry_run)
    done = await run.writes.delete_turn(caller, turn_id, agent, once=run.once(again, _deleted))
    return await run.answer(_deletion(done))


def _deletion(done: TurnDeletionResult) -> TurnDeletion:
    return TurnDeletion(turn_id=done.turn_id, rev=done.rev)


def _deleted(done: TurnDeletionResult) -> tuple[int, BaseModel]:
    return 200, _deletion(done)


def _status(stored: Sequence[StoredTurn]) -> Status:
    return 201 if any(turn.created for turn in stored) else 200


def _one_stored(stored: list[StoredTurn]) -> tuple[int, BaseModel]:
    return _status(stored), wire_conversion.turn_outcome_of(stored[0])


def _all_stored(stored: list[StoredTurn]) -> tuple[int, BaseModel]:
    return _status(stored), _batch(stored)


def _batch(stored: Sequence[StoredTurn]) -> TurnBatchOutcome:
    return TurnBatchOutcome(items=[wire_conversion.turn_outcome_of(turn) for turn in stored])


@router.post(
    "/memories",
    status_code=201,
    responses=failure_responses(409, 413, there=WriteOutcome)
    | {202: {"model": WriteOutcome, "description": "It waits for consent"}},
    tags=["memories"],
    summary="Store a memory",
)
async def create_memory(
    request: Annotated[NewMemoryRequest, Body(openapi_examples=examples.MEMORY)],
    app: App,
    caller: Caller,
    response: Response,
    again: Repeatable,
) -> WriteOutcome:
    """Store one thing known, once: what says the same is merged, what it overrules becomes a thing of the past."""
    run = Execution.of(app, caller, request.agent, dry_run=request.dry_run)
    new, once = wire_conversion.new_memory_of(request), run.once(again, stored_response)
    outcome = await run.writes.remember.create(caller, new, request.agent, once=once)
    return await run.answer(wire_conversion.outcome_of(outcome), response, NEW.get(outcome.outcome, 200))


NEW: Mapping[str, Status] = {
    "created": 201, "superseded": 201, "disputed": 201, "outdated": 201, "queued_for_consent": 202,
}  # fmt: skip
"""Statuses of outcomes, where they are not 200."""


def stored_response(outcome: Outcome) -> tuple[int, BaseModel | dict[str, object]]:
    """What the same request is answered again."""
    if outcome.outcome == "refused":
        return problems.status_and_document(rejection_error())
    return NEW.get(outcome.outcome, 200), wire_conversion.outcome_of(outcome)


Standing = Literal["candidate", "confirmed", "disputed"]
Lifecycle = Literal["active", "superseded", "archived", "soft_deleted"]


@router.get("/memories", responses=failure_responses(409), tags=["memories"], summary="List memories")
async def list_memories(  # noqa: PLR0913, PLR0917 - one argument for each query parameter
    app: App,
    caller: Caller,
    user_id: Name | None = None,
    category: Annotated[list[Category] | None, Query(max_length=100)] = None,
    type: MemoryType | None = None,  # noqa: A002 - the wire name
    thread_id: Name | None = None,
    tag: Annotated[list[Name] | None, Query(max_length=50)] = None,
    pinned: bool | None = None,
    state: Lifecycle = "active",
    layer: Layer | None = None,
    q: Annotated[str | None, Query(max_length=8_000, description="Only those that hold one of these words.")] = None,
    trust_state: Standing | None = None,
    shared: Annotated[bool, Query(description="Only those about no user.")] = False,
    agent: Agent = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> MemoryList:
    """Memories that the agent may read, newest first; those that wait for a verdict with ``trust_state=disputed``.

    With ``q`` each has a ``score``: how well it matches the words, 1 for the best of all. What was deleted is listed
    for fully trusted keys alone.
    """
    filters = Filters(
        user_id=user_id,
        types=(type,) if type else (),
        layer=layer,
        thread_id=thread_id,
        tags=tuple(tag or ()),
        pinned=pinned,
    )
    believed = TrustState(trust_state) if trust_state else None
    wanted = Listing(tuple(category or ()), filters, State(state), believed, q, shared)
    page = await app.browse.list(caller, wanted, before=cursor, limit=limit, agent=agent)
    marks = await app.browse.conflicting(caller, page.items, agent)
    items = [wire_conversion.listed_of(memory, marks, page.scores.get(memory.id)) for memory in page.items]
    return MemoryList(items=items, next=str(page.next) if page.next else None)


@router.post("/memories:batchGet", responses=failure_responses(413), tags=["memories"], summary="Get several memories")
async def get_memories(request: MemoryBatchRequest, app: App, caller: Caller) -> MemoryBatch:
    """Up to 200 memories in the order asked; those that are absent or not the caller's are left out."""
    found = await app.browse.batch(caller, request.ids, request.agent)
    marks = await app.browse.conflicting(caller, found, request.agent)
    return MemoryBatch(items=[wire_conversion.record_of(memory, marks) for memory in found])


@router.get("/memories/{memory_id}", responses=failure_responses(404), tags=["memories"], summary="Get a memory")
async def get_memory(
    memory_id: UUID, app: App, caller: Caller, response: Response, agent: Agent = None
) -> MemoryRecord:
    """One memory, with its version as `ETag`."""
    memory = await app.browse.get(caller, memory_id, agent)
    response.headers["ETag"] = f'"{memory.version}"'
    return wire_conversion.record_of(memory, await app.browse.conflicting(caller, [memory], agent))


@router.patch(
    "/memories/{memory_id}",
    responses=failure_responses(404, 409, 412, 413),
    tags=["memories"],
    summary="Change a memory",
)
async def change_memory(
    memory_id: UUID,
    request: MemoryChange,
    app: App,
    caller: Caller,
    if_match: IfMatch = None,
    agent: Agent = None,
) -> WriteOutcome:
    """Change fields in place; the older text stays in the history."""
    changes = {name: getattr(request, name) for name in request.model_fields_set - {"dry_run"}}
    empty = [
        name for name in ("content", "category", "importance", "pinned", "confidence") if changes.get(name, 0) is None
    ]
    if empty:
        raise InvalidRequest(f"{empty[0]}: cannot be null", field=empty[0])
    lists = {name: tuple(value or ()) for name, value in changes.items() if name in _LISTS}
    run, version = Execution.of(app, caller, agent, dry_run=request.dry_run), version_of(if_match)
    changed = await run.writes.remember.update(caller, memory_id, changes | lists, version=version, agent=agent)
    return await run.answer(wire_conversion.outcome_of(changed))


_LISTS = frozenset({"facts", "steps", "tags", "related_files"})


@router.delete(
    "/memories/{memory_id}", responses=failure_responses(404, 409, 412), tags=["memories"], summary="Delete a memory"
)
async def delete_memory(  # noqa: PLR0913, PLR0917 - one argument for each query parameter
    memory_id: UUID, app: App, caller: Caller, if_match: IfMatch = None, agent: Agent = None,
    tombstone: Annotated[bool, Query(description="Refuse its value from now on, until it is restored.")] = False,
    dry_run: Dry = False,
) -> WriteOutcome:  # fmt: skip
    """Take a memory out of every read at once; it is purged 30 days later."""
    run, version = Execution.of(app, caller, agent, dry_run=dry_run), version_of(if_match)
    done = await run.writes.remember.delete(caller, memory_id, version=version, agent=agent, tombstone=tombstone)
    return await run.answer(wire_conversion.outcome_of(done))


@router.get(
    "/memories/{memory_id}/history", responses=failure_responses(404), tags=["memories"], summary="A memory's history"
)
async def memory_history(
    memory_id: UUID, app: App, caller: Caller, agent: Agent = None, cursor: Cursor = None, limit: Limit = 50
) -> HistoryList:
    """Everything that was done to a memory, newest first, also after its deletion."""
    page = await app.browse.history(caller, memory_id, before=cursor, limit=limit, agent=agent)
    items = [wire_conversion.history_record_of(entry) for entry in page.items]
    return HistoryList(items=items, next=str(page.next) if page.next else None)


# `path`: a thread's name may have slashes in it
@router.get(
    "/threads/{thread_id:text}/delta",
    responses=failure_responses(409),
    tags=["threads"],
    summary="What changed in a thread",
)
async def delta(
    thread_id: Name,
    app: App,
    caller: Caller,
    since: Annotated[int, Query(ge=0, le=2**53, description="Tell what changed after this revision.")] = 0,
    user_id: Name | None = None,
    agent: Agent = None,
) -> ThreadDelta:
    """The thread's revision, and what changed since another, of the categories that the agent may read."""
    return wire_conversion.delta_of(await app.threads.delta(caller, thread_id, since, user_id, agent))


Seq = Annotated[int | None, Query(ge=0, le=2**53)]


@router.get(
    "/threads/{thread_id:text}/turns",
    responses=failure_responses(409),
    tags=["threads"],
    summary="What was said in a thread",
)
async def thread_turns(  # noqa: PLR0913, PLR0917 - one argument for each query parameter
    thread_id: Name,
    app: App,
    caller: Caller,
    user_id: Name | None = None,
    before_seq: Seq = None,
    after_seq: Seq = None,
    agent: Agent = None,
    limit: Limit = 50,
) -> TurnList:
    """Turns word for word, newest first; with `after_seq`, oldest first. Only for agents that read turns."""
    span = TurnSpan(before_seq, after_seq)
    page = await app.threads.turns(caller, thread_id, span, user_id=user_id, limit=limit, agent=agent)
    items = [wire_conversion.turn_record_of(turn) for turn in page.items]
    return TurnList(items=items, next=None if page.next is None else str(page.next))


def version_of(if_match: str | None) -> int | None:
    """The version in an `If-Match` header.

    Raises:
        Invalid: it is none.
    """
    if if_match is None or if_match.strip() == "*":
        return None
    value = if_match.strip().removeprefix("W/").strip('"')
    if not value.isascii() or not value.isdigit() or len(value) > 9:
        raise InvalidRequest(
            f"If-Match: '{if_match[:40]}' is no version; send the number that `version` or `ETag` gave"
        )
    return int(value)

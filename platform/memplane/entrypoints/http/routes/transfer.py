"""All that is remembered of a user, out and in."""

from contextlib import aclosing
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Path, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel
from starlette.types import Receive, Scope, Send

from memplane.application.limits.idempotency import Once
from memplane.application.limits.offload import in_thread
from memplane.application.transfer.exports import Exports, ExportStream
from memplane.application.transfer.imports import ImportBatch, ImportMode, ImportResult
from memplane.bootstrap import Application
from memplane.contracts.transfer import MEDIA_TYPE, ImportOutcome, ImportRequest, RefusedLine
from memplane.domain.identity.principal import Principal
from memplane.entrypoints.export_lines import export_lines
from memplane.entrypoints.http.dependencies import Agent, App, Caller
from memplane.entrypoints.http.import_lines import incoming
from memplane.entrypoints.http.middleware.guard import AuthenticatedRoute
from memplane.entrypoints.http.middleware.idempotency_header import After, Repeatable
from memplane.entrypoints.http.routes.memories import failure_responses

router = APIRouter(prefix="/v1", route_class=AuthenticatedRoute, tags=["export and import"])
UserId = Annotated[str, Path(min_length=1, max_length=255)]


class _Export(StreamingResponse):
    """An export on its way: it has a place among the few that run at a time, and gives it back however it ends."""

    def __init__(self, exports: Exports, export: ExportStream) -> None:
        self._exports = exports
        self._lines = export_lines(exports, export)
        super().__init__(self._lines, media_type=MEDIA_TYPE, headers={"Cache-Control": "no-store"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it; what goes wrong on the way leaves it without its last line."""
        async with self._exports.place(), aclosing(self._lines):
            await super().__call__(scope, receive, send)


@router.get(
    "/users/{user_id:text}/export",
    response_class=Response,
    responses=failure_responses(404, 409) | {200: {"content": {MEDIA_TYPE: {}}, "description": "Lines of JSON"}},
    summary="Export a user",
)
async def export(user_id: UserId, app: App, caller: Caller, agent: Agent = None) -> Response:
    """All that is known of a user, in whatever state, as lines of JSON: a header, records, and an end that counts them.

    One without its end was cut off. For fully trusted keys with `admin`; a key of an agent gets its categories, one of
    no agent that may act for each gets all. A user that nobody knows has no records.
    """
    return _Export(app.exports, await app.exports.begin(caller, user_id, agent))


@router.get(
    "/shared/export",
    response_class=Response,
    responses=failure_responses(404) | {200: {"content": {MEDIA_TYPE: {}}, "description": "Lines of JSON"}},
    summary="Export shared knowledge",
)
async def export_shared(app: App, caller: Caller, agent: Agent = None) -> Response:
    """All memories about no user, as the export of a user has them; its header names no user.

    For fully trusted keys with `admin` that are bound to no user.
    """
    return _Export(app.exports, await app.exports.begin(caller, None, agent))


@router.post("/users/{user_id:text}/import", responses=failure_responses(409, 413), summary="Import lines for a user")
async def take_in(
    user_id: UserId, request: ImportRequest, app: App, caller: Caller, again: Repeatable, after: After = None
) -> ImportOutcome:
    """Take lines of an export in, each for itself, and say what became of each; the user is that of the path.

    Added, each memory goes the way of a new one: trust and source are the server's to say, it is merged with what says
    the same, refused where a person rejected it, and waits for consent where it would change a sensitive field.
    Restored, by a fully trusted key with `admin`, each record comes back with its id, state and times.

    Batches of a file depend on one another. One with `Idempotency-After` is read and looked at at once, and stored when
    the one that it names was; without that one it is refused (`out_of_order`).
    """
    return await _taken(app, caller, user_id, request, again.once(_kept, after))


@router.post("/shared/import", responses=failure_responses(409, 413), summary="Import lines of shared knowledge")
async def take_in_shared(
    request: ImportRequest, app: App, caller: Caller, again: Repeatable, after: After = None
) -> ImportOutcome:
    """Take lines in as knowledge about no user: memories of the categories that the policy shares, and no messages.

    For fully trusted keys that are bound to no user; else as for a user.
    """
    return await _taken(app, caller, None, request, again.once(_kept, after))


async def _taken(
    app: Application, caller: Principal, user_id: str | None, request: ImportRequest, once: Once[ImportResult] | None
) -> ImportOutcome:
    mode = ImportMode(request.mode)
    lines = await in_thread(incoming, request.lines, datetime.now(UTC), restoring=mode is ImportMode.RESTORE)
    return _told(await app.imports(caller, ImportBatch(user_id, mode, lines, request.agent), once=once))


def _told(done: ImportResult) -> ImportOutcome:
    refused = [RefusedLine(line=place, code=each.code, detail=each.detail) for place, each in done.refusals.items()]
    return ImportOutcome(outcomes=list(done.outcomes), refused=refused)  # type: ignore[arg-type]  # a test compares them


def _kept(done: ImportResult) -> tuple[int, BaseModel]:
    return 200, _told(done)

"""Errors as RFC 9457 problem documents, each with its stable code."""

import traceback
from collections.abc import Mapping

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import iter_route_contexts
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.routing import compile_path
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memplane.contracts.mistakes import mistakes
from memplane.domain import errors
from memplane.entrypoints.http.middleware.request_log import RequestLog, request_id, route_of
from memplane.entrypoints.logs import logger_of

logger = logger_of("memplane.http")

MEDIA_TYPE = "application/problem+json"
STATUS: Mapping[type[errors.MemplaneError], tuple[int, str]] = {
    errors.VersionMismatch: (412, "Version conflict"),
    errors.StateConflict: (409, "Conflict"),
    errors.RecordNotFound: (404, "Not found"),
    errors.AccessForbidden: (403, "Forbidden"),
    errors.NotSupported: (501, "Not supported"),
    errors.AuthenticationRequired: (401, "Unauthenticated"),
    errors.InvalidRequest: (422, "Invalid request"),
    errors.RateLimitExceeded: (429, "Too many requests"),
    errors.UploadsLimited: (429, "Too many requests"),
    errors.QuotaExceeded: (429, "Quota exceeded"),
    errors.RequestTimeout: (408, "Request timeout"),
    errors.EmbeddingMismatch: (503, "Unavailable"),
    errors.StorageUnavailable: (503, "Unavailable"),
    errors.Busy: (503, "Unavailable"),
    errors.DeadlineExceeded: (503, "Unavailable"),
    errors.ModelUnavailable: (503, "Unavailable"),
    errors.NoModel: (501, "Not supported"),
    errors.BudgetSpent: (429, "Too many requests"),
    errors.ModelFailed: (502, "Bad gateway"),
    errors.MemplaneError: (500, "Internal error"),
}
RETRY_SECONDS = "1"
_MOST_MISTAKES = 50


def status_and_document(error: errors.MemplaneError) -> tuple[int, dict[str, object]]:
    """The status of an error that is the caller's, and its problem document."""
    status, title = next(found for kind, found in STATUS.items() if isinstance(error, kind))
    body = {"type": "about:blank", "title": title, "status": status, "detail": error.detail, "code": error.code}
    return status, {**body, **error.extra}


def problem(status: int, title: str, code: str, detail: str, extra: Mapping[str, object] | None = None) -> JSONResponse:
    """A problem document as a response."""
    body: dict[str, object] = {"type": "about:blank", "title": title, "status": status, "detail": detail, "code": code}
    body |= extra or {}
    if (asked := request_id()) is not None:
        body["request_id"] = asked
    headers = {
        401: {"WWW-Authenticate": "Bearer"},
        408: {"Connection": "close"},
        429: {"Retry-After": str(body.get("retry_after", RETRY_SECONDS))},
        503: {"Retry-After": RETRY_SECONDS},
    }.get(status)
    return JSONResponse(body, status_code=status, media_type=MEDIA_TYPE, headers=headers)


def install(app: FastAPI) -> None:
    """Answer every error of the application with a problem document."""
    app.add_exception_handler(errors.MemplaneError, _memplane_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_middleware(LastResort)
    app.add_middleware(RequestLog)  # the outermost: it sees every answer


async def _memplane_error(request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, errors.MemplaneError):
        raise error
    status, title = next(found for kind, found in STATUS.items() if isinstance(error, kind))
    if status == 500 or isinstance(error, errors.EmbeddingMismatch):  # the operator's to mend; another server may do it
        logger.error("request failed", route=route_of(request.scope), code=error.code, detail=error.detail)
        return problem(status, title, error.code, "the server could not do this; its log says why")
    return problem(status, title, error.code, error.detail, error.extra)


async def _validation_error(request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, RequestValidationError):
        raise error
    wrong = mistakes(list(error.errors())[:_MOST_MISTAKES], _body_model(request), within=1)
    found = [{"field": field, "message": mistake} for field, mistake in wrong]
    told = "; ".join(f"{entry['field']}: {entry['message']}" for entry in found[:5])
    return problem(422, "Invalid request", "invalid_request", told, {"errors": found})


def _body_model(request: Request) -> type[BaseModel] | None:
    """What the body of the request's route must be."""
    body = getattr(request.scope.get("route"), "body_field", None)
    named = None if body is None else body.field_info.annotation
    return named if isinstance(named, type) and issubclass(named, BaseModel) else None


async def _http_error(request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, HTTPException):
        raise error
    if error.status_code == 400:  # the framework's word for a body that its parser gave up
        return problem(422, "Invalid request", "invalid_request", str(error.detail))
    codes = {404: "not_found", 405: "method_not_allowed", 413: "body_too_large"}
    code = codes.get(error.status_code, "http_error")
    answer = problem(error.status_code, str(error.detail), code, str(error.detail))
    if error.status_code == 405:  # the framework names those of one route alone
        answer.headers["Allow"] = ", ".join(_methods(request))
    return answer


def _methods(request: Request) -> list[str]:
    """The methods that there are for a path, over all its routes."""
    path = request.scope["path"]
    there = iter_route_contexts(request.app.routes)
    return sorted(
        {m for context in there if compile_path(context.path or "")[0].match(path) for m in context.methods or ()}
    )


class LastResort:
    """Answers an error that nobody expected with 500 ``internal_error``.

    The log gets the error's type and where it was raised, but neither its message nor local values: both may hold a key
    or what a person said.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, and answer what nobody caught."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception as error:  # noqa: BLE001 - the last resort
            where = "".join(traceback.format_tb(error.__traceback__))
            logger.error(  # noqa: TRY400 - exception() would log the message
                "unexpected error", route=route_of(scope), error=type(error).__name__, where=where
            )
            if not started:
                detail = "the server could not do this; its log says why"
                await problem(500, "Internal error", "internal_error", detail)(scope, receive, send)

"""Each request has an id, by which its answer, its problem document and every line of the log about it are found."""

import re
import time
from uuid import uuid4

import structlog
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memplane.domain.identity.principal import Principal
from memplane.entrypoints.logs import logger_of

logger = logger_of("memplane.http")
HEADER = "X-Request-Id"
_PLAIN = re.compile(r"[A-Za-z0-9._-]{1,64}")


def request_id() -> str | None:
    """The id of the request that is being answered."""
    found: str | None = structlog.contextvars.get_contextvars().get("request_id")
    return found


class RequestLog:
    """Gives each request its id, and logs how it was answered.

    The log names the route and not the path, the caller's tenant and agent and not whom it asks about: paths, query
    strings and bodies hold people's names and words.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, with an id."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        sent = Headers(scope=scope).get(HEADER, "")
        given = sent if _PLAIN.fullmatch(sent) else uuid4().hex
        begun, status = time.perf_counter(), 0

        async def marked(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[HEADER] = given
            await send(message)

        with structlog.contextvars.bound_contextvars(request_id=given):
            try:
                await self._app(scope, receive, marked)
            finally:
                _tell(scope, status, time.perf_counter() - begun)


def _tell(scope: Scope, status: int, seconds: float) -> None:
    told = logger.warning if status >= 500 else logger.info
    caller = scope.get("state", {}).get("principal")
    known = (
        {"tenant": caller.tenant, "agent": caller.agent, "key": caller.key_id} if isinstance(caller, Principal) else {}
    )
    told(
        "request",
        method=scope["method"],
        route=route_of(scope),
        status=status or None,  # none: the client went away, or the server ended
        ms=round(seconds * 1_000, 1),
        **known,
    )


def route_of(scope: Scope) -> str | None:
    """The route that a request has come to, as the document names it."""
    app, endpoint = scope.get("app"), scope.get("endpoint")
    if not isinstance(app, FastAPI) or endpoint is None:
        return None
    known: dict[object, str] | None = getattr(app.state, "routes_by_endpoint", None)
    if known is None:
        known = {context.endpoint: context.path or "" for context in iter_route_contexts(app.routes)}
        app.state.routes_by_endpoint = known
    return known.get(endpoint)

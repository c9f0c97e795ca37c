"""Request bodies on their way in: the largest one, and what is to be done as each part arrives."""

from collections.abc import Awaitable, Callable

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memplane.entrypoints.http.middleware.problems import problem

STATUS, TITLE, CODE = 413, "Content Too Large", "body_too_large"

Meter = Callable[[int, bool], Awaitable[None]]
"""What is called with the bytes received so far, and whether there are more to come; what it raises is the answer."""
METER = "body_meter"
"""Under this name the state of a request holds its meter."""
LONGEST = 18
"""Digits of a length that is still looked at: Python refuses to read a number of thousands."""


class BodyLimit:
    """Refuses a body that says it is too large before reading it, and another one as soon as it is; runs its meter.

    The framework's own limit answers in plain text.
    """

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self._app = app
        self._limit = limit
        self._detail = f"the body has more than {limit} bytes"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what is small enough."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        declared = Headers(scope=scope).get("content-length", "")
        if declared.isdecimal() and (len(declared) > LONGEST or int(declared) > self._limit):
            await problem(STATUS, TITLE, CODE, self._detail)(scope, receive, send)
            return
        received = 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._limit:
                raise HTTPException(STATUS, self._detail)
            meter: Meter | None = scope.get("state", {}).get(METER)
            if meter is not None and message["type"] == "http.request":
                await meter(received, message.get("more_body", False))
            return message

        await self._app(scope, counted, send)

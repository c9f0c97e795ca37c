"""The largest request body, refused with a problem document like every other error."""

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memplane.entrypoints.http.problems import problem

STATUS, TITLE, CODE = 413, "Content Too Large", "body_too_large"

LONGEST = 18
"""Digits of a length that is still looked at: Python refuses to read a number of thousands."""


class BodyLimit:
    """Refuses a body that says it is too large before reading it, and another one as soon as it is.

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
            return message

        await self._app(scope, counted, send)

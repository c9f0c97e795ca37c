"""What comes before a request is read: who calls, whether the key may ask again, and whether the body can be parsed."""

import json
from collections.abc import Awaitable, Callable

import numpy as np
from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect

from memplane.application.offload import offload
from memplane.application.rates import cost_of
from memplane.bootstrap import Application
from memplane.domain.errors import Invalid, LimitExceeded
from memplane.entrypoints.http.dependencies import authenticated

MAX_DEPTH = 64
_BRACKETS = b"[]{}"
_OTHERS = bytes(set(range(256)) - set(_BRACKETS))
_STEP = np.zeros(256, dtype=np.int8)
_STEP[list(b"[{")], _STEP[list(b"]}")] = 1, -1


class Guarded(APIRoute):
    """A route for callers with a key: without one, not a byte of the body is read."""

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override] # the framework awaits it alone
        """The framework's handler, behind the guard."""
        answer = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            await _admit(request)
            return await answer(request)

        return guarded


async def _admit(request: Request) -> None:
    """Let a request in.

    Raises:
        Unauthenticated: no valid key.
        RateLimited: the key asks too often.
        Invalid: the body is no JSON that could be parsed.
        HTTPException: the body is too large.
    """
    wired: Application = request.app.state.memplane
    caller = await authenticated(request)
    declared = request.headers.get("content-length", "")
    told = int(declared) if declared.isdecimal() else 0
    await wired.rates.take(caller, cost_of(told))
    try:
        body = await request.body()
    except ClientDisconnect as gone:
        raise Invalid("the body ended before it was complete") from gone  # nobody hears it
    if not told and (more := cost_of(len(body)) - 1):  # it came in pieces, without its length
        await wired.rates.take(caller, more)
    if body:
        await offload(len(body), refuse_unreadable, body)


def refuse_unreadable(body: bytes) -> None:
    """Refuse what a parser should not be given.

    Raises:
        Invalid: it is not UTF-8.
        LimitExceeded: lists and objects are nested too deeply.
    """
    if json.detect_encoding(body) not in {"utf-8", "utf-8-sig"}:
        raise Invalid("the body has to be JSON in UTF-8")
    if body.count(b"[") + body.count(b"{") > MAX_DEPTH and depth_of(body) > MAX_DEPTH:
        raise LimitExceeded(f"the body nests lists and objects more than {MAX_DEPTH} deep", limit=MAX_DEPTH)


def depth_of(body: bytes) -> int:
    """How deeply a JSON document nests lists and objects, in a time that grows with its length alone."""
    outside = body.replace(rb"\\", b"").replace(rb"\"", b"").split(b'"')[::2]
    brackets = np.frombuffer(b"".join(outside).translate(None, _OTHERS), dtype=np.uint8)
    return int(np.cumsum(_STEP[brackets], dtype=np.int32).max(initial=0))

"""What comes before a request is answered: who calls, whether the key may ask again, and whose turn it is."""

import asyncio
import json
from collections.abc import Awaitable, Callable

import numpy as np
from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect

from memplane.application.limits.offload import offload
from memplane.application.limits.rate_limits import cost_of
from memplane.application.limits.uploads import Upload
from memplane.bootstrap import Application
from memplane.domain.errors import InvalidRequest, LimitExceeded, RateLimitExceeded, RequestTimeout
from memplane.domain.identity.principal import Principal
from memplane.entrypoints.http.dependencies import authenticate, credential_of
from memplane.entrypoints.http.middleware.body_limit import METER
from memplane.entrypoints.http.parameters import parameters_of, refuse_others

MAX_DEPTH = 64
_BRACKETS = b"[]{}"
_OTHERS = bytes(set(range(256)) - set(_BRACKETS))
_STEP = np.zeros(256, dtype=np.int8)
_STEP[list(b"[{")], _STEP[list(b"]}")] = 1, -1


class AuthenticatedRoute(APIRoute):
    """A route for callers with a key: without one, not a byte of the body is read."""

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override] # the framework awaits it alone
        """The framework's handler, behind the guard."""
        answer, known = super().get_route_handler(), parameters_of(self.dependant)

        async def guarded(request: Request) -> Response:
            wired: Application = request.app.state.memplane
            caller = await _let_in(request, wired)
            refuse_others(request.query_params, known)
            address = request.client.host if request.client else ""
            with (
                wired.uploads.upload((caller.tenant, caller.key_id), address) as upload,
                wired.workers.serving(caller.tenant),
            ):
                body = await _read(request, wired, caller, upload)
                # only now: a client that sends slowly takes nobody's place
                async with wired.admission.turn(caller.tenant):
                    if body:
                        await offload(len(body), refuse_unreadable, body)
                    return await answer(request)

        return guarded


async def _let_in(request: Request, wired: Application) -> Principal:
    """The caller, of whose key the tokens are taken that the request says it costs.

    Raises:
        Unauthenticated: no valid key.
        RateLimited: the key asks too often.
    """
    credential, tokens = await credential_of(request), cost_of(_declared(request))
    known = wired.refusals.find_caller(credential) if credential else None
    if known is not None:
        _refuse_again(request, wired, known, tokens)
    caller = await authenticate(request, credential)
    try:
        await wired.rates.take(caller, tokens)
    except RateLimitExceeded:
        wired.refusals.note(credential or "", caller)
        raise
    return caller


def _refuse_again(request: Request, wired: Application, known: Principal, tokens: int) -> None:
    """Refuse who was refused a moment ago, if there cannot be tokens yet: without any work for it.

    Raises:
        RateLimited: there cannot.
    """
    try:
        wired.rates.foretell(known, tokens)
    except RateLimitExceeded:
        request.state.principal = known  # the log tells of it
        raise


async def _read(request: Request, wired: Application, caller: Principal, upload: Upload) -> bytes:
    """The body; what it costs beyond its declared length is taken as it arrives.

    Raises:
        Invalid: it ended early.
        RequestTimeout: it did not arrive in time.
        RateLimited: it costs more than the key has.
        UploadsLimited, Busy: too much is under way.
        HTTPException: it is too large.
    """
    paid = cost_of(_declared(request))

    async def metered(received: int, unfinished: bool) -> None:
        nonlocal paid
        upload.hold(received, unfinished=unfinished)
        if (due := cost_of(received)) > paid:  # it comes in pieces, without its length
            await wired.rates.take(caller, due - paid, before=paid)
            paid = due

    setattr(request.state, METER, metered)
    try:
        async with asyncio.timeout(wired.uploads.seconds):
            return await request.body()
    except TimeoutError as late:
        raise RequestTimeout(f"the body was not complete within {wired.uploads.seconds:g} seconds") from late
    except ClientDisconnect as gone:
        raise InvalidRequest("the body ended before it was complete") from gone  # nobody hears it
    finally:
        delattr(request.state, METER)


def _declared(request: Request) -> int:
    """The bytes that the body is said to have."""
    told = request.headers.get("content-length", "")
    return int(told) if told.isdecimal() else 0


def refuse_unreadable(body: bytes) -> None:
    """Refuse what a parser should not be given.

    Raises:
        Invalid: it is not UTF-8.
        LimitExceeded: lists and objects are nested too deeply.
    """
    if json.detect_encoding(body) not in {"utf-8", "utf-8-sig"}:
        raise InvalidRequest("the body has to be JSON in UTF-8")
    if body.count(b"[") + body.count(b"{") > MAX_DEPTH and depth_of(body) > MAX_DEPTH:
        raise LimitExceeded(f"the body nests lists and objects more than {MAX_DEPTH} deep", limit=MAX_DEPTH)


def depth_of(body: bytes) -> int:
    """How deeply a JSON document nests lists and objects, in a time that grows with its length alone."""
    outside = body.replace(rb"\\", b"").replace(rb"\"", b"").split(b'"')[::2]
    brackets = np.frombuffer(b"".join(outside).translate(None, _OTHERS), dtype=np.uint8)
    return int(np.cumsum(_STEP[brackets], dtype=np.int32).max(initial=0))

"""`Idempotency-Key`: a request that is sent again has no second effect, and gets the first answer."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, TypeVar

from fastapi import Depends, FastAPI, Header, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from memplane.application.limits.idempotency import AlreadyDone, Once
from memplane.application.limits.offload import offload
from memplane.domain.errors import InvalidRequest
from memplane.entrypoints.http.middleware import problems

T = TypeVar("T")
REPLAYED = {"Idempotency-Replayed": "true"}
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        description="The same request with the same key has one effect, and gets the same answer.",
    ),
]
After = Annotated[
    str | None,
    Header(
        alias="Idempotency-After",
        min_length=1,
        max_length=255,
        description="The `Idempotency-Key` of another request, after which alone this one is carried out.",
    ),
]


@dataclass(frozen=True, slots=True)
class Repeats:
    """The idempotency key of a request, if it has one, and the request's hash."""

    key: str | None
    request: str

    def once(
        self, answer: Callable[[T], tuple[int, BaseModel | Mapping[str, object]]], after: str | None = None
    ) -> Once[T] | None:
        """What to keep of an outcome: its status and its body.

        Args:
            answer: both, of an outcome.
            after: the key of the request that this one comes after. It says when, not what: it is no part of the hash.

        Raises:
            Invalid: it comes after itself, or has no key of its own.
        """
        if after is not None and self.key in (None, after):
            raise InvalidRequest(
                "Idempotency-After: needs an Idempotency-Key, and another one", field="Idempotency-After"
            )
        if self.key is None:
            return None

        def kept(outcome: T) -> Mapping[str, object]:
            status, body = answer(outcome)
            return {"status": status, "body": body.model_dump(mode="json") if isinstance(body, BaseModel) else body}

        return Once(self.key, self.request, kept, after=after)


async def repeats(request: Request, idempotency_key: Key = None) -> Repeats:
    """The request's idempotency key."""
    if idempotency_key is None:
        return Repeats(None, "")
    about = (request.method, request.url.path, request.url.query, request.headers.get("if-match", ""))
    body = await request.body()
    return Repeats(idempotency_key, await offload(len(body), _hash, "\n".join(about), body))


def _hash(about: str, body: bytes) -> str:
    """SHA-256 (hex) of a request."""
    return hashlib.sha256(about.encode() + b"\n" + _plain(body)).hexdigest()


def _plain(body: bytes) -> bytes:
    """A body without what JSON leaves open: space, the order of names, escapes."""
    try:
        return json.dumps(json.loads(body), sort_keys=True, separators=(",", ":")).encode()
    except ValueError:
        return body  # it is refused later, for what it is


Repeatable = Annotated[Repeats, Depends(repeats)]


def install(app: FastAPI) -> None:
    """Answer what was carried out before as it was answered then."""
    app.add_exception_handler(AlreadyDone, _answered)


async def _answered(_request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, AlreadyDone):
        raise error
    status = error.answer.get("status")
    code = status if isinstance(status, int) else 200
    kind = problems.MEDIA_TYPE if code >= 400 else None
    return JSONResponse(error.answer.get("body"), code, headers=REPLAYED, media_type=kind)

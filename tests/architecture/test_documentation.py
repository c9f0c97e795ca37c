"""The OpenAPI document tells of every refusal that a kind of operation can meet."""

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from fastapi.responses import JSONResponse

from memplane.bootstrap import Application
from memplane.entrypoints.http.app import create_app
from memplane.settings import Settings
from support.documented import UNTOLD, Documented

Json = dict[str, Any]


@pytest.fixture(scope="module")
def document() -> Iterator[Json]:
    wired = Application(Settings(), "postgresql://nobody@127.0.0.1:1/none")
    yield create_app(wired, max_body_bytes=100_000).openapi()
    wired.embedder.close()


def silent(document: Json) -> list[str]:
    """Operations that change something and tell of no conflict, or take a body and tell of no bound."""
    return [
        f"{method} {path}: {status}"
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        for status, may in {"409": _writes(method, operation), "413": "requestBody" in operation}.items()
        if may and status not in operation["responses"]
    ]


def _writes(method: str, operation: Json) -> bool:
    """Two of them can meet: of one key, or at a user that is being erased."""
    named = {parameter["name"] for parameter in operation.get("parameters", ())}
    return method in {"put", "patch", "delete"} or "Idempotency-Key" in named


def test_what_writes_tells_of_conflicts_and_what_has_a_body_of_its_bound(document: Json) -> None:
    assert silent(document) == []


def test_what_does_not_tell_is_found(document: Json) -> None:
    operation = document["paths"]["/v1/turns"]["post"]
    kept = {status: told for status, told in operation["responses"].items() if status not in {"409", "413"}}
    spoilt = {"paths": {"/v1/turns": {"post": operation | {"responses": kept}}}}
    assert silent(spoilt) == ["post /v1/turns: 409", "post /v1/turns: 413"]


@pytest.mark.parametrize(("status", "untold"), [(200, []), (418, ["GET /things/{name}: 418"])])
def test_an_answer_beyond_the_document_is_noted(status: int, untold: list[str]) -> None:
    """What holds the servers of all tests to their document."""
    face = FastAPI()

    @face.get("/things/{name:path}")
    def thing(name: str) -> JSONResponse:
        return JSONResponse(name, status)

    async def asked() -> httpx2.Response:
        transport = httpx2.ASGITransport(Documented(face))
        async with httpx2.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.get("/things/a")

    assert asyncio.run(asked()).status_code == status
    assert untold == UNTOLD
    UNTOLD.clear()

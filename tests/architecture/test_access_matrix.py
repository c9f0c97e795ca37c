"""No route without its rules: the access matrix and the application agree, and its keys and scopes hold."""

import asyncio
from collections.abc import Iterator
from uuid import uuid4

import httpx2
import pytest
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts

from memplane.application.keys.api_keys import NewKey
from memplane.bootstrap import Application
from memplane.domain.identity.principal import KeyScope
from memplane.domain.policy.policy import Trust
from memplane.entrypoints.http.app import create_app
from memplane.settings import Settings
from support.access_matrix import ACCESS, Access

UNREACHABLE = "postgresql://nobody@127.0.0.1:1/none"
GUARDED = [access for access in ACCESS if access.scope is not None]
OPEN = [access for access in ACCESS if access.scope is None]


@pytest.fixture(scope="module")
def app() -> Iterator[FastAPI]:
    """The application, not opened: whatever needs the database fails."""
    wired = Application(Settings(rate_per_second=0), UNREACHABLE)
    yield create_app(wired, max_body_bytes=100_000)
    wired.embedder.close()


def declared(app: FastAPI) -> list[tuple[str, str]]:
    """Method and path of every route, those outside the OpenAPI document too."""
    return sorted(
        (method, context.path or "")
        for context in iter_route_contexts(app.routes)
        for method in sorted(context.methods or {"?"})
        if method != "HEAD"
    )


def send(app: FastAPI, access: Access, credential: str | None = None) -> httpx2.Response:
    """Send a request that is right but for its key."""
    headers = {} if credential is None else {"Authorization": f"Bearer {credential}"}

    async def sent() -> httpx2.Response:
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://test", headers=headers) as client:
            return await client.request(access.method, access.url(str(uuid4())), **access.request("tasks"))

    return asyncio.run(sent())


def test_every_route_is_in_the_matrix_once(app: FastAPI) -> None:
    assert declared(app) == sorted((access.method, access.path) for access in ACCESS)


def test_a_route_that_is_not_in_the_matrix_is_noticed(app: FastAPI) -> None:
    other = FastAPI()
    other.add_api_route("/v1/everything", lambda: None, methods=["GET"], include_in_schema=False)
    app_with_more = FastAPI(routes=[*app.routes, *other.routes])
    assert ("GET", "/v1/everything") in declared(app_with_more)


@pytest.mark.parametrize("access", GUARDED, ids=str)
def test_a_missing_key_is_refused(app: FastAPI, access: Access) -> None:
    response = send(app, access)
    assert response.status_code == 401
    assert response.json()["code"] == "unauthenticated"
    assert response.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("access", GUARDED, ids=str)
def test_a_key_without_the_scope_is_refused(app: FastAPI, access: Access) -> None:
    """The refusal comes before anything else is looked at: nothing here could reach a database."""
    wired: Application = app.state.memplane
    others = tuple(scope for scope in KeyScope if scope != access.scope)
    new = NewKey("supervisor", Trust.FULL, scopes=others, act_for=("*",))
    response = send(app, access, wired.keys.local("t", new))
    assert (response.status_code, response.json()["code"]) == (403, "scope_forbidden")
    assert response.json()["scope"] == access.scope


@pytest.mark.parametrize("access", [access for access in OPEN if access.path != "/readyz"], ids=str)
def test_what_needs_no_key_answers_without(app: FastAPI, access: Access) -> None:
    assert send(app, access).status_code == 200

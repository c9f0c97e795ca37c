"""Steps of consent over HTTP: what proposes, decides, lists and lapses."""

from typing import Any
from uuid import UUID

from memplane.domain.identity.principal import KeyScope
from support.callers import SUPERVISING, USER, Caller, Json, Tenant

BERLIN, MUNICH, OSLO = (f"The user lives in {city}." for city in ("Berlin", "Munich", "Oslo"))
PIANO = "The user owns a piano."
REVIEW = (*SUPERVISING, KeyScope.CONSENT)


def post(caller: Caller, content: str, **fields: Any) -> Json:  # noqa: ANN401 - of the memory
    """Store a memory of the profile, whatever becomes of it."""
    response = caller.post("/v1/memories", {"user_id": USER, "category": "profile", "content": content} | fields)
    assert response.status_code in {200, 201, 202}, response.text
    return dict(response.json())


def queue(caller: Caller, content: str = BERLIN, **fields: Any) -> str:  # noqa: ANN401 - of the memory
    """Propose a change of a sensitive field by a direct write; the proposal's id."""
    answer = caller.post("/v1/memories", {"user_id": USER, "category": "profile", "content": content} | fields)
    assert answer.status_code == 202, answer.text
    assert answer.json()["outcome"] == "queued_for_consent"
    assert answer.json()["version"] is None
    return str(answer.json()["id"])


def decide(reviewer: Caller, proposal: str, verb: str = "approve", **fields: Any) -> Json:  # noqa: ANN401 - of the request
    response = reviewer.post(f"/v1/consents/{proposal}/{verb}", fields)
    assert response.status_code == 200, response.text
    return dict(response.json())


def listed(reviewer: Caller, **params: Any) -> list[Json]:  # noqa: ANN401 - query parameters
    response = reviewer.get("/v1/consents", **params)
    assert response.status_code == 200, response.text
    return list(response.json()["items"])


def context(caller: Caller, user: str = USER) -> dict[str, str]:
    response = caller.get(f"/v1/users/{user}/context")
    assert response.status_code == 200, response.text
    return {item["field"]: item["value"] for item in response.json()["items"]}


def lapse(tenant: Tenant, proposal: str) -> None:
    past = "2020-01-01T00:00:00.000000+00:00"
    tenant.rows("UPDATE consent_proposals SET expires_at = %(past)s WHERE id = %(id)s", past=past, id=UUID(proposal))

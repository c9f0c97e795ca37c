"""Keys as administrators ask for them over HTTP."""

from typing import Any

import httpx2

from support.callers import Caller

KEYS = "/v1/admin/keys"
Json = dict[str, Any]


def made(answer: httpx2.Response) -> Json:
    """A key that was made, or put in another's place."""
    assert answer.status_code == 201, answer.text
    assert answer.headers["Cache-Control"] == "no-store"
    body: Json = answer.json()
    return body


def holder(admin: Caller, answer: httpx2.Response) -> Caller:
    """Whoever holds the new key."""
    body = made(answer)
    return Caller(admin.client, body["key"], body["id"])


def create(admin: Caller, **body: object) -> httpx2.Response:
    """Ask for a key, the planner's unless said."""
    return admin.post(KEYS, {"agent": "planner"} | body)


def listed(admin: Caller) -> dict[str, Json]:
    """The keys that are shown, by their ids."""
    return {key["id"]: key for key in admin.get(KEYS, limit=200).json()["items"]}

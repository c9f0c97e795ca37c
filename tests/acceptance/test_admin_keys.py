"""Keys over HTTP: made, listed, and revoked once however often that is asked."""

import json
from datetime import UTC, datetime, timedelta

import httpx2
import pytest

from support.callers import Caller, Tenant, refused
from support.key_requests import KEYS, Json, create, holder, listed, made

FULL_WIDTH = "\uff41\uff4e\uff41"
NOW = datetime.now(UTC)  # when the tests were collected, which may be minutes ago: for ends that are days away


def test_a_key_is_made_and_works(admin: Caller, tenant: Tenant) -> None:
    ends = NOW + timedelta(days=1)
    answer = create(admin, act_for=["executor"], users=["ana"], trust="inner", label="ci", expires_at=ends.isoformat())
    body = made(answer)
    assert body["outcome"] == "created"
    assert body["key"].startswith(f"mp_{body['id']}_")
    bound = {"tenant": tenant.name, "agent": "planner", "act_for": ["executor"], "users": ["ana"], "trust": "inner"}
    bound |= {"scopes": ["memory:read", "memory:write", "checkpoint"], "label": "ci", "revoked_at": None}
    assert bound.items() <= body.items()
    caller = holder(admin, answer)
    assert caller.query("hall").status_code == 200
    refused(caller.query("hall", filters={"user_id": "ben"}), 403, "user_forbidden")
    refused(caller.get(KEYS), 403, "scope_forbidden")
    shown = listed(admin)[body["id"]]
    assert {name: value for name, value in body.items() if name not in ("key", "outcome")} == shown | {
        "last_used_at": None
    }


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"agent": None}, 422, "invalid_request"),
        ({"agent": "nobody"}, 422, "invalid_request"),
        ({"act_for": ["nobody"]}, 422, "invalid_request"),
        ({"users": []}, 422, "invalid_request"),
        ({"users": [" "]}, 422, "invalid_text"),
        ({"users": ["a" * 256]}, 422, "invalid_request"),
        ({"users": ["😀" * 255]}, 422, "limit_exceeded"),  # 1 020 bytes
        ({"scopes": []}, 422, "invalid_request"),
        ({"scopes": ["everything"]}, 422, "invalid_request"),
        ({"trust": "utter"}, 422, "invalid_request"),
        ({"expires_at": "2020-01-01"}, 422, "invalid_request"),
        ({"tenant": "another"}, 422, "invalid_request"),
        ({"secret": "x"}, 422, "invalid_request"),
    ],
)
def test_what_cannot_be_a_key_is_refused(admin: Caller, body: Json, status: int, code: str) -> None:
    before = listed(admin)
    refused(create(admin, **body), status, code)
    assert listed(admin) == before


@pytest.mark.parametrize("name", [FULL_WIDTH, " ana  maria ", "Ame\u0301lie", "ana\u3000maria"])
def test_names_of_users_are_those_of_memories(admin: Caller, tenant: Tenant, name: str) -> None:
    """Full-width, padded, decomposed: the key reaches what is stored under the same name, and nothing else."""
    everyone = tenant.caller("planner")
    memory = everyone.remember("The hall is booked.", user_id=name)
    everyone.remember("The hall is booked.", user_id="somebody else")
    over_http = holder(admin, create(admin, users=[name, name]))
    directly = tenant.caller("planner", users=[name])
    for caller in (over_http, directly):
        assert caller.found("hall") == [memory]
        assert caller.query("hall", filters={"user_id": name}).status_code == 200
        refused(caller.query("hall", filters={"user_id": "somebody else"}), 403, "user_forbidden")
    assert len(listed(admin)[over_http.key_id]["users"]) == 1


@pytest.mark.parametrize("key_id", ["%00", "a%00b", "%ff", "%ED%A0%80", "'", "a" * 33, "%F0%9F%98%80", "a%20b"])
def test_an_id_that_is_none_is_refused(admin: Caller, key_id: str) -> None:
    for verb in ("rotate", "revoke"):
        refused(admin.post(f"{KEYS}/{key_id}/{verb}", {}), 422, "invalid_request")
        refused(admin.post(f"{KEYS}/{'a' * 12}/{verb}", {}), 404, "not_found")


@pytest.mark.parametrize("field", ["agent", "label", "users", "act_for"])
@pytest.mark.parametrize("text", ["a\x00b", "\ud800"])
def test_a_text_that_cannot_be_stored_is_refused(admin: Caller, field: str, text: str) -> None:
    value = [text] if field in ("users", "act_for") else text
    body = json.dumps({"agent": "planner"} | {field: value})  # as it is: a client would refuse to send the second
    answer = admin.send("POST", KEYS, content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")
    assert list(listed(admin)) == [admin.key_id]


@pytest.mark.parametrize("verb", ["create", "rotate"])
def test_the_same_again_makes_no_second_key_and_tells_no_secret(admin: Caller, tenant: Tenant, verb: str) -> None:
    target = holder(admin, create(admin))
    path, body = (KEYS, {"agent": "planner"}) if verb == "create" else (f"{KEYS}/{target.key_id}/rotate", {})

    def sent(name: str, **more: object) -> httpx2.Response:
        return admin.send("POST", path, json=body | more, headers={"Idempotency-Key": name})

    first, count = sent("once"), tenant.count("api_keys")
    again = sent("once")
    assert tenant.count("api_keys") == count
    assert (again.status_code, again.headers["Idempotency-Replayed"]) == (201, "true")
    assert again.json() == first.json() | {"key": None}
    secret = first.json()["key"].split("_", 2)[2]
    stored = tenant.rows("SELECT * FROM idempotency_keys WHERE tenant_id = %(tenant)s")
    assert len(stored) == 1
    assert first.json()["id"] in repr(stored)  # the control: the answer is there, without its secret
    assert secret not in repr(stored)
    later = (NOW + timedelta(days=1)).isoformat()
    refused(sent("once", expires_at=later), 422, "idempotency_mismatch")
    # whoever lost the first answer takes a new secret for the key that was made
    replacement = holder(admin, admin.post(f"{KEYS}/{again.json()['id']}/rotate", {}))
    assert replacement.query("hall").status_code == 200


def test_a_revocation_sent_again_is_answered_again(admin: Caller) -> None:
    target = holder(admin, create(admin))
    path = f"{KEYS}/{target.key_id}/revoke"
    first, again = (admin.send("POST", path, headers={"Idempotency-Key": "end"}) for _ in range(2))
    assert first.json() == again.json() == {"outcome": "revoked", "id": target.key_id}
    refused(target.query("hall"), 401, "unauthenticated")
    refused(admin.post(path, {}), 404, "not_found")


def test_the_list_is_paged_and_shows_no_secret(admin: Caller, tenant: Tenant) -> None:
    keys = [admin.key_id, *(holder(admin, create(admin, label=f"no. {number}")).key_id for number in range(4))]
    found: list[str] = []
    page: Json = {"next": None}
    while not found or page["next"]:
        page = admin.get(KEYS, limit=2, **({"cursor": page["next"]} if page["next"] else {})).json()
        found += [key["id"] for key in page["items"]]
        assert len(page["items"]) <= 2
        assert all("secret" not in name and name != "key" for key in page["items"] for name in key)
    assert found == keys
    hashes = [row["secret_hash"] for row in tenant.rows("SELECT * FROM api_keys WHERE tenant_id = %(tenant)s")]
    assert all(bytes(each).hex() not in admin.get(KEYS).text for each in hashes)
    refused(admin.get(KEYS, cursor="nothing"), 422, "invalid_request")

"""Keys over HTTP: made, listed, rotated and revoked by administrators, none of whom gives more than it has."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest

from memplane.application.keys import NewKey
from memplane.contracts.keys import CreatedKey, KeyRecord
from memplane.domain.capabilities import Capability
from memplane.domain.policy import Trust
from memplane.domain.principal import KeyScope
from support.access_matrix import Access, Tenants, routes
from support.callers import Caller, Tenant, refused

KEYS = "/v1/admin/keys"
FULL_WIDTH = "\uff41\uff4e\uff41"
NOW = datetime.now(UTC)  # when the tests were collected, which may be minutes ago: for ends that are days away
Json = dict[str, Any]
SCOPES = tuple(KeyScope)


@pytest.fixture
def admin(tenant: Tenant) -> Caller:
    """One who may do everything in the tenant."""
    return tenant.caller(None, act_for=["*"], scopes=SCOPES)


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
    return admin.post(KEYS, {"agent": "planner"} | body)


def listed(admin: Caller) -> dict[str, Json]:
    return {key["id"]: key for key in admin.get(KEYS, limit=200).json()["items"]}


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


# No more than one has

BOUND = {"agent": "planner", "act_for": ["executor"], "users": ["ana", "ben"], "trust": "inner"}
MORE = [
    ({"agent": "supervisor"}, "agent_forbidden"),
    ({"act_for": ["supervisor"]}, "agent_forbidden"),
    ({"act_for": ["*"]}, "agent_forbidden"),
    ({"users": ["ana", "cleo"]}, "user_forbidden"),
    ({"users": [FULL_WIDTH]}, "user_forbidden"),
    ({"scopes": ["memory:read", "consent:review"]}, "scope_forbidden"),
    ({"trust": "full"}, "trust_too_low"),
    ({"expires_at": (NOW + timedelta(days=3)).isoformat()}, "forbidden"),
]


@pytest.fixture
def bounded(tenant: Tenant) -> Caller:
    """An administrator who is bound in every way."""
    return tenant.caller(
        "planner",
        act_for=["executor"],
        users=["ana", "ben"],
        trust="inner",
        scopes=[KeyScope.READ, KeyScope.WRITE, KeyScope.ADMIN],
        expires_at=NOW + timedelta(days=2),
    )


@pytest.mark.parametrize(("more", "code"), MORE, ids=lambda value: value if isinstance(value, str) else "-".join(value))
def test_a_key_cannot_give_more_than_it_has(tenant: Tenant, bounded: Caller, more: Json, code: str) -> None:
    refused(create(bounded, **more), 403, code)
    assert tenant.count("api_keys") == 1


def test_a_key_can_give_all_that_it_has_and_less(bounded: Caller) -> None:
    all_of_it = {"scopes": ["memory:read", "memory:write", "admin"], "act_for": ["executor"], "trust": "inner"}
    ends = (NOW + timedelta(days=2)).isoformat()
    whole = holder(bounded, create(bounded, **all_of_it, users=[" ana ", "ben"], expires_at=ends))
    less = create(whole, agent="executor", users=["ben"], trust="public", scopes=["memory:read"])
    assert made(less)["users"] == ["ben"]
    refused(create(whole, users=["cleo"]), 403, "user_forbidden")  # and what it gave cannot do more either


def test_what_is_left_out_is_the_usual_as_far_as_the_caller_has_it(admin: Caller, bounded: Caller) -> None:
    usual, inner = made(create(admin)), made(create(bounded))
    assert (usual["trust"], usual["users"], usual["expires_at"]) == ("full", None, None)
    assert (inner["trust"], inner["users"], inner["scopes"]) == (
        "inner",
        ["ana", "ben"],
        ["memory:read", "memory:write"],
    )
    assert inner["expires_at"] is not None


@pytest.mark.parametrize(
    "wider",
    [
        {"agent": "supervisor"},
        {"act_for": ["*"]},
        {"scopes": ["consent:review"]},
        {"trust": "full"},
        {"expires_at": None},
    ],
    ids=str,
)
def test_a_key_that_can_do_more_is_not_rotated_into_ones_hands(admin: Caller, bounded: Caller, wider: Json) -> None:
    same = {"agent": "planner", "users": ["ana"], "trust": "inner", "scopes": ["memory:read"]}
    same["expires_at"] = (NOW + timedelta(days=1)).isoformat()
    target = holder(admin, admin.post(KEYS, same | wider))
    answer = bounded.post(f"{KEYS}/{target.key_id}/rotate", {})
    assert answer.status_code == 403
    assert target.query("hall").status_code in (200, 403)  # it goes on: 403 is about its scope alone
    equal = holder(admin, admin.post(KEYS, same))
    assert bounded.post(f"{KEYS}/{equal.key_id}/rotate", {}).status_code == 201


def test_keys_of_other_users_are_as_if_they_were_not_there(admin: Caller, bounded: Caller) -> None:
    cleo = holder(admin, create(admin, users=["cleo"]))
    every = holder(admin, create(admin))
    ana = holder(admin, create(admin, users=["ana"]))
    assert set(listed(bounded)) == {bounded.key_id, ana.key_id}
    assert set(listed(admin)) >= {cleo.key_id, every.key_id, ana.key_id}
    for verb in ("rotate", "revoke"):
        absent = refused(bounded.post(f"{KEYS}/{'0' * 12}/{verb}", {}), 404, "not_found")
        for key in (cleo, every):
            assert refused(bounded.post(f"{KEYS}/{key.key_id}/{verb}", {}), 404, "not_found") == absent
    assert cleo.query("hall").status_code == 200
    assert bounded.post(f"{KEYS}/{ana.key_id}/revoke", {}).status_code == 200


@pytest.mark.needs(Capability.SEVERAL_TENANTS)
@pytest.mark.parametrize("access", routes(tenants=Tenants.KEYS), ids=str)
def test_keys_of_other_tenants_are_as_if_they_were_not_there(
    admin: Caller, other_tenant: Tenant, access: Access
) -> None:
    theirs = other_tenant.caller("planner")
    before = other_tenant.rows("SELECT * FROM api_keys WHERE tenant_id = %(tenant)s")
    request = access.request("")
    answer = admin.send(access.method, access.url(theirs.key_id), **request)
    if "{key_id}" in access.path:
        absent = admin.send(access.method, access.url("0" * 12), **request)
        assert refused(answer, 404, "not_found") == refused(absent, 404, "not_found")
        mine = holder(admin, create(admin))
        assert admin.send(access.method, access.url(mine.key_id), **request).is_success
    else:
        assert answer.is_success
        assert theirs.key_id not in answer.text
        assert admin.key_id in admin.get(KEYS).text
    assert other_tenant.rows("SELECT * FROM api_keys WHERE tenant_id = %(tenant)s") == before


# Rotation


def test_a_rotated_key_has_the_same_bindings_and_the_old_one_ends_at_once(admin: Caller) -> None:
    old = holder(admin, create(admin, users=["ana"], act_for=["executor"], trust="inner", label="ci"))
    before = listed(admin)[old.key_id]
    answer = admin.post(f"{KEYS}/{old.key_id}/rotate", {})
    new = holder(admin, answer)
    assert (answer.json()["outcome"], answer.json()["replaces"]) == ("rotated", old.key_id)
    assert new.query("hall").status_code == 200
    refused(old.query("hall"), 401, "unauthenticated")
    after = listed(admin)
    anew = ("id", "created_at", "last_used_at")
    assert {name: after[new.key_id][name] for name in before if name not in anew} == {
        name: before[name] for name in before if name not in anew
    }
    assert after[old.key_id]["revoked_at"] is not None
    refused(admin.post(f"{KEYS}/{old.key_id}/rotate", {}), 404, "not_found")


def test_with_a_grace_both_work_until_it_ends(admin: Caller, tenant: Tenant) -> None:
    old = holder(admin, create(admin))
    answer = admin.post(f"{KEYS}/{old.key_id}/rotate", {"grace_seconds": 3600})
    new, ends = holder(admin, answer), datetime.fromisoformat(answer.json()["replaced_ends_at"])
    assert timedelta(minutes=59) < ends - datetime.now(UTC) <= timedelta(hours=1)
    assert (old.query("hall").status_code, new.query("hall").status_code) == (200, 200)
    assert datetime.fromisoformat(listed(admin)[old.key_id]["expires_at"]) == ends
    tenant.rows(
        "UPDATE api_keys SET expires_at = %(past)s WHERE tenant_id = %(tenant)s AND key_id = %(id)s",
        past=datetime.now(UTC) - timedelta(seconds=1),
        id=old.key_id,
    )  # as if the hour were over
    refused(old.query("hall"), 401, "unauthenticated")
    assert new.query("hall").status_code == 200


def test_a_grace_does_not_make_a_key_live_longer(admin: Caller) -> None:
    ends = (datetime.now(UTC) + timedelta(minutes=5)).isoformat()
    old = holder(admin, create(admin, expires_at=ends))
    rotated = made(admin.post(f"{KEYS}/{old.key_id}/rotate", {"grace_seconds": 3600}))
    assert datetime.fromisoformat(rotated["replaced_ends_at"]) == datetime.fromisoformat(ends)
    assert datetime.fromisoformat(rotated["expires_at"]) == datetime.fromisoformat(ends)
    later = (NOW + timedelta(days=5)).isoformat()
    renewed = made(admin.post(f"{KEYS}/{rotated['id']}/rotate", {"expires_at": later}))
    assert datetime.fromisoformat(renewed["expires_at"]) == datetime.fromisoformat(later)
    for bad in ({"grace_seconds": -1}, {"grace_seconds": 10**8}, {"expires_at": "2020-01-01"}, {"grace": 1}):
        refused(admin.post(f"{KEYS}/{renewed['id']}/rotate", bad), 422, "invalid_request")


def test_a_key_that_ended_is_not_rotated(admin: Caller, tenant: Tenant) -> None:
    expired = tenant.caller("planner", expires_at=NOW - timedelta(seconds=1))
    refused(admin.post(f"{KEYS}/{expired.key_id}/rotate", {}), 404, "not_found")
    alive = tenant.caller("planner", expires_at=NOW + timedelta(hours=1))
    assert admin.post(f"{KEYS}/{alive.key_id}/rotate", {}).status_code == 201


def test_rotated_at_the_same_time_a_key_has_one_successor(admin: Caller) -> None:
    old = holder(admin, create(admin))
    before = len(listed(admin))
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: admin.post(f"{KEYS}/{old.key_id}/rotate", {}).status_code, range(8)))
    assert sorted(answers) == [201, *[404] * 7]
    assert len(listed(admin)) == before + 1


def test_an_administrator_rotates_its_own_key(admin: Caller) -> None:
    new = holder(admin, admin.post(f"{KEYS}/{admin.key_id}/rotate", {}))
    refused(admin.get(KEYS), 401, "unauthenticated")
    assert new.get(KEYS).status_code == 200


# Idempotency-Key


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


# The list


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


# The last use


def last_used(tenant: Tenant, key: Caller) -> datetime | None:
    (row,) = tenant.rows("SELECT last_used_at FROM api_keys WHERE key_id = %(id)s", id=key.key_id)
    found = row["last_used_at"]
    return datetime.fromisoformat(found) if isinstance(found, str) else found


def set_last_used(tenant: Tenant, key: Caller, moment: datetime) -> None:
    tenant.rows("UPDATE api_keys SET last_used_at = %(at)s WHERE key_id = %(id)s", at=moment, id=key.key_id)


def test_the_last_use_is_written_beside_requests_and_once_a_minute(tenant: Tenant) -> None:
    uses, run = tenant.server.wired.key_uses, tenant.server.run
    used, unused = tenant.caller(), tenant.caller()
    before = datetime.now(UTC)
    for _ in range(3):
        assert used.query("hall").status_code == 200
    run(uses.flush())
    first = last_used(tenant, used)
    assert first is not None
    assert before <= first <= datetime.now(UTC)
    assert last_used(tenant, unused) is None
    for seconds, written in ((30, False), (90, True)):
        stored = datetime.now(UTC) - timedelta(seconds=seconds)
        set_last_used(tenant, used, stored)
        assert used.query("hall").status_code == 200
        run(uses.flush())
        found = last_used(tenant, used)
        assert found is not None
        assert (found > stored + timedelta(seconds=1)) is written


def test_a_refused_key_was_not_used(tenant: Tenant) -> None:
    key = tenant.caller()
    wrong = Caller(key.client, f"{(key.credential or '')[:-4]}AAAA")
    refused(wrong.query("hall"), 401, "unauthenticated")
    tenant.server.run(tenant.server.wired.key_uses.flush())
    assert last_used(tenant, key) is None
    assert key.query("hall").status_code == 200
    tenant.server.run(tenant.server.wired.key_uses.flush())
    assert last_used(tenant, key) is not None


def test_the_list_shows_the_last_use(admin: Caller, tenant: Tenant) -> None:
    tenant.server.run(tenant.server.wired.key_uses.flush())
    admin.get(KEYS)
    tenant.server.run(tenant.server.wired.key_uses.flush())
    assert listed(admin)[admin.key_id]["last_used_at"] is not None


def test_no_log_can_have_a_credential(tenant: Tenant) -> None:
    made = tenant.server.wired.keys.make(tenant.name, NewKey("planner", Trust.FULL))
    shown = KeyRecord.model_validate(
        {"id": "a", "tenant": "t", "agent": None, "act_for": [], "users": None, "trust": "full", "scopes": []}
        | dict.fromkeys(("label", "expires_at", "revoked_at", "last_used_at"))
        | {"created_at": NOW}
    )
    told = CreatedKey(**shown.model_dump(), key=made.credential)
    assert made.credential not in repr(made) + repr(told)
    assert made.credential in told.model_dump_json()
    assert made.stored.key_id in repr(made)

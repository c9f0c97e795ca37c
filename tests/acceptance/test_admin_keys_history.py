"""Who made, rotated and ended keys, and when, is told to administrators, and stays."""

from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from memplane.domain.identity.principal import KeyScope
from memplane.domain.memory.memory import new_id
from memplane.domain.policy.capabilities import Capability
from support.callers import Caller, Tenant, refused
from support.key_requests import KEYS, Json, create, holder, made

HISTORY = f"{KEYS}/history"


def told(caller: Caller, **params: object) -> list[Json]:
    answer = caller.get(HISTORY, **params)
    assert answer.status_code == 200, answer.text
    return list(answer.json()["items"])


def test_every_deed_is_told_with_who_did_it_when_and_with_which_key(admin: Caller, tenant: Tenant) -> None:
    deputy = tenant.caller("supervisor", act_for=["*"], scopes=tuple(KeyScope))
    begun = datetime.now(UTC)
    ends = begun + timedelta(days=1)
    first = made(create(admin, expires_at=ends.isoformat()))
    second = deputy.post(f"{KEYS}/{first['id']}/rotate", {"grace_seconds": 3600}).json()
    third = admin.post(f"{KEYS}/{second['id']}/rotate", {}).json()
    assert deputy.post(f"{KEYS}/{third['id']}/revoke", {}).status_code == 200

    by_admin = (f"key:{admin.key_id}", admin.key_id)
    by_deputy = ("agent:supervisor", deputy.key_id)
    entries = told(admin)[:6]
    assert [(each["key_id"], each["event"], (each["actor"], each["by_key"])) for each in entries] == [
        (third["id"], "revoked", by_deputy),
        (third["id"], "created", by_admin),
        (second["id"], "rotated", by_admin),
        (second["id"], "created", by_deputy),
        (first["id"], "rotated", by_deputy),
        (first["id"], "created", by_admin),
    ]
    moments = [datetime.fromisoformat(each["ts"]) for each in entries]
    assert moments == sorted(moments, reverse=True)
    assert begun - timedelta(minutes=1) < moments[-1] <= moments[0] < begun + timedelta(minutes=10)
    revoked, _, ended, _, waning, begin = entries
    assert datetime.fromisoformat(begin["meta"]["ends_at"]) == ends
    assert waning["meta"] == {"replaced_by": second["id"], "ends_at": waning["meta"]["ends_at"]}
    assert datetime.fromisoformat(waning["meta"]["ends_at"]) == moments[4] + timedelta(hours=1)
    assert entries[3]["meta"]["replaces"] == first["id"]
    assert datetime.fromisoformat(ended["meta"]["ends_at"]) == moments[2]
    assert datetime.fromisoformat(revoked["meta"]["ends_at"]) == moments[0]
    assert told(admin, key_id=second["id"]) == entries[2:4]
    for each in (first, second, third):
        assert each["key"].split("_", 2)[2] not in repr(entries)


def test_what_the_operator_does_on_the_database_is_told_too(admin: Caller, tenant: Tenant) -> None:
    keys = tenant.server.wired.keys
    key_id = tenant.caller("planner").key_id
    tenant.server.run(keys.revoke(tenant.name, key_id))
    entries = told(admin, key_id=key_id)
    assert [(each["event"], each["actor"], each["by_key"]) for each in entries] == [
        ("revoked", "operator", None),
        ("created", "operator", None),
    ]


def test_what_is_refused_or_sent_again_leaves_no_entry(admin: Caller) -> None:
    def sent(path: str, body: Json) -> int:
        return admin.send("POST", path, json=body, headers={"Idempotency-Key": path[-40:]}).status_code

    key = made(create(admin))["id"]
    before = told(admin)
    refused(create(admin, agent="nobody"), 422, "invalid_request")
    refused(admin.post(f"{KEYS}/{'a' * 12}/revoke", {}), 404, "not_found")
    assert told(admin) == before
    for _ in range(2):
        assert sent(f"{KEYS}/{key}/revoke", {}) == 200
    refused(admin.post(f"{KEYS}/{key}/rotate", {}), 404, "not_found")
    assert len(told(admin)) == len(before) + 1


def test_pages_have_every_entry_once(admin: Caller) -> None:
    for _ in range(3):
        create(admin)
    whole, pages, cursor = told(admin), [], None
    while True:
        page = admin.get(HISTORY, limit=2, **({"cursor": cursor} if cursor else {})).json()
        pages += page["items"]
        if (cursor := page["next"]) is None:
            break
    assert pages == whole
    assert len(whole) == 4  # with the administrator's own
    assert told(admin, cursor=str(new_id())) == whole  # an id that is none tells only from when on


def test_one_who_is_bound_to_users_is_told_of_their_keys_alone(admin: Caller, tenant: Tenant) -> None:
    bound = tenant.caller(None, act_for=["*"], users=["ana"], scopes=tuple(KeyScope))
    mine = holder(admin, create(admin, users=["ana"])).key_id
    theirs = [holder(admin, create(admin, users=users)).key_id for users in (["ben"], ["ana", "ben"], None)]
    assert {each["key_id"] for each in told(bound)} == {mine, bound.key_id}
    assert {each["key_id"] for each in told(admin)} >= {mine, *theirs}
    absent = refused(bound.get(HISTORY, key_id="a" * 12), 404, "not_found")
    for key_id in theirs:
        assert refused(bound.get(HISTORY, key_id=key_id), 404, "not_found") == absent
    refused(tenant.caller("supervisor").get(HISTORY), 403, "scope_forbidden")


@pytest.mark.needs(Capability.SEVERAL_TENANTS)
def test_another_tenant_s_keys_have_no_history(admin: Caller, tenant: Tenant) -> None:
    stranger = Tenant(tenant.server).caller(None, act_for=["*"], scopes=tuple(KeyScope))
    key = made(create(admin))["id"]
    assert {each["key_id"] for each in told(stranger)} == {stranger.key_id}
    refused(stranger.get(HISTORY, key_id=key), 404, "not_found")
    assert told(admin, key_id=key)


@pytest.mark.needs(Capability.APPEND_ONLY_HISTORY)
def test_the_application_changes_and_deletes_no_entry(admin: Caller, tenant: Tenant) -> None:
    assert told(admin)
    for statement in ("UPDATE key_history SET actor = 'x'", "DELETE FROM key_history"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            tenant.rows_as_application(statement)
    assert tenant.rows_as_application("SELECT 1 FROM key_history")

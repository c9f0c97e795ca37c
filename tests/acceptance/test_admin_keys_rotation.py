"""A key takes the place of another, at once or after a grace."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from support.callers import Caller, Tenant, refused
from support.key_requests import KEYS, create, holder, listed, made

NOW = datetime.now(UTC)  # when the tests were collected, which may be minutes ago: for ends that are days away


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

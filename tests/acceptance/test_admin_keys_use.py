"""The last use of a key is written beside requests, and no log has its secret."""

from datetime import UTC, datetime, timedelta

from memplane.application.keys.api_keys import NewKey
from memplane.contracts.keys import CreatedKey, KeyRecord
from memplane.domain.policy.policy import Trust
from support.callers import Caller, Tenant, refused
from support.key_requests import KEYS, listed

NOW = datetime.now(UTC)  # when the tests were collected, which may be minutes ago: for ends that are days away


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

"""Keys: whatever is wrong with one, the answer is the same."""

import secrets
from datetime import UTC, datetime, timedelta

import pytest

from support.callers import Caller, Tenant, refused
from support.serving import RunningServer

NOW = datetime.now(UTC)


def test_every_bad_key_gets_the_same_refusal(tenant: Tenant, server: RunningServer) -> None:
    good = tenant.caller()
    revoked, other = tenant.caller(), tenant.caller()
    server.run(server.wired.keys.revoke(tenant.name, revoked.key_id))
    expired = tenant.caller(expires_at=NOW - timedelta(seconds=1))
    prefix, key_id, secret = (good.credential or "").split("_", 2)
    bad = {
        "none": None,
        "empty": "",
        "malformed": "hello",
        "no secret": f"{prefix}_{key_id}",
        "empty secret": f"{prefix}_{key_id}_",
        "other prefix": f"sk_{key_id}_{secret}",
        "unknown id": f"{prefix}_{secrets.token_hex(6)}_{secret}",
        "wrong secret": f"{prefix}_{key_id}_{secret[:-1]}{'A' if secret[-1] != 'A' else 'B'}",
        "another key's secret": f"{prefix}_{other.key_id}_{secret}",
        "upper case": (good.credential or "").upper(),
        "very long": f"{prefix}_{key_id}_{'a' * 5000}",
        "SQL": f"{prefix}_' OR '1'='1_{secret}",
        "revoked": revoked.credential,
        "expired": expired.credential,
    }
    answers = {name: Caller(server.client, credential).query("hall") for name, credential in bad.items()}
    bodies = {name: refused(answer, 401, "unauthenticated") for name, answer in answers.items()}
    assert all(body == bodies["none"] for body in bodies.values())
    assert all(answer.headers["WWW-Authenticate"] == "Bearer" for answer in answers.values())
    assert good.query("hall").status_code == 200


@pytest.mark.parametrize("scheme", ["Basic", "Token", ""])
def test_only_a_bearer_is_heard(tenant: Tenant, server: RunningServer, scheme: str) -> None:
    caller, anyone = tenant.caller(), Caller(server.client)
    header = {"Authorization": f"{scheme} {caller.credential}".strip()}
    refused(anyone.send("POST", "/v1/memory/query", json={}, headers=header), 401, "unauthenticated")
    header = {"Authorization": f"bearer {caller.credential}"}
    assert anyone.send("POST", "/v1/memory/query", json={}, headers=header).status_code == 200


def test_a_key_in_the_query_string_or_the_body_is_not_heard(tenant: Tenant, server: RunningServer) -> None:
    credential, anyone = tenant.caller().credential, Caller(server.client)
    refused(anyone.send("POST", "/v1/memory/query", json={}, params={"key": credential}), 401, "unauthenticated")
    refused(anyone.send("GET", "/v1/memories", params={"access_token": credential}), 401, "unauthenticated")


def test_a_key_lives_until_its_end(tenant: Tenant) -> None:
    assert tenant.caller(expires_at=NOW + timedelta(hours=1)).query("hall").status_code == 200


def test_a_key_ends_at_once_when_it_is_revoked(tenant: Tenant, server: RunningServer) -> None:
    caller, bystander = tenant.caller(), tenant.caller()
    assert caller.query("hall").status_code == 200
    server.run(server.wired.keys.revoke(tenant.name, caller.key_id))
    refused(caller.query("hall"), 401, "unauthenticated")
    assert bystander.query("hall").status_code == 200


def test_only_a_digest_of_the_secret_is_stored(tenant: Tenant) -> None:
    credential = tenant.caller().credential or ""
    (row,) = tenant.rows("SELECT * FROM api_keys WHERE tenant_id = %(tenant)s")
    secret = credential.split("_", 2)[2]
    assert len(secret) >= 43  # 256 bits
    assert secret not in repr(row)
    assert row["key_id"] in credential

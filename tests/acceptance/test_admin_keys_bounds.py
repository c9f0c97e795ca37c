"""An administrator gives no key that can do more than its own, and sees none that is not its own to see."""

from datetime import UTC, datetime, timedelta

import pytest

from memplane.domain.identity.principal import KeyScope
from memplane.domain.policy.capabilities import Capability
from support.access_matrix import Access, Tenants, routes
from support.callers import Caller, Tenant, refused
from support.key_requests import KEYS, Json, create, holder, listed, made

FULL_WIDTH = "\uff41\uff4e\uff41"
NOW = datetime.now(UTC)  # when the tests were collected, which may be minutes ago: for ends that are days away
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

"""What a token gives: what it says, and no more than the operator allows."""

import hashlib

import httpx2
import pytest

from memplane.domain.policy.capabilities import Capability
from support.callers import THREAD, Caller, Tenant, refused
from support.trusting import Trust, Trusting

NOT_ALLOWED = "scope_forbidden"


def test_a_token_gives_the_scopes_that_it_names(trusting: Trusting) -> None:
    reader, both = trusting.bearer(scope="memory:read"), trusting.bearer(scope=["memory:read", "memory:write"])
    memory = both.remember("The hall is booked.")
    assert reader.found("hall") == [memory]
    turn = {"user_id": "ana", "thread_id": THREAD, "role": "user", "text": "The hall is booked."}
    refused(reader.post("/v1/turns", turn), 403, NOT_ALLOWED)
    for without in (
        trusting.bearer(scope=None),
        trusting.bearer(scope=""),
        trusting.bearer(scope="openid MEMORY:READ"),
    ):
        refused(without.query("hall"), 403, NOT_ALLOWED)


def test_a_token_cannot_widen_its_scopes(trusting: Trusting, trust: Trust) -> None:
    """The issuer's word is not enough for what the operator has not granted."""
    asking = {"scope": "memory:read admin consent:review"}
    refused(trusting.bearer(**asking).get("/v1/admin/keys"), 403, NOT_ALLOWED)
    assert trusting.bearer(**asking).query("hall").status_code == 200  # the rest of the token holds
    granting = trust(oidc_scopes=("memory:read", "admin"))
    assert granting.bearer(**asking).get("/v1/admin/keys").status_code == 200
    refused(granting.bearer(scope="memory:read").get("/v1/admin/keys"), 403, NOT_ALLOWED)


def test_a_token_speaks_for_its_agents_alone(trusting: Trusting) -> None:
    planner = trusting.bearer(memplane_agent="planner", memplane_act_for="executor")
    refused(planner.query("hall", categories=["profile"]), 403, "category_forbidden")
    refused(planner.query("hall", agent="supervisor"), 403, "agent_forbidden")
    assert planner.query("hall", agent="executor").status_code == 200
    operator = trusting.bearer(memplane_agent=None, memplane_act_for=["*"])
    refused(operator.query("hall"), 403, "agent_forbidden")
    assert operator.query("hall", agent="supervisor").status_code == 200


def test_a_token_reaches_its_users_alone(trusting: Trusting) -> None:
    everyone = trusting.bearer()
    ana, ben = (everyone.remember(f"{user} books the hall.", user_id=user) for user in ("ana", "ben"))
    bound = trusting.bearer(memplane_users=["  ana "])  # a name is normalised as where it is stored
    assert bound.found("hall") == [ana]
    assert set(everyone.found("hall")) == {ana, ben}
    refused(bound.query("hall", filters={"user_id": "ben"}), 403, "user_forbidden")


def test_the_users_claim_is_needed_where_the_operator_names_one(trust: Trust) -> None:
    by_subject = trust(oidc_users_claim="sub")
    alice = by_subject.bearer()
    memory = {"category": "tasks", "content": "Alice books the hall."}
    assert alice.post("/v1/memories", memory | {"user_id": "alice"}).status_code == 201
    refused(alice.post("/v1/memories", memory | {"user_id": "ana"}), 403, "user_forbidden")
    other = trust(oidc_users_claim="persons")
    refused(other.bearer().query("hall"), 401, "unauthenticated")
    assert other.bearer(persons="ana").query("hall").status_code == 200


@pytest.mark.parametrize(
    ("claims", "settings", "visibility"),
    [
        ({}, {}, "private"),  # the supervisor's by the policy
        ({"memplane_trust": "inner"}, {}, "shared"),
        ({"memplane_trust": "full"}, {"oidc_trust": "inner"}, "shared"),
        ({"memplane_trust": "familiar"}, {"oidc_trust": "inner"}, "social"),
        ({"memplane_agent": None, "memplane_act_for": "supervisor"}, {}, None),  # public: it cannot write
        ({"memplane_agent": None, "memplane_act_for": "supervisor", "memplane_trust": "inner"}, {}, "shared"),
    ],
)
def test_trust_is_what_the_token_says_and_no_more_than_allowed(
    trust: Trust, claims: dict[str, object], settings: dict[str, object], visibility: str | None
) -> None:
    caller = trust(**settings).bearer(**claims)
    body = {"user_id": "ana", "category": "tasks", "content": "The hall is booked.", "agent": "supervisor"}
    stored = caller.post("/v1/memories", body)
    if visibility is None:
        refused(stored, 403, "visibility_forbidden")
    else:
        assert stored.status_code == 201
        read = caller.get(f"/v1/memories/{stored.json()['id']}", agent="supervisor").json()
        assert read["visibility"] == visibility


@pytest.mark.needs(Capability.SEVERAL_TENANTS)
def test_a_token_never_reaches_another_tenants_rows(trusting: Trusting) -> None:
    other = Tenant(trusting.server)
    theirs = other.caller().remember("The hall is booked.")
    mine = trusting.bearer().remember("The hall is booked.")
    stranger = trusting.caller(trusting.issuer.token(other.name))
    assert trusting.bearer().found("hall") == [mine]
    assert stranger.found("hall") == [theirs]
    foreign, absent = (trusting.bearer().get(f"/v1/memories/{each}") for each in (theirs, theirs[:-4] + "0000"))
    assert refused(foreign, 404, "not_found") == refused(absent, 404, "not_found")
    assert stranger.get(f"/v1/memories/{theirs}").status_code == 200


def test_a_token_makes_no_tenant(trusting: Trusting) -> None:
    refused(trusting.asked(trusting.issuer.token("newcomer")), 401, "unauthenticated")
    rows = "SELECT tenant_id FROM tenants WHERE tenant_id = %(id)s"
    assert trusting.tenant.rows(rows, id="newcomer") == []
    assert len(trusting.tenant.rows(rows, id=trusting.tenant.name)) == 1


def test_history_names_the_subject(trusting: Trusting) -> None:
    plain, long = "alice@example.org", "s" * 240
    for subject, named in ((plain, f"oidc:{plain}"), (long, f"oidc:#{hashlib.sha256(long.encode()).hexdigest()}")):
        caller = trusting.bearer(sub=subject)
        memory = caller.remember(f"The hall is booked by {len(subject)}.")
        (entry,) = caller.get(f"/v1/memories/{memory}/history").json()["items"]
        assert entry["meta"]["key"] == named


def test_an_idempotency_key_is_of_one_subject_with_the_same_bindings(trusting: Trusting) -> None:
    """A token of the same subject that may do less does not get the answer of one that may do more."""
    memory = trusting.bearer().remember("Ben books the hall.", user_id="ben")
    path, header = f"/v1/memories/{memory}/reinforce", {"Idempotency-Key": "once"}

    def sent(caller: Caller) -> httpx2.Response:
        return caller.send("POST", path, json={}, headers=header)

    assert sent(trusting.bearer()).status_code == 200
    again = sent(trusting.bearer(jti="a fresh token"))
    assert (again.status_code, again.headers["Idempotency-Replayed"]) == (200, "true")
    refused(sent(trusting.bearer(memplane_users="ana")), 404, "not_found")
    other = sent(trusting.bearer(sub="bob"))
    assert (other.status_code, "Idempotency-Replayed" in other.headers) == (200, False)

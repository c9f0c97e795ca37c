"""Tokens of an issuer: what holds lets in, whatever does not is refused alike, and no token gives more than allowed."""

import hashlib
import hmac
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from memplane.domain.capabilities import Capability
from support.callers import THREAD, Caller, Tenant, refused
from support.issuer import AUDIENCE, Issuer, RunningIssuer, ec_key, public, rsa_key, running_issuer, segment
from support.serving import RunningServer

NOT_ALLOWED = "scope_forbidden"


@dataclass
class Trusting:
    """A server that trusts an issuer, and a tenant on it."""

    server: RunningServer
    running: RunningIssuer
    tenant: Tenant

    @property
    def issuer(self) -> Issuer:
        return self.running.issuer

    def caller(self, token: str) -> Caller:
        return Caller(self.server.client, token)

    def bearer(self, **changed: object) -> Caller:
        """One who calls with a good token, but for what is changed."""
        return self.caller(self.issuer.token(self.tenant.name, **changed))  # type: ignore[arg-type]  # claims and arguments

    def asked(self, token: str) -> httpx2.Response:
        return self.caller(token).query("hall")


Trust = Callable[..., Trusting]


@pytest.fixture
def running() -> Iterator[RunningIssuer]:
    with running_issuer() as issuer:
        yield issuer


@pytest.fixture
def trust(start_server: Callable[..., RunningServer], running: RunningIssuer) -> Trust:
    """Starts a server that trusts the issuer, with further settings."""

    def started(**settings: object) -> Trusting:
        chosen = {"oidc_issuer": running.issuer.url, "oidc_audience": AUDIENCE} | settings
        server = start_server(**chosen)
        tenant = Tenant(server)
        tenant.caller()  # makes it
        return Trusting(server, running, tenant)

    return started


@pytest.fixture
def trusting(trust: Trust) -> Trusting:
    return trust()


def signed(header: object, claims: object, secret: bytes) -> str:
    """A token signed by HMAC, made by hand: a library would refuse a public key as its secret."""
    parts = f"{segment(header)}.{segment(claims)}"
    return f"{parts}.{segment(hmac.digest(secret, parts.encode(), hashlib.sha256))}"


def test_a_token_lets_in(trusting: Trusting) -> None:
    rsa, elliptic = trusting.bearer(), trusting.bearer(key=ec_key(0), headers={"kid": "ec-0"})
    memory = rsa.remember("The hall is booked.")
    assert elliptic.found("hall") == [memory]


def test_whatever_is_wrong_with_a_token_the_answer_is_the_same(trusting: Trusting) -> None:
    issuer, name, now = trusting.issuer, trusting.tenant.name, int(time.time())
    good = issuer.token(name)
    head, body, signature = good.split(".")
    claims = issuer.claims(name)
    pem = rsa_key(0).public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    modulus = json.dumps(public(rsa_key(0), "rsa-0")).encode()
    hostile = {"jwk": public(rsa_key(7), "rsa-0"), "jku": "http://127.0.0.1:1/keys", "x5u": "http://127.0.0.1:1/x"}

    bad = {
        "none": None,
        "no signature": f"{head}.{body}.",
        "alg none": f"{segment({'alg': 'none', 'kid': 'rsa-0'})}.{body}.",
        "alg None": f"{segment({'alg': 'None', 'kid': 'rsa-0'})}.{body}.{signature}",
        "no alg": f"{segment({'kid': 'rsa-0'})}.{body}.{signature}",
        "alg a list": f"{segment({'alg': ['RS256'], 'kid': 'rsa-0'})}.{body}.{signature}",
        "HS256 by the public key": signed({"alg": "HS256", "kid": "rsa-0"}, claims, pem),
        "HS256 by the key's JWK": signed({"alg": "HS256", "kid": "rsa-0"}, claims, modulus),
        "RS256 by an HMAC": signed({"alg": "RS256", "kid": "rsa-0"}, claims, pem),
        "RS256 with the curve's key": issuer.token(name, headers={"kid": "ec-0"}),
        "ES256 with the RSA key": issuer.token(name, key=ec_key(0), headers={"kid": "rsa-0"}),
        "an algorithm that is not listed": issuer.token(name, algorithm="RS512"),
        "another's key": issuer.token(name, key=rsa_key(7)),
        "its own key": issuer.token(name, key=rsa_key(7), headers=hostile),
        "an unknown kid": issuer.token(name, headers={"kid": "rsa-1"}),
        "no kid": f"{segment({'alg': 'RS256'})}.{body}.{signature}",
        "a kid of a file": issuer.token(name, headers={"kid": "../../../dev/null"}),
        "a kid that is a number": f"{segment({'alg': 'RS256', 'kid': 1})}.{body}.{signature}",
        "crit": issuer.token(name, headers={"crit": ["exp"], "exp": now}),
        "wrong issuer": issuer.token(name, iss="https://issuer.example"),
        "issuer a list": issuer.token(name, iss=[issuer.url]),
        "issuer with a slash": issuer.token(name, iss=f"{issuer.url}/"),
        "no issuer": issuer.token(name, iss=None),
        "wrong audience": issuer.token(name, aud="another"),
        "audience of others": issuer.token(name, aud=["another", f"{AUDIENCE}2"]),
        "no audience": issuer.token(name, aud=None),
        "expired": issuer.token(name, exp=now - 60),
        "no expiry": issuer.token(name, exp=None),
        "expiry no number": issuer.token(name, exp="soon"),
        "expiry infinite": issuer.token(name, exp=float("inf")),
        "expiry a list": issuer.token(name, exp=[now + 600]),
        "not yet valid": issuer.token(name, nbf=now + 600),
        "issued in the future": issuer.token(name, iat=now + 600),
        "no subject": issuer.token(name, sub=None),
        "subject a number": issuer.token(name, sub=7),
        "subject empty": issuer.token(name, sub=""),
        "subject with NUL": issuer.token(name, sub="a\x00b"),
        "no tenant": issuer.token(name, memplane_tenant=None),
        "tenant empty": issuer.token(name, memplane_tenant=""),
        "tenant no text": issuer.token(name, memplane_tenant=[name]),
        "tenant unknown": issuer.token("nobody"),
        "tenant with a space": issuer.token(f" {name}"),
        "tenant with NUL": issuer.token(f"{name}\x00"),
        "tenant a surrogate": issuer.token("\ud800"),
        "tenant very long": issuer.token("t" * 64),
        "agent unknown": issuer.token(name, memplane_agent="nobody"),
        "agent no text": issuer.token(name, memplane_agent=7),
        "may act for an unknown agent": issuer.token(name, memplane_act_for=["planner", "nobody"]),
        "no user": issuer.token(name, memplane_users=[]),
        "a user that is empty": issuer.token(name, memplane_users=[" "]),
        "users no list": issuer.token(name, memplane_users={"ana": 1}),
        "users no texts": issuer.token(name, memplane_users=["ana", 7]),
        "trust unknown": issuer.token(name, memplane_trust="utter"),
        "scopes no list": issuer.token(name, scope=7),
        "garbage": "eyJhbGciOiJSUzI1NiJ9.####.****",
        "not JSON": f"{segment(b'{')}.{body}.{signature}",
        "header a list": f"{segment([])}.{body}.{signature}",
        "header deep": f"{segment(b'[' * 5000)}.{body}.{signature}",
        "not UTF-8": f"{segment(bytes([255, 254]))}.{body}.{signature}",
        "five parts": "a.b.c.d.e",
        "dots": "..",
        "oversized": issuer.token(name, note="x" * 9000),
        "another body": f"{head}.{segment(claims | {'sub': 'mallory'})}.{signature}",
        "a key that is none": "mp_none",
    }  # fmt: skip
    answers = {what: trusting.caller(token or "").query("hall") for what, token in bad.items()}
    bodies = {what: refused(answer, 401, "unauthenticated") for what, answer in answers.items()}
    assert {what: body for what, body in bodies.items() if body != bodies["none"]} == {}
    assert all(answer.headers["WWW-Authenticate"] == "Bearer" for answer in answers.values())
    assert trusting.asked(good).status_code == 200  # the control, after all of them


def test_a_token_just_below_the_limit_is_read(trusting: Trusting) -> None:
    assert trusting.bearer(note="x" * 4000).query("hall").status_code == 200


def test_clocks_may_differ_a_little(trusting: Trusting) -> None:
    late = {"exp": int(time.time()) - 10}
    assert trusting.bearer(**late).query("hall").status_code == 200
    refused(trusting.bearer(exp=int(time.time()) - 45).query("hall"), 401, "unauthenticated")


def test_without_an_issuer_no_token_is_heard(tenant: Tenant, running: RunningIssuer) -> None:
    token = running.issuer.token(tenant.name)
    refused(Caller(tenant.server.client, token).query("hall"), 401, "unauthenticated")
    assert tenant.caller().query("hall").status_code == 200
    assert running.issuer.asked == []


def test_keys_go_on_working_beside_tokens_and_end_as_ever(trusting: Trusting) -> None:
    key, server = trusting.tenant.caller(), trusting.server
    assert key.query("hall").status_code == 200
    server.run(server.wired.keys.revoke(trusting.tenant.name, key.key_id))
    refused(key.query("hall"), 401, "unauthenticated")


# What a token gives


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
    rows = "SELECT tenant_id FROM tenants WHERE tenant_id = %(name)s"
    assert trusting.tenant.rows(rows, name="newcomer") == []
    assert len(trusting.tenant.rows(rows, name=trusting.tenant.name)) == 1


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


# The issuer's keys


def test_keys_rotate_without_a_restart(trust: Trust) -> None:
    trusting = trust(oidc_pause_seconds=0.001)
    old, new = trusting.bearer(), trusting.bearer(key=rsa_key(1), headers={"kid": "rsa-1"})
    assert old.query("hall").status_code == 200
    refused(new.query("hall"), 401, "unauthenticated")
    trusting.issuer.keys.append(public(rsa_key(1), "rsa-1"))
    assert (old.query("hall").status_code, new.query("hall").status_code) == (200, 200)
    del trusting.issuer.keys[0]
    keys = trusting.server.wired.verifier
    assert keys is not None
    trusting.server.run(keys.keys.renew())  # as the server does by itself every five minutes
    refused(old.query("hall"), 401, "unauthenticated")
    assert new.query("hall").status_code == 200


def test_keys_are_looked_for_in_the_background(trust: Trust) -> None:
    trusting = trust(oidc_renew_seconds=0.05, oidc_pause_seconds=1000)
    old = trusting.bearer()
    assert old.query("hall").status_code == 200
    trusting.issuer.keys[:] = [public(rsa_key(1), "rsa-1")]
    before, deadline = trusting.issuer.fetched(), time.monotonic() + 30
    while trusting.issuer.fetched() < before + 2 and time.monotonic() < deadline:
        time.sleep(0.01)  # one that is asked for after the change has been answered when the next one is
    refused(old.query("hall"), 401, "unauthenticated")
    assert trusting.bearer(key=rsa_key(1), headers={"kid": "rsa-1"}).query("hall").status_code == 200


def test_unknown_key_ids_do_not_reach_the_issuer_each_time(trust: Trust) -> None:
    trusting = trust(oidc_pause_seconds=1000)
    assert trusting.bearer().query("hall").status_code == 200
    before = trusting.issuer.fetched()
    for number in range(20):
        refused(trusting.bearer(headers={"kid": f"made-up-{number}"}).query("hall"), 401, "unauthenticated")
    assert trusting.issuer.fetched() == before
    eager = trust(oidc_pause_seconds=0.000_001)  # the control: without the pause each one would
    assert eager.bearer().query("hall").status_code == 200
    before = eager.issuer.fetched()
    for number in range(3):
        eager.bearer(headers={"kid": f"made-up-{number}"}).query("hall")
    assert eager.issuer.fetched() == before + 3


def test_the_keys_that_were_had_work_while_the_issuer_is_down(trust: Trust) -> None:
    trusting = trust(oidc_pause_seconds=0.001)
    known = trusting.bearer()
    assert known.query("hall").status_code == 200
    trusting.running.down()
    refused(trusting.bearer(key=rsa_key(1), headers={"kid": "rsa-1"}).query("hall"), 401, "unauthenticated")
    assert known.query("hall").status_code == 200
    trusting.issuer.keys.append(public(rsa_key(1), "rsa-1"))
    trusting.running.up()
    assert trusting.bearer(key=rsa_key(1), headers={"kid": "rsa-1"}).query("hall").status_code == 200


def test_nobody_waits_for_an_issuer_that_hangs_but_who_needs_it(trust: Trust) -> None:
    trusting = trust(oidc_pause_seconds=0.001)
    known, unknown = trusting.bearer(), trusting.bearer(key=rsa_key(1), headers={"kid": "rsa-1"})
    assert known.query("hall").status_code == 200
    trusting.issuer.keys.append(public(rsa_key(1), "rsa-1"))
    trusting.issuer.gate.clear()
    before = len(trusting.issuer.asked)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(unknown.query, "hall")
        deadline = time.monotonic() + 30
        while len(trusting.issuer.asked) == before and time.monotonic() < deadline:
            time.sleep(0.01)
        assert [known.query("hall").status_code for _ in range(3)] == [200] * 3
        assert not waiting.done()
        trusting.issuer.gate.set()
        assert waiting.result().status_code == 200


def test_a_server_starts_while_the_issuer_is_down(trust: Trust, running: RunningIssuer) -> None:
    running.down()
    trusting = trust(oidc_pause_seconds=0.001)
    refused(trusting.bearer().query("hall"), 401, "unauthenticated")
    assert trusting.tenant.caller().query("hall").status_code == 200
    running.up()
    assert trusting.bearer().query("hall").status_code == 200


def test_the_key_set_can_be_named(trust: Trust, running: RunningIssuer) -> None:
    named = trust(oidc_jwks_url=f"{running.issuer.url}/keys")
    assert named.bearer().query("hall").status_code == 200
    assert set(running.issuer.asked) == {"/keys"}


def test_a_secret_in_the_key_set_is_no_key(trust: Trust, running: RunningIssuer) -> None:
    """Nor a private one, one for encryption, or one for another algorithm."""
    secret = {"kty": "oct", "kid": "oct", "k": segment(b"x" * 32), "alg": "HS256"}
    private = jwt.get_algorithm_by_name("RS256").to_jwk(rsa_key(2), as_dict=True)
    running.issuer.keys += [
        secret,
        {**private, "kid": "private", "key_ops": ["verify"]},
        public(rsa_key(3), "encrypts", use="enc"),
        public(rsa_key(4), "other", alg="RS512"),
        public(rsa_key(5, 1024), "short"),
        public(rsa_key(6), "good", alg="RS256", key_ops=["verify"]),
    ]
    trusting = trust()
    by_secret = signed({"alg": "HS256", "kid": "oct"}, running.issuer.claims(trusting.tenant.name), b"x" * 32)
    refused(trusting.asked(by_secret), 401, "unauthenticated")
    for number, bits, name in ((2, 2048, "private"), (3, 2048, "encrypts"), (4, 2048, "other"), (5, 1024, "short")):
        refused(trusting.bearer(key=rsa_key(number, bits), headers={"kid": name}).query("hall"), 401, "unauthenticated")
    assert trusting.bearer(key=rsa_key(6), headers={"kid": "good"}).query("hall").status_code == 200

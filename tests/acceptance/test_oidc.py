"""Tokens of an issuer: what holds lets in, and whatever does not is refused alike."""

import json
import time

from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from support.callers import Caller, Tenant, refused
from support.issuer import AUDIENCE, RunningIssuer, ec_key, public, rsa_key, segment
from support.trusting import Trusting, signed


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

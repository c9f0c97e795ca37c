"""The issuer's keys: fetched and renewed beside requests, kept while it is down, and only those that fit."""

import time
from concurrent.futures import ThreadPoolExecutor

import jwt

from support.callers import refused
from support.issuer import RunningIssuer, public, rsa_key, segment
from support.trusting import Trust, signed


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

"""`memplane doctor` and the issuer of tokens: whether it answers, and with keys that can be used."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.commands import run
from support.issuer import AUDIENCE, RunningIssuer, ec_key, public, rsa_key, running_issuer, segment

CHECK = "OIDC issuer"


@pytest.fixture
def running() -> Iterator[RunningIssuer]:
    with running_issuer() as issuer:
        yield issuer


def examined(folder: Path, running: RunningIssuer | None, **settings: str) -> dict[str, str] | None:
    """What doctor says of the issuer, if anything; it fails as it should."""
    environment = {f"MEMPLANE_OIDC_{name.upper()}": value for name, value in settings.items()}
    if running is not None:
        environment |= {"MEMPLANE_OIDC_ISSUER": running.issuer.url, "MEMPLANE_OIDC_AUDIENCE": AUDIENCE}
    told = run("doctor", "--storage", "sqlite", "--data", str(folder), "--json", environment=environment)
    found: dict[str, dict[str, str]] = {each["check"]: each for each in told.document["checks"]}
    assert told.code == (1 if CHECK in found and found[CHECK]["status"] == "problem" else 0)
    return found.get(CHECK)


def problem(folder: Path, running: RunningIssuer, **settings: str) -> str:
    found = examined(folder, running, **settings)
    assert found is not None
    assert found["status"] == "problem"
    assert "MEMPLANE_OIDC_ISSUER" in found["advice"]
    return found["found"]


def test_an_issuer_that_answers_with_keys_is_well(tmp_path: Path, running: RunningIssuer) -> None:
    found = examined(tmp_path, running)
    assert found is not None
    assert (found["status"], found["found"]) == ("ok", f"{running.issuer.url}, keys: 1 for RS256, 1 for ES256")
    del running.issuer.keys[1]
    one = examined(tmp_path, running)  # an algorithm that the issuer has no key for hurts nobody
    assert one is not None
    assert (one["status"], one["found"]) == ("ok", f"{running.issuer.url}, keys: 1 for RS256")


def test_without_an_issuer_there_is_nothing_to_look_at(tmp_path: Path) -> None:
    assert examined(tmp_path, None) is None


def test_one_that_is_down_is_a_problem(tmp_path: Path, running: RunningIssuer) -> None:
    running.down()
    assert "cannot be fetched" in problem(tmp_path, running)


def test_one_that_answers_something_else_is_a_problem(tmp_path: Path, running: RunningIssuer) -> None:
    other = {"issuer": "https://issuer.example", "jwks_uri": f"{running.issuer.url}/keys"}
    running.issuer.pages["/.well-known/openid-configuration"] = (200, {}, json.dumps(other).encode())
    assert "another issuer's" in problem(tmp_path, running)
    named = examined(tmp_path, running, jwks_url=f"{running.issuer.url}/keys")
    assert named is not None
    assert named["status"] == "ok"
    assert "404" in problem(tmp_path, running, jwks_url=f"{running.issuer.url}/nothing")


def test_keys_that_cannot_be_used_are_a_problem(tmp_path: Path, running: RunningIssuer) -> None:
    running.issuer.keys[:] = [
        {"kty": "oct", "kid": "secret", "k": segment(b"x" * 32)},
        public(rsa_key(1), "encrypts", use="enc"),
        public(ec_key(0), "curve"),
    ]
    assert problem(tmp_path, running, algorithms="RS256,PS256").endswith("serves no key for RS256 or PS256")
    running.issuer.keys.append(public(rsa_key(2, 1024), "short"))
    assert problem(tmp_path, running, algorithms="RS256").endswith("for RS256, but for some that are too short")
    running.issuer.keys.append(public(rsa_key(3), "good"))
    found = examined(tmp_path, running, algorithms="RS256")
    assert found is not None
    assert found["status"] == "ok"

"""What is fetched of an issuer, and what is not: redirects, addresses that are not safe, answers that are too large."""

import asyncio
import json
from collections.abc import Iterator

import pytest

from memplane.adapters.oidc import fetching, key_set
from memplane.adapters.oidc.fetching import DISCOVERY, MAX_BYTES, Fetcher, FetchFailed
from memplane.adapters.oidc.key_set import KeySet
from support.issuer import Issuer, RunningIssuer, ec_key, public, rsa_key, running_issuer


@pytest.fixture
def running() -> Iterator[RunningIssuer]:
    with running_issuer() as issuer:
        yield issuer


@pytest.fixture
def issuer(running: RunningIssuer) -> Issuer:
    return running.issuer


def fetched(issuer: Issuer, jwks_url: str | None = None) -> dict[str, object]:
    return asyncio.run(Fetcher(issuer.url, jwks_url).key_set())


def answer(issuer: Issuer, path: str, document: object, status: int = 200, **headers: str) -> None:
    issuer.pages[path] = (status, headers, json.dumps(document).encode())


def test_the_keys_are_found_by_the_discovery_document(issuer: Issuer) -> None:
    assert fetched(issuer) == {"keys": issuer.keys}
    assert issuer.asked == [DISCOVERY, "/keys"]


def test_a_redirect_is_not_followed(issuer: Issuer) -> None:
    issuer.pages["/moved"] = (302, {"Location": "/keys"}, b"")
    with pytest.raises(FetchFailed, match="302"):
        fetched(issuer, f"{issuer.url}/moved")
    assert issuer.asked == ["/moved"]
    assert fetched(issuer, f"{issuer.url}/keys") == {"keys": issuer.keys}


@pytest.mark.parametrize(
    "url", ["http://issuer.example/keys", "ftp://127.0.0.1/keys", "file:///etc/passwd", "", None, 7]
)
def test_a_discovery_document_must_name_a_safe_address(issuer: Issuer, url: object) -> None:
    answer(issuer, DISCOVERY, {"issuer": issuer.url, "jwks_uri": url})
    with pytest.raises(FetchFailed, match="jwks_uri"):
        fetched(issuer)
    assert issuer.asked == [DISCOVERY]


def test_a_discovery_document_of_another_issuer_is_not_believed(issuer: Issuer) -> None:
    answer(issuer, DISCOVERY, {"issuer": "https://issuer.example", "jwks_uri": f"{issuer.url}/keys"})
    with pytest.raises(FetchFailed, match="another"):
        fetched(issuer)


@pytest.mark.parametrize("size", [MAX_BYTES, MAX_BYTES + 1])
def test_an_answer_is_read_up_to_a_limit(issuer: Issuer, size: int) -> None:
    body = json.dumps({"keys": []}).encode()
    issuer.pages["/keys"] = (200, {}, body + b" " * (size - len(body)))
    if size == MAX_BYTES:
        assert fetched(issuer) == {"keys": []}
    else:
        with pytest.raises(FetchFailed, match="larger"):
            fetched(issuer)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"7", b"[" * 100_000, b"\xff\xfe"])
def test_what_is_no_document_is_refused(issuer: Issuer, body: bytes) -> None:
    issuer.pages["/keys"] = (200, {}, body)
    with pytest.raises(FetchFailed, match="no JSON"):
        fetched(issuer)


def test_an_issuer_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch, issuer: Issuer) -> None:
    assert fetched(issuer)
    monkeypatch.setattr(fetching, "TIMEOUT_SECONDS", 0.2)
    issuer.gate.clear()
    with pytest.raises(FetchFailed, match=r"did not answer within|Timeout"):
        fetched(issuer)
    issuer.gate.set()


@pytest.mark.parametrize("document", [{}, {"keys": {}}, {"keys": None}])
def test_a_key_set_must_have_a_list(document: dict[str, object]) -> None:
    with pytest.raises(FetchFailed):
        key_set.usable(document, ["RS256"])


def test_keys_that_cannot_be_read_do_not_hide_the_others() -> None:
    good, curve = public(rsa_key(0), "good"), public(ec_key(0), "curve")
    entries = [
        None, 7, [], {}, {"kty": "RSA"}, {"kty": "RSA", "kid": "bare"}, {"kty": "RSA", "kid": "odd", "n": 7, "e": []},
        {"kty": "EC", "kid": "bent", "crv": "P-256", "x": "AAAA", "y": "AAAA"}, good | {"kid": 7}, good | {"kid": ""},
        good | {"kid": "encrypts", "use": "enc"}, good | {"kid": "signs", "key_ops": ["sign"]},
        good | {"kid": "ops", "key_ops": "verify"}, good, curve,
    ]  # fmt: skip
    found = key_set.usable({"keys": entries}, ["RS256", "PS256", "ES256", "ES384", "EdDSA"])
    assert set(found) == {("good", "RS256"), ("good", "PS256"), ("curve", "ES256")}


def test_many_who_wait_for_one_key_fetch_once(issuer: Issuer) -> None:
    async def asked() -> int:
        keys = KeySet(Fetcher(issuer.url, None), ["RS256"], every=1000, pause=1000)
        found = await asyncio.gather(*(keys.find("rsa-0", "RS256") for _ in range(50)))
        return sum(key is not None for key in found)

    assert asyncio.run(asked()) == 50
    assert issuer.fetched() == 1

"""Batches of a file that are on their way at the same time are stored in the order of the file, or not at all."""

import json
from concurrent.futures import ThreadPoolExecutor
from random import Random

import httpx2
import pytest

from support.callers import USER, Caller, Tenant, refused
from support.transfer import OPERATING, exported, of

PATH = f"/v1/users/{USER}/import"


@pytest.fixture
def caller(tenant: Tenant) -> Caller:
    """Who may restore."""
    return tenant.caller(None, act_for=["*"], scopes=OPERATING)


def turns(first: int, number: int = 1) -> list[str]:
    return [
        json.dumps({"record": "turn", "thread_id": "t", "role": "user", "text": f"Hello {place}."})
        for place in range(first, first + number)
    ]


def send(caller: Caller, lines: list[str], key: str | None, after: str | None = None) -> httpx2.Response:
    headers = {"Idempotency-Key": key, "Idempotency-After": after}
    given = {name: value for name, value in headers.items() if value is not None}
    return caller.send("POST", PATH, json={"lines": lines, "mode": "restore"}, headers=given)


def said(caller: Caller) -> list[str]:
    return [line["text"] for line in of(exported(caller), "turn")]


def test_a_batch_is_not_stored_without_the_one_before_it(tenant: Tenant, caller: Caller) -> None:
    refused(send(caller, turns(1), "b", "a"), 409, "out_of_order")
    assert tenant.count("turns") == 0
    assert send(caller, turns(0), "a").status_code == 200
    done = send(caller, turns(1), "b", "a")  # the control: the same request, when its turn has come
    assert (done.status_code, done.json()["outcomes"]) == (200, ["restored"])
    assert said(caller) == ["Hello 0.", "Hello 1."]


def test_one_that_was_stored_is_answered_as_it_was_wherever_it_is_sent(caller: Caller) -> None:
    send(caller, turns(0), "a")
    first = send(caller, turns(1), "b", "a")
    for after in ("a", None, "never sent"):
        again = send(caller, turns(1), "b", after)
        assert (again.status_code, again.json()) == (200, first.json())
        assert again.headers["Idempotency-Replayed"] == "true"
    assert said(caller) == ["Hello 0.", "Hello 1."]


def test_a_batch_that_was_refused_was_not_stored(tenant: Tenant) -> None:
    bound = tenant.caller("supervisor", users=[USER], scopes=OPERATING)
    body = {"lines": turns(0), "mode": "restore"}
    headers = {"Idempotency-Key": "a"}
    refused(bound.send("POST", "/v1/users/ben/import", json=body, headers=headers), 403, "user_forbidden")
    refused(send(bound, turns(1), "b", "a"), 409, "out_of_order")
    assert said(bound) == []


def test_another_key_s_batch_is_not_the_one_before(tenant: Tenant, caller: Caller) -> None:
    other = tenant.caller(None, act_for=["*"], scopes=OPERATING)
    assert send(other, turns(0), "a").status_code == 200
    refused(send(caller, turns(1), "b", "a"), 409, "out_of_order")
    assert send(other, turns(1), "b", "a").status_code == 200  # the control


def test_it_needs_a_name_of_its_own(caller: Caller) -> None:
    refused(send(caller, turns(0), None, "a"), 422, "invalid_request")
    refused(send(caller, turns(0), "a", "a"), 422, "invalid_request")
    assert said(caller) == []


@pytest.mark.parametrize("seed", range(3))
def test_in_whatever_order_they_arrive_they_are_stored_in_that_of_the_file(caller: Caller, seed: int) -> None:
    batches = {f"batch {place}": (turns(place * 20, 20), f"batch {place - 1}" if place else None) for place in range(8)}
    left = list(batches)
    Random(seed).shuffle(left)  # noqa: S311 - the same each time
    with ThreadPoolExecutor(4) as pool:
        for _ in batches:  # each round stores one at least: the first of those that are left
            answers = pool.map(lambda key: send(caller, batches[key][0], key, batches[key][1]), left)
            statuses = dict(zip(left, (answer.status_code for answer in answers), strict=True))
            assert set(statuses.values()) <= {200, 409}
            left = [key for key, status in statuses.items() if status != 200]
            if not left:
                break
    assert left == []
    assert said(caller) == [f"Hello {place}." for place in range(160)]

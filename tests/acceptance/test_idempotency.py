"""`Idempotency-Key`: a request that is sent again has one effect and one answer."""

import json
import os
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest

from memplane import bootstrap
from support.callers import THREAD, USER, Caller, Tenant, refused
from support.promises.checks import done_twice
from support.serving import RunningServer

CUT_ROUNDS = int(os.environ.get("CUT_ROUNDS", "20"))
MEMORY = {"user_id": USER, "category": "tasks", "content": "The hall is booked."}
TURN = {"user_id": USER, "thread_id": THREAD, "role": "user", "text": "The hall is booked."}


def send(caller: Caller, path: str, body: Any, key: str) -> httpx2.Response:  # noqa: ANN401 - a request's body
    return caller.send("POST", path, json=body, headers={"Idempotency-Key": key})


@pytest.mark.parametrize(
    ("path", "body", "table"),
    [
        ("/v1/memories", MEMORY, "memories"),
        ("/v1/turns", TURN, "turns"),
        ("/v1/turns:batch", {"turns": [TURN]}, "turns"),
    ],
)
def test_the_same_again_has_one_effect(tenant: Tenant, path: str, body: dict[str, Any], table: str) -> None:
    assert done_twice(tenant, path, body, table) == []


def test_the_same_json_written_otherwise_is_the_same(supervisor: Caller) -> None:
    first = send(supervisor, "/v1/memories", MEMORY, "k").json()
    other = json.dumps(dict(reversed(MEMORY.items())), indent=2)
    headers = {"Idempotency-Key": "k", "Content-Type": "application/json"}
    again = supervisor.send("POST", "/v1/memories", content=other, headers=headers)
    assert (again.json(), again.headers["Idempotency-Replayed"]) == (first, "true")


def test_a_verb_too(supervisor: Caller) -> None:
    memory = supervisor.remember("The hall is booked.")
    for _ in range(3):
        assert send(supervisor, f"/v1/memories/{memory}/reinforce", {}, "once").status_code == 200
    assert supervisor.get(f"/v1/memories/{memory}").json()["reinforcement"] == 3


def test_a_correction_too(tenant: Tenant, supervisor: Caller) -> None:
    memory = supervisor.remember("The hall is booked.")
    path = f"/v1/memories/{memory}/correct"
    first, again = (send(supervisor, path, {"content": "The hall is free."}, "once") for _ in range(2))
    assert first.json() == again.json()
    assert (first.status_code, again.status_code) == (200, 200)
    assert tenant.count("memories") == 2
    refused(send(supervisor, path, {"content": "The hall is free."}, "twice"), 409, "conflict")


def test_another_request_with_the_same_key_is_refused(tenant: Tenant, supervisor: Caller) -> None:
    send(supervisor, "/v1/memories", MEMORY, "k")
    other = MEMORY | {"content": "The hall is not booked yet, says Ana."}
    refused(send(supervisor, "/v1/memories", other, "k"), 422, "idempotency_mismatch")
    refused(send(supervisor, "/v1/turns", TURN, "k"), 422, "idempotency_mismatch")
    assert tenant.count("memories", "turns") == 1


def test_when_what_it_stored_has_expired_since(
    start_server: Callable[..., RunningServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    moment = datetime.now(UTC)
    monkeypatch.setattr(bootstrap, "now", lambda: moment)
    tenant = Tenant(start_server())
    supervisor, colleague = tenant.caller(), tenant.caller()
    body = MEMORY | {"expires_at": (moment + timedelta(minutes=1)).isoformat()}
    first = send(supervisor, "/v1/memories", body, "k")
    assert first.status_code == 201
    moment += timedelta(minutes=2)
    refused(send(colleague, "/v1/memories", body, "k"), 422, "invalid_request")  # the answer is of who asked
    again = send(supervisor, "/v1/memories", body, "k")
    assert (again.status_code, again.json(), again.headers["Idempotency-Replayed"]) == (201, first.json(), "true")
    refused(
        send(supervisor, "/v1/memories", body, "k2"), 422, "invalid_request"
    )  # the control: it is too late for a new one


def test_a_refusal_is_not_kept(supervisor: Caller) -> None:
    bad = MEMORY | {"content": "She booked the hall."}
    refused(send(supervisor, "/v1/memories", bad, "k"), 422, "writing_constraint")
    assert send(supervisor, "/v1/memories", MEMORY, "k").status_code == 201


def test_keys_of_others_are_others(tenant: Tenant, supervisor: Caller) -> None:
    first = send(supervisor, "/v1/turns", TURN, "k").json()
    second = send(tenant.caller("supervisor"), "/v1/turns", TURN, "k").json()
    assert first["turn_id"] != second["turn_id"]


def test_at_the_same_time(tenant: Tenant, supervisor: Caller) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: send(supervisor, "/v1/turns", TURN, "k"), range(24)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["turn_id"] for answer in answers}) == 1
    assert tenant.count("turns") == 1


@pytest.mark.parametrize("key", ["", "x" * 256])
def test_a_key_must_be_one(supervisor: Caller, key: str) -> None:
    refused(send(supervisor, "/v1/memories", MEMORY, key), 422, "invalid_request")


def cut_off(caller: Caller, path: str, body: Any, key: str, *, late: bool = False) -> None:  # noqa: ANN401 - a request's body
    """Send a request and leave before the answer, or ``late``, when it has begun to come.

    Whoever leaves before the body is read may find that nothing was done.
    """
    payload = json.dumps(body).encode()
    head = {"Host": "x", "Authorization": f"Bearer {caller.credential}", "Idempotency-Key": key}
    head |= {"Content-Type": "application/json", "Content-Length": str(len(payload))}
    lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
    url = caller.client.base_url
    with socket.create_connection((url.host, url.port or 80)) as wire:
        wire.sendall(f"POST {path} HTTP/1.1\r\n{lines}\r\n".encode() + payload)
        if late:
            wire.recv(1)


def test_a_request_whose_answer_was_lost_is_sent_again(tenant: Tenant, supervisor: Caller) -> None:
    """``CUT_ROUNDS=1000`` for the figure; each round one effect, however the two attempts meet."""
    memory = supervisor.remember("The hall is booked.")

    def round_of(number: int) -> tuple[str, int, bool]:
        body = TURN | {"text": f"Number {number}.", "thread_id": f"t{number % 16}", "auto_extract": False}
        verb = f"/v1/memories/{memory}/reinforce"
        for path, sent in (("/v1/turns", body), (verb, {})):
            cut_off(supervisor, path, sent, f"cut-{number}-{len(sent)}", late=number % 4 == 0)
        turn = send(supervisor, "/v1/turns", body, f"cut-{number}-{len(body)}")
        assert turn.status_code == 201, turn.text
        said = send(supervisor, verb, {}, f"cut-{number}-0")
        return turn.json()["turn_id"], said.status_code, "Idempotency-Replayed" in turn.headers

    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(round_of, range(CUT_ROUNDS)))
    assert {status for _, status, _ in done} == {200}
    assert any(replayed for _, _, replayed in done)  # the control: requests that were left had their effect
    assert len({turn for turn, _, _ in done}) == tenant.count("turns") == CUT_ROUNDS
    assert supervisor.get(f"/v1/memories/{memory}").json()["reinforcement"] == 3 * CUT_ROUNDS

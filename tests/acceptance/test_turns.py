"""Turns: numbered without gaps, stored all or none, word for word, and known again by the caller's own name."""

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from support.callers import THREAD, USER, Caller, Tenant, refused

WRITERS = 8
Json = dict[str, Any]


def turn(text: str, **fields: Any) -> Json:  # noqa: ANN401 - fields of the request
    return {"user_id": USER, "thread_id": THREAD, "role": "user", "text": text} | fields


def batch(caller: Caller, *turns: Json) -> list[Json]:
    response = caller.post("/v1/turns:batch", {"turns": list(turns)})
    assert response.status_code in (200, 201), response.text
    return list(response.json()["items"])


def test_turns_and_memories_share_one_revision_of_the_thread(supervisor: Caller) -> None:
    first, second = supervisor.say("Which hall?"), supervisor.say("The big one.")
    supervisor.remember("The hall is booked.", thread_id=THREAD)
    third = supervisor.say("Fine.")
    assert [(t["seq"], t["rev"]) for t in (first, second, third)] == [(1, 1), (2, 2), (3, 4)]
    assert supervisor.get(f"/v1/threads/{THREAD}/delta").json()["rev"] == 4
    assert supervisor.say("Hello.", thread_id="other")["seq"] == 1
    assert supervisor.say("Hello.", user_id="ben")["seq"] == 1
    assert first["extracted"] == []


def test_a_turn_is_kept_word_for_word(supervisor: Caller) -> None:
    text = "I think she's right…\n\n\tThey said: “No!” – 100 %  of it."
    supervisor.say(text, actor_id="Ana", event_time="2025-07-01T10:00:00+02:00")
    (item,) = supervisor.ask("right", return_="full")["items"]
    assert item["turn"]["text"] == "I think she's right…\n\nThey said: “No!” – 100 % of it."
    assert item["turn"]["event_time"] == "2025-07-01T08:00:00Z"
    assert item["turn"]["role"] == "user"


def test_the_same_external_id_is_the_same_turn(tenant: Tenant, supervisor: Caller) -> None:
    first = supervisor.say("Which hall?", external_id="m-1")
    supervisor.say("The big one.", external_id="m-2")
    again = supervisor.post("/v1/turns", turn("Which hall, please?", external_id="m-1"))
    assert again.status_code == 200
    assert again.json() == first | {"outcome": "duplicate"}
    assert supervisor.say("Which hall?", external_id="m-1", thread_id="other")["turn_id"] != first["turn_id"]
    assert tenant.count("turns") == 3


def test_many_writers_on_one_thread_leave_no_gap(tenant: Tenant, supervisor: Caller) -> None:
    each = 12

    def write(writer: int) -> list[Json]:
        told = []
        for number in range(each):
            if number % 4 == 3:
                told += batch(supervisor, turn(f"{writer}/{number} a"), turn(f"{writer}/{number} b"))
            else:
                told.append(supervisor.say(f"{writer}/{number}"))
        return told

    with ThreadPoolExecutor(WRITERS) as writers:
        by_writer = list(writers.map(write, range(WRITERS)))
    told = [stored for mine in by_writer for stored in mine]
    everything = list(range(1, len(told) + 1))
    assert sorted(stored["seq"] for stored in told) == everything
    assert sorted(stored["rev"] for stored in told) == everything
    for mine in by_writer:  # and nobody's own order is turned
        assert [stored["seq"] for stored in mine] == sorted(stored["seq"] for stored in mine)
    kept = {row["id"]: (row["seq"], row["rev"]) for row in tenant.rows("SELECT id, seq, rev FROM turns"
                                                                      " WHERE tenant_id = %(tenant)s")}  # fmt: skip
    assert {str(key): value for key, value in kept.items()} == {t["turn_id"]: (t["seq"], t["rev"]) for t in told}
    assert supervisor.get(f"/v1/threads/{THREAD}/delta").json()["rev"] == len(told)


def test_memories_and_turns_at_once_leave_no_gap_in_the_revisions(supervisor: Caller) -> None:
    def write(number: int) -> int:
        if number % 2:
            return int(supervisor.say(f"Number {number}.")["rev"])
        body = {"user_id": USER, "category": "tasks", "content": f"Room {number} has oak doors.", "thread_id": THREAD}
        return int(supervisor.post("/v1/memories", body).json()["rev"])

    with ThreadPoolExecutor(WRITERS) as writers:
        assert sorted(writers.map(write, range(40))) == list(range(1, 41))


def test_the_same_turn_from_many_clients_is_one(tenant: Tenant, supervisor: Caller) -> None:
    with ThreadPoolExecutor(WRITERS) as clients:
        sent = clients.map(lambda _: supervisor.post("/v1/turns", turn("Which hall?", external_id="m-1")), range(24))
        answers = list(sent)
    assert sorted(answer.status_code for answer in answers) == [200] * 23 + [201]
    assert {(answer.json()["turn_id"], answer.json()["seq"], answer.json()["rev"]) for answer in answers} == {
        (answers[0].json()["turn_id"], 1, 1)
    }
    assert tenant.count("turns") == tenant.count("change_log") == 1


class TestBatch:
    """`/v1/turns:batch`."""

    def test_the_order_is_kept_within_and_across_threads(self, supervisor: Caller) -> None:
        sent = [turn(f"Number {n}.", thread_id=f"t{n % 3}", user_id=("ana", "ben")[n % 2]) for n in range(24)]
        stored = batch(supervisor, *sent)
        assert len({answer["turn_id"] for answer in stored}) == 24
        seqs: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        for request, answer in zip(sent, stored, strict=True):
            seqs[request["user_id"], request["thread_id"]].append(answer["seq"])
        assert len(seqs) == 6
        assert all(seq == [1, 2, 3, 4] for seq in seqs.values())
        found = supervisor.ask("number", return_="full", top_k=200)["items"]
        texts = {item["id"]: item["turn"]["text"] for item in found}
        assert [texts[answer["turn_id"]] for answer in stored] == [request["text"] for request in sent]

    @pytest.mark.parametrize(
        ("bad", "code"),
        [({"text": "a\u0000b"}, "invalid_text"), ({"text": " "}, "invalid_text"), ({"role": "x"}, "invalid_request"),
         ({"text": "x" * 16_001}, "limit_exceeded"), ({"thread_id": "\u0000"}, "invalid_text")],
        ids=["NUL", "blank", "role", "long", "thread"],
    )  # fmt: skip
    def test_one_bad_turn_stores_none(self, tenant: Tenant, supervisor: Caller, bad: Json, code: str) -> None:
        good = [turn(f"Number {number}.") for number in range(5)]
        response = supervisor.post("/v1/turns:batch", {"turns": [*good, turn("Fine.") | bad]})
        problem = refused(response, 422, code)
        assert "turns" in problem["detail"] or code == "invalid_text"
        assert tenant.count("turns", "thread_revision", "change_log") == 0
        assert len(batch(supervisor, *good)) == 5

    def test_a_thousand_fit_and_one_more_does_not(self, tenant: Tenant, supervisor: Caller) -> None:
        many = [turn(f"Number {number}.") for number in range(1_001)]
        refused(supervisor.post("/v1/turns:batch", {"turns": many}), 422, "invalid_request")
        refused(supervisor.post("/v1/turns:batch", {"turns": []}), 422, "invalid_request")
        assert tenant.count("turns") == 0
        stored = batch(supervisor, *many[:1_000])
        assert [answer["seq"] for answer in stored] == list(range(1, 1_001))

    def test_duplicates_within_a_batch_and_of_earlier_turns_are_one(self, tenant: Tenant, supervisor: Caller) -> None:
        early = supervisor.say("Zero.", external_id="m-0")
        names = ["m-1", "m-0", None, "m-1", "m-2", None]
        stored = batch(supervisor, *[turn(f"Number {n}.", external_id=name) for n, name in enumerate(names)])
        assert [answer["outcome"] for answer in stored] == [
            "created", "duplicate", "created", "duplicate", "created", "created",
        ]  # fmt: skip
        assert [answer["seq"] for answer in stored] == [2, 1, 3, 2, 4, 5]
        assert stored[0]["turn_id"] == stored[3]["turn_id"]
        assert stored[1]["turn_id"] == early["turn_id"]
        assert [answer["external_id"] for answer in stored] == names
        assert tenant.count("turns") == 5

    def test_a_batch_of_what_is_there_creates_nothing(self, supervisor: Caller) -> None:
        named = {"turns": [turn("Zero.", external_id="m-0"), turn("One.", external_id="m-1")]}
        first, again = (supervisor.post("/v1/turns:batch", named) for _ in range(2))
        assert (first.status_code, again.status_code) == (201, 200)
        assert [answer["outcome"] for answer in again.json()["items"]] == ["duplicate"] * 2

    def test_one_batch_speaks_as_one_agent(self, tenant: Tenant) -> None:
        operator = tenant.caller(None, act_for=["*"])
        mixed = [turn("One.", agent="supervisor"), turn("Two.", agent="planner")]
        refused(operator.post("/v1/turns:batch", {"turns": mixed}), 422, "invalid_request")
        assert len(batch(operator, mixed[0], turn("Two.", agent="supervisor"))) == 2
        one = {"turns": [mixed[0]]}
        refused(tenant.caller("planner").post("/v1/turns:batch", one), 403, "agent_forbidden")
        assert tenant.caller("planner", act_for=["supervisor"]).post("/v1/turns:batch", one).status_code == 201

    def test_batches_over_the_same_threads_do_not_block_each_other(self, supervisor: Caller) -> None:
        """Threads in opposite orders: writers that locked them as they come would wait for each other."""

        def write(number: int) -> int:
            order = range(6) if number % 2 else range(5, -1, -1)
            sent = [turn(f"{number}", thread_id=f"t{n}", external_id=f"{number}-{n}") for n in order]
            return len(batch(supervisor, *sent))

        with ThreadPoolExecutor(WRITERS) as writers:
            assert list(writers.map(write, range(24))) == [6] * 24


@pytest.mark.parametrize("missing", ["user_id", "thread_id", "role", "text"])
def test_what_a_turn_must_say(supervisor: Caller, missing: str) -> None:
    body = turn("Which hall?")
    del body[missing]
    problem = refused(supervisor.post("/v1/turns", body), 422, "invalid_request")
    assert problem["errors"] == [{"field": f"body.{missing}", "message": "is required"}]
    refused(supervisor.post("/v1/turns", turn("Which hall?", mood="happy")), 422, "invalid_request")

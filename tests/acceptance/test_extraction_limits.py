"""What the limits of extraction leave out of a turn is counted: in the answer, in the events and in the report."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from support.callers import THREAD, USER, Caller, Json, Tenant
from support.nights import NOON, Night

FACTS = ("I love jazz.", "My sister is called Ingrid.", "I collect stamps.", "I play the cello.", "I own a red boat.")
MOST = 3
"""Facts of one turn."""
NOTHING = {"facts": 0, "statements": 0, "characters": 0}
WENT = "I went there. "
"""A statement that is no fact."""
SENTENCES, READ, LONGEST = 60, 4_000, 600
LIVES = "I live in Berlin."


def turn(text: str, **fields: object) -> Json:
    return {"user_id": USER, "thread_id": THREAD, "role": "user", "text": text} | fields


def skipped(tenant: Tenant) -> list[str | None]:
    """The categories of what the events say was left out."""
    rows = tenant.rows(
        "SELECT category FROM events WHERE tenant_id = %(tenant)s AND op = 'extract' AND status = 'skipped' ORDER BY id"
    )
    return [row["category"] for row in rows]


def drawn(answer: Json) -> int:
    """How many facts were drawn."""
    return len(answer["extracted"]) + int(answer["extracted_elsewhere"])


def reported(tenant: Tenant, at: datetime | None = None) -> float:
    """What the report of the day before a moment counts; the moment is soon."""
    return Night(tenant, at or datetime.now(UTC) + timedelta(hours=23)).counts("gc")["extraction_skipped"]


def test_facts_beyond_the_most_of_a_turn(tenant: Tenant, caller: Caller) -> None:
    within = caller.say(" ".join(FACTS[:MOST]), thread_id="control")
    assert (drawn(within), within["left_out"], skipped(tenant)) == (MOST, NOTHING, [])
    answer = caller.say(" ".join(FACTS))
    assert drawn(answer) == MOST
    assert answer["left_out"] == NOTHING | {"facts": len(FACTS) - MOST}
    assert len(skipped(tenant)) == len(FACTS) - MOST
    assert None not in skipped(tenant)
    assert reported(tenant) == len(FACTS) - MOST


@pytest.mark.parametrize(
    ("within", "beyond", "left_out"),
    [
        (WENT * SENTENCES, WENT * (SENTENCES + 2), {"statements": 2}),
        ("word " * 790 + ".", "word " * 790 + ". " + "word " * 100, {"characters": 500}),
        (f"I {'very ' * 110}loved it.", f"I {'very ' * 120}loved it.", {"statements": 1}),
    ],
    ids=["statements", "characters", "a long sentence"],
)
def test_what_is_not_read(tenant: Tenant, caller: Caller, within: str, beyond: str, left_out: Json) -> None:
    assert len(within) <= READ
    assert caller.say(within, thread_id="control")["left_out"] == NOTHING
    assert (skipped(tenant), reported(tenant)) == ([], 0)
    assert caller.say(beyond)["left_out"] == NOTHING | left_out
    assert skipped(tenant) == ["activity"]  # one for the turn
    assert reported(tenant) == 1


def test_steps_beyond_the_most_of_a_procedure(caller: Caller) -> None:
    def told(count: int) -> str:
        steps = ", ".join(f"{number}) check lamp {number * 100}" for number in range(1, count + 1))
        return f"Remember these steps for a release: {steps}."

    assert caller.say(told(20), thread_id="control")["left_out"] == NOTHING
    assert caller.say(told(21))["left_out"] == NOTHING | {"facts": 1}


def test_a_sensitive_value_beyond_the_limit_is_not_lost(tenant: Tenant, caller: Caller) -> None:
    """Fields of the profile have room of their own."""
    weightier = [f"I'm allergic to {food}." for food in ("peanuts", "eggs", "milk")]
    answer = caller.say(" ".join((*weightier, LIVES)))
    assert "queued_for_consent" in [each["action"] for each in answer["extracted"]]
    assert (drawn(answer), answer["left_out"], skipped(tenant)) == (MOST + 1, NOTHING, [])


def test_each_turn_of_a_batch(tenant: Tenant, caller: Caller) -> None:
    texts = (FACTS[0], " ".join(FACTS), WENT * (SENTENCES + 1), "Hello.")
    done = caller.post("/v1/turns:batch", {"turns": [turn(each) for each in texts]})
    assert [each["left_out"] for each in done.json()["items"]] == [
        NOTHING,
        NOTHING | {"facts": len(FACTS) - MOST},
        NOTHING | {"statements": 1},
        NOTHING,
    ]
    assert len(skipped(tenant)) == len(FACTS) - MOST + 1


@pytest.mark.parametrize("fields", [{"role": "assistant"}, {"auto_extract": False}], ids=str)
def test_what_is_not_looked_through_leaves_nothing_out(tenant: Tenant, caller: Caller, fields: Json) -> None:
    answer = caller.post("/v1/turns", turn(" ".join(FACTS), **fields)).json()
    assert (answer["extracted"], answer["left_out"], skipped(tenant)) == ([], NOTHING, [])
    assert caller.say(" ".join(FACTS))["left_out"] != NOTHING  # the control


def test_a_deleted_turn_says_no_more_how_long_it_was(caller: Caller) -> None:
    headers = {"Idempotency-Key": "once"}
    body = turn(" ".join(FACTS))
    first = caller.send("POST", "/v1/turns", json=body, headers=headers).json()
    assert caller.send("POST", "/v1/turns", json=body, headers=headers).json()["left_out"] == first["left_out"]
    assert first["left_out"] != NOTHING
    assert caller.delete(f"/v1/turns/{first['turn_id']}").status_code == 200
    assert caller.send("POST", "/v1/turns", json=body, headers=headers).json()["left_out"] == NOTHING


@pytest.mark.parametrize("text", [" ".join(FACTS), WENT * (SENTENCES + 1)], ids=["facts", "statements"])
def test_imported_turns_are_counted_when_they_are_read(tenant: Tenant, caller: Caller, text: str) -> None:
    """An import draws nothing; the job that reads its conversations later does."""
    line = {"record": "turn", "thread_id": THREAD, "role": "user", "text": text}
    control = line | {"thread_id": "control", "text": FACTS[0]}
    done = caller.post(f"/v1/users/{USER}/import", {"lines": [json.dumps(each) for each in (control, line)]})
    assert done.json()["outcomes"] == ["created"] * 2
    assert skipped(tenant) == []
    lost = len(FACTS) - MOST if text.startswith(FACTS[0]) else 1
    for day, (thread, expected) in enumerate((("control", 0), (THREAD, lost))):
        assert caller.post(f"/v1/sessions/{thread}/close", {"user_id": USER}).is_success
        night = NOON + timedelta(days=day)
        assert Night(tenant, night).counts("facts")["left_out"] == expected
        assert len(skipped(tenant)) == expected
        assert reported(tenant, night + timedelta(hours=1)) == expected


def test_a_turn_that_was_read_is_not_counted_again(tenant: Tenant, caller: Caller) -> None:
    caller.say(" ".join(FACTS))
    assert caller.post(f"/v1/sessions/{THREAD}/close", {"user_id": USER}).is_success
    assert Night(tenant).counts("facts")["left_out"] == 0
    assert len(skipped(tenant)) == len(FACTS) - MOST

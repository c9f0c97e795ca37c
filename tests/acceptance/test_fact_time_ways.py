"""Whichever way a memory comes to be, its own time decides: change, correction, restore, confirmation, consent."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from support.callers import Caller, Json, Tenant
from support.consenting import REVIEW, context, decide, queue
from support.nights import Night
from support.telling import say, texts, write

OSLO, PORTO, BERLIN = (f"The user's mother lives in {city}." for city in ("Oslo", "Porto", "Berlin"))
CITY = ("The user lives in Oslo.", "The user lives in Porto.", "The user lives in Berlin.")
PIANO = ("The user owns a piano.", "The user has a piano.")
DOG = "The user walks the neighbour's dog."
"""Something else, which is put right as one of the cities."""
LONG_AGO, EARLY, LATE, AHEAD = (f"{year}-01-01T00:00:00Z" for year in (2015, 2019, 2023, 2099))
IN_2020, IN_2024 = ({"true_at": f"{year}-06-01T00:00:00Z"} for year in (2020, 2024))


@pytest.fixture
def caller(tenant: Tenant) -> Caller:
    """A supervisor, who reads and writes relationships."""
    return tenant.caller("supervisor")


def store(caller: Caller, content: str, **fields: Any) -> Json:  # noqa: ANN401 - of the memory
    return write(caller, content, "relationships", **fields)


def end(tenant: Tenant, memory: str) -> str | None:
    (row,) = tenant.rows("SELECT valid_until FROM memories WHERE id = %(id)s", id=UUID(memory))
    until = row["valid_until"]
    return None if until is None else f"{until.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def now_said(caller: Caller) -> set[str]:
    return texts(caller, categories=["relationships"])


def change(caller: Caller, memory: str, **fields: Any) -> Json:  # noqa: ANN401 - of the memory
    response = caller.patch(f"/v1/memories/{memory}", fields)
    assert response.status_code == 200, response.text
    return dict(response.json())


def correct(caller: Caller, memory: str, **fields: Any) -> Json:  # noqa: ANN401 - of the memory
    return say(caller, memory, "correct", **fields)


@pytest.mark.parametrize("way", [change, correct])
class TestNewWords:
    """What is said in the place of other words."""

    def test_what_is_older_is_outdated(self, caller: Caller, way: Any) -> None:  # noqa: ANN401 - a function
        today = store(caller, OSLO, valid_from=LATE)["id"]
        old = store(caller, DOG, valid_from=EARLY)["id"]
        done = way(caller, old, content=PORTO)
        assert (done["outcome"], done["overruled"][0]) == ("outdated", today)
        assert now_said(caller) == {OSLO}
        assert texts(caller, as_of=IN_2020) == {PORTO}
        assert texts(caller, as_of=IN_2024) == {OSLO}
        assert caller.get(f"/v1/memories/{today}").json()["valid_until"] is None

    def test_what_is_newer_takes_effect(self, caller: Caller, way: Any) -> None:  # noqa: ANN401 - a function
        """The control, by its own time and by that of the call."""
        old = store(caller, OSLO, valid_from=EARLY)["id"]
        new = way(caller, store(caller, DOG, valid_from=LATE)["id"], content=PORTO)
        assert (now_said(caller), texts(caller, as_of=IN_2020)) == ({PORTO}, {OSLO})
        assert old in new["overruled"]
        undated = store(caller, "The user likes the sea.")["id"]
        assert new["id"] in way(caller, undated, content=BERLIN)["overruled"]
        assert now_said(caller) == {BERLIN}

    def test_what_ended_or_is_to_come_ends_nothing(self, caller: Caller, way: Any) -> None:  # noqa: ANN401 - a function
        store(caller, OSLO, valid_from=EARLY)
        over = store(caller, DOG, valid_from=LONG_AGO, valid_until=LATE)["id"]
        assert way(caller, over, content=PORTO)["outcome"] in {"updated", "superseded"}
        ahead = store(caller, "The user walks the cat.", valid_from=AHEAD)["id"]
        way(caller, ahead, content=BERLIN)
        assert now_said(caller) == {OSLO, f"(from 2099-01-01) {BERLIN}"}
        assert texts(caller, as_of=IN_2024) == {OSLO}

    def test_what_was_said_again_keeps_the_time(self, caller: Caller, way: Any) -> None:  # noqa: ANN401 - a function
        old = store(caller, DOG, valid_from=EARLY)["id"]
        store(caller, DOG, valid_from=LATE)
        store(caller, OSLO, valid_from="2021-01-01T00:00:00Z")
        assert way(caller, old, content=PORTO)["outcome"] != "outdated"
        assert now_said(caller) == {PORTO}


def test_a_change_of_the_time_alone_is_compared_too(caller: Caller) -> None:
    store(caller, OSLO, valid_from=LATE)
    ahead = store(caller, PORTO, valid_from=AHEAD)["id"]
    assert change(caller, ahead, valid_from=EARLY)["outcome"] == "outdated"
    assert (now_said(caller), texts(caller, as_of=IN_2020)) == ({OSLO}, {PORTO})
    other = store(caller, DOG, valid_from=AHEAD)["id"]
    assert change(caller, other, valid_from=EARLY)["outcome"] == "updated"  # the control: nothing contradicts it


def test_a_correction_goes_on_where_the_clock_was_put_back(tenant: Tenant, caller: Caller) -> None:
    ahead = datetime.now(UTC) + timedelta(hours=1)
    old = store(caller, PORTO)["id"]
    tenant.rows("UPDATE memories SET recorded_at = %(ahead)s WHERE id = %(id)s", ahead=ahead, id=old)
    new = correct(caller, old, content=OSLO)["id"]
    recorded = datetime.fromisoformat(caller.get(f"/v1/memories/{new}").json()["recorded_at"])
    assert recorded > ahead
    assert now_said(caller) == {OSLO}


class TestRestoring:
    """What comes back has the time that it had."""

    def test_what_is_older_than_what_holds_comes_back_as_outdated(self, caller: Caller) -> None:
        old = store(caller, PORTO, valid_from=EARLY)["id"]
        caller.delete(f"/v1/memories/{old}")
        store(caller, OSLO, valid_from=LATE)
        assert say(caller, old, "restore")["outcome"] == "outdated"
        assert (now_said(caller), texts(caller, as_of=IN_2020)) == ({OSLO}, {PORTO})

    def test_what_has_no_time_of_its_own_is_said_now(self, caller: Caller) -> None:
        """The control."""
        old = store(caller, PORTO)["id"]
        caller.delete(f"/v1/memories/{old}")
        store(caller, OSLO)
        assert say(caller, old, "restore")["outcome"] == "restored"
        assert now_said(caller) == {PORTO}

    @pytest.mark.parametrize("until", [AHEAD, None], ids=["its own", "none"])
    def test_what_was_superseded_has_the_end_that_it_had(
        self, tenant: Tenant, caller: Caller, until: str | None
    ) -> None:
        old = store(caller, PORTO, valid_from=EARLY, valid_until=until)["id"]
        new = store(caller, OSLO, valid_from=LATE)["id"]
        assert end(tenant, old) == LATE
        assert say(caller, old, "restore")["overruled"] == [new]
        assert end(tenant, old) == until

    def test_what_has_ended_leaves_what_holds(self, tenant: Tenant, caller: Caller) -> None:
        old = store(caller, PORTO, valid_from=LONG_AGO, valid_until=AHEAD)["id"]
        store(caller, OSLO, valid_from=EARLY)
        passed = '{"own_end": "2017-01-01T00:00:00+00:00"}'
        tenant.rows(
            "UPDATE history SET meta = %(meta)s WHERE memory_id = %(id)s AND event = 'SUPERSEDE'",
            id=UUID(old),
            meta=passed,
        )
        assert say(caller, old, "restore")["outcome"] == "restored"
        assert (now_said(caller), texts(caller, as_of={"true_at": "2016-06-01T00:00:00Z"})) == ({OSLO}, {PORTO})

    def test_what_followed_what_is_brought_back_never_was_so(self, caller: Caller) -> None:
        old = store(caller, PORTO, valid_from=EARLY)["id"]
        store(caller, OSLO, valid_from="2021-01-01T00:00:00Z")
        store(caller, BERLIN, valid_from=LATE)
        assert say(caller, old, "restore")["outcome"] == "restored"
        for moment in (IN_2020, {"true_at": "2022-01-01T00:00:00Z"}, IN_2024):
            assert texts(caller, as_of=moment) == {PORTO}


def test_a_confirmed_doubt_has_its_own_time(tenant: Tenant, caller: Caller) -> None:
    store(caller, OSLO, valid_from=LATE, visibility="shared")
    inner = tenant.caller("supervisor", trust="inner")
    doubted = store(inner, PORTO, valid_from=EARLY, visibility="shared")
    assert doubted["outcome"] == "disputed"
    assert say(caller, doubted["id"], "confirm")["outcome"] == "outdated"
    assert (now_said(caller), texts(caller, as_of=IN_2020)) == ({OSLO}, {PORTO})
    newer = store(inner, BERLIN, visibility="shared")
    assert say(caller, newer["id"], "confirm")["outcome"] == "updated"  # the control
    assert now_said(caller) == {BERLIN}


class TestConsent:
    """A person agrees now, whatever time the words name; but what is to come takes nothing from today."""

    @pytest.fixture
    def caller(self, tenant: Tenant) -> Caller:
        return tenant.caller("supervisor", scopes=REVIEW)

    def test_what_is_agreed_to_holds_from_now(self, caller: Caller) -> None:
        decide(caller, queue(caller, CITY[0], valid_from=LATE), "approve")
        decide(caller, queue(caller, CITY[1], valid_from=EARLY), "approve")
        assert context(caller) == {"city": "Porto"}
        assert texts(caller, categories=["profile"]) == {CITY[1]}
        assert texts(caller, categories=["profile"], as_of=IN_2024) == {CITY[0]}

    def test_what_is_to_come_leaves_the_field(self, caller: Caller) -> None:
        decide(caller, queue(caller, CITY[0]), "approve")
        decide(caller, queue(caller, CITY[1], valid_from=AHEAD), "approve")
        assert context(caller) == {"city": "Oslo"}
        here, ahead = CITY[0], f"(from 2099-01-01) {CITY[1]}"
        assert texts(caller, categories=["profile"]) == {here, ahead}
        decide(caller, queue(caller, CITY[2]), "approve")  # the control: what holds now takes its place
        assert context(caller) == {"city": "Berlin"}
        assert here not in texts(caller, categories=["profile"])


def test_a_merge_at_night_keeps_both_times(tenant: Tenant, caller: Caller, night: Night) -> None:
    """Two that say the same become one, as old as the older and said last when the newer was."""
    store(caller, PIANO[0], valid_from=EARLY)["id"]
    late = write(caller, PIANO[1], "goals", valid_from=LATE)["id"]
    tenant.rows("UPDATE memories SET category = 'relationships' WHERE id = %(id)s", id=UUID(late))
    assert night.counts("consolidation")["merged"] == 1
    rows = tenant.rows("SELECT valid_from, asserted_at FROM memories WHERE tenant_id = %(tenant)s AND state = 'active'")
    assert [(row["valid_from"].year, row["asserted_at"].year) for row in rows] == [(2019, 2023)]

"""The time of the fact decides what holds, not the order in which facts arrive."""

from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import Any

import pytest

from support.callers import USER, Caller, Json, Tenant
from support.telling import say, texts, write

YEARS = {2019: "Porto", 2021: "Berlin", 2023: "Oslo"}
"""Where the user's mother lives, since when."""


@pytest.fixture
def caller(tenant: Tenant) -> Caller:
    """A supervisor, who reads and writes events."""
    return tenant.caller("supervisor")


def lives(caller: Caller, year: int, city: str = "", **fields: Any) -> Json:  # noqa: ANN401 - of the memory
    said = {"valid_from": f"{year}-01-01T00:00:00Z"} | fields
    return write(caller, f"The user's mother lives in {city or YEARS[year]}.", "relationships", **said)


def intervals(tenant: Tenant) -> list[tuple[datetime, datetime]]:
    rows = tenant.rows("SELECT valid_from, valid_until FROM memories WHERE tenant_id = %(tenant)s")
    return [(row["valid_from"], row["valid_until"]) for row in rows if row["valid_from"] and row["valid_until"]]


def test_what_is_older_arrives_outdated(caller: Caller) -> None:
    new = lives(caller, 2023)
    old = lives(caller, 2019)
    assert (old["outcome"], old["overruled"]) == ("outdated", [new["id"]])
    assert texts(caller) == {"The user's mother lives in Oslo."}
    assert texts(caller, as_of={"true_at": "2020-06-01T00:00:00Z"}) == {"The user's mother lives in Porto."}
    # the control: what is newer takes effect
    newer = lives(caller, 2025, "Graz")
    assert (newer["outcome"], newer["overruled"]) == ("superseded", [new["id"]])


@pytest.mark.parametrize("years", list(permutations(YEARS)))
def test_any_order_of_arrival_ends_alike(tenant: Tenant, caller: Caller, years: tuple[int, ...]) -> None:
    for year in years:
        lives(caller, year)
    assert texts(caller) == {"The user's mother lives in Oslo."}
    assert all(start < end for start, end in intervals(tenant))


@pytest.mark.parametrize("order", list(permutations(((2019, "Porto"), (2021, "Berlin"), (2023, "Porto")))))
def test_a_value_that_comes_back_holds_in_any_order(
    tenant: Tenant, caller: Caller, order: tuple[tuple[int, str], ...]
) -> None:
    for year, city in order:
        lives(caller, year, city)
    assert texts(caller) == {"The user's mother lives in Porto."}
    assert all(start < end for start, end in intervals(tenant))


@pytest.mark.parametrize("years", list(permutations(YEARS)))
def test_turns_count_by_their_own_time(caller: Caller, years: tuple[int, ...]) -> None:
    for year in years:
        said = caller.say(f"My mother lives in {YEARS[year]}.", event_time=f"{year}-01-01T00:00:00Z")
        assert len(said["extracted"]) == 1
    assert caller.found() != []
    facts = {item["text"] for item in caller.ask(top_k=50, categories=["relationships"])["items"]}
    assert len(facts) == 1
    assert "Oslo" in facts.pop()


def test_an_ending_that_arrives_first_ends_what_is_older(caller: Caller) -> None:
    over = write(caller, "The user no longer plays tennis.", valid_from="2023-01-01T00:00:00Z")
    late = write(caller, "The user plays tennis.", valid_from="2019-01-01T00:00:00Z")
    assert (late["outcome"], late["overruled"]) == ("outdated", [over["id"]])
    assert texts(caller) == {"The user no longer plays tennis."}
    # the control: who takes it up again later plays
    again = write(caller, "The user plays tennis.", valid_from="2025-01-01T00:00:00Z")
    assert again["outcome"] == "superseded"


def test_no_interval_is_empty(tenant: Tenant, caller: Caller) -> None:
    """Corrected, restored, of the same day: what was true at no time has no end, and no past moment brings it."""
    first = lives(caller, 2019)
    right = say(caller, first["id"], "correct", content="The user's mother lives in Lisbon.")
    assert texts(caller, as_of={"true_at": "2020-06-01T00:00:00Z"}) == {"The user's mother lives in Lisbon."}
    say(caller, first["id"], "restore")
    assert texts(caller, as_of={"true_at": "2020-06-01T00:00:00Z"}) == {"The user's mother lives in Porto."}
    lives(caller, 2019, "Bergen")
    assert texts(caller) == {"The user's mother lives in Bergen."}
    assert texts(caller, as_of={"true_at": "2020-06-01T00:00:00Z"}) == {"The user's mother lives in Bergen."}
    assert all(start < end for start, end in intervals(tenant))
    then = datetime.now(UTC) - timedelta(days=1)
    assert right["outcome"] == "superseded"
    assert texts(caller, as_of={"believed_at": then.isoformat()}) == set()


def test_a_clock_that_steps_back_makes_nothing_outdated(tenant: Tenant, caller: Caller) -> None:
    ahead = datetime.now(UTC) + timedelta(hours=1)
    old = write(caller, "The user's mother lives in Porto.", "relationships")
    # what a server stored before its clock was put back by an hour
    tenant.rows("UPDATE memories SET recorded_at = %(ahead)s WHERE id = %(id)s", ahead=ahead, id=old["id"])
    new = write(caller, "The user's mother lives in Oslo.", "relationships")
    assert (new["outcome"], new["overruled"]) == ("superseded", [old["id"]])
    said = caller.say("My mother lives in Graz.")
    assert [each["action"] for each in said["extracted"]] == ["superseded"]
    rows = tenant.rows("SELECT recorded_at FROM memories WHERE tenant_id = %(tenant)s ORDER BY id")
    moments = [row["recorded_at"] for row in rows]
    assert moments == sorted(moments)
    assert all(start < end for start, end in intervals(tenant))


def test_the_latest_record_counts_whatever_its_id(tenant: Tenant, caller: Caller) -> None:
    """An import chooses ids: those of other systems say nothing of time, and may lie above all that is written here."""
    ahead = datetime.now(UTC) + timedelta(hours=1)
    old = write(caller, "The user's mother lives in Porto.", "relationships")
    tenant.rows("UPDATE memories SET recorded_at = %(ahead)s WHERE id = %(id)s", ahead=ahead, id=old["id"])
    for number in range(9):
        brought = write(caller, f"The user has been to town number {number}.")["id"]
        tenant.rows(
            "UPDATE memories SET recorded_at = %(then)s WHERE id = %(id)s", then=ahead - timedelta(days=2), id=brought
        )
    new = write(caller, "The user's mother lives in Oslo.", "relationships")
    assert (new["outcome"], new["overruled"]) == ("superseded", [old["id"]])
    recorded = datetime.fromisoformat(caller.get(f"/v1/memories/{new['id']}").json()["recorded_at"])
    assert recorded > ahead


@pytest.mark.parametrize("said", ["My birthday is on May 3rd.", "My wedding anniversary is on 12 June."])
def test_what_recurs_gets_no_year(caller: Caller, said: str) -> None:
    (drawn,) = caller.say(said, event_time="2026-03-01T10:00:00Z")["extracted"]
    memory = caller.get(f"/v1/memories/{drawn['id']}").json()
    assert "2026" not in memory["content"]
    assert memory["event_time"] is None
    # the control: an appointment is of one year
    (drawn,) = caller.say("I have an appointment on May 3rd.", event_time="2026-03-01T10:00:00Z")["extracted"]
    memory = caller.get(f"/v1/memories/{drawn['id']}").json()
    assert "2026" in memory["content"]


def test_who_is_trusted_less_outdates_nothing(tenant: Tenant, caller: Caller) -> None:
    inner = tenant.caller("supervisor", trust="inner")
    less = write(inner, "The user's mother lives in Oslo.", "relationships", visibility="shared")
    dated = {"visibility": "shared", "valid_from": "2020-01-01T00:00:00Z"}
    full = write(caller, "The user's mother lives in Berlin.", "relationships", **dated)
    assert (full["outcome"], full["overruled"], full["possible_conflicts"]) == ("created", [], [less["id"]])
    assert "The user's mother lives in Berlin." in texts(caller)
    # the control: of equal trust the older one is outdated
    oslo = {"user_id": "ben", "visibility": "shared"}
    write(caller, "The user's mother lives in Oslo.", "relationships", **oslo)
    same = write(caller, "The user's mother lives in Berlin.", "relationships", **oslo | dated)
    assert same["outcome"] == "outdated"


def test_users_have_clocks_of_their_own(tenant: Tenant, caller: Caller) -> None:
    """The control of the clock: another user's records are no reason to shift."""
    ahead = datetime.now(UTC) + timedelta(hours=1)
    old = write(caller, "The user owns a boat.")
    tenant.rows("UPDATE memories SET recorded_at = %(ahead)s WHERE id = %(id)s", ahead=ahead, id=old["id"])
    other = write(caller, "The user owns a boat.", user_id="ben")["id"]
    recorded = datetime.fromisoformat(caller.get(f"/v1/memories/{other}").json()["recorded_at"])
    assert recorded < ahead
    assert USER != "ben"

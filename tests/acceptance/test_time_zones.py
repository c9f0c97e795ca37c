"""A user's time zone: what "tomorrow", "next Friday" and "tonight" mean in what the user says."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from memplane.domain.identity.principal import KeyScope
from support.callers import SUPERVISING, THREAD, USER, Caller, Json, Tenant, refused
from support.snapshots import snapshot

AUCKLAND, LOS_ANGELES, BERLIN = "Pacific/Auckland", "America/Los_Angeles", "Europe/Berlin"
PATH = f"/v1/users/{USER}/context"


@pytest.fixture
def caller(tenant: Tenant) -> Caller:
    """A supervisor who may do everything."""
    return tenant.caller("supervisor", scopes=(*SUPERVISING, KeyScope.ADMIN))


def zone(caller: Caller, name: str | None, user: str = USER) -> Json:
    answer = caller.patch(f"/v1/users/{user}/context", {"time_zone": name})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def drawn(caller: Caller, text: str, at: str, **fields: str) -> str:
    """What is drawn from a turn that was said at a time."""
    (fact,) = caller.say(text, event_time=at, **fields)["extracted"]
    return str(fact["content"])


def moment(caller: Caller, text: str, at: str) -> datetime:
    """When what a turn tells of happens."""
    (fact,) = caller.say(text, event_time=at)["extracted"]
    return datetime.fromisoformat(caller.get(f"/v1/memories/{fact['id']}").json()["event_time"]).astimezone(UTC)


FLIGHT = "I have a meeting with Bo tomorrow."


class TestMidnight:
    """Around midnight the day is another one elsewhere."""

    @pytest.mark.parametrize(
        ("name", "at", "day"),
        [
            (AUCKLAND, "2026-06-10T11:59:00Z", "11 June 2026"),  # 23:59 on the 10th
            (AUCKLAND, "2026-06-10T12:01:00Z", "12 June 2026"),  # 00:01 on the 11th
            (LOS_ANGELES, "2026-06-10T06:59:00Z", "10 June 2026"),  # 23:59 on the 9th
            (LOS_ANGELES, "2026-06-10T07:01:00Z", "11 June 2026"),  # 00:01 on the 10th
            (None, "2026-06-10T11:59:00Z", "11 June 2026"),
            (None, "2026-06-10T23:59:00Z", "11 June 2026"),
        ],
    )
    def test_tomorrow_is_the_day_after_the_users_own(self, caller: Caller, name: str | None, at: str, day: str) -> None:
        zone(caller, name)
        assert day in drawn(caller, FLIGHT, at)

    @pytest.mark.parametrize(
        ("words", "name", "day"),
        [
            ("tonight", AUCKLAND, "12 June 2026"),  # a Friday there, and Thursday in UTC
            ("tonight", LOS_ANGELES, "11 June 2026"),
            ("next Friday", AUCKLAND, "19 June 2026"),
            ("next Friday", LOS_ANGELES, "12 June 2026"),
        ],
    )
    def test_other_words_too(self, caller: Caller, words: str, name: str, day: str) -> None:
        zone(caller, name)
        assert day in drawn(caller, f"I have a meeting with Bo {words}.", "2026-06-11T18:00:00Z")

    def test_the_day_begins_at_the_users_midnight(self, caller: Caller) -> None:
        zone(caller, AUCKLAND)
        assert moment(caller, FLIGHT, "2026-06-10T11:59:00Z") == datetime(2026, 6, 10, 12, tzinfo=UTC)


class TestClockChanges:
    """A day of 23 or of 25 hours is a day."""

    @pytest.mark.parametrize(
        ("name", "at", "day", "begins"),
        [
            # New Zealand goes from +12 to +13 on 27 September 2026, and back on 5 April 2026
            (AUCKLAND, "2026-09-26T10:00:00Z", "27 September 2026", datetime(2026, 9, 26, 12, tzinfo=UTC)),
            (AUCKLAND, "2026-09-27T10:30:00Z", "28 September 2026", datetime(2026, 9, 27, 11, tzinfo=UTC)),
            (AUCKLAND, "2026-04-04T10:30:00Z", "5 April 2026", datetime(2026, 4, 4, 11, tzinfo=UTC)),
            (AUCKLAND, "2026-04-05T11:30:00Z", "6 April 2026", datetime(2026, 4, 5, 12, tzinfo=UTC)),
            # California goes from -8 to -7 on 8 March 2026, and back on 1 November 2026
            (LOS_ANGELES, "2026-03-08T07:30:00Z", "8 March 2026", datetime(2026, 3, 8, 8, tzinfo=UTC)),
            (LOS_ANGELES, "2026-03-09T06:30:00Z", "9 March 2026", datetime(2026, 3, 9, 7, tzinfo=UTC)),
            (LOS_ANGELES, "2026-11-02T07:30:00Z", "2 November 2026", datetime(2026, 11, 2, 8, tzinfo=UTC)),
        ],
    )
    def test_days_are_counted_on_the_users_clock(
        self, caller: Caller, name: str, at: str, day: str, begins: datetime
    ) -> None:
        zone(caller, name)
        (fact,) = caller.say(FLIGHT, event_time=at)["extracted"]
        assert day in fact["content"]
        told = caller.get(f"/v1/memories/{fact['id']}").json()["event_time"]
        assert datetime.fromisoformat(told) == begins


class TestFallback:
    """Without a time zone the offset of the message counts, then UTC."""

    def test_the_offset_of_the_message_counts_when_no_zone_is_set(self, caller: Caller) -> None:
        assert "12 June 2026" in drawn(caller, FLIGHT, "2026-06-11T00:01:00+12:00")
        assert "11 June 2026" in drawn(caller, FLIGHT, "2026-06-10T12:01:00Z", user_id="bo")  # the same moment
        zone(caller, LOS_ANGELES, "cy")
        assert "11 June 2026" in drawn(caller, FLIGHT, "2026-06-11T00:01:00+12:00", user_id="cy")  # 05:01 on the 10th

    def test_a_removed_zone_counts_no_more(self, caller: Caller) -> None:
        zone(caller, AUCKLAND)
        assert zone(caller, None)["outcome"] == "updated"
        assert "11 June 2026" in drawn(caller, FLIGHT, "2026-06-10T12:01:00Z")

    def test_a_change_counts_from_the_next_message(self, caller: Caller) -> None:
        assert "11 June 2026" in drawn(caller, FLIGHT, "2026-06-10T12:01:00Z")
        zone(caller, AUCKLAND)
        assert "12 June 2026" in drawn(caller, FLIGHT.replace("Bo", "Cy"), "2026-06-10T12:01:00Z")

    @pytest.mark.parametrize("name", [None, AUCKLAND, LOS_ANGELES])
    def test_a_message_without_a_time_is_said_when_it_is_stored(self, caller: Caller, name: str | None) -> None:
        zone(caller, name)
        clock = ZoneInfo(name or "UTC")
        before = datetime.now(clock)
        (fact,) = caller.say(FLIGHT)["extracted"]
        days = {moment.date() + timedelta(days=1) for moment in (before, datetime.now(clock))}
        assert any(f"{day.day} {day:%B %Y}" in fact["content"] for day in days), fact["content"]
        told = caller.get(f"/v1/memories/{fact['id']}").json()["event_time"]
        assert datetime.fromisoformat(told).astimezone(clock).date() in days

    def test_a_turn_keeps_its_zone(self, tenant: Tenant, caller: Caller) -> None:
        zone(caller, AUCKLAND)
        caller.say(FLIGHT, event_time="2026-06-10T12:01:00Z")
        caller.say("I like tea.", event_time="2026-06-10T12:01:00+02:00")
        rows = tenant.rows("SELECT time_zone FROM turns WHERE tenant_id = %(tenant)s ORDER BY seq")
        assert [row["time_zone"] for row in rows] == [AUCKLAND, "+02:00"]


class TestQuestions:
    """A question about a user names times on the user's clock."""

    def test_yesterday_is_the_users(self, caller: Caller) -> None:
        for user in (USER, "bo"):
            caller.remember("The hall was painted.", "event", user_id=user, event_time="2026-06-10T13:00:00Z")
            caller.remember("The hall was cleaned.", "event", user_id=user, event_time="2026-06-10T11:00:00Z")
        zone(caller, AUCKLAND)
        asked = {"query": "What happened to the hall on 11 June 2026?", "explain": True}
        scores = {}
        for user in (USER, "bo"):
            items = caller.ask(asked["query"], explain=True, filters={"user_id": user})["items"]
            scores[user] = {item["text"].split("] ")[1]: item["explain"]["signals"].get("when", 0.0) for item in items}
        assert scores[USER]["The hall was painted."] > scores[USER].get("The hall was cleaned.", 0.0)
        assert scores["bo"].get("The hall was painted.", 0.0) == scores["bo"].get("The hall was cleaned.", 0.0)


class TestSetting:
    """Who sets it, and what is one."""

    def test_it_is_shown_with_the_context(self, caller: Caller) -> None:
        assert caller.get(PATH).json()["time_zone"] is None
        assert zone(caller, BERLIN) == {
            "outcome": "updated", "user_id": USER, "time_zone": BERLIN, "dry_run": None,
        }  # fmt: skip
        assert zone(caller, BERLIN)["outcome"] == "unchanged"
        assert caller.get(PATH).json()["time_zone"] == BERLIN
        assert caller.get("/v1/users/bo/context").json()["time_zone"] is None

    @pytest.mark.parametrize("name", ["Berlin", "+02:00", "../../etc/passwd", "Europe/Nowhere", "localtime", "a" * 63])
    def test_what_is_none_is_refused(self, caller: Caller, name: str) -> None:
        problem = refused(caller.patch(PATH, {"time_zone": name}), 422, "invalid_request")
        assert problem["field"] == "time_zone"

    def test_it_takes_a_fully_trusted_key_of_the_user(self, tenant: Tenant, caller: Caller) -> None:
        inner = tenant.caller("supervisor", trust="inner")
        refused(inner.patch(PATH, {"time_zone": BERLIN}), 403, "trust_too_low")
        other = tenant.caller("supervisor", users=["bo"])
        refused(other.patch(PATH, {"time_zone": BERLIN}), 403, "user_forbidden")
        refused(other.get(PATH), 403, "user_forbidden")
        reader = tenant.caller("supervisor", scopes=[KeyScope.READ])
        refused(reader.patch(PATH, {"time_zone": BERLIN}), 403, "scope_forbidden")
        assert zone(caller, BERLIN)["outcome"] == "updated"  # the control

    def test_it_is_the_tenants_own(self, tenant: Tenant, caller: Caller) -> None:
        zone(caller, BERLIN)
        other = Tenant(tenant.server)
        if other.name != tenant.name:  # SQLite has one
            assert other.caller("supervisor").get(PATH).json()["time_zone"] is None

    def test_a_dry_run_sets_nothing(self, tenant: Tenant, caller: Caller) -> None:
        zone(caller, BERLIN)
        before = snapshot(tenant)
        answer = caller.patch(PATH, {"time_zone": AUCKLAND, "dry_run": True}).json()
        assert (answer["outcome"], answer["dry_run"]["changes"]) == ("updated", [])
        assert snapshot(tenant) == before

    def test_an_erasure_takes_it_along(self, tenant: Tenant, caller: Caller) -> None:
        zone(caller, BERLIN)
        zone(caller, BERLIN, "bo")
        admin = tenant.caller(None, act_for=["*"], scopes=tuple(KeyScope))
        assert admin.post(f"/v1/users/{USER}/erase", {"confirm": USER}).status_code == 200
        assert caller.get(PATH).json()["time_zone"] is None
        assert caller.get("/v1/users/bo/context").json()["time_zone"] == BERLIN  # the control

    def test_an_export_says_the_zone_of_a_turn(self, caller: Caller, admin: Caller) -> None:
        zone(caller, AUCKLAND)
        caller.say(FLIGHT, event_time="2026-06-10T12:01:00Z", thread_id=THREAD)
        lines = admin.get(f"/v1/users/{USER}/export").text
        assert f'"time_zone":"{AUCKLAND}"' in lines.replace(" ", "")

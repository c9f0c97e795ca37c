"""What time makes the system forget: nothing that is protected, and nothing while its user is away."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from math import exp

import pytest

from memplane import bootstrap
from memplane.domain.identity.principal import KeyScope, Reach
from support.ages import Ages, Clock
from support.callers import USER, Caller, Tenant
from support.consenting import queue
from support.serving import RunningServer
from support.telling import say
from support.transfer import exported, restored

YEARS = 2 * 365
WORDS = ("piano", "boat", "horse", "garden", "canoe", "kite", "drum", "lamp", "clock")


@pytest.fixture
def ages(start_server: Callable[..., RunningServer], monkeypatch: pytest.MonkeyPatch) -> Ages:
    """A tenant on a server of its own, whose clock the test sets."""
    clock = Clock()
    monkeypatch.setattr(bootstrap, "now", clock)
    return Ages(Tenant(start_server()), clock)


class TestProtected:
    """Pinned, confirmed and important memories are never forgotten by time, while a plain one is."""

    @pytest.fixture
    def memories(self, ages: Ages) -> dict[str, str]:
        found = {
            "pinned": ages.own("garden", importance=1, pinned=True),
            "important": ages.own("horse", importance=4),
            "confirmed": ages.own("clock", importance=1),
            "plain": ages.own("piano", importance=3),
        }
        say(ages.caller, found["confirmed"], "confirm")
        return found

    def gone(self, ages: Ages, memories: dict[str, str]) -> dict[str, str]:
        return {name: each for name, each in ages.states(memories).items() if each != "active"}

    def test_by_no_decay(self, ages: Ages, memories: dict[str, str]) -> None:
        for each in memories.values():  # whatever gave it a rate
            ages.put(each, decay_rate=0.01)
        ages.busy(10, ["decay"])
        assert ages.states(memories, "confidence") == pytest.approx(
            {"pinned": 1.0, "important": 1.0, "confirmed": 1.0, "plain": exp(-0.01 * 55)}, rel=1e-4
        )
        ages.busy(20, ["decay"])
        assert self.gone(ages, memories) == {"plain": "soft_deleted"}

    def test_by_no_ttl(self, ages: Ages, memories: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
        ages.rule(monkeypatch, importance_below_in={"event": 6})
        ages.busy(70, ["ttl"], every=10)
        assert self.gone(ages, memories) == {"plain": "soft_deleted"}

    def test_by_no_layer(self, ages: Ages, memories: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
        ages.rule(monkeypatch, capacity=1)
        ages.busy(40, ["layers"], every=10)
        assert self.gone(ages, memories) == {"plain": "archived"}

    def test_by_no_size(self, ages: Ages, memories: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
        ages.rule(monkeypatch, max_size=1, prune_percent=50)
        ages.busy(10, ["size"], every=10)
        assert self.gone(ages, memories) == {"plain": "archived"}


def test_the_importance_below_which_what_is_idle_goes_follows_the_category(ages: Ages) -> None:
    executor = ages.tenant.caller("executor")
    going = {
        f"{category} {importance}": (caller, category, importance)
        for caller, category, importance in (
            (ages.caller, "event", 3), (ages.caller, "activity", 3), (executor, "recent_activity", 3),
            (ages.caller, "tasks", 1), (executor, "constraints", 1),
        )
    }  # fmt: skip
    staying = {
        f"{category} {importance}": (caller, category, importance)
        for caller, category, importance in (
            (ages.caller, "event", 4), (ages.caller, "tasks", 2), (ages.caller, "preferences", 3),
            (executor, "constraints", 2),
        )
    }  # fmt: skip
    memories = {
        name: caller.remember(f"The user owns a {word}.", category, importance=importance)
        for word, (name, (caller, category, importance)) in zip(WORDS, (going | staying).items(), strict=False)
    }
    ages.busy(70, ["ttl"], every=10)
    left = {name for name, each in ages.states(memories).items() if each == "active"}
    assert left == staying.keys()


class TestAway:
    """Of the days of an absence fourteen count."""

    def test_confidence_rests(self, ages: Ages) -> None:
        memory = ages.own("piano")
        ages.put(memory, decay_rate=0.01)
        ages.away(14, ["decay"])
        fourteen = exp(-0.01 * sum(range(1, 15)))
        assert ages.states({"": memory}, "confidence")[""] == pytest.approx(fourteen, rel=1e-4)
        ages.away(30, ["decay"])
        assert ages.states({"": memory}, "confidence")[""] == pytest.approx(fourteen, rel=1e-4)
        ages.act()
        ages.off(1)
        ages.dark(["decay"])  # the night after the return: of 45 days 29 are subtracted
        after = ages.states({"": memory}, "confidence")[""]
        assert after == pytest.approx(fourteen * exp(-0.01 * 15.5), rel=1e-2)
        ages.busy(15, ["decay"])
        assert ages.states({"": memory}) == {"": "soft_deleted"}, "the control: a user who is there"

    @pytest.mark.parametrize("days", [173, YEARS])
    @pytest.mark.parametrize("nights", [True, False])
    def test_nothing_goes_meanwhile_nor_on_the_first_night(self, ages: Ages, days: int, *, nights: bool) -> None:
        memories = {"event": ages.own("piano", importance=3), "task": ages.own("drum", category="tasks", importance=1)}
        if nights:
            ages.away(days, every=29)
        else:
            ages.off(days)
        ages.act()
        ages.dark()
        ages.off(1)
        ages.dark()
        assert ages.states(memories) == {"event": "active", "task": "active"}
        ages.busy(50, every=10)
        assert ages.states(memories) == {"event": "soft_deleted", "task": "soft_deleted"}, "the control"

    @pytest.mark.parametrize("path", ["query", "context", "list", "get", "delta", "checkpoint"])
    def test_a_read_ends_it(self, ages: Ages, path: str) -> None:
        memory, kept = ages.own("piano", importance=1), ages.own("drum", category="goals", importance=5)
        reading: dict[str, Callable[[Caller], object]] = {
            "query": lambda caller: caller.ask("drum", categories=["goals"], filters={"user_id": USER}),
            "context": lambda caller: caller.post(
                "/v1/context", {"user_id": USER, "thread_id": "t", "message": "drum"}
            ).raise_for_status(),
            "list": lambda caller: caller.get("/v1/memories", category="goals", user_id=USER).raise_for_status(),
            "get": lambda caller: caller.get(f"/v1/memories/{kept}").raise_for_status(),
            "delta": lambda caller: caller.get("/v1/threads/t/delta", user_id=USER).raise_for_status(),
            "checkpoint": lambda caller: caller.send(
                "PUT", "/v1/checkpoints/t", json={"user_id": USER, "agents": {}}
            ).raise_for_status(),
        }
        for _ in range(8):
            ages.off(10)
            reading[path](ages.caller)
            ages.written()
            ages.put(memory, last_accessed=None)  # also where the context brings it
        ages.dark(["ttl"])
        assert ages.states({"": memory}) == {"": "soft_deleted"}

    def test_administrators_and_jobs_do_not(self, ages: Ages) -> None:
        memory = ages.own("piano", importance=1)
        admin = ages.tenant.caller(None, act_for=["*"], scopes=tuple(KeyScope))
        operator = ages.tenant.caller("supervisor", scopes=tuple(KeyScope))
        for _ in range(8):
            ages.off(10)
            admin.ask("piano", agent="supervisor", filters={"user_id": USER})
            operator.get("/v1/memories", user_id=USER).raise_for_status()
            since = ages.clock.now.isoformat()  # nothing was lost since
            admin.post("/v1/admin/restore", {"user_id": USER, "since": since}).raise_for_status()
            admin.post("/v1/admin/purge", {"user_id": USER}).raise_for_status()
            admin.get(f"/v1/users/{USER}/export").raise_for_status()
            ages.written()
            ages.put(memory, last_accessed=None)
            ages.dark(["expiry", "consolidation", "reconcile", "enrichment", "insights", "ttl"])
        assert ages.states({"": memory}) == {"": "active"}
        for _ in range(6):
            ages.off(10)
            operator.remember(f"Call {ages.clock.now.date()}.", "tasks")  # the control: it writes for the agent
        ages.dark(["ttl"])
        assert ages.states({"": memory}) == {"": "soft_deleted"}

    def test_each_user_has_their_own(self, ages: Ages) -> None:
        memories = {user: ages.own("piano", importance=1, user_id=user) for user in (USER, "ben")}
        for _ in range(8):
            ages.off(10)
            ages.act("ben")
        ages.dark(["ttl"])
        assert ages.states(memories) == {USER: "active", "ben": "soft_deleted"}

    def test_layers_do_not_count_it(self, ages: Ages, monkeypatch: pytest.MonkeyPatch) -> None:
        ages.rule(monkeypatch, capacity=1, archive_score=0.1)
        memories = {user: ages.own("piano", user_id=user) for user in (USER, "ben")}
        for user in memories:
            ages.own("drum", user_id=user)
        for _ in range(8):
            ages.off(10)
            ages.act("ben")
            ages.dark(["layers"])
        assert ages.states(memories) == {USER: "active", "ben": "archived"}

    def test_what_has_an_end_ends(self, ages: Ages) -> None:
        ends = (ages.clock.now + timedelta(days=20)).isoformat()
        memories = {"expires": ages.own("piano", expires_at=ends), "deleted": ages.own("drum"), "": ages.own("lamp")}
        assert ages.caller.delete(f"/v1/memories/{memories['deleted']}").status_code == 200
        queue(ages.caller)
        ages.off(45)
        ages.dark(["expiry", "purge", "proposals"])
        assert ages.states(memories) == {"expires": "soft_deleted", "deleted": None, "": "active"}
        assert ages.tenant.count("consent_proposals") == 0

    def test_a_clock_that_is_put_back_does_no_harm(self, ages: Ages) -> None:
        memory = ages.own("piano", importance=1)
        ages.off(5 * 365)
        ages.act()
        ages.off(-5 * 365)
        ages.act()
        ages.dark()
        ages.away(90, every=10)
        assert ages.states({"": memory}) == {"": "active"}
        ages.act()
        ages.busy(60, every=10)
        assert ages.states({"": memory}) == {"": "soft_deleted"}, "the control: it goes on from there"


class TestNoting:
    """A row for each stretch without a long absence, whoever notes it and how often."""

    def rows(self, ages: Ages) -> list[tuple[str, bool]]:
        found = ages.tenant.rows("SELECT user_id, resumed_at FROM user_activity WHERE tenant_id = %(tenant)s")
        return sorted((row["user_id"], row["resumed_at"] is None) for row in found)

    def test_a_write_is_noted_with_it_and_a_read_soon(self, ages: Ages) -> None:
        memory = ages.own("piano")
        assert self.rows(ages) == [(USER, True)]
        for days in (14, 16, 17):  # the first of them is no absence
            ages.off(days)
            ages.caller.get(f"/v1/memories/{memory}").raise_for_status()
            ages.written()
        assert self.rows(ages) == [(USER, False), (USER, False), (USER, True)]

    def test_a_name_that_was_only_asked_for_leaves_nothing(self, ages: Ages) -> None:
        ages.own("piano")
        ages.caller.ask("piano", filters={"user_id": "nobody"})
        ages.written()
        assert self.rows(ages) == [(USER, True)]
        ages.own("piano", user_id="nobody")  # on the same day
        assert self.rows(ages) == [(USER, True), ("nobody", True)]

    def test_an_erased_user_leaves_nothing(self, ages: Ages) -> None:
        ages.own("piano")
        ages.own("piano", user_id="ben")
        ages.caller.ask("piano", filters={"user_id": USER})
        admin = ages.tenant.caller(None, act_for=["*"], scopes=tuple(KeyScope))
        told = admin.post(f"/v1/users/{USER}/erase", {"confirm": USER}).raise_for_status().json()
        assert told["erased"]["user_activity"] == 1
        ages.written()
        assert self.rows(ages) == [("ben", True)]

    def test_several_servers_note_one_return(self, ages: Ages) -> None:
        ages.own("piano")
        ages.off(100)
        server, now = ages.tenant.server, ages.clock()

        async def returned() -> None:
            reach = Reach(ages.tenant.name)
            since = now - timedelta(days=14)
            await asyncio.gather(
                *(
                    server.wired.storage.write(reach, lambda uow: uow.activity.note([USER], now, since, new=True))
                    for _ in range(6)
                )
            )

        server.run(returned())
        assert self.rows(ages) == [(USER, False), (USER, True)]

    def test_a_user_of_whom_nothing_was_noted_was_away(self, ages: Ages) -> None:
        """Who was made by the version before while both ran."""
        memory = ages.own("piano", importance=1)
        ages.tenant.rows("DELETE FROM user_activity WHERE tenant_id = %(tenant)s")
        ages.off(100)
        ages.dark()
        assert ages.states({"": memory}) == {"": "active"}
        ages.act()
        ages.off(1)
        ages.dark()
        assert ages.states({"": memory}) == {"": "active"}
        ages.busy(60, every=10)
        assert ages.states({"": memory}) == {"": "soft_deleted"}


def test_a_restored_user_loses_nothing_on_the_first_night(ages: Ages) -> None:
    """An export does not hold the days of activity: they are worked out of its records."""
    operator = {"act_for": ["*"], "scopes": tuple(KeyScope)}
    ages.own("piano", importance=1)
    ages.off(120)
    ages.own("boat", importance=1)
    lines = exported(ages.tenant.caller(None, **operator))
    ages.off(120)
    there = Ages(Tenant(ages.tenant.server), ages.clock)
    restored(there.tenant.caller(None, **operator), lines)
    there.dark()
    there.off(1)
    there.act()
    there.dark()
    assert kept(there) == {"The user owns a piano.": "active", "The user owns a boat.": "active"}
    there.busy(60, every=10)
    assert set(kept(there).values()) == {"soft_deleted"}, "the control"


def kept(ages: Ages) -> dict[str, str]:
    """What became of the user's events."""
    statement = "SELECT content, state FROM memories WHERE tenant_id = %(tenant)s AND category = 'event'"
    return {row["content"]: row["state"] for row in ages.tenant.rows(statement)}

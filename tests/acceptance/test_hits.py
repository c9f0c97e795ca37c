"""What hits a memory, and what that does to its layer and its recency, as the sources say.

The sources are koshi-hebbian ("Ranking", "Tool Interface") and symbiosis-layers ("Scoring & Policies", "Optimistic
Extraction"); where the contract decided otherwise, the test says so.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from support.callers import THREAD, Caller, Tenant
from support.nights import NOON, Night, age, ago, state
from support.telling import say, write

PIANO = "The user owns a piano."


def hits(tenant: Tenant, memory: str) -> tuple[int, bool]:
    """How often a memory was hit, and whether it was lately."""
    last = state(tenant, memory, "last_hit_at")
    return state(tenant, memory, "hits"), last is not None and last > datetime.now(UTC) - timedelta(days=1)


def settled(tenant: Tenant, memory: str, day: int = 0) -> bool:
    """Whether a memory is settled after the night of a day."""
    Night(tenant, NOON + timedelta(days=day)).run("layers")
    return bool(state(tenant, memory, "layer") == "long")


class TestRepeats:
    """symbiosis-layers, "Dedup & merge": what is said again is hit, and seen."""

    def test_three_repeats_settle_a_memory_and_two_do_not(self, tenant: Tenant, caller: Caller) -> None:
        memory = write(caller, PIANO)["id"]
        age(tenant, memory, 60)
        for _ in range(2):
            assert write(caller, PIANO)["outcome"] == "duplicate"
        assert hits(tenant, memory) == (2, True)
        assert not settled(tenant, memory)  # the control
        assert write(caller, "The user  owns a PIANO")["outcome"] == "duplicate"
        assert hits(tenant, memory) == (3, True)
        assert settled(tenant, memory, day=1)

    def test_what_users_say_again_is_hit(self, tenant: Tenant, caller: Caller) -> None:
        (first,) = caller.say("I like jazz.")["extracted"]
        (again,) = caller.say("I like jazz.", thread_id="another")["extracted"]
        assert (again["id"], hits(tenant, first["id"])) == (first["id"], (1, True))

    def test_the_same_record_sent_again_is_no_hit(self, tenant: Tenant, caller: Caller) -> None:
        memory = write(caller, PIANO, external_id="p-1")["id"]
        assert write(caller, PIANO, external_id="p-1")["outcome"] == "duplicate"
        assert hits(tenant, memory) == (0, False)
        write(caller, PIANO)  # the control
        assert hits(tenant, memory) == (1, True)

    def test_a_less_trusted_repeat_is_no_hit(self, tenant: Tenant, caller: Caller) -> None:
        memory = write(caller, PIANO, visibility="shared")["id"]
        inner = tenant.caller("supervisor", trust="inner")
        assert write(inner, PIANO)["outcome"] == "duplicate"
        assert hits(tenant, memory) == (0, False)
        assert state(tenant, memory, "mention_count") == 2

    def test_a_revert_takes_the_hit_of_a_repeat_back(self, tenant: Tenant, caller: Caller, admin: Caller) -> None:
        memory = write(caller, PIANO)["id"]
        other = tenant.caller("supervisor")
        write(other, PIANO)
        assert hits(tenant, memory) == (1, True)
        body = {"key_id": other.key_id, "since": "2020-01-01T00:00:00Z"}
        assert admin.post("/v1/admin/revert", body).status_code == 200
        assert hits(tenant, memory) == (0, False)


class TestVerbs:
    """koshi-hebbian: reinforce and update reset the clock of recency, demote and a read do not."""

    def test_reinforce_hits_and_resets_the_clock(self, tenant: Tenant, caller: Caller) -> None:
        memory = old(tenant, caller)
        assert say(caller, memory, "reinforce")["outcome"] == "updated"
        assert hits(tenant, memory) == (2, True)
        assert state(tenant, memory, "reinforcement") == 3

    def test_an_update_keeps_the_score_and_resets_the_clock(self, tenant: Tenant, caller: Caller) -> None:
        memory = old(tenant, caller, reinforcement=6)
        assert caller.patch(f"/v1/memories/{memory}", {"importance": 4}).status_code == 200
        assert hits(tenant, memory) == (1, False)  # the control: its words are the same
        assert caller.patch(f"/v1/memories/{memory}", {"content": "The user owns a grand piano."}).status_code == 200
        assert hits(tenant, memory) == (1, True)
        assert state(tenant, memory, "reinforcement") == 6

    def test_a_read_is_an_access_and_no_hit(self, tenant: Tenant, caller: Caller) -> None:
        """koshi's schema calls `last_hit_at` the last retrieval; SPEC 4: retrieval alone never reinforces."""
        memory = old(tenant, caller)
        assert caller.found("piano") == [memory]
        tenant.server.run(tenant.server.wired._accesses.flush())
        assert hits(tenant, memory) == (1, False)
        assert state(tenant, memory, "access_count") == 1

    def test_a_demotion_lowers_the_score_and_leaves_the_clock(self, tenant: Tenant, caller: Caller) -> None:
        memory = old(tenant, caller)
        say(caller, memory, "demote")
        assert hits(tenant, memory) == (1, False)
        assert state(tenant, memory, "reinforcement") == -1

    def test_a_proven_memory_survives_three_demotions_and_not_four(self, tenant: Tenant, caller: Caller) -> None:
        """koshi, "Why asymmetric weights": reinforced once, three demotions take it to neutral."""
        memory = old(tenant, caller, hits=2)
        say(caller, memory, "reinforce")
        assert settled(tenant, memory)
        for _ in range(3):
            say(caller, memory, "demote")
        assert (state(tenant, memory, "reinforcement"), state(tenant, memory, "layer")) == (0, "long")
        say(caller, memory, "demote")
        assert (state(tenant, memory, "reinforcement"), state(tenant, memory, "layer")) == (-1, "mid")
        assert not settled(tenant, memory, day=1)
        say(caller, memory, "reinforce")
        assert settled(tenant, memory, day=2)  # the control


def old(tenant: Tenant, caller: Caller, **columns: Any) -> str:  # noqa: ANN401 - of the row
    """A memory that was hit once, long ago."""
    memory = str(write(caller, PIANO, thread_id=THREAD)["id"])
    age(tenant, memory, 60, **({"hits": 1, "last_hit_at": ago(50)} | columns))
    return memory

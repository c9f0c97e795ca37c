"""The daily consolidation: what is said twice becomes one memory, what is over is superseded, and all else stays."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from memplane.adapters.sql.stores.jobs.pairs import SqlPairs
from memplane.application.jobs import consolidation, job_runner
from memplane.application.records import TombstoneOrigin
from memplane.domain.errors import StateConflict
from memplane.domain.identity.principal import KeyScope
from memplane.domain.jobs.pair_selection import PAIRS, REMEMBERED
from memplane.domain.memory.tombstones import value_key
from support.callers import THREAD, USER, Caller, Tenant
from support.consenting import decide, queue
from support.consolidating import checks, planted, superseding
from support.nights import NOON, Night, state
from support.telling import events, say, texts, write

PIANO = ("The user owns a piano.", "The user has a piano.")
ROOM = ("The team meets in the blue room.", "The blue room is where the team has its meetings.")
OVER = ("The user owns a piano.", "The user no longer owns a piano.")
NOTHING = dict.fromkeys(
    ("pairs", "merged", "superseded", "kept", "conflicts", "duplicates_before", "duplicates_after"), 0
)
TABLES = ("memories", "history", "events", "change_log", "relations", "pair_checks")


def done(**counts: float) -> dict[str, float]:
    """What the job did for one user."""
    return NOTHING | {"users": 1} | counts


MERGED = done(pairs=1, merged=1, duplicates_before=1)


class TestRules:
    """What the rules can tell is decided without a model."""

    def test_two_that_say_the_same_become_one(self, tenant: Tenant, caller: Caller, night: Night) -> None:
        first, second = planted(tenant, caller, *PIANO, thread_id=THREAD)
        rev = caller.get(f"/v1/threads/{THREAD}/delta").json()["rev"]
        assert night.counts("consolidation") == MERGED
        assert texts(caller) == {PIANO[0]}
        assert (state(tenant, first), state(tenant, second)) == ("active", "superseded")
        assert state(tenant, first, "mention_count") == 2
        assert UUID(str(state(tenant, second, "superseded_by"))) == UUID(first)
        assert superseding(tenant) == [(first, second)]
        assert events(caller, first)[:1] == ["MERGE"]
        assert events(caller, second)[:1] == ["SUPERSEDE"]
        (told, *_) = caller.get(f"/v1/memories/{first}/history").json()["items"]
        assert (told["actor"], told["meta"]["merged"], told["meta"]["said"]) == (
            "job:consolidation", second, PIANO[1],
        )  # fmt: skip
        assert "↔merged" in caller.get(f"/v1/threads/{THREAD}/delta", since=rev).json()["header"]
        assert checks(tenant) == [("same", None)]

    def test_what_is_merged_keeps_the_sources_of_both(self, tenant: Tenant, caller: Caller, night: Night) -> None:
        turns = [caller.say(f"Is hall {n} free?")["turn_id"] for n in range(2)]
        first = str(write(caller, PIANO[0], source_ids=turns[:1])["id"])
        second = str(write(caller, PIANO[1], "goals", source_ids=turns[1:])["id"])
        tenant.rows("UPDATE memories SET category = 'event' WHERE id = %(id)s", id=UUID(second))
        assert night.counts("consolidation") == MERGED
        assert caller.get(f"/v1/memories/{first}").json()["source_ids"] == turns

    def test_what_is_over_is_superseded_and_doubted(self, tenant: Tenant, caller: Caller, night: Night) -> None:
        old, new = planted(tenant, caller, *OVER)
        assert night.counts("consolidation") == done(pairs=1, superseded=1)
        assert texts(caller) == {OVER[1]}
        assert (state(tenant, old), state(tenant, old, "confidence")) == ("superseded", 0.3)
        assert superseding(tenant) == [(new, old)]
        assert checks(tenant) == [("contradiction", None)]

    def test_a_second_run_checks_nothing_again(self, tenant: Tenant, caller: Caller, night: Night) -> None:
        planted(tenant, caller, *PIANO)
        planted(tenant, caller, *ROOM)
        counts = night.counts("consolidation")
        assert counts["pairs"] == 2
        before = tenant.count(*TABLES)
        assert night.counts("consolidation") == counts | {"users": 2}
        night.now += timedelta(days=1)
        assert night.counts("consolidation")["pairs"] == 0
        assert tenant.count(*TABLES) == before

    def test_what_is_brought_back_stays(self, tenant: Tenant, caller: Caller, night: Night) -> None:
        first, second = planted(tenant, caller, *PIANO)
        night.run("consolidation")
        assert say(caller, second, "restore")["outcome"] == "restored"
        assert texts(caller) == {PIANO[1]}
        assert say(caller, first, "retract")["outcome"] == "retracted" if state(tenant, first) == "active" else True
        night.now += REMEMBERED + timedelta(days=2)
        assert night.counts("consolidation")["merged"] == 0
        assert state(tenant, second) == "active"

    @pytest.mark.parametrize(
        "columns",
        [
            {"user_id": "ben"},
            {"category": "tasks"},
            {"visibility": "shared"},
            {"min_trust": "full"},
            {"type": "episodic"},
            {"trust_state": "disputed"},
            {"updated_at": (NOON - timedelta(days=91)).isoformat(timespec="microseconds")},
            {"valid_until": (NOON - timedelta(hours=1)).isoformat(timespec="microseconds")},
            {"valid_from": (NOON + timedelta(days=9)).isoformat(timespec="microseconds")},
        ],
        ids=lambda columns: next(iter(columns)),
    )
    def test_what_does_not_stand_beside_each_other_is_not_compared(
        self, tenant: Tenant, caller: Caller, night: Night, columns: dict[str, str]
    ) -> None:
        _, second = planted(tenant, caller, *PIANO)
        ((name, value),) = columns.items()
        tenant.rows(f"UPDATE memories SET {name} = %(value)s WHERE id = %(id)s", id=UUID(second), value=value)
        assert night.counts("consolidation")["pairs"] == 0
        assert state(tenant, second) == "active"
        planted(tenant, caller, *ROOM)
        night.now += timedelta(minutes=1)
        assert night.counts("consolidation")["merged"] == 1  # the control

    @pytest.mark.needs("several_tenants")
    def test_another_tenant_s_are_left(
        self, tenant: Tenant, other_tenant: Tenant, caller: Caller, night: Night
    ) -> None:
        theirs = planted(other_tenant, other_tenant.caller("supervisor"), *PIANO)
        planted(tenant, caller, *PIANO)
        assert night.counts("consolidation") == MERGED
        assert [state(other_tenant, each) for each in theirs] == ["active", "active"]

    def test_no_more_than_so_many_a_day(self, tenant: Tenant, caller: Caller, night: Night) -> None:
        many = PAIRS + 4
        for number in range(many):
            planted(tenant, caller, f"The user owns boat X{number}q.", f"The user has boat X{number}q.")
        first = night.counts("consolidation")
        assert (first["pairs"], first["merged"]) == (PAIRS, PAIRS)
        assert night.counts("consolidation") == first | {"users": 2}  # the same day's
        night.now += timedelta(days=1)
        assert night.counts("consolidation")["merged"] == many - PAIRS
        assert tenant.count("pair_checks") == many

    def test_notes_of_pairs_are_swept(self, tenant: Tenant, caller: Caller, night: Night) -> None:
        planted(tenant, caller, *PIANO)
        night.run("consolidation")
        night.now += REMEMBERED - timedelta(hours=1)
        night.run("consolidation")
        assert tenant.count("pair_checks") == 1  # the control
        night.now += timedelta(days=1)
        night.run("consolidation")
        assert tenant.count("pair_checks") == 0

    def test_a_dry_run_tells_and_does_nothing(self, tenant: Tenant, caller: Caller, night: Night) -> None:
        planted(tenant, caller, *PIANO)
        before = tenant.count(*TABLES)
        assert night.counts("consolidation", dry_run=True) == MERGED
        assert tenant.count(*TABLES) == before
        assert night.counts("consolidation") == MERGED

    def test_who_is_erased_leaves_no_note(self, tenant: Tenant, caller: Caller, night: Night) -> None:
        planted(tenant, caller, *PIANO)
        night.run("consolidation")
        assert tenant.count("pair_checks") == 1
        admin = tenant.caller("supervisor", act_for=["*"], scopes=tuple(KeyScope))
        assert admin.post(f"/v1/users/{USER}/erase", {"confirm": USER}).status_code == 200
        assert tenant.count("pair_checks") == 0


class TestAuthority:
    """Nothing that a person stands behind gives way, and nothing gives way to what is trusted less."""

    def test_who_is_trusted_less_overrules_nothing(self, tenant: Tenant, caller: Caller, night: Night) -> None:
        old, new = planted(tenant, caller, *OVER, visibility="shared")
        tenant.rows("UPDATE memories SET authority = 1 WHERE id = %(id)s", id=UUID(new))
        assert night.counts("consolidation") == done(pairs=1, kept=1)
        assert (state(tenant, old), state(tenant, old, "confidence")) == ("active", 1.0)

    @pytest.mark.parametrize("less", [0, 1])
    def test_of_two_the_one_of_more_weight_stays(self, tenant: Tenant, caller: Caller, night: Night, less: int) -> None:
        both = planted(tenant, caller, *PIANO)
        tenant.rows("UPDATE memories SET authority = 1, importance = 5 WHERE id = %(id)s", id=UUID(both[less]))
        assert night.counts("consolidation") == MERGED
        assert [state(tenant, each) for each in both] == (
            ["active", "superseded"] if less else ["superseded", "active"]
        )
        kept = both[1 - less]
        assert (state(tenant, kept, "authority"), state(tenant, kept, "importance")) == (3, 3)

    @pytest.mark.parametrize("how", ["pin", "confirm"])
    def test_what_a_person_stands_behind_is_not_overruled(
        self, tenant: Tenant, caller: Caller, night: Night, how: str
    ) -> None:
        old, _ = planted(tenant, caller, *OVER)
        tenant.rows(
            "UPDATE memories SET pinned = %(pinned)s, trust_state = %(trust)s WHERE id = %(id)s",
            id=UUID(old), pinned=how == "pin", trust="confirmed" if how == "confirm" else "candidate",
        )  # fmt: skip
        assert night.counts("consolidation") == done(pairs=1, kept=1)
        assert state(tenant, old) == "active"

    def test_a_decided_field_stays(self, tenant: Tenant, caller: Caller, night: Night) -> None:
        reviewer = tenant.caller("supervisor", scopes=[KeyScope.CONSENT])
        field = str(decide(reviewer, queue(caller))["memory_id"])
        tenant.rows("UPDATE memories SET trust_state = 'candidate' WHERE id = %(id)s", id=UUID(field))
        _, later = planted(tenant, caller, "The user owns a harp.", "The user no longer lives in Berlin.")
        tenant.rows("UPDATE memories SET category = 'profile' WHERE id = %(id)s", id=UUID(later))
        assert night.counts("consolidation") == done(pairs=1, kept=1)
        assert state(tenant, field) == "active"

    def test_what_a_person_rejected_takes_nobody_s_place(self, tenant: Tenant, caller: Caller, night: Night) -> None:
        both = planted(tenant, caller, *PIANO)
        burial = TombstoneOrigin("rejected", "agent:x", night.now)

        async def bury(uow: Any) -> None:  # noqa: ANN401 - a unit of work
            await uow.tombstones.add(USER, "event", [value_key(PIANO[0])], burial)

        wired = tenant.server.wired
        tenant.server.run(wired.storage.write(job_runner.Reach(tenant.name), bury))
        assert night.counts("consolidation") == done(pairs=1, kept=1, duplicates_before=1, duplicates_after=1)
        assert [state(tenant, each) for each in both] == ["active", "active"]

    def test_a_record_keeps_its_name(self, tenant: Tenant, caller: Caller, night: Night) -> None:
        first, second = planted(tenant, caller, *PIANO)
        tenant.rows("UPDATE memories SET external_id = 'mine' WHERE id = %(id)s", id=UUID(second))
        assert night.counts("consolidation") == MERGED
        assert (state(tenant, first), state(tenant, second)) == ("superseded", "active")

    def test_what_says_more_stays(self, tenant: Tenant, caller: Caller, night: Night) -> None:
        first, second = planted(tenant, caller, *PIANO)
        tenant.rows("UPDATE memories SET narrative = 'It is black.' WHERE id = %(id)s", id=UUID(second))
        assert night.counts("consolidation") == MERGED
        assert (state(tenant, first), state(tenant, second)) == ("superseded", "active")


class TestMeanwhile:
    """Workers beside each other, and writers beside a worker: each effect once, and none on what changed."""

    def test_what_changed_since_it_was_read_is_left(
        self, tenant: Tenant, caller: Caller, night: Night, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first, second = planted(tenant, caller, *PIANO)
        read = consolidation._worked_out

        def later(*given: Any) -> Any:  # noqa: ANN401 - of the function
            found = read(*given)
            say(caller, second, "reinforce")
            return found

        with monkeypatch.context() as patched:
            patched.setattr(consolidation, "_worked_out", later)
            assert night.counts("consolidation") == done()
        assert (state(tenant, first), state(tenant, second)) == ("active", "active")
        assert tenant.count("pair_checks") == 0
        assert night.counts("consolidation") == MERGED | {"users": 2}  # the control: later it is looked at again

    def test_two_at_once_have_one_effect(self, tenant: Tenant, caller: Caller, night: Night) -> None:
        for each in range(4):
            planted(tenant, caller, f"The user owns boat X{each}q.", f"The user has boat X{each}q.")

        def tried(worker: Night) -> str:
            try:
                return worker.run("consolidation").outcome
            except StateConflict:
                return "another"

        with ThreadPoolExecutor(4) as pool:
            outcomes = list(pool.map(tried, [night, *(Night(tenant) for _ in range(3))]))
        assert "done" in outcomes, outcomes
        assert tenant.count("pair_checks") == len(superseding(tenant)) == 4
        counted = tenant.rows("SELECT mention_count, version FROM memories WHERE tenant_id = %(tenant)s")
        assert sorted((row["mention_count"], row["version"]) for row in counted) == [(1, 2)] * 4 + [(2, 2)] * 4

    def test_who_comes_back_after_his_lease_commits_nothing(
        self, tenant: Tenant, caller: Caller, night: Night, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        planted(tenant, caller, *PIANO)
        other = Night(tenant, NOON + job_runner.LEASE + timedelta(seconds=1))
        read, told = consolidation._worked_out, []

        def later(*given: Any) -> Any:  # noqa: ANN401 - of the function
            found = read(*given)
            if not told:
                told.append("paused")
                told.append(other.counts("consolidation"))
            return found

        monkeypatch.setattr(consolidation, "_worked_out", later)
        with pytest.raises(StateConflict, match="another worker took"):
            night.run("consolidation")
        assert told == ["paused", MERGED]
        assert len(superseding(tenant)) == tenant.count("pair_checks") == 1
        (run,) = tenant.rows("SELECT state, counts FROM job_runs WHERE tenant_id = %(tenant)s")
        assert run["state"] == "done"

    def test_the_cost_follows_users_and_not_rows(
        self, tenant: Tenant, caller: Caller, night: Night, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def run(day: int) -> list[str]:
            sent: list[str] = []
            with monkeypatch.context() as patched:
                for name in (
                    "next_user",
                    "recent_facts",
                    "candidates",
                    "related_pairs",
                    "field_holders",
                    "past_checks",
                    "note",
                    "sweep",
                ):
                    original = getattr(SqlPairs, name)

                    async def counted(*given: Any, _original: Any = original, _name: str = name) -> Any:  # noqa: ANN401 - of the store
                        sent.append(_name)
                        return await _original(*given)

                    patched.setattr(SqlPairs, name, counted)
                night.now = NOON + timedelta(days=day)
                night.run("consolidation")
            return sent

        planted(tenant, caller, *PIANO)
        few = run(0)
        for number in range(20):
            planted(tenant, caller, f"The user owns boat X{number}q.", f"The user has boat X{number}q.")
        assert run(1) == few

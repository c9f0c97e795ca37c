"""Memories that live under random operations, on a real database, and what must be so of them at every moment."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from memplane.application.memories.browse import Listing
from memplane.application.memories.feedback import Verb
from memplane.application.memories.recovery import RecoverySelection
from memplane.application.memories.service import NewMemory
from memplane.domain.errors import MemplaneError, StateConflict
from memplane.domain.identity.principal import KeyScope, Principal
from memplane.domain.jobs.job_definitions import NIGHTLY
from memplane.domain.memory.active_days import Activity, Stretch, present_since
from memplane.domain.memory.lifecycle import IMPORTANT, STEPS, LifecycleRules, decayed_confidence
from memplane.domain.memory.memory import MemoryText, State, TrustState
from memplane.domain.policy.policy import Trust
from support.looks import Rows
from support.serving import RunningApplication

TENANT, USER = "default", "ana"
CALLER = Principal(TENANT, "supervisor", Trust.FULL, frozenset(KeyScope), "k1")
WORDS = ("piano", "boat", "horse", "garden", "canoe", "kite", "drum", "lamp", "clock", "flute")
RULES = LifecycleRules(capacity=3, max_size=5, prune_percent=20, decay_rate=0.001)
FOUND = frozenset({"conflict", "not_found", "value_rejected"})
"""What may be answered to an operation that does not fit the memory's state."""
_TABLES = (
    "change_log", "thread_revision", "history", "events", "relations", "memory_entities", "entities", "tombstones",
    "job_runs", "memories", "history_seals", "user_activity",
)  # fmt: skip
_COLUMNS = (
    "id, state, trust_state, confidence, decay_rate, pinned, importance, layer, version, purge_at, expires_at,"
    " recorded_at, updated_at, last_accessed, last_hit_at, hits, superseded_by"
)


class Time:
    """A clock that goes where it is told."""

    def __init__(self) -> None:
        self.now = datetime(2026, 6, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        """Now; each look is a little later than the last one."""
        self.now += timedelta(microseconds=1)
        return self.now


Row = dict[str, Any]
DAYS = (-40.0, -1.0, -0.1, 0.0, 0.1, 1.0, 8.0, 35.0, 70.0)
"""By which a clock may go on, or be put back."""


def protected(row: Row) -> bool:
    """Whether time alone never makes the system forget a memory."""
    return bool(row["pinned"]) or row["importance"] >= IMPORTANT or row["trust_state"] == TrustState.CONFIRMED


class Lives(RuleBasedStateMachine):
    """Operations of callers, clocks that go both ways, and the work of the night, in any order."""

    app: RunningApplication
    time: Time
    look: Rows

    def __init__(self) -> None:
        super().__init__()
        for table in _TABLES:  # each sequence begins with nothing
            self.rows(f"DELETE FROM {table} WHERE tenant_id = %(tenant)s")
        self.before: dict[UUID, Row] = {}
        self.ids: list[UUID] = []
        self.latest_decay = ""

    def rows(self, statement: str, **values: object) -> list[Row]:
        """Rows as the administrator sees them."""
        return type(self).look(TENANT, statement, values)

    def memories(self) -> dict[UUID, Row]:
        """Every memory there is."""
        found = self.rows(f"SELECT {_COLUMNS} FROM memories WHERE tenant_id = %(tenant)s")
        return {row["id"]: row for row in found}

    def tried(self, work: Any) -> Any:  # noqa: ANN401 - of the use case
        """Carry an operation out; one that does not fit the state is refused, and changes nothing."""
        before = self.memories()
        try:
            return self.app.run(work)
        except MemplaneError as error:
            if error.code not in FOUND:
                raise
            assert self.memories() == before
            return None

    @initialize(
        first=st.lists(
            st.tuples(st.integers(1, 3), st.booleans(), st.sampled_from([None, None, 1, 40])), min_size=4, max_size=7
        )
    )
    def begin(self, first: list[tuple[int, bool, int | None]]) -> None:
        """What there is to begin with: to come to it by chance would take most of the steps."""
        for word, (importance, pinned, days) in zip(WORDS, first, strict=False):
            self.write(word, importance, days)
            if pinned and self.ids:
                self.tried(self.app.wired.feedback.pin(CALLER, Verb(self.ids[-1]), pinned=True))

    @rule(word=st.sampled_from(WORDS), importance=st.integers(1, 5), days=st.sampled_from([None, 1, 40]))
    def write(self, word: str, importance: int, days: int | None) -> None:
        expires = None if days is None else self.time() + timedelta(days=days)
        new = NewMemory(
            USER, "event", MemoryText(f"The user owns a {word}."), importance=importance, expires_at=expires,
            thread_id="t1",
        )  # fmt: skip
        done = self.tried(self.app.wired.remember.create(CALLER, new, None))
        if done is not None and done.memory.id not in self.ids:
            self.ids.append(done.memory.id)

    @precondition(lambda self: self.ids)
    @rule(data=st.data(), verb=st.sampled_from(["reinforce", "demote", "confirm", "retract", "reject", "restore"]))
    def say(self, data: st.DataObject, verb: str) -> None:
        chosen = data.draw(st.sampled_from(self.ids))
        self.tried(getattr(self.app.wired.feedback, verb)(CALLER, Verb(chosen)))

    @precondition(lambda self: self.ids)
    @rule(data=st.data(), pinned=st.booleans())
    def pin(self, data: st.DataObject, *, pinned: bool) -> None:
        chosen = data.draw(st.sampled_from(self.ids))
        self.tried(self.app.wired.feedback.pin(CALLER, Verb(chosen), pinned=pinned))

    @precondition(lambda self: self.ids)
    @rule(data=st.data(), tombstone=st.booleans())
    def delete(self, data: st.DataObject, *, tombstone: bool) -> None:
        chosen = data.draw(st.sampled_from(self.ids))
        self.tried(self.app.wired.remember.delete(CALLER, chosen, tombstone=tombstone))

    @rule(early=st.booleans())
    def purge(self, *, early: bool) -> None:
        self.tried(self.app.wired.recovery.purge(CALLER, RecoverySelection(user_id=USER), early=early))

    @rule(days=st.integers(0, 60))
    def restore_since(self, days: int) -> None:
        since = self.time() - timedelta(days=days)
        self.tried(self.app.wired.recovery.restore(CALLER, RecoverySelection(user_id=USER, since=since)))

    @rule(days=st.sampled_from(DAYS))
    def tick(self, days: float) -> None:
        self.time.now += timedelta(days=days)

    @rule(days=st.sampled_from(DAYS), name=st.sampled_from([*NIGHTLY]))
    def night(self, days: float, name: str) -> None:
        """A job, some days later or earlier: tried, done, and done again."""
        self.time.now += timedelta(days=days)
        before = self.memories()
        jobs, here = self.app.wired.jobs, self.time().date().isoformat()
        told = self.app.run(jobs.run(name, TENANT, dry_run=True)).counts
        assert self.memories() == before
        try:
            done = self.app.run(jobs.run(name, TENANT))
        except StateConflict:
            assert name == "decay"
            assert here < self.latest_decay
            assert self.memories() == before
            return
        after = self.memories()
        if name == "decay":
            self.check_decay(done.outcome, before, after)
            self.latest_decay = here
        changed = {each for each in before if after.get(each) != before[each]}
        if name not in {"decay", "gc", "proposals"}:
            assert sum(told.get(each, 0) for each in ("deleted", "purged", "promoted", "archived")) == len(changed)
        for each in changed:
            row = before[each]
            lost = name in {"decay", "ttl", "layers", "size"} and after[each]["state"] != row["state"]
            assert not (lost and protected(row)), (name, row)
            assert name not in {"decay", "ttl"} or not lost or self.is_there()
            assert name != "purge" or (row["state"] == State.SOFT_DELETED and row["purge_at"] <= self.time.now)
        self.app.run(jobs.run(name, TENANT))
        assert self.memories() == after

    def check_decay(self, outcome: str, before: dict[UUID, Row], after: dict[UUID, Row]) -> None:
        for each, row in before.items():
            wanes = outcome == "done" and row["state"] == State.ACTIVE
            accessed = max(filter(None, (row["recorded_at"], row["last_accessed"], row["last_hit_at"])))
            rate = row["decay_rate"] if wanes and self.is_there() and not protected(row) else 0.0
            since = self.activity().ages_since(accessed, self.time.now, RULES.away)
            expected = decayed_confidence(row["confidence"], rate, since, self.time.now)
            assert abs(after[each]["confidence"] - expected) < 1e-9 or after[each]["state"] == State.SOFT_DELETED
            gone = after[each]["state"] != row["state"]
            assert gone is (wanes and rate > 0 and expected < RULES.floor)

    def activity(self) -> Activity:
        """When the user was there."""
        found = self.rows("SELECT last_at, resumed_at FROM user_activity WHERE tenant_id = %(tenant)s")
        return Activity(tuple(Stretch(row["last_at"], row["resumed_at"]) for row in found))

    def is_there(self) -> bool:
        """Whether the user was active lately enough to age."""
        since = present_since(self.time.now, RULES.away)
        return any(each.resumed_at is None and each.last_at >= since for each in self.activity().stretches)

    @invariant()
    def steps_are_those_of_the_state_machine(self) -> None:
        """Each memory is where one step led, its version and history say so, and nothing else is gone."""
        now = self.memories()
        known = self.rows(
            "SELECT memory_id, count(*) AS n FROM history WHERE tenant_id = %(tenant)s GROUP BY memory_id"
        )
        told = {row["memory_id"]: row["n"] for row in known}
        for each, row in self.before.items():
            was, then = State(row["state"]), State(now[each]["state"]) if each in now else State.PURGED
            if was is not then:
                assert any(was in sources and then is target for sources, target in STEPS.values()), (was, then)
                assert each not in now or now[each]["version"] > row["version"]
            if each in now:
                assert now[each]["version"] >= row["version"]
        for each, row in now.items():
            assert (row["purge_at"] is not None) is (row["state"] == State.SOFT_DELETED)
            assert row["state"] != State.ACTIVE or row["superseded_by"] is None
            assert told[each] >= 1
            assert 0 <= row["confidence"] <= 1
        self.before = now

    @invariant()
    def reads_bring_what_is_there(self) -> None:
        """A list has the active, believed and unexpired ones, and no other."""
        page = self.app.run(self.app.wired.browse.list(CALLER, Listing(("event",)), limit=200))
        moment = self.time.now
        expected = {
            each
            for each, row in self.memories().items()
            if row["state"] == State.ACTIVE
            and row["trust_state"] in {"candidate", "confirmed"}
            and (row["expires_at"] is None or row["expires_at"] > moment)
        }
        assert {each.id for each in page.items} == expected

    @invariant()
    def revisions_have_no_gap(self) -> None:
        """A thread was told of each of its changes once."""
        revs = [r["rev"] for r in self.rows("SELECT rev FROM change_log WHERE tenant_id = %(tenant)s ORDER BY rev")]
        assert revs == list(range(1, len(revs) + 1))

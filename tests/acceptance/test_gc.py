"""Collecting what a user keeps no longer, at once: what it takes, whose, and a dry run that only tells."""

from datetime import UTC, datetime, timedelta

import pytest

from memplane.domain.identity.principal import KeyScope
from support.callers import USER, Caller, Tenant, refused
from support.nights import state

GC = "/v1/admin/gc"
WORDS = ("piano", "boat", "horse", "kite", "lamp")
TABLES = (
    "memories", "history", "change_log", "events", "thread_revision", "idempotency_keys", "job_runs", "relations",
    "undo_records", "tombstones",
)  # fmt: skip


def past(days: float) -> str:
    return (datetime.now(UTC) - timedelta(days=days)).isoformat(timespec="microseconds")


def aged(tenant: Tenant, memory: str, **columns: object) -> None:
    values = {"recorded_at": past(90), "updated_at": past(90)} | columns
    assigned = ", ".join(f"{name} = %({name})s" for name in values)
    tenant.rows(f"UPDATE memories SET {assigned} WHERE id = %(id)s", id=memory, **values)


@pytest.fixture
def due(tenant: Tenant, caller: Caller) -> dict[str, str]:
    """Memories of which each is due for something, and one that stays."""
    found = {
        name: caller.remember(f"The user owns a {word}.", "event", importance=1)
        for name, word in zip(("idle", "expired", "hit", "deleted", "stays"), WORDS, strict=True)
    }
    aged(tenant, found["idle"])
    tenant.expire(found["expired"])
    aged(tenant, found["hit"], hits=3, last_hit_at=past(1))
    assert caller.delete(f"/v1/memories/{found['deleted']}").status_code == 200
    tenant.rows("UPDATE memories SET purge_at = %(then)s WHERE id = %(id)s", then=past(1), id=found["deleted"])
    tenant.rows(  # somebody who is there, or nothing of theirs would age
        "UPDATE user_activity SET last_at = %(now)s WHERE tenant_id = %(tenant)s", now=past(0)
    )
    return found


def rows(tenant: Tenant) -> dict[str, list[str]]:
    """Everything that a collection could touch."""
    return {
        table: sorted(map(str, tenant.rows(f"SELECT * FROM {table} WHERE tenant_id = %(tenant)s"))) for table in TABLES
    }


COUNTS = {"promoted": 1, "archived": 0, "deleted": 2, "purged": 1, "faded": 0}


def test_a_dry_run_tells_what_would_be_done_and_changes_nothing(
    tenant: Tenant, admin: Caller, due: dict[str, str]
) -> None:
    before = rows(tenant)
    told = admin.post(GC, {"user_id": USER, "dry_run": True}).json()
    assert {name: told[name] for name in COUNTS} == COUNTS
    assert told["outcome"] == "dry_run"
    assert rows(tenant) == before
    done = admin.post(GC, {"user_id": USER}).json()
    assert {name: done[name] for name in COUNTS} == COUNTS, "the control: it does what the dry run told"
    assert done["outcome"] == "collected"
    assert rows(tenant) != before
    states = {name: state(tenant, memory) for name, memory in due.items()}
    assert states == {
        "idle": "soft_deleted", "expired": "soft_deleted", "hit": "active", "deleted": None, "stays": "active",
    }  # fmt: skip
    assert state(tenant, due["hit"], "layer") == "long"
    again = admin.post(GC, {"user_id": USER}).json()
    assert {name: again[name] for name in COUNTS} == dict.fromkeys(COUNTS, 0), "nothing more"


def test_it_reports_the_day_and_averages(admin: Caller, due: dict[str, str]) -> None:
    report = admin.post(GC, {"user_id": USER}).json()["report"]
    assert report["promoted"] == 1
    assert report["deleted"] == 3, "two of them now, and one by hand"
    assert report["purged"] == 1
    assert report["memories"] == len(due) - 1
    assert {"created", "archived", "newly_archived", "average_confidence", "average_importance"} <= report.keys()


def test_another_users_memories_stay(tenant: Tenant, caller: Caller, admin: Caller) -> None:
    mine, theirs = (caller.remember("The user owns a gong.", "event", importance=1, user_id=user)
                    for user in (USER, "ben"))  # fmt: skip
    for memory in (mine, theirs):
        tenant.expire(memory)
    assert admin.post(GC, {"user_id": USER}).json()["deleted"] == 1
    assert (state(tenant, mine), state(tenant, theirs)) == ("soft_deleted", "active")
    assert admin.post(GC, {"user_id": "nobody"}).json()["deleted"] == 0


@pytest.mark.usefixtures("due")
def test_a_key_without_the_right_collects_nothing(tenant: Tenant, caller: Caller, admin: Caller) -> None:
    before = rows(tenant)
    scopes = tuple(KeyScope)
    refused(caller.post(GC, {"user_id": USER}), 403, "scope_forbidden")
    less = tenant.caller(None, trust="inner", act_for=["*"], scopes=scopes)
    refused(less.post(GC, {"user_id": USER}), 403, "trust_too_low")
    other = tenant.caller(None, act_for=["*"], scopes=scopes, users=["ben"])
    refused(other.post(GC, {"user_id": USER}), 403, "user_forbidden")
    refused(tenant.caller("planner", scopes=scopes).post(GC, {"user_id": USER}), 403, "category_forbidden")
    refused(admin.post(GC, {}), 422, "invalid_request")
    assert rows(tenant) == before
    mine = tenant.caller(None, act_for=["*"], scopes=scopes, users=[USER])
    assert mine.post(GC, {"user_id": USER}).json()["deleted"] == 2, "the control"


def test_a_request_that_comes_again_counts_once(admin: Caller, due: dict[str, str]) -> None:
    first, second = (
        admin.send("POST", GC, json={"user_id": USER}, headers={"Idempotency-Key": "gc-1"}).json() for _ in range(2)
    )
    assert first == second
    assert first["purged"] == 1
    assert due

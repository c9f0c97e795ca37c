"""Memories that are recalled together again and again become linked, and are forgotten when they no longer are."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shutil import copytree
from typing import Any
from uuid import UUID

import pytest

from memplane.adapters.policy import shipped_policies
from memplane.application.jobs.job_runner import Jobs
from memplane.application.recall import access_log
from memplane.domain.identity.principal import Reach
from support.callers import USER, Caller, Tenant
from support.killing import killed_after
from support.nights import NOON, Night, Stopped
from support.serving import RunningServer
from support.transfer import exported

FIDDLE, TAX = "Vance repaired the harpsichord.", "The tax return is due in May."
BOTH = "harpsichord and tax return"


def ask(tenant: Tenant, caller: Caller, text: str | None = BOTH, **more: object) -> list[str]:
    """Ask, and let it be written that it was."""
    found = caller.found(text, **({"related": False, "filters": {"user_id": USER}} | more))
    tenant.server.run(tenant.server.wired._accesses.flush())
    return found


def later(tenant: Tenant, hours: float = 2) -> None:
    """Let so many hours have passed since anything was recalled."""
    moment = (datetime.now(UTC) - timedelta(hours=hours)).isoformat(timespec="microseconds")
    tenant.rows(
        "UPDATE relations SET updated_at = %(moment)s WHERE tenant_id = %(tenant)s AND relation_type = 'co_recalled'",
        moment=moment,
    )


def pairs(tenant: Tenant) -> list[tuple[str, str, int, float]]:
    rows = tenant.rows(
        "SELECT from_id, to_id, co_recalls, strength FROM relations"
        " WHERE tenant_id = %(tenant)s AND relation_type = 'co_recalled' ORDER BY from_id, to_id"
    )
    return [(str(row["from_id"]), str(row["to_id"]), row["co_recalls"], row["strength"]) for row in rows]


def again(tenant: Tenant, caller: Caller, times: int = 3) -> None:
    for _ in range(times):
        ask(tenant, caller)
        later(tenant)


def brought(caller: Caller) -> list[tuple[str, str | None]]:
    """What the question after the one brings, and by which of them what is related came."""
    items = caller.ask("harpsichord", ranking="hebbian", filters={"user_id": USER})["items"]
    return [(item["id"], item.get("via")) for item in items]


def test_what_is_recalled_together_again_and_again_is_linked(tenant: Tenant, caller: Caller, night: Night) -> None:
    one, other = caller.remember(FIDDLE), caller.remember(TAX)
    again(tenant, caller, 2)
    assert pairs(tenant) == [(other, one, 2, 0.0)]
    assert night.counts("co_recall") == {"linked": 0, "unlinked": 0, "forgotten": 0}
    assert brought(caller) == [(one, None)]
    again(tenant, caller, 1)
    night.now += timedelta(hours=1)
    assert brought(caller) == [(one, None)]  # it is counted, and not a link before the night
    assert night.run("co_recall", dry_run=True).counts["linked"] == 1
    assert brought(caller) == [(one, None)]
    assert night.counts("co_recall")["linked"] == 1
    ((*_, times, strength),) = pairs(tenant)
    assert (times, strength > 0.3) == (3, True)
    assert brought(caller) == [(one, None), (other, one)]
    later_night = Night(tenant, night.now + timedelta(minutes=5))
    assert later_night.counts("co_recall")["linked"] == 1  # the same day's: no more was done


def test_only_answers_to_questions_count_and_each_hour_once(tenant: Tenant, caller: Caller) -> None:
    one, other = caller.remember(FIDDLE), caller.remember(TAX)
    assert set(ask(tenant, caller, None)) == {one, other}
    caller.get("/v1/context", user_id=USER)
    assert set(ask(tenant, caller, archive=True)) == set()
    assert pairs(tenant) == []
    for _ in range(4):
        assert set(ask(tenant, caller)) == {one, other}
    assert pairs(tenant) == [(other, one, 1, 0.0)]


def test_what_relations_brought_does_not_count(tenant: Tenant, caller: Caller) -> None:
    one, other = caller.remember(FIDDLE), caller.remember(TAX)
    tenant.relate(one, other)
    found = ask(tenant, caller, "harpsichord", related=True, ranking="hebbian")
    assert found == [one, other]
    assert pairs(tenant) == []


def test_agents_apart_and_users_apart(tenant: Tenant, caller: Caller, night: Night) -> None:
    one, other = caller.remember(FIDDLE, "tasks"), caller.remember(TAX, "relationships")
    foreign = caller.remember(TAX, "tasks", user_id="ben")
    for _ in range(3):
        caller.found(BOTH, related=False)  # of no user: nothing is counted
        again(tenant, caller, 1)
    note = {(UUID(foreign), UUID(one)): USER, (UUID(foreign), UUID(other)): "ben"}
    wired = tenant.server.wired
    tenant.server.run(
        wired.gateway._storage.write(Reach(tenant.name), lambda uow: uow.co_recalls.note(note, night.now))
    )
    assert night.counts("co_recall")["linked"] == 1
    assert [row[:2] for row in pairs(tenant)] == [(other, one)]
    assert brought(caller) == [(one, None), (other, one)]  # the control
    planner = tenant.caller("planner")
    asked = planner.ask("harpsichord", explain=True, filters={"user_id": USER})["items"]
    assert [item["id"] for item in asked] == [one]
    assert asked[0]["explain"]["signals"].get("relation", 0.0) == 0.0
    (mine,) = [
        item
        for item in caller.ask("harpsichord", explain=True, filters={"user_id": USER})["items"]
        if item["id"] == one
    ]
    assert mine["explain"]["signals"]["relation"] > 0  # the control


def test_it_wanes_and_is_forgotten(tenant: Tenant, caller: Caller) -> None:
    caller.remember(FIDDLE)
    caller.remember(TAX)
    again(tenant, caller)
    strengths = []
    for days in (0, 20, 60):
        Night(tenant, datetime.now(UTC) + timedelta(days=days)).run("co_recall")
        strengths.append(pairs(tenant)[0][3])
    assert strengths[0] > strengths[1] > strengths[2] > 0
    done = Night(tenant, datetime.now(UTC) + timedelta(days=91)).counts("co_recall")
    assert done == {"linked": 0, "unlinked": 0, "forgotten": 1}
    assert pairs(tenant) == []


def test_ended_behind_any_statement(tenant: Tenant, caller: Caller, night: Night) -> None:
    caller.remember(FIDDLE)
    caller.remember(TAX)
    again(tenant, caller)
    before, statements = pairs(tenant), 0
    while True:
        with killed_after(statements):
            try:
                counts = night.counts("co_recall")
                break
            except Stopped:
                statements += 1
                assert pairs(tenant) == before
    assert (counts["linked"], statements > 5) == (1, True)
    whole = pairs(tenant)
    assert Night(tenant, night.now + timedelta(hours=1)).counts("co_recall")["linked"] == 1
    assert Night(tenant, night.now + timedelta(days=1)).counts("co_recall")["linked"] == 0
    assert [row[:3] for row in pairs(tenant)] == [row[:3] for row in whole]


def test_by_two_workers(tenant: Tenant, caller: Caller, night: Night, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has its own run, as around midnight, and both have begun before either writes."""
    caller.remember(FIDDLE)
    caller.remember(TAX)
    again(tenant, caller)
    ((*counted, strength),) = pairs(tenant)
    assert strength == 0
    batch, both = Jobs._step, asyncio.Barrier(2)

    async def together(self: Jobs, *given: Any) -> Any:  # noqa: ANN401 - as it came
        step = await batch(self, *given)
        await both.wait()
        return step

    monkeypatch.setattr(Jobs, "_step", together)
    nights = [night, Night(tenant, night.now + timedelta(days=1))]
    begun = [tenant.server.start(each.jobs.run("co_recall", tenant.name)) for each in nights]
    done = [each.result(30).counts for each in begun]
    assert {kind: done[0][kind] + done[1][kind] for kind in done[0]} == {"linked": 1, "unlinked": 0, "forgotten": 0}
    ((*rest, strength),) = pairs(tenant)
    assert (rest, strength > 0.3) == (counted, True)


def at_noon(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no day end while it is counted."""
    monkeypatch.setattr(tenant.server.wired._accesses, "_clock", lambda: NOON)


def test_a_user_has_so_many_new_pairs_a_day(tenant: Tenant, caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    at_noon(tenant, monkeypatch)
    monkeypatch.setattr(access_log, "MOST_TOGETHER", 1)
    for text in (FIDDLE, TAX, "The user wants a boat."):
        caller.remember(text)
    assert len(ask(tenant, caller)) > 1
    assert len(pairs(tenant)) == 1
    assert len(ask(tenant, caller, "boat and harpsichord")) > 1
    assert len(pairs(tenant)) == 1


def test_what_is_counted_already_takes_no_room(tenant: Tenant, caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    at_noon(tenant, monkeypatch)
    monkeypatch.setattr(access_log, "MOST_TOGETHER", 2)
    caller.remember(FIDDLE)
    caller.remember(TAX)
    for _ in range(3):
        ask(tenant, caller)
    assert [each[2] for each in pairs(tenant)] == [1]
    caller.remember("The user wants a boat.")
    assert len(ask(tenant, caller, "boat and harpsichord")) > 1
    assert len(pairs(tenant)) == 2  # and not three: the room is used up
    assert len(ask(tenant, caller, "boat and tax return")) > 1
    assert len(pairs(tenant)) == 2


def test_nothing_is_counted_where_it_is_off(start_server: Callable[..., RunningServer], tmp_path: Path) -> None:
    found = []
    for name, schedule in (("on", None), ("off", "off")):
        folder = Path(copytree(shipped_policies(), tmp_path / name))
        if schedule is not None:
            text = (folder / "workers.yaml").read_text()
            assert 'co_recall: "0 4 * * *"' in text
            (folder / "workers.yaml").write_text(text.replace('co_recall: "0 4 * * *"', "co_recall: off"))
        tenant = Tenant(start_server(policies=folder))
        caller = tenant.caller("supervisor")
        for text in (FIDDLE, TAX):
            caller.remember(f"{text[:-1]} {name}.")
        before = len(pairs(tenant))
        ask(tenant, caller)
        found.append(len(pairs(tenant)) > before)
    assert found == [True, False]


def test_it_is_exported_and_goes_with_the_user(tenant: Tenant, caller: Caller, admin: Caller) -> None:
    caller.remember(FIDDLE)
    caller.remember(TAX)
    ask(tenant, caller)
    lines = exported(admin)
    assert [line["co_recalls"] for line in lines if line.get("relation_type") == "co_recalled"] == [1]
    assert admin.post(f"/v1/users/{USER}/erase", {"confirm": USER}).is_success
    assert pairs(tenant) == []

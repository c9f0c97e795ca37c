"""Consolidation that ends behind any statement, or is done by two workers at once: its effects are there once."""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from datetime import timedelta
from itertools import count
from typing import Any
from uuid import UUID

import pytest

from memplane.adapters.postgres.session import PostgresSession
from memplane.adapters.sqlite.session import SqliteSession
from memplane.application.jobs.job_runner import RunResult
from support.callers import THREAD, Caller, Tenant
from support.model_server import ModelServer, Reply, called
from support.nights import Night, Stopped
from support.working import until

WORK, INGRID = "The user works at Ericsson now.", "The user's sister Ingrid visits every Sunday."
SAID = ("Work is at Ericsson now, across the river.", "My sister Ingrid visits me every Sunday.", "I am a nurse.")
ANSWER = called(
    {
        "facts": [
            {"text": text, "category": "relationships", "importance": 3, "confidence": 0.9, "turns": [turn]}
            for text, turn in ((WORK, 1), (INGRID, 2))
        ]
    }
)


WORKING: ContextVar[bool] = ContextVar("WORKING", default=False)
"""Whether a statement is the job's own, and not of a task that runs beside it."""


@pytest.fixture
def tenant(asking: Tenant) -> Tenant:
    """One whose server has a model."""
    return asking


@pytest.fixture
def old(tenant: Tenant) -> str:
    """What the person says is overruled; they say it in a conversation that was closed."""
    caller = tenant.caller("supervisor")
    before = caller.remember("The user works at Volvo.", category="relationships", confidence=0.9)
    close(caller)
    return before


def close(caller: Caller) -> None:
    for text in SAID:
        caller.say(text, auto_extract=False)
    assert caller.post(f"/v1/sessions/{THREAD}/close", {}).is_success


def effects(tenant: Tenant, old: str) -> dict[str, Any]:
    """Everything that the job changes."""
    drawn = tenant.rows(
        "SELECT content, mention_count, state FROM memories WHERE tenant_id = %(tenant)s AND type <> 'episodic'"
        " AND source <> 'agent' ORDER BY content"
    )
    told = tenant.rows(
        "SELECT event, count(*) AS found FROM history WHERE tenant_id = %(tenant)s AND actor = 'job:facts'"
        " GROUP BY event ORDER BY event"
    )
    (before,) = tenant.rows("SELECT state, confidence FROM memories WHERE id = %(id)s", id=UUID(old))
    (session,) = tenant.rows("SELECT facts_seq FROM sessions WHERE tenant_id = %(tenant)s")
    counted = tenant.rows("SELECT sum(drawn) AS counted FROM token_budgets WHERE tenant_id = %(tenant)s")
    return {
        "drawn": [tuple(row.values()) for row in drawn],
        "history": {row["event"]: row["found"] for row in told},
        "overruled": (before["state"], round(before["confidence"], 6)),
        "read": session["facts_seq"],
        "facts": int(counted[0]["counted"] or 0),
        "links": tenant.count("relations"),
    }


def cut_behind(patched: pytest.MonkeyPatch, statements: int) -> None:
    """Let whoever works end behind so many statements, without a word."""
    left = [statements]
    for kind in (PostgresSession, SqliteSession):
        for name in ("execute", "rows_of_all"):
            patched.setattr(kind, name, _cutting(getattr(kind, name), left))


def _cutting(whole: Callable[..., Awaitable[Any]], left: list[int]) -> Callable[..., Awaitable[Any]]:
    async def cut(*given: Any, **more: Any) -> Any:  # noqa: ANN401 - as it came
        found = await whole(*given, **more)
        left[0] -= WORKING.get()
        if WORKING.get() and left[0] == 0:
            raise Stopped
        return found

    return cut


async def worked(night: Night) -> RunResult:
    """Do the job, and mark what is its own."""
    WORKING.set(True)
    return await night.jobs.run("facts", night.tenant.name)


@pytest.mark.slow
def test_ended_behind_any_statement_its_effects_are_there_once(
    tenant: Tenant, model: ModelServer, old: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing, night, cuts = effects(tenant, old), Night(tenant), 0
    seen = []
    for statements in count(1):
        model.script = [ANSWER]
        with monkeypatch.context() as patched:
            cut_behind(patched, statements)
            try:
                done = tenant.server.run(worked(night))
            except Stopped:
                cuts += 1
                seen.append(effects(tenant, old))
                continue
        break
    whole = effects(tenant, old)
    assert done.counts == {"parts": 1, "facts": 3, "superseded": 1, "left_out": 0}
    assert {row[:2] for row in whole["drawn"]} == {("The user is a nurse.", 1), (INGRID, 1), (WORK, 1)}
    assert whole["history"] == {"ADD": 3, "SUPERSEDE": 1}
    assert (whole["overruled"], whole["read"], whole["facts"]) == (("superseded", 0.3), 3, 2)
    assert cuts > 20
    assert all(each in (nothing, whole) for each in seen)
    assert nothing in seen


def test_two_workers_who_read_the_same_write_it_once(tenant: Tenant, model: ModelServer, old: str) -> None:
    """Each has its own run, as around midnight, and both have asked before either writes."""
    first, second = Night(tenant), Night(tenant)
    second.now += timedelta(days=1)
    model.script = [Reply(ANSWER.body, held=True)] * 2
    begun = [tenant.server.start(each.jobs.run("facts", tenant.name)) for each in (first, second)]
    until(lambda: len(model.asked) == 2, "both have asked")
    model.gate.set()
    done = [each.result(30) for each in begun]
    assert sorted(each.counts["parts"] for each in done) == [0, 1]
    assert sorted(each.counts["facts"] for each in done) == [0, 3]
    found = effects(tenant, old)
    assert [row[1] for row in found["drawn"]] == [1, 1, 1]
    assert found["history"] == {"ADD": 3, "SUPERSEDE": 1}
    assert found["facts"] == 2

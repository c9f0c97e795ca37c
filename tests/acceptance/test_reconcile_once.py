"""The job `reconcile`: nothing is done twice or without need, and nobody else's data is touched."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa

from memplane.adapters.postgres.session import PostgresSession
from memplane.adapters.sqlite.session import SqliteSession
from memplane.application.jobs.job_runner import Jobs
from memplane.application.jobs.reconciliation import graph_parts, reconcile_job
from memplane.domain.memory.memory import new_id
from memplane.domain.policy.capabilities import Capability
from support.callers import USER, Caller, Tenant
from support.damaging import (
    BICYCLE,
    ENTITY,
    FIDDLE,
    MOMENT,
    PIANO,
    damaged,
    edges,
    everything,
    past_the_rules,
    relate,
    repaired,
    spoil,
)
from support.killing import killed_after
from support.nights import Night, Stopped, after_batches, state

WORKING: ContextVar[bool] = ContextVar("WORKING", default=False)
"""Whether a statement is the job's own, and not of a task that runs beside it."""


async def worked(night: Night) -> Mapping[str, float]:
    """Do the job, and mark what is its own."""
    WORKING.set(True)
    return (await night.jobs.run("reconcile", night.tenant.name)).counts


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The tables that the job writes to."""
    tables: set[str] = set()

    def noted(statement: object) -> None:
        if isinstance(statement, sa.sql.dml.UpdateBase):
            tables.add(str(statement.table))
        elif isinstance(statement, sa.TextClause) and not statement.text.lstrip().startswith("SELECT"):
            tables.add(statement.text.split()[1])

    for kind in (PostgresSession, SqliteSession):
        for name in ("execute", "rows_changed"):
            monkeypatch.setattr(kind, name, _noting(getattr(kind, name), noted))
        monkeypatch.setattr(kind, "add", _noting(kind.add, tables.add))
    return tables


def _noting(whole: Callable[..., Awaitable[Any]], noted: Callable[[Any], None]) -> Callable[..., Awaitable[Any]]:
    async def sent(self: object, what: object, *more: Any) -> Any:  # noqa: ANN401 - as it came
        if WORKING.get():
            noted(what)
        return await whole(self, what, *more)

    return sent


class TestOnce:
    """What is right is left alone; what is not is put right once, however a worker ends and however many there are."""

    def test_nothing_is_written_where_all_is_right(
        self, tenant: Tenant, caller: Caller, night: Night, written: set[str]
    ) -> None:
        for text in (FIDDLE, BICYCLE, "The user met Yoko Aihara.", "The user met Berta Lindqvist in Oslo.", *PIANO):
            caller.remember(text)
            caller.say(text)
        caller.remember("Zürich: Müller & Söhne – 東京 🎻", lang="de", facts=["Ein Klavier."], tags=["music"])
        gone = caller.remember("The user is a sailor.")
        caller.delete(f"/v1/memories/{gone}")
        found = tenant.server.run(worked(night))
        assert found["seen"] == 13
        assert sum(found.values()) == found["seen"]
        assert written == {"job_runs"}
        tenant.rows("DELETE FROM relations WHERE tenant_id = %(tenant)s")
        night.now += timedelta(days=1)
        tenant.server.run(worked(night))
        assert written == {"job_runs", "relations", "history", "events"}  # the control: each new relation is recorded

    def test_each_kind_by_a_worker(self, tenant: Tenant, caller: Caller, night: Night) -> None:
        wanted, before = damaged(tenant, caller), everything(tenant)
        # each part as if the others had done nothing: one cannot be linked without a vector, and Yoko is not mentioned
        assert repaired(night, dry_run=True) == {kind: n for kind, n in wanted.items() if kind != "links"} | {
            "entities": 2
        }
        assert everything(tenant) == before
        night.ask("reconcile")
        (done,) = [each for each in night.worked_off() if each.name == "reconcile"]
        assert {kind: count for kind, count in done.counts.items() if count and kind != "seen"} == wanted
        night.now += timedelta(days=1)
        assert repaired(night) == {}

    def test_ended_behind_any_statement(
        self, tenant: Tenant, caller: Caller, night: Night, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(reconcile_job, "BATCH", 3)
        wanted = damaged(tenant, caller)
        cuts, statements, place = 0, 0, None
        while True:
            with killed_after(statements):
                try:
                    done = night.run("reconcile")
                    break
                except Stopped:
                    cuts += 1
            (run,) = tenant.rows("SELECT place FROM job_runs WHERE tenant_id = %(tenant)s AND name = 'reconcile'")
            statements = statements + 1 if run["place"] == place else 1
            place = run["place"]
        assert cuts > 30
        assert {kind: count for kind, count in done.counts.items() if count and kind != "seen"} == wanted
        night.now += timedelta(days=1)
        whole = everything(tenant)
        assert whole["told"] == 2, "what was put right, and one LINK"
        assert repaired(night) == {}
        assert everything(tenant) == whole

    def test_two_workers_who_read_the_same(
        self, tenant: Tenant, caller: Caller, night: Night, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Each has its own run, as around midnight, and both have read before either writes."""
        wanted, second = damaged(tenant, caller), Night(tenant)
        second.now += timedelta(days=1)
        waiting = [asyncio.Barrier(2) for _ in range(6)]
        batch = Jobs._step

        async def together(self: Jobs, *given: Any) -> Any:  # noqa: ANN401 - as it came
            step = await batch(self, *given)
            parts = [*night.tenant.server.wired.jobs._prepared["reconcile"]._parts]  # type: ignore[attr-defined]  # the job's own
            name = (given[-1] or parts[0]).partition(":")[0]
            await waiting[parts.index(name)].wait()
            return step

        monkeypatch.setattr(Jobs, "_step", together)
        begun = [tenant.server.start(each.jobs.run("reconcile", tenant.name)) for each in (night, second)]
        done = [each.result(30).counts for each in begun]
        assert {kind: done[0][kind] + done[1][kind] for kind in wanted} == wanted
        assert everything(tenant)["told"] == 2, "as above: no second LINK"

    def test_what_is_right_by_then_is_left(
        self, tenant: Tenant, caller: Caller, night: Night, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Between a batch's reading and its transaction a double stands alone, and a link leads right."""
        one, other, third = (caller.remember(text) for text in (FIDDLE, BICYCLE, "Tax returns are due in May."))
        tenant.rows("DELETE FROM relations WHERE tenant_id = %(tenant)s")
        for ends in ((one, other), (one, third)):
            relate(tenant, ends, 0.4)
            relate(tenant, ends[::-1], 0.8)
        late, never = new_id(), new_id()
        link = "INSERT INTO memory_entities (tenant_id, memory_id, entity_id) VALUES (%(tenant)s, %(id)s, %(entity)s)"
        for entity in (late, never):
            past_the_rules(tenant, link, id=UUID(one), entity=entity)
        batch = Jobs._step

        async def meanwhile(self: Jobs, *given: Any) -> Any:  # noqa: ANN401 - as it came
            step = await batch(self, *given)
            part = (given[-1] or "").partition(":")[0]
            if part == "relations":
                past_the_rules(
                    tenant, "DELETE FROM relations WHERE from_id = %(id)s AND to_id = %(to)s",
                    id=UUID(other), to=UUID(one),
                )  # fmt: skip
            elif part == "mentions":
                past_the_rules(tenant, ENTITY, id=late, user=USER, now=MOMENT)
            return step

        monkeypatch.setattr(Jobs, "_step", meanwhile)
        found = repaired(night)
        assert {kind: found[kind] for kind in ("relations", "mentions")} == {"relations": 1, "mentions": 1}
        assert edges(tenant) == {(one, other, "related_to"), (third, one, "related_to")}
        rows = tenant.rows("SELECT entity_id FROM memory_entities WHERE tenant_id = %(tenant)s")
        kept = {str(row["entity_id"]) for row in rows}
        assert (str(late) in kept, str(never) in kept) == (True, False)

    def test_goes_on_where_it_was(
        self, tenant: Tenant, caller: Caller, night: Night, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """In batches of one, each part behind the last place."""
        for module, names in ((reconcile_job, ("BATCH",)), (graph_parts, ("BATCH", "PLACED", "LINKED", "AT_ONCE"))):
            for name in names:
                monkeypatch.setattr(module, name, 1)
        wanted = damaged(tenant, caller)
        for batches in (1, 2, 3):
            with pytest.raises(Stopped):
                night.run("reconcile", progress=after_batches(batches))
        found = night.counts("reconcile")
        assert {kind: count for kind, count in found.items() if count and kind != "seen"} == wanted

    @pytest.mark.parametrize(
        "case",
        [("USERS", 2, [4, 4]), ("AROUND", 1, [2, 2, 2, 2]), ("AT_ONCE", 1, [8])],
    )
    def test_a_batch_looks_at_few_users(
        self,
        tenant: Tenant,
        caller: Caller,
        night: Night,
        monkeypatch: pytest.MonkeyPatch,
        case: tuple[str, int, list[float]],
    ) -> None:
        """So many of them, or until so many vectors were read; and vectors are read a few at a time."""
        bound, number, batches = case
        monkeypatch.setattr(graph_parts, bound, number, raising=False)
        for user in ("ana", "ben", "cleo", "dora"):
            for text in PIANO:
                caller.remember(text, "goals", user_id=user)
        made = edges(tenant)
        assert len(made) == 4
        tenant.rows("DELETE FROM relations WHERE tenant_id = %(tenant)s")
        links = [0.0]
        found = night.run("reconcile", progress=lambda counts: links.append(counts["links"]))
        assert found.counts["links"] == 8
        done = [after - before for before, after in itertools.pairwise(links) if after > before]
        assert done == batches
        assert edges(tenant) == made


class TestWhose:
    """Nothing of another tenant is touched, and nothing is made of somebody who is erased."""

    @pytest.mark.needs(Capability.SEVERAL_TENANTS)
    def test_of_this_tenant_alone(self, tenant: Tenant, other_tenant: Tenant, night: Night, caller: Caller) -> None:
        damaged(other_tenant, other_tenant.caller("supervisor"))
        wanted, before = damaged(tenant, caller), everything(other_tenant)
        assert repaired(night) == wanted
        assert everything(other_tenant) == before

    def test_archived_and_superseded_ones_too_but_not_the_deleted(
        self, tenant: Tenant, caller: Caller, night: Night
    ) -> None:
        memories = {name: caller.remember(f"The user owns a {name}.") for name in ("boat", "piano", "violin")}
        for name, lies in (("boat", "archived"), ("piano", "superseded"), ("violin", "soft_deleted")):
            past_the_rules(
                tenant, "UPDATE memories SET state = %(state)s WHERE id = %(id)s", id=UUID(memories[name]), state=lies
            )
            spoil(tenant, "memories", memories[name], "none")
        assert repaired(night)["vectors"] == 2
        assert [state(tenant, memories[name], "embedding") is None for name in ("boat", "piano", "violin")] == [
            False,
            False,
            True,
        ]
        assert caller.found("boat", ranking="semantic", threshold=0.3, archive=True) == [memories["boat"]]

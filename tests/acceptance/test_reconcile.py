"""The job `reconcile`: what was derived from memories and turns, damaged past the gateway, is put right at night."""

import asyncio
import re
import sqlite3
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import closing
from contextvars import ContextVar
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
import sqlalchemy as sa

from memplane.adapters.postgres.session import PostgresSession
from memplane.adapters.sqlite.session import SqliteSession
from memplane.application.jobs import repairing, repairing_graph
from memplane.application.jobs.repairing import KINDS
from memplane.application.jobs.running import Jobs
from memplane.domain.capabilities import Capability
from memplane.domain.memory import new_id
from support.callers import USER, Caller, Tenant
from support.cluster import Database
from support.killing import killed_after
from support.nights import Night, Stopped, after_batches, state

FIDDLE, BICYCLE = "Vance repaired the harpsichord of the user.", "Anna sold the user her old bicycle."
PIANO = ("The user plays the piano.", "The user practises the piano in the evening.")


@pytest.fixture
def caller(tenant: Tenant) -> Caller:
    """A supervisor."""
    return tenant.caller("supervisor")


@pytest.fixture
def night(tenant: Tenant, caller: Caller) -> Night:
    """The night's work for the tenant, which has a key."""
    del caller
    return Night(tenant)


def repaired(night: Night, **more: Any) -> Mapping[str, float]:  # noqa: ANN401 - of the run
    """What a night put right, each kind of which there was any."""
    found = night.counts("reconcile", **more)
    assert set(found) == set(KINDS)
    night.now += timedelta(days=1)
    return {kind: count for kind, count in found.items() if count and kind != "seen"}


def past_the_rules(tenant: Tenant, *statements: str, **values: object) -> None:
    """Run SQL as an operator may: past foreign keys and triggers, as a restored backup is read in."""
    database = tenant.server.database
    given = {"tenant": tenant.name} | values
    if isinstance(database, Database):
        with psycopg.connect(database.admin_url, autocommit=True) as connection:
            connection.execute("SET session_replication_role = replica")
            for statement in statements:
                connection.execute(statement, given)
        return
    bound = {name: value.hex if isinstance(value, UUID) else value for name, value in given.items()}
    with closing(sqlite3.connect(database.path)) as connection:
        for statement in statements:
            connection.execute(re.sub(r"%\((\w+)\)s", r":\1", statement), bound)
        connection.commit()


def by_meaning(caller: Caller, text: str, user: str = USER) -> list[str]:
    return caller.found(text, ranking="semantic", threshold=0.3, related=False, filters={"user_id": user})


def by_words(caller: Caller, text: str) -> list[str]:
    items = caller.ask(text, ranking="lexical", related=False, explain=True, top_k=50)["items"]
    return [item["id"] for item in items if item["explain"]["matched"]]


def edges(tenant: Tenant) -> set[tuple[str, str, str]]:
    rows = tenant.rows("SELECT from_id, to_id, relation_type FROM relations WHERE tenant_id = %(tenant)s")
    return {(str(row["from_id"]), str(row["to_id"]), row["relation_type"]) for row in rows}


def relate(tenant: Tenant, ends: Sequence[str], strength: float = 0.9, kind: str = "related_to") -> None:
    past_the_rules(
        tenant,
        "INSERT INTO relations (tenant_id, id, from_id, to_id, relation_type, strength, created_at, updated_at)"
        " VALUES (%(tenant)s, %(id)s, %(from_id)s, %(to_id)s, %(kind)s, %(strength)s, %(now)s, %(now)s)",
        id=new_id(), from_id=UUID(ends[0]), to_id=UUID(ends[1]), kind=kind, strength=strength,
        now="2026-01-01T00:00:00.000000+00:00",
    )  # fmt: skip


BAD_VECTORS = ["none", "longer", "zero"]


def spoil(tenant: Tenant, table: str, ident: str, how: str) -> None:
    """Take the vector of a row away, or put one there with which no question can be compared."""
    values = {"none": None, "longer": [0.05] * 300, "zero": [0.0] * 256}[how]
    where = f"UPDATE {table} SET embedding = %(vector)s WHERE id = %(id)s"
    if isinstance(tenant.server.database, Database):
        given: object = None if values is None else str(values)
        where = where.replace("%(vector)s", "CAST(%(vector)s AS halfvec)")
    else:
        given = None if values is None else b"\x00\x00" * len(values)
    past_the_rules(tenant, where, id=UUID(ident), vector=given)


class TestVectors:
    """A text without a vector that questions can be compared with gets one, and every cache learns of it."""

    @pytest.mark.parametrize("how", BAD_VECTORS)
    def test_of_a_memory(self, tenant: Tenant, caller: Caller, night: Night, how: str) -> None:
        other, memory = caller.remember(BICYCLE), caller.remember(FIDDLE)  # nothing of the latter is remembered yet
        spoil(tenant, "memories", memory, how)
        for _ in range(3):  # by then it is remembered how it is
            if how == "longer":  # then nobody is answered at all
                assert caller.query("Who sold a bicycle?").status_code >= 500
            else:
                assert by_meaning(caller, "Who repaired the harpsichord?") == []
                assert by_meaning(caller, "Who sold a bicycle?") == [other]
        version = state(tenant, memory, "version")
        assert repaired(night, dry_run=True)["vectors"] == 1
        assert repaired(night)["vectors"] == 1
        assert by_meaning(caller, "Who repaired the harpsichord?") == [memory]
        assert by_meaning(caller, "Who sold a bicycle?") == [other]
        assert state(tenant, memory, "version") == version
        assert repaired(night) == {}

    def test_of_a_turn(self, tenant: Tenant, caller: Caller, night: Night) -> None:
        turn = caller.say("Vance repaired the harpsichord")["turn_id"]
        caller.say("soup with the dog")
        spoil(tenant, "turns", turn, "none")
        for _ in range(3):  # by then it is remembered
            assert by_meaning(caller, "Who repaired the harpsichord?") == []
        assert repaired(night) == {"vectors": 1}
        assert by_meaning(caller, "Who repaired the harpsichord?") == [turn]


class TestTerms:
    """Terms that are not those of a text are made anew, with its vector."""

    @pytest.mark.parametrize("table", ["memories", "turns"])
    def test_that_are_lost(self, tenant: Tenant, caller: Caller, night: Night, table: str) -> None:
        caller.remember(BICYCLE)
        unit = caller.remember(FIDDLE) if table == "memories" else caller.say(FIDDLE)["turn_id"]
        past_the_rules(
            tenant, f"UPDATE {table} SET terms = %(none)s, term_length = 0 WHERE id = %(id)s", id=UUID(unit), none=b""
        )
        for _ in range(3):  # by then it is remembered
            assert by_words(caller, "harpsichord") == []
            assert len(by_words(caller, "bicycle")) == 1
        assert repaired(night) == {"terms": 1}
        assert by_words(caller, "harpsichord") == [unit]
        assert repaired(night) == {}

    def test_of_words_that_were_changed_past_the_gateway(self, tenant: Tenant, caller: Caller, night: Night) -> None:
        memory = caller.remember(FIDDLE)
        past_the_rules(
            tenant, "UPDATE memories SET content = %(words)s WHERE id = %(id)s", id=UUID(memory), words=BICYCLE
        )
        assert by_words(caller, "bicycle") == []
        assert by_meaning(caller, "Who sold a bicycle?") == []
        assert repaired(night) == {"terms": 1, "mentions": 1}
        assert by_words(caller, "bicycle") == [memory]
        assert caller.found("bicycle", filters={"entity": "Anna"}) == [memory]
        assert by_meaning(caller, "Who sold a bicycle?") == [memory]


class TestRelations:
    """Relations that lead nowhere, to somebody else or back again go; memories without any get their neighbours."""

    def test_that_lead_astray(self, tenant: Tenant, caller: Caller, night: Night) -> None:
        one, other = caller.remember(FIDDLE), caller.remember(BICYCLE)
        foreign = caller.remember("The user wants a boat.", user_id="ben")
        good = edges(tenant)
        for ends in ((one, str(new_id())), (str(new_id()), one), (one, foreign)):
            relate(tenant, ends)
        relate(tenant, (one, other), kind="supersedes")
        relate(tenant, (other, one), kind="supersedes")
        assert repaired(night, dry_run=True)["relations"] == 3
        assert repaired(night)["relations"] == 3
        assert edges(tenant) == good | {(one, other, "supersedes"), (other, one, "supersedes")}
        assert repaired(night) == {}

    def test_there_and_back_is_one(self, tenant: Tenant, caller: Caller, night: Night) -> None:
        one, other = caller.remember(FIDDLE), caller.remember(BICYCLE)
        relate(tenant, (one, other), 0.4)
        relate(tenant, (other, one), 0.8)
        assert repaired(night) == {"relations": 1}
        assert edges(tenant) == {(other, one, "related_to")}

    def test_memories_without_any_get_their_neighbours(self, tenant: Tenant, caller: Caller, night: Night) -> None:
        texts = (
            "The user plays the piano.",
            "The user practises the piano in the evening.",
            "Tax returns are due in May.",
        )
        one, other, far = (caller.remember(text) for text in texts)
        foreign = caller.remember(texts[0], user_id="ben")
        elsewhere = caller.remember(texts[0], category="goals")
        made = edges(tenant)
        assert made == {(other, one, "related_to")}
        strength = tenant.rows("SELECT strength FROM relations WHERE tenant_id = %(tenant)s")
        assert repaired(night) == {}  # what has no neighbours needs none
        tenant.rows("DELETE FROM relations WHERE tenant_id = %(tenant)s")
        assert repaired(night, dry_run=True) == {"links": 2}
        assert edges(tenant) == set()
        assert repaired(night) == {"links": 2}
        assert edges(tenant) == made
        assert tenant.rows("SELECT strength FROM relations WHERE tenant_id = %(tenant)s")[0][
            "strength"
        ] == pytest.approx(strength[0]["strength"], abs=0.002)
        assert repaired(night) == {}
        assert {far, foreign, elsewhere}.isdisjoint({end for edge in edges(tenant) for end in edge})


class TestEntities:
    """Links that lead nowhere or to somebody else's entity go, and so do entities that nothing mentions."""

    def test_links_that_lead_astray(self, tenant: Tenant, caller: Caller, night: Night) -> None:
        memory = caller.remember("The user met Berta Lindqvist.")
        caller.remember("The user met Yoko Aihara.", user_id="ben")
        berta, yoko = caller.entity("Berta Lindqvist"), caller.entity("Yoko Aihara", "ben")
        link = "INSERT INTO memory_entities (tenant_id, memory_id, entity_id) VALUES (%(tenant)s, %(id)s, %(entity)s)"
        for ends in ((memory, str(new_id())), (str(new_id()), berta), (memory, yoko)):
            past_the_rules(tenant, link, id=UUID(ends[0]), entity=UUID(ends[1]))
        assert tenant.count("memory_entities") == 5
        assert repaired(night, dry_run=True) == {"mentions": 3}
        assert repaired(night) == {"mentions": 3}
        assert tenant.count("memory_entities") == 2
        assert caller.entity("Berta Lindqvist") == berta

    def test_links_that_are_lost(self, tenant: Tenant, caller: Caller, night: Night) -> None:
        memory = caller.remember("The user had dinner with Yoko Aihara.")
        night.run("enrichment")
        yoko = caller.entity("Yoko Aihara")
        tenant.rows("DELETE FROM memory_entities WHERE tenant_id = %(tenant)s")
        assert caller.found("dinner", filters={"entity": "Yoko Aihara"}) == []
        assert repaired(night) == {"mentions": 1}
        assert caller.found("dinner", filters={"entity": "Yoko Aihara"}) == [memory]
        assert caller.entity("Yoko Aihara") == yoko

    def test_entities_that_nothing_mentions(self, tenant: Tenant, caller: Caller, night: Night) -> None:
        for name in ("Berta Lindqvist", "Yoko Aihara", "Ximena Duarte"):
            gone = caller.remember(f"The user met {name}.")
            if name == "Yoko Aihara":
                caller.post(f"/v1/entities/{caller.entity(name)}/aliases", {"alias": "Yoyo"})
            if name != "Ximena Duarte":
                caller.patch(
                    f"/v1/memories/{gone}",
                    {"content": "The user met an old friend."}
                    if name[0] == "B"
                    else {"content": "The user met a cousin."},
                )
        assert tenant.count("entities") == 3
        assert repaired(night, dry_run=True) == {"entities": 1}
        assert repaired(night) == {"entities": 1}
        names = {row["name"] for row in tenant.rows("SELECT name FROM entities WHERE tenant_id = %(tenant)s")}
        assert names == {"Yoko Aihara", "Ximena Duarte"}  # a person gave the one another name


class TestSources:
    """What a memory names as its sources leads to it, and what was purged is named no longer."""

    def test_that_lead_to_nothing(self, tenant: Tenant, caller: Caller, night: Night) -> None:
        source = caller.remember(FIDDLE)
        elsewhere = str(new_id())
        memory = caller.remember("The user owns a harpsichord.", source_ids=[source, elsewhere])
        past_the_rules(tenant, "DELETE FROM memories WHERE id = %(id)s", id=UUID(source))
        past_the_rules(tenant, "UPDATE memories SET mention_count = 5 WHERE id = %(id)s", id=UUID(memory))
        assert repaired(night)["sources"] == 1
        assert state(tenant, memory, "mention_count") == 4  # else it would outlive the others
        assert caller.get(f"/v1/memories/{memory}").json()["source_ids"] == [elsewhere]
        (entry,) = tenant.rows(
            "SELECT meta FROM history WHERE memory_id = %(id)s AND actor = 'job:reconcile'", id=UUID(memory)
        )
        assert "source_purged" in str(entry["meta"])
        assert repaired(night) == {}

    def test_a_deleted_source_takes_along_what_names_it_again(
        self, tenant: Tenant, caller: Caller, night: Night
    ) -> None:
        memories = []
        for nth, word in enumerate(("harpsichord", "bicycle")):
            source = caller.remember(f"The user bought a {word}.")
            memories.append((source, caller.remember(f"The user has room for a {word}.", source_ids=[source])))
            if nth == 0:
                past_the_rules(tenant, "DELETE FROM memory_sources WHERE tenant_id = %(tenant)s")
        (first, lost), (second, kept) = memories
        assert repaired(night)["sources"] == 1
        for each in (first, second):
            caller.delete(f"/v1/memories/{each}")
        assert (state(tenant, lost), state(tenant, kept)) == ("soft_deleted", "soft_deleted")


def damaged(tenant: Tenant, caller: Caller) -> dict[str, int]:
    """One of each kind is damaged; what a night puts right of it."""
    one, other = (caller.remember(text, "goals") for text in PIANO)
    source = caller.remember("The user bought a boat.", "event")
    copied = caller.remember("The user has room for a boat.", source_ids=[source])
    caller.remember("The user met Yoko Aihara.", "relationships")
    turn = caller.say("Vance repaired the harpsichord")["turn_id"]
    past_the_rules(tenant, "DELETE FROM relations WHERE tenant_id = %(tenant)s")
    past_the_rules(tenant, "DELETE FROM memory_entities WHERE tenant_id = %(tenant)s")
    past_the_rules(tenant, "DELETE FROM memory_sources WHERE tenant_id = %(tenant)s")
    past_the_rules(tenant, "DELETE FROM memories WHERE id = %(id)s", id=UUID(source))
    past_the_rules(
        tenant,
        "INSERT INTO entities (tenant_id, id, user_id, kind, name, name_key, created_at)"
        " VALUES (%(tenant)s, %(id)s, %(user)s, 'person', 'Berta', 'berta', %(now)s)",
        id=new_id(), user=USER, now="2026-01-01T00:00:00.000000+00:00",
    )  # fmt: skip
    spoil(tenant, "memories", one, "none")
    spoil(tenant, "turns", turn, "none")
    past_the_rules(tenant, "UPDATE memories SET term_length = 0 WHERE id = %(id)s", id=UUID(other))
    relate(tenant, (copied, str(new_id())))
    return {
        "terms": 1, "vectors": 2, "sources": 1, "relations": 1, "mentions": 1, "entities": 1, "links": 2,
    }  # fmt: skip


def everything(tenant: Tenant) -> dict[str, Any]:
    """All that the job may change."""
    found: dict[str, Any] = {"relations": edges(tenant)}
    for table in ("entities", "memory_entities", "memory_sources", "memories", "turns"):
        found[table] = tenant.count(table)
    for table in ("memories", "turns"):
        rows = tenant.rows(
            f"SELECT id, terms, term_length, embedding FROM {table} WHERE tenant_id = %(tenant)s ORDER BY id"
        )
        found[table] = [
            (str(row["id"]), bytes(row["terms"]), row["term_length"], str(row["embedding"])) for row in rows
        ]
    told = tenant.rows("SELECT count(*) AS told FROM history WHERE tenant_id = %(tenant)s AND actor = 'job:reconcile'")
    return found | {
        "told": told[0]["told"],
        "versions": sum(
            row["version"] for row in tenant.rows("SELECT version FROM memories WHERE tenant_id = %(tenant)s")
        ),
    }


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
        for name in ("execute", "changed"):
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
        assert written == {"job_runs", "relations"}  # the control

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
        monkeypatch.setattr(repairing, "BATCH", 3)
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
        assert whole["told"] == 1
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
        assert everything(tenant)["told"] == 1

    def test_goes_on_where_it_was(
        self, tenant: Tenant, caller: Caller, night: Night, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """In batches of one, each part behind the last place."""
        for module, names in ((repairing, ("BATCH",)), (repairing_graph, ("BATCH", "PLACED", "LINKED"))):
            for name in names:
                monkeypatch.setattr(module, name, 1)
        wanted = damaged(tenant, caller)
        for batches in (1, 2, 3):
            with pytest.raises(Stopped):
                night.run("reconcile", progress=after_batches(batches))
        found = night.counts("reconcile")
        assert {kind: count for kind, count in found.items() if count and kind != "seen"} == wanted


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

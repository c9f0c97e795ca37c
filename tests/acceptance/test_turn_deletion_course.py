"""Who may delete a turn, once and whole; it does not come back, and its words are nowhere."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from memplane.application.jobs import session_jobs
from memplane.application.memories.gateway import Write
from memplane.application.turns import session_close
from memplane.application.turns.session_close import SessionCloseResult, SessionReading
from memplane.client import Forbidden, MemplaneSync, NotFound
from memplane.domain.identity.principal import KeyScope, Principal
from memplane.domain.policy.capabilities import Capability
from memplane.domain.policy.policy import Trust
from support.callers import THREAD, USER, Caller, Tenant, refused
from support.killing import killed_after
from support.nights import NOON, Night, Stopped, state
from support.serving import RunningServer
from support.telling import write
from support.transfer import OPERATING, exported, of, restored, taken

SAID = "My sister is called Ingrid."
FACT = "The user's sister is called Ingrid."
TURN = {"user_id": USER, "thread_id": THREAD, "role": "user", "text": SAID}
EVERYTHING = (
    "turns", "memories", "history", "change_log", "events", "tombstones", "consent_proposals", "context_signals",
    "user_context", "idempotency_keys", "thread_revision", "memory_sources", "sessions",
)  # fmt: skip


def path(turn: object) -> str:
    return f"/v1/turns/{turn}"


def said(caller: Caller, text: str = SAID, **fields: object) -> str:
    return str(caller.say(text, **fields)["turn_id"])


def keyed(caller: Caller, method: str, where: str, key: str, **more: Any) -> Any:  # noqa: ANN401 - the response
    return caller.send(method, where, headers={"Idempotency-Key": key}, **more)


class TestWho:
    """A fully trusted key with an agent that reads and writes turns, of the turn's own user and tenant."""

    def test_each_lesser_key_is_refused_and_nothing_changes(self, tenant: Tenant, supervisor: Caller) -> None:
        turn = said(supervisor)
        before = tenant.count(*EVERYTHING)
        refused(tenant.caller("supervisor", trust="inner").delete(path(turn)), 403, "trust_too_low")
        refused(tenant.caller("planner").delete(path(turn)), 403, "category_forbidden")
        reader = tenant.caller("supervisor", scopes=(KeyScope.READ,))
        refused(reader.delete(path(turn)), 403, "scope_forbidden")
        refused(supervisor.send("DELETE", path(turn), params={"agent": "planner"}), 403, "agent_forbidden")
        refused(tenant.caller("supervisor", users=["ben"]).delete(path(turn)), 404, "not_found")
        refused(supervisor.delete(path(uuid4())), 404, "not_found")
        assert tenant.count(*EVERYTHING) == before
        assert supervisor.delete(path(turn)).status_code == 200
        refused(supervisor.delete(path(turn)), 404, "not_found")

    @pytest.mark.needs(Capability.SEVERAL_TENANTS)
    def test_another_tenants_is_absent(self, supervisor: Caller, other_tenant: Tenant) -> None:
        stranger = other_tenant.caller("supervisor")
        turn = said(stranger)
        foreign, absent = (refused(supervisor.delete(path(each)), 404, "not_found") for each in (turn, uuid4()))
        assert foreign == absent
        assert stranger.delete(path(turn)).status_code == 200

    def test_a_memory_is_no_turn(self, tenant: Tenant, supervisor: Caller) -> None:
        memory = supervisor.remember("The hall is booked.")
        refused(supervisor.delete(path(memory)), 404, "not_found")
        assert state(tenant, memory) == "active"

    def test_the_client_and_its_errors(self, tenant: Tenant, supervisor: Caller) -> None:
        turn, other = said(supervisor), said(supervisor, "I love green tea.")
        with MemplaneSync(tenant.server.url, supervisor.credential or "") as client:
            done = client.delete_turn(turn)
            assert (done.outcome, done.turn_id) == ("deleted", UUID(turn))
            with pytest.raises(NotFound):
                client.delete_turn(UUID(turn))
        low = tenant.caller("supervisor", trust="inner")
        with MemplaneSync(tenant.server.url, low.credential or "") as client, pytest.raises(Forbidden):
            client.delete_turn(other)


class TestOnce:
    """A request that is sent again has one effect; one that ends in the middle has none."""

    def test_sent_again(self, tenant: Tenant, supervisor: Caller) -> None:
        turn = said(supervisor)
        first, again = (keyed(supervisor, "DELETE", path(turn), "k") for _ in range(2))
        assert (first.status_code, again.status_code, again.json()) == (200, 200, first.json())
        assert again.headers["Idempotency-Replayed"] == "true"
        refused(keyed(supervisor, "DELETE", path(turn), "other"), 404, "not_found")
        assert supervisor.get(f"/v1/threads/{THREAD}/delta").json()["rev"] == first.json()["rev"]
        assert tenant.count("turns") == 0

    def test_numbers_are_not_issued_again(self, supervisor: Caller) -> None:
        said(supervisor)
        last = supervisor.say("I love green tea.")
        done = supervisor.delete(path(last["turn_id"])).json()
        following = supervisor.say("I love green tea.")
        assert following["seq"] == last["seq"] + 1
        assert following["rev"] == done["rev"] + 1
        assert following["turn_id"] != last["turn_id"]

    def test_ended_after_any_statement_nothing_is_done_and_then_all(self, tenant: Tenant, supervisor: Caller) -> None:
        said(supervisor)
        turn = said(supervisor, SAID.replace("is called", "'s name is").replace(" 's", "'s"))
        supervisor.post(f"/v1/sessions/{THREAD}/close", {"user_id": USER}).raise_for_status()
        wired = tenant.server.wired
        who = Principal(tenant.name, "supervisor", Trust.FULL, frozenset(KeyScope), "test")

        def everything() -> dict[str, list[str]]:
            return {
                name: sorted(str(row) for row in tenant.rows(f"SELECT * FROM {name} WHERE tenant_id = %(tenant)s"))
                for name in EVERYTHING
            }

        before = everything()
        for statements in range(0, 200, 3):
            with killed_after(statements, anywhere=True):
                try:
                    done = tenant.server.run(wired.delete_turn(who, UUID(turn)))
                    break
                except Stopped:
                    pass
            assert everything() == before
        assert statements > 10
        assert done.turn_id == UUID(turn)
        assert len(everything()["turns"]) == 1
        (left,) = supervisor.get("/v1/memories", user_id=USER, type="semantic").json()["items"]
        assert left["content"] == FACT

    def test_a_summary_that_was_read_before_is_not_stored(
        self, tenant: Tenant, supervisor: Caller, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The night has read the conversation, and the turn is deleted before it writes."""
        turn = said(supervisor, "We decided to sell the quokka piano.")
        said(supervisor, "Can you plan the move to Lisbon?")
        deleted: list[int] = []

        async def late(write: Write, read: SessionReading, thread: str, agent: str) -> SessionCloseResult:
            return await session_close.note_close(write, read, thread, agent)

        reads = type(tenant.server.wired.close_session).read_session

        async def read(*given: Any) -> SessionReading:  # noqa: ANN401 - as it came
            found: SessionReading = await reads(*given)
            if not deleted:
                who = Principal(tenant.name, "supervisor", Trust.FULL, frozenset(KeyScope), "test")
                deleted.append((await tenant.server.wired.delete_turn(who, UUID(turn))).rev)
            return found

        monkeypatch.setattr(session_jobs, "note_close", late)
        monkeypatch.setattr(type(tenant.server.wired.close_session), "read_session", read)
        assert Night(tenant, NOON + timedelta(days=1)).counts("sessions") == {"closed": 1, "summaries": 1}
        (summary,) = supervisor.get("/v1/memories", user_id=USER, type="episodic").json()["items"]
        assert "quokka" not in str(supervisor.get(f"/v1/memories/{summary['id']}").json())
        assert "plan the move" in summary["content"]


class TestStaysGone:
    """Under its name and under its id; its words may be said anew."""

    def test_its_name_is_refused_in_its_thread_alone(self, tenant: Tenant, supervisor: Caller) -> None:
        turn = supervisor.post("/v1/turns", TURN | {"external_id": "msg-1"}).json()["turn_id"]
        assert supervisor.delete(path(turn)).status_code == 200
        problem = refused(supervisor.post("/v1/turns", TURN | {"external_id": "msg-1"}), 409, "value_rejected")
        assert problem["field"] == "external_id"
        batch = {"turns": [TURN | {"external_id": "msg-2"}, TURN | {"external_id": "msg-1"}]}
        refused(supervisor.post("/v1/turns:batch", batch), 409, "value_rejected")
        assert tenant.count("turns") == 0
        for other in ({"external_id": "msg-2"}, {}, {"external_id": "msg-1", "thread_id": "b"}):
            assert supervisor.post("/v1/turns", TURN | other).status_code == 201
        assert supervisor.post("/v1/turns", TURN | {"external_id": "msg-1", "user_id": "ben"}).status_code == 201
        assert FACT in str(supervisor.get("/v1/memories", user_id=USER).json())

    def test_an_older_export_brings_neither_it_nor_what_came_of_it(self, tenant: Tenant, supervisor: Caller) -> None:
        admin = tenant.caller("supervisor", scopes=OPERATING)
        turn = supervisor.post("/v1/turns", TURN | {"external_id": "msg-1"}).json()["turn_id"]
        said(supervisor, "I live in Lisbon.", external_id="msg-2")
        kept = said(supervisor, "I have a cat named Milo.")
        lines = exported(admin)
        assert len(of(lines, "turn")) == 3
        for each in tenant.rows("SELECT id FROM turns WHERE tenant_id = %(tenant)s"):
            if (found := str(UUID(str(each["id"])))) != kept:
                assert supervisor.delete(path(found)).status_code == 200
        assert admin.post("/v1/admin/purge", {"user_id": USER, "early": True}).json()["purged"] == 1
        before = tenant.count("turns", "memories", "consent_proposals")
        told = taken(admin, lines, mode="restore")
        outcomes = dict(zip([f"{line['record']} {line.get('id')}" for line in lines], told["outcomes"], strict=True))
        assert outcomes[f"turn {turn}"] == "refused"
        assert {outcomes[each] for each in outcomes if each.startswith("proposal")} == {"refused"}
        assert outcomes[f"turn {kept}"] == "unchanged"
        assert tenant.count("turns", "memories", "consent_proposals") == before
        added = [dict(line, id=str(uuid4())) for line in of(lines, "turn") if line["id"] != kept]
        assert restored(admin, added) == {"refused": 2}  # by their names
        assert FACT not in str(supervisor.get("/v1/memories", user_id=USER).json())

    def test_the_names_stay_refused_when_the_user_was_erased(self, tenant: Tenant, admin: Caller) -> None:
        agent = tenant.caller("supervisor")
        turn = agent.post("/v1/turns", TURN | {"external_id": "msg-1"}).json()["turn_id"]
        assert agent.delete(path(turn)).status_code == 200
        assert admin.post(f"/v1/users/{USER}/erase", {"confirm": USER}).json()["finished"]
        again = TURN | {"text": "Hello there, it is me."}
        refused(agent.post("/v1/turns", again | {"external_id": "msg-1"}), 409, "value_rejected")
        assert agent.post("/v1/turns", again | {"external_id": "msg-2"}).status_code == 201


def scanned(tenant: Tenant, word: str) -> set[str]:
    """The tables of which a row of the tenant holds a word in whatever column; those of search material in hex."""
    found = set()
    for table in tables_of(tenant):
        rows = tenant.rows(f"SELECT * FROM {table} WHERE tenant_id = %(tenant)s")
        texts = (value.hex() if isinstance(value, bytes) else str(value) for row in rows for value in row.values())
        if any(word in text.lower() or word.encode().hex() in text for text in texts):
            found.add(table)
    return found


def tables_of(tenant: Tenant) -> list[str]:
    if hasattr(tenant.server.database, "admin_url"):
        with psycopg.connect(tenant.server.database.admin_url) as connection:
            listed = connection.execute(
                "SELECT table_name FROM information_schema.columns"
                " WHERE table_schema = 'public' AND column_name = 'tenant_id'"
            )
            return [row[0] for row in listed]
    listed = tenant.rows("SELECT name FROM sqlite_schema WHERE type = 'table' AND %(tenant)s <> ''")
    names = [row["name"] for row in listed]
    columns = {name: tenant.rows(f"PRAGMA table_info({name}) -- %(tenant)s") for name in names}
    return [name for name, its in columns.items() if "tenant_id" in [each["name"] for each in its]]


def test_its_words_are_nowhere_but_in_what_waits_for_its_purge(
    start_server: Callable[..., RunningServer],
) -> None:
    tenant = Tenant(start_server())
    admin = tenant.caller("supervisor", scopes=OPERATING)
    turns = {}
    for nth, name in enumerate(("quokka", "wombat")):
        thread = {"thread_id": f"t-{nth}"}
        text = f"My sister is called {name.title()}. I love {name} tea. I live in {name.title()}ville."
        body = TURN | thread | {"text": text}
        turns[name] = keyed(admin, "POST", "/v1/turns", f"one-{nth}", json=body).json()["turn_id"]
        other = TURN | thread | {"text": f"I want to learn {name}ese.", "user_id": "ben"}
        batch = {"turns": [body | {"text": f"We decided to feed the {name}."}, other]}
        more = keyed(admin, "POST", "/v1/turns:batch", f"many-{nth}", json=batch).json()["items"]
        turns[f"{name} too"], turns[f"{name} of ben"] = (each["turn_id"] for each in more)
        assert (
            keyed(admin, "POST", f"/v1/sessions/t-{nth}/close", f"c-{nth}", json={"user_id": USER}).status_code == 200
        )
        write(admin, f"Ben knows a {name}.", user_id="ben", source_ids=[turns[name]])
        admin.ask(f"{name} tea", filters={"user_id": USER})
    everywhere = {"turns", "memories", "history", "entities", "consent_proposals", "idempotency_keys"}
    assert (scanned(tenant, "quokka"), scanned(tenant, "wombat")) == (everywhere, everywhere)
    for each in ("quokka", "quokka too", "quokka of ben"):
        assert admin.delete(path(turns[each])).status_code == 200
    assert scanned(tenant, "quokka") == {"memories", "history", "entities"}
    active = "SELECT content FROM memories WHERE tenant_id = %(tenant)s AND state = 'active'"
    assert not any("quokka" in row["content"].lower() for row in tenant.rows(active))
    for user in (USER, "ben"):
        assert admin.post("/v1/admin/purge", {"user_id": user, "early": True}).status_code == 200
    assert (scanned(tenant, "quokka"), scanned(tenant, "wombat")) == (set(), everywhere)
    again = keyed(admin, "POST", "/v1/turns", "one-0", json=TURN | {
        "thread_id": "t-0", "text": "My sister is called Quokka. I love quokka tea. I live in Quokkaville.",
    })  # fmt: skip
    assert (again.json()["turn_id"], again.json()["extracted"]) == (turns["quokka"], [])
    assert again.headers["Idempotency-Replayed"] == "true"

"""What an export has, for whom, and how one that was cut off shows."""

import asyncio
import threading
from collections.abc import Callable
from datetime import UTC, datetime

import httpx2
import pytest
from pydantic import TypeAdapter

from memplane.application.transfer import exports
from memplane.contracts.transfer import Line
from memplane.domain.policy.capabilities import Capability
from support.callers import THREAD, USER, Caller, Json, Tenant, refused
from support.serving import RunningServer
from support.telling import write
from support.transfer import OPERATING, exported, of, whole_life

PIANO, BOAT = "The user owns a piano.", "The user sails a boat."


def contents(lines: list[Json]) -> set[str]:
    return {line["content"] for line in of(lines, "memory")}


class TestContents:
    """All that is known of a user is in it."""

    def test_every_record_in_every_state(self, tenant: Tenant, caller: Caller, admin: Caller) -> None:
        made = whole_life(tenant, caller, admin)
        write(caller, "The user keeps bees.", user_id="ben")
        lines = exported(admin)
        memories = {line["id"]: line for line in of(lines, "memory")}
        states = {name: (memories[each]["state"], memories[each]["trust_state"]) for name, each in made.items()}
        assert states == {
            "active": ("active", "confirmed"), "deleted": ("soft_deleted", "candidate"),
            "rejected": ("soft_deleted", "rejected"), "archived": ("archived", "candidate"),
            "superseded": ("superseded", "candidate"), "newer": ("active", "candidate"),
        }  # fmt: skip
        first = memories[made["active"]]
        assert (first["tags"], first["importance"], first["attributes"]) == (["music"], 5, {"keys": 88})
        assert ["person", "Ana Ruiz"] in first["entities"]
        assert memories[made["superseded"]]["superseded_by"] == made["newer"]
        assert [line["text"] for line in of(lines, "turn")] == ["When is the release?", "I prefer short answers."]
        assert [(line["name"], line["aliases"]) for line in of(lines, "entity") if line["name"] == "Ana Ruiz"] == [
            ("Ana Ruiz", ["Annie"])
        ]
        assert (made["active"], made["newer"]) in [(each["from_id"], each["to_id"]) for each in of(lines, "relation")]
        told = {line["event"] for line in of(lines, "history") if line["memory_id"] == made["active"]}
        assert told == {"ADD", "CONFIRM"}
        assert [(line["field"], line["new_value"], line["state"]) for line in of(lines, "proposal")] == [
            ("city", "Oslo", "approved")
        ]
        assert [(line["field"], line["field_value"]) for line in of(lines, "field")] == [("city", "Oslo")]
        assert {line["reason"] for line in of(lines, "tombstone")} == {"rejected"}
        assert "bees" not in str(lines)  # and the control: the other user's has it
        assert contents(exported(admin, "ben")) == {"The user keeps bees."}

    def test_every_line_is_as_the_contract_has_it(self, tenant: Tenant, caller: Caller, admin: Caller) -> None:
        whole_life(tenant, caller, admin)
        kinds = TypeAdapter[Line](Line)
        read = [kinds.validate_python(line) for line in exported(admin)]
        assert {each.record for each in read} == {
            "header", "turn", "entity", "memory", "relation", "history", "proposal", "field", "tombstone", "end",
        }  # fmt: skip

    def test_a_user_whom_nobody_knows_has_nothing(self, admin: Caller) -> None:
        lines = exported(admin, "zoe")
        assert [line["record"] for line in lines] == ["header", "end"]
        assert lines[0]["user"] == "zoe"

    def test_it_names_no_tenant_and_shows_no_secret(self, tenant: Tenant, caller: Caller, admin: Caller) -> None:
        write(caller, PIANO)
        response = admin.get(f"/v1/users/{USER}/export")
        assert response.headers["content-type"].startswith("application/x-ndjson")
        assert PIANO in response.text
        assert tenant.name == "default" or tenant.name not in response.text
        assert (admin.credential or "").rsplit("_", 1)[1] not in response.text

    def test_page_after_page_nothing_is_missing_or_doubled(
        self, caller: Caller, admin: Caller, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for number in range(7):
            write(caller, f"Person{number} Adams met Team{number} Baker in hall {number}.", type="episodic")
            caller.say(f"Turn {number}.", thread_id=f"t{number % 3}", auto_extract=False)
        whole = exported(admin)
        monkeypatch.setattr(exports, "PAGE", 2)
        paged = exported(admin)
        assert len(of(paged, "memory")) == len(of(paged, "turn")) == 7
        assert sorted(map(str, paged[1:])) == sorted(map(str, whole[1:]))
        places = [(line["thread_id"], line["seq"]) for line in of(paged, "turn")]
        assert places == sorted(places)


class TestAccess:
    """Who may: a fully trusted administrator, as far as agent and users reach."""

    def test_scope_trust_and_users(self, tenant: Tenant, caller: Caller) -> None:
        write(caller, PIANO)
        path = f"/v1/users/{USER}/export"
        refused(caller.get(path), 403, "scope_forbidden")
        refused(tenant.caller("supervisor", trust="inner", scopes=OPERATING).get(path), 403, "trust_too_low")
        bound = tenant.caller("supervisor", users=["ben"], scopes=OPERATING)
        assert refused(bound.get(path), 403, "user_forbidden") == {
            **refused(bound.get("/v1/users/zoe/export"), 403, "user_forbidden")
        }
        refused(tenant.caller(None, act_for=["planner"], scopes=OPERATING).get(path), 403, "agent_forbidden")
        mine = tenant.caller("supervisor", users=[USER], scopes=OPERATING)
        assert contents(exported(mine)) == {PIANO}  # the control

    def test_an_agent_s_key_gets_its_categories_and_an_operator_s_all(self, tenant: Tenant, admin: Caller) -> None:
        planner, supervisor = tenant.caller("planner", scopes=OPERATING), tenant.caller("supervisor")
        write(planner, "Ana Ruiz plans a garden.", "projects")
        write(supervisor, "Bodo Stern owns a boat.", "event")
        supervisor.say("Who owns it?")
        lines = exported(planner)
        assert contents(lines) == {"Ana Ruiz plans a garden."}
        assert [line["name"] for line in of(lines, "entity")] == ["Ana Ruiz"]
        assert of(lines, "turn") == []
        assert "Bodo" not in str(lines)
        assert lines[0]["categories"] == ["goals", "tasks", "projects"]
        assert contents(exported(admin)) == {"Ana Ruiz plans a garden.", "Bodo Stern owns a boat."}
        assert contents(exported(admin, agent="planner")) == {"Ana Ruiz plans a garden."}
        refused(planner.get(f"/v1/users/{USER}/export", agent="supervisor"), 403, "agent_forbidden")

    @pytest.mark.needs(Capability.SEVERAL_TENANTS)
    def test_another_tenant_s_user_is_one_whom_nobody_knows(
        self, other_tenant: Tenant, caller: Caller, admin: Caller
    ) -> None:
        write(caller, PIANO)
        stranger = other_tenant.caller(None, act_for=["*"], scopes=OPERATING)
        assert [line["record"] for line in exported(stranger)] == ["header", "end"]
        assert contents(exported(admin)) == {PIANO}  # the control


class TestStream:
    """It is one look at the database, and one that ends early can be told."""

    def test_what_is_written_meanwhile_is_not_in_it(
        self, caller: Caller, admin: Caller, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(exports, "PAGE", 1)
        first = write(caller, PIANO)["id"]
        begun, go_on = threading.Event(), threading.Event()
        real = exports._entities  # they come before memories

        async def waiting(reader: object, scope: object) -> object:
            begun.set()
            await asyncio.to_thread(go_on.wait, 30)
            async for page in real(reader, scope):  # type: ignore[arg-type]  # what it was given
                yield page

        monkeypatch.setattr(exports, "_entities", waiting)
        caller.say("Hello there.", auto_extract=False)
        found: list[list[Json]] = []
        thread = threading.Thread(target=lambda: found.append(exported(admin)))
        thread.start()
        assert begun.wait(30)
        write(caller, BOAT)
        assert caller.delete(f"/v1/memories/{first}").status_code == 200
        go_on.set()
        thread.join(30)
        assert [(line["content"], line["state"]) for line in of(found[0], "memory")] == [(PIANO, "active")]
        monkeypatch.setattr(exports, "_entities", real)
        assert {line["state"] for line in of(exported(admin), "memory")} == {"active", "soft_deleted"}  # the control

    def test_one_that_fails_has_no_end(self, caller: Caller, admin: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
        write(caller, PIANO)

        async def failing(*_: object) -> object:
            raise RuntimeError("the disk is gone")
            yield

        assert exported(admin)[-1]["record"] == "end"  # the control
        monkeypatch.setattr(exports, "_relations", failing)
        with pytest.raises(httpx2.TransportError):
            admin.get(f"/v1/users/{USER}/export")
        monkeypatch.undo()
        assert exported(admin)[-1]["record"] == "end"  # its place was given back

    def test_so_many_at_a_time_and_a_place_is_given_back(
        self, start_server: Callable[..., RunningServer], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(exports, "PAGE", 20)
        tenant = Tenant(start_server())
        caller, admin = tenant.caller("supervisor"), tenant.caller(None, act_for=["*"], scopes=OPERATING)
        text = "word " * 1_500
        turns = [
            {"user_id": USER, "thread_id": THREAD, "role": "tool", "text": f"{number} {text}", "auto_extract": False}
            for number in range(1_500)
        ]
        for start in range(0, len(turns), 300):
            assert caller.post("/v1/turns:batch", {"turns": turns[start : start + 300]}).status_code == 201
        headers = {"Authorization": f"Bearer {admin.credential}"}
        path = f"/v1/users/{USER}/export"
        # more than sockets hold: a client that does not read keeps its export waiting
        with caller.client.stream("GET", path, headers=headers), caller.client.stream("GET", path, headers=headers):
            refused(admin.get(path), 503, "unavailable")
            assert len(caller.get("/v1/memories").json()["items"]) == 0  # others are served
        began = datetime.now(UTC)
        while (answer := admin.get(path)).status_code == 503:
            assert (datetime.now(UTC) - began).total_seconds() < 30
        assert answer.text.count('"record":"turn"') == 1_500

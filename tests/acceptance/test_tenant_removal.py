"""A tenant removed whole: refused from the first moment, gone from every table and dump, while its sibling stays."""

import hashlib
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from acceptance.test_erasure_canaries import EVERYWHERE, GONE, SCOPES, STAYS, dump, held, lived, ran
from memplane.adapters.files.tenant_tables import IN_USER_EXPORTS, LEFT_OUT
from memplane.application.jobs.job_records import Lease
from memplane.domain.errors import TenantRemoved
from memplane.domain.policy.capabilities import Capability
from support.callers import Caller, Tenant
from support.cluster import Database
from support.commands import Result, run
from support.serving import RunningServer
from support.telling import write
from support.transfer import exported, restored
from support.working import until

pytestmark = pytest.mark.needs(Capability.SEVERAL_TENANTS)


@dataclass
class Operator:
    """One with access to the database, and a ledger."""

    database: Database
    ledger: Path

    def run(self, *arguments: str, **more: Any) -> Result:  # noqa: ANN401 - of a command
        """Run a command of `memplane tenants`, or another one that is named whole."""
        environment = {
            "MEMPLANE_DATABASE_URL": self.database.url,
            "MEMPLANE_MIGRATION_URL": self.database.owner_url,
            "MEMPLANE_ERASURE_LEDGER": str(self.ledger),
        }
        return run(*arguments, environment=environment, **more)

    def remove(self, tenant: Tenant, *more: str) -> dict[str, Any]:
        """Remove a tenant, which must succeed; the receipt."""
        done = self.run("tenants", "remove", tenant.name, "--yes", "--json", *more)
        assert done.code == 0, done.err
        return dict(done.document)

    def noted(self) -> list[dict[str, Any]]:
        """The lines of the ledger."""
        return [json.loads(line) for line in self.ledger.read_text().splitlines()] if self.ledger.exists() else []


@pytest.fixture
def server(start_server: Callable[..., RunningServer], tmp_path: Path) -> RunningServer:
    return start_server(erasure_ledger=tmp_path / "erasures.jsonl")


@pytest.fixture
def operator(server: RunningServer, tmp_path: Path) -> Operator:
    assert isinstance(server.database, Database)
    return Operator(server.database, tmp_path / "erasures.jsonl")


def life(server: RunningServer, name: str) -> tuple[Tenant, Caller]:
    """A tenant with a user whose name and words are everywhere, and its administrator."""
    made = Tenant(server)
    admin = made.caller(None, act_for=["*"], scopes=SCOPES)
    made.caller("supervisor", users=[f"user-{name}"])
    lived(made.caller("supervisor", act_for=["*"], scopes=SCOPES), name)
    ran(made, name)
    server.run(server.wired._accesses.flush())
    return made, admin


@pytest.fixture
def both(server: RunningServer) -> tuple[tuple[Tenant, Caller], tuple[Tenant, Caller]]:
    """The tenant that goes and the one that stays."""
    return life(server, GONE), life(server, STAYS)


Both = tuple[tuple[Tenant, Caller], tuple[Tenant, Caller]]


def counted(tenant: Tenant) -> dict[str, int]:
    """How many rows a tenant has, by the table; of every table of the catalogue with tenants."""
    named = tenant.rows(
        "SELECT c.table_name AS name FROM information_schema.columns c JOIN pg_class t ON t.relname = c.table_name"
        " WHERE c.column_name = 'tenant_id' AND c.table_schema = 'public' AND t.relkind IN ('r', 'p')"
        " AND %(tenant)s <> ''"
    )
    counts = {
        row["name"]: tenant.rows(f"SELECT count(*) AS n FROM {row['name']} WHERE tenant_id = %(tenant)s")[0]["n"]
        for row in named
    }
    messages = "SELECT count(*) AS n FROM procrastinate.procrastinate_jobs WHERE args ->> 'tenant_id' = %(tenant)s"
    return counts | {"messages": tenant.rows(messages)[0]["n"]}


class TestRemoval:
    """What is gone, and what is not."""

    def test_nothing_is_left_but_the_receipt_and_the_sibling_is_untouched(
        self, both: Both, operator: Operator, tmp_path: Path
    ) -> None:
        (gone, _), (stays, sibling) = both
        before = counted(stays)
        assert held(gone, GONE) >= EVERYWHERE
        assert counted(gone)["messages"] > 0
        done = operator.remove(gone, "--by", "olga")
        assert {name for name, count in counted(gone).items() if count} == {"tenant_removals"}
        assert held(gone, GONE) == set()
        assert (done["counts"]["memories"] > 0, done["actor"], done["tenant"]) == (True, "olga", gone.name)
        assert counted(stays) == before
        assert held(stays, STAYS) >= EVERYWHERE
        assert sibling.ask(f"{STAYS} piano", filters={"user_id": f"user-{STAYS}"})["items"]
        content = dump(operator.database, tmp_path)
        assert GONE.encode() not in content.lower()
        assert STAYS.encode() in content.lower()

    def test_a_dry_run_counts_what_the_receipt_counts_and_changes_nothing(self, both: Both, operator: Operator) -> None:
        (gone, admin), _ = both
        before = counted(gone)
        dry = operator.run("tenants", "remove", gone.name, "--dry-run", "--json").document
        assert (dry["receipt"], dry["finished_at"]) == (None, None)
        assert counted(gone) == before
        assert admin.get("/v1/memories").status_code == 200
        assert operator.noted() == []
        done = operator.remove(gone)
        passing = {"unit_removals", "user_usage", "rate_limits"}  # triggers and requests change them meanwhile
        assert {k: n for k, n in done["counts"].items() if k not in passing} == {
            k: n for k, n in dry["counts"].items() if k not in passing
        }

    def test_the_receipt_has_the_head_of_the_history(self, both: Both, operator: Operator) -> None:
        (gone, _), _ = both
        assert operator.run("jobs", "run", "seal", "--tenant", gone.name).code == 0
        head = operator.run("audit", "head", "--tenant", gone.name, "--json").document
        done = operator.remove(gone)
        assert head["sealed"] > 0
        assert (done["history_head"], done["history_unsealed"]) == (head["head"], head["unsealed"])

    def test_asked_again_it_gives_the_same_receipt(self, both: Both, operator: Operator, tmp_path: Path) -> None:
        (gone, _), _ = both
        file = tmp_path / "receipt.json"
        done = operator.remove(gone, "--receipt", str(file))
        assert operator.remove(gone) == done
        assert json.loads(file.read_text())["receipt"] == done["receipt"]
        assert file.stat().st_mode & 0o777 == 0o600
        again = operator.run("tenants", "remove", gone.name, "--yes", "--receipt", str(file))
        assert (again.code, "already" in again.err) == (2, True)

    def test_an_unknown_tenant_is_told(self, operator: Operator) -> None:
        refused = operator.run("tenants", "remove", "nobody", "--yes", "--json")
        assert (refused.code, refused.document["error"]["code"]) == (1, "not_found")
        assert operator.noted() == []

    def test_the_name_is_typed_again(self, both: Both, operator: Operator) -> None:
        (gone, admin), _ = both
        command = ("tenants", "remove", gone.name)
        assert "add --yes" in operator.run(*command).err
        assert operator.run(*command, stdin="yes\n", terminal=True).code == 1
        assert admin.get("/v1/memories").status_code == 200
        assert operator.run(*command, stdin=f"{gone.name}\n", terminal=True).code == 0
        assert admin.get("/v1/memories").status_code == 401


class TestRefusal:
    """From the first moment on nothing is answered, whatever a process holds in memory."""

    def test_keys_are_refused_on_every_server_while_the_sibling_works(
        self, both: Both, operator: Operator, start_server: Callable[..., RunningServer]
    ) -> None:
        (gone, admin), (_, sibling) = both
        second = start_server()
        elsewhere = Caller(second.client, admin.credential)
        assert elsewhere.ask("piano", filters={"user_id": f"user-{GONE}"})["items"]
        operator.remove(gone)
        for caller in (admin, elsewhere):
            for answer in (
                caller.query("piano", filters={"user_id": f"user-{GONE}"}),
                caller.post("/v1/turns", {"user_id": "x", "thread_id": "t", "role": "user", "text": "Hello there."}),
                caller.get("/v1/memories"),
                caller.get("/v1/admin/policy"),
            ):
                assert answer.status_code == 401, answer.text
        assert sibling.ask(f"{STAYS} piano", filters={"user_id": f"user-{STAYS}"})["items"]

    def test_whoever_is_authenticated_already_is_refused_too(self, both: Both, operator: Operator) -> None:
        """The mark is there and nothing is deleted yet: reads, writes, jobs and lists know nothing of the tenant."""
        (gone, admin), (stays, _) = both
        server, agent = gone.server, gone.caller("supervisor", act_for=["*"], scopes=SCOPES)
        with psycopg.connect(operator.database.admin_url, autocommit=True) as connection:
            connection.execute(
                "INSERT INTO tenant_removals (tenant_id, id, actor, counts, head, unsealed, started_at)"
                " VALUES (%s, gen_random_uuid(), 'olga', '{}', '0:', 0, now())",
                (gone.name,),
            )
            for answer in (
                admin.query("piano", filters={"user_id": f"user-{GONE}"}),
                agent.post("/v1/memories", {"user_id": "x", "category": "event", "content": "The user has a dog."}),
                agent.send("PUT", "/v1/checkpoints/t", json={"user_id": "x", "agents": {}}),
                admin.get("/v1/stats"),
                admin.get(f"/v1/users/user-{GONE}/export"),
            ):
                assert answer.status_code == 401, answer.text
                assert answer.json()["code"] == TenantRemoved.code
            assert gone.name not in server.run(server.wired.storage.tenants())
            assert stays.name in server.run(server.wired.storage.tenants())
            assert not server.run(server.wired.storage.has_tenant(gone.name))  # by which tokens are refused
            assert server.run(server.wired.jobs.perform(gone.name, uuid4(), Lease("a worker", 1))) is None
            server.run(server.wired.key_uses.flush())
            server.run(server.wired._accesses.flush())
            server.run(server.wired.queue.schedule())
            connection.execute("DELETE FROM tenant_removals WHERE tenant_id = %s", (gone.name,))
        assert admin.ask("piano", filters={"user_id": f"user-{GONE}"})["items"]  # the control

    def test_the_name_is_not_used_again(self, both: Both, operator: Operator) -> None:
        (gone, _), _ = both
        operator.remove(gone)
        made = operator.run("keys", "create", "--tenant", gone.name, "--agent", "planner", "--json")
        assert (made.code, made.document["error"]["code"]) == (1, TenantRemoved.code)
        assert operator.run("keys", "create", "--tenant", "another", "--agent", "planner").code == 0  # the control

    def test_nothing_is_deleted_while_an_earlier_request_reads(self, both: Both, operator: Operator) -> None:
        (gone, admin), _ = both
        before = gone.count("memories", "turns")
        done: list[dict[str, Any]] = []
        with psycopg.connect(operator.database.url) as reading:
            reading.execute("SELECT set_config('memplane.tenant', %s, true)", (gone.name,))
            removing = threading.Thread(target=lambda: done.append(operator.remove(gone)))
            removing.start()
            until(lambda: admin.get("/v1/memories").status_code == 401, "the tenant is refused")
            assert gone.count("memories", "turns") == before
            assert done == []
        removing.join()
        assert done[0]["finished_at"]
        assert gone.count("memories", "turns") == 0


class TestLedger:
    """A restored backup does not bring the tenant back."""

    def test_a_restored_tenant_is_removed_again(
        self, server: RunningServer, operator: Operator, tmp_path: Path
    ) -> None:
        gone, admin = life(server, GONE)
        restored_later = backup(operator.database, gone)
        file = tmp_path / "receipt.json"
        done = operator.remove(gone, "--receipt", str(file))
        assert [(line["type"], line["finished_at"] is None) for line in operator.noted()] == [
            ("tenant_removal", True), ("tenant_removal", False),
        ]  # fmt: skip
        assert operator.run("tenants", "remove", "--replay", "--json").document["items"][0]["outcome"] == "known"
        assert operator.run("erase", "--replay", "--json").document == {"items": []}  # it passes them over
        restored_later()
        assert admin.get("/v1/memories").status_code == 200  # what the ledger is for
        refused = operator.run("erase", "--replay", "--json")
        assert (refused.code, "memplane tenants remove --replay" in refused.document["error"]["detail"]) == (1, True)
        (item,) = operator.run("tenants", "remove", "--replay", "--receipts", str(file), "--json").document["items"]
        assert (item["outcome"], item["receipt"]) == ("removed", done["receipt"])
        assert {name for name, count in counted(gone).items() if count} == {"tenant_removals"}
        assert admin.get("/v1/memories").status_code == 401
        assert operator.run("erase", "--replay").code == 0

    def test_a_backup_from_before_the_tenant_refuses_its_name(self, operator: Operator, tmp_path: Path) -> None:
        note = {
            "type": "tenant_removal", "tenant": "early", "subject": "early", "actor": "olga", "history_head": "0:",
            "receipt": "01900000-0000-7000-8000-000000000000", "history_unsealed": 0, "counts": {},
            "started_at": "2026-01-02T03:04:05+00:00", "finished_at": "2026-01-02T03:04:06+00:00",
        }  # fmt: skip
        file = tmp_path / "noted.jsonl"
        file.write_text(f"{json.dumps(note)}\n")
        (item,) = operator.run("tenants", "remove", "--replay", "--receipts", str(file), "--json").document["items"]
        assert item["outcome"] == "absent"
        assert operator.run("keys", "create", "--tenant", "early", "--agent", "planner").code == 1

    def test_without_a_ledger_a_receipt_is_needed(self, both: Both, operator: Operator, tmp_path: Path) -> None:
        (gone, admin), _ = both
        environment = {"MEMPLANE_MIGRATION_URL": operator.database.owner_url}
        named = environment | {"MEMPLANE_DATABASE_URL": operator.database.url}
        refused = run("tenants", "remove", gone.name, "--yes", environment=named)
        assert (refused.code, "--receipt" in refused.err) == (2, True)
        assert admin.get("/v1/memories").status_code == 200
        unowned = {"MEMPLANE_DATABASE_URL": operator.database.url}
        assert "MEMPLANE_MIGRATION_URL" in run("tenants", "remove", gone.name, "--yes", environment=unowned).err
        file = tmp_path / "receipt.json"
        done = run("tenants", "remove", gone.name, "--yes", "--receipt", str(file), environment=named)
        assert done.code == 0, done.err
        assert admin.get("/v1/memories").status_code == 401


def backup(database: Database, tenant: Tenant) -> Callable[[], None]:
    """Keeps the rows of a tenant; what puts them back, as they were, and forgets the removal."""
    with psycopg.connect(database.admin_url, autocommit=True) as connection:
        names = [name for name, count in counted(tenant).items() if count and name != "messages"]
        for name in names:
            connection.execute(f"CREATE TABLE kept_{name} AS SELECT * FROM {name} WHERE tenant_id = '{tenant.name}'")

    def restore() -> None:
        with psycopg.connect(database.admin_url) as connection:
            connection.execute("SET session_replication_role = replica")
            connection.execute("DELETE FROM tenant_removals")
            for name in names:
                columns = ", ".join(
                    row[0]
                    for row in connection.execute(
                        "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0"
                        " AND NOT attisdropped AND attgenerated = ''",
                        (name,),
                    )
                )
                connection.execute(f"INSERT INTO {name} ({columns}) SELECT {columns} FROM kept_{name}")
                connection.execute(f"DROP TABLE kept_{name}")

    return restore


class TestExport:
    """Before a removal: everything, in files that can be imported."""

    def test_it_has_every_user_and_comes_back_equal(self, both: Both, operator: Operator, tmp_path: Path) -> None:
        (gone, admin), (stays, _) = both
        write(gone.caller("supervisor"), "Zoe collects stamps.", user_id="zoe")
        out = tmp_path / "export"
        done = operator.run("tenants", "export", gone.name, "--out", str(out), "--json")
        assert done.code == 0, done.err
        manifest = json.loads((out / "manifest.json").read_text())
        assert {each["user"] for each in manifest["users"]} == {f"user-{GONE}", "zoe"}
        for each in (*manifest["users"], *manifest["tables"]):
            content = (out / each["file"]).read_bytes()
            assert (len(content), hashlib.sha256(content).hexdigest()) == (each["bytes"], each["sha256"])
        before = {each["user"]: stripped(exported(admin, each["user"])) for each in manifest["users"]}
        there = Tenant(gone.server)
        receiving = there.caller(None, act_for=["*"], scopes=SCOPES)
        events = 0
        for each in manifest["users"]:
            lines = (out / each["file"]).read_text().splitlines()
            assert stripped([json.loads(line) for line in lines]) == before[each["user"]]
            outcomes = restored(receiving, lines, each["user"])
            assert not outcomes["refused"], outcomes
            assert stripped(exported(receiving, each["user"])) == before[each["user"]]
            events += sum(json.loads(line)["record"] == "history" for line in lines)
        assert events
        text = b"".join(path.read_bytes() for path in out.rglob("*") if path.is_file())
        assert GONE.encode() in text
        assert STAYS.encode() not in text
        assert stays.count("memories") > 0

    def test_every_table_is_in_it_or_left_out_for_a_reason(
        self, both: Both, operator: Operator, tmp_path: Path
    ) -> None:
        (gone, _), _ = both
        out = tmp_path / "export"
        assert operator.run("tenants", "export", gone.name, "--out", str(out)).code == 0
        manifest = json.loads((out / "manifest.json").read_text())
        there = set(counted(gone)) - {"messages", "rate_limits", "unit_removals", "tenant_removals"}
        assert {each["table"] for each in manifest["tables"]} | IN_USER_EXPORTS | set(LEFT_OUT) == there
        keys = [json.loads(line) for line in (out / "tables" / "api_keys.jsonl").read_text().splitlines()]
        assert keys
        assert not any("secret" in name for key in keys for name in key)
        rows = {each["table"]: each["rows"] for each in manifest["tables"]}
        assert (rows["history"], rows["checkpoints"]) == (gone.count("history"), gone.count("checkpoints"))
        again = operator.run("tenants", "export", gone.name, "--out", str(out))
        assert (again.code, "not an empty folder" in again.err) == (2, True)
        assert operator.run("tenants", "export", "nobody", "--out", str(tmp_path / "no")).code == 1

    def test_what_no_policy_knows_is_told(self, both: Both, operator: Operator, tmp_path: Path) -> None:
        (gone, _), _ = both
        gone.rows(
            "UPDATE memories SET category = 'bygone' WHERE tenant_id = %(tenant)s AND id ="
            " (SELECT id FROM memories WHERE tenant_id = %(tenant)s LIMIT 1)"
        )
        done = operator.run("tenants", "export", gone.name, "--out", str(tmp_path / "export"), "--json")
        assert (done.code, done.document["missing"]) == (1, {"memories": 1})


def stripped(lines: list[dict[str, Any]]) -> list[str]:
    """Records of an export, in one order: without its moment, and without what an import adds to the history."""
    kept = []
    for line in lines:
        meta = line.get("meta", {})
        if line["record"] in {"header", "end"} or meta.get("imported"):
            continue
        added = ("key", "imported_by", "imported_key")
        kept.append(line | {"meta": {name: value for name, value in meta.items() if name not in added}})
    return sorted(json.dumps(line, sort_keys=True) for line in kept)

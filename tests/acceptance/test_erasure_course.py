"""An erasure in batches: what is written meanwhile, what interrupts it, what was derived, and a restored backup."""

import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest

from memplane.adapters.files.erasure_ledger import LedgerFile, read_ledger
from memplane.adapters.postgres.embedded.embedded_binaries import packaged_binaries
from memplane.application.erasure import user_erasure
from memplane.domain.identity.principal import KeyScope
from support.callers import THREAD, USER, Caller, Json, Tenant, refused
from support.cluster import Database, Databases
from support.damaging import past_the_rules
from support.files import File
from support.nights import Night
from support.serving import RunningServer, running_server
from support.telling import texts, write

OTHER = "ben"
ERASE = f"/v1/users/{USER}/erase"
OF_TENANT = "SELECT user_id FROM memories WHERE tenant_id = %(tenant)s"
WORDS = ("piano", "boat", "horse", "garden", "canoe", "kite", "lamp", "sled", "tent", "drum")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of a few rows."""
    monkeypatch.setattr(user_erasure, "BATCH", 3)
    monkeypatch.setattr(user_erasure, "ROWS", 7)


def erase(admin: Caller) -> Json:
    response = admin.post(ERASE, {"confirm": USER})
    assert response.status_code == 200, response.text
    return dict(response.json())


def left(tenant: Tenant, until: str) -> int:
    """Rows of the user that were recorded until a moment."""
    return sum(
        tenant.rows(
            f"SELECT count(*) AS n FROM {table} WHERE tenant_id = %(tenant)s AND user_id = %(user)s"
            f" AND {column} <= %(at)s",
            user=USER, at=until,
        )[0]["n"]
        for table, column in (("memories", "recorded_at"), ("turns", "recorded_at"), ("events", "ts"),
                              ("change_log", "ts"), ("supervisor_checkpoints", "updated_at"))
    )  # fmt: skip


def unfinished(tenant: Tenant) -> list[str]:
    rows = tenant.rows("SELECT id FROM erasures WHERE tenant_id = %(tenant)s AND finished_at IS NULL")
    return [str(row["id"]) for row in rows]


@pytest.mark.usefixtures("small")
class TestBatches:
    """Several transactions, and one receipt."""

    def test_the_receipt_adds_up(self, tenant: Tenant, supervisor: Caller, admin: Caller) -> None:
        for word in WORDS:
            write(supervisor, f"The user owns a {word}.", thread_id=THREAD)
            supervisor.say(f"The {word} is blue.")
        tenant.server.run(tenant.server.wired._accesses.flush())
        names = ("memories", "turns", "change_log", "events", "entities")
        before = {name: tenant.count(name) for name in names}
        receipt = erase(admin)
        assert receipt["finished"]
        assert {name: receipt["erased"].get(name, 0) for name in names} == before
        assert sum(tenant.count(name) for name in names) == 0

    def test_from_the_first_to_the_last_nothing_is_written(
        self, supervisor: Caller, admin: Caller, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for word in WORDS:
            write(supervisor, f"The user owns a {word}.")
        monkeypatch.setattr(user_erasure, "MOST_BATCHES", 1)
        first = erase(admin)
        assert not first["finished"]
        body = {"user_id": USER, "category": "event", "content": "The user collects stamps."}
        turn = {"user_id": USER, "thread_id": THREAD, "role": "user", "text": "Hello there."}
        state = {"user_id": USER, "agents": {"planner": {"step": 1}}}
        refused(supervisor.post("/v1/memories", body), 409, "user_erased")
        refused(supervisor.post("/v1/turns", turn), 409, "user_erased")
        refused(supervisor.send("PUT", f"/v1/checkpoints/{THREAD}", json=state), 409, "user_erased")
        assert supervisor.post("/v1/memories", body | {"user_id": OTHER}).status_code == 201  # the control
        done = first
        while not done["finished"]:
            done = erase(admin)
        assert (done["receipt"], done["erased"]["memories"]) == (first["receipt"], len(WORDS))
        assert supervisor.post("/v1/memories", body).status_code == 201
        assert supervisor.send("PUT", f"/v1/checkpoints/{THREAD}", json=state).status_code == 201

    def test_what_is_written_at_the_same_time_does_not_outlive_it(
        self, tenant: Tenant, supervisor: Caller, admin: Caller
    ) -> None:
        for word in WORDS:
            write(supervisor, f"The user owns a {word}.", thread_id=THREAD)
        ended, answers = threading.Event(), []

        def writes(name: str) -> None:
            for number in range(200):
                if ended.is_set():
                    return
                more = {"user_id": USER, "thread_id": f"{name}-{number}"}
                said = {"category": "event", "content": f"The user saw the {name} number {number}."}
                answers.append(supervisor.post("/v1/memories", said | more).status_code)
                answers.append(
                    supervisor.post("/v1/turns", {"role": "user", "text": f"{name} {number}"} | more).status_code
                )
                state = {"user_id": USER, "agents": {"planner": {"step": number}}}
                answers.append(supervisor.send("PUT", f"/v1/checkpoints/{name}-{number}", json=state).status_code)

        threads = [threading.Thread(target=writes, args=(name,)) for name in ("comet", "whale", "train")]
        for each in threads:
            each.start()
        try:
            receipt = erase(admin)
            while not receipt["finished"]:
                receipt = erase(admin)
        finally:
            ended.set()
            for each in threads:
                each.join()
        assert set(answers) <= {200, 201, 409}
        assert left(tenant, receipt["finished_at"]) == 0
        assert tenant.rows("SELECT count(*) AS n FROM memories WHERE tenant_id = %(tenant)s")[0]["n"] >= 0

    def test_one_that_failed_in_the_middle_goes_on(
        self, tenant: Tenant, supervisor: Caller, admin: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for word in WORDS:
            write(supervisor, f"The user owns a {word}.")
        wired = tenant.server.wired
        monkeypatch.setattr(wired.erase, "_ledger", LedgerFile(tmp_path))  # a folder, and no file
        refused(admin.post(ERASE, {"confirm": USER}), 503, "unavailable")
        assert tenant.count("memories") == len(WORDS)
        monkeypatch.setattr(wired.erase, "_ledger", LedgerFile(tmp_path / "ledger"))
        assert erase(admin)["erased"]["memories"] == len(WORDS)
        assert len(tenant.rows("SELECT id FROM erasures WHERE tenant_id = %(tenant)s")) == 1

    def test_one_that_nobody_asks_for_again_is_finished_by_itself(
        self, tenant: Tenant, supervisor: Caller, admin: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for word in WORDS:
            write(supervisor, f"The user owns a {word}.")
        write(supervisor, "The user owns a piano.", user_id=OTHER)
        monkeypatch.setattr(user_erasure, "MOST_BATCHES", 1)
        begun = erase(admin)
        rows = tenant.count("memories")
        assert not begun["finished"]
        ledger = LedgerFile(tmp_path / "ledger")
        monkeypatch.setattr(tenant.server.wired.gateway, "_ledger", ledger)
        night = Night(tenant)
        assert night.run("erasures", dry_run=True).counts == {"batches": 1, "finished": 0}
        assert (tenant.count("memories"), (tmp_path / "ledger").exists()) == (rows, False)
        done = night.run("erasures").counts
        assert done["finished"] == 1
        assert done["batches"] > 1
        assert [each["user_id"] for each in tenant.rows(OF_TENANT)] == [OTHER]
        (noted,) = {each["receipt"] for each in read_ledger(tmp_path / "ledger")}
        assert noted == begun["receipt"]
        (stored,) = tenant.rows("SELECT * FROM erasures WHERE tenant_id = %(tenant)s")
        assert (str(stored["id"]), stored["of_user"]) == (begun["receipt"], None)
        assert stored["counts"]["memories"] == len(WORDS)
        assert night.run("erasures").counts == done  # of the day: nothing more was left

    def test_one_that_fails_night_after_night_holds_up_no_other(
        self, tenant: Tenant, supervisor: Caller, admin: Caller, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for user in (USER, OTHER, "third"):
            for word in WORDS:
                write(supervisor, f"The user owns a {word}.", user_id=user)
        monkeypatch.setattr(user_erasure, "MOST_BATCHES", 1)
        stuck = erase(admin)["receipt"]
        assert admin.post(f"/v1/users/{OTHER}/erase", {"confirm": OTHER}).json()["finished"] is False
        subject = "UPDATE erasures SET subject = %(subject)s WHERE tenant_id = %(tenant)s AND id = %(id)s"
        (before,) = tenant.rows("SELECT * FROM erasures WHERE tenant_id = %(tenant)s AND id = %(id)s", id=UUID(stuck))
        past_the_rules(tenant, subject, id=UUID(stuck), subject="of no key")
        night = Night(tenant)
        dry = night.run("erasures", dry_run=True).counts
        assert dry == {"put_aside": 1, "batches": 1, "finished": 0}
        for _ in range(2):
            with pytest.raises(RuntimeError):
                night.run("erasures")  # the operator hears of it
            assert {each["user_id"] for each in tenant.rows(OF_TENANT)} == {USER, "third"}
            assert unfinished(tenant) == [stuck]
            night.now += timedelta(days=1)
        past_the_rules(tenant, subject, id=UUID(stuck), subject=before["subject"])
        assert night.run("erasures").counts["finished"] == 1
        assert {each["user_id"] for each in tenant.rows(OF_TENANT)} == {"third"}
        assert unfinished(tenant) == []


class TestDerived:
    """What other users' memories took from the user's."""

    def test_copies_go_with_their_words_and_what_came_of_them(
        self, tenant: Tenant, supervisor: Caller, admin: Caller
    ) -> None:
        source = write(supervisor, "The user owns a piano.")["id"]
        turn = supervisor.say("The sea was rough on Sunday.")["turn_id"]
        copies = [write(supervisor, "Ben heard of a piano.", user_id=OTHER, source_ids=[source])["id"]]
        copies.append(write(supervisor, "Ben heard of a rough sea.", user_id=OTHER, source_ids=[turn])["id"])
        copies.append(write(supervisor, "Cara was told of music.", user_id="cara", source_ids=copies[:1])["id"])
        own = write(supervisor, "Ben owns a boat.", user_id=OTHER)["id"]
        assert erase(admin)["erased"]["copies"] == 3
        assert {str(row["id"]) for row in tenant.rows("SELECT id FROM memories WHERE tenant_id = %(tenant)s")} == {own}
        rows = tenant.rows("SELECT * FROM history WHERE tenant_id = %(tenant)s")
        assert not [row for row in rows if any(word in str(row) for word in ("piano", "rough sea", "music"))]
        assert [row for row in rows if "owns a boat" in str(row)]  # the control
        told = [row for row in rows if row["event"] == "PURGE"]
        assert {row["meta"]["cause"] for row in told} == {"source_erased"}
        assert {UUID(str(row["memory_id"])) for row in told} == {UUID(each) for each in copies}


@contextmanager
def restored(server: RunningServer, databases: Databases, folder: Path, dump: Path) -> Iterator[RunningServer]:
    """A server on what a dump holds."""
    database = server.database
    if isinstance(database, File):
        with running_server(File(Path(shutil.copyfile(dump, folder / "restored.db")))) as running:
            yield running
        return
    made = databases.create(migrated=False)
    psql = packaged_binaries() / "psql"
    subprocess.run([psql, "--quiet", "--file", dump, made.admin_url], check=True, capture_output=True)
    with running_server(made) as running:
        yield running
    databases.drop(made)


def dumped(server: RunningServer, folder: Path) -> Path:
    database, target = server.database, folder / "older.dump"
    if isinstance(database, Database):
        program = packaged_binaries() / "pg_dump"
        if not program.exists():
            pytest.skip("pg_dump is not here")
        subprocess.run([program, "--file", target, database.admin_url], check=True)
    else:
        server.run(server.wired.storage.backup(target))
    return target


def test_a_restored_backup_follows_the_ledger(
    start_server: Callable[..., RunningServer], databases: Databases, tmp_path: Path
) -> None:
    ledger = tmp_path / "erasures.jsonl"
    server = start_server(erasure_ledger=ledger)
    tenant = Tenant(server)
    every = tuple(KeyScope)
    supervisor = tenant.caller("supervisor", act_for=["*"], scopes=every)
    for user in (USER, OTHER):
        write(supervisor, "The user owns a piano.", user_id=user, thread_id=THREAD)
        supervisor.say("The sea was rough on Sunday.", user_id=user)
    dump = dumped(server, tmp_path)
    write(supervisor, "The user has a sled.")  # which the backup does not have
    receipt = erase(supervisor)
    with restored(server, databases, tmp_path, dump) as again:
        old = Tenant(again)
        old.name = tenant.name
        caller = Caller(again.client, supervisor.credential, supervisor.key_id)
        mine = {"filters": {"user_id": USER}}
        assert "The user owns a piano." in texts(caller, **mine)  # the backup is older than the erasure
        (done,) = again.run(again.wired.replay(read_ledger(ledger)))
        assert (done.outcome, str(done.receipt)) == ("erased", receipt["receipt"])
        assert texts(caller, **mine) == set()
        assert len(texts(caller, filters={"user_id": OTHER})) >= 2  # the control
        for content in ("The user owns a piano.", "The user has a sled."):
            body = {"user_id": USER, "category": "event", "content": content, "event_time": "2025-01-01T00:00:00Z"}
            refused(caller.post("/v1/memories", body), 409, "value_rejected")
        write(caller, "The user collects stamps.")
        (known,) = again.run(again.wired.replay(read_ledger(ledger)))
        assert known.outcome == "known"
        assert texts(caller, **mine) == {"The user collects stamps."}  # what was said since is left alone
    saved = server.run(server.wired.replay.ledger_entries(tenant.name))
    assert {each["subject"] for each in saved} == {receipt["subject"]}

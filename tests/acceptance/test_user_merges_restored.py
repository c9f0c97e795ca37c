"""A backup from before or after a merge, with erasures done again from the ledger."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from acceptance.test_erasure_course import dumped, restored
from memplane.adapters.files.erasure_ledger import read_ledger
from memplane.domain.identity.principal import KeyScope
from support.callers import THREAD, USER, Caller, Tenant, refused
from support.cluster import Databases
from support.serving import RunningServer
from support.telling import texts, write

ANON, OTHER = "anon-7f3", "ben"
PIANO, BOAT, SLED = "The user owns a piano.", "The user sails a boat.", "The user has a sled."


@dataclass(frozen=True)
class Restoring:
    """A server with a ledger of erasures, and what it takes to restore an older state of it."""

    server: RunningServer
    databases: Databases
    folder: Path
    caller: Caller

    @property
    def ledger(self) -> Path:
        return self.folder / "erasures.jsonl"

    def dump(self) -> Path:
        return dumped(self.server, self.folder)

    @contextmanager
    def replayed(self, dump: Path) -> Iterator[Caller]:
        """A caller of the restored server, on which the erasures were done again, twice."""
        with restored(self.server, self.databases, self.folder, dump) as again:
            caller = Caller(again.client, self.caller.credential, self.caller.key_id)
            assert PIANO in of(caller, ANON) | of(caller, USER)  # the backup is older than the erasure
            again.run(again.wired.replay(read_ledger(self.ledger)))
            repeated = again.run(again.wired.replay(read_ledger(self.ledger)))
            assert {each.outcome for each in repeated} == {"known"}
            yield caller


@pytest.fixture
def restoring(start_server: Callable[..., RunningServer], databases: Databases, tmp_path: Path) -> Restoring:
    server = start_server(erasure_ledger=tmp_path / "erasures.jsonl")
    caller = Tenant(server).caller("supervisor", act_for=["*"], scopes=tuple(KeyScope))
    write(caller, PIANO, user_id=ANON)
    caller.say("The sea was rough on Sunday.", user_id=ANON, thread_id=THREAD)
    write(caller, BOAT)
    write(caller, SLED, user_id=OTHER)
    return Restoring(server, databases, tmp_path, caller)


def of(caller: Caller, user: str) -> set[str]:
    answer = caller.query(filters={"user_id": user})
    return set() if answer.status_code == 409 else texts(caller, filters={"user_id": user})


def done(caller: Caller, path: str, **body: object) -> None:
    answer = caller.post(f"/v1/users/{path}", body)
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("merged_first", [False, True])
def test_an_erasure_after_the_merge_reaches_both_names(restoring: Restoring, merged_first: bool) -> None:
    """Whether the backup is older than the merge or not."""
    dump = None if merged_first else restoring.dump()
    done(restoring.caller, f"{ANON}/merge", into=USER)
    dump = dump or restoring.dump()
    done(restoring.caller, f"{USER}/erase", confirm=USER)
    with restoring.replayed(dump) as caller:
        assert of(caller, ANON) == of(caller, USER) == set()
        assert of(caller, OTHER) == {SLED}  # the control
        for user in (ANON, USER):
            body = {"user_id": user, "category": "event", "content": PIANO, "event_time": "2025-01-01T00:00:00Z"}
            refused(caller.post("/v1/memories", body), 409, "value_rejected")
        assert caller.get("/v1/admin/user-merges").json()["items"] == []


def test_an_erasure_after_an_undone_merge_reaches_what_was_merged(restoring: Restoring) -> None:
    """The backup has the merge, which was undone before the user was erased."""
    done(restoring.caller, f"{ANON}/merge", into=USER)
    dump = restoring.dump()
    done(restoring.caller, f"{ANON}/unmerge")
    done(restoring.caller, f"{ANON}/erase", confirm=ANON)
    with restoring.replayed(dump) as caller:
        assert of(caller, ANON) == set()
        assert of(caller, USER) == {BOAT}
        assert of(caller, OTHER) == {SLED}  # the control

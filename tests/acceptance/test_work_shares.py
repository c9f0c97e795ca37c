"""Work on one tenant's texts takes that tenant's share of threads, and no request waits for it without an end."""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from memplane.application.limits.offload import THREADS
from memplane.application.memories import service
from memplane.domain.policy.capabilities import Capability
from support.callers import USER, Caller, Tenant, refused
from support.serving import RunningServer
from support.sockets import until

Start = Callable[..., RunningServer]
SLOW = "The slow hall"
FLOOD = 20


class Held:
    """Work on some texts, which goes on until the test says that it ends."""

    def __init__(self) -> None:
        self.end = threading.Event()
        self.at_work = 0
        self.most = 0
        self._lock = threading.Lock()

    def work(self) -> None:
        with self._lock:
            self.at_work += 1
            self.most = max(self.most, self.at_work)
        self.end.wait(120)
        with self._lock:
            self.at_work -= 1


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    made, prepare = Held(), service.prepare

    def prepared(*args: object, **kwargs: object) -> object:
        if SLOW in str(args):
            made.work()
        return prepare(*args, **kwargs)  # type: ignore[arg-type]  # as they came

    monkeypatch.setattr(service, "prepare", prepared)
    yield made
    made.end.set()


def slow(caller: Caller, number: int) -> httpx2.Response:
    body = {"user_id": USER, "category": "tasks", "content": f"{SLOW} {number} is booked."}
    return caller.post("/v1/memories", body)


@pytest.mark.needs(Capability.SEVERAL_TENANTS)
def test_a_flood_of_one_tenant_takes_no_thread_of_another(start_server: Start, held: Held) -> None:
    server = start_server(tenant_share=2, pool_size=8)
    loud, quiet = Tenant(server).caller(), Tenant(server).caller()
    with ThreadPoolExecutor(FLOOD) as pool:
        sent = [pool.submit(slow, loud, number) for number in range(FLOOD)]
        until(lambda: held.at_work == THREADS - 1)
        for number in range(5):
            quiet.remember(f"Hall {number} is booked.")
            assert quiet.query("hall").status_code == 200
        assert held.at_work == held.most == THREADS - 1  # the control: it is still at work
        assert not any(each.done() for each in sent)
        held.end.set()
        assert {each.result().status_code for each in sent} <= {201}


@pytest.mark.needs(Capability.SEVERAL_TENANTS)
def test_beside_others_a_tenant_has_its_share(start_server: Start, held: Held) -> None:
    server = start_server(tenant_share=2, pool_size=8)
    loud, quiet = Tenant(server).caller(), Tenant(server).caller()
    quiet.remember("The hall is booked.")
    with ThreadPoolExecutor(FLOOD) as pool:
        sent = [pool.submit(slow, loud, number) for number in range(FLOOD)]
        until(lambda: held.at_work == 1)
        for number in range(5):
            quiet.remember(f"Hall {number} has a door.")
        assert held.most == 1
        held.end.set()
        assert {each.result().status_code for each in sent} == {201}


class TestDeadline:
    """A request is answered in time, whether or not its work has ended."""

    def test_work_that_takes_too_long_is_not_waited_for(self, start_server: Start, held: Held) -> None:
        server = start_server(tenant_share=2, work_seconds=0.5)
        tenant = Tenant(server)
        caller = tenant.caller()
        for number in range(THREADS - 1):
            problem = refused(slow(caller, number), 503, "deadline_exceeded")
            assert "0.5 seconds" in problem["detail"]
        assert held.at_work == THREADS - 1  # it goes on, and keeps its place
        refused(slow(caller, 100), 503, "busy")
        assert held.most == THREADS - 1
        assert caller.query("hall").status_code == 200  # what needs no thread is answered
        held.end.set()
        until(lambda: held.at_work == 0)
        assert slow(caller, 101).status_code == 201
        assert tenant.count("memories") == 1  # what was refused is not stored afterwards

    def test_a_client_that_goes_away_gives_no_place_back(self, start_server: Start, held: Held) -> None:
        server = start_server(tenant_share=2, work_seconds=0.5)
        caller = Tenant(server).caller()
        for number in range(THREADS):
            with pytest.raises(httpx2.TimeoutException):
                caller.send(
                    "POST", "/v1/memories", timeout=0.2,
                    json={"user_id": USER, "category": "tasks", "content": f"{SLOW} {number} is booked."},
                )  # fmt: skip
        assert held.most <= THREADS - 1
        held.end.set()
        until(lambda: held.at_work == 0)
        assert caller.remember("The hall is booked.")


ENDLESS = """
import asyncio
from memplane.application.limits.offload import Workers

def endless():
    while True:
        pass

async def main():
    workers = Workers(2, 0.2)
    try:
        await workers.run("t", endless)
    except Exception as error:
        print(type(error).__name__)
    workers.close()

asyncio.run(main())
"""


def test_the_end_of_a_process_waits_for_no_work() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ENDLESS], cwd=Path(__file__).parents[2] / "platform", capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "DeadlineExceeded\n", "")

"""Changes of threads and events are pruned as the policy says, and who asks for older changes is told so."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from memplane.adapters.policy import shipped_policies
from memplane.domain.memory.delta import PRUNED
from support.callers import THREAD, USER, Caller, Tenant
from support.nights import NOON, Night
from support.serving import RunningServer

DELTA = f"/v1/threads/{THREAD}/delta"


def delta(caller: Caller, since: int) -> dict[str, Any]:
    found: dict[str, Any] = caller.get(DELTA, since=since).json()
    return found


def pruned(tenant: Tenant, days: int) -> dict[str, float]:
    return {"changes": 0, "events": 0} | Night(tenant, NOON + timedelta(days=days)).run("purge").counts


@pytest.fixture
def told(supervisor: Caller) -> int:
    """A thread in which three things changed; its revision."""
    for what in ("hall", "fence", "gate"):
        supervisor.remember(f"The user paints the {what}.", thread_id=THREAD)
    return int(delta(supervisor, 0)["rev"])


def test_before_their_time_nothing_is_pruned(supervisor: Caller, tenant: Tenant, told: int) -> None:
    events = tenant.count("events")
    counts = pruned(tenant, 80)
    assert (counts["changes"], counts["events"]) == (0, 0)
    found = delta(supervisor, 0)
    assert (found["rev"], found["pruned"], len(found["changes"])) == (told, False, 3)
    assert PRUNED not in found["header"]
    assert tenant.count("events") >= events


def test_who_asks_for_pruned_changes_is_told_to_load_again(supervisor: Caller, tenant: Tenant, told: int) -> None:
    assert pruned(tenant, 91)["changes"] == 3
    found = delta(supervisor, 0)
    assert (found["rev"], found["pruned"], found["changes"]) == (told, True, [])
    assert found["header"] == f"Memory updates since rev 0:\n{PRUNED}"
    answer = supervisor.ask("hall", thread_id=THREAD, since_rev=1)
    assert answer["delta"] == {"rev": told, "header": f"Memory updates since rev 1:\n{PRUNED}", "pruned": True}
    context = supervisor.post("/v1/context", {"user_id": USER, "thread_id": THREAD, "since_rev": 1}).json()
    assert context["delta"]["pruned"] is True
    assert PRUNED in context["prompt"]
    assert delta(supervisor, told) == {"rev": told, "header": None, "changes": [], "pruned": False}  # up to date


def test_what_changes_later_is_told_beside(supervisor: Caller, tenant: Tenant, told: int) -> None:
    pruned(tenant, 91)
    supervisor.remember("The user sells the boat.", thread_id=THREAD)
    late, early = delta(supervisor, told), delta(supervisor, told - 1)
    assert (late["pruned"], len(late["changes"])) == (False, 1)
    assert late["header"].split("\n")[1].startswith("- +created")
    assert (early["pruned"], len(early["changes"])) == (True, 1)
    assert [line == PRUNED for line in early["header"].split("\n")] == [False, True, False]
    assert delta(supervisor, 0)["rev"] == told + 1  # no revision is reissued


def test_a_thread_that_lost_nothing_is_as_it_was(supervisor: Caller, tenant: Tenant, told: int) -> None:
    pruned(tenant, 91)
    supervisor.remember("The user sells the boat.", thread_id="later")
    found = supervisor.get("/v1/threads/later/delta", since=0).json()
    assert (found["pruned"], len(found["changes"])) == (False, 1)
    assert told


def test_events_are_pruned(supervisor: Caller, tenant: Tenant) -> None:
    supervisor.remember("The user paints the hall.")
    assert tenant.count("events") > 0
    counts = pruned(tenant, 91)
    assert counts["events"] > 0
    assert tenant.count("events") == 0
    assert pruned(tenant, 92)["events"] == 0


def test_the_policy_says_how_long(start_server: Callable[..., RunningServer], tmp_path: Path) -> None:
    for path in shipped_policies().glob("*.yaml"):
        text = path.read_text().replace("{events_days: 90, changes_days: 90}", "{events_days: 5, changes_days: 20}")
        (tmp_path / path.name).write_text(text)
    tenant = Tenant(start_server(policies=tmp_path))
    caller = tenant.caller("supervisor")
    caller.remember("The user paints the hall.", thread_id=THREAD)
    counts = pruned(tenant, 10)
    assert (counts["events"] > 0, counts["changes"]) == (True, 0)
    assert pruned(tenant, 21)["changes"] == 1

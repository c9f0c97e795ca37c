"""`memplane stats`, `events`, `turns` and `policy` with a server, and the client's calls, on each kind of database."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.commands import Served, reachable_folder, serving
from memplane.adapters.policy_files import shipped_policies
from memplane.client import MemplaneSync

ABOUT = ("--user", "ana", "--thread", "planning")


@pytest.fixture(scope="module", params=["postgres", "sqlite"])
def served(request: pytest.FixtureRequest) -> Iterator[Served]:
    with reachable_folder() as folder, serving(folder, "--storage", request.param, "--port", "0") as running:
        for text in ("When is the hall free?", "And the small room?"):
            assert running.run("turn", text, *ABOUT).code == 0
        remembered = ("remember", "The hall opens at nine.", "--user", "ana", "--category", "event")
        assert running.run(*remembered).code == 0
        asked = running.run("query", "hall", *ABOUT, "--on-demand", "--json")
        assert asked.code == 0, asked.err
        assert running.run("query", "hall", *ABOUT).code == 0
        yield running


def test_statistics_are_shown(served: Served) -> None:
    found = served.run("stats", "--json").document
    assert (found["states"], found["categories"]) == ({"active": 1}, {"event": 1})
    asked = found["on_demand"]
    assert (asked["recalled"], asked["turns"], asked["queries"], asked["share"]) == (1, 2, 1, 0.5)
    told = served.run("stats", "--user", "ana")
    assert (told.code, "1 of 2 turns needed it, 50.0% (target under 10%)" in told.out) == (0, True), told.out
    planner = served.run("stats", "--agent", "planner", "--key", served.keys["planner"])
    assert "this agent reads no turns" in planner.out


def test_events_are_shown(served: Served) -> None:
    found = served.run("events", "--op", "recall_on_demand", "--json").document["items"]
    assert [(each["node"], each["user_id"], each["thread_id"]) for each in found] == [("context", "ana", "planning")]
    told = served.run("events", "--user", "ana", "--limit", "2")
    assert (told.code, "more" in told.out) == (0, True)
    assert served.run("events", "--node", "nowhere").code == 1


def test_turns_are_shown(served: Served) -> None:
    page = served.run("turns", "planning", "--limit", "1", "--json").document
    assert ([each["text"] for each in page["items"]], page["next"]) == (["And the small room?"], "2")
    first = served.run("turns", "planning", "--after", "0", "--limit", "1")
    assert "When is the hall free?" in first.out
    assert "--after 1" in first.out


def test_the_policy_of_a_server_is_shown_checked_and_reloaded(served: Served, tmp_path: Path) -> None:
    shown = served.run("policy", "show-server", "--json").document
    assert len(shown["files"]) == 8
    assert "supervisor" in served.run("policy", "show-server").out
    one = served.run("policy", "show-server", "--agent", "planner", "--json").document
    assert [each["agent"] for each in one["agents"]] == ["planner"]
    assert "supervisor" not in served.run("policy", "show-server", "--agent", "planner").out
    assert served.run("policy", "show-server", "--agent", "nobody").code == 1
    assert served.run("policy", "check-server").code == 0
    for path in shipped_policies().glob("*.yaml"):
        (tmp_path / path.name).write_text(path.read_text().replace("purge_days: 30", "purge_days: never"))
    wrong = served.run("policy", "check-server", "--policies", str(tmp_path))
    assert (wrong.code, "lifecycle.yaml" in wrong.out, "purge_days" in wrong.out) == (1, True, True)
    done = served.run("policy", "reload", "--json").document
    assert done == {"policy": shown["policy"], "before": shown["policy"], "changed": False}


def test_the_client_reads_many(served: Served) -> None:
    with MemplaneSync(served.url, served.keys["supervisor"]) as memory:
        (one,) = memory.list(user_id="ana")
        assert [each.id for each in memory.get_many([one.id, one.id]).items] == [one.id, one.id]
        assert [each.seq for each in memory.thread_turns("planning", before_seq=2).items] == [1]
        assert memory.stats(user_id="ana", days=7).on_demand is not None
        assert {each.memory_id for each in memory.all_events(memory_id=one.id, page_size=1)} == {one.id}

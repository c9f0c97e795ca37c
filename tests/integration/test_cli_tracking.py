"""`memplane stats`, `events`, `turns` and `policy` with a server, and the client's calls, on each kind of database."""

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from integration.commands import Served, reachable_folder, serving
from memplane.adapters.policy import shipped_policies
from memplane.client import MemplaneSync
from support.working import until

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
        searches = ("events", "--node", "context", "--json")  # they are written every two seconds
        until(lambda: len(running.run(*searches).document["items"]) == 2, "both searches are among the events")
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


def test_several_memories_are_shown_at_once_and_those_of_others_left_out(served: Served) -> None:
    task = served.run("remember", "The hall is swept on Friday.", "--user", "carl", "--category", "tasks", "--json")
    (event,) = served.run("list", "--user", "ana", "--json").document["items"]
    both = ("get", event["id"], task.document["id"], str(UUID(int=0)))
    found = served.run(*both, "--json")
    assert (found.code, [each["id"] for each in found.document["items"]]) == (0, [event["id"], task.document["id"]])
    told = served.run(*both)
    assert (event["content"] in told.out, "The hall is swept" in told.out, "2 of 3" in told.out) == (True, True, True)
    planner = served.run(*both, "--agent", "planner", "--json").document["items"]
    assert [each["id"] for each in planner] == [task.document["id"]]


def test_a_question_is_narrowed_by_every_filter(served: Served) -> None:
    about = ("--user", "dora", "--category", "goals", "--json")
    high = served.run("remember", "The lighthouse gets a new lamp.", *about, "--importance", "5", "--thread", "sea")
    low = served.run("remember", "The lighthouse keeper bakes bread.", *about, "--importance", "1")
    ids = {high.document["id"], low.document["id"]}

    def found(*narrowed: str) -> set[str]:
        asked = served.run("query", "lighthouse", *about, *narrowed)
        assert asked.code == 0, asked.err
        return {item["id"] for item in asked.document["items"]}

    assert found() == ids  # the control
    assert found("--importance-min", "3") == found("--of-thread", "sea") == {high.document["id"]}
    assert found("--importance-max", "3") == {low.document["id"]}
    assert found("--updated-after", "2020-01-01") == found("--updated-before", "2200-01-01") == ids
    assert found("--updated-before", "2020-01-01") == found("--updated-after", "2200-01-01") == set()


def test_a_question_leaves_out_what_is_related(served: Served) -> None:
    about = ("--user", "emil", "--category", "goals", "--json")
    for words in (
        "The user buried silver coins under the old oak tree in the yard.",
        "The user hides gold coins under the big oak tree in the garden.",
        *(f"The ring that {name} wears is made of gold." for name in ("Ada", "Bella", "Clara", "Doris")),
    ):
        assert served.run("remember", words, *about).code == 0
    asked = ("query", "gold", *about, "--top-k", "4")
    assert any(item["via"] for item in served.run(*asked).document["items"])  # the control
    assert not any(item["via"] for item in served.run(*asked, "--no-related").document["items"])


def test_a_state_that_no_list_has_is_wrong_usage(served: Served) -> None:
    wrong = served.run("list", "--state", "purged")
    assert (wrong.code, "soft_deleted" in wrong.err) == (2, True)
    assert served.run("list", "--state", "soft_deleted").code == 0  # the control


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

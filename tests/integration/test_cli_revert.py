"""`memplane revert` as a process, and the client's call, on each kind of database."""

from collections.abc import Iterator

import pytest

from integration.commands import Served, reachable_folder, serving


@pytest.fixture(scope="module", params=["postgres", "sqlite"])
def served(request: pytest.FixtureRequest) -> Iterator[Served]:
    with reachable_folder() as folder, serving(folder, "--storage", request.param, "--port", "0") as running:
        yield running


def test_what_an_agent_did_is_taken_back(served: Served) -> None:
    for agent, word in (("supervisor", "piano"), ("stylist", "boat")):
        category = "event" if agent == "supervisor" else "style"
        told = served.run(
            "remember", f"The user owns a {word}.", "--user", "ana", "--category", category, "--agent", agent
        )
        assert told.code == 0, told.err
    asked = ("revert", "--agent", "stylist", "--since", "2020-01-01")
    dry = served.run(*asked, "--dry-run", "--json")
    assert (dry.code, dry.document["receipt"], dry.document["reverted"]) == (0, None, {"memories_removed": 1}), dry.err
    done = served.run(*asked, "--yes", "--json").document
    assert (done["outcome"], done["finished"], done["reverted"]) == ("reverted", True, {"memories_removed": 1})
    again = served.run(*asked, "--yes")
    assert (again.code, "nothing to revert" in again.out) == (0, True)
    unknown = served.run("revert", "--agent", "stylit", "--since", "2020-01-01", "--dry-run")
    assert (unknown.code, unknown.err.startswith("memplane: not_found: no such agent")) == (1, True), unknown.out
    absent = served.run("revert", "--key", "deadbeef0000", "--since", "2020-01-01", "--dry-run")
    assert (absent.code, "`memplane keys list`" in absent.err, "another agent" in absent.err) == (1, True, False)
    left = served.run("list", "--user", "ana", "--json").document["items"]
    assert [each["content"] for each in left] == ["The user owns a piano."]  # the control
    both = served.run("revert", "--agent", "stylist", "--key", "x", "--since", "2020-01-01", "--yes")
    assert both.code == 2

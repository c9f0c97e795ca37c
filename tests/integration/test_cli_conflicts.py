"""Possible conflicts from the command line, on a server that runs."""

from integration.commands import Served, run

MORNING, EVENING = "The user takes 5 mg of ramipril every morning.", "The user takes 10 mg of ramipril in the evening."


def suspected(served: Served, user: str) -> list[str]:
    """Two memories that may contradict each other, the older one first."""
    said = [
        served.run("remember", each, "--user", user, "--category", "event", "--json").document
        for each in (MORNING, EVENING)
    ]
    assert said[1]["possible_conflicts"] == [said[0]["id"]]
    return [each["id"] for each in said]


def test_without_a_command_they_are_listed(served: Served, user: str) -> None:
    both = suspected(served, user)
    listed = [served.run("conflicts", *command, "--user", user, "--json").document for command in ((), ("list",))]
    assert listed[0] == listed[1]
    (item,) = listed[0]["items"]
    assert [item["older"]["id"], item["newer"]["id"]] == both
    assert item["id"] in served.run("conflicts").out.replace("\n", "")
    assert served.run("conflicts", "--user", "a stranger").out == "No conflict waits for a decision.\n"


def test_the_environment_names_server_and_key(served: Served, user: str) -> None:
    suspected(served, user)
    named = {"MEMPLANE_URL": served.url, "MEMPLANE_KEY": served.keys["supervisor"], "MEMPLANE_DATA": "/nowhere"}
    assert run("conflicts", environment=named).code == 0
    assert run("conflicts", environment=named | {"MEMPLANE_KEY": "mp_wrong_key"}).code != 0
    assert served.run("conflicts", "--url", "http://127.0.0.1:9").code != 0


def test_help_and_unknown_commands(served: Served) -> None:
    told = served.run("conflicts", "--help")
    assert told.code == 0
    assert "decide" in told.out
    assert "No such command 'decid'" in served.run("conflicts", "decid").err


def test_a_verdict_and_the_same_again(served: Served, user: str) -> None:
    older, newer = suspected(served, user)
    (item,) = served.run("conflicts", "--user", user, "--json").document["items"]
    done = served.run("conflicts", "decide", item["id"], "newer")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"superseded: {older}\n  {newer} holds")
    again = served.run("conflicts", "decide", item["id"], "newer")
    assert (again.code, again.out.startswith(f"unchanged: superseded: {older}")) == (0, True)
    other = served.run("conflicts", "decide", item["id"], "older")
    assert other.code != 0
    assert "decided already: newer" in other.err

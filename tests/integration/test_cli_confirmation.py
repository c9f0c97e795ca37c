"""Commands that take something away ask at a terminal, and refuse where nobody can answer."""

from collections.abc import Iterator

import pytest

from integration.commands import Result, Served, reachable_folder, serving

HALL = "The user has to book a hall."


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with reachable_folder() as folder, serving(folder, "--storage", "sqlite", "--port", "0") as running:
        yield running


def remember(served: Served, user: str, words: str = HALL, category: str = "tasks") -> str:
    told = served.run("remember", words, "--user", user, "--category", category, "--json")
    assert told.code == 0, told.err
    return str(told.document["id"])


def known(served: Served, user: str) -> list[str]:
    listed = served.run("list", "--user", user, "--json").document["items"]
    return [each["content"] for each in listed]


def plain(result: Result) -> str:
    return " ".join(result.err.replace("│", " ").split())


def commands(served: Served, user: str) -> dict[str, tuple[str, ...]]:
    """What each command needs to take something of a user away."""
    memory = remember(served, user)
    proposal = remember(served, user, "The user lives in Berlin.", "profile")
    return {
        "reject": ("reject", memory),
        "consents reject": ("consents", "reject", proposal),
        "purge": ("purge", "--user", user),
        "revert": ("revert", "--agent", "stylist", "--since", "2020-01-01"),
        "erase": ("erase", user),
        "users merge": ("users", "merge", user, "--into", f"{user}-known"),
    }


@pytest.mark.parametrize("name", ["reject", "consents reject", "purge", "revert", "erase", "users merge"])
class TestAsking:
    """Each of the commands."""

    def test_without_a_terminal_it_is_refused(self, served: Served, name: str) -> None:
        user = f"a{name}"
        command = commands(served, user)[name]
        refused = served.run(*command)
        assert (refused.code, refused.out) == (2, "")
        assert "there is none: add --yes" in plain(refused)
        assert known(served, user) == [HALL]
        done = served.run(*command, "--yes")  # the control
        assert (done.code, done.err) == (0, "")

    def test_a_no_changes_nothing_and_a_yes_does(self, served: Served, name: str) -> None:
        user = f"b{name}"
        command = commands(served, user)[name]
        no = served.run(*command, stdin="n\n", terminal=True)
        assert (no.code, no.out.strip()) == (1, "")
        assert "Aborted" in no.err
        assert known(served, user) == [HALL]
        said = user if name == "erase" else "y"
        yes = served.run(*command, stdin=f"{said}\n", terminal=True)
        assert yes.code == 0, yes.err
        if name == "users merge":
            assert known(served, f"{user}-known") == [HALL]
        else:
            assert known(served, user) == ([] if name in {"reject", "erase"} else [HALL])

    def test_the_question_names_the_user_and_whether_it_can_be_undone(self, served: Served, name: str) -> None:
        user = f"c{name}"
        told = plain(served.run(*commands(served, user)[name], stdin="n\n", terminal=True))
        assert ("agent 'stylist'" if name == "revert" else f"'{user}'") in told
        assert any(each in told for each in ("cannot be undone", "can undo that"))
        words = {"reject": HALL, "consents reject": "city 'Berlin'"}
        assert words.get(name, "") in told


def test_a_dry_run_does_not_ask(served: Served) -> None:
    remember(served, "d")
    assert served.run("erase", "d", "--dry-run").code == 0
    assert served.run("revert", "--agent", "stylist", "--since", "2020-01-01", "--dry-run").code == 0


def test_a_verdict_is_listed_and_lifted(served: Served) -> None:
    memory = remember(served, "f")
    assert served.run("reject", memory, "--yes", "--reason", "a mistake").code == 0
    again = ("remember", HALL, "--user", "f", "--category", "tasks", "--json")
    assert served.run(*again).document["error"]["code"] == "value_rejected"  # the control
    told = served.run("tombstones", "list", "--user", "f")
    assert (told.code, HALL in told.out, "a mistake" in told.out) == (0, True, True)
    (verdict,) = served.run("tombstones", "list", "--user", "f", "--json").document["items"]
    assert verdict["memory_id"] == memory
    lifted = served.run("tombstones", "lift", verdict["id"], "--reason", "it was right")
    assert (lifted.code, lifted.err) == (0, "")
    assert f"`memplane restore {memory}`" in lifted.out
    assert served.run("tombstones", "lift", verdict["id"], "--json").document["outcome"] == "unchanged"
    assert served.run("tombstones", "list", "--user", "f").out == "No value is refused, as far as this key reaches.\n"
    assert served.run(*again).document["outcome"] == "created"
    absent = served.run("tombstones", "lift", memory)
    assert (absent.code, "`memplane tombstones list` shows" in absent.err) == (1, True)

"""The commands about entities, as real processes: what each shows, what it changes, and how it refuses."""

from typing import get_args
from uuid import UUID, uuid4

import pytest

from integration.commands import Served, run
from memplane.client import MemplaneSync
from memplane.domain.language.entities import mentions
from memplane.entrypoints.cli.commands.entities import Kind

NOBODY = str(UUID(int=0))


@pytest.fixture
def user(served: Served) -> str:
    """A user of this test alone, who knows Berta Lindqvist under two names."""
    name = f"user-{uuid4().hex[:8]}"
    remember(served, name, "The user met Berta Lindqvist at Siemens.", "goals")
    remember(served, name, "Berta Lindqvist reads mail at berta@example.org.")
    remember(served, name, "Betty Lind plays the cello.")
    return name


def remember(served: Served, user: str, words: str, category: str = "preferences") -> str:
    with MemplaneSync(served.url, served.keys["supervisor"]) as opened:
        return str(opened.remember(words, user_id=user, category=category).id)


def id_of(served: Served, user: str, name: str) -> str:
    with MemplaneSync(served.url, served.keys["supervisor"]) as opened:
        (found,) = opened.entities(user, name=name).items
        return str(found.id)


def named(served: Served, user: str, *options: str) -> list[str]:
    document = served.run("entities", "--user", user, *options, "--json").document
    return [item["name"] for item in document["items"]]


def line(told: str) -> str:
    """What was told, without the frame and the line breaks that a terminal gives it."""
    return " ".join(told.replace("│", " ").split())


def test_entities_are_listed_those_that_most_memories_mention_first(served: Served, user: str) -> None:
    told = served.run("entities", "--user", user)
    assert (told.code, told.err) == (0, "")
    rows = [line(row) for row in told.out.splitlines() if "│" in row]
    assert rows[0] == f"2 person Berta Lindqvist {id_of(served, user, 'Berta Lindqvist')}"
    assert len(rows) == 4
    assert named(served, user, "--kind", "email") == ["berta@example.org"]
    assert named(served, user, "--name", "berta  LINDQVIST") == ["Berta Lindqvist"]
    assert named(served, user, "--name", "Berta") == []
    assert "There may be more: --limit" in served.run("entities", "--user", user, "--limit", "1").out
    assert "There may be more" not in told.out


def test_whom_no_memory_mentions_is_told_as_nobody(served: Served) -> None:
    nobody = served.run("entities", "--user", "a stranger")
    assert (nobody.code, nobody.out) == (0, "No memory that this key may read mentions one.\n")
    assert named(served, "a stranger") == []


def test_one_is_shown_as_the_agent_may_see_it(served: Served, user: str) -> None:
    berta = id_of(served, user, "Berta Lindqvist")
    told = line(served.run("entity", berta).out)
    assert told.startswith(f"Berta Lindqvist id {berta} kind person user {user} memories 2 last mentioned ")
    assert told.index("Mentioned with") < told.index("Mentioned in, newest first")
    assert served.run("entity", berta, "--agent", "planner", "--json").document["memories"] == 1
    hidden = served.run("entity", berta, "--agent", "researcher")
    assert (hidden.code, hidden.out) == (1, "")
    assert hidden.err.startswith("memplane: not_found: no such entity (check the id; `memplane entities --user USER`")


def test_another_name_leads_to_it(served: Served, user: str) -> None:
    berta = id_of(served, user, "Berta Lindqvist")
    told = served.run("alias", berta, "Frau Lindqvist")
    assert (told.code, told.err) == (0, "")
    assert "also called Frau Lindqvist" in line(told.out)
    remember(served, user, "Frau Lindqvist tunes the piano.")
    found = served.run("entity", berta, "--json").document
    assert (found["aliases"], found["memories"]) == (["Frau Lindqvist"], 3)
    assert named(served, user, "--name", "frau lindqvist") == ["Berta Lindqvist"]
    assert served.run("alias", berta, "frau LINDQVIST", "--json").document["aliases"] == ["Frau Lindqvist"]


def test_a_name_that_another_has_leads_to_a_merge(served: Served, user: str) -> None:
    kept, gone = id_of(served, user, "Berta Lindqvist"), id_of(served, user, "Betty Lind")
    refused = served.run("alias", kept, "Betty Lind", "--json")
    assert (refused.code, refused.document["error"]["code"]) == (1, "conflict")
    assert "`memplane merge ID --into ID` makes the two one" in refused.err
    assert refused.err.count("\n") == 1
    told = served.run("merge", gone, "--into", kept)
    assert (told.code, told.err) == (0, "")
    assert told.out.startswith(f"merged: {gone} is gone; its memories and names are those of {kept} now\n")
    assert "also called Betty Lind" in line(told.out)
    assert served.run("entity", kept, "--json").document["memories"] == 3
    assert served.run("entity", gone).code == 1
    assert named(served, user, "--name", "Betty Lind") == ["Berta Lindqvist"]


def test_what_is_not_there_or_itself_cannot_be_merged(served: Served, user: str) -> None:
    berta = id_of(served, user, "Berta Lindqvist")
    stranger = f"{user}-2"
    remember(served, stranger, "The user met Carl Ohm.")
    for entity, into, code in (
        (NOBODY, berta, "not_found"),
        (berta, NOBODY, "not_found"),
        (berta, berta, "invalid_request"),
        (berta, id_of(served, stranger, "Carl Ohm"), "invalid_request"),
    ):
        refused = served.run("merge", entity, "--into", into, "--json")
        assert (refused.code, refused.document["error"]["code"]) == (1, code)
    assert served.run("entity", berta, "--json").document["aliases"] == []


def test_a_key_that_only_reads_changes_no_names(served: Served, user: str) -> None:
    berta, betty = id_of(served, user, "Berta Lindqvist"), id_of(served, user, "Betty Lind")
    made = served.run(
        "keys", "create", "--storage", "sqlite", "--agent", "supervisor", "--scope", "memory:read", "--json"
    )
    key = ("--key", str(made.document["key"]))
    assert served.run("entity", berta, *key).code == 0
    for command in (("alias", berta, "Bertha"), ("merge", betty, "--into", berta)):
        refused = served.run(*command, *key, "--json")
        assert (refused.code, refused.document["error"]["code"]) == (1, "scope_forbidden")
        assert "`memplane keys create --scope`" in refused.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("entities",), "name the user with --user, or say --shared"),
        (("entities", "--user", "u", "--kind", "emails"), "'emails' is not one of 'person'"),
        (("entities", "--user", "u", "--limit", "201"), "less than or equal to 200"),
        (("entity", "9f3"), "'9f3' is no id; `memplane entities --user USER` shows ids"),
        (("alias", NOBODY), "Missing argument 'NAME'"),
        (("alias", NOBODY, ""), "alias: must not be empty"),
        (("merge", NOBODY), "Missing option '--into'"),
        (("merge", NOBODY, "--into", "Berta"), "'Berta' is no id"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_wrong_usage_is_told_with_what_is_right(served: Served, arguments: tuple[str, ...], told: str) -> None:
    result = served.run(*arguments)
    assert (result.code, result.out) == (2, "")
    assert told in line(result.err)
    assert "Traceback" not in result.err


def test_every_kind_that_is_found_can_be_asked_for() -> None:
    text = (
        "Ana founded Acme Bank. Ana lives in Berlin and leads Project Apollo with Zorblax: ana@example.org, "
        "https://example.org, #launch, @anar, 2026-05-31."
    )
    assert {mention.kind for mention in mentions(text)} == set(get_args(Kind))


def test_the_help_names_every_command() -> None:
    told = line(run("--help").out)
    for name in ("entities", "entity", "alias", "merge"):
        assert f" {name} " in told

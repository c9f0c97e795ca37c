"""The commands about one memory, as real processes: what each says, what it changes, and how it refuses."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from integration.commands import Result, Served, run
from memplane.client import MemplaneSync
from memplane.contracts.memories import MemoryRecord

NOBODY = str(UUID(int=0))
UUID_LIKE = "01a1ff17-b5e4-727e-b6d5-dfbc32519911"
VERBS = ("reinforce", "demote", "pin", "confirm", "retract", "reject", "forget", "restore")


@pytest.fixture(scope="module")
def inner(served: Served) -> str:
    """A key of the supervisor that is not fully trusted."""
    made = served.run("keys", "create", "--storage", "sqlite", "--agent", "supervisor", "--trust", "inner", "--json")
    return str(made.document["key"])


def client(served: Served) -> MemplaneSync:
    """What prepares and examines without a process of its own."""
    return MemplaneSync(served.url, served.keys["supervisor"])


def remember(served: Served, user: str, words: str, **fields: Any) -> str:  # noqa: ANN401 - any field of a memory
    """Store a memory and give its id."""
    with client(served) as opened:
        return str(opened.remember(words, **({"user_id": user, "category": "tasks"} | fields)).id)


def record(served: Served, memory: str) -> MemoryRecord:
    """A memory as it is, in whatever state."""
    with client(served) as opened:
        return opened.why(memory).memory


def contents(served: Served, user: str) -> list[str]:
    """What is known of a user, newest first."""
    with client(served) as opened:
        return [record.content for record in opened.list(user_id=user)]


def line(told: str) -> str:
    """What was told, without the frame and the line breaks that a terminal gives it."""
    return " ".join(told.replace("│", " ").split())


# What would happen


@pytest.mark.parametrize("command", [("retract",), ("reject",), ("forget",), ("correct",), ("pin",)])
def test_a_dry_run_tells_and_changes_nothing(served: Served, command: tuple[str, ...]) -> None:
    user = f"tried-{command[0]}"
    memory = remember(served, user, "Vera lives in Berlin.", category="event")
    words = ("Vera lives in Munich.",) if command == ("correct",) else ()
    done = served.run(*command, memory, *words, "--dry-run")
    assert done.code == 0, done.err
    assert "dry run: nothing was stored" in done.out
    assert record(served, memory).version == 1
    assert contents(served, user) == ["Vera lives in Berlin."]
    assert served.run(*command, memory, *words, *(["--yes"] if command == ("reject",) else [])).code == 0
    assert record(served, memory).version > 1  # the control


def test_a_dry_run_of_a_new_memory_names_rule_and_words(served: Served) -> None:
    remember(served, "tried", "Vera lives in Berlin.", category="event")
    new = ("remember", "Vera lives in Munich.", "--user", "tried", "--category", "event", "--dry-run")
    told = line(served.run(*new).out)
    assert "superseded" in told
    assert "berlin / munich" in told
    document = served.run(*new, "--json").document
    assert [each["event"] for each in document["dry_run"]["changes"]] == ["SUPERSEDE", "ADD"]
    drawn = served.run("turn", "My favourite drink is cocoa.", "--user", "tried", "--thread", "t", "--dry-run")
    assert "(rule preference.favourite)" in drawn.out
    assert contents(served, "tried") == ["Vera lives in Berlin."]


# What is said of a memory


@pytest.mark.parametrize(
    ("command", "field", "value"),
    [
        (("reinforce",), "reinforcement", 3),
        (("demote",), "reinforcement", -1),
        (("pin",), "pinned", True),
        (("confirm",), "trust_state", "confirmed"),
        (("update", "--importance", "5", "--tag", "dear"), "importance", 5),
        (("retract",), "state", "superseded"),
        (("reject", "--reason", "a mistake", "--yes"), "trust_state", "rejected"),
        (("forget",), "state", "soft_deleted"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_what_is_said_of_a_memory_is_so(
    served: Served, user: str, command: tuple[str, ...], field: str, value: object
) -> None:
    memory = remember(served, user, "The user has to book a hall.")
    verb, *options = command
    said = served.run(verb, memory, *options)
    assert (said.code, said.err) == (0, "")
    assert f"{memory}, version 2" in said.out
    assert said.out.count("\n") >= 2  # what it did, and what that means
    assert getattr(record(served, memory), field) == value


def test_what_is_pinned_is_unpinned(served: Served, user: str) -> None:
    memory = remember(served, user, "The user has to book a hall.", pinned=True)
    assert served.run("pin", memory, "--json").document["outcome"] == "unchanged"
    assert served.run("pin", memory, "--unpin", "--json").document["outcome"] == "updated"
    assert record(served, memory).pinned is False


def test_what_is_forgotten_is_restored_and_what_is_rejected_is_not(served: Served, user: str) -> None:
    memory = remember(served, user, "The user has to book a hall.")
    served.run("forget", memory)
    assert contents(served, user) == []
    assert served.run("restore", memory, "--json").document["outcome"] == "restored"
    assert contents(served, user) == ["The user has to book a hall."]
    assert served.run("reject", memory, "--yes", "--json").document["outcome"] == "rejected"
    for refused in (
        served.run("restore", memory, "--json"),
        served.run("remember", "the user has to book a HALL", "--user", user, "--category", "tasks", "--json"),
    ):
        assert (refused.code, refused.document["error"]["code"]) == (1, "value_rejected")


def test_all_that_a_user_lost_is_restored_and_what_is_deleted_is_purged(served: Served, user: str) -> None:
    words = ["The user has to book a hall.", "The user has to buy bread."]
    lost = [remember(served, user, each) for each in words]
    for each in lost:
        served.run("forget", each)
    done = served.run("restore", "--user", user, "--since", "2020-01-01", "--json")
    assert (done.code, {item["id"] for item in done.document["items"]}) == (0, set(lost))
    assert set(contents(served, user)) == set(words)
    for each in lost:
        served.run("forget", each, "--tombstone")
    refused = served.run("remember", words[0], "--user", user, "--category", "tasks", "--json")
    assert refused.document["error"]["code"] == "value_rejected"
    assert served.run("purge", "--user", user, "--yes", "--json").document["purged"] == 0  # none is due
    assert served.run("purge", "--user", user).code != 0  # nobody said yes
    assert served.run("purge", lost[0], "--early", "--yes", "--json").document["purged"] == 1
    assert "1 removed for good" in served.run("purge", "--user", user, "--early", "--yes").out
    assert served.run("restore", lost[0], "--json").document["error"]["code"] == "not_found"


@pytest.mark.parametrize("wrong", [(), ("--user", "u1"), ("--since", "2020-01-01"), ("x", "--user", "u1")])
def test_what_to_restore_is_said_in_one_way(served: Served, wrong: tuple[str, ...]) -> None:
    named = [UUID_LIKE if each == "x" else each for each in wrong]
    assert served.run("restore", *named).code == 2
    assert served.run("purge", *(() if len(named) < 3 else named), "--yes").code == 2


def test_a_correction_takes_the_place_of_what_was_wrong(served: Served, user: str) -> None:
    wrong = remember(served, user, "The user has to book a hall.", importance=5)
    done = served.run("correct", wrong, "-", "--json", stdin="The user has to book a boat.\n").document
    assert (done["outcome"], done["overruled"]) == ("superseded", [wrong])
    assert str(record(served, wrong).superseded_by) == done["id"]
    assert record(served, done["id"]).importance == 5
    assert contents(served, user) == ["The user has to book a boat."]


def test_words_are_changed_in_place(served: Served, user: str) -> None:
    memory = remember(served, user, "The user has to book a hall.")
    told = served.run("update", memory, "The user has to book a boat.").out
    assert "changed: content" in told
    history = served.run("history", memory, "--json").document["items"]
    assert (history[0]["old_ref"], history[0]["new_ref"]) == (
        "The user has to book a hall.",
        "The user has to book a boat.",
    )


def test_what_is_disputed_waits_for_who_is_fully_trusted(served: Served, user: str, inner: str) -> None:
    shared = ("--visibility", "shared", "--user", user, "--category", "profile")
    older = served.run("remember", "Ben works at Acme.", *shared, "--json").document["id"]
    disputed = served.run("remember", "Ben works at Initech.", *shared, "--key", inner)
    assert disputed.out.startswith("disputed: ")
    newer = disputed.out.removeprefix("disputed: ").split(",")[0]
    assert f"it contradicts {older}" in line(disputed.out)
    assert f"memplane confirm {newer}" in line(disputed.out)
    assert contents(served, user) == ["Ben works at Acme."]
    confirmed = served.run("confirm", newer)
    assert f"it takes the place of {older}" in confirmed.out
    assert contents(served, user) == ["Ben works at Initech."]


# What is told of a memory


def test_why_tells_state_sources_and_decisions(served: Served, user: str) -> None:
    turn = served.run("turn", "--user", user, "--thread", user, "--actor", "Ana", "My favourite drink is cocoa.")
    assert "drawn from it: [preferences] Ana's favourite drink is cocoa. (created" in turn.out
    memory = served.run("list", "--user", user, "--json").document["items"][0]["id"]
    better = served.run("correct", memory, "Ana's favourite drink is tea.", "--json").document["id"]
    document = served.run("why", memory, "--json").document
    told = line(served.run("why", memory).out)
    assert told.startswith("Ana's favourite drink is cocoa.")
    assert f"superseded {document['memory']['superseded_at'][:10]}" in told
    assert f"by {better}" in told
    assert "candidate: believed, not confirmed by a person" in told
    assert f"turn 1 of {user}, user Ana" in told
    assert "My favourite drink is cocoa." in told
    for decision in document["decisions"]:
        assert decision["event"] in told
        assert decision["policy_hash"][:15] in told
    assert "agent:supervisor" in told
    assert "verdict corrected" in told


def test_a_source_that_the_agent_may_not_read_is_only_counted(served: Served, user: str) -> None:
    secret = served.run("turn", "--user", user, "--thread", user, "The hall costs 900 euros.", "--json").document
    memory = remember(served, user, "The user has to pay for the hall.", source_ids=[secret["turn_id"]])
    told = served.run("why", memory, "--agent", "planner").out
    assert "900" not in told
    assert "Sources that are gone or that this key may not read: 1" in told


def test_a_timeline_marks_what_it_was_asked_for(served: Served, user: str) -> None:
    ids = [remember(served, user, f"The user has to water the {plant}.") for plant in ("rose", "fern", "palm", "ivy")]
    rows = [
        row for row in served.run("timeline", ids[1], "--before", "1", "--after", "1").out.splitlines() if "│" in row
    ]
    assert [plant in row for plant, row in zip(("rose", "fern", "palm"), rows, strict=True)] == [True] * 3
    assert ["▶" in row for row in rows] == [False, True, False]
    alone = served.run("timeline", ids[1], "--before", "0", "--after", "0", "--json").document
    assert [item["id"] for item in alone["items"]] == [ids[1]]
    turn = served.run("turn", "--user", user, "--thread", user, "--no-extract", "I love tea.", "--json").document
    assert turn["extracted"] == []
    around = served.run("timeline", turn["turn_id"]).out
    assert "▶" in next(row for row in around.splitlines() if "I love tea." in row)


def test_related_memories_are_shown_by_strength(served: Served, user: str) -> None:
    first = remember(served, user, "The user has to book a hall for the wedding in May.")
    assert "Nothing that this key may read is related to it." in served.run("related", first).out
    second = remember(served, user, "The user has to pay the hall for the wedding in May.")
    found = served.run("related", first, "--json").document["items"]
    assert [item["memory"]["id"] for item in found] == [second]
    assert f"{found[0]['strength']:.3f}" in served.run("related", first).out


def test_a_question_is_asked_of_another_moment(served: Served, user: str) -> None:
    about = ("--user", user, "--category", "profile", "--json")
    served.run("remember", "Hana works at Acme.", *about, "--valid-from", "2024-03-01")
    then = datetime.now(UTC).isoformat()
    served.run("remember", "Hana works at Initech.", *about, "--valid-from", "2026-01-01T00:00Z")

    def known(*moment: str) -> list[str]:
        answer = served.run("query", "--user", user, *moment, "--json").document
        return [item["text"] for item in answer["items"]]

    assert known() == ["[profile] Hana works at Initech."]
    assert known("--believed-at", then) == ["[profile] Hana works at Acme."]
    assert known("--true-at", "2025-01-01") == ["[profile] Hana works at Acme."]
    assert known("--true-at", "2020-01-01") == []
    assert known("--believed-at", then, "--true-at", "2026-02-01") == ["[profile] Hana works at Acme."]


# What is refused


@pytest.mark.parametrize("verb", ["confirm", "forget", "correct", "update", "why", "timeline"])
def test_an_id_that_nobody_has_is_told(served: Served, verb: str) -> None:
    words = ("The user has to book a boat.",) if verb in ("correct", "update") else ()
    absent = served.run(verb, NOBODY, *words)
    assert (absent.code, absent.out) == (1, "")
    assert absent.err.startswith("memplane: not_found: no such memory (check the id; `memplane why` tells")
    assert absent.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("confirm", "9f3"), "'9f3' is no id; `memplane list` and `memplane query` show ids"),
        (("forget",), "Missing argument 'ID'"),
        (("update", NOBODY), "name what to change"),
        (("correct", NOBODY, ""), "content"),
        (("reject", NOBODY, "--reason", "x" * 64, "--yes"), "reason"),
        (("timeline", NOBODY, "--before", "201"), "less than or equal to 200"),
        (("list", "--state", "purged"), "is not one of 'active', 'superseded', 'archived', 'soft_deleted'."),
        (("query", "x", "--true-at", "soon"), "'soon' is no time: write 2026-05-31 or 2026-05-31T18:00Z"),
        (("query", "x", "--believed-at", "9999-12-31"), "the year must be"),
    ],
)
def test_wrong_usage_is_told_with_what_is_right(served: Served, arguments: tuple[str, ...], told: str) -> None:
    result = served.run(*arguments)
    assert (result.code, result.out) == (2, "")
    assert told in line(result.err)
    assert "Traceback" not in result.err


def refused(result: Result) -> tuple[int, str]:
    return result.code, result.err.split(": ")[1]


def test_a_key_that_may_not_is_told_which_may(served: Served, user: str, inner: str) -> None:
    memory = remember(served, user, "The user has to book a hall.", visibility="shared")
    for command in (
        ("confirm", memory),
        ("reject", memory, "--yes"),
        ("retract", memory),
        ("correct", memory, "The hall is booked."),
    ):
        less = served.run(*command, "--key", inner)
        assert refused(less) == (1, "trust_too_low")
        assert "`memplane keys create --trust full`" in less.err
    made = served.run(
        "keys", "create", "--storage", "sqlite", "--agent", "supervisor", "--scope", "memory:read", "--json"
    )
    reader = served.run("pin", memory, "--key", made.document["key"])
    assert refused(reader) == (1, "scope_forbidden")
    assert "`memplane keys create --scope`" in reader.err
    assert refused(served.run("pin", memory, "--agent", "stylist")) == (1, "not_found")  # not its category
    stranger = served.run("pin", memory, "--key", "mp_0123456789ab_wrong")
    assert refused(stranger) == (1, "unauthenticated")
    assert "--key or MEMPLANE_KEY" in stranger.err
    assert record(served, memory).version == 1


def test_a_version_that_is_past_is_told(served: Served, user: str) -> None:
    memory = remember(served, user, "The user has to book a hall.")
    assert served.run("pin", memory, "--if-version", "1").code == 0
    for command in (("reinforce",), ("forget",), ("update", "--importance", "1")):
        verb, *options = command
        late = served.run(verb, memory, *options, "--if-version", "1", "--json")
        assert (late.code, late.document["error"]["code"]) == (1, "version_conflict")
        assert late.document["error"]["version"] == 2
        assert "`memplane get`" in late.err


def test_a_server_that_is_away_is_told() -> None:
    away = run("why", NOBODY, "--url", "http://127.0.0.1:9", "--key", "mp_0123456789ab_x")
    assert (away.code, away.out) == (4, "")
    assert "start it with `memplane serve`" in away.err


# Help


@pytest.mark.parametrize("command", [("query",), ("keys", "create"), ("convert",)])
def test_no_part_of_the_help_is_lost(command: tuple[str, ...]) -> None:
    """What stands in brackets is markup to the help's renderer: a default is told in another way."""
    told = line(run(*command, "--help").out)
    assert " ." not in told.replace(" ...", "")
    assert " ;" not in told


def test_the_help_names_every_command() -> None:
    told = line(run("--help").out)
    for name in (*VERBS, "correct", "update", "why", "history", "timeline", "related"):
        assert f" {name} " in told


# A conversation


def test_a_conversation_is_closed(served: Served, user: str) -> None:
    with client(served) as opened:
        for role, text in (
            ("user", "Which hall is free?"),
            ("assistant", "The big one."),
            ("user", "We agreed on it."),
        ):
            opened.turn(text, user_id=user, thread_id="plans/1", role=role)
    told = served.run("close", "plans/1", "--user", user)
    assert (told.code, told.err) == (0, "")
    lines = [line(each) for each in told.out.splitlines()]
    assert lines[0] == f"closed: plans/1 of {user}"
    assert lines[1:4] == ["asked: Which hall is free?", "last: The big one.", "decided: We agreed on it."]
    again = served.run("close", "plans/1", "--user", user, "--json")
    assert again.document["outcome"] == "unchanged"
    assert record(served, again.document["memory_id"]).content.startswith("The user asked: Which hall is free?")
    missing = served.run("close", "nowhere", "--user", user)
    assert missing.code != 0
    assert "no such thread" in line(missing.err)


def test_a_turn_is_deleted(served: Served, user: str) -> None:
    with client(served) as opened:
        turns = [opened.turn(text, user_id=user, thread_id="t", role="assistant") for text in ("The hall.", "The van.")]
    told = served.run("forget-turn", str(turns[0].turn_id))
    assert (told.code, told.err) == (0, "")
    assert line(told.out.splitlines()[0]) == f"deleted for good: turn {turns[0].turn_id}; the thread is at revision 3"
    again = served.run("forget-turn", str(turns[0].turn_id))
    assert again.code != 0
    assert "no such turn" in line(again.err)
    other = served.run("forget-turn", str(turns[1].turn_id), "--json")
    assert other.document == {"outcome": "deleted", "turn_id": str(turns[1].turn_id), "rev": 4, "dry_run": None}

"""What a conversation was about, by rule."""

from datetime import UTC, datetime
from uuid import UUID

import pytest

from memplane.domain.language.extraction.session_summary import (
    LONGEST,
    MOST,
    SessionSummaryText,
    is_decision,
    is_open,
    summarised,
)
from memplane.domain.memory.memory import Role, Turn

NOW = datetime(2026, 5, 1, tzinfo=UTC)


def said(*turns: tuple[str, str]) -> list[Turn]:
    return [
        Turn(UUID(int=seq), "ana", "t1", seq, seq, Role(role), text, NOW) for seq, (role, text) in enumerate(turns, 1)
    ]


def told(*turns: tuple[str, str]) -> SessionSummaryText:
    summary = summarised(said(*turns))
    assert summary is not None
    return summary


def test_a_conversation_is_summed_up() -> None:
    summary = told(
        ("user", "Hi there! Can you help me to plan the move to Lisbon? I have three weeks."),
        ("assistant", "Of course. Do you ship the piano?"),
        ("user", "We decided to sell the piano. Let's use a van. I still need to cancel the lease."),
        ("assistant", "Noted. The van is booked for Monday. Anything else?"),
        ("user", "Thanks!"),
    )
    assert summary.request is not None
    assert summary.outcome is not None
    assert summary.request.text == "Can you help me to plan the move to Lisbon?"
    assert summary.outcome.text == "The van is booked for Monday."
    assert [each.text for each in summary.decisions] == ["We decided to sell the piano.", "Let's use a van."]
    assert [each.text for each in summary.open_items] == ["I still need to cancel the lease."]
    assert [turn.seq for turn in summary.sources] == [1, 3, 4]


def test_a_last_question_without_an_answer_is_open() -> None:
    asked = (("user", "Book the van."), ("assistant", "Booked."), ("user", "And who brings the boxes?"))
    assert [each.text for each in told(*asked).open_items] == ["And who brings the boxes?"]
    assert told(*asked, ("assistant", "Bo does.")).open_items == ()


@pytest.mark.parametrize(
    "sentence",
    [
        "We decided to sell the piano.",
        "We've agreed on Friday.",
        "I'll go with the blue one.",
        "Let's stick with PostgreSQL.",
        "Decision: ship in May.",
        "We decided that we would wait.",
        "They chose the small hall.",
    ],
)
def test_what_is_a_decision(sentence: str) -> None:
    assert is_decision(sentence)
    assert not is_open(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "Have we decided on the hall?",
        "We have not decided anything.",
        "We haven't agreed on a day.",
        "If we decided to sell it, what would it cost?",
        "Maybe we chose the wrong one.",
        "The committee met on Friday.",
        "Should we go with the blue one?",
        "I never agreed to that.",
    ],
)
def test_what_is_none(sentence: str) -> None:
    assert not is_decision(sentence)


@pytest.mark.parametrize(
    ("sentence", "left"),
    [
        ("I still need to cancel the lease.", True),
        ("TODO: call Bo.", True),
        ("Remind me to water the plants.", True),
        ("The lease remains to be cancelled.", True),
        ("I'll get back to you on that.", True),
        ("The lease is cancelled.", False),
        ("Do I still need to cancel the lease?", False),
        ("The plants are green.", False),
    ],
)
def test_what_is_left_open(sentence: str, *, left: bool) -> None:
    assert is_open(sentence) is left


def test_what_is_quoted_or_code_is_nobodys_sentence() -> None:
    summary = told(
        ("user", "> We decided to leave.\nWhat does this mean?\n```\nLet's use tabs.\n```"),
        ("assistant", "# Heading\nIt quotes a letter."),
    )
    assert summary.decisions == ()
    assert summary.request is not None
    assert summary.request.text == "What does this mean?"
    assert told(("user", "We decided to leave.")).decisions  # as their own words they count


def test_nothing_said_is_nothing_told() -> None:
    assert summarised([]) is None
    assert summarised(said(("user", "Hello!"), ("assistant", "…"), ("system", "You are helpful."))) is None
    assert told(("assistant", "Welcome to the shop.")).request is None


def test_other_languages_are_told_without_decisions() -> None:
    summary = told(("user", "Kannst du den Umzug planen?"), ("assistant", "Der Wagen ist für Montag bestellt."))
    assert summary.request is not None
    assert summary.outcome is not None
    assert (summary.request.text, summary.outcome.text) == (
        "Kannst du den Umzug planen?",
        "Der Wagen ist für Montag bestellt.",
    )
    assert (summary.decisions, summary.open_items) == ((), ())


def test_what_is_long_or_much_is_bounded() -> None:
    long = "We decided to " + "take the very long way " * 40
    summary = told(("user", long), *(("user", f"We decided on number {n}.") for n in range(MOST + 3)))
    assert len(summary.decisions) == MOST
    assert max(len(each.text) for each in summary.decisions) <= LONGEST
    assert summary.decisions[0].text.endswith("…")
    assert [each.text for each in told(*[("user", "We agreed on Friday.")] * 3).decisions] == ["We agreed on Friday."]

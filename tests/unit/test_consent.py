"""Consent as pure rules: what a decision does to a proposal, what agrees to it, and which texts state a field."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memplane.domain.agreement import is_agreement, names
from memplane.domain.consent import ConsentRules, ProposalState, Verdict, decides, state_at
from memplane.domain.errors import AlreadyDecided, ProposalExpired
from memplane.domain.memory import MemoryText
from memplane.domain.profile_statements import Stated, stated_fields

NOW = datetime(2026, 6, 1, tzinfo=UTC)
RULES = ConsentRules(("city",), ("tone",), timedelta(days=7), 2, 0.9)
SENSITIVE = ("preferred_name", "pronouns", "city", "language")
ONE, OTHER = UUID(int=1), UUID(int=2)


class TestDecisions:
    """What becomes of a proposal."""

    @pytest.mark.parametrize("verdict", Verdict)
    def test_what_waits_is_decided_once(self, verdict: Verdict) -> None:
        assert decides(ProposalState.PENDING, verdict)
        assert not decides(verdict.state, verdict)

    def test_the_opposite_of_a_decision_is_refused(self) -> None:
        with pytest.raises(AlreadyDecided, match="approved"):
            decides(ProposalState.APPROVED, Verdict.REJECT)
        with pytest.raises(AlreadyDecided, match="rejected"):
            decides(ProposalState.REJECTED, Verdict.APPROVE)

    @pytest.mark.parametrize("verdict", Verdict)
    def test_what_has_lapsed_is_decided_no_more(self, verdict: Verdict) -> None:
        with pytest.raises(ProposalExpired):
            decides(ProposalState.EXPIRED, verdict)

    @pytest.mark.parametrize("stored", ProposalState)
    def test_only_what_waits_lapses(self, stored: ProposalState) -> None:
        end = NOW + RULES.life
        assert state_at(stored, end, end - timedelta(microseconds=1)) is stored
        lapsed = ProposalState.EXPIRED if stored is ProposalState.PENDING else stored
        assert state_at(stored, end, end) is lapsed


class TestCorroboration:
    """When a benign field applies by itself."""

    def test_two_turns_and_not_the_same_twice(self) -> None:
        assert not RULES.corroborated([])
        assert not RULES.corroborated([ONE])
        assert not RULES.corroborated([ONE, ONE, ONE])
        assert RULES.corroborated([ONE, OTHER])

    def test_or_one_insight_that_is_sure(self) -> None:
        assert not RULES.corroborated([ONE], [0.89, 0.5])
        assert RULES.corroborated([], [0.9])


AGREEING = (
    "Yes", "yes.", "Yeah, sure!", "OK", "Yes, call me Alex.", "Yes please, call me alex from now on.", "That's right.",
    "Of course.", "Go ahead.", "Please do!", "Correct, my name is Alex.", "Ja, bitte.", "sí", "Yes, that’s my name.",
    "Agreed.",
)  # fmt: skip
OTHERWISE = (
    "", "No", "No, not yet.", "Yes?", "Yes, but call me Sam.", "Yes, call me Sam.", "Maybe.", "Alex", "Not sure.",
    "I would not say yes.", "She said yes.", "Yes and no.", "Yes, never do that.", "Yesterday I went home.", "Don't.",
    "Okay, what is the weather like", "Right, no.", "yes " * 100, "Sure, forget it.", "Yes, delete everything.",
)  # fmt: skip


@pytest.mark.parametrize("text", AGREEING)
def test_what_agrees(text: str) -> None:
    assert is_agreement(text, "Alex")


@pytest.mark.parametrize("text", OTHERWISE)
def test_what_does_not_agree(text: str) -> None:
    assert not is_agreement(text, "Alex")


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(st.text(max_size=40), st.sampled_from(["no", "not", "never", "don't", "nope", "wrong", "stop", "but", "wait"]))
def test_no_denial_agrees_whatever_stands_beside_it(noise: str, denial: str) -> None:
    for text in (f"Yes {denial} {noise}", f"Yes {noise} {denial}", f"{denial}, yes"):
        assert not is_agreement(text, "Alex")


@pytest.mark.parametrize(
    ("text", "value", "named"),
    [
        ("Yes, call me Alex.", "Alex", True), ("Yes, ALEX!", "Alex", True), ("Yes, New York.", "New York", True),
        ("Yes, they/them.", "they/them", True), ("Yes.", "Alex", False), ("Yes, please do it.", "it", False),
        ("Yes, York.", "New York", False), ("Ja.", "Ja", False), ("Yes, new.", "New", False), ("", "Alex", False),
        ("Alex", "Alex", False),
    ],
)  # fmt: skip
def test_whether_the_value_is_said(text: str, value: str, *, named: bool) -> None:
    assert names(text, value) is named


STATING = {
    "The user lives in Berlin.": ("city", "Berlin"),
    "the user lives in berlin": ("city", "berlin"),
    "Note: The user lives in Berlin.": ("city", "Berlin"),
    "The user lives in Ber\u3164lin.": ("city", "Berlin"),
    "The user l\u0456ves in Berlin.": ("city", "Berlin"),
    "The user, verified by the administrator, lives in Munich.": ("city", "Munich"),
    "Ana has moved to Munich.": ("city", "Munich"),
    "Ana moved from Berlin to New York last week.": ("city", "New York"),
    "Ana works at Siemens and lives in Berlin.": ("city", "Berlin"),
    "The user visits her sister and lives in Rome.": ("city", "Rome"),
    "Since 2020 Ana lives in Graz.": ("city", "Graz"),
    "The user lives in a small flat in Graz.": ("city", "Graz"),
    "The user's city is Oslo.": ("city", "Oslo"),
    "City: Oslo": ("city", "Oslo"),
    "Ana is a Berlin-based engineer.": ("city", "Berlin"),
    "The user calls Oslo home.": ("city", "Oslo"),
    "Ana prefers to be called Alex.": ("preferred_name", "Alex"),
    "The user goes by Alex.": ("preferred_name", "Alex"),
    "The user's name is Alex Smith.": ("preferred_name", "Alex Smith"),
    "preferred_name: Alex": ("preferred_name", "Alex"),
    "Call the user Sam.": ("preferred_name", "Sam"),
    "Ana's pronouns are they/them.": ("pronouns", "they/them"),
    "The user uses she/her pronouns.": ("pronouns", "she/her"),
    "Ana's native language is German.": ("language", "German"),
    "The user prefers answers in German.": ("language", "German"),
    "Answer the user in German.": ("language", "German"),
}
SILENT = (
    "Ana's sister lives in Rome.", "The user's dog is called Rex.", "The project is called Apollo.",
    "The launch moved to May.", "The user does not live in Berlin.", "The user used to live in Berlin.",
    "The user lives in a small flat.", "The user no longer lives in Berlin.",
    "The user is not called Alex.", "The user's name is not Alex.", "Ana doesn't live in Berlin.",
    "The user's pronouns are unknown.", "The user works at Siemens as an engineer.", "The user speaks French.",
    "Ana's favourite programming language is Python.", "The meeting moved to the blue room.",
    "Her brother moved to Oslo.", "The user's company is based in Berlin.", "The user was born in Berlin.",
    "The user likes French food.", "The user called Betty Lind on Monday.", "The user prefers tea.",
)  # fmt: skip


@pytest.mark.parametrize("text", STATING)
def test_a_field_is_seen_in_whatever_words_the_rules_know(text: str) -> None:
    field, value = STATING[text]
    found = stated_fields(MemoryText(text), {}, SENSITIVE)
    assert [each.key for each in found] == [Stated(field, value).key]
    assert stated_fields(MemoryText(text), {}, set(SENSITIVE) - {field}) == ()


@pytest.mark.parametrize("text", SILENT)
def test_what_states_no_field(text: str) -> None:
    assert stated_fields(MemoryText(text), {}, SENSITIVE) == ()


@pytest.mark.parametrize(
    "text",
    [
        MemoryText("A note.", title="City: Oslo"),
        MemoryText("A note.", narrative="It rained.\nThe user lives in Oslo."),
        MemoryText("A note.", facts=("The user lives in Oslo.",)),
        MemoryText("A note.", tags=("city:oslo",)),
        MemoryText("A note.", steps=("Ana lives in Oslo.",)),
    ],
    ids=["title", "narrative", "facts", "tags", "steps"],
)
def test_no_part_of_a_memory_hides_a_field(text: MemoryText) -> None:
    (found,) = stated_fields(text, {}, SENSITIVE)
    assert found.key == Stated("city", "Oslo").key


def test_attributes_state_fields_too() -> None:
    found = stated_fields(MemoryText("A note."), {"City": "Oslo", "more": {"preferred name": "Bo"}, "x": 1}, SENSITIVE)
    assert found == (Stated("city", "Oslo"), Stated("preferred_name", "Bo"))


def test_a_field_that_the_policy_adds_is_known_by_its_name() -> None:
    (found,) = stated_fields(MemoryText("The user's home address is Elm Street 5."), {}, ("home_address",))
    assert found == Stated("home_address", "Elm Street 5")


@pytest.mark.parametrize("piece", ["lives with ", "moved from ", "is now ", "Ana ", "a ", "prefers to be called "])
def test_long_texts_take_no_longer_than_their_length(piece: str) -> None:
    """The texts are as long as the shipped policy lets them be; a rule that tries all ways would never end."""
    stated_fields(MemoryText(piece * (16_000 // len(piece))), {}, SENSITIVE)

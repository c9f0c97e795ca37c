"""Consent as pure rules: what a decision does to a proposal, what agrees to it, and which texts state a field."""

import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from time import process_time
from types import FrameType
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memplane.domain.consent.agreement import is_agreement, names
from memplane.domain.consent.consent_rules import ConsentRules, ProposalState, Verdict, decides, state_at
from memplane.domain.errors import AlreadyDecided, ProposalExpired
from memplane.domain.language.comparison import comparison
from memplane.domain.language.profile_statements import Sought, Stated, spoken_fields, stated_fields
from memplane.domain.language.profile_wording import core
from memplane.domain.memory import write_decisions
from memplane.domain.memory.memory import MemoryText
from unit.verdicts import BANDS

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
        assert not RULES.is_corroborated([])
        assert not RULES.is_corroborated([ONE])
        assert not RULES.is_corroborated([ONE, ONE, ONE])
        assert RULES.is_corroborated([ONE, OTHER])

    def test_or_one_insight_that_is_sure(self) -> None:
        assert not RULES.is_corroborated([ONE], [0.89, 0.5])
        assert RULES.is_corroborated([], [0.9])


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


ELSEWHERE = {
    "The user moved to Porto.": ("city", "Porto"),
    "The user lives in Porto now.": ("city", "Porto"),
    "I moved to Porto.": ("city", "Porto"),
    "I've relocated to Porto.": ("city", "Porto"),
    "The user has relocated to Porto.": ("city", "Porto"),
    "The user's new city is Porto.": ("city", "Porto"),
    "The user's hometown is Porto.": ("city", "Porto"),
    "My new city is Porto.": ("city", "Porto"),
    "We live in Porto.": ("city", "Porto"),
    "We live in Porto now.": ("city", "Porto"),
    "i moved to porto": ("city", "porto"),
    "The user and their partner moved to Porto.": ("city", "Porto"),
    "The user recently moved to Porto for a new job.": ("city", "Porto"),
    "The user sold the house in Lisbon and moved to Porto.": ("city", "Porto"),
    "In May 2024, the user moved to Porto.": ("city", "Porto"),
    "The user, who works at Siemens, moved to Porto.": ("city", "Porto"),
    "The user lives in St. Gallen.": ("city", "St. Gallen"),
    "The user moved to St. John's.": ("city", "St. John's"),
    "The user moved to New York City.": ("city", "New York City"),
    "The user moved from Lisbon to Porto last week.": ("city", "Porto"),
    "The user moved back to Porto.": ("city", "Porto"),
    "The user is based in Porto.": ("city", "Porto"),
    "The user is now based out of Porto.": ("city", "Porto"),
    "The user calls Porto home.": ("city", "Porto"),
    "Porto is my home now.": ("city", "Porto"),
    "Porto is the user's new home.": ("city", "Porto"),
    "The user has lived in Porto for ten years.": ("city", "Porto"),
    "The user is a Porto-based designer.": ("city", "Porto"),
    "The user is a resident of Porto.": ("city", "Porto"),
    "Since 2020 the user lives in Graz.": ("city", "Graz"),
    "The user changed jobs. They moved to Porto.": ("city", "Porto"),
    "User lives in Porto.": ("city", "Porto"),
    "User: lives in Porto": ("city", "Porto"),
    "Note: the user lives in Porto.": ("city", "Porto"),
    "Moved to Porto in June.": ("city", "Porto"),
    "Lives in Porto.": ("city", "Porto"),
    "Currently living in Porto.": ("city", "Porto"),
    "City: Porto": ("city", "Porto"),
    "Current city: Porto": ("city", "Porto"),
    "The user said they moved to Porto.": ("city", "Porto"),
    'The user said: "I moved to Porto."': ("city", "Porto"),
    "The user l\u0456ves in Porto.": ("city", "Porto"),
    "THE USER LIVES IN PORTO.": ("city", "PORTO"),
    "The user moved in with a friend and lives in Porto.": ("city", "Porto"),
    "The user's home is in Porto.": ("city", "Porto"),
    "Ana moved to Porto.": ("city", "Porto"),
    "Ana lives in Porto and works at Siemens.": ("city", "Porto"),
    "Ana's city is Porto.": ("city", "Porto"),
    "Please change my city to Porto.": ("city", "Porto"),
    "The user moved to São Paulo.": ("city", "São Paulo"),
    "The user lives in Washington, D.C.": ("city", "Washington"),
    "The user moved to Ft. Worth.": ("city", "Ft. Worth"),
    "The user goes by Kit.": ("preferred_name", "Kit"),
    "The user is called Kit.": ("preferred_name", "Kit"),
    "The user prefers to be called Kit.": ("preferred_name", "Kit"),
    "The user wants to be addressed as Dr. Adeyemi.": ("preferred_name", "Dr. Adeyemi"),
    "The user is addressed as Dr. Adeyemi.": ("preferred_name", "Dr. Adeyemi"),
    "The user should be addressed as Prof. Li Wei.": ("preferred_name", "Prof. Li Wei"),
    "Call me Dr. Adeyemi.": ("preferred_name", "Dr. Adeyemi"),
    "Please call me J. R. R. Tolkien.": ("preferred_name", "J. R. R. Tolkien"),
    "I go by T.J. Hooker.": ("preferred_name", "T.J. Hooker"),
    "My name is Mr. Smith.": ("preferred_name", "Mr. Smith"),
    "My name is Kit.": ("preferred_name", "Kit"),
    "You can call me Kit.": ("preferred_name", "Kit"),
    "Everyone calls me Kit.": ("preferred_name", "Kit"),
    "Address the user as Ms. Okafor.": ("preferred_name", "Ms. Okafor"),
    "Call the user Sam.": ("preferred_name", "Sam"),
    "The user's preferred name is Kit.": ("preferred_name", "Kit"),
    "The user's name is Alex Smith.": ("preferred_name", "Alex Smith"),
    "The user would like to be called Kit.": ("preferred_name", "Kit"),
    "I'd like to be called Kit.": ("preferred_name", "Kit"),
    "The user is now known as Kit.": ("preferred_name", "Kit"),
    "The user goes by J. The weather was fine.": ("preferred_name", "J"),
    "preferred_name: Kit": ("preferred_name", "Kit"),
    "The user's pronouns are they/them.": ("pronouns", "they/them"),
    "My pronouns are she/her.": ("pronouns", "she/her"),
    "I use they/them.": ("pronouns", "they/them"),
    "I use they/them pronouns.": ("pronouns", "they/them"),
    "The user uses she/her pronouns.": ("pronouns", "she/her"),
    "The user goes by they/them.": ("pronouns", "they/them"),
    "Please refer to me as she/her.": ("pronouns", "she/her"),
    "Pronouns: they/them": ("pronouns", "they/them"),
    "Please answer in German.": ("language", "German"),
    "Always reply in German.": ("language", "German"),
    "From now on, answer me in German.": ("language", "German"),
    "The user prefers German.": ("language", "German"),
    "The user prefers answers in German.": ("language", "German"),
    "The user prefers to speak German.": ("language", "German"),
    "The user wants to be answered in German.": ("language", "German"),
    "The user wants replies in German.": ("language", "German"),
    "My preferred language is German.": ("language", "German"),
    "The user's first language is Catalan.": ("language", "Catalan"),
    "The user's native language is Basque.": ("language", "Basque"),
    "The user is a native German speaker.": ("language", "German"),
    "I speak German as my first language.": ("language", "German"),
    "I'd like you to answer in German.": ("language", "German"),
    "The user should be answered in German.": ("language", "German"),
    "Let's speak German.": ("language", "German"),
    "Language: German": ("language", "German"),
}
"""What is a claim in any category, of a user who is known as Ana."""
OF_OTHERS = (
    "Ana's brother moved to Porto.",
    "The user's sister goes by Kit.",
    "The user visited Porto.",
    "The user booked a flight to Porto.",
    "The Porto office moved to the second floor.",
    "The project's city is Porto.",
    "The user's favourite language is Go.",
    "The user's preferred language is Rust.",
    "Ben moved to Porto.",
    "Kit lives in Porto.",
    "Kit's pronouns are they/them.",
    "The user's dog is called Rex.",
    "The project is called Apollo.",
    "The user is moving to Porto in June.",
    "The user wants to live in Porto.",
    "The user would like to move to Porto.",
    "The user used to live in Porto.",
    "The user does not live in Porto.",
    "The user no longer lives in Porto.",
    "The user never moved to Porto.",
    "If the user moved to Porto, rent would be cheaper.",
    "The user asked whether Ben lives in Porto.",
    "The user almost moved to Porto.",
    "The user could have moved to Porto.",
    "Does the user live in Porto?",
    "The user said Ben moved to Porto.",
    "The user's parents live in Porto.",
    "The user's parents moved to Porto.",
    "The user's sister got married and moved to Porto.",
    "The user met Kit, who moved to Porto.",
    "The user hired a Porto-based designer.",
    "The company is based in Porto.",
    "The user works for a Porto-based company.",
    "The conference takes place in Porto.",
    "The user moved to management.",
    "The user moved to the marketing team.",
    "The user moved to PostgreSQL.",
    "The user moved to Slack from Teams.",
    "The user moved to a new team.",
    "The user moved to part-time work.",
    "The user moved the meeting to Friday.",
    "The meeting moved to Monday.",
    "The team moved to Berlin.",
    "The user's company moved to Berlin.",
    "The server is located in Frankfurt.",
    "The server's location is Frankfurt.",
    "The default language is Python.",
    "The language is Python.",
    "The user lives in a small flat.",
    "The user lives in fear of spiders.",
    "The user moved in with Ben.",
    "The user moved in together with Ben.",
    "The user was born in Porto.",
    "The user is from Porto.",
    "The user speaks German.",
    "The user is learning German.",
    "The user likes German food.",
    "The user likes Italian.",
    "The user needs a native German speaker for the project.",
    "Translate the letter to German.",
    "Write the email in German to the landlord.",
    "The user asked Ben to call back.",
    "Call Anna back.",
    "Call John tomorrow.",
    "Call me tomorrow.",
    "Please call me when the build is done.",
    "The user goes by train to work.",
    "The user is called up for jury duty.",
    "The file name is report.pdf.",
    "The name of the cat is Rex.",
    "The project's name is Atlas.",
    "The user's company is called Acme.",
    "The user named the server Apollo.",
    "The user called Betty Lind on Monday.",
    "The user prefers tea.",
    "The user uses and/or too often.",
    "The README uses he/she.",
    "Kit: I moved to Porto.",
    "The user read a novel in which the hero moved to Porto.",
    'The user asked to translate "I moved to Porto" into German.',
    "The user's meeting is in Porto.",
    "The user's flight to Porto was moved to Friday.",
    "The user prefers window seats.",
    "The user's manager prefers to be called Jo.",
    "The user's manager is called Jo.",
    "Ben prefers German.",
    "Ben's native language is German.",
    "The user's son lives in Porto and studies law.",
    "The user told Kit that the office moved to Porto.",
    "The user is allergic to Ibuprofen.",
    "The user works at Siemens as an engineer.",
    "The user's employer is based in Berlin.",
    "The hotel is located in Porto.",
    "The user stays in Porto this week.",
    "Ben called. He moved to Porto.",
    "The user's home page is example.org.",
    "The user's home office is small.",
    "The user's city guide is useful.",
    "The release moved to production.",
    "The user owns a flat in Porto.",
    "The user plans a trip to Porto and a visit to Lisbon.",
)
"""What is none where the field does not lie: about others, of the past or the future, supposed, or no such value."""


def elsewhere(text: MemoryText, attributes: dict[str, object] | None = None) -> list[Stated]:
    """What a memory of a category without sensitive fields claims of its user."""
    found = stated_fields(text, attributes, Sought(frozenset(), frozenset(SENSITIVE), frozenset({"ana"})))
    return [each for each in found if each.of is None]


@pytest.mark.parametrize("text", ELSEWHERE)
def test_a_claim_is_seen_in_any_category(text: str) -> None:
    assert [each.key for each in elsewhere(MemoryText(text))] == [Stated(*ELSEWHERE[text]).key]


@pytest.mark.parametrize("text", OF_OTHERS)
def test_what_is_no_claim_in_another_category(text: str) -> None:
    assert elsewhere(MemoryText(text)) == []


def test_somebody_by_name_is_told_with_the_statement() -> None:
    (found,) = stated_fields(MemoryText("Ben moved to Porto."), {}, Sought(frozenset(), frozenset(SENSITIVE)))
    assert found == Stated("city", "Porto", of="Ben")


@pytest.mark.parametrize(
    ("text", "claimed"),
    [("Ben called. He moved to Porto.", False), ("The user changed jobs. They moved to Porto.", True)],
)
def test_a_pronoun_means_whom_the_sentence_before_is_about(text: str, *, claimed: bool) -> None:
    assert bool(elsewhere(MemoryText("A note.", narrative=text))) is claimed


@pytest.mark.parametrize(
    ("content", "attributes", "claimed"),
    [
        ("A note.", {"city": "Porto"}, True), ("A note.", {"user": {"city": "Porto"}}, True),
        ("A note.", {"user_city": "Porto"}, True), ("A note.", {"value": {"city": "Porto"}}, True),
        ("A note.", {"venue": {"city": "Porto"}}, False), ("A note.", {"language": "Python"}, False),
        ("The concert is at the arena.", {"city": "Porto"}, False), ("Ben plays the cello.", {"city": "Porto"}, False),
        ("Ben plays the cello.", {"user": {"city": "Porto"}}, True),
        ("The user was promoted.", {"city": "Porto"}, True),
    ],
)  # fmt: skip
def test_whose_an_attribute_is(content: str, attributes: dict[str, object], *, claimed: bool) -> None:
    assert bool(elsewhere(MemoryText(content), attributes)) is claimed


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ("We live in Porto.", "city"), ("Please answer in German.", "language"), ("Moved to Porto!", "city"),
        ("He moved to Porto.", None), ("Ben moved to Porto.", None), ("The user lives in Porto.", None),
    ],
)  # fmt: skip
def test_what_a_person_says_of_themselves(said: str, field: str | None) -> None:
    assert [each.field for each in spoken_fields(said, SENSITIVE)] == ([] if field is None else [field])


PIECES = (
    "Kit moved to Porto and ", "The user said Kit lives in Porto, ", "call me ", "lives in ", ". ", "\n", "  \n", "a ",
    "lives now now now now now in Porto ", "moved with a a a a a a a a to A ", "speak to to to me in German x ",
    "A-based is a ", "she/", "<a", ") ( ", '"I lives ', "user's new current real home is ", "St. ", "\u043c", "the ",
    "in in in in in in in in lives in Q and ", "the user's name is A B C D E F G H I J K ", "is ", "German ",
)  # fmt: skip
"""What could be tried in many ways, were it not for the bounds."""


@pytest.mark.parametrize("piece", PIECES)
def test_work_grows_as_the_length_does(piece: str) -> None:
    """Lines that run are counted, whatever else the machine does; what patterns do within one is bounded by time."""

    def steps(size: int) -> int:
        text, count = MemoryText("A note.", narrative=(piece * (size // len(piece) + 1))[:size]), 0

        def line(_frame: FrameType, event: str, _arg: object) -> Callable[..., object]:
            nonlocal count
            count += event == "line"
            return line

        before = sys.gettrace()
        sys.settrace(line)
        try:
            elsewhere(text)
        finally:
            sys.settrace(before)
        return count

    steps(1_000)  # fills the caches
    least = steps(4_000)
    assert least > 4  # they are counted
    assert steps(16_000) < least * 4**1.2
    longest = MemoryText("A note.", narrative=(piece * (16_000 // len(piece) + 1))[:16_000])
    began = process_time()
    elsewhere(longest)
    assert process_time() - began < 0.5  # 12 s, when it was quadratic


@pytest.mark.parametrize(
    "value", ["downtown Porto", "Porto, Portugal", "Porto right now", "the city of Porto", "Porto"]
)
def test_the_core_of_a_value_is_its_own_core(value: str) -> None:
    assert core("city", value) == "Porto"
    assert core("city", core("city", value)) == "Porto"
    assert core("city", "Porto Alegre") == "Porto Alegre"


def test_rejected_values_are_compared_with_those_alone_that_share_most_words(monkeypatch: pytest.MonkeyPatch) -> None:
    bands, tried = BANDS, []
    gone = [
        MemoryText(f"The user keeps box {i} in the cellar.", facts=tuple(f"Box {i} holds lamp {n}." for n in range(50)))
        for i in range(200)
    ]

    def counted(*sides: object) -> comparison.ComparisonVerdict:
        tried.append(sides)
        return comparison.compare(*sides)  # type: ignore[arg-type]  # as it is called

    monkeypatch.setattr(write_decisions, "compare", counted)
    other = MemoryText("The user likes tea.", facts=tuple(f"Shelf {n} holds lamp {n}." for n in range(50)))
    assert not write_decisions.says_again(other, gone, bands)
    assert len(tried) <= 50 * 20
    assert write_decisions.says_again(MemoryText("The user keeps box 150 in the cellar."), gone, bands)  # the control

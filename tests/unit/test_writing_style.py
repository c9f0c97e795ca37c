"""The rules of style, on sentences that were written before the rules: no wrong refusal, and the misses by name."""

import pytest

from memplane.adapters.policy import load_policy, shipped_policies
from memplane.domain.errors import WritingConstraintViolated
from memplane.domain.memory.memory import MemoryText, MemoryType
from memplane.domain.memory.writing import Style, constrain, style_warnings
from support import writing_cases as cases

WRITING = load_policy(shipped_policies()).writing
MISSED_FRAGMENTS = {"Project Apollo", "trip to Rome"}
"""Both may be read as orders: project, trip."""
MISSED_STEPS = {("tea", "milk", "sugar")}
"""Any of these may be the name of a program."""


def refused(content: str, kind: MemoryType = MemoryType.SEMANTIC, style: Style = Style.FULL, **more: object) -> str:
    """The rule that refuses a text, or nothing."""
    try:
        constrain(MemoryText(content, **more), kind, WRITING, style)  # type: ignore[arg-type]  # fields of the text
    except WritingConstraintViolated as error:
        return str(error.extra["rule"])
    return ""


def refused_steps(steps: tuple[str, ...], style: Style = Style.FULL) -> str:
    return refused("How it is done.", MemoryType.PROCEDURAL, style, steps=steps)


def test_the_lists_are_long_enough() -> None:
    good = [*cases.WELL_FORMED, *cases.WELL_FORMED_EPISODIC]
    bad = [*cases.FIRST_PERSON, *cases.PRONOUN_SUBJECTS, *cases.FRAGMENTS, *cases.NO_IMPERATIVES]
    assert len(set(good)) >= 150
    assert len(bad) >= 80


@pytest.mark.parametrize("content", cases.WELL_FORMED)
def test_nothing_well_formed_is_refused(content: str) -> None:
    assert refused(content) == ""


@pytest.mark.parametrize("content", cases.WELL_FORMED_EPISODIC)
def test_no_episode_is_refused_or_warned_of(content: str) -> None:
    assert refused(content, MemoryType.EPISODIC) == ""
    assert style_warnings(MemoryText(content), MemoryType.EPISODIC, WRITING) == ()


@pytest.mark.parametrize("steps", cases.WELL_FORMED_STEPS)
def test_no_imperative_is_refused(steps: tuple[str, ...]) -> None:
    assert refused_steps(steps) == ""


@pytest.mark.parametrize("content", cases.FIRST_PERSON)
def test_the_first_person_is_refused(content: str) -> None:
    assert refused(content) in {"first_person", "pronoun_subject"}


@pytest.mark.parametrize("content", cases.PRONOUN_SUBJECTS)
def test_a_pronoun_for_a_subject_is_refused(content: str) -> None:
    assert refused(content) == "pronoun_subject"


def test_fragments_are_refused() -> None:
    kept = {content for content in cases.FRAGMENTS if not refused(content)}
    assert kept == MISSED_FRAGMENTS


def test_a_number_may_be_part_of_a_name() -> None:
    assert [refused(each) for each in ("Guest 3 sings.", "Bus 7 leaves early.", "3 rings.", "For 3 rings.")] == [
        "", "", "complete_sentence", "complete_sentence",
    ]  # fmt: skip


def test_steps_that_are_no_imperatives_are_refused() -> None:
    kept = {steps for steps in cases.NO_IMPERATIVES if refused_steps(steps) != "imperative_steps"}
    assert kept == MISSED_STEPS


@pytest.mark.parametrize("content", cases.NOT_PAST)
def test_an_episode_of_now_is_warned_of(content: str) -> None:
    assert refused(content, MemoryType.EPISODIC) == ""
    (warning,) = style_warnings(MemoryText(content), MemoryType.EPISODIC, WRITING)
    assert warning.rule == "past_tense"
    assert warning.words in content
    assert style_warnings(MemoryText(content), MemoryType.SEMANTIC, WRITING) == ()


@pytest.mark.parametrize(("content", "stored"), cases.MENDED.items())
def test_what_lacks_a_full_stop_gets_it(content: str, stored: str) -> None:
    assert constrain(MemoryText(content), MemoryType.SEMANTIC, WRITING, Style.FULL).content == stored
    assert constrain(MemoryText(content), MemoryType.SEMANTIC, WRITING, Style.FREE).content == content


@pytest.mark.parametrize(
    "content",
    [
        "The user's website is https://example.org/me",
        "The user writes `x = 1`",
        "The user likes Rust 1.80",
        "The user asked why?",
        'The user said "yes"',
        "Der Nutzer trinkt gern Tee mit der Milch",
    ],
)
def test_what_a_full_stop_could_change_does_not_get_one(content: str) -> None:
    assert constrain(MemoryText(content), MemoryType.SEMANTIC, WRITING, Style.FULL).content == content


@pytest.mark.parametrize("content", [*cases.FIRST_PERSON, *cases.PRONOUN_SUBJECTS, *cases.FRAGMENTS])
def test_free_words_are_never_refused(content: str) -> None:
    assert refused(content, style=Style.FREE) == ""


@pytest.mark.parametrize("steps", cases.NO_IMPERATIVES)
def test_free_steps_are_never_refused(steps: tuple[str, ...]) -> None:
    assert refused_steps(steps, Style.FREE) == ""
    assert refused("No list at all.", MemoryType.PROCEDURAL, Style.FREE) == ""
    assert refused("No list at all.", MemoryType.PROCEDURAL) == "numbered_steps"


@pytest.mark.parametrize(
    "content", ["Der Nutzer mag Tee", "Gute Hunde", "El usuario me dijo algo", "Ana bor i Oslo", "Rode wijn, geen bier"]
)
def test_other_languages_are_not_judged(content: str) -> None:
    assert constrain(MemoryText(content), MemoryType.SEMANTIC, WRITING, Style.FULL).content == content


def test_a_stated_language_counts() -> None:
    assert refused("Tee", lang="de") == ""
    assert refused("Tee") == "complete_sentence"
    assert refused("Der Hund", lang="en") == "complete_sentence"


def test_what_goes_on_in_the_narrative_gets_no_full_stop() -> None:
    text = constrain(MemoryText("The user lives\nin Lisbon\nnear Belém"), MemoryType.SEMANTIC, WRITING, Style.FULL)
    assert (text.content, text.narrative) == ("The user lives in Lisbon", "near Belém")

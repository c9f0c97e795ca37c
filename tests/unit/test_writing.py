"""Writing constraints."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memplane.domain.errors import InvalidText, LimitExceeded, WritingConstraintViolated
from memplane.domain.memory.memory import MemoryText, MemoryType
from memplane.domain.memory.writing import constrain, sentences
from memplane.domain.policy.policy import TypeWriting, WritingRules

RULES = WritingRules(
    types={
        MemoryType.SEMANTIC: TypeWriting(max_chars=60, max_sentences=2, refuse_pronoun_subjects=True),
        MemoryType.EPISODIC: TypeWriting(max_chars=60, max_sentences=2),
        MemoryType.PROCEDURAL: TypeWriting(max_chars=40, max_sentences=9, numbered_steps=True),
    },
    pronouns=frozenset({"i", "i'm", "she", "they", "it"}),
    max_text_chars=400,
    max_title_chars=20,
    max_list_items=3,
)


def written(content: str, kind: MemoryType = MemoryType.SEMANTIC, **more: object) -> MemoryText:
    return constrain(MemoryText(content, **more), kind, RULES)  # type: ignore[arg-type]  # fields checked by MemoryText


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("Dr. Weber met Ana. Fine.", ["Dr. Weber met Ana.", "Fine."]),
        ("J. R. Ewing left", ["J. R. Ewing left"]),
        ('"Stop." Ana left.', ['"Stop."', "Ana left."]),
        ("first line\nsecond line", ["first line", "second line"]),
        ("Version 1.5 is out", ["Version 1.5 is out"]),
        ("The answer was no. Ana left.", ["The answer was no.", "Ana left."]),
        ("", []),
    ],
)
def test_sentences(text: str, found: list[str]) -> None:
    assert sentences(text) == found


def test_what_fits_is_kept_as_it_is() -> None:
    assert written("Ana likes tea. Ana dislikes coffee.") == MemoryText("Ana likes tea. Ana dislikes coffee.")


def test_surplus_sentences_go_to_the_narrative() -> None:
    kept = written("Ana likes tea. Ana dislikes coffee. Ana has a cat.", narrative="Told at lunch.")
    assert kept.content == "Ana likes tea. Ana dislikes coffee."
    assert kept.narrative == "Ana has a cat.\nTold at lunch."


def test_a_sentence_beyond_the_length_goes_to_the_narrative() -> None:
    kept = written("Ana likes tea. " + "Ana dislikes coffee with milk and sugar and foam and cocoa.")
    assert kept.content == "Ana likes tea."
    assert kept.narrative == "Ana dislikes coffee with milk and sugar and foam and cocoa."


def test_one_long_sentence_is_cut_at_a_word_and_kept_whole_in_the_narrative() -> None:
    whole = "Ana likes " + "very " * 20 + "strong tea."
    kept = written(whole)
    assert len(kept.content) <= 60
    assert kept.content.endswith("very…")
    assert kept.narrative == whole


def test_one_long_word_is_cut() -> None:
    kept = written("x" * 100)
    assert kept.content == "x" * 59 + "…"
    assert kept.narrative == "x" * 100


@pytest.mark.parametrize("text", ["I like tea.", "Ana came. She likes tea.", "I’m late.", "THEY left."])
def test_pronoun_subjects_are_refused(text: str) -> None:
    with pytest.raises(WritingConstraintViolated, match="stands by itself"):
        written(text)


@pytest.mark.parametrize(
    "text", ["Iris likes tea.", "Ana says she likes tea.", "Theyre is a town.", "“I’m late,” Ana said."]
)
def test_words_that_only_look_like_pronouns_pass(text: str) -> None:
    assert written(text).content == text


def test_other_types_may_begin_with_a_pronoun() -> None:
    assert written("She left early.", MemoryType.EPISODIC).content == "She left early."


def test_a_type_without_rules_has_only_the_general_limits() -> None:
    text = "She ran. " * 10
    assert written(text, MemoryType.OBSERVATION).content == text.strip()


def test_steps_from_lines() -> None:
    kept = written("Deploy:\n1. Build the image.\n2) Push it.\n- Tell Ana.", MemoryType.PROCEDURAL)
    assert kept.steps == ("Build the image.", "Push it.", "Tell Ana.")
    assert kept.content == "1. Build the image.\n2. Push it.\n3. Tell Ana."
    assert kept.title == "Deploy"


def test_steps_given_apart_keep_the_content() -> None:
    kept = written("How to deploy", MemoryType.PROCEDURAL, steps=("1. Build.", "Push."), title="Deploying")
    assert kept == MemoryText("How to deploy", title="Deploying", steps=("Build.", "Push."))


def test_a_procedure_without_steps_is_refused() -> None:
    with pytest.raises(WritingConstraintViolated, match="numbered steps"):
        written("Just do it.", MemoryType.PROCEDURAL)


def test_a_step_that_is_too_long_is_refused() -> None:
    with pytest.raises(LimitExceeded, match="at most 40"):
        written("1. " + "x" * 41, MemoryType.PROCEDURAL)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"title": "t" * 21}, "title: 21 characters, at most 20"),
        ({"facts": ("a", "b", "c", "d")}, "facts: 4 items, at most 3"),
        ({"narrative": "n" * 401}, "narrative: 401"),
    ],
)
def test_limits(more: dict[str, object], said: str) -> None:
    with pytest.raises(LimitExceeded, match=said):
        written("Ana likes tea.", **more)


def test_an_item_that_cannot_be_stored_is_named() -> None:
    with pytest.raises(InvalidText, match=r"facts\[1\]: holds a NUL"):
        written("Ana likes tea.", facts=("fine", "a\x00b"))


def test_tags_are_folded_and_unique_and_blank_optional_parts_vanish() -> None:
    kept = written("Ana likes tea.", tags=("Tea", "tea", "Drinks"), title="  ", facts=(" ", "one"))
    assert kept.tags == ("tea", "drinks")
    assert kept.title is None
    assert kept.facts == ("one",)


@given(st.text(min_size=1, max_size=300))
def test_nothing_is_lost(text: str) -> None:
    try:
        kept = written(text, MemoryType.EPISODIC)
    except InvalidText:
        return
    assert 0 < len(kept.content) <= 60
    assert len(sentences(kept.content)) <= 2 or kept.content.endswith("…")
    told = "".join(f"{kept.content} {kept.narrative or ''}".split())
    assert all(
        letter in told for letter in "".join(constrain(MemoryText(text), MemoryType.OBSERVATION, RULES).content.split())
    )

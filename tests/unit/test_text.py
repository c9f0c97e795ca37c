"""Text as it is stored and as it is searched."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memplane.domain.errors import InvalidText
from memplane.domain.language.languages import STOP_WORDS
from memplane.domain.language.terms import terms
from memplane.domain.language.text import estimate_tokens, normalise, words


@pytest.mark.parametrize(
    ("given_text", "stored"),
    [
        ("  plain  text ", "plain text"),
        ("tab\there", "tab here"),
        ("line one\r\n  line two\rthree", "line one\nline two\nthree"),
        ("many\n\n\n\n\nlines", "many\n\nlines"),
        ("e\u0301te\u0301", "été"),
        ("bell\x07 and escape\x1b[31m", "bell and escape[31m"),
        ("right\u202eleft", "right\u202eleft"),  # shown where it is rendered, not changed where it is stored
    ],
)
def test_normalised(given_text: str, stored: str) -> None:
    assert normalise(given_text) == stored


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a\x00b", "NUL character at position 1"),
        ("ab\ud800", "lone surrogate at position 2"),
        ("", "is empty"),
        (" \n\t ", "is empty"),
        ("\u200b\u2060\u200d", "is empty"),
        ("\x01\x02", "is empty"),
    ],
)
def test_text_that_cannot_be_stored(text: str, said: str) -> None:
    with pytest.raises(InvalidText, match=f"^note: .*{said}"):
        normalise(text, "note")


@given(st.text(st.characters(max_codepoint=127, exclude_categories=("Cc",)), min_size=1))
def test_a_plain_text_is_normalised_like_every_other(text: str) -> None:
    other = normalise(f"{text} é")  # takes the way of texts that are not plain
    try:
        assert f"{normalise(text)} é" == other
    except InvalidText:
        assert other == "é"


@given(st.text(min_size=1))
def test_normalising_twice_changes_nothing_more(text: str) -> None:
    try:
        once = normalise(text)
    except InvalidText:
        return
    assert normalise(once) == once
    assert unicodedata.is_normalized("NFC", once)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("State-of-the-art", ["state", "of", "the", "art"]),
        ("See HTTPS://Example.org/a-b and WWW.Example.org, Ana", ["see", "and", "ana"]),
        ("ANA'S and Ben’s, but not O’Brien", ["ana", "and", "ben", "but", "not", "o'brien"]),
        ("Ana's plan", ["ana", "plan"]),
        ("Ana’s don’t", ["ana", "don't"]),
        ("see https://example.org/a?b=c now", ["see", "now"]),
        ("snake_case 42", ["snake", "case", "42"]),
        ("ﬁne ÄPFEL", ["fine", "äpfel"]),
    ],
)
def test_words(text: str, found: list[str]) -> None:
    assert words(text) == found


def test_terms_are_stemmed_and_without_stop_words() -> None:
    found = terms("When did the runners run, running?")
    assert set(found.stems.values()) == {"runner", "run"}
    assert found.length == 3
    by_stem = {found.stems[term]: count for term, count in found.counts.items()}
    assert by_stem == {"run": 2, "runner": 1}


def test_term_hashes_are_ascending_32_bit() -> None:
    hashes = list(terms("alpha beta gamma delta epsilon zeta").counts)
    assert hashes == sorted(hashes)
    assert all(0 <= value < 2**32 for value in hashes)


def test_a_question_of_stop_words_has_no_terms() -> None:
    assert terms("What did you do then?").length == 0
    assert terms("What did you paint then?").length == 1


def test_stop_words_are_lower_case() -> None:
    assert all(word == word.lower() for said in STOP_WORDS.values() for word in said)


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("abcd", 1), ("abcde", 2), ("ä" * 4, 2), ("日本", 2)])
def test_tokens_are_a_quarter_of_the_bytes_rounded_up(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens

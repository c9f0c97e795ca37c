"""What is told in other languages is found in them, by other forms of its words."""

import pytest

from support.callers import USER, Caller
from support.telling import write

NOISE = (
    "Der Zug fährt um neun.",
    "The invoice was paid.",
    "Il pleut depuis hier.",
    "会議は青い部屋です。",
    "Мы обедаем в час.",
)

pytestmark = pytest.mark.usefixtures("noise")


@pytest.fixture
def noise(supervisor: Caller) -> None:
    """What else is known, in several languages."""
    for text in NOISE:
        supervisor.remember(text)


def lexical(caller: Caller, question: str) -> list[tuple[str, list[str]]]:
    """What a question finds by words, the best first, with the stems that it holds."""
    body = {"query": question, "explain": True, "filters": {"user_id": USER}}
    items = caller.post("/v1/memory/query", body).json()["items"]
    return [
        (item["text"].split("] ")[1].removeprefix("user: "), item["explain"]["matched"])
        for item in items
        if item["explain"]["matched"]
    ]


@pytest.mark.parametrize(
    ("told", "question", "stem"),
    [
        ("Meine Nachbarin hat zwei Hunde.", "Wer hat einen Hund?", "hund"),
        ("Mi vecina tiene dos gatos negros.", "¿Quién tiene un gato negro?", "gat"),
        ("Моя соседка купила две книги.", "Какую книгу купила соседка?", "книг"),
        ("私は毎日日本語を勉強しています。", "日本語の勉強", "日本"),
    ],
)
def test_a_memory_and_a_turn_are_found_by_another_form(supervisor: Caller, told: str, question: str, stem: str) -> None:
    supervisor.remember(told)
    supervisor.say(told)
    found = lexical(supervisor, question)
    assert [text for text, _ in found[:2]] == [told, told]
    assert all(stem in matched for _, matched in found[:2])


def test_a_language_that_is_said_counts_and_can_be_put_right(supervisor: Caller) -> None:
    made = write(supervisor, "Gute Hunde", lang="xx")
    assert lexical(supervisor, "Hund") == []
    changed = supervisor.patch(f"/v1/memories/{made['id']}", {"lang": "de"})
    assert changed.status_code == 200
    assert [text for text, _ in lexical(supervisor, "Hund")] == ["Gute Hunde"]


def test_a_word_of_two_languages_is_one_word(supervisor: Caller) -> None:
    """Rarity and explanation count the question's word once, whatever languages hold it."""
    supervisor.remember("Alice wohnt mit ihrem Mann in Hamburg.")
    supervisor.remember("Alice lives with her husband in Leeds.")
    found = lexical(supervisor, "Where does Alice live?")
    assert {text for text, _ in found} == {
        "Alice wohnt mit ihrem Mann in Hamburg.", "Alice lives with her husband in Leeds.",
    }  # fmt: skip
    assert all(matched.count("alic") == 1 for _, matched in found)

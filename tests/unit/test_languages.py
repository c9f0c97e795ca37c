"""Words of several languages: each text by its own stems, each question by those of all."""

import zlib

import pytest

from memplane.domain.language.languages import STEMMERS, STOP_WORDS, language_of, pieces
from memplane.domain.language.terms import Terms, parse_query, terms
from memplane.domain.language.text import words

SAID = {
    "cs": "Moje sestra bydlí v Praze a má dva psy, kteří jsou velmi staří.",
    "da": "Min søster bor i Aarhus og hun har to gamle hunde.",
    "de": "Meine Schwester wohnt in Berlin und hat zwei alte Hunde.",
    "en": "My sister lives in Berlin and has two old dogs.",
    "es": "Mi hermana vive en Madrid y tiene dos perros que son muy viejos.",
    "fi": "Minun siskoni asuu Turussa ja hänellä on kaksi vanhaa koiraa.",
    "fr": "Ma sœur habite à Lyon et elle a deux vieux chiens dans son jardin.",
    "hu": "Az én nővérem Budapesten lakik és van neki két öreg kutyája.",
    "it": "Mia sorella vive a Roma e ha due cani che sono molto vecchi.",
    "nl": "Mijn zus woont in Utrecht en zij heeft twee oude honden.",
    "no": "Søsteren min bor i Bergen, og hva hun vil ha er en større hund, ikke noe annet nå.",
    "pl": "Moja siostra mieszka w Krakowie i ma dwa psy, które są bardzo stare.",
    "pt": "Minha irmã mora em Lisboa e ela também tem dois cães que não são velhos.",
    "ro": "Sora mea locuiește în Cluj și are doi câini care sunt foarte bătrâni.",
    "sv": "Min syster bor i Lund och hon har två gamla hundar som är mycket snälla.",
    "tr": "Kız kardeşim Ankara'da yaşıyor ve onun iki köpeği var ama çok yaşlı.",
}


def holds(stored: Terms, question: Terms) -> set[str]:
    """Words of a question, as stems, that a stored text holds."""
    hashes, place, _ = question.wanted()
    stems = [question.stems[term] for term in question.counts]
    return {
        stems[number] for each, number in zip(hashes.tolist(), place.tolist(), strict=True) if each in stored.counts
    }


@pytest.mark.parametrize("lang", SAID)
def test_a_text_s_language_is_found_out(lang: str) -> None:
    assert language_of(words(SAID[lang])) == lang


def test_every_language_with_a_stemmer_is_tried() -> None:
    assert set(SAID) == set(STEMMERS) == set(STOP_WORDS)


@pytest.mark.parametrize(
    "text",
    [
        "Die Hard is her favourite film.",
        "No way, man! Die another day",
        "I met Jean de la Tour and his wife at Los Pollos Hermanos",
        "piano",
        "Berlin",
        "",
        "We saw El Nino on the news, it was comme ci comme ça",
    ],
)
def test_english_with_foreign_words_is_english(text: str) -> None:
    assert language_of(words(text)) == "en"


@pytest.mark.parametrize(
    ("stored", "question"),
    [
        ("Meine Schwester hat zwei Hunde.", "Wer hat einen Hund?"),
        ("Mis hermanas tienen perros.", "¿Qué hermana tiene un perro?"),
        ("Les chiens de ma sœur sont vieux, et elle aussi.", "Quel chien est le plus vieux ?"),
        ("Мои сёстры живут в Москве.", "Где живёт моя сестра, в Москва?"),
        ("Minun koirani ovat hyvin vanhoja.", "koirat"),
        ("私は東京で日本語を勉強しています", "日本語の勉強"),
        ("她在北京学习中文。", "北京"),
        ("αδελφές μου μένουν στην Αθήνα", "αδελφή"),
    ],
)
def test_another_form_of_a_word_is_found(stored: str, question: str) -> None:
    assert holds(terms(stored), parse_query(question))


def test_a_language_that_is_said_counts_and_one_without_a_stemmer_keeps_its_words() -> None:
    assert holds(terms("Hunde", "de"), parse_query("Hund"))
    assert holds(terms("Hunde", "xx"), parse_query("Hunde"))
    assert not holds(terms("Hundes", "xx"), parse_query("Hunde"))
    assert terms("Hunder", "nb") == terms("Hunder", "no") != terms("Hunder")


def test_the_same_letters_of_another_language_are_another_word() -> None:
    """French for "new" has the stem that English news has not."""
    stored = terms("Son appartement est neuf et les nouvelles sont bonnes.")
    assert holds(stored, parse_query("nouvelle"))
    assert not holds(stored, parse_query("nouv"))
    assert holds(terms("a nouv"), parse_query("nouv"))


def test_names_are_found_across_languages() -> None:
    for lang, text in SAID.items():
        (name,) = {word for word in words(text) if word in ("berlin", "madrid", "roma", "utrecht", "lyon")} or {""}
        if name:
            assert holds(terms(text), parse_query(f"Who lives in {name.title()}?")), lang


def test_a_question_s_function_words_are_left_out_in_its_own_language() -> None:
    assert set(parse_query("Wo wohnt meine Schwester?").stems.values()) == {"wohnt", "schwest"}
    assert set(parse_query("Where does my sister live?").stems.values()) == {"sister", "live"}
    assert len(parse_query("Wo wohnt meine Schwester?", 1).counts) == 1


def test_letters_without_spaces_are_searched_in_pairs() -> None:
    assert pieces("東京都") == ["東京", "京都"]
    assert pieces("犬") == ["犬"]
    assert pieces("tokyo東京") == ["tokyo", "東京"]
    assert pieces("tokyo") == ["tokyo"]


def test_every_hash_is_asked_for_once_and_ascending() -> None:
    hashes, place, _ = parse_query("dogs dog Hunde perros книги").wanted()
    assert hashes.tolist() == sorted(set(hashes.tolist()))
    assert set(place.tolist()) == set(range(len(parse_query("dogs dog Hunde perros книги").counts)))


def test_english_stems_are_hashed_without_their_language() -> None:
    """What was stored before other languages were told apart is found as before."""
    assert list(terms("running").counts) == [zlib.crc32(b"run")]
    assert zlib.crc32("книг".encode()) in parse_query("книг").counts

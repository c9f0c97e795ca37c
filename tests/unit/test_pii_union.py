"""The own patterns and an analyzer that speaks as Presidio's does: which results count, and under which names."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Thread

import pytest

from memplane.adapters.pii import choice
from memplane.adapters.pii.choice import finder_of
from memplane.adapters.pii.union import IDS, KINDS, LEAST_SCORE, UnionFinder
from memplane.bootstrap import policies_of
from memplane.domain.errors import PersonalDataRefused, SettingsError
from memplane.domain.privacy.pii import Pii, PiiMatch, find, kinds, redact
from memplane.domain.privacy.screening import Screening, plain
from memplane.settings import Settings

MAIL = "ana@example.org"


@dataclass(frozen=True)
class Result:
    entity_type: str
    start: int
    end: int
    score: float = 0.9


@dataclass
class Analyzer:
    """Finds words that it is told, wherever they stand."""

    words: dict[str, tuple[str, float]]
    busy: int = 0
    most: int = 0

    def analyze(self, text: str, language: str, entities: list[str], *, score_threshold: float) -> Sequence[Result]:
        self.busy += 1
        self.most = max(self.most, self.busy)
        assert language == "en"
        assert score_threshold == LEAST_SCORE
        results = [
            Result(entity, start, start + len(word), score)
            for word, (entity, score) in self.words.items()
            for start in range(len(text))
            if text.startswith(word, start) and entity in entities
        ]
        self.busy -= 1
        return results


def finder(**words: str | tuple[str, float]) -> UnionFinder:
    told = {word: entity if isinstance(entity, tuple) else (entity, 0.9) for word, entity in words.items()}
    return UnionFinder(Analyzer(told), [*KINDS, "PERSON", "DATE_TIME", "URL", "NRP"])


def shown(found: Sequence[PiiMatch], text: str) -> list[tuple[str, str]]:
    return [(one.kind.value, text[one.start : one.end]) for one in found]


@pytest.mark.parametrize(
    ("entity", "kind"),
    [
        ("EMAIL_ADDRESS", "email"),
        ("PHONE_NUMBER", "phone"),
        ("CREDIT_CARD", "card"),
        ("IBAN_CODE", "iban"),
        ("IP_ADDRESS", "ip"),
        *((name, "id_number") for name in IDS),
    ],
)
def test_presidio_s_names_become_kinds(entity: str, kind: str) -> None:
    assert kinds("It is XYZ.", finder(XYZ=entity)) == (kind,)


@pytest.mark.parametrize("entity", ["PERSON", "DATE_TIME", "URL", "NRP", "LOCATION", "SOMETHING_NEW"])
def test_what_is_no_kind_is_left(entity: str) -> None:
    assert finder(XYZ=entity)("It is XYZ.") == []


def test_a_place_is_an_address_when_it_has_a_house_number() -> None:
    places = UnionFinder(Analyzer({"Kungsgatan 5b": ("LOCATION", 0.85), "Stockholm": ("LOCATION", 0.85)}))
    text = "She lives in Stockholm, Kungsgatan 5b."
    assert shown(places(text), text) == [("address", "Kungsgatan 5b")]


def test_a_weak_result_does_not_count_nor_do_bare_digits_without_a_cue() -> None:
    text = "It is XYZ or 5552223333 or 555 222."
    weak = UnionFinder(
        Analyzer({"XYZ": ("US_SSN", 0.3), "5552223333": ("PHONE_NUMBER", 0.4), "555 222": ("PHONE_NUMBER", 0.4)})
    )
    assert shown(weak(text), text) == [("phone", "555 222")]
    cued = UnionFinder(Analyzer({"5552223333": ("PHONE_NUMBER", 0.75)}))
    assert shown(cued(text), text) == [("phone", "5552223333")]


def test_both_are_found_in_order() -> None:
    text = f"XYZ wrote to {MAIL} of XYZ."
    assert shown(finder(XYZ="US_SSN")(text), text) == [("id_number", "XYZ"), ("email", MAIL), ("id_number", "XYZ")]


def test_the_own_kind_stands_where_both_find_something() -> None:
    text = f"Write to {MAIL}."
    union = finder(**{"ana": "US_SSN", f"to {MAIL}": "PHONE_NUMBER"})
    assert shown(union(text), text) == [("email", MAIL)]
    assert union(text, {Pii.ID_NUMBER, Pii.PHONE}) == []
    assert shown(union(text, {Pii.EMAIL}), text) == [("email", MAIL)]


def test_one_of_the_same_kind_makes_a_find_longer() -> None:
    text = f"Write to ü{MAIL}x or so."
    union = finder(**{f"to ü{MAIL}x": "EMAIL_ADDRESS"})
    assert shown(union(text), text) == [("email", f"to ü{MAIL}x")]


def test_of_two_results_the_surer_stands() -> None:
    text = "It is ABC DEF."
    union = finder(**{"ABC DEF": ("US_SSN", 0.5), "DEF": ("PHONE_NUMBER", 0.8)})
    assert shown(union(text), text) == [("phone", "DEF")]


def test_without_results_it_finds_what_the_own_patterns_find() -> None:
    for text in ("", " ", MAIL, f"Call +49 30 1234567 or write to {MAIL}", "4111 1111 1111 1111"):
        assert tuple(finder()(text)) == find(text)
        assert tuple(finder()(text, {Pii.EMAIL})) == find(text, {Pii.EMAIL})


def test_a_long_text_is_read_in_pieces_that_lose_nothing() -> None:
    word = "X" * 40 + " " + "Y" * 40
    union = finder(**{word: "US_SSN"})
    for before in range(1880, 2060, 7):
        text = "a " * (before // 2) + word + " b" * 3000 + word
        assert shown(union(text), text) == [("id_number", word)] * 2, before
    unbroken = "a" * 5000 + word
    assert shown(union(unbroken), unbroken) == [("id_number", word)]


def test_rules_and_marks_are_for_all_that_is_found() -> None:
    union = finder(XYZ="US_SSN")
    text = f"XYZ is {MAIL}."
    assert redact(text, {Pii.ID_NUMBER, Pii.EMAIL}, union) == "[id_number] is [email]."
    assert plain(text, {Pii.ID_NUMBER: Screening.REDACT}, "text", union) == f"[id_number] is {MAIL}."
    with pytest.raises(PersonalDataRefused) as refused:
        plain(text, {Pii.ID_NUMBER: Screening.REFUSE}, "text", union)
    assert refused.value.extra == {"field": "text", "kinds": ["id_number"]}
    assert plain(text, {Pii.ID_NUMBER: Screening.REFUSE}, "text", find) == text


def test_several_threads_get_the_same() -> None:
    analyzer = Analyzer({"XYZ": ("US_SSN", 0.9)})
    union = UnionFinder(analyzer)
    text = f"XYZ is {MAIL}. " * 20
    got: list[Sequence[PiiMatch]] = []
    threads = [Thread(target=lambda: got.append(union(text))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 8
    assert all(found == got[0] and len(found) == 40 for found in got)
    assert analyzer.most == 1


def test_the_policy_carries_the_finder_that_the_settings_choose(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MEMPLANE_PII", raising=False)
    monkeypatch.delenv("MEMPLANE_PII_MODEL", raising=False)
    assert finder_of(Settings()) is find
    assert policies_of(None).current.find_pii is find
    union = finder()
    policies = policies_of(None, union)
    assert policies.current.find_pii is union
    assert policies.reload().find_pii is union
    assert policies.current == policies_of(None).current  # what finds is no part of what the files say


def test_presidio_that_is_not_installed_is_named_with_the_command_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("presidio_analyzer", "presidio_analyzer.predefined_recognizers", "presidio_analyzer.nlp_engine"):
        monkeypatch.setitem(sys.modules, name, None)  # as Python has what cannot be imported
    monkeypatch.setenv("MEMPLANE_PII", "presidio")
    monkeypatch.delenv("MEMPLANE_PII_MODEL", raising=False)
    choice._presidio.cache_clear()
    with pytest.raises(SettingsError) as refused:
        finder_of(Settings())
    assert refused.value.code == "settings_invalid"
    assert "pip install 'memplane[presidio]'" in refused.value.detail


def test_a_model_without_presidio_is_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MEMPLANE_PII", raising=False)
    monkeypatch.setenv("MEMPLANE_PII_MODEL", "en_core_web_sm")
    with pytest.raises(SettingsError, match="MEMPLANE_PII=presidio"):
        finder_of(Settings())

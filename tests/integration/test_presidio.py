"""Presidio itself, where the extra is installed: without a model, without a network, and through the whole product."""

import asyncio
import shutil
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NoReturn

import pytest

import memplane
from memplane.adapters.pii.presidio import presidio
from memplane.adapters.pii.union import IDS, UnionFinder
from memplane.adapters.policy import shipped_policies
from memplane.client import Invalid
from memplane.domain.errors import SettingsError
from memplane.domain.privacy.pii import find

pytest.importorskip("presidio_analyzer")

# What Presidio finds and the own patterns do not.
ITS_OWN = "The code of Maria is RSSMRA85T10A562S."
PLAIN = "Anna moved to Berlin in 2019 and likes https://example.com very much; the build took 1700000000 steps."


def _refuse(*_arguments: object) -> NoReturn:
    raise AssertionError("something asks the network")


@pytest.fixture(scope="module")
def union() -> UnionFinder:
    return presidio()


def shown(found: object, text: str) -> list[tuple[str, str]]:
    return [(one.kind.value, text[one.start : one.end]) for one in found]  # type: ignore[attr-defined]  # finds


@pytest.mark.parametrize(
    ("kind", "said", "value"),
    [
        ("email", "Write to {}.", "ana@example.org"),
        ("phone", "Call {} now.", "212-555-5555"),
        ("card", "It is {}.", "4111 1111 1111 1111"),
        ("iban", "It is {}.", "DE89 3704 0044 0532 0130 00"),
        ("ip", "It is {}.", "10.1.2.3"),
        ("id_number", "The code is {}.", "RSSMRA85T10A562S"),
        ("id_number", "He gave {}.", "X1234567L"),
        ("id_number", "The nhs says {}.", "9434765919"),
    ],
)
def test_each_kind_is_found_without_a_network(
    monkeypatch: pytest.MonkeyPatch, union: UnionFinder, kind: str, said: str, value: str
) -> None:
    monkeypatch.setattr(socket.socket, "connect", _refuse)
    monkeypatch.setattr(socket, "getaddrinfo", _refuse)
    text = said.format(value)
    assert shown(union(text), text) == [(kind, value)]


def test_names_days_places_and_bare_numbers_are_left(union: UnionFinder) -> None:
    assert list(union(PLAIN)) == []


def test_it_finds_what_the_own_patterns_do_not(union: UnionFinder) -> None:
    assert find(ITS_OWN) == ()
    assert shown(union(ITS_OWN), ITS_OWN) == [("id_number", "RSSMRA85T10A562S")]


def test_every_entity_has_a_recogniser(union: UnionFinder) -> None:
    there = set(union._analyzer.get_supported_entities("en"))  # type: ignore[attr-defined]  # Presidio's own
    assert there >= set(IDS)


def test_several_threads_get_the_same(union: UnionFinder) -> None:
    text = f"{ITS_OWN} Write to ana@example.org or call 212-555-5555. " * 5
    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(union, [text] * 32))
    assert all(found == got[0] for found in got)
    assert len(got[0]) == 15


def test_a_model_of_the_operator_is_used_and_none_is_downloaded(tmp_path: Path) -> None:
    import spacy  # noqa: PLC0415 - it comes with the extra

    with pytest.raises(SettingsError, match="no spaCy model 'no_such_model'"):
        presidio("no_such_model")
    made = spacy.blank("en")
    ruler = made.add_pipe("entity_ruler")
    labels = {"Kungsgatan 5b": "FAC", "Stockholm": "GPE", "Astrid": "PERSON", "tea": "STRANGE"}
    ruler.add_patterns([{"label": label, "pattern": words} for words, label in labels.items()])
    made.to_disk(tmp_path / "model")
    union = presidio(str(tmp_path / "model"))
    text = f"Astrid drinks tea in Stockholm, Kungsgatan 5b. {ITS_OWN}"
    assert shown(union(text), text) == [("address", "Kungsgatan 5b"), ("id_number", "RSSMRA85T10A562S")]


def test_what_is_written_is_held_to_the_rules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    policies = shutil.copytree(shipped_policies(), tmp_path / "policies")
    path = policies / "categories.yaml"
    text = path.read_text(encoding="utf-8").replace("{name: goals,", "{name: goals, pii: {id_number: tag},")
    path.write_text("pii: {id_number: redact, iban: refuse}\n" + text, encoding="utf-8")
    monkeypatch.setenv("MEMPLANE_PII", "presidio")

    async def work() -> None:
        async with memplane.open(tmp_path / "memory.db", policies=policies) as memory:
            tagged = await memory.get((await memory.remember(ITS_OWN, user_id="u", category="goals")).id)
            assert (tagged.content, tagged.pii) == (ITS_OWN, ["id_number"])
            marked = await memory.get((await memory.remember(ITS_OWN, user_id="u", category="preferences")).id)
            assert marked.content == "The code of Maria is [id_number]."
            with pytest.raises(Invalid):
                await memory.remember("It is DE89 3704 0044 0532 0130 00.", user_id="u", category="preferences")

    asyncio.run(work())

"""No work on a text grows faster than the text: each rule of language, on what a grammar makes."""

import re
import unicodedata
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime

import pytest

from memplane.bootstrap import policies_of
from memplane.domain.errors import MemplaneError
from memplane.domain.jobs.inference_checks import claims_or_orders
from memplane.domain.language import entities, query_hints
from memplane.domain.language.enrichment_rules import spans
from memplane.domain.language.extraction import fact_grounding, procedure_extraction
from memplane.domain.language.extraction.extraction import claimed, extract
from memplane.domain.language.profile_statements import Sought, stated_fields
from memplane.domain.language.terms import parse_query, terms
from memplane.domain.language.text import normalise, unicode_form, words
from memplane.domain.memory import tool_runs
from memplane.domain.memory.memory import MemoryText, MemoryType
from memplane.domain.memory.merging import value_hash
from memplane.domain.memory.tombstones import said_keys, skeleton
from memplane.domain.memory.writing import Style, constrain, style_warnings
from memplane.domain.privacy.pii import EVERY, find, redact
from memplane.domain.ranking.fencing import quote_text
from support.growing import REPEATED, Make, grammar, grown, growth, timed

SIZE = 16_000
"""Characters of the longest text that a memory's field may have."""
_POLICY = policies_of(None).current
_NOW = datetime(2026, 1, 1, tzinfo=UTC)
_FIELDS = frozenset(_POLICY.consent.sensitive)
_SOUGHT = Sought(frozenset(), _FIELDS, frozenset({"ana"}), 2026)


def _styled(text: MemoryText, kind: MemoryType) -> object:
    return constrain(text, kind, _POLICY.writing, Style.FULL)


WORK: Mapping[str, Callable[[str], object]] = {
    "normalise": normalise,
    "words": words,
    "skeleton": skeleton,
    "constrain": lambda text: constrain(MemoryText(text), MemoryType.SEMANTIC, _POLICY.writing),
    "constrain a procedure": lambda text: constrain(MemoryText(text), MemoryType.PROCEDURAL, _POLICY.writing),
    "hold an agent's words to style": lambda text: _styled(MemoryText(text), MemoryType.SEMANTIC),
    "hold an agent's steps to style": lambda text: _styled(MemoryText("Do it.", steps=(text,)), MemoryType.PROCEDURAL),
    "warn of an episode": lambda text: style_warnings(MemoryText(text), MemoryType.EPISODIC, _POLICY.writing),
    "find personal data": find,
    "redact": lambda text: redact(text, EVERY),
    "fields of a content": lambda text: stated_fields(MemoryText(text), {}, _SOUGHT),
    "fields of a narrative": lambda text: stated_fields(MemoryText("The hall.", narrative=text), {}, _SOUGHT),
    "fields of an attribute": lambda text: stated_fields(MemoryText("The hall."), {"name": text}, _SOUGHT),
    "terms": terms,
    "terms of a question": parse_query,
    "times of a question": lambda text: query_hints.spans_in(text, _NOW),
    "names of a question": query_hints.names_in,
    "phrases of a question": lambda text: query_hints.phrases_in(text, parse_query(text)),
    "mentions": entities.mentions,
    "names": spans,
    "extract": lambda text: extract(text, speaker="Ana", when=_NOW),
    "claimed": lambda text: claimed(text, _FIELDS, speaker="Ana", when=_NOW),
    "assertions": fact_grounding.assertions,
    "denies": fact_grounding.denies,
    "dictated": procedure_extraction.dictated,
    "claims or orders": claims_or_orders,
    "rejected values": lambda text: said_keys(MemoryText(text, facts=(text,)), {"a": text}),
    "value hash": lambda text: value_hash(MemoryText(text)),
    "line of an observation": lambda text: tool_runs.line("search", {"q": text}, text),
    "secrets of arguments": lambda text: tool_runs.without_secrets({"q": text}),
    "quoted": quote_text,
}


def spoken(work: Callable[[str], object]) -> Callable[[str], None]:
    """The work, whether or not it refuses the text."""

    def done(text: str) -> None:
        with suppress(MemplaneError):
            work(text)

    done("Ana lives in Porto.")  # what is worked out once is no growth
    return done


@pytest.mark.parametrize("name", WORK)
def test_work_grows_as_its_text_does(name: str) -> None:
    work = spoken(WORK[name])
    found = {text: growth(timed(work), make, SIZE) for text, make in grown(list(WORK).index(name), 12)}
    assert not {text: str(each) for text, each in found.items() if not each.is_linear}


def quadratic(text: str) -> int:
    """What a rule must not do: look from each word at all that follow."""
    parts = text.split()
    return sum(one == other for place, one in enumerate(parts) for other in parts[place:])


@pytest.mark.parametrize(
    ("work", "text"),
    [
        (quadratic, "distinct words"),
        (re.compile(r"(?:\w+ )*lives$").search, "names of names"),
        (re.compile(r"\s+$").search, "spaces, then an end"),
        (lambda text: unicodedata.normalize("NFC", text), "disordered marks"),
    ],
    ids=["loop", "pattern", "spaces at the end", "marks by the standard library"],
)
def test_what_grows_faster_is_found(work: Callable[[str], object], text: str) -> None:
    """The control."""
    makes: dict[str, Make] = dict(grammar())
    found = growth(timed(work), makes[text], SIZE)
    assert not found.is_linear
    assert found.exponent > 1.5


@pytest.mark.parametrize("form", ["NFC", "NFKC", "NFKD"])
def test_the_forms_are_those_of_the_standard(form: str) -> None:
    """Marks sorted before make the same text, alone and behind letters."""
    for text in (*REPEATED.values(), *(make(2_000) for _, make in grammar())):
        for each in (text, f"é{text}e", text[::-1]):
            assert unicode_form(form, each) == unicodedata.normalize(form, each)  # type: ignore[arg-type]  # one of them


def test_the_texts_are_as_long_as_asked() -> None:
    assert {len(make(1_000)) for _, make in grammar()} == {1_000}

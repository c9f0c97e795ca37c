"""What several extractors found becomes one answer; and the rules that may take their time."""

import importlib.util
import itertools
import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memplane.domain.language import enrichment_rules as rules
from memplane.domain.language.enrichment import KINDS, Span, enriched, resolved
from memplane.domain.language.entities import MAX_MENTIONS, Mention, mentions

SPANS = st.lists(
    st.builds(
        lambda start, size, kind, confidence: Span(start, start + size, kind, confidence),
        st.integers(0, 30), st.integers(0, 8), st.sampled_from((*KINDS, None)), st.sampled_from((0.3, 0.5, 0.9)),
    ),
    max_size=14,
)  # fmt: skip


def found(text: str) -> dict[str, str]:
    return {mention.name: mention.kind for mention in enriched(text, rules.spans(text)).mentions}


class TestResolving:
    """Spans that overlap are settled by confidence, then by length."""

    @given(SPANS)
    def test_no_two_overlap_and_the_order_is_of_no_account(self, spans: list[Span]) -> None:
        chosen = resolved(spans)
        assert all(one.end <= other.start for one, other in itertools.pairwise(chosen))
        assert (
            resolved(reversed(spans))
            == chosen
            == resolved(sorted(spans, key=lambda span: span.end))
            == resolved(chosen)
        )

    @given(SPANS)
    def test_who_is_left_out_gave_way_to_a_surer_or_longer_one(self, spans: list[Span]) -> None:
        chosen = resolved(spans)
        assert set(chosen) <= set(spans)
        for span in set(spans) - set(chosen):
            rivals = [each for each in chosen if each.start < span.end and span.start < each.end]
            assert span.start == span.end or any(
                (each.confidence, each.end - each.start) >= (span.confidence, span.end - span.start) for each in rivals
            )

    @pytest.mark.parametrize(
        ("spans", "left"),
        [
            ([(0, 4, "place", 0.9), (2, 9, "person", 0.8)], [(0, 4)]),
            ([(0, 4, "place", 0.8), (2, 9, "person", 0.8)], [(2, 9)]),
            ([(0, 4, "place", 0.8), (2, 6, "person", 0.8)], [(0, 4)]),
            ([(0, 4, "place", 0.8), (4, 8, "person", 0.1)], [(0, 4), (4, 8)]),
        ],
    )
    def test_by_hand(self, spans: list[tuple[int, int, str, float]], left: list[tuple[int, int]]) -> None:
        assert [(span.start, span.end) for span in resolved(Span(*each) for each in spans)] == left


class TestOneAnswer:
    """What the text mentions, told as the rules of a write tell it."""

    @given(st.text("Ana Bo.'@#x1\n", max_size=40), SPANS)
    def test_any_spans_of_any_text(self, text: str, spans: list[Span]) -> None:
        told = enriched(text, spans)
        assert len(told.mentions) <= MAX_MENTIONS
        assert len({(each.kind, each.key) for each in told.mentions}) == len(told.mentions)
        assert all(each.key and each.name in text for each in told.mentions if each.kind in KINDS)
        assert set(told.dropped) <= set(mentions(text))
        assert not set(told.dropped) & set(told.mentions)

    def test_what_has_a_form_of_its_own_stays(self) -> None:
        text = "Mail ana@example.com on 2026-05-12."
        assert enriched(text, [Span(0, len(text), "organisation", 1.0)]).mentions == mentions(text) != ()

    def test_what_is_hidden_is_not_told(self) -> None:
        text = "The user met Ana Ruiz in Lisbon."
        shown, hidden = (enriched(text, rules.spans(text), spots) for spots in ((), [(13, 21)]))
        assert [each.name for each in shown.mentions] == ["Ana Ruiz", "Lisbon"]
        assert [each.name for each in hidden.mentions] == ["Lisbon"]
        assert hidden.dropped == (Mention("person", "Ana Ruiz", "ana ruiz"),)

    def test_one_place_shows_the_kind_of_all(self) -> None:
        text = "Kolo rang. The user's cousin Kolo was late."
        spans = [Span(0, 4, "name", 0.5), Span(29, 33, "person", 0.9)]
        assert [(each.kind, each.key) for each in enriched(text, spans).mentions] == [("person", "kolo")]

    def test_a_kind_that_is_known_is_not_forgotten(self) -> None:
        text = "The user lives in Ghent."
        assert mentions(text) == (Mention("place", "Ghent", "ghent"),)
        assert enriched(text, [Span(18, 23, "name", 0.9)]).mentions == mentions(text)

    def test_what_only_seemed_to_be_a_name_is_dropped(self) -> None:
        text = "The atlas project meets on Mondays."
        assert [each.key for each in mentions(text)] == ["mondays"]
        told = enriched(text, rules.spans(text))
        assert [each.key for each in told.dropped] == ["mondays"]
        assert all(each.key != "mondays" for each in told.mentions)


class TestRules:
    """Names by what stands around them; each with a neighbour that is none."""

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("my boss karim wants the slides", {"karim": "person"}),
            ("my boss wants the slides", {}),
            ("i grew up in tromsø", {"tromsø": "place"}),
            ("i grew up in poverty", {}),
            ("Saoirse is the user's oldest friend.", {"Saoirse": "person"}),
            ("Patience is the user's best quality.", {}),
            ("Guests: Aroha, Benedikt and Dov.", {"Aroha": "person", "Benedikt": "person", "Dov": "person"}),
            ("Colours: Red, green and blue.", {}),
            ("The user drives a Kestova 8.", {"Kestova 8": "name"}),
            ("The user ordered from Ezra's Kitchen.", {"Ezra's Kitchen": "organisation"}),
            ("The user is assigned to project bluebird.", {"bluebird": "project"}),
            ("The user is good at project management.", {}),
            ("Weekly reports go out early.", {}),
            ("", {}),
        ],
    )
    def test_names(self, text: str, expected: dict[str, str]) -> None:
        assert found(text) == expected

    @given(st.text(max_size=60))
    def test_any_text(self, text: str) -> None:
        assert all(
            0 <= span.start < span.end <= len(text) and span.kind in (*KINDS, None) for span in rules.spans(text)
        )

    @pytest.mark.parametrize("words", ["Ana's ", '"Aa ', "Ana, ", "my friend ", "x. Ab ", "Mr. "])
    def test_a_long_text_has_an_end(self, words: str) -> None:
        assert all(span.end <= 20_000 for span in rules.spans(words * 30_000))


class TestLabelled:
    """Against the labelled sentences, of which the rules were not written by the second half."""

    @pytest.fixture
    def bench(self, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
        root = Path(__file__).resolve().parents[2]
        monkeypatch.syspath_prepend(root / "benchmarks")
        spec = importlib.util.spec_from_file_location("names_bench", root / "benchmarks" / "names.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, spec.name, module)
        spec.loader.exec_module(module)
        return module

    @pytest.mark.parametrize("half", ["development", "test"])
    def test_better_than_the_rules_of_a_write(self, bench: ModuleType, half: str) -> None:
        sentences = bench.load(half)
        assert len(sentences) >= 100
        before, after = (bench.measured(sentences, find) for find in (bench.by_write, bench.by_enrichment))
        for figure, least in (("precision", 0.03), ("recall", 0.08), ("kind", 0.25)):
            assert after[figure] >= before[figure] + least, (figure, before, after)

    def test_the_halves_share_no_sentence(self, bench: ModuleType) -> None:
        one, other = ({sentence.text for sentence in bench.load(half)} for half in ("development", "test"))
        assert not one & other

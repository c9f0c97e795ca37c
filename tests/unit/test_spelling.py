"""The plain spelling of a text: what is clothes and what is the value."""

import time

import pytest

from memplane.domain.language.profile_statements import Sought, stated_fields
from memplane.domain.language.spelling import bare, spellings
from memplane.domain.memory.memory import MemoryText
from memplane.domain.memory.tombstones import rejected_keys, said_keys, skeleton, value_key
from support.clothes import CLOTHES, ORDINARY, Clothes

SENSITIVE = frozenset({"preferred_name", "pronouns", "city", "language"})
PORTO = "The user lives in Porto."


def stated(text: str, attributes: dict[str, object] | None = None) -> set[tuple[str, str]]:
    found = stated_fields(MemoryText(text), attributes, Sought(frozenset(), SENSITIVE))
    return {(each.field, skeleton(each.value)) for each in found}


@pytest.mark.parametrize("clothes", CLOTHES, ids=lambda each: each.name)
def test_a_value_is_the_same_in_other_clothes(clothes: Clothes) -> None:
    dressed, plain = MemoryText(clothes.on(PORTO)), MemoryText(PORTO)
    assert not rejected_keys(plain).isdisjoint(said_keys(dressed))
    assert not rejected_keys(dressed).isdisjoint(said_keys(plain)), "whichever was rejected"
    assert rejected_keys(MemoryText("The user lives in Braga.")).isdisjoint(said_keys(dressed))


@pytest.mark.parametrize("clothes", CLOTHES, ids=lambda each: each.name)
def test_a_statement_is_read_in_other_clothes(clothes: Clothes) -> None:
    fields = stated_fields(MemoryText(clothes.on(PORTO)), {}, Sought(frozenset(), SENSITIVE))
    assert [each.field for each in fields] == ["city"]
    assert any(value_key("Porto") in each.keys for each in fields)


@pytest.mark.parametrize("text", ORDINARY)
def test_an_ordinary_text_states_nothing_and_keeps_its_key(text: str) -> None:
    assert stated(text) == set()
    assert value_key(text) in said_keys(MemoryText(text))
    others = [MemoryText(each) for each in ORDINARY if each != text]
    assert all(rejected_keys(other).isdisjoint(said_keys(MemoryText(text))) for other in others)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The model is A1.", "The model is AI."),
        ("The vitamin is B12.", "The vitamin is B13."),
        ("The user likes C++.", "The user likes C."),
        ("The limit is 1.5.", "The limit is 15."),
        ("The type is List<int>.", "The type is List<str>."),
        ("The flag is 🇵🇹🇪🇸 today.", "The flag is 🇵🇹🇫🇷 today."),
        ("The year is 2014.", "The year is zola."),
    ],
)
def test_another_value_stays_another(one: str, other: str) -> None:
    ours, theirs = (set(map(skeleton, list(spellings(each))[1:] or [each])) for each in (one, other))
    assert ours.isdisjoint(theirs)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("`a` and *b* and __c__", "a and b and c"),
        ("snake_case and __init__.py", "snake_case and init.py"),
        ("[the plan](https://a.b/c_d)", "the plan"),
        ("if a < b and c > d", "if a < b and c > d"),
        ("List<int> &amp; Map<K, V>", "List<int> & Map<K, V>"),
        ("🇵🇹 is a flag, 🇵🇴🇷🇹🇴 a word", "🇵🇹 is a flag, PORTO a word"),
        ("São Paulo, Łódź, Åse", "São Paulo, Łódź, Åse"),
        ("हिन्दी and 東京", "हिन्दी and 東京"),
    ],
)
def test_what_is_left_of_a_text(text: str, plain: str) -> None:
    assert bare(text) == plain


@pytest.mark.parametrize(
    "attributes",
    [
        {"c1ty": "Porto"},
        {"**city**": "Porto"},
        {"\u0441ity": "Porto"},
        {"user": {"\uff43ity": "🅿🅾🆁🆃🅾"}},
        {"The user lives in Porto": True},
        {"note": "The user l<b>iv</b>es in Porto"},
    ],
    ids=ascii,
)
def test_attributes_are_read_too(attributes: dict[str, object]) -> None:
    assert stated("A note.", attributes) == {("city", "porto")}
    assert stated("A note.", {"capacity": "Porto", "release 2": "Porto"}) == set()


def test_the_name_of_an_attribute_is_said() -> None:
    buried = rejected_keys(MemoryText(PORTO))
    assert not buried.isdisjoint(said_keys(MemoryText("A note."), {"**The user lives in Porto**": True}))
    assert buried.isdisjoint(said_keys(MemoryText("A note."), {"The user lives in Braga": True}))


@pytest.mark.parametrize(
    "piece",
    [
        "<b", "<!--", "[a](", "](", "[", "_", "_a_", "a b ", "a.b", "&#80;", "*", "🇵", "P0rt0 ", "in\n", "in \t ",
        "e\u0301", "a@",
    ],
    ids=ascii,
)  # fmt: skip
def test_long_texts_take_time_in_proportion(piece: str) -> None:
    def seconds(size: int) -> float:
        text = MemoryText((piece * size)[:size])
        taken = []
        for _ in range(3):
            started = time.process_time()
            said_keys(text)
            stated_fields(text, {}, Sought(frozenset(), SENSITIVE))
            taken.append(time.process_time() - started)
        return min(taken)

    small, large = seconds(4_000), seconds(16_000)
    assert large < 0.5 or large < 6 * small

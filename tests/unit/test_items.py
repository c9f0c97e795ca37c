"""An item's value comes back as it was, whatever order and numbers a database makes of it."""

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memplane.domain.errors import InvalidRequest, LimitExceeded
from memplane.domain.memory.items import Address, attributes_of, checked_address, is_item, item_of, no_item, words_of
from memplane.domain.memory.memory import Memory, MemoryText, MemoryType, Source, Visibility, new_id
from memplane.domain.memory.merging import value_hash

NOW = datetime(2026, 11, 22, tzinfo=UTC)
ADDRESS = Address("ana", "tasks", ("1", "a.b"), "k")
_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**62), 2**62)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
)
VALUES = st.dictionaries(
    st.text(max_size=4),
    st.recursive(
        _SCALARS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=12,
    ),
    max_size=4,
)


def as_jsonb(value: object) -> object:
    """A value as PostgreSQL gives it back: members by length and name, numbers as decimals."""
    match value:
        case bool() | None | str():
            return value
        case int():
            return value
        case float():
            exact = Decimal(repr(value))
            whole = exact == exact.to_integral_value() and "." not in format(exact, "f")
            return int(exact) if whole else abs(value) if value == 0 else value
        case list():
            return [as_jsonb(each) for each in value]
        case dict():
            return {name: as_jsonb(value[name]) for name in sorted(value, key=lambda each: (len(each.encode()), each))}
        case _:
            raise AssertionError(value)


def memory(attributes: dict[str, Any], **given: Any) -> Memory:  # noqa: ANN401 - of a memory
    text = MemoryText("said")
    plain = {"external_id": ADDRESS.name, "category": "tasks", "user_id": "ana"} | given
    return Memory(
        id=new_id(), type=MemoryType.OBSERVATION, visibility=Visibility.PRIVATE, text=text, value_hash=value_hash(text),
        source=Source.AGENT, recorded_at=NOW, updated_at=NOW, attributes=attributes, **plain,
    )  # fmt: skip


@given(VALUES)
def test_a_value_comes_back_bit_for_bit(value: dict[str, Any]) -> None:
    try:
        kept = attributes_of(ADDRESS, value, timedelta(minutes=1))
    except LimitExceeded:
        return
    for stored in (kept, json.loads(json.dumps(kept)), as_jsonb(json.loads(json.dumps(kept)))):
        found = item_of(memory(stored))  # type: ignore[arg-type]  # an object
        assert found is not None
        assert found.address == ADDRESS
        assert json.dumps(found.value) == json.dumps(value)


def test_what_a_database_would_change_is_why_more_is_kept() -> None:
    value = {"zz": 1e16, "a": -0.0, "b": 1.0}
    assert json.dumps(as_jsonb(value)) != json.dumps(value)


@pytest.mark.parametrize(
    "change",
    [{"category": "goals"}, {"user_id": "bo"}, {"external_id": None}, {"external_id": "item:x"}],
    ids=str,
)
def test_a_memory_under_another_name_is_no_item(change: dict[str, Any]) -> None:
    kept = attributes_of(ADDRESS, {"a": 1}, None)
    assert item_of(memory(kept)) is not None
    expected = change == {"user_id": "bo"}  # a user has names of its own: the same one is another item
    assert (item_of(memory(kept, **change)) is not None) == expected
    for broken in ({**kept, "key": 1}, {**kept, "namespace": ["1", 2]}, {**kept, "value": [1]}, {}):
        assert item_of(memory(broken)) is None


def test_what_is_kept_besides_may_be_anybody_s_and_does_no_harm() -> None:
    kept = attributes_of(ADDRESS, {"b": 1e16, "a": 2}, None)
    for broken in ({"order": "x"}, {"order": [[1, "b"]]}, {"numbers": [[1, "nan?"], ["x"], 3]}, {"lives": "long"}):
        found = item_of(memory({**kept, **broken}))
        assert found is not None
        assert found.value == {"b": 1e16, "a": 2}


def test_two_items_that_say_the_same_are_two_and_other_memories_one() -> None:
    text = MemoryText("the same")
    assert value_hash(text, ADDRESS.name) != value_hash(text, Address("ana", "tasks", (), "k").name)
    assert value_hash(text, "their own name") == value_hash(text)
    assert is_item(ADDRESS.name)
    assert no_item(memory({"a": 1})).attributes == {}
    assert no_item(memory({"a": 1}, external_id="own")).attributes == {"a": 1}


@pytest.mark.parametrize(
    ("key", "value", "texts", "content", "title"),
    [
        ("favourite_colour", {"text": "Ana likes blue"}, None, "Ana likes blue", "favourite_colour"),
        ("0198aa11-2233-4455-6677-8899aabbccdd", {"theme": "dark", "n": 2}, None, "theme: dark; n: 2", None),
        ("k", {"a": {"b": [1, True]}, "c": None}, None, "a.b: 1, yes", None),
        ("k", {"a": [{"b": "x"}, {"b": "y"}]}, None, "a.b: x; a.b: y", None),
        ("key", {"a": "b"}, [], "key", "key"),
        ("key", {"a": "b"}, ["only this"], "only this", "key"),
        ("", {}, None, "(empty)", None),
        ("\u200b", {}, None, "(empty)", None),
    ],
)
def test_a_value_in_words(
    key: str, value: dict[str, Any], texts: list[str] | None, content: str, title: str | None
) -> None:
    words = words_of(Address("ana", "tasks", (), key), value, texts)
    assert (words.content, words.title) == (content, title)


def test_a_long_value_is_found_by_all_of_it() -> None:
    words = words_of(ADDRESS, {"text": "word " * 1_000 + "end"})
    assert len(words.content) <= 1_001
    assert words.narrative is not None
    assert words.narrative.endswith("end")


def test_what_cannot_be_kept_is_refused() -> None:
    with pytest.raises(InvalidRequest):
        attributes_of(ADDRESS, {"a": {1: 2}}, None)  # type: ignore[dict-item]  # refused
    with pytest.raises(InvalidRequest):
        checked_address(Address("ana", "tasks", (1,), "k"))  # type: ignore[arg-type]  # refused
    with pytest.raises(LimitExceeded):
        checked_address(Address("ana", "tasks", ("x",) * 33, "k"))
    with pytest.raises(LimitExceeded):
        checked_address(Address("ana", "tasks", (), "k" * 513))


def test_an_end_moves_only_when_that_makes_a_difference() -> None:
    kept = attributes_of(ADDRESS, {"a": 1}, timedelta(minutes=100))
    for left, moves in ((timedelta(minutes=50), True), (timedelta(minutes=99, seconds=30), False)):
        found = item_of(memory(kept, expires_at=NOW + left))
        assert found is not None
        assert (found.end_after(NOW) == NOW + timedelta(minutes=100)) == moves
        assert (found.end_after(NOW) is None) != moves

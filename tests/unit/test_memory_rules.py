"""Identity, duplicates, lifecycle and attributes."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from memplane.domain.errors import InvalidRequest, LimitExceeded, MemplaneError, StateConflict
from memplane.domain.memory.attributes import MAX_DEPTH, MAX_NODES, check_attributes
from memplane.domain.memory.lifecycle import STEPS, check_transition
from memplane.domain.memory.memory import MemoryText, State, first_id, new_id
from memplane.domain.memory.merging import value_hash


def test_ids_are_ordered_by_time() -> None:
    ids = [new_id() for _ in range(200)]
    assert ids == sorted(ids)
    assert len(set(ids)) == 200
    assert all(type(one) is UUID and one.version == 7 for one in ids)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Ana likes tea.", "ana  likes TEA", True),
        ("Ana uses C.", "Ana uses C#.", False),
        ("It is -5 degrees", "It is 5 degrees", False),
        ("Ana likes tea.", "Ana likes coffee.", False),
    ],
)
def test_exact_duplicates(one: str, other: str, same: bool) -> None:
    assert (value_hash(MemoryText(one)) == value_hash(MemoryText(other))) is same


def test_a_value_is_all_that_is_said_and_parts_do_not_run_together() -> None:
    assert value_hash(MemoryText("a", facts=("x",))) == value_hash(MemoryText("A.", facts=("X ",)))
    assert value_hash(MemoryText("a", facts=("x",))) != value_hash(MemoryText("b", facts=("x",)))
    assert value_hash(MemoryText("a", narrative="n")) != value_hash(MemoryText("a"))
    assert value_hash(MemoryText("a", narrative="n")) != value_hash(MemoryText("a", facts=("n",)))
    assert value_hash(MemoryText("a", title="t")) != value_hash(MemoryText("a"))
    assert value_hash(MemoryText("a", facts=("x", "y"))) != value_hash(MemoryText("a", facts=("x y",)))
    assert value_hash(MemoryText("a", steps=("x",))) != value_hash(MemoryText("a"))


def test_transitions() -> None:
    check_transition(State.ACTIVE, State.SOFT_DELETED)
    check_transition(State.SOFT_DELETED, State.ACTIVE)
    with pytest.raises(StateConflict, match="purged cannot become active"):
        check_transition(State.PURGED, State.ACTIVE)
    assert {target for _, target in STEPS.values()} == set(State)


def test_attributes_that_can_be_kept() -> None:
    value: dict[str, object] = {"a": [1, 2.5, None, True, {"b": "text"}], "c": -(2**63) + 1}
    assert check_attributes(value) == value


def _nested(depth: int) -> dict[str, object]:
    value: dict[str, object] = {}
    for _ in range(depth - 1):
        value = {"x": value}
    return value


@pytest.mark.parametrize(
    ("value", "error", "said"),
    [
        ({"a": float("nan")}, InvalidRequest, "attributes.a: a number must be finite"),
        ({"a": 2**63}, InvalidRequest, "64 bits"),
        ({"a": "x\x00"}, InvalidRequest, "NUL"),
        ({"a\ud800": 1}, InvalidRequest, "a key: holds"),
        ({"a": [object()]}, InvalidRequest, r"attributes.a\[0\]: object is no JSON value"),
        ({"a": "x" * 16_001}, LimitExceeded, "16001 characters"),
        ({"a": [0] * MAX_NODES}, LimitExceeded, "1000 values"),
        (_nested(MAX_DEPTH + 1), LimitExceeded, "8 levels"),
    ],
)
def test_attributes_that_cannot_be_kept(value: dict[str, object], error: type[MemplaneError], said: str) -> None:
    with pytest.raises(error, match=said):
        check_attributes(value)


def test_the_deepest_attributes_pass() -> None:
    assert check_attributes(_nested(MAX_DEPTH)) == _nested(MAX_DEPTH)


def test_ids_are_in_the_order_in_which_they_are_made() -> None:
    before = first_id(datetime.now(UTC) - timedelta(seconds=1))
    made = [new_id() for _ in range(3)]
    after = first_id(datetime.now(UTC) + timedelta(seconds=1))
    assert [before, *made, after] == sorted([before, *made, after])
    assert (before.version, before.int & (1 << 62) - 1) == (7, 0)  # the variant is set, and nothing behind it
    assert first_id(datetime(1960, 1, 1, tzinfo=UTC)) < before

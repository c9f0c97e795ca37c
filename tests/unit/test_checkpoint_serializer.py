"""Values of graphs come back as they were, or are refused; they never come back as something else."""

import uuid
from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, StrEnum
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import numpy as np
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.types import Interrupt, Send
from pydantic import BaseModel

from memplane.adapters.langgraph.serializer import StrictSerializer
from memplane.domain.errors import CheckpointMismatch, UndeclaredType


class Plan(BaseModel):
    """A model of an application."""

    goal: str
    due: date | None = None


@dataclass
class Note:
    """A dataclass of an application."""

    text: str


class Colour(Enum):
    """An enumeration of an application."""

    RED = "red"


class Word(StrEnum):
    """An enumeration that is text too."""

    YES = "yes"


class Point(NamedTuple):
    """A tuple with names."""

    x: int


class Bag(dict[str, int]):
    """A dict that is more."""


class Line(str):
    """A text that is more."""

    __slots__ = ()


OWN: list[Any] = [Plan(goal="ship", due=date(2026, 9, 1)), Note("a"), Colour.RED, Word.YES]
SAFE: list[Any] = [
    None, True, 1, 1.5, "ä", b"\x00", [1, [2]], {"a": {1: 2}}, {1, 2}, frozenset({3}), deque([1]),
    uuid.UUID(int=7), Decimal("1.10"), datetime(2026, 1, 2, tzinfo=UTC), date(2026, 1, 2), timedelta(3),
    HumanMessage("hello", id="1"), AIMessage("", tool_calls=[{"name": "f", "args": {"a": 1}, "id": "2"}]),
    Send("node", {"a": 1}), Interrupt(value="why", id="3"), _DeltaSnapshot([HumanMessage("hello", id="1")]),
]  # fmt: skip


@pytest.mark.parametrize("value", SAFE, ids=repr)
def test_what_langgraph_knows_comes_back(value: object) -> None:
    serde = StrictSerializer()
    back = serde.loads_typed(serde.dumps_typed(value))
    assert back == value
    assert type(back) is type(value)


@pytest.mark.parametrize("value", OWN, ids=repr)
@pytest.mark.parametrize("wrap", [lambda v: v, lambda v: {"deep": [v]}, _DeltaSnapshot], ids=["bare", "deep", "whole"])
def test_a_declared_type_comes_back_and_another_is_refused(value: object, wrap: Any) -> None:  # noqa: ANN401 - a function
    told = StrictSerializer([type(value)])
    assert told.loads_typed(told.dumps_typed(wrap(value))) == wrap(value)
    with pytest.raises(UndeclaredType, match=type(value).__name__) as refused:
        StrictSerializer().dumps_typed(wrap(value))
    assert "types=[" in refused.value.detail


@pytest.mark.parametrize("value", OWN, ids=repr)
def test_what_was_declared_once_is_refused_when_read_without(value: object) -> None:
    stored = StrictSerializer([type(value)]).dumps_typed([value])
    loose = JsonPlusSerializer(allowed_msgpack_modules=None).loads_typed(stored)
    assert type(loose[0]) is not type(value)  # what would be read without this serializer
    with pytest.raises(UndeclaredType, match="not declared"):
        StrictSerializer().loads_typed(stored)


@pytest.mark.parametrize("value", [Bag(a=1), Line("a"), [Bag(a=1)], {"a": {"b": Line("c")}}], ids=repr)
def test_a_type_that_would_be_flattened_is_refused(value: object) -> None:
    with pytest.raises(UndeclaredType, match=r"Bag|Line"):
        StrictSerializer().dumps_typed(value)


@pytest.mark.parametrize("value", [OrderedDict(a=1), defaultdict(int, a=1), Counter("aa")], ids=repr)
def test_a_mapping_of_the_standard_library_is_a_mapping(value: dict[str, int]) -> None:
    serde = StrictSerializer()
    assert serde.loads_typed(serde.dumps_typed(value)) == dict(value)


@pytest.mark.parametrize(
    "value", [object(), lambda: None, [object()], print], ids=["object", "function", "deep", "built-in"]
)
def test_what_cannot_be_stored_is_refused(value: object) -> None:
    with pytest.raises(UndeclaredType):
        StrictSerializer().dumps_typed(value)


def test_a_tuple_with_names_is_refused_or_comes_back() -> None:
    told = StrictSerializer([Point])
    back = told.loads_typed(told.dumps_typed({"p": Point(1)}))
    assert back == {"p": Point(1)}
    assert type(back["p"]) is Point
    with pytest.raises(UndeclaredType, match="Point"):
        StrictSerializer().dumps_typed({"p": Point(1)})


def test_an_array_comes_back() -> None:
    serde, array = StrictSerializer(), np.arange(6, dtype=np.float32).reshape(2, 3)
    back = serde.loads_typed(serde.dumps_typed({"a": array}))["a"]
    assert back.dtype == array.dtype
    assert (back == array).all()


def test_a_type_that_has_changed_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    serde = StrictSerializer([Note, Plan])
    stored = serde.dumps_typed([Note("a")])

    @dataclass
    class Other:
        text: str
        added: int

    Other.__name__ = Note.__name__
    monkeypatch.setitem(globals(), "Note", Other)
    monkeypatch.setattr(f"{__name__}.Note", Other, raising=False)
    with pytest.raises(CheckpointMismatch, match="Note"):
        serde.loads_typed(stored)


def test_a_type_that_is_gone_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    serde = StrictSerializer([Plan])
    stored = serde.dumps_typed(Plan(goal="ship"))
    monkeypatch.setattr("importlib.import_module", lambda name: (_ for _ in ()).throw(ImportError(name)))
    with pytest.raises(CheckpointMismatch, match="Plan"):
        serde.loads_typed(stored)


@pytest.mark.parametrize("kind", ["json", "pickle", "of later versions"])
def test_bytes_of_another_kind_are_not_read(kind: str) -> None:
    """LangGraph once stored JSON that names classes to build; nothing here ever did."""
    planted = b'{"lc": 2, "type": "constructor", "id": ["uuid", "UUID"], "args": ["%032d"]}' % 7
    with pytest.raises(CheckpointMismatch, match=kind):
        StrictSerializer().loads_typed((kind, planted))


def test_only_some_paths_are_known() -> None:
    with pytest.raises(UndeclaredType):
        StrictSerializer().dumps_typed(PurePosixPath("/a"))  # of the paths, LangGraph knows those that are on a disk

"""The store does what LangGraph's own does in memory, operation by operation, whatever namespaces are called.

What differs on purpose is listed in docs/langgraph.md: here a namespace is there as long as an item is, and a filter
that compares what is no number finds nothing where LangGraph's raises.
"""

import asyncio
import json
import random
from typing import Any

import pytest
from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

from support.cluster import Database
from support.files import File
from support.graph_stores import running, speaker, store_of

USER, CATEGORY = "ana", "tasks"
HOSTILE = (
    "1",
    "12",
    "1 ",
    "_",
    "%",
    "a_b",
    "a%b",
    ".",
    "..",
    "a.b",
    "",
    "*",
    "é",
    "e\u0301",
    "日本",
    "ﬁ",
    "'",
    '"',
    "\\",
    "{}",
    "[1]",
    "🧠",
)
VALUES: tuple[dict[str, Any], ...] = (
    {},
    {"text": "Ana likes tea"},
    {
        "n": 1,
        "f": 1.0,
        "big": 1e16,
        "odd": 3.924733686507066e16,
        "tiny": 1e-9,
        "zero": -0.0,
        "long": 2**62,
        "no": None,
        "yes": True,
    },
    {"z": 1, "a": {"y": [1, 2.5, {"x": "deep"}], "b": {}}, "m": []},
    {"": "empty", "unicode": "日本 é e\u0301 🧠", "quote": "\"'\\\n\t"},
    {"score": 5, "tag": "red"},
    {"score": 7.5, "tag": "blue", "nested": {"k": [1, 2]}},
)


def scripted() -> list[Op]:
    """Operations on every hostile label, alone and beside others, and every kind of question."""
    ops: list[Op] = []
    for place, label in enumerate(HOSTILE):
        ops += [
            PutOp((label,), "k", VALUES[place % len(VALUES)]),
            PutOp((label, "below"), label, VALUES[(place + 1) % len(VALUES)]),
        ]
    for label in HOSTILE:
        ops += [
            GetOp((label,), "k"),
            GetOp((label, "below"), label),
            GetOp((label,), "absent"),
            SearchOp((label,), None, 10, 0),
            ListNamespacesOp((MatchCondition("prefix", (label,)),)),
            ListNamespacesOp((MatchCondition("suffix", (label,)),)),
        ]
    ops += [
        SearchOp((), None, 100, 0),
        SearchOp((), None, 3, 2),
        SearchOp((), None, 0, 0),
        SearchOp((), {"tag": "red", "score": {"$gte": 5}}, 100, 0),
        SearchOp((), {"tag": "blue", "score": {"$gt": 5, "$lte": 7}}, 100, 0),
        SearchOp((), {"tag": {"$ne": "red"}}, 100, 0),
        SearchOp((), {"nested": {"k": [1, 2]}}, 100, 0),
        SearchOp((), {"tag": None}, 100, 1),
        ListNamespacesOp(),
        ListNamespacesOp(None, 1),
        ListNamespacesOp((MatchCondition("prefix", ("*", "below")),), None, 5, 3),
        ListNamespacesOp((MatchCondition("prefix", ("1",)), MatchCondition("suffix", ("below",)))),
        PutOp(("1",), "k", {"changed": True}),
        GetOp(("1",), "k"),
        GetOp(("12",), "k"),
        PutOp(("1",), "k", None),
        GetOp(("1",), "k"),
        GetOp(("1", "below"), "1"),
        PutOp(("1",), "absent", None),
        PutOp(("1",), "k", {"back": 1}),
        PutOp((), "k", {"at": "the root"}),
        GetOp((), "k"),
        SearchOp((), None, 100, 0),
        ListNamespacesOp(None, 0),
    ]
    return ops


def drawn(seed: int, count: int = 80) -> list[Op]:
    """Operations drawn at random."""
    chosen = random.Random(seed)  # noqa: S311 - the same for each run
    labels = chosen.sample(HOSTILE, 5)

    def namespace() -> tuple[str, ...]:
        return tuple(chosen.choice(labels) for _ in range(chosen.randint(0, 3)))

    def one() -> Op:
        match chosen.randint(0, 9):
            case 0 | 1 | 2 | 3:
                return PutOp(namespace(), chosen.choice(labels), chosen.choice(VALUES))
            case 4:
                return PutOp(namespace(), chosen.choice(labels), None)
            case 5 | 6:
                return GetOp(namespace(), chosen.choice(labels))
            case 7:
                filters = chosen.choice([None, {"tag": "red"}, {"n": 1}])
                return SearchOp(namespace(), filters, chosen.randint(0, 5), chosen.randint(0, 3))
            case 8:
                return SearchOp((), None, 50, 0)
            case _:
                way = chosen.choice(["prefix", "suffix"])
                return ListNamespacesOp((MatchCondition(way, namespace()),), chosen.choice([None, 1, 2]))  # type: ignore[arg-type]  # one of its two words

    return [one() for _ in range(count)]


def plain(result: object) -> object:
    """A result without its times, which two stores cannot share; with the exact text of its numbers and their order."""
    if isinstance(result, list):
        return [plain(each) for each in result]
    if hasattr(result, "value"):
        return (result.namespace, result.key, json.dumps(result.value))
    return result


class Namespaces(dict[tuple[str, ...], dict[str, Any]]):
    """Namespaces of which a look makes none."""

    def __missing__(self, _: tuple[str, ...]) -> dict[str, Any]:
        return {}


class Reference(InMemoryStore):
    """LangGraph's own, in which a namespace is there as long as an item is: it keeps those that are empty."""

    def __init__(self) -> None:
        super().__init__()
        self._data = Namespaces()  # type: ignore[assignment]  # used as one

    def _apply_put_ops(self, put_ops: dict[tuple[tuple[str, ...], str], PutOp]) -> None:
        for namespace, _ in put_ops:
            self._data.setdefault(namespace, {})
        super()._apply_put_ops(put_ops)
        for namespace in [each for each, items in self._data.items() if not items]:
            del self._data[namespace]


def compared(place: Database | File, batches: list[list[Op]]) -> int:
    async def run() -> int:
        tenant, reference = place.new_tenant(), Reference()
        async with running(place, tenant) as application:
            ours = store_of(application, speaker(tenant, "planner"), USER, CATEGORY)
            neighbour = store_of(application, speaker(tenant, "planner"), USER, "goals")
            await neighbour.abatch([PutOp(("1",), "k", {"of": "another category"})])
            for ops in batches:
                expected = [plain(each) for each in await reference.abatch(ops)]
                found = [plain(each) for each in await ours.abatch(ops)]
                assert found == expected, str(ops)[:2_000]
        return sum(map(len, batches))

    return asyncio.run(run())


def test_every_operation_answers_the_same(place: Database | File) -> None:
    assert compared(place, [[op] for op in scripted()]) >= 200


@pytest.mark.parametrize("seed", range(4))
def test_operations_drawn_at_random_answer_the_same(place: Database | File, seed: int) -> None:
    ops = drawn(seed)
    assert compared(place, [[op] for op in ops[:40]] + [ops[40:60], ops[60:]]) == len(ops)


def test_the_methods_of_a_graph_answer_the_same_and_refuse_the_same(place: Database | File) -> None:
    async def scenario(store: BaseStore) -> list[object]:
        await store.aput(("a", "b"), "k", {"text": "one"})
        await store.aput(("a", "bc"), "k", {"text": "two"})
        told: list[object] = [
            plain(await store.aget(("a", "b"), "k")),
            plain(await store.asearch(("a", "b"))),
            await store.alist_namespaces(prefix=("a",), suffix=("*",), max_depth=2),
        ]
        await store.adelete(("a", "b"), "k")
        told.append(plain(await store.asearch(("a",))))
        for wrong in ((), ("",), ("a.b",), ("langgraph",), (1,), ("nul\x00",)):
            with pytest.raises(InvalidNamespaceError):
                await store.aput(wrong, "k", {})  # type: ignore[arg-type]  # refused
        return told

    async def run() -> None:
        tenant = place.new_tenant()
        async with running(place, tenant) as application:
            ours = store_of(application, speaker(tenant, "planner"), USER, CATEGORY)
            assert await scenario(ours) == await scenario(InMemoryStore())

    asyncio.run(run())

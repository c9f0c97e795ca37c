"""The rules of a lineage: what may follow what, and what pruning leaves."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memplane.domain.checkpoints.lineage import (
    ExistingCheckpoint,
    IncomingCheckpoint,
    Node,
    Placement,
    Retention,
    heads,
    parents,
    place,
    retained_keys,
    with_ancestors,
    without_runs,
)
from memplane.domain.errors import CheckpointNeeded, StaleCheckpoint

HEAD = ExistingCheckpoint("2", "1", head=True)
NOW = datetime(2026, 1, 31, tzinfo=UTC)


@pytest.mark.parametrize(
    ("arriving", "there", "expected"),
    [
        (IncomingCheckpoint("1", None, empty=False), [], Placement.HEAD),
        (IncomingCheckpoint("1", "gone", empty=False), [], Placement.HEAD),
        (IncomingCheckpoint("3", "2", empty=False), [HEAD], Placement.HEAD),
        (IncomingCheckpoint("2", "1", empty=False), [HEAD], Placement.AGAIN),
        (IncomingCheckpoint("2", "2", empty=False), [HEAD], Placement.AGAIN),
        (IncomingCheckpoint("3", None, empty=True), [HEAD], Placement.BESIDE),
    ],
)
def test_what_follows_is_placed(
    arriving: IncomingCheckpoint, there: list[ExistingCheckpoint], expected: Placement
) -> None:
    assert place(arriving, there, fork=False) is expected


@pytest.mark.parametrize(
    "arriving",
    [
        IncomingCheckpoint("3", "1", empty=False),
        IncomingCheckpoint("3", None, empty=False),
        IncomingCheckpoint("3", "1", empty=True),
    ],
)
def test_what_would_fork_is_refused_but_where_that_is_declared(arriving: IncomingCheckpoint) -> None:
    with pytest.raises(StaleCheckpoint, match="is at checkpoint 2") as refused:
        place(arriving, [HEAD], fork=False)
    assert refused.value.extra == {"head": "2", "parent": arriving.parent}
    if not arriving.empty:
        assert place(arriving, [HEAD], fork=True) is Placement.HEAD


@pytest.mark.parametrize("fork", [False, True])
def test_a_checkpoint_that_is_no_longer_the_head_is_not_replaced(*, fork: bool) -> None:
    there = [HEAD, ExistingCheckpoint("1", None, head=False)]
    with pytest.raises(StaleCheckpoint):
        place(IncomingCheckpoint("1", None, empty=False), there, fork=fork)


def chain(count: int, namespace: str = "", **of: dict[str, Any]) -> list[Node]:
    """A lineage with ids 1 to ``count``, a day apart; ``of`` has more about some, by ``n`` and their id."""
    return [
        Node(
            namespace,
            str(nth),
            str(nth - 1) if nth > 1 else None,
            head=nth == count,
            created_at=NOW - timedelta(days=count - nth),
            **of.get(f"n{nth}", {}),
        )
        for nth in range(1, count + 1)
    ]


def ids(keys: frozenset[tuple[str, str]], namespace: str = "") -> set[str]:
    return {each for of, each in keys if of == namespace}


def test_count_and_age_are_both_to_be_exceeded() -> None:
    assert ids(retained_keys(chain(5), Retention())) == {"5"}
    assert ids(retained_keys(chain(5), Retention(last=3))) == {"3", "4", "5"}
    assert ids(retained_keys(chain(5), Retention(last=1, since=NOW - timedelta(days=1)))) == {"4", "5"}
    assert ids(retained_keys(chain(5), Retention(last=4, since=NOW - timedelta(days=1)))) == {"2", "3", "4", "5"}


def test_the_head_stays_though_others_sort_after_it() -> None:
    """A branch that was begun by a machine whose clock is behind."""
    nodes = [Node("", "1", None, True, NOW), Node("", "2", None, False, NOW)]
    assert ids(retained_keys(nodes, Retention())) == {"1"}
    assert heads(nodes, [("", "1"), ("", "2")]) == {("", "1")}


def test_a_delta_channel_keeps_its_ancestors_back_to_its_whole_value() -> None:
    deltas = {"deltas": frozenset({"d"})}
    nodes = chain(6, n6=deltas, n5=deltas, n4={"stored": frozenset({"d"})})
    assert ids(retained_keys(nodes, Retention())) == {"4", "5", "6"}
    assert ids(retained_keys(chain(6, n6=deltas), Retention())) == {
        str(n) for n in range(1, 7)
    }  # it was never stored whole
    assert ids(retained_keys(chain(6, n6=deltas | {"stored": frozenset({"d"})}), Retention())) == {"6"}


def test_an_old_checkpoint_keeps_the_parent_that_sends_to_its_tasks() -> None:
    assert ids(retained_keys(chain(3, n3={"format": 3}, n2={"sends": True}), Retention())) == {"2", "3"}
    assert ids(retained_keys(chain(3, n3={"format": 4}, n2={"sends": True}), Retention())) == {"3"}
    assert ids(retained_keys(chain(3, n3={"format": 3}), Retention())) == {"3"}


def test_a_subgraph_s_call_goes_with_the_checkpoint_that_called_it() -> None:
    call = chain(2, "child:1", n1={"root": "1"}, n2={"root": "1"})
    assert retained_keys([*chain(3), *call], Retention()) == {("", "3")}
    assert ids(retained_keys([*chain(3), *call], Retention(last=3)), "child:1") == {"1", "2"}
    unsaved = chain(1, "child:1", n1={"root": "9"})  # its root is on its way
    assert ids(retained_keys([*chain(3), *unsaved], Retention()), "child:1") == {"1"}
    lasting = chain(2, "child", n2={"root": "1"})  # its state outlives the call
    assert ids(retained_keys([*chain(3), *lasting], Retention()), "child") == {"2"}


def test_what_stays_is_joined_over_what_goes() -> None:
    assert parents(chain(5), [("", "1"), ("", "3"), ("", "5")]) == {("", "3"): "1", ("", "5"): "3"}
    assert parents(chain(3), [("", "3")]) == {("", "3"): None}
    looped = [Node("", "1", "2", False, NOW), Node("", "2", "1", True, NOW)]
    assert parents(looped, [("", "2")]) == {("", "2"): None}
    assert with_ancestors(looped, [("", "2")]) == {("", "2")}


def test_runs_go_unless_what_stays_needs_them() -> None:
    nodes = chain(3, n1={"run_id": "a"}, n2={"run_id": "b"}, n3={"run_id": "c"})
    assert ids(without_runs(nodes, ["a", "c"])) == {"2"}
    assert heads(nodes, [("", "2")]) == {("", "2")}
    continued = chain(2, n1={"run_id": "a", "stored": frozenset({"d"})}, n2={"run_id": "b", "deltas": frozenset({"d"})})
    assert without_runs(continued, ["b"]) == {("", "1")}
    with pytest.raises(CheckpointNeeded):
        without_runs(continued, ["a"])


def rebuilt(nodes: list[Node], key: tuple[str, str], channel: str) -> list[str]:
    """The checkpoints that a channel's value is made of, back to where it stands whole; as a reader walks them."""
    known = {node.key: node for node in nodes}
    node, found = known[key], [key[1]]
    while channel not in node.stored and node.parent is not None and (node.namespace, node.parent) in known:
        node = known[node.namespace, node.parent]
        found.append(node.id)
    return found


@given(st.data())
def test_pruning_never_changes_what_a_kept_checkpoint_is_made_of(data: st.DataObject) -> None:
    """Over random trees: the same ancestors make up each delta channel before and after."""
    count = data.draw(st.integers(1, 12))
    names = [f"{nth:02}" for nth in range(count)]
    nodes = [
        Node(
            "",
            name,
            data.draw(st.sampled_from([None, *names[:nth]])) if nth else None,
            head=nth == count - 1,
            created_at=NOW + timedelta(days=nth),
            deltas=frozenset(data.draw(st.sets(st.sampled_from("xy")))),
            stored=frozenset(data.draw(st.sets(st.sampled_from("xy")))),
        )
        for nth, name in enumerate(names)
    ]
    since = data.draw(st.one_of(st.none(), st.integers(0, count).map(lambda days: NOW + timedelta(days=days))))
    retention = Retention(data.draw(st.integers(1, count)), since)
    stay = retained_keys(nodes, retention)
    moved = parents(nodes, stay)
    after = [
        Node(**{**{name: getattr(node, name) for name in Node.__slots__}, "parent": moved.get(node.key, node.parent)})
        for node in nodes
        if node.key in stay
    ]
    assert any(node.head for node in after)
    newest = sorted((node for node in nodes), key=lambda node: (not node.head, node.id))[:1]
    for node in [each for each in after if each.key in {one.key for one in newest}]:
        for channel in node.deltas:
            assert rebuilt(after, node.key, channel) == rebuilt(nodes, node.key, channel)

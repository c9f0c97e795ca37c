"""The lineage of a graph's checkpoints: what may follow what, and what a living thread still needs.

A lineage is the chain of checkpoints of one namespace of a thread, from its beginning to its head. A run reads the head
and stores its child; two runs that read the same head would make two children, of which the next run sees one.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from memplane.domain.errors import CheckpointNeeded, StaleCheckpoint

SENDS_IN_PARENT = 4
"""Before this version of the format a checkpoint read what was sent to its tasks from its parent's writes."""


class Placement(StrEnum):
    """Where a checkpoint goes."""

    HEAD = "head"
    AGAIN = "again"
    BESIDE = "beside"


@dataclass(frozen=True, slots=True)
class IncomingCheckpoint:
    """A checkpoint that is to be stored.

    Attributes:
        id: its id.
        parent: the checkpoint that its writer had read; ``None`` when that found none.
        empty: whether it holds no channel at all, and so no state that could be continued.
    """

    id: str
    parent: str | None
    empty: bool


@dataclass(frozen=True, slots=True)
class ExistingCheckpoint:
    """A checkpoint that is there: the head, or the one with the id of the arriving one."""

    id: str
    parent: str | None
    head: bool


def place(arriving: IncomingCheckpoint, there: Sequence[ExistingCheckpoint], *, fork: bool) -> Placement:
    """Where a checkpoint goes, so that its lineage stays one.

    Args:
        arriving: the checkpoint.
        there: the head of its namespace, and the checkpoint with its id, as far as there are any.
        fork: whether its writer has declared that it may begin a second branch.

    Raises:
        StaleCheckpoint: another writer has continued the thread since this one read it.
    """
    head = next((each for each in there if each.head), None)
    same = next((each for each in there if each.id == arriving.id), None)
    if same is not None:
        if same.head and arriving.parent in {same.parent, same.id}:  # a run that made no step names itself
            return Placement.AGAIN
        raise _stale(arriving, head)
    if head is None or arriving.parent == head.id or (fork and not arriving.empty):
        return Placement.HEAD
    if arriving.parent is None and arriving.empty:
        return Placement.BESIDE
    raise _stale(arriving, head)


def _stale(arriving: IncomingCheckpoint, head: ExistingCheckpoint | None) -> StaleCheckpoint:
    read = "an empty thread" if arriving.parent is None else f"checkpoint {arriving.parent}"
    return StaleCheckpoint(
        f"another writer has continued this thread: it is at checkpoint {head.id if head else None}, and this one "
        f"follows {read}. Load the thread again and repeat the step; to branch on purpose, use a saver's `forking()`",
        head=head.id if head else None,
        parent=arriving.parent,
    )


@dataclass(frozen=True, slots=True)
class Node:
    """A stored checkpoint, as far as its lineage concerns it.

    Attributes:
        namespace: of its subgraph.
        id: its id; later ones sort after earlier ones.
        parent: the checkpoint that it follows.
        head: whether it is the head.
        created_at: when it was stored.
        deltas: channels of which it holds only what changed; the rest stands in its ancestors and their writes.
        stored: channels whose whole value stands in it.
        format: version of the checkpoint's format.
        sends: whether its writes send something to tasks.
        root: the checkpoint of the whole graph from which this subgraph was called.
        run_id: the run that made it.
    """

    namespace: str
    id: str
    parent: str | None
    head: bool
    created_at: datetime
    deltas: frozenset[str] = frozenset()
    stored: frozenset[str] = frozenset()
    format: int = SENDS_IN_PARENT
    sends: bool = False
    root: str | None = None
    run_id: str | None = None

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from the others of its thread."""
        return self.namespace, self.id


@dataclass(frozen=True, slots=True)
class Retention:
    """How much of a thread is kept.

    Attributes:
        last: so many of the newest checkpoints of each namespace; the head is always one.
        since: whatever was stored at this moment or later is kept too; ``None`` for the count alone.
    """

    last: int = 1
    since: datetime | None = None


Key = tuple[str, str]


def retained_keys(nodes: Sequence[Node], retention: Retention) -> frozenset[Key]:
    """The checkpoints that stay: those asked for, and all that they cannot be read without.

    The head of a subgraph's call goes with the checkpoint of the whole graph that called it.
    """
    by_namespace: dict[str, list[Node]] = defaultdict(list)
    for node in sorted(nodes, key=lambda each: each.id, reverse=True):
        by_namespace[node.namespace].append(node)
    wanted = {
        node.key
        for of_one in by_namespace.values()
        for nth, node in enumerate(sorted(of_one, key=lambda each: not each.head))
        if nth < retention.last or (retention.since is not None and node.created_at >= retention.since)
    }
    stay = with_ancestors(nodes, wanted)
    roots = {node.id for node in by_namespace.get("", ())}
    over = {
        namespace
        for namespace, of_one in by_namespace.items()
        if ":" in namespace and all(node.root in roots and ("", node.root) not in stay for node in of_one)
    }
    return frozenset(key for key in stay if key[0] not in over)


def with_ancestors(nodes: Sequence[Node], wanted: Collection[Key]) -> frozenset[Key]:
    """Checkpoints, and the ancestors without which they cannot be read."""
    known = {node.key: node for node in nodes}
    found = set(wanted)
    for key in wanted:
        missing = known[key].deltas - known[key].stored
        for nth, ancestor in enumerate(_ancestors(known, known[key])):
            if not missing and not (nth == 0 and known[key].format < SENDS_IN_PARENT and ancestor.sends):
                break
            found.add(ancestor.key)
            missing -= ancestor.stored
    return frozenset(found)


def _ancestors(known: Mapping[Key, Node], node: Node) -> Iterator[Node]:
    """The checkpoints that one follows, nearest first; each once, should somebody have tied a loop."""
    met = {node.key}
    while node.parent is not None and (above := known.get((node.namespace, node.parent))) and above.key not in met:
        yield above
        met.add(above.key)
        node = above


def without_runs(nodes: Sequence[Node], run_ids: Collection[str]) -> frozenset[Key]:
    """The checkpoints that stay when those of some runs go.

    Raises:
        CheckpointNeeded: one that stays cannot be read without one that would go.
    """
    stay = frozenset(node.key for node in nodes if node.run_id not in run_ids)
    broken = with_ancestors(nodes, stay) - stay
    if broken:
        raise CheckpointNeeded(
            f"{len(broken)} checkpoints of these runs hold the beginning of what later ones only continue; nothing was "
            "deleted. Delete the later runs too, or the thread"
        )
    return stay


def parents(nodes: Sequence[Node], stay: Collection[Key]) -> Mapping[Key, str | None]:
    """The new parent of each checkpoint that stays and whose own goes: the nearest ancestor that stays."""
    known = {node.key: node for node in nodes}
    moved: dict[Key, str | None] = {}
    for key in stay:
        node = known[key]
        above = next((each.id for each in _ancestors(known, node) if each.key in stay), None)
        if above != node.parent:
            moved[key] = above
    return moved


def heads(nodes: Sequence[Node], stay: Collection[Key]) -> frozenset[Key]:
    """The head of each namespace among those that stay: the one that there is, or else the newest."""
    found: dict[str, Node] = {}
    for node in sorted((each for each in nodes if each.key in stay), key=lambda each: (each.head, each.id)):
        found[node.namespace] = node
    return frozenset(node.key for node in found.values())

"""Checkpoints as they travel between whoever runs a graph and the database."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from memplane.domain.checkpoints.lineage import ExistingCheckpoint

Json = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Thread:
    """One conversation of one user."""

    user_id: str
    thread_id: str


@dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace of a thread: '' for the graph itself, otherwise a subgraph's."""

    thread: Thread
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Blob:
    """A channel's value at a version, serialised."""

    channel: str
    version: str
    type: str
    blob: bytes


@dataclass(frozen=True, slots=True)
class TaskWrite:
    """What a task wrote to a channel, serialised; it takes effect with the next checkpoint.

    Attributes:
        task_id: the task.
        task_path: where the task stands in its step.
        idx: its place among the task's writes; negative for what is there once for each task, and replaced.
        channel: where it was written.
        type: how the value is serialised.
        blob: the value.
    """

    task_id: str
    task_path: str
    idx: int
    channel: str
    type: str
    blob: bytes


@dataclass(frozen=True, slots=True)
class CheckpointSummary:
    """What of a checkpoint a supervisor is told.

    Attributes:
        step: its number in the run.
        source: what made it.
        ts: when it was made, as its maker says.
        channels: the names of its channels.
        conversation: the last messages, where it holds any.
        context: the memory context that the graph holds, if it does.
    """

    step: int | None
    source: str | None
    ts: str | None
    channels: Sequence[str]
    conversation: Sequence[Json] | None = None
    context: str | None = None


@dataclass(frozen=True, slots=True)
class NewCheckpoint:
    """A checkpoint that is to be stored.

    Attributes:
        id: its id.
        parent: the id of the one that it follows.
        checkpoint: all of it but the values of channels that stand in blobs.
        metadata: what is known of it.
        blobs: values of channels that changed.
        empty: whether it holds no channel at all.
        summary: what a supervisor is told.
        key_id: of who stores it.
    """

    id: str
    parent: str | None
    checkpoint: Json
    metadata: Json
    blobs: Sequence[Blob]
    empty: bool
    summary: CheckpointSummary
    key_id: str | None = None


@dataclass(frozen=True, slots=True)
class Arrival:
    """A checkpoint of another saver, to be taken over as it is.

    Attributes:
        place: where it goes.
        new: the checkpoint.
        writes: what tasks have written since.
        head: whether it is the end of its lineage.
        made_at: when it was made.
    """

    place: Namespace
    new: NewCheckpoint
    writes: Sequence[TaskWrite]
    head: bool
    made_at: datetime


@dataclass(frozen=True, slots=True)
class StoredCheckpoint:
    """A checkpoint as it is stored, with what tasks have written since."""

    place: Namespace
    id: str
    parent: str | None
    checkpoint: Json
    metadata: Json
    blobs: Sequence[Blob] = ()
    writes: Sequence[TaskWrite] = ()


@dataclass(frozen=True, slots=True)
class CheckpointQuery:
    """Which checkpoints are asked for, newest first; without anything, all that the caller may see.

    Attributes:
        users: the only users; ``None`` for all that the transaction reaches.
        thread_id: of this thread.
        namespace: of this namespace; ``None`` for all.
        ids: with these ids.
        head: only the heads.
        before: with a smaller id than this.
        limit: the most.
        channels: with the values of these channels alone, and what was written to them; ``None`` for all.
    """

    users: frozenset[str] | None = None
    thread_id: str | None = None
    namespace: str | None = None
    ids: Sequence[str] | None = None
    head: bool = False
    before: str | None = None
    limit: int | None = None
    channels: Sequence[str] | None = None

    @property
    def one(self) -> tuple[Namespace, str | None] | None:
        """The place and the id of the only checkpoint that is meant, or no id for the head; ``None`` for several."""
        named = self.head if self.ids is None else len(self.ids) == 1 and not self.head
        users = self.users or frozenset()
        if not named or len(users) != 1 or self.channels is not None or self.before is not None:
            return None
        if self.thread_id is None or self.namespace is None:
            return None
        (user,) = users
        return Namespace(Thread(user, self.thread_id), self.namespace), None if self.ids is None else self.ids[0]


@dataclass(frozen=True, slots=True)
class SupervisorState:
    """The state of a supervisor in a thread.

    Attributes:
        thread: whose it is.
        data: `graph`, `memory`, `conversation` and `agents`, as far as they are there.
        version: counts the changes.
        created_at: when it began.
        updated_at: when it last changed.
        key_id: of who changed it last.
    """

    thread: Thread
    data: Mapping[str, object] = field(default_factory=dict)
    version: int = 0
    created_at: datetime | None = None
    updated_at: datetime | None = None
    key_id: str | None = None


@dataclass(frozen=True, slots=True)
class ArrivalContext:
    """What a new checkpoint finds.

    Attributes:
        state: of the supervisor in the thread.
        standing: the checkpoints that it is to fit.
        revision: of the thread's memory.
        erased: when its user was erased, ``None`` for an erasure under way.
        merged_into: whom its user was merged into.
    """

    state: SupervisorState
    standing: Sequence[ExistingCheckpoint]
    revision: int
    erased: Sequence[datetime | None]
    merged_into: str | None = None

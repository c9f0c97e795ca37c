"""Checkpoints of other savers, taken over thread by thread: each in one transaction, and read back before it counts."""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, cast

from langgraph.checkpoint.base import Checkpoint as LangGraphCheckpoint
from langgraph.checkpoint.base import CheckpointMetadata, writes_sort_key

from memplane.adapters.langgraph.encoding import checkpoint_tuple, new_checkpoint
from memplane.adapters.langgraph.serializer import StrictSerializer
from memplane.adapters.langgraph.sources import FoundCheckpoint
from memplane.application.checkpoints.checkpoint_records import Arrival, CheckpointQuery, Namespace, Thread
from memplane.application.checkpoints.checkpoint_service import Checkpoints
from memplane.domain.errors import CheckpointMismatch, MemplaneError
from memplane.domain.identity.principal import Principal

USER = "user_id"
Told = Callable[["MigratedThread"], None]


class MigrationOutcome(StrEnum):
    """What became of a thread."""

    COPIED = "copied"
    THERE = "there already"
    DIFFERS = "differs"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class MigratedThread:
    """What became of one thread.

    Attributes:
        checkpoints, writes: how many the source has.
        digest: SHA-256 (hex) of what was read back, where it equals the source.
        why: what stands in the way, where something does.
    """

    thread_id: str
    user_id: str | None
    fate: MigrationOutcome
    checkpoints: int
    writes: int
    digest: str | None = None
    why: str | None = None


class CheckpointMigration:
    """Takes threads over.

    A thread that is there already is compared, and left as it is: so a run can be repeated, and one that was
    interrupted goes on. What a graph has added since does not matter.

    Args:
        checkpoints: the use cases.
        principal: who takes them over.
        serde: told of the types that the graphs have declared.
        user_id: the user of threads whose checkpoints name none.
    """

    def __init__(
        self, checkpoints: Checkpoints, principal: Principal, serde: StrictSerializer, user_id: str | None
    ) -> None:
        self._checkpoints = checkpoints
        self._principal = principal
        self._serde = serde
        self._user = user_id

    async def run(
        self, threads: Iterable[tuple[str, Sequence[FoundCheckpoint]]], told: Told | None = None
    ) -> list[MigratedThread]:
        """Take every thread over.

        Raises:
            Invalid, UndeclaredType, CheckpointMismatch: the source cannot be read on; what was copied stays.
        """
        done: list[MigratedThread] = []
        for thread_id, found in threads:
            done.append(await self._thread(thread_id, found))
            if told is not None:
                told(done[-1])
        return done

    async def _thread(self, thread_id: str, found: Sequence[FoundCheckpoint]) -> MigratedThread:
        counts = (len(found), sum(len(each.writes) for each in found))
        user: str | None = None
        try:
            user = self._user_of(found)
            thread = self._checkpoints.thread(self._principal, thread_id, user)
            if thread != Thread(user or "", thread_id):
                raise CheckpointMismatch("thread_id, user_id: hold characters that names are stored without")
            new = await self._checkpoints.adopt(self._principal, thread, self._arrivals(thread, found))
            digest = await self._compared(thread, found)
        except MemplaneError as refusal:
            return MigratedThread(
                thread_id, user, MigrationOutcome.REFUSED, *counts, why=f"{refusal.code}: {refusal.detail}"
            )
        if digest is None:
            return MigratedThread(
                thread_id, user, MigrationOutcome.DIFFERS, *counts, why="what is stored there is something else"
            )
        return MigratedThread(
            thread_id, user, MigrationOutcome.COPIED if new else MigrationOutcome.THERE, *counts, digest
        )

    def _user_of(self, found: Sequence[FoundCheckpoint]) -> str:
        """The user that the checkpoints name, or the one that is given.

        Raises:
            CheckpointMismatch: they name several, or none and none is given.
        """
        named = {str(each.metadata[USER]) for each in found if each.metadata.get(USER) is not None}
        if len(named) > 1:
            raise CheckpointMismatch(f"the thread is of several users: {', '.join(sorted(named))}")
        if not named and self._user is None:
            raise CheckpointMismatch("no user is named in the thread: give one with --user")
        return named.pop() if named else str(self._user)

    def _arrivals(self, thread: Thread, found: Sequence[FoundCheckpoint]) -> list[Arrival]:
        heads: dict[str, str] = {}
        for each in found:
            heads[each.namespace] = max(each.id, heads.get(each.namespace, ""))
        values: dict[tuple[str, str, str], bytes] = {}
        arrivals: list[Arrival] = []
        for each in sorted(found, key=lambda one: (one.namespace, one.id)):
            place = Namespace(thread, each.namespace)
            config: Any = {"configurable": {"checkpoint_id": each.parent, "checkpoint_ns": each.namespace}}
            checkpoint = cast("LangGraphCheckpoint", dict(each.checkpoint))
            versions = dict(checkpoint["channel_versions"])
            new = new_checkpoint(self._serde, config, checkpoint, cast("CheckpointMetadata", each.metadata), versions)
            for blob in new.blobs:
                key = (each.namespace, blob.channel, blob.version)
                if values.setdefault(key, blob.blob) != blob.blob:
                    raise CheckpointMismatch(f"{blob.channel}: two values under the version {blob.version}")
            head = heads[each.namespace] == each.id
            arrivals.append(Arrival(place, new, tuple(each.writes), head, _moment(checkpoint.get("ts"))))
        return arrivals

    async def _compared(self, thread: Thread, found: Sequence[FoundCheckpoint]) -> str | None:
        """The digest of what is stored of the source, if all of it is; tasks may have written more since."""
        wanted = CheckpointQuery(frozenset({thread.user_id}), thread.thread_id)
        stored = {
            (each.place.namespace, each.id): checkpoint_tuple(self._serde, each)
            for each in await self._checkpoints.find(self._principal, wanted)
        }
        digest = hashlib.sha256()
        for each in sorted(found, key=lambda one: (one.namespace, one.id)):
            there = stored.get((each.namespace, each.id))
            if there is None:
                return None
            parent = None if there.parent_config is None else there.parent_config["configurable"]["checkpoint_id"]
            state = self._told(each.parent, each.checkpoint, each.metadata)
            writes = [self._bytes(list(write)) for write in _in_order(each, self._serde)]
            kept = [self._bytes(list(write)) for write in there.pending_writes or ()]
            if self._told(parent, there.checkpoint, there.metadata) != state or not _in_turn(writes, kept):
                return None
            digest.update(b"\x00".join([state, *writes]))
        return digest.hexdigest()

    def _told(self, parent: str | None, checkpoint: Mapping[str, Any], metadata: Mapping[str, Any]) -> bytes:
        """A checkpoint as bytes that are equal where it is."""
        return b"\x00".join(self._bytes(part) for part in (parent, _sorted(checkpoint), _sorted(metadata)))

    def _bytes(self, value: object) -> bytes:
        return self._serde.dumps_typed(value)[1]


def _in_turn(some: Sequence[bytes], all_of_them: Sequence[bytes]) -> bool:
    """Whether some are among others, in the same order."""
    rest = iter(all_of_them)
    return all(each in rest for each in some)


def _in_order(found: FoundCheckpoint, serde: StrictSerializer) -> list[tuple[object, ...]]:
    """What tasks wrote, in the order in which a graph takes it."""
    ordered = sorted(found.writes, key=lambda each: writes_sort_key(each.task_path, each.task_id, each.idx))
    return [(each.task_id, each.channel, serde.loads_typed((each.type, each.blob))) for each in ordered]


def _sorted(value: Any) -> object:  # noqa: ANN401 - any value
    """Objects with their members in order, and sets with theirs; databases keep them in another."""
    if type(value) is dict:
        return {key: _sorted(value[key]) for key in sorted(value, key=str)}
    if type(value) in {set, frozenset}:
        return sorted(map(repr, value))
    return value


def _moment(ts: object) -> datetime:
    """When a checkpoint was made, as its maker says; now, where it says nothing that can be read."""
    try:
        moment = datetime.fromisoformat(str(ts))
    except ValueError:
        return datetime.now(UTC)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)

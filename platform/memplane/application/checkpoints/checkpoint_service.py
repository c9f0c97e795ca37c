"""Checkpoints of graphs and the state of supervisors: stored, read, pruned and deleted, for one caller's users."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from memplane.application.checkpoints.checkpoint_access import let_in, refuse_finished, refuse_gone
from memplane.application.checkpoints.checkpoint_records import (
    Arrival,
    CheckpointQuery,
    Namespace,
    NewCheckpoint,
    StoredCheckpoint,
    SupervisorState,
    TaskWrite,
    Thread,
)
from memplane.application.memories.activity_log import ActivityLog
from memplane.application.memories.gateway import clean_id
from memplane.application.ports import Clock, Policies, Storage
from memplane.application.transaction import CheckpointStore, UnitOfWork
from memplane.application.users.merged_users import refuse_alias, require_unmerged
from memplane.domain.checkpoints import lineage, supervisor_state
from memplane.domain.checkpoints.lineage import IncomingCheckpoint, Placement, Retention
from memplane.domain.errors import AmbiguousThread, LimitExceeded, RecordNotFound, StateConflict, VersionMismatch
from memplane.domain.identity.principal import KeyScope, Principal
from memplane.domain.language.text import refuse_unstorable
from memplane.domain.memory.memory import Visibility

T = TypeVar("T")
MAX_NAMESPACE_BYTES = 500
MAX_CHANNEL_BYTES = 255
MAX_CHECKPOINT_ID_BYTES = 64
MAX_TASK_ID_BYTES = 128
MAX_WRITES = 10_000
_MISSING = "no such thread"


class Checkpoints:
    """Every use case of checkpoints. Each needs the scope `checkpoint`, and touches the caller's users alone.

    A checkpoint holds a conversation word for word, so it is for those who may read turns: the trust level sees the
    private store, and one of the agents that the caller speaks for reads the category of turns.
    """

    def __init__(self, storage: Storage, policies: Policies, activity: ActivityLog, clock: Clock) -> None:
        self._storage = storage
        self._policies = policies
        self._activity = activity
        self._clock = clock

    def _let_in(self, principal: Principal) -> None:
        let_in(principal, self._policies.current)

    def thread(self, principal: Principal, thread_id: str, user_id: str | None) -> Thread:
        """The thread that is meant.

        Raises:
            ScopeForbidden, VisibilityForbidden, CategoryForbidden: the key is not for checkpoints.
            UserForbidden: the key may not touch the user.
            AmbiguousThread: no user is named, and the key is bound to none or to several.
            InvalidText: a name is empty or cannot be stored.
        """
        self._let_in(principal)
        user = clean_id(user_id, "user_id")
        if user is None and principal.users is not None and len(principal.users) == 1:
            (user,) = principal.users
        if user is None:
            raise AmbiguousThread("user_id: name the user whose thread it is", field="user_id")
        return Thread(principal.touch(user), clean_id(thread_id, "thread_id") or "")

    async def resolve_thread(self, principal: Principal, thread_id: str, user_id: str | None) -> Thread:
        """The thread that is meant, found by its name alone where no user is named.

        Raises:
            NotFound: none of the caller's users has such a thread.
            AmbiguousThread: several have.
            UserForbidden, InvalidText: as for :meth:`thread`.
        """
        if user_id is not None:
            return self.thread(principal, thread_id, user_id)
        found = await self.threads(principal, thread_id)
        if not found:
            raise RecordNotFound(_MISSING)
        return found[0]

    async def threads(self, principal: Principal, thread_id: str) -> list[Thread]:
        """The caller's threads of a name that have checkpoints: none, or one.

        Raises:
            AmbiguousThread: several of the caller's users have one.
        """
        self._let_in(principal)
        name = clean_id(thread_id, "thread_id") or ""
        async with self._storage.reading(principal.reach) as reader:
            users = await reader.checkpoints.users(name, principal.users)
        if len(users) > 1:
            raise AmbiguousThread("user_id: several of your users have such a thread; name one", field="user_id")
        return [Thread(user, name) for user in users]

    async def save(self, principal: Principal, place: Namespace, new: NewCheckpoint, *, fork: bool = False) -> None:
        """Store a checkpoint as the head of its lineage, and tell the supervisor's state, in one transaction.

        Args:
            principal: the caller.
            place: where it goes.
            new: the checkpoint; one with the id of the head takes the head's place.
            fork: whether it may begin a second branch, from an older checkpoint.

        Raises:
            StaleCheckpoint: another writer has continued the thread since this one read it; nothing is stored.
            LimitExceeded: a name is too long.
            InvalidText: a name cannot be stored.
        """
        _fit(place, new)
        now, by_key = self._clock(), principal.key_id

        async def work(checkpoints: CheckpointStore) -> None:
            found = await checkpoints.arrive(place, new.id, now)
            refuse_alias(principal, found.merged_into)
            refuse_finished(found.erased, now, new.parent)
            placement = lineage.place(IncomingCheckpoint(new.id, new.parent, new.empty), found.standing, fork=fork)
            before = after = found.state
            if placement is not Placement.BESIDE:
                told = _told(before.data, place.namespace, new, found.revision)
                after = replace(before, data=told, version=before.version + 1, updated_at=now, key_id=by_key)
            parent = None if new.parent == new.id else new.parent
            await checkpoints.add(place, replace(new, parent=parent, key_id=by_key), placement, after)

        principal.require(KeyScope.CHECKPOINT)
        await self._storage.write_checkpoints(principal.reach, work)
        self._activity.wrote(principal, (place.thread.user_id,))

    async def adopt(self, principal: Principal, thread: Thread, arrivals: Sequence[Arrival]) -> bool:
        """Take a whole thread of another saver over, with branches and all, in one transaction.

        Returns:
            Whether it was; a thread that has checkpoints already stays as it is.

        Raises:
            LimitExceeded, InvalidText: a name cannot be stored.
        """
        for each in arrivals:
            _fit(each.place, each.new)
            _fit_writes(each.place, each.new.id, each.writes)
        now = self._clock()

        async def work(uow: UnitOfWork) -> bool:
            await refuse_gone(principal, uow.checkpoints, thread.user_id, now, *(each.new.id for each in arrivals))
            state = await uow.checkpoints.open(thread, now)
            if await uow.checkpoints.nodes(thread):
                return False
            for each in arrivals:
                data = _told(state.data, each.place.namespace, each.new, 0) if each.head else state.data
                version, by_key = state.version + 1, principal.key_id
                state = replace(state, data=data, version=version, updated_at=each.made_at, key_id=by_key)
                placement = Placement.HEAD if each.head else Placement.BESIDE
                await uow.checkpoints.add(each.place, replace(each.new, key_id=by_key), placement, state)
                await uow.checkpoints.add_writes(each.place, each.new.id, each.writes)
            return True

        return await self._write(principal, work)

    async def save_writes(
        self, principal: Principal, place: Namespace, checkpoint_id: str, writes: Sequence[TaskWrite]
    ) -> None:
        """Store what a task wrote after a checkpoint, whether that is stored yet or not, and head or not.

        Raises:
            LimitExceeded: there are too many, or a name is too long.
            InvalidText: a name cannot be stored.
        """
        _fit_writes(place, checkpoint_id, writes)
        principal.require(KeyScope.CHECKPOINT)
        now = self._clock()

        async def work(checkpoints: CheckpointStore) -> None:
            await refuse_gone(principal, checkpoints, place.thread.user_id, now, checkpoint_id)
            await checkpoints.add_writes(place, checkpoint_id, writes)

        if writes:
            await self._storage.write_checkpoints(principal.reach, work)

    async def find(
        self,
        principal: Principal,
        wanted: CheckpointQuery,
        matches: Callable[[Mapping[str, object]], bool] | None = None,
    ) -> list[StoredCheckpoint]:
        """Checkpoints of the caller's users, newest first.

        Args:
            principal: the caller.
            wanted: which ones.
            matches: whether metadata are those of one that is meant.
        """
        self._let_in(principal)
        if wanted.limit is not None and wanted.limit <= 0:
            return []
        self._activity.note_read(principal, wanted.users or ())
        async with self._storage.reading(principal.reach) as reader:
            if wanted.users is not None and len(wanted.users) == 1:
                await require_unmerged(reader, principal, next(iter(wanted.users)))
            if matches is None:
                return await reader.checkpoints.find(wanted)
            keys = [key for key, metadata in await reader.checkpoints.metadata(wanted) if matches(metadata)]
            found: list[StoredCheckpoint] = []
            for place, checkpoint_id in keys[: wanted.limit]:
                thread = place.thread
                one = CheckpointQuery(
                    frozenset({thread.user_id}), thread.thread_id, place.namespace, ids=(checkpoint_id,), limit=1
                )
                found += await reader.checkpoints.find(one)
            return found

    async def delete(self, principal: Principal, thread: Thread, version: int | None = None) -> None:
        """Delete all that is stored of a thread's graph: checkpoints, values, writes and the supervisor's state.

        Raises:
            NotFound: there is nothing.
            VersionConflict: the supervisor's state is not at the version that the caller holds.
        """

        async def work(uow: UnitOfWork) -> None:
            before = await uow.checkpoints.lock(thread)
            _refuse_other_version(before, version)
            if not await uow.checkpoints.delete(thread):
                raise RecordNotFound(_MISSING)

        await self._write(principal, work)

    async def copy(self, principal: Principal, source: Thread, target: Thread) -> None:
        """Copy a thread whole: every checkpoint with its ancestors, values and writes, and the supervisor's state.

        Raises:
            NotFound: the source is not there.
            Conflict: the target has checkpoints already.
        """
        now = self._clock()

        async def work(uow: UnitOfWork) -> None:
            await refuse_gone(principal, uow.checkpoints, target.user_id, now)
            for thread in sorted((source, target), key=lambda each: (each.user_id, each.thread_id)):
                await uow.checkpoints.lock(thread)
            if await uow.checkpoints.nodes(target):
                raise StateConflict("the target thread has checkpoints already; copying over them would fork it")
            if not await uow.checkpoints.copy(source, target, now):
                raise RecordNotFound(_MISSING)

        await self._write(principal, work)

    async def prune(self, principal: Principal, thread: Thread, retention: Retention) -> int:
        """Delete checkpoints that are not kept, never one without which a kept one cannot be read.

        Returns:
            How many were deleted.
        """
        return await self._write(principal, lambda uow: prune_thread(uow, thread, retention))

    async def erase(self, principal: Principal, user_id: str) -> Mapping[str, int]:
        """Erase all checkpoints of a user, and the states of supervisors, in every thread.

        Returns:
            How many rows were erased, by table: for a receipt.

        Raises:
            UserForbidden: the key may not touch the user.
            InvalidText: the name is empty or cannot be stored.
        """
        user = principal.touch(clean_id(user_id, "user_id") or "")
        return await self._write(principal, lambda uow: uow.checkpoints.erase(user))

    async def delete_runs(self, principal: Principal, run_ids: Sequence[str]) -> int:
        """Delete the checkpoints that runs have made, in every thread of the caller's users.

        Returns:
            How many were deleted.

        Raises:
            CheckpointNeeded: one that stays cannot be read without one that would go; nothing is deleted.
        """
        gone = frozenset(run_ids)

        async def work(uow: UnitOfWork) -> int:
            deleted = 0
            for thread in await uow.checkpoints.threads_of(sorted(gone), principal.users):
                await uow.checkpoints.lock(thread)
                nodes = await uow.checkpoints.nodes(thread)
                deleted += await _keep(uow, thread, nodes, lineage.without_runs(nodes, gone))
            return deleted

        return await self._write(principal, work) if gone else 0

    async def supervisor_state(self, principal: Principal, thread: Thread) -> SupervisorState:
        """The state of a supervisor in a thread.

        Raises:
            NotFound: there is none.
        """
        self._let_in(principal)
        async with self._storage.reading(principal.reach) as reader:
            found = await reader.checkpoints.supervisor_state(thread)
            if found is None:
                await require_unmerged(reader, principal, thread.user_id)
        if found is None:
            raise RecordNotFound(_MISSING)
        self._activity.note_read(principal, (thread.user_id,))
        return found

    async def supervise(
        self, principal: Principal, thread: Thread, sections: Mapping[str, object], version: int | None = None
    ) -> SupervisorState:
        """Store sections of a supervisor's state; those that are not given stay as they are.

        Returns:
            The whole state.

        Raises:
            VersionConflict: the state is not at the version that the caller holds; 0 is that of one that is not there.
        """
        now = self._clock()

        async def work(uow: UnitOfWork) -> SupervisorState:
            await refuse_gone(principal, uow.checkpoints, thread.user_id, now)
            before = await uow.checkpoints.open(thread, now)
            _refuse_other_version(before, version)
            after = replace(before, data={**before.data, **sections}, version=before.version + 1, updated_at=now)
            after = replace(after, key_id=principal.key_id)
            await uow.checkpoints.keep(after)
            return after

        done = await self._write(principal, work)
        self._activity.wrote(principal, (thread.user_id,))
        return done

    async def _write(self, principal: Principal, work: Callable[[UnitOfWork], Awaitable[T]]) -> T:
        self._let_in(principal)
        self._policies.current.write_visibility(principal.trust, Visibility.PRIVATE)
        return await self._storage.write(principal.reach, work)


async def prune_thread(uow: UnitOfWork, thread: Thread, retention: Retention) -> int:
    """Delete a thread's checkpoints that are not kept, within a write; how many."""
    await uow.checkpoints.lock(thread)
    nodes = await uow.checkpoints.nodes(thread)
    return await _keep(uow, thread, nodes, lineage.retained_keys(nodes, retention))


async def _keep(uow: UnitOfWork, thread: Thread, nodes: Sequence[lineage.Node], stay: frozenset[lineage.Key]) -> int:
    """Delete a thread's checkpoints but those that stay, and mend what they leave."""
    gone = [node.key for node in nodes if node.key not in stay]
    if gone:
        were = {node.key for node in nodes if node.head}
        heads = [key for key in lineage.heads(nodes, stay) if key not in were]
        await uow.checkpoints.remove(thread, gone, lineage.parents(nodes, stay), heads)
    return len(gone)


def _told(data: Mapping[str, object], namespace: str, new: NewCheckpoint, revision: int) -> dict[str, object]:
    summary = new.summary
    told = {
        "checkpoint_id": new.id,
        "step": summary.step,
        "source": summary.source,
        "ts": summary.ts,
        "channels": list(summary.channels),
    }
    memory = {"context": summary.context, "revision": revision}
    return supervisor_state.after_checkpoint(data, namespace, told, summary.conversation, memory)


def _refuse_other_version(before: SupervisorState | None, version: int | None) -> None:
    there = 0 if before is None else before.version
    if version is not None and version != there:
        raise VersionMismatch(f"the state is at version {there}, not {version}: read it again", version=there)


def _fit(place: Namespace, new: NewCheckpoint) -> None:
    _fits(place.namespace, "checkpoint_ns", MAX_NAMESPACE_BYTES, empty=True)
    for value, name in ((new.id, "checkpoint_id"), (new.parent, "checkpoint_id")):
        _fits(value, name, MAX_CHECKPOINT_ID_BYTES)
    for blob in new.blobs:
        _fits(blob.channel, "channel", MAX_CHANNEL_BYTES)
        _fits(blob.version, "version", MAX_CHECKPOINT_ID_BYTES)


def _fit_writes(place: Namespace, checkpoint_id: str, writes: Sequence[TaskWrite]) -> None:
    if len(writes) > MAX_WRITES:
        raise LimitExceeded(f"writes: {len(writes)}, at most {MAX_WRITES}", field="writes")
    _fits(place.namespace, "checkpoint_ns", MAX_NAMESPACE_BYTES, empty=True)
    _fits(checkpoint_id, "checkpoint_id", MAX_CHECKPOINT_ID_BYTES)
    for write in writes:
        _fits(write.task_id, "task_id", MAX_TASK_ID_BYTES)
        _fits(write.channel, "channel", MAX_CHANNEL_BYTES)
        refuse_unstorable(write.task_path, "task_path")


def _fits(value: str | None, field: str, most: int, *, empty: bool = False) -> None:
    """Refuse a name of a graph that cannot be stored.

    Raises:
        InvalidText: it is empty, or holds what cannot be stored.
        LimitExceeded: it is too long.
    """
    if value is None or (empty and not value):
        return
    refuse_unstorable(value, field)
    if (size := len(value.encode())) > most:
        raise LimitExceeded(f"{field}: {size} bytes, at most {most}", field=field)

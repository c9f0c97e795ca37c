"""A checkpointer that keeps graphs in Memplane: by tenant and user, one lineage to a thread, on either database."""

from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from typing import Any, Self

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)

from memplane.domain.identity.principal import Principal
from memplane.entrypoints.langgraph.blocking import BlockingSaver
from memplane.entrypoints.langgraph.bridge import application_of, in_thread
from memplane.entrypoints.langgraph.operations import KEEP_LATEST


class MemplaneSaver(BlockingSaver):
    """LangGraph's checkpointer on Memplane.

    Use it as ``async with MemplaneSaver.open(url, key=key) as saver: graph = builder.compile(checkpointer=saver)``, and
    name the user beside the thread: ``{"configurable": {"thread_id": "t1", "user_id": "ana"}}``. The tenant, and which
    users there are, is the key's to say; a config can choose among them and no more.

    Every method raises `MemplaneError`; its ``code`` says exactly what. A run that another one has overtaken fails with
    `StaleCheckpoint`.

    Args:
        checkpoints: the use cases, of an application that is open in the running event loop.
        caller: who calls, or what finds out at every call.
        user_id: the user, for threads that name none.
        types: the types of values, beside LangGraph's own, that graphs may keep.
    """

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        database: str,
        *,
        key: str | None = None,
        principal: Principal | None = None,
        user_id: str | None = None,
        types: Collection[type] = (),
    ) -> AsyncIterator[Self]:
        """A saver on a database: ``postgresql://…`` as the application's role, or the path of a SQLite file.

        Args:
            database: where it is.
            key: an API key with the scope `checkpoint`; looked up at every call, so that a revoked one ends at once.
            principal: who calls, for code that has authenticated the caller itself; instead of a key.
            user_id: the user, for threads that name none; other users are then refused.
            types: the types of values, beside LangGraph's own, that graphs may keep.

        Raises:
            Invalid: neither a key nor a principal is given, or both are.
            Unauthenticated: the key does not hold.
            StorageUnavailable, SchemaMismatch: the database cannot be used.
        """
        async with application_of(database, key, principal) as (application, caller):
            yield cls(application.checkpoints, caller, user_id=user_id, types=types)

    @classmethod
    @contextmanager
    def open_sync(cls, database: str, **given: Any) -> Iterator[Self]:  # noqa: ANN401 - the arguments of `open`
        """The same for code without an event loop: one thread with a loop does the work."""
        with in_thread(cls.open(database, **given), "memplane-saver") as saver:
            yield saver

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that a config names, or the head of its thread; ``None`` when there is none."""
        return await self._bridge.there(self._get(config))

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - LangGraph's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncGenerator[CheckpointTuple, None]:
        """Checkpoints, newest first: of a thread, or of all of the caller's users."""
        for each in await self._bridge.there(self._list(config, filter, before, limit)):
            yield each

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint that follows the one that the config names.

        Raises:
            StaleCheckpoint: another writer has continued the thread since; nothing is stored.
            UndeclaredType: a channel holds a value of a type that was not declared.
        """
        return await self._bridge.there(self._put(config, checkpoint, metadata, new_versions))

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store what a task wrote after the checkpoint that the config names.

        Raises:
            UndeclaredType: a value is of a type that was not declared.
        """
        await self._bridge.there(self._put_writes(config, writes, task_id, task_path))

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete all that is stored of a thread; one that is not there is no error.

        Raises:
            AmbiguousThread: several of the caller's users have such a thread, and the saver is opened for none.
        """
        await self._bridge.there(self._delete_thread(thread_id))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints that runs have made.

        Raises:
            CheckpointNeeded: one that stays could not be read any more; nothing is deleted.
        """
        await self._bridge.there(self._delete_for_runs(run_ids))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread whole, to one that has no checkpoints yet.

        Raises:
            NotFound: the source is not there.
            Conflict: the target has checkpoints.
        """
        await self._bridge.there(self._copy_thread(source_thread_id, target_thread_id))

    async def aprune(
        self,
        thread_ids: Sequence[str],
        *,
        strategy: str = KEEP_LATEST,
        keep_last: int = 1,
        older_than: timedelta | None = None,
    ) -> None:
        """Delete old checkpoints of threads; never one without which a kept one cannot be read.

        Args:
            thread_ids: the threads; those that are not there are passed over.
            strategy: `keep_latest`, or `delete` for everything.
            keep_last: how many of each namespace are kept, the head among them.
            older_than: delete only what is older.

        Raises:
            Invalid: there is no such strategy, or nothing would be kept.
        """
        await self._bridge.there(self._prune(thread_ids, strategy, keep_last, older_than))

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> dict[str, DeltaChannelHistory]:
        """What was written to channels since their last whole value."""
        return await self._bridge.there(self._delta_history(config, channels))

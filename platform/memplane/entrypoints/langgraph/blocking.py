"""The checkpointer for code without an event loop: the same operations, waited for."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)

from memplane.entrypoints.langgraph.operations import KEEP_LATEST, SaverOperations


class BlockingSaver(SaverOperations):
    """What LangGraph calls without an event loop."""

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """`aget_tuple`, waited for."""
        return self._bridge.wait_for(self._get(config))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - LangGraph's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """`alist`, waited for."""
        yield from self._bridge.wait_for(self._list(config, filter, before, limit))

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """`aput`, waited for."""
        return self._bridge.wait_for(self._put(config, checkpoint, metadata, new_versions))

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """`aput_writes`, waited for."""
        self._bridge.wait_for(self._put_writes(config, writes, task_id, task_path))

    def delete_thread(self, thread_id: str) -> None:
        """`adelete_thread`, waited for."""
        self._bridge.wait_for(self._delete_thread(thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """`adelete_for_runs`, waited for."""
        self._bridge.wait_for(self._delete_for_runs(run_ids))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """`acopy_thread`, waited for."""
        self._bridge.wait_for(self._copy_thread(source_thread_id, target_thread_id))

    def prune(
        self,
        thread_ids: Sequence[str],
        *,
        strategy: str = KEEP_LATEST,
        keep_last: int = 1,
        older_than: timedelta | None = None,
    ) -> None:
        """`aprune`, waited for."""
        self._bridge.wait_for(self._prune(thread_ids, strategy, keep_last, older_than))

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> dict[str, DeltaChannelHistory]:
        """`aget_delta_channel_history`, waited for."""
        return self._bridge.wait_for(self._delta_history(config, channels))

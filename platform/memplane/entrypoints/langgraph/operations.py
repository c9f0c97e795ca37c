"""What a checkpointer does, in the event loop of its database."""

import copy
import random
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)

from memplane.adapters.langgraph.encoding import checkpoint_tuple, config_of, holds, new_checkpoint, task_writes
from memplane.adapters.langgraph.serializer import StrictSerializer
from memplane.application.checkpoints.checkpoint_records import CheckpointQuery, Namespace, Thread
from memplane.application.checkpoints.checkpoint_service import Checkpoints
from memplane.domain.checkpoints.lineage import Retention
from memplane.domain.errors import InvalidRequest, RecordNotFound
from memplane.domain.identity.principal import Principal
from memplane.entrypoints.langgraph.ancestors import Ancestors
from memplane.entrypoints.langgraph.bridge import Bridge, Caller

KEEP_LATEST, DELETE = "keep_latest", "delete"


class SaverOperations(BaseCheckpointSaver[str]):
    """The operations of `MemplaneSaver`, which says what its arguments are."""

    serde: StrictSerializer

    def __init__(
        self,
        checkpoints: Checkpoints,
        caller: Principal | Caller,
        *,
        user_id: str | None = None,
        types: Collection[type] = (),
    ) -> None:
        super().__init__(serde=StrictSerializer(types))
        self._checkpoints = checkpoints
        self._caller = caller
        self._user = user_id
        self._fork = False
        self._bridge = Bridge()

    def forking(self) -> Self:
        """The same saver for time travel: what it stores may begin a second branch from an older checkpoint.

        The new branch is the thread from then on; a run that is still on the old one is refused.
        """
        clone = copy.copy(self)
        clone._fork = True  # noqa: SLF001 - a copy of its own
        return clone

    def with_allowlist(self, extra_allowlist: Collection[tuple[str, ...]]) -> Self:
        """The same saver, told of more types; LangGraph calls it with those of a graph's schemas."""
        clone = copy.copy(self)
        clone.serde = self.serde.with_types(extra_allowlist)
        return clone

    def get_next_version(self, current: str | int | None, channel: None) -> str:  # noqa: ARG002 - LangGraph's signature
        """A channel's next version, which no other branch of the thread has."""
        number = current if isinstance(current, int) else int((current or "0").split(".")[0])
        return f"{number + 1:032}.{random.random():016}"  # noqa: S311 - tells branches apart, keeps no secret

    async def _principal(self) -> Principal:
        principal = self._caller if isinstance(self._caller, Principal) else await self._caller()
        return principal if self._user is None else replace(principal, users=frozenset({principal.touch(self._user)}))

    def _place(self, principal: Principal, config: RunnableConfig) -> Namespace:
        named = config.get("configurable", {})
        user, thread_id = named.get("user_id"), named.get("thread_id")
        if thread_id is None:
            raise InvalidRequest('name the thread: {"configurable": {"thread_id": …}}', field="thread_id")
        thread = self._checkpoints.thread(principal, str(thread_id), None if user is None else str(user))
        return Namespace(thread, str(named.get("checkpoint_ns") or ""))

    async def _get(self, config: RunnableConfig) -> CheckpointTuple | None:
        principal = await self._principal()
        place = self._place(principal, config)
        checkpoint_id = config["configurable"].get("checkpoint_id")
        wanted = CheckpointQuery(
            frozenset({place.thread.user_id}),
            place.thread.thread_id,
            place.namespace,
            ids=(str(checkpoint_id),) if checkpoint_id else None,
            head=not checkpoint_id,
            limit=1,
        )
        found = await self._checkpoints.find(principal, wanted)
        return checkpoint_tuple(self.serde, found[0]) if found else None

    async def _list(
        self,
        config: RunnableConfig | None,
        filters: dict[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> list[CheckpointTuple]:
        principal = await self._principal()
        wanted = CheckpointQuery(principal.users, limit=limit)
        if config is not None:
            named = config["configurable"]
            thread = self._place(principal, config).thread
            checkpoint_id, namespace = named.get("checkpoint_id"), named.get("checkpoint_ns")
            wanted = CheckpointQuery(
                frozenset({thread.user_id}),
                thread.thread_id,
                None if namespace is None else str(namespace),
                ids=(str(checkpoint_id),) if checkpoint_id else None,
                limit=limit,
            )
        earlier = None if before is None else before["configurable"].get("checkpoint_id")
        if earlier is not None:
            wanted = replace(wanted, before=str(earlier))
        found = await self._checkpoints.find(
            principal, wanted, (lambda told: holds(told, filters)) if filters else None
        )
        return [checkpoint_tuple(self.serde, each) for each in found]

    async def _put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        principal = await self._principal()
        place = self._place(principal, config)
        new = new_checkpoint(self.serde, config, checkpoint, metadata, new_versions)
        await self._checkpoints.save(principal, place, new, fork=self._fork)
        return config_of(place, new.id)

    async def _put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str
    ) -> None:
        principal = await self._principal()
        place = self._place(principal, config)
        made = task_writes(self.serde, writes, task_id, task_path)
        await self._checkpoints.save_writes(principal, place, str(config["configurable"]["checkpoint_id"]), made)

    async def _delete_thread(self, thread_id: str) -> None:
        principal = await self._principal()
        for thread in await self._threads(principal, thread_id):
            try:
                await self._checkpoints.delete(principal, thread)
            except RecordNotFound:  # somebody else was faster
                return

    async def _threads(self, principal: Principal, thread_id: str) -> list[Thread]:
        return await self._checkpoints.threads(principal, str(thread_id))

    async def _delete_for_runs(self, run_ids: Sequence[str]) -> None:
        await self._checkpoints.delete_runs(await self._principal(), [str(each) for each in run_ids])

    async def _copy_thread(self, source_id: str, target_id: str) -> None:
        principal = await self._principal()
        found = await self._threads(principal, source_id)
        if not found:
            raise RecordNotFound("no such thread")
        target = self._checkpoints.thread(principal, str(target_id), found[0].user_id)
        await self._checkpoints.copy(principal, found[0], target)

    async def _prune(
        self, thread_ids: Sequence[str], strategy: str, keep_last: int, older_than: timedelta | None
    ) -> None:
        if strategy not in {KEEP_LATEST, DELETE} or isinstance(thread_ids, str):
            raise InvalidRequest(f"prune takes a list of threads, and '{KEEP_LATEST}' or '{DELETE}' as its strategy")
        if keep_last < 1:
            raise InvalidRequest("keep_last: at least 1; the head of a thread is never pruned")
        principal = await self._principal()
        # without an age, everything that the count does not keep is old enough
        since = None if older_than is None else datetime.now(UTC) - older_than
        for thread_id in thread_ids:
            if strategy == DELETE:
                await self._delete_thread(thread_id)
                continue
            for thread in await self._threads(principal, thread_id):
                await self._checkpoints.prune(principal, thread, Retention(keep_last, since))

    async def _delta_history(self, config: RunnableConfig, channels: Sequence[str]) -> dict[str, DeltaChannelHistory]:
        principal = await self._principal()
        place = self._place(principal, config)
        users = frozenset({place.thread.user_id})
        wanted = CheckpointQuery(users, place.thread.thread_id, place.namespace, channels=tuple(channels))
        ancestors = Ancestors(lambda asked: self._checkpoints.find(principal, asked), wanted, self.serde)
        return dict(await ancestors.aget_delta_channel_history(config=config, channels=channels))

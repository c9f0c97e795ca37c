"""A checkpoint's ancestors, read a page at a time: for channels whose value stands in what was written to them."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

from memplane.adapters.langgraph.encoding import checkpoint_tuple
from memplane.adapters.langgraph.serializer import StrictSerializer
from memplane.application.checkpoints.checkpoint_records import CheckpointQuery, StoredCheckpoint

PAGE = 64
Find = Callable[[CheckpointQuery], Awaitable[Sequence[StoredCheckpoint]]]


class Ancestors(BaseCheckpointSaver[str]):
    """What LangGraph's walk over ancestors asks for; most parents stand in a page that is there already."""

    serde: StrictSerializer

    def __init__(self, find: Find, wanted: CheckpointQuery, serde: StrictSerializer) -> None:
        super().__init__(serde=serde)
        self._find = find
        self._wanted = wanted
        self._known: dict[str, StoredCheckpoint] = {}

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that a config names, or the head."""
        named = config["configurable"].get("checkpoint_id")
        if named is None:
            found = await self._find(replace(self._wanted, head=True, limit=1))
            return checkpoint_tuple(self.serde, found[0]) if found else None
        wanted = str(named)
        if wanted not in self._known:
            # a parent's id is nearly always the greatest below its child's; its page comes with it
            one = await self._find(replace(self._wanted, ids=(wanted,), limit=1))
            page = await self._find(replace(self._wanted, before=wanted, limit=PAGE)) if one else ()
            self._known = {each.id: each for each in (*one, *page)}
        stored = self._known.get(wanted)
        return None if stored is None else checkpoint_tuple(self.serde, stored)

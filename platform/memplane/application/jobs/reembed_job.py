"""The job `reembed`: a tenant's vectors by another model, beside the old ones, which then make room.

Since a change began, every write stores both vectors: whoever begins it waits for the writes that do not know of it.
So one walk over what there is, in the order of ids, leaves nothing out. At its end the two columns change places in one
transaction, and a second walk clears the old one. Where either walk stands is in the metadata table, noted in the
transaction of each batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from memplane.application.jobs.lifecycle_jobs import JobBatch, Step
from memplane.application.jobs.vector_records import Progress, Text
from memplane.application.memories.gateway import Write
from memplane.application.ports import Storage
from memplane.application.recall.embedders import Embedders
from memplane.application.recall.embedding_guard import SETTING
from memplane.application.recall.search_material import Vector
from memplane.application.transaction import UnitOfWork
from memplane.domain.errors import EmbeddingMismatch
from memplane.domain.identity.principal import Principal
from memplane.domain.ranking.embedding_models import InForce, Phase

PROGRESS = "embedding_progress"
BATCH = 250
"""Texts of one batch: their users' writes wait for it."""
_AGAIN = "again"


@dataclass(frozen=True, slots=True)
class _Read:
    """What a batch was prepared by: should it be otherwise by then, it is prepared anew."""

    in_force: InForce
    progress: Progress
    texts: Sequence[Text] = ()


class PrepareVectors:
    """Prepares the batches of the job: texts are embedded before a transaction opens."""

    def __init__(self, storage: Storage, embedders: Embedders) -> None:
        self._storage = storage
        self._embedders = embedders

    async def __call__(self, principal: Principal, _as_of: datetime, _place: str | None) -> Step:
        """The next batch.

        Raises:
            EmbeddingMismatch: this process does not run the model that the change leads to.
        """
        read = await self._storage.write(principal.reach, _read)
        change = read.in_force.change
        if change is None:
            return _nothing
        if change.phase is Phase.CLEARING:
            return _clearing
        embedder = self._embedders.one(change.model)
        if embedder is None:
            raise EmbeddingMismatch(
                f"the embedding model is being changed to {change.model}, which this worker does not run: "
                f"set MEMPLANE_NEXT_EMBEDDING_MODEL and start it again"
            )
        vectors = await embedder.embed([each.embeddable() for each in read.texts])

        async def step(write: Write, _as_of: datetime, _place: str | None) -> JobBatch:
            return await _filled(write, read, list(zip(read.texts, vectors, strict=True)))

        return step


async def _read(uow: UnitOfWork) -> _Read:
    in_force, progress = uow.in_force, Progress.of(await uow.setting(PROGRESS))
    change = in_force.change
    if change is None or change.phase is not Phase.FILLING or progress.kind is None:
        return _Read(in_force, progress)
    texts = await uow.vectors.without(progress.kind, in_force.column.other, progress.after, BATCH)
    return _Read(in_force, progress, texts)


async def _nothing(_write: Write, _as_of: datetime, _place: str | None) -> JobBatch:
    """No change is under way."""
    return JobBatch({"embedded": 0, "cleared": 0})


async def _filled(write: Write, read: _Read, vectors: Sequence[tuple[Text, Vector | None]]) -> JobBatch:
    """Store what was embedded, or at the end let the new vectors be those that questions are compared with."""
    uow, progress = write.uow, read.progress
    if uow.in_force != read.in_force or Progress.of(await uow.setting(PROGRESS)) != progress:
        return JobBatch(place=_AGAIN)
    if progress.kind is None:
        return await _switched(write, read.in_force)
    await uow.lock_users({text.user_id for text, _ in vectors})
    left = await uow.vectors.keep(progress.kind, read.in_force.column.other, vectors) if vectors else 0
    stored = len(vectors) - left
    if left:  # others changed them meanwhile: they are read once more
        following = replace(progress, done=progress.done + stored)
    elif len(vectors) == BATCH:
        following = replace(progress, after=vectors[-1][0].id, done=progress.done + stored)
    else:
        following = replace(progress, done=progress.done + stored).through()
    await uow.keep_setting(PROGRESS, following.as_json(), write.now)
    return JobBatch({"embedded": stored}, _AGAIN)


async def _switched(write: Write, in_force: InForce) -> JobBatch:
    await write.uow.vectors.alone()  # who writes by the vectors in force has ended, and none begins
    if InForce.of(await write.uow.setting(SETTING)) != in_force:
        return JobBatch(place=_AGAIN)
    await begin_phase(write.uow, in_force.switch(), write.now)
    return JobBatch({"switched": 1}, _AGAIN)


async def _clearing(write: Write, _as_of: datetime, _place: str | None) -> JobBatch:
    """Remove vectors that are in force no longer, or never came to be."""
    uow = write.uow
    in_force, progress = uow.in_force, Progress.of(await uow.setting(PROGRESS))
    if in_force.change is None or in_force.change.phase is not Phase.CLEARING:
        return JobBatch(place=_AGAIN)
    if progress.kind is None:
        await uow.vectors.alone()
        await uow.keep_setting(SETTING, in_force.clear_column().as_json(), write.now)
        return JobBatch({"finished": 1})
    old = in_force.column.other
    found = await uow.vectors.holders(progress.kind, old, progress.after, BATCH)
    await uow.lock_users({user for _, user in found})
    await uow.vectors.clear(progress.kind, old, [each for each, _ in found])
    following = replace(progress, done=progress.done + len(found))
    following = replace(following, after=found[-1][0]) if len(found) == BATCH else following.through()
    await uow.keep_setting(PROGRESS, following.as_json(), write.now)
    return JobBatch({"cleared": len(found)}, _AGAIN)


async def begin_phase(uow: UnitOfWork, in_force: InForce, now: datetime) -> None:
    """Record what is in force from now on, and that its phase is at its beginning; the transaction is alone."""
    await uow.keep_setting(SETTING, in_force.as_json(), now)
    await uow.keep_setting(PROGRESS, Progress(total=await uow.vectors.count()).as_json(), now)

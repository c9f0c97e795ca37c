"""Changing a tenant's embedding model while it is in use: begun, looked at, cancelled; the job `reembed` does it."""

from collections.abc import Callable
from dataclasses import dataclass

from memplane.application.jobs.job_submission import enqueue
from memplane.application.jobs.reembed_job import PROGRESS, begin_phase
from memplane.application.jobs.vector_records import Progress
from memplane.application.ports import Clock, Storage
from memplane.application.recall.embedders import Embedders
from memplane.application.recall.embedding_guard import SETTING
from memplane.application.transaction import UnitOfWork
from memplane.domain.errors import RecordNotFound, StateConflict
from memplane.domain.identity.principal import Reach
from memplane.domain.ranking.embedding_models import EmbeddingModel, InForce, Phase

JOB = "reembed"


@dataclass(frozen=True, slots=True)
class EmbeddingStatus:
    """Where a tenant's vectors stand.

    Attributes:
        model: in force; ``None`` for a tenant that was never used.
        phase: of the change under way, or none.
        other: to which it leads, or whose vectors are being cleared.
        done: how many vectors of the phase are stored, or removed.
        total: how many texts there were when the phase began.
    """

    tenant: str
    model: str | None
    phase: Phase | None
    other: str | None
    done: int
    total: int


class Reembedding:
    """Begins and cancels changes of the embedding model."""

    def __init__(self, storage: Storage, embedders: Embedders, clock: Clock) -> None:
        self._storage = storage
        self._embedders = embedders
        self._clock = clock

    async def start(self, tenant: str) -> EmbeddingStatus:
        """Begin to change to the other model that this process runs: from now on, every write stores both vectors.

        Raises:
            NotFound: there is no such tenant.
            Conflict: a change is under way, or there is no other model to change to.
            EmbeddingMismatch: this process does not run the model in force.
        """
        return await self._changed(tenant, self._begun)

    async def cancel(self, tenant: str) -> EmbeddingStatus:
        """Give up a change that has not switched yet: the new vectors are removed, and the old model stays in force.

        Raises:
            NotFound: there is no such tenant.
            Conflict: nothing is being filled.
        """
        return await self._changed(tenant, InForce.cancel_change)

    async def status(self, tenant: str) -> EmbeddingStatus:
        """Where the tenant's vectors stand.

        Raises:
            NotFound: there is no such tenant.
        """
        await self._require(tenant)
        return await self._storage.write(Reach(tenant), lambda uow: _status(uow, tenant))

    def _begun(self, in_force: InForce) -> InForce:
        known = list(self._embedders.known.values())
        if in_force.model is None:
            in_force = InForce(self._embedders.own)
        others = [each for each in known if each != in_force.model]
        if in_force.change is None and not others:
            raise StateConflict(
                f"{in_force.model} is in force, and no other: name one by MEMPLANE_NEXT_EMBEDDING_MODEL"
            )
        if in_force.change is None and len(others) == len(known):
            raise StateConflict(f"{in_force.model} is in force, which is neither of {_listed(known)}: name it too")
        return in_force.begin_change(others[0] if others else known[0])

    async def _changed(self, tenant: str, change: Callable[[InForce], InForce]) -> EmbeddingStatus:
        await self._require(tenant)
        now = self._clock()

        async def work(uow: UnitOfWork) -> EmbeddingStatus:
            await uow.vectors.alone()  # whoever writes without knowing of the change has ended
            await begin_phase(uow, change(InForce.of(await uow.setting(SETTING))), now)
            await enqueue(uow, JOB, now)
            return await _status(uow, tenant)

        return await self._storage.write(Reach(tenant), work)

    async def _require(self, tenant: str) -> None:
        if not await self._storage.has_tenant(tenant):
            raise RecordNotFound(f"there is no tenant '{tenant}'")


async def _status(uow: UnitOfWork, tenant: str) -> EmbeddingStatus:
    in_force, progress = InForce.of(await uow.setting(SETTING)), Progress.of(await uow.setting(PROGRESS))
    change, model = in_force.change, in_force.model
    return EmbeddingStatus(
        tenant,
        None if model is None else str(model),
        None if change is None else change.phase,
        None if change is None else str(change.model),
        progress.done,
        progress.total,
    )


def _listed(models: list[EmbeddingModel]) -> str:
    return " and ".join(map(str, models))

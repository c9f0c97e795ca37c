"""One embedding model in force for each tenant: vectors of two models cannot be compared."""

from memplane.application.ports import Clock, Storage
from memplane.application.recall.embedders import Embedders
from memplane.application.transaction import UnitOfWork
from memplane.domain.errors import EmbeddingMismatch
from memplane.domain.identity.principal import Reach
from memplane.domain.ranking.embedding_models import InForce

SETTING = "embedding"


class EmbeddingGuard:
    """Refuses to read or write a tenant whose vectors are of a model that this process does not run.

    The first use of a tenant records the process's own model in the metadata table; each process looks once for each
    tenant. Later changes are seen by each transaction itself.
    """

    def __init__(self, storage: Storage, embedders: Embedders, clock: Clock) -> None:
        self._storage = storage
        self._embedders = embedders
        self._clock = clock
        self._checked: set[str] = set()

    async def check(self, tenant: str, *, record: bool = True) -> None:
        """Return when the tenant's vectors are of a model that this process runs.

        Args:
            tenant: the tenant.
            record: whether the first use of the tenant records the model.

        Raises:
            EmbeddingMismatch: another model made them.
        """
        if tenant in self._checked:
            return
        found = await self._storage.write(Reach(tenant), self._recorded if record else self._expected)
        if found.model is None or found.model.key not in self._embedders.known:
            runs = " and ".join(map(str, self._embedders.known.values()))
            raise EmbeddingMismatch(
                f"this tenant's memories were embedded by {found.model}, this server runs {runs}: "
                f"start it with the same model"
            )
        if record:
            self._checked.add(tenant)

    async def _expected(self, uow: UnitOfWork) -> InForce:
        found = await uow.setting(SETTING)
        return InForce(self._embedders.own) if found is None else InForce.of(found)

    async def _recorded(self, uow: UnitOfWork) -> InForce:
        found = await uow.setting(SETTING)
        if found is None:
            here = InForce(self._embedders.own)
            await uow.keep_setting(SETTING, here.as_json(), self._clock())
            return here
        return InForce.of(found)

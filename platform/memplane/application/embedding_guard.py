"""One embedding model for each tenant: vectors of two models cannot be compared."""

from memplane.application.ports import Clock, Embedder, Storage
from memplane.application.transaction import UnitOfWork
from memplane.domain.errors import EmbeddingMismatch
from memplane.domain.principal import Reach

SETTING = "embedding"


class EmbeddingGuard:
    """Refuses to read or write a tenant whose vectors another model made.

    The first use of a tenant records the model in the metadata table; each process looks once for each tenant.
    """

    def __init__(self, storage: Storage, embedder: Embedder, clock: Clock) -> None:
        self._storage = storage
        self._expected: dict[str, object] = {"model": embedder.model, "dimensions": embedder.dimensions}
        if embedder.fingerprint is not None:
            self._expected["fingerprint"] = embedder.fingerprint
        self._clock = clock
        self._checked: set[str] = set()

    async def check(self, tenant: str) -> None:
        """Return when the tenant's vectors are of this model.

        Raises:
            EmbeddingMismatch: another model made them.
        """
        if tenant in self._checked:
            return
        found = await self._storage.write(Reach(tenant), self._recorded)
        if found != self._expected:
            raise EmbeddingMismatch(
                f"this tenant's memories were embedded by {_named(found)}, this server runs {_named(self._expected)}: "
                f"start it with the same model"
            )
        self._checked.add(tenant)

    async def _recorded(self, uow: UnitOfWork) -> object:
        found = await uow.setting(SETTING)
        if found is None:
            await uow.keep_setting(SETTING, self._expected, self._clock())
            return self._expected
        return found


def _named(model: object) -> str:
    if not isinstance(model, dict):
        return str(model)
    files = f", files {model['fingerprint']}" if "fingerprint" in model else ""
    return f"{model.get('model')} ({model.get('dimensions')} dimensions{files})"

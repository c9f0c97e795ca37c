"""The embedding models that a process runs: its own, and while a change is prepared the next one."""

from collections.abc import Mapping, Sequence

from memplane.application.ports import Embedder
from memplane.application.recall.search_material import TextVectors
from memplane.domain.ranking.embedding_models import EmbeddingModel


class Embedders:
    """Gives each text a vector by every model, so that whichever is in force by the time it is stored finds its own.

    Args:
        own: of a tenant that is used for the first time.
        others: which may be, or come, in force.
    """

    def __init__(self, own: Embedder, *others: Embedder) -> None:
        self._embedders = {identity(each).key: each for each in (own, *others)}
        self.own = identity(own)
        self.known: Mapping[str, EmbeddingModel] = {key: identity(each) for key, each in self._embedders.items()}

    async def embed(self, texts: Sequence[str]) -> list[TextVectors]:
        """The vectors of each text."""
        found = {key: await embedder.embed(texts) for key, embedder in self._embedders.items()}
        return [TextVectors({key: vectors[place] for key, vectors in found.items()}) for place in range(len(texts))]

    async def embed_query(self, text: str) -> TextVectors:
        """The vectors of a question."""
        return TextVectors({key: await embedder.embed_query(text) for key, embedder in self._embedders.items()})

    def one(self, model: EmbeddingModel) -> Embedder | None:
        """What runs a model; ``None`` where nothing does."""
        return self._embedders.get(model.key)


def identity(embedder: Embedder) -> EmbeddingModel:
    """What an embedder's vectors are of."""
    return EmbeddingModel(embedder.model, embedder.dimensions, embedder.fingerprint)

"""Which embedding model runs: the default one, or the one that the operator named."""

import functools

from memplane.adapters.embeddings.batching import Encoder
from memplane.adapters.embeddings.wordllama import WordLlama
from memplane.domain.errors import SettingsError


@functools.cache
def encoder_of(named: str | None = None, name: str | None = None) -> Encoder:
    """The model, read once for the whole process; it keeps no state between calls.

    Args:
        named: a folder, or a name in the local cache of the model hub; none: the default model.
        name: what the policy calls it.

    Raises:
        SettingsError: there is no model that can be run, or what runs it is not installed.
    """
    if named is None:
        if name is not None:
            raise SettingsError("MEMPLANE_EMBEDDING_NAME is for MEMPLANE_EMBEDDING_MODEL; set both or neither")
        return WordLlama()
    from memplane.adapters.embeddings.onnx_model import onnx_model  # noqa: PLC0415 - loaded when it is chosen

    return onnx_model(named, name)

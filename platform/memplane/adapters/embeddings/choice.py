"""Which embedding model runs: the default one, or the one that the operator named."""

import functools
from pathlib import Path

from memplane.adapters.embeddings.batching import Encoder
from memplane.adapters.embeddings.wordllama import MODELS, WordLlama
from memplane.domain.errors import SettingsError


@functools.cache
def encoder_of(named: str | None = None, name: str | None = None) -> Encoder:
    """The model, read once for the whole process; it keeps no state between calls.

    Args:
        named: a folder, or a name in the local cache of the model hub, or of a model that comes with it; none: the
            default model.
        name: what the policy calls it.

    Raises:
        SettingsError: there is no model that can be run, or what runs it is not installed.
    """
    if named is None:
        if name is not None:
            raise SettingsError("MEMPLANE_EMBEDDING_NAME is for MEMPLANE_EMBEDDING_MODEL; set both or neither")
        return WordLlama()
    if named in MODELS and not Path(named).exists():
        if name is not None:
            raise SettingsError(f"{named} is called by its own name; leave the other one out")
        return WordLlama(MODELS[named])
    from memplane.adapters.embeddings.onnx_model import onnx_model  # noqa: PLC0415 - loaded when it is chosen

    return onnx_model(named, name)


def encoders_of(own: tuple[str | None, str | None], following: tuple[str | None, str | None]) -> list[Encoder]:
    """The model of a process, and the one that is changed to, if there is one.

    Args:
        own: where it is, and what the policy calls it.
        following: the same of the other.

    Raises:
        SettingsError: one of them cannot be run, or both are the same.
    """
    first = encoder_of(*own)
    if following[0] is None:
        if following[1] is not None:
            raise SettingsError(
                "MEMPLANE_NEXT_EMBEDDING_NAME is for MEMPLANE_NEXT_EMBEDDING_MODEL; set both or neither"
            )
        return [first]
    second = encoder_of(*following)
    if _same(first, second):
        raise SettingsError(f"MEMPLANE_NEXT_EMBEDDING_MODEL is {second.model}, which runs already; leave it out")
    return [first, second]


def _same(one: Encoder, other: Encoder) -> bool:
    return (one.model, one.dimensions, one.fingerprint) == (other.model, other.dimensions, other.fingerprint)

"""The default embedding: static word vectors of the `wordllama` package, offline, 256 dimensions, no model call.

The package's own loader looks for its tokenizer on the network and configures logging on import; so its files are
found by path and read here, without importing it.
"""

import importlib.util
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from memplane.application.vectors import Vector
from memplane.domain.errors import SettingsError

DIMENSIONS = 256
MAX_TOKENS = 512
MODELS = {f"wordllama-{each}": each for each in (DIMENSIONS, 128, 64)}
"""The models that come with it, by name."""


class WordLlama:
    """Mean of the word pieces' vectors, normalised; about 0.04 ms a text.

    Its vectors were trained so that their first numbers are a smaller model of the same words
    (Matryoshka representation learning, https://arxiv.org/abs/2205.13147).

    Args:
        dimensions: how many of the first numbers are used.
    """

    fingerprint: str | None = None
    query_prompt = document_prompt = ""
    instant_chars = 1_000

    def __init__(self, dimensions: int = DIMENSIONS) -> None:
        self.model, self.dimensions = f"wordllama-{dimensions}", dimensions
        folder = _package_folder()
        (vectors,) = load_file(folder / "weights" / f"l2_supercat_{DIMENSIONS}.safetensors").values()
        self._vectors = vectors[:, :dimensions]
        tokenizer = folder / "tokenizers" / "l2_supercat_tokenizer_config.json"
        self._tokenizer: Tokenizer = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MAX_TOKENS)

    def encode(self, texts: Sequence[str]) -> list[Vector | None]:
        """One unit vector for each text, ``None`` where no word piece is known."""
        encoded = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [self._pooled(entry.ids) for entry in encoded]

    def _pooled(self, ids: list[int]) -> NDArray[np.float32] | None:
        if not ids:
            return None
        mean = self._vectors[ids].mean(axis=0, dtype=np.float32)
        norm = float(np.linalg.norm(mean))
        return (mean / norm).astype(np.float32) if norm > 1e-6 else None


def _package_folder() -> Path:
    spec = importlib.util.find_spec("wordllama")
    if spec is None or not spec.submodule_search_locations:
        raise SettingsError("the default embedding model is missing: install the package `wordllama`")
    return Path(next(iter(spec.submodule_search_locations)))

"""The default embedding: static word vectors of the `wordllama` package, offline, 256 dimensions, no model call.

The package's own loader looks for its tokenizer on the network and configures logging on import; so its files are
found by path and read here, without importing it.
"""

import importlib.util
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from memplane.application.recall.search_material import Vector
from memplane.domain.errors import SettingsError

DIMENSIONS = 256
MAX_TOKENS = 512
TOGETHER = 16_384
"""Word pieces whose vectors are read at once: twice 16 MB at most."""
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
        return [vector for ids in _together([entry.ids for entry in encoded]) for vector in self._pooled(ids)]

    def _pooled(self, ids: Sequence[list[int]]) -> Iterator[NDArray[np.float32] | None]:
        """The vectors of several texts, each as if it came alone: a word piece that many hold is read once."""
        flat = np.fromiter(chain.from_iterable(ids), dtype=np.int64)
        pieces, place = np.unique(flat, return_inverse=True)
        rows = self._vectors[pieces].astype(np.float32)[place]
        start = 0
        for each in ids:
            yield _mean(rows[start : start + len(each)])
            start += len(each)


def _together(ids: Sequence[list[int]]) -> Iterator[list[list[int]]]:
    """Texts, as many as are read at once."""
    some: list[list[int]] = []
    size = 0
    for each in ids:
        if some and size + len(each) > TOGETHER:
            yield some
            some, size = [], 0
        some.append(each)
        size += len(each)
    yield some


def _mean(rows: NDArray[np.float32]) -> NDArray[np.float32] | None:
    """The unit vector of the mean; ``None`` where there is none."""
    if not len(rows):
        return None
    mean = np.add.reduce(rows, axis=0) / np.float32(len(rows))
    norm = np.sqrt(mean @ mean)
    return mean / norm if norm > 1e-6 else None


def _package_folder() -> Path:
    spec = importlib.util.find_spec("wordllama")
    if spec is None or not spec.submodule_search_locations:
        raise SettingsError("the default embedding model is missing: install the package `wordllama`")
    return Path(next(iter(spec.submodule_search_locations)))

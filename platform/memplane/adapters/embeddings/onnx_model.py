"""A sentence embedding model from a local folder, run on the processor by ONNX Runtime; never a network call.

ONNX Runtime is an extra, imported when :func:`onnx_model` is called, and not before.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from memplane.adapters.embeddings.model_folder import SETTING, ModelFolder, Pooling, model_folder
from memplane.application.recall.search_material import Vector
from memplane.domain.errors import SettingsError

INSTALL = "pip install 'memplane[onnx]'"
BATCH_TOKENS = 4_096
"""Tokens, padding included, that go through the model together, so that its activations need a bounded memory."""
PADDING = ("[PAD]", "<pad>")
TINY = 1e-6

Floats = NDArray[np.float32]
Whole = NDArray[np.int64]


class OnnxModel:
    """A transformer whose tokens' vectors are pooled and normalised; some milliseconds a text."""

    instant_chars = 0

    def __init__(self, folder: ModelFolder, session: Any) -> None:  # noqa: ANN401 - a class of a library that may be absent
        self._session = session
        self._inputs = {given.name for given in session.get_inputs()}
        self._pooling = folder.pooling
        self._tokenizer: Tokenizer = Tokenizer.from_file(str(folder.tokenizer))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(folder.length)
        known = (self._tokenizer.token_to_id(token) for token in PADDING)
        self._padding = next((number for number in known if number is not None), 0)
        self.model = folder.name
        self.fingerprint: str | None = folder.fingerprint()
        self.query_prompt, self.document_prompt = folder.query_prompt, folder.document_prompt
        (tried,) = self.encode(["a text to try the model with"])
        self.dimensions = 0 if tried is None else len(tried)

    def encode(self, texts: Sequence[str]) -> list[Vector | None]:
        """One unit vector for each text, ``None`` where the model gives nothing that could be compared."""
        tokens = [entry.ids for entry in self._tokenizer.encode_batch_fast(list(texts))]
        vectors: list[Vector | None] = [None] * len(tokens)
        for places in _batches([len(ids) for ids in tokens]):
            for place, vector in zip(places, self._run([tokens[place] for place in places]), strict=True):
                norm = float(np.linalg.norm(vector))
                if TINY < norm < np.inf:
                    vectors[place] = (vector / norm).astype(np.float32)
        return vectors

    def _run(self, tokens: Sequence[list[int]]) -> Floats:
        """A vector for each text: shape (texts, dimensions)."""
        longest = max(map(len, tokens))
        ids = np.full((len(tokens), longest), self._padding, dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, found in enumerate(tokens):
            ids[row, : len(found)] = found
            mask[row, : len(found)] = 1
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        (states, *_) = self._session.run(None, {name: given[name] for name in self._inputs})
        return _pooled(states.astype(np.float32), mask, self._pooling)


def _batches(lengths: Sequence[int]) -> list[list[int]]:
    """Places of texts that go through the model together: of like length, so that little is padded."""
    batches: list[list[int]] = []
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        if not lengths[place]:
            continue  # nothing to pool
        if batches and (len(batches[-1]) + 1) * lengths[place] <= BATCH_TOKENS:
            batches[-1].append(place)
        else:
            batches.append([place])
    return batches


def _pooled(states: Floats, mask: Whole, pooling: Pooling) -> Floats:
    """The vectors of tokens, of shape (texts, tokens, dimensions), as one for each text; padding does not count."""
    there = mask[:, :, None].astype(np.float32)
    found: Floats
    match pooling:
        case Pooling.MEAN:
            found = (states * there).sum(axis=1) / there.sum(axis=1)
        case Pooling.CLS:
            found = states[:, 0]
        case Pooling.MAX:
            found = np.where(there > 0, states, -np.inf).max(axis=1).astype(np.float32)
    return found


def onnx_model(named: str, name: str | None = None) -> OnnxModel:
    """The model that the operator named, loaded; see :func:`model_folder`.

    Raises:
        SettingsError: ONNX Runtime is not installed, there is no such model, or it cannot be run.
    """
    folder = model_folder(named, name)
    try:
        runtime = import_module("onnxruntime")
    except ImportError as error:
        raise SettingsError(f"{SETTING} needs ONNX Runtime ({error}); install it: {INSTALL}") from error
    options = runtime.SessionOptions()
    # a server's processors have other work: waiting threads sleep
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        session = runtime.InferenceSession(str(folder.graph), options, providers=["CPUExecutionProvider"])
        model = OnnxModel(folder, session)
    except SettingsError:
        raise
    except Exception as error:  # the runtime and the tokenizer raise classes of their own for a file that is none
        raise SettingsError(f"{SETTING}: {folder.graph} cannot be run: {' '.join(str(error).split())[:300]}") from error
    if not model.dimensions:
        raise SettingsError(f"{SETTING}: {folder.graph} gives no vectors that could be compared")
    return model

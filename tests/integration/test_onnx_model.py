"""An embedding model from a folder, run by ONNX Runtime: what its vectors are, and whom the guard refuses."""

import asyncio
import json
import shutil
import socket
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest
from safetensors.numpy import load_file

from integration.commands import run
from memplane.adapters.embeddings.batching import BatchingEmbedder
from memplane.adapters.embeddings.onnx_model import BATCH_TOKENS, OnnxModel, onnx_model
from memplane.application.recall.search_material import Vector
from memplane.bootstrap import Application
from memplane.domain.errors import EmbeddingMismatch, SettingsError
from support.cluster import Database
from support.serving import running_application
from support.small_model import LENGTH, SIZE, SPECIAL, WORDS, small_model

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

TENANT = "t1"
TEXTS = ["Vance repaired the harpsichord.", "Anna sold her old bicycle in the village and moved", "rain", "Who sings?"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_model(tmp_path_factory.mktemp("models") / "small")


@pytest.fixture(scope="module")
def model(folder: Path) -> OnnxModel:
    return onnx_model(str(folder))


def vectors(model: OnnxModel, *texts: str) -> np.ndarray:
    found = model.encode(texts)
    assert all(vector is not None for vector in found)
    return np.array(found)


def _refuse(*_arguments: object) -> NoReturn:
    raise AssertionError("something asks the network")


def test_vectors_are_those_of_the_transformer_written_out(model: OnnxModel, folder: Path) -> None:
    """BERT once more, for one text and in numpy: embeddings, two layers of attention, the mean of the tokens."""
    weights = load_file(folder / "model.safetensors")

    def dense(values: np.ndarray, name: str) -> np.ndarray:
        return values @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def norm(values: np.ndarray, name: str) -> np.ndarray:
        centred = values - values.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
        return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def gelu(values: np.ndarray) -> np.ndarray:
        from math import erf  # noqa: PLC0415 - numpy has none

        return 0.5 * values * (1 + np.vectorize(erf)(values / np.sqrt(2)))

    known = {word: place for place, word in enumerate((*SPECIAL, *WORDS))}
    ids = [known[word] for word in ("[CLS]", "who", "repaired", "the", "harpsichord", "[SEP]")]
    state = weights["embeddings.word_embeddings.weight"][ids] + weights["embeddings.token_type_embeddings.weight"][0]
    state = norm(state + weights["embeddings.position_embeddings.weight"][: len(ids)], "embeddings.LayerNorm")
    for layer in range(2):
        at = f"encoder.layer.{layer}"
        heads = [
            dense(state, f"{at}.attention.self.{name}").reshape(len(ids), 4, SIZE // 4).swapaxes(0, 1)
            for name in ("query", "key", "value")
        ]
        products = np.exp(heads[0] @ heads[1].swapaxes(1, 2) / np.sqrt(SIZE // 4))
        mixed = (products / products.sum(-1, keepdims=True) @ heads[2]).swapaxes(0, 1).reshape(len(ids), SIZE)
        state = norm(state + dense(mixed, f"{at}.attention.output.dense"), f"{at}.attention.output.LayerNorm")
        wide = gelu(dense(state, f"{at}.intermediate.dense"))
        state = norm(state + dense(wide, f"{at}.output.dense"), f"{at}.output.LayerNorm")
    mean = state.mean(axis=0)
    (found,) = vectors(model, "Who repaired the harpsichord")
    assert np.allclose(found, mean / np.linalg.norm(mean), atol=1e-4)


def test_a_text_has_one_unit_vector_in_whatever_company(model: OnnxModel) -> None:
    together = vectors(model, *TEXTS)
    alone = np.array([vectors(model, text)[0] for text in TEXTS])
    assert together.shape == (len(TEXTS), model.dimensions) == (len(TEXTS), SIZE)
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    assert np.allclose(together, alone, atol=1e-5), "padding does not count"
    assert np.abs(together[0] - together[1]).max() > 0.01, "different texts differ"


def test_more_texts_than_go_through_together_keep_their_order(model: OnnxModel) -> None:
    many = [TEXTS[number % len(TEXTS)] for number in range(2 * BATCH_TOKENS // LENGTH)]
    found = vectors(model, *many)
    assert np.allclose(found[:4], vectors(model, *TEXTS), atol=1e-5)
    assert np.allclose(found[-1], found[(len(many) - 1) % 4], atol=1e-5)
    assert model.encode([]) == []


def test_a_long_text_is_cut_at_the_length_of_the_model(model: OnnxModel) -> None:
    words = "soup " * (LENGTH - 2)  # two places are the special tokens'
    full, longer, shorter = vectors(model, words, words + "train piano", words[5:])
    assert np.allclose(full, longer, atol=1e-6)
    assert not np.allclose(full, shorter, atol=1e-4)


@pytest.mark.parametrize("pooling", ["cls", "max"])
def test_other_poolings_give_other_vectors(model: OnnxModel, folder: Path, tmp_path: Path, pooling: str) -> None:
    other = shutil.copytree(folder, tmp_path / "other")
    (other / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode": pooling}))
    pooled = onnx_model(str(other))
    assert np.allclose(vectors(pooled, *TEXTS)[2], vectors(pooled, TEXTS[2])[0], atol=1e-5), "padding does not count"
    assert not np.allclose(vectors(pooled, TEXTS[0]), vectors(model, TEXTS[0]), atol=1e-3)


def test_mpnet_is_exported_too(tmp_path: Path) -> None:
    mpnet = onnx_model(str(small_model(tmp_path / "mpnet", kind="mpnet")))
    together, alone = vectors(mpnet, *TEXTS)[2], vectors(mpnet, TEXTS[2])[0]
    assert np.allclose(together, alone, atol=1e-5)
    assert not np.allclose(vectors(mpnet, "anna sold soup"), vectors(mpnet, "soup sold anna"), atol=1e-3), (
        "order counts"
    )


def test_no_network_is_asked(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr(socket.socket, "connect", _refuse)
    monkeypatch.setattr(socket, "getaddrinfo", _refuse)
    assert onnx_model(str(folder)).encode(TEXTS[:1])[0] is not None
    with pytest.raises(AssertionError, match="network"):
        socket.create_connection(("localhost", 1))
    with pytest.raises(SettingsError, match="never downloaded"):
        onnx_model("sentence-transformers/no-such-model")
    assert "huggingface_hub" not in sys.modules


def test_it_is_computed_off_the_event_loop_with_its_prompts(model: OnnxModel) -> None:
    seen: list[tuple[str, Sequence[str]]] = []

    class Watched:
        model = "small"
        dimensions, fingerprint, instant_chars = SIZE, "f", OnnxModel.instant_chars
        query_prompt, document_prompt = "who ", "the "

        def encode(self, texts: Sequence[str]) -> list[Vector | None]:
            seen.append((threading.current_thread().name, texts))
            return model.encode(texts)

    async def ask() -> None:
        embedder = BatchingEmbedder(Watched())
        (stored,) = await embedder.embed(["soup"])
        asked = await embedder.embed_query("soup")
        assert stored is not None
        assert asked is not None
        assert not np.allclose(stored, asked), "what is stored is not what is asked"
        embedder.close()

    asyncio.run(ask())
    assert [texts for _, texts in seen] == [["the soup"], ["who soup"]]
    assert all(thread.startswith("embed") for thread, _ in seen)


def test_a_file_that_is_no_model_is_refused(folder: Path, tmp_path: Path) -> None:
    broken = shutil.copytree(folder, tmp_path / "broken")
    (broken / "onnx" / "model.onnx").write_bytes(b"no graph at all")
    with pytest.raises(SettingsError, match=r"MEMPLANE_EMBEDDING_MODEL.*model\.onnx cannot be run"):
        onnx_model(str(broken))


def test_the_guard_refuses_another_model_of_the_same_name(database: Database, folder: Path, tmp_path: Path) -> None:
    async def check(wired: Application) -> None:
        await wired.ensure_tenant(TENANT)
        await wired.recall._asking.guard.check(TENANT)

    def start(**chosen: str) -> None:
        with running_application(database, **chosen) as running:
            running.run(check(running.wired))

    other = small_model(tmp_path / "small", seed=2)
    moved = shutil.copytree(folder, tmp_path / "moved")
    start(embedding_model=str(folder))
    start(embedding_model=str(moved), embedding_name="small")
    with pytest.raises(EmbeddingMismatch, match=r"small \(32 dimensions, files \w{16}\).*runs small \(32 dimensions"):
        start(embedding_model=str(other))
    with pytest.raises(EmbeddingMismatch, match=r"runs wordllama-256 \(256 dimensions\)"):
        start()


def test_doctor_tells_what_the_model_is(folder: Path, tmp_path: Path) -> None:
    def looked(named: Path, **more: str) -> dict[str, str]:
        settings = {"MEMPLANE_EMBEDDING_MODEL": str(named), **more}
        told = run("doctor", "--storage", "sqlite", "--data", str(tmp_path / "data"), "--json", environment=settings)
        (found,) = [check for check in told.document["checks"] if check["check"] == "embedding model"]
        return dict(found)

    known = looked(folder, MEMPLANE_EMBEDDING_NAME="wordllama-256")
    assert (known["status"], known["found"]) == ("ok", f"wordllama-256, {SIZE} dimensions")
    unknown = looked(folder)
    assert unknown["status"] == "warning"
    assert "no weights measured" in unknown["found"]
    empty = tmp_path / "empty"
    empty.mkdir()
    none = looked(empty)
    assert none["status"] == "problem"
    assert "is not an embedding model" in none["found"]
    assert "MEMPLANE_EMBEDDING_MODEL" in none["advice"]

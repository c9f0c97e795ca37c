"""A server with an embedding model from a folder: what is stored is found by its vectors, on either database."""

from collections.abc import Callable
from pathlib import Path

import pytest

from support.callers import Tenant
from support.serving import RunningServer
from support.small_model import small_model

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

SAID = ["Vance repaired the harpsichord", "Anna sold her old bicycle", "the rain in the garden", "soup with the dog"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_model(tmp_path_factory.mktemp("models") / "small")


def test_turns_are_found_by_its_vectors(start_server: Callable[..., RunningServer], folder: Path) -> None:
    supervisor = Tenant(start_server(embedding_model=str(folder))).caller("supervisor")
    turns = [supervisor.say(text)["turn_id"] for text in SAID]
    for text, turn in zip(SAID, turns, strict=True):
        answer = supervisor.ask(text, ranking="semantic", top_k=4, explain=True)
        scores = {item["id"]: item["score"] for item in answer["items"]}
        assert scores[turn] == pytest.approx(1, abs=0.01), "the same words have the same vector"
        assert all(score < 0.99 for unit, score in scores.items() if unit != turn), "others have another"

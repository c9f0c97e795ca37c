"""What a folder says of its embedding model; nothing here runs one."""

import json
import shutil
from pathlib import Path

import pytest

from memplane.adapters.embeddings.choice import encoder_of
from memplane.adapters.embeddings.model_folder import DEFAULT_LENGTH, ModelFolder, Pooling, model_folder
from memplane.domain.errors import SettingsError
from support.small_model import LENGTH, write_settings

PROMPTS = "config_sentence_transformers.json"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "small"
    write_settings(made)
    (made / "onnx").mkdir()
    (made / "onnx" / "model.onnx").write_bytes(b"a graph")
    return made


def put(file: Path, content: object) -> None:
    file.write_text(json.dumps(content), encoding="utf-8")


def test_a_folder_is_read_as_it_was_published(folder: Path) -> None:
    put(folder / PROMPTS, {"prompts": {"query": "query: ", "document": "passage: "}})
    assert model_folder(str(folder)) == ModelFolder(
        name="small",
        graph=folder / "onnx" / "model.onnx",
        tokenizer=folder / "tokenizer.json",
        length=LENGTH,
        pooling=Pooling.MEAN,
        query_prompt="query: ",
        document_prompt="passage: ",
    )
    assert model_folder(str(folder), "known").name == "known"


def test_a_folder_without_settings_is_read_with_the_usual(folder: Path) -> None:
    for name in ("modules.json", "sentence_bert_config.json"):
        (folder / name).unlink()
    (folder / "onnx" / "model.onnx").rename(folder / "model.onnx")
    found = model_folder(str(folder))
    assert (found.graph, found.length, found.pooling) == (folder / "model.onnx", DEFAULT_LENGTH, Pooling.MEAN)
    assert found.query_prompt == found.document_prompt == ""
    put(folder / "tokenizer_config.json", {"model_max_length": 256})
    assert model_folder(str(folder)).length == 256
    put(folder / "tokenizer_config.json", {"model_max_length": 10**30})
    assert model_folder(str(folder)).length == DEFAULT_LENGTH, "a tokenizer that has no limit"


def test_one_of_several_graphs_can_be_named(folder: Path) -> None:
    other = folder / "onnx" / "model_qint8.onnx"
    other.write_bytes(b"a smaller graph")
    assert model_folder(str(other)).graph == other
    assert model_folder(str(other)).name == "small"


def test_a_name_is_looked_up_in_the_local_cache(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    with pytest.raises(SettingsError, match=r"neither a folder 'org/small' nor a model.*never downloaded"):
        model_folder("org/small")
    cached = tmp_path / "hub" / "models--org--small"
    shutil.copytree(folder, cached / "snapshots" / "abc123")
    (cached / "refs").mkdir()
    (cached / "refs" / "main").write_text("abc123")
    found = model_folder("org/small")
    assert found.name == "small"
    assert found.graph == cached / "snapshots" / "abc123" / "onnx" / "model.onnx"
    assert found.fingerprint() == model_folder(str(folder)).fingerprint(), "where it lies makes no other model of it"


@pytest.mark.parametrize("missing", ["onnx/model.onnx", "tokenizer.json"])
def test_a_folder_that_is_no_model_is_refused(folder: Path, missing: str) -> None:
    (folder / missing).unlink()
    with pytest.raises(SettingsError, match=rf"MEMPLANE_EMBEDDING_MODEL.*is not an embedding model.*{missing}"):
        model_folder(str(folder))


@pytest.mark.parametrize("pooling", list(Pooling))
def test_both_ways_of_writing_the_pooling_are_read(folder: Path, pooling: Pooling) -> None:
    old = {"mean": "mean_tokens", "cls": "cls_token", "max": "max_tokens"}
    flags = {f"pooling_mode_{flag}": name == pooling for name, flag in old.items()}
    put(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": 32} | flags)
    assert model_folder(str(folder)).pooling is pooling
    put(folder / "1_Pooling" / "config.json", {"embedding_dimension": 32, "pooling_mode": pooling.value})
    assert model_folder(str(folder)).pooling is pooling


def test_what_would_be_computed_wrongly_is_refused(folder: Path) -> None:
    put(folder / "1_Pooling" / "config.json", {"pooling_mode_lasttoken": True})
    with pytest.raises(SettingsError, match="pools by lasttoken, which is not supported"):
        model_folder(str(folder))
    modules = json.loads((folder / "modules.json").read_text())
    put(folder / "modules.json", [*modules, {"path": "2_Dense", "type": "sentence_transformers.models.Dense"}])
    with pytest.raises(SettingsError, match="needs the module Dense, which is not supported"):
        model_folder(str(folder))
    (folder / "modules.json").write_text("{")
    with pytest.raises(SettingsError, match=r"modules\.json cannot be read"):
        model_folder(str(folder))


def test_the_fingerprint_changes_with_what_decides_over_a_vector(folder: Path) -> None:
    prints = [model_folder(str(folder)).fingerprint(), model_folder(str(folder), "other name").fingerprint()]
    assert prints[0] == prints[1]
    put(folder / PROMPTS, {"prompts": {"query": "query: "}})
    prints.append(model_folder(str(folder)).fingerprint())
    (folder / "onnx" / "model.onnx").write_bytes(b"another graph")
    prints.append(model_folder(str(folder)).fingerprint())
    (folder / "onnx" / "model.onnx_data").write_bytes(b"weights beside it")
    prints.append(model_folder(str(folder)).fingerprint())
    put(folder / "sentence_bert_config.json", {"max_seq_length": LENGTH + 1})
    prints.append(model_folder(str(folder)).fingerprint())
    assert len(set(prints)) == 5


def test_a_name_without_a_model_is_refused() -> None:
    with pytest.raises(SettingsError, match="set both or neither"):
        encoder_of(None, "all-MiniLM-L6-v2")
    assert encoder_of().model == "wordllama-256"

"""A folder with a sentence embedding model, as sentence-transformers lays it out: what its files say of it.

Nothing here runs the model, and nothing reaches a network: a name is looked up in the local cache of the model hub.
"""

import hashlib
import json
import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from memplane.domain.errors import SettingsError

SETTING = "MEMPLANE_EMBEDDING_MODEL"
TOKENIZER = "tokenizer.json"
GRAPHS = ("onnx/model.onnx", "model.onnx")
MODULES = ("Transformer", "Pooling", "Normalize")
"""What is done here with what the graph gives; a folder that asks for more would be served wrongly."""
DEFAULT_LENGTH = 512
ANYTHING = 1_000_000
"""Tokenizers without a limit of their own write a number beyond this one."""


class Pooling(StrEnum):
    """How the vectors of a text's tokens become one."""

    MEAN = "mean"
    CLS = "cls"
    MAX = "max"


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """What is needed to run a model.

    Attributes:
        name: as ``ranking.yaml`` and ``merge.yaml`` call it.
        graph: the ONNX file.
        tokenizer: the file of the tokenizer.
        length: tokens beyond which a text is cut.
        pooling: how the vectors of tokens become one.
        query_prompt: what the model was trained to see before a question.
        document_prompt: the same before a text that is to be found.
    """

    name: str
    graph: Path
    tokenizer: Path
    length: int
    pooling: Pooling
    query_prompt: str
    document_prompt: str

    def fingerprint(self) -> str:
        """A digest of everything that decides over a vector: of two that differ no vectors can be compared."""
        whole = hashlib.sha256()
        weights = sorted(self.graph.parent.glob(f"{self.graph.name}*"))  # large ones lie beside the graph
        for file in (*weights, self.tokenizer):
            with file.open("rb") as content:
                whole.update(hashlib.file_digest(content, "sha256").digest())
        settled = [self.length, self.pooling, self.query_prompt, self.document_prompt]
        whole.update(json.dumps(settled).encode())
        return whole.hexdigest()[:16]


def model_folder(named: str, name: str | None = None) -> ModelFolder:
    """The model that the operator named.

    Args:
        named: a folder, an ``.onnx`` file in one, or the name of a model in the local cache of the model hub.
        name: what the policy calls it; the folder's name without it.

    Raises:
        SettingsError: there is no such model, or it is not one that can be run.
    """
    path = Path(named).expanduser()
    if path.suffix == ".onnx":
        folder = path.parent.parent if path.parent.name == "onnx" else path.parent
        graph = path
    else:
        folder = path if path.is_dir() else _cached(named)
        graph = next((folder / file for file in GRAPHS if (folder / file).is_file()), folder / GRAPHS[0])
    for needed in (graph, folder / TOKENIZER):
        if not needed.is_file():
            raise SettingsError(f"{SETTING}: {folder} is not an embedding model in ONNX form: {needed} is not there")
    prompts = _dict(_read(folder / "config_sentence_transformers.json").get("prompts"))
    return ModelFolder(
        name=name or _name_of(folder.absolute()),
        graph=graph,
        tokenizer=folder / TOKENIZER,
        length=_length(folder),
        pooling=_pooling(folder),
        query_prompt=str(prompts.get("query") or ""),
        document_prompt=str(prompts.get("document") or prompts.get("passage") or ""),
    )


def _cached(named: str) -> Path:
    """The newest snapshot of a model in the local cache of the model hub."""
    home = Path(os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface")
    cache = Path(os.environ.get("HF_HUB_CACHE") or home / "hub").expanduser()
    found = cache / f"models--{named.replace('/', '--')}"
    try:
        return found / "snapshots" / (found / "refs" / "main").read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        raise SettingsError(
            f"{SETTING}: there is neither a folder '{named}' nor a model of that name in {cache}; "
            f"models are never downloaded: put one there, or name its folder"
        ) from None


def _name_of(folder: Path) -> str:
    """The folder's own name, or in the cache of the hub that of the model, without who published it."""
    if folder.parent.name == "snapshots":
        return folder.parent.parent.name.split("--")[-1]
    return folder.name


def _length(folder: Path) -> int:
    limits = (
        _read(folder / "sentence_bert_config.json").get("max_seq_length"),
        _read(folder / "tokenizer_config.json").get("model_max_length"),
    )
    known = [limit for limit in limits if isinstance(limit, int) and 0 < limit < ANYTHING]
    return min(known, default=DEFAULT_LENGTH)


def _pooling(folder: Path) -> Pooling:
    """The pooling that the modules name; the mean where there are none.

    Raises:
        SettingsError: it is another one, or there is a further layer behind it.
    """
    modules = _read(folder / "modules.json")
    kinds = {str(_dict(module).get("type")).rsplit(".", 1)[-1]: _dict(module) for module in modules.get("", [])}
    if others := sorted(kinds.keys() - set(MODULES)):
        raise SettingsError(f"{SETTING}: {folder} needs the module {others[0]}, which is not supported")
    if "Pooling" not in kinds:
        return Pooling.MEAN
    settings = _read(folder / str(kinds["Pooling"].get("path")) / "config.json")
    asked = settings.get("pooling_mode") or [
        key.removeprefix("pooling_mode_").removesuffix("_tokens").removesuffix("_token")
        for key, wanted in settings.items()
        if key.startswith("pooling_mode_") and wanted is True
    ]
    asked = [asked] if isinstance(asked, str) else list(asked)
    if len(asked) != 1 or asked[0] not in set(Pooling):
        raise SettingsError(f"{SETTING}: {folder} pools by {' and '.join(map(str, asked))}, which is not supported")
    return Pooling(asked[0])


def _read(file: Path) -> dict[str, Any]:
    """A JSON file of the folder, a list of it under the empty key; nothing where it is missing.

    Raises:
        SettingsError: it cannot be read.
    """
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise SettingsError(f"{SETTING}: {file} cannot be read: {error}") from error
    return {"": content} if isinstance(content, list) else _dict(content)


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}

"""Exports of other memory systems, made with their own packages.

- mem0.json: `Memory.get_all` of mem0ai 2.2.1 on its local Qdrant, after `add(infer=False)` and one `update`.
- zep.json, zep_python.json, graphiti.json: models of zep-cloud 4.0.1, zep-python 2.0.2 and graphiti-core 0.31.2.
- hindsight.json: `ListMemoryUnitsResponse` of hindsight-client 1.1.0.
- hindsight_archive.json: the files of an archive by name, of hindsight-api-slim 1.1.0
  (hindsight_api/engine/transfer/schema.py); `archive` makes the ZIP of them.
"""

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "peers"


def export(folder: Path, name: str) -> Path:
    """A copy of an export, beside which a command may write."""
    return Path(shutil.copy(FOLDER / f"{name}.json", folder / f"{name}.json"))


def archive(folder: Path) -> Path:
    """The archive of a bank of Hindsight."""
    made = folder / "bank.zip"
    with zipfile.ZipFile(made, "w") as file:
        for name, content in json.loads((FOLDER / "hindsight_archive.json").read_text()).items():
            file.writestr(name, json.dumps(content))
    return made


def written(folder: Path, document: Any, name: str = "export.json") -> Path:  # noqa: ANN401 - any JSON
    """A file with a document."""
    file = folder / name
    file.write_text(json.dumps(document))
    return file

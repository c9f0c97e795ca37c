"""Policy folders that differ from the shipped one in one place."""

import re
from pathlib import Path

from memplane.adapters.policy.loading import shipped_policies

EXTRACTION = re.compile(r"^extraction:\n  write: \[[^\]]*\]\n", re.MULTILINE)
"""What ``categories.yaml`` says of extraction."""


def changed(folder: Path, *changes: tuple[str | re.Pattern[str], str]) -> Path:
    """The shipped policy in a folder, with changes of ``categories.yaml``, each of which must be one."""
    for file in shipped_policies().glob("*.yaml"):
        (folder / file.name).write_text(file.read_text())
    categories = folder / "categories.yaml"
    text = categories.read_text()
    for old, new in changes:
        pattern = re.compile(re.escape(old)) if isinstance(old, str) else old
        text, count = pattern.subn(lambda _, new=new: new, text)
        assert count == 1, old
    categories.write_text(text)
    return folder

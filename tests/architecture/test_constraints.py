"""The constraints file pins what the project asks for, exactly, and says nothing of where it comes from."""

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]


def pins() -> dict[str, str]:
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    matches = [re.fullmatch(r"([A-Za-z0-9._-]+)==([A-Za-z0-9.+!]+)", line) for line in lines]
    assert all(matches), "each line is name==version"
    return {canonicalize_name(match[1]): match[2] for match in matches if match}


def test_every_requirement_is_pinned_to_a_version_that_it_accepts() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [
        Requirement(line) for line in (*project["dependencies"], *(line for extra in extras.values() for line in extra))
    ]
    pinned = pins()
    unfit = [
        str(requirement)
        for requirement in wanted
        if not requirement.specifier.contains(pinned.get(canonicalize_name(requirement.name), "0"), prereleases=True)
    ]
    assert unfit == []

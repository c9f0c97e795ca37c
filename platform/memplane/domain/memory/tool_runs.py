"""Runs of tools, as they are remembered: what was called with what, what came of it, which files it touched."""

import re
from collections.abc import Mapping

from memplane.domain.memory.writing import sentences

OWN = re.compile(r"memory[_.:/-]", re.IGNORECASE)
"""Names of tools of a memory: what they did is remembered already, or would be told again and again."""
HIDDEN = "[secret]"
LONGEST = 280
"""Characters of the line that a run is found by."""
_SECRET = re.compile(
    r"passw(?:or)?d|passphrase|secret|token|api[_-]?key|auth(?:orization|entication)?$|credential|cookie|private[_-]?key"
    r"|session[_-]?id",
    re.IGNORECASE,
)
_BEARER = re.compile(r"\b(?:Bearer|Basic)\s+[\w.~+/=-]{8,}")
_KEYS = re.compile(r"\b(?:sk|pk|ghp|gho|xox[bap]|mp)[_-][\w-]{12,}")
_OF_URL = re.compile(r"(\w://[^\s:/@]{0,100}:)[^\s/@]{1,200}@")


def is_own(tool: str) -> bool:
    """Whether a tool is one of a memory's own."""
    return OWN.match(tool) is not None


def without_secrets(value: object, name: str = "") -> object:
    """A value of JSON in which nothing is left that its name, or its form, calls a secret."""
    if name and value and not isinstance(value, bool) and _SECRET.search(name):
        return HIDDEN  # all of it: what is inside may have plain names
    match value:
        case str():
            return _OF_URL.sub(rf"\1{HIDDEN}@", _KEYS.sub(HIDDEN, _BEARER.sub(HIDDEN, value)))
        case list() | tuple():
            return [without_secrets(each) for each in value]
        case Mapping():
            return {str(key): without_secrets(each, str(key)) for key, each in value.items()}
        case _:
            return value


def line(tool: str, arguments: Mapping[str, object], outcome: str) -> str:
    """What a run is found by, on one line: the tool, the plain ones of its arguments, and what came of it first."""
    plain = [f"{name} {value}" for name, value in arguments.items() if isinstance(value, str | int | float)]
    called = f"{tool} was run" + (f" with {', '.join(plain)}" if plain else "")
    came = next(iter(sentences(outcome)), "")
    told = " ".join(f"{_cut(called, LONGEST // 2)}: {came}".split())
    return _cut(told, LONGEST)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"

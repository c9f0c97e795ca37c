"""By what a rejected value is known again, however it is spelled."""

import hashlib
import unicodedata

from memplane.domain.memory import MemoryText
from memplane.domain.writing import sentences

# Letters of other alphabets that look like Latin ones, after case folding: a value must not come back in disguise.
_LOOK_ALIKES = str.maketrans(
    "асԁеһіјӏοоԛрѕтυѵԝхуɡкмнвαβεηικνρτχγωӧɩʏաօոսհցıſøłđ",
    "acdehijlooqpstuvwxygkmhbabenikvptxywoiywonuhgisold",
)


def skeleton(value: str) -> str:
    """What remains of a text when case, marks, punctuation, space, invisible characters and disguises are gone."""
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", value).casefold())
    return "".join(c for c in folded if c.isalnum()).translate(_LOOK_ALIKES)


def value_key(value: str) -> str:
    """SHA-256 (hex) of a value's skeleton."""
    return hashlib.sha256(skeleton(value).encode()).hexdigest()


def rejected_keys(text: MemoryText) -> frozenset[str]:
    """What is buried with a memory: its content and each of its facts."""
    return frozenset(value_key(part) for part in (text.content, *text.facts) if skeleton(part))


def said_keys(text: MemoryText) -> frozenset[str]:
    """Everything that a memory says: its parts, and each sentence of them, so that none hides among others."""
    parts = (text.title, text.content, text.narrative, *text.facts)
    said = [piece for part in parts if part for piece in (part, *sentences(part))]
    return frozenset(value_key(piece) for piece in said if skeleton(piece))

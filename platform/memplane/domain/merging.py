"""When two memories are the same."""

import hashlib

from memplane.domain.memory import MemoryText


def value_hash(text: MemoryText) -> str:
    """SHA-256 (hex) of a memory's normalised title and facts, or content when it has no facts, and steps.

    Two memories of one user, category, type, visibility and least trust with the same hash are one memory. Case, space
    and a closing full stop do not make a difference; any other character does: `C` is not `C#`, and 5 is not -5.
    """
    parts = [text.title or "", *(text.facts or (text.content,)), *text.steps]
    return hashlib.sha256("\x1f".join(_key(part) for part in parts).encode()).hexdigest()


def _key(part: str) -> str:
    return " ".join(part.casefold().split()).rstrip(".")

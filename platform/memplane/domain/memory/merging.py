"""When two memories are the same."""

import hashlib
from dataclasses import replace

from memplane.domain.memory.items import is_item
from memplane.domain.memory.memory import MemoryText
from memplane.domain.memory.tombstones import skeleton

MAX_NARRATIVE = 16_000
MAX_ITEMS = 50


def value_hash(text: MemoryText, external_id: str | None = None) -> str:
    """SHA-256 (hex) of all that a memory says, normalised: title, content, narrative, facts and steps.

    Two memories of one user, category, type, visibility and least trust with the same hash are one memory. Case, space
    and a closing full stop do not make a difference; any other character does: `C` is not `C#`, and 5 is not -5.
    Two items of a store that say the same stay two: their name counts too.
    """
    name = (external_id or "",) if is_item(external_id) else ()
    said = [(text.title or "", text.content, text.narrative or ""), text.facts, text.steps, name]
    parts = "\x1e".join("\x1f".join(_key(part) for part in group) for group in said)
    return hashlib.sha256(parts.encode()).hexdigest()


def same_words(one: MemoryText, other: MemoryText) -> bool:
    """Whether two texts say the same word for word, but for their narratives."""
    if _key(one.content) != _key(other.content):
        return False
    return value_hash(replace(one, narrative=None)) == value_hash(replace(other, narrative=None))


def merge_texts(old: MemoryText, new: MemoryText, *, newer: bool = False) -> MemoryText:
    """Two texts that say the same as one, with nothing lost of what either says besides.

    Args:
        old: the text that is stored; it keeps its content and title unless told otherwise.
        new: the text that came in.
        newer: take the new one's content and title.
    """
    first, second = (new, old) if newer else (old, new)
    said = {skeleton(part) for part in (first.content, *old.facts, *new.facts)}
    extra = [] if newer or skeleton(second.content) in said else [second.content]
    parts = dict.fromkeys(part for part in (old.narrative, new.narrative, *extra) if part)
    narrative = "\n".join(parts) or None
    if narrative is not None and len(narrative) > MAX_NARRATIVE:
        narrative = old.narrative or new.narrative
    return replace(
        first,
        title=first.title or second.title,
        narrative=narrative,
        facts=_union(old.facts, new.facts),
        steps=first.steps or second.steps,
        tags=_union(old.tags, new.tags),
        related_files=_union(old.related_files, new.related_files),
        lang=first.lang or second.lang,
    )


def _union(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    """The items of both, each once, as many as a memory may have."""
    by_key: dict[str, str] = {}
    for item in (*one, *other):
        by_key.setdefault(skeleton(item) or item, item)
    return tuple(by_key.values())[:MAX_ITEMS]


def _key(part: str) -> str:
    return " ".join(part.casefold().split()).rstrip(".")

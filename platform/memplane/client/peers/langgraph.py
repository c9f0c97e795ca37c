"""LangGraph: items of a store, as `Item.dict()` has them, or as the tables of its official stores do.

The fields are those of langgraph-checkpoint 4.3.2, langgraph/store/base/__init__.py.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from memplane.client.peers.records import (
    Conversion,
    ConvertedRecord,
    Document,
    Fields,
    LeftOut,
    Peer,
    left_out,
    strings,
)

LISTS = frozenset({"items", "results"})
_WORDS = ("content", "memory", "text", "fact", "data")
"""Where a value has its words, usually: LangMem's `content`, which may hold another one, and what examples use."""


def recognises(document: Document) -> bool:
    """Whether a record is an item of a store."""
    return {"namespace", "key"} <= document.fields.keys() and isinstance(document.fields.get("value"), Mapping)


def convert(document: Document, by: Conversion) -> ConvertedRecord:
    """An item of a store."""
    fields = Fields(Peer.LANGGRAPH, document, by)
    if not recognises(document):
        return left_out(document, LeftOut.UNKNOWN_RECORD, "no item of a store: `namespace`, `key` and `value`")
    namespace = fields.take("namespace")
    labels = namespace.split(".") if isinstance(namespace, str) else [str(each) for each in namespace or ()]
    owner, category, fits = _named(labels, by.map.namespace)
    key = fields.text("key") or ""
    if not fits:
        return left_out(document, LeftOut.OTHER_USER, f"its namespace {labels} is none of the map's")
    value: Mapping[str, Any] = fields.take("value") or {}
    content, used = _words(value, by.map.content)
    if content is None:
        names = ", ".join(_WORDS)
        told = f"its value has no text in {by.map.content or names}: name the field as `content` of --map"
        return left_out(document, LeftOut.NO_TEXT, told, owner)
    ends = fields.time("expires_at")
    if ends is not None and ends <= by.now:
        return left_out(document, LeftOut.EXPIRED, f"it expired on {ends.date()}", owner)
    created, updated = fields.time("created_at"), fields.time("updated_at")
    fields.keep(
        namespace=labels, created_at=created if updated and created and updated > created else None,
        value={name: each for name, each in value.items() if name != used},
    )  # fmt: skip
    fields.drop("score", "ttl_minutes")
    made = fields.memory(
        "/".join([*labels, key]), content, owner=owner,
        categories=[*([category] if category else ()), *strings(value.get("category")), *_categories(labels, by)],
        event_time=updated or created, expires_at=ends,
    )  # fmt: skip
    return ConvertedRecord(document, made.line, made.code, made.detail, owner, () if owner else labels, made.unmapped)


def _named(labels: Sequence[str], pattern: Sequence[str]) -> tuple[str | None, str | None, bool]:
    """The user and category that labels name by a pattern, and whether they fit it."""
    if not pattern:
        return None, None, True
    found: dict[str, str] = {}
    if len(labels) != len(pattern):
        return None, None, False
    for label, wanted in zip(labels, pattern, strict=True):
        if wanted in {"{user}", "{category}"}:
            found[wanted] = label
        elif wanted not in {"*", label}:
            return None, None, False
    return found.get("{user}"), found.get("{category}"), True


def _categories(labels: Sequence[str], by: Conversion) -> list[str]:
    """Labels that are names of categories; others are no tags, for they are of the store and not of the words."""
    return [label for label in labels if by.map.categories.get(label, label) in by.categories]


def _words(value: Mapping[str, Any], path: str | None) -> tuple[str | None, str | None]:
    """The words of a value, and the field that they are in."""
    if path is not None:
        found: object = value
        for name in path.split("."):
            found = found.get(name) if isinstance(found, Mapping) else None
        return (found, path) if isinstance(found, str) and found.strip() else (None, None)
    for name in _WORDS:
        found = value.get(name)
        if isinstance(found, Mapping) and set(found) == {name}:
            found = found[name]
        if isinstance(found, str) and found.strip():
            return found, name
    return None, None

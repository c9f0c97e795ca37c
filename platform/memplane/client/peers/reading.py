"""Exports as they lie in files: JSON, lines of JSON, or an archive; read piece by piece, never whole."""

import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from io import BufferedReader
from itertools import islice
from pathlib import Path
from typing import IO, Any

import ijson
from pydantic_core import from_json

from memplane.client.errors import Invalid
from memplane.client.peers import hindsight, langgraph, mem0, zep
from memplane.client.peers.records import Document, Peer

MODULES = {Peer.MEM0: mem0, Peer.LANGGRAPH: langgraph, Peer.ZEP: zep, Peer.HINDSIGHT: hindsight}
_LISTS = frozenset().union(*(module.LISTS for module in MODULES.values()))
_MAX_RECORD = 4_000_000
"""Bytes of a line, or of a file that is one record."""
_MAX_DEPTH = 100
_LOOKED_AT = 20
_PLAIN = frozenset({"string", "number", "boolean"})
_OPEN, _CLOSE = frozenset({"start_map", "start_array"}), frozenset({"end_map", "end_array"})
_MORE = ("next", "next_cursor")
_ASIDE = frozenset({"metadata"})
"""What stands beside the records of an export and is about the whole of it."""
_SPACE = b" \t\r\n\xef\xbb\xbf"
Opener = Callable[[], IO[bytes]]


@dataclass(slots=True)
class _Head:
    """What stands at the top of a document: plain values, and the names of its lists and objects."""

    plain: dict[str, Any] = field(default_factory=dict)
    lists: list[str] = field(default_factory=list)
    objects: list[str] = field(default_factory=list)
    error: Invalid | None = None


def peer_of(path: Path) -> Peer | None:
    """Whose export a file is; none where nothing says so.

    Raises:
        Invalid: it may be that of several peers (`ambiguous_export`), breaks off, or is no JSON.
        OSError: it cannot be read.
    """
    found: set[Peer] = set()
    for document in islice(_documents(path, strict=False), _LOOKED_AT):
        found |= {peer for peer, module in MODULES.items() if module.recognises(document)}
    if len(found) > 1:
        names = ", ".join(sorted(found))
        raise Invalid("ambiguous_export", f"{path.name} may be an export of {names}: say which with --from")
    return found.pop() if found else None


def documents(path: Path) -> Iterator[Document]:
    """The records of an export, in the order of the file.

    Raises:
        Invalid: it breaks off (`truncated_export`), or is none (`invalid_export`).
        OSError: it cannot be read.
    """
    return _documents(path, strict=True)


def pages_missing(path: Path) -> bool:
    """Whether an export says of itself that it is one page of several."""
    with path.open("rb") as file:
        first = file.read(64).lstrip(_SPACE)[:1]
    if zipfile.is_zipfile(path) or first != b"{":
        return False
    head = _head(lambda: path.open("rb"))
    total, items = head.plain.get("total"), head.plain.get("limit")
    return any(head.plain.get(name) for name in _MORE) or (
        isinstance(total, int) and isinstance(items, int) and total > items
    )


def _documents(path: Path, *, strict: bool) -> Iterator[Document]:
    found = _archived(path) if zipfile.is_zipfile(path) else _in_file(path, strict=strict)
    for number, (kind, fields, around) in enumerate(found, 1):
        yield Document(number, kind, fields, around)


_Found = Iterator[tuple[str, Mapping[str, Any], Mapping[str, Any]]]


def _in_file(path: Path, *, strict: bool) -> _Found:
    with path.open("rb") as file:
        first = _first_line(file)
    beginning = first.lstrip(_SPACE)[:1]
    if beginning == b"{" and len(first) < min(_MAX_RECORD, path.stat().st_size) and _is_document(first):
        yield from _lines(path)
    elif beginning == b"[":
        if strict and (error := _head(lambda: path.open("rb")).error):
            raise error
        yield from _items(lambda: path.open("rb"), "item", "", {})
    elif beginning == b"{":
        yield from _whole(lambda: path.open("rb"), path.stat().st_size, strict=strict)
    else:
        raise Invalid("invalid_export", f"{path.name} is neither JSON nor lines of JSON")


def _first_line(file: BufferedReader) -> bytes:
    line = file.readline(_MAX_RECORD)
    while line and not line.strip(_SPACE):
        line = file.readline(_MAX_RECORD)
    return line


def _is_document(line: bytes) -> bool:
    try:
        return isinstance(from_json(line.lstrip(_SPACE)), dict)
    except ValueError:
        return False


def _lines(path: Path) -> _Found:
    """Lines of JSON: each a record, or a page of them."""
    with path.open("rb") as file:
        number = 0
        while raw := file.readline(_MAX_RECORD + 1):
            number += 1
            if not raw.strip(_SPACE):
                continue
            if len(raw) > _MAX_RECORD:
                raise Invalid("invalid_export", f"line {number} is longer than {_MAX_RECORD} bytes")
            try:
                read = from_json(raw.lstrip(_SPACE))
            except ValueError as error:
                broken = not raw.endswith(b"\n")
                told = f"line {number} is no JSON document" + (": the file breaks off there" if broken else "")
                raise Invalid("truncated_export" if broken else "invalid_export", told) from error
            if not isinstance(read, dict):
                raise Invalid("invalid_export", f"line {number} is no JSON object")
            yield from _page(read)


def _page(read: Mapping[str, Any]) -> _Found:
    lists = {key: value for key, value in read.items() if key in _LISTS and isinstance(value, list)}
    records = any(isinstance(each, dict) for value in lists.values() for each in value)
    if not records and not (lists and {"session_id", "thread_id"} & read.keys()):
        yield "", read, {}
        return
    around = _plain(read)
    for key, value in read.items():
        if key in lists:
            for item in value:
                yield from _record(key, item, around)
        elif isinstance(value, dict) and key not in _ASIDE:
            yield from _record(key, value, around)


def _whole(open_: Opener, size: int, *, strict: bool) -> _Found:
    """One JSON object: its lists are read one after the other; one without lists is a record itself."""
    head = _head(open_)
    if head.error is not None and strict:
        raise head.error
    if not _LISTS & set(head.lists):
        if size > _MAX_RECORD or head.error is not None:
            raise head.error or Invalid("unknown_export", "it has none of the lists that exports have")
        yield from _items(open_, "", "", {})
        return
    for key in head.objects:
        yield from _items(open_, key, key, head.plain)
    for key in head.lists:
        yield from _items(open_, f"{key}.item", key, head.plain)


def _head(open_: Opener) -> _Head:
    head = _Head()
    with open_() as file:
        try:
            depth, name = 0, ""
            for event, value in ijson.basic_parse(file, use_float=True):
                if depth == 1 and event == "map_key":
                    name = value
                elif depth == 1 and event in _OPEN:
                    (head.lists if event == "start_array" else head.objects).append(name)
                elif depth == 1 and event in _PLAIN:
                    head.plain[name] = value
                depth += (event in _OPEN) - (event in _CLOSE)
                if depth > _MAX_DEPTH:
                    # the time to read it would grow with the square of its depth
                    raise Invalid("invalid_export", f"it is nested deeper than {_MAX_DEPTH} levels")
        except ijson.JSONError as error:
            head.error = _broken(error)
    head.objects = [each for each in head.objects if each not in _ASIDE]
    return head


def _items(open_: Opener, prefix: str, kind: str, around: Mapping[str, Any]) -> _Found:
    with open_() as file:
        try:
            for item in ijson.items(file, prefix, use_float=True):
                yield from _record(kind, item, around)
        except ijson.JSONError as error:
            raise _broken(error) from error


def _record(kind: str, item: object, around: Mapping[str, Any]) -> _Found:
    """A record, and those that it holds: the messages of a session."""
    if not isinstance(item, dict):
        # a list of texts, as the facts of a session are
        yield kind, {"fact": item} if isinstance(item, str) and "fact" in kind else {"value": item}, around
        return
    nested = {key: value for key, value in item.items() if key in zep.NESTED.get(kind, ()) and isinstance(value, list)}
    yield kind, {key: value for key, value in item.items() if key not in nested}, around
    inside = {**around, **_plain(item)}
    for key, values in nested.items():
        for value in values:
            yield from _record(key, value, inside)


def _archived(path: Path) -> _Found:
    """An archive of Hindsight: a manifest, a file for each document, and files of rows."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            if "manifest.json" not in names:
                raise Invalid("unknown_export", "the archive has no manifest.json: it is none of Hindsight's")
            bank = {"bank_id": _head(lambda: archive.open("manifest.json")).plain.get("source_bank_id")}
            for name in sorted(names):
                if name.endswith(".json") and name != "manifest.json":
                    yield from _entry(archive, name, bank)
    except (zipfile.BadZipFile, EOFError) as error:
        raise Invalid("truncated_export", f"the archive cannot be read to its end ({error})") from error


def _entry(archive: zipfile.ZipFile, name: str, bank: Mapping[str, Any]) -> _Found:
    def open_() -> IO[bytes]:
        return archive.open(name)

    if not name.startswith("documents/"):
        kind = name.rpartition("/")[2].removesuffix(".json")
        yield from _items(open_, "item", kind, bank)
        return
    head = _head(open_)
    if head.error is not None:
        raise head.error
    around = {**bank, "id": head.plain.get("id")}
    yield "documents", {key: value for key, value in head.plain.items() if key != "original_text"}, around
    yield from _items(open_, "facts.item", "facts", around)


def _plain(read: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in read.items() if isinstance(value, str | int | float)}


def _broken(error: Exception) -> Invalid:
    if "premature EOF" in str(error) or "Incomplete JSON" in str(error):
        return Invalid("truncated_export", "the file breaks off before its JSON ends")
    told = " ".join(str(error).split())[:200]
    return Invalid("invalid_export", f"the file is no JSON: {told}")

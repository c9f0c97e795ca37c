"""What can be imported: a file of JSON lines, or notes in Markdown, as lines that a server takes."""

import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path

from pydantic_core import from_json, to_json

from memplane.contracts.transfer import FORMAT, MAX_LINE
from memplane.domain.errors import SettingsError

NOTES, MORE_NOTES = "MEMORY.md", "memory"
PROSE = "knowledge"
"""The category of paragraphs."""
_MAX_TITLE = 200
_PIECE = 1 << 20
_HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*#*\s*$")
_ITEM = re.compile(r"^(\s*)(?:[-*+]|\d{1,4}[.)])\s+(?:\[[ xX]\]\s+)?(.*)$")
_FENCE = re.compile(r"^\s*(```|~~~)")
_UNDERLINE = re.compile(r"^\s{0,3}(?:=+|-{2,})\s*$")
_RULE = re.compile(r"^\s*(?:[-*_]\s*){3,}$")
_TABLE = re.compile(r"^\s*\|")
_QUOTE = re.compile(r"^\s*(?:>\s?)+")
_DATE = re.compile(r"(?<![\w-])(\d{4}-\d{2}-\d{2})(?![\w-])")
_DATED = re.compile(r"^[\[(*_]*(\d{4}-\d{2}-\d{2})[\])*_]*\s*[:—–-]?\s+")


@dataclass(frozen=True, slots=True)
class Entry:
    """One line to send, or why it is not sent.

    Attributes:
        file: where it stands, by its name from the beginning of what is imported.
        line: its number there, from 1.
        text: the line; none where it is not sent.
        reason: why it is refused or left out here.
        category: of a note that is sent.
        is_left_out: whether it holds nothing to import, such as code, rather than being wrong.
        lines: how many lines of the file it stands for: its own, and those of headings above that are new with it.
    """

    file: str
    line: int
    text: str | None
    reason: str | None = None
    category: str | None = None
    is_left_out: bool = False
    lines: int = 1


@dataclass(frozen=True, slots=True)
class ImportSource:
    """Something to import.

    Attributes:
        path: the file or folder.
        notes: the Markdown files, if it is such.
        fingerprint: SHA-256 (hex) of all of it.
        count: lines of JSON, or of notes, about.
        user: whom an export is of; ``None`` for one of shared knowledge, and for what is no export.
        is_export: whether it begins as an export does.
    """

    path: Path
    notes: Sequence[Path]
    fingerprint: str
    count: int
    user: str | None
    is_export: bool

    def entries(self, categories: Collection[str], fallback: str | None) -> Iterator[Entry]:
        """Its lines, in an order that does not change.

        Args:
            categories: names of categories, for headings of notes.
            fallback: the category of list items that no heading names one for.
        """
        if not self.notes:
            yield from _lines(self.path)
        for file in self.notes:
            name = file.name if self.path.is_file() else file.relative_to(self.path).as_posix()
            text = file.read_text(encoding="utf-8", errors="replace")
            yield from _Notes(name, file.stem, categories, fallback).entries(text)


def source_of(path: Path) -> ImportSource:
    """Look at a file or folder.

    Raises:
        SettingsError: it holds nothing that could be imported.
        OSError: it cannot be read.
    """
    if not path.is_dir():
        notes = [path] if path.suffix.lower() in {".md", ".markdown"} else []
        return _seen(path, notes)
    found = [path / NOTES, *sorted((path / MORE_NOTES).rglob("*.md"))]
    notes = [each for each in found if each.is_file()] or sorted(path.rglob("*.md"))
    if not notes:
        raise SettingsError(f"{path} has no {NOTES}, no {MORE_NOTES}/*.md and no other notes")
    return _seen(path, notes)


def _seen(path: Path, notes: Sequence[Path]) -> ImportSource:
    digest, count = hashlib.sha256(), 0
    for each in notes or [path]:
        digest.update(each.name.encode() + b"\0")
        with each.open("rb") as file:
            while piece := file.read(_PIECE):
                digest.update(piece)
                count += piece.count(b"\n")
    header = None if notes else _header_of(path)
    user = str(header.get("user") or "") or None if header else None
    return ImportSource(path, notes, digest.hexdigest(), count, user, header is not None)


def _header_of(path: Path) -> Mapping[str, object] | None:
    with path.open("rb") as file:
        first = file.readline(_PIECE)
    try:
        header = from_json(first)
    except ValueError:
        return None
    return header if isinstance(header, dict) and header.get("format") == FORMAT else None


def _lines(path: Path) -> Iterator[Entry]:
    limit = 4 * MAX_LINE  # bytes
    with path.open("rb") as file:
        number = 0
        while raw := file.readline(limit):
            number += 1
            whole = raw.endswith(b"\n") or len(raw) < limit
            while not whole:
                more = file.readline(limit)
                whole = not more or more.endswith(b"\n")
                raw = b""
            yield from _line(path.name, number, raw)


def _line(name: str, number: int, raw: bytes) -> Iterator[Entry]:
    try:
        text = raw.decode().removeprefix("\ufeff").strip("\r\n")
    except UnicodeDecodeError:
        yield Entry(name, number, None, "the line is not UTF-8")
        return
    if not raw or len(text) > MAX_LINE:
        yield Entry(name, number, None, f"the line is longer than {MAX_LINE} characters")
    elif text.strip():
        yield Entry(name, number, text)


@dataclass(slots=True)
class _Block:
    """A list item or a paragraph that is being read: where it begins, and its lines without their marks."""

    line: int
    is_item: bool
    parts: list[str]


@dataclass(slots=True)
class _Notes:
    """One Markdown file: its list items and paragraphs are memories.

    The nearest heading that names a category is the category of an item. A paragraph is knowledge, and the heading
    above it is its title. Every line with text belongs to one entry: to a memory, or to a line that is left out.
    """

    name: str
    stem: str
    categories: Collection[str]
    fallback: str | None
    _path: list[tuple[int, str]] = field(default_factory=list)
    _seen: dict[str, int] = field(default_factory=dict)
    _headings: list[int] = field(default_factory=list)
    _block: _Block | None = None

    def entries(self, text: str) -> Iterator[Entry]:
        """Its items and paragraphs, each with the lines that continue it; and what is left out."""
        lines = text.splitlines()
        first = self._front_matter(lines)
        for number in range(1, first):
            yield from self._left_out(number, lines, "front matter")
        fence = ""
        comment = False
        for number, line in enumerate(lines[first - 1 :], first):
            mark = _FENCE.match(line)
            if fence or mark:
                yield from self._ended()
                yield from self._left_out(number, lines, "code")
                fence = fence if fence and not (mark and mark[1] == fence) else "" if fence else mark[1] if mark else ""
            elif comment or line.lstrip().startswith("<!--"):
                yield from self._ended()
                yield from self._left_out(number, lines, "a comment")
                comment = "-->" not in line
            else:
                yield from self._read(number, line, lines)
        yield from self._ended()
        yield from self._without_text(lines)

    def _read(self, number: int, line: str, lines: Sequence[str]) -> Iterator[Entry]:
        """One line that is neither code nor a comment."""
        heading, item, block = _HEADING.match(line), _ITEM.match(line), self._block
        underline = _UNDERLINE.match(line)
        if heading or not line.strip():
            yield from self._ended()
            if heading:
                yield from self._under(number, len(heading[1]), heading[2], lines)
        elif underline and block is not None and not block.is_item and len(block.parts) == 1:
            self._block = None
            self._headings.append(number)
            yield from self._under(block.line, 1 if "=" in line else 2, block.parts[0], lines)
        elif underline or _RULE.match(line) or _TABLE.match(line):
            yield from self._ended()
            yield from self._left_out(number, lines, "a table" if _TABLE.match(line) else "no words")
        elif item and not item[2].strip():
            yield from self._ended()
            yield from self._left_out(number, lines, "no words")
        elif item:
            yield from self._ended()
            self._block = _Block(number, True, [item[2].strip()])
        elif block is not None:
            block.parts.append(_QUOTE.sub("", line).strip())
        else:
            self._block = _Block(number, False, [_QUOTE.sub("", line).strip()])

    @staticmethod
    def _front_matter(lines: Sequence[str]) -> int:
        """The number of the first line after it."""
        if not lines or lines[0].strip() != "---":
            return 1
        return next((number for number, line in enumerate(lines[1:], 3) if line.strip() in {"---", "..."}), 1)

    def _under(self, number: int, level: int, title: str, lines: Sequence[str]) -> Iterator[Entry]:
        """Begin a section; a heading before it that nothing stood under is left out, unless this one is part of it."""
        if self._path and self._path[-1][0] >= level:
            yield from self._without_text(lines)
        self._path = [each for each in self._path if each[0] < level] + [(level, title)]
        self._headings.append(number)

    def _without_text(self, lines: Sequence[str]) -> Iterator[Entry]:
        numbers, self._headings = sorted(self._headings), []
        for number in numbers:
            yield from self._left_out(number, lines, "a heading without text below it")

    def _left_out(self, number: int, lines: Sequence[str], reason: str) -> Iterator[Entry]:
        if lines[number - 1].strip():
            yield Entry(self.name, number, None, reason, is_left_out=True)

    def _ended(self) -> Iterator[Entry]:
        """The item or paragraph that has come to its end."""
        block, self._block = self._block, None
        if block is None:
            return
        lines, self._headings = len(block.parts) + len(self._headings), []
        yield replace(self._entry(block), lines=lines)

    def _entry(self, block: _Block) -> Entry:
        said = " ".join(filter(None, block.parts))
        dated = _DATED.match(said)
        content = said[dated.end() :] if dated and _day(dated[1]) else said
        titles = [title for _, title in self._path]
        places = [_slug(_DATE.sub("", title)) for title in titles]
        named = [place for place in places if place in self.categories]
        category = named[-1] if named else self.fallback
        if not block.is_item and PROSE in self.categories:
            category = PROSE
        if category is None:
            return Entry(self.name, block.line, None, "no heading above names a category: give one with --category")
        stem = [] if _day(self.stem) or self.stem.lower() == "memory" else [_slug(self.stem)]
        tags = [each for each in dict.fromkeys([*stem, *places]) if each and each not in named]
        memory = {"record": "memory", "category": category, "content": content, "tags": [tag[:255] for tag in tags]}
        if titles and not block.is_item:
            memory["title"] = titles[-1][:_MAX_TITLE]
        memory["external_id"] = self._name_of(titles, said)
        if day := self._day(said):
            memory["event_time"] = f"{day.isoformat()}T00:00:00Z"
        return Entry(self.name, block.line, to_json(memory).decode(), category=category)

    def _name_of(self, titles: Sequence[str], said: str) -> str:
        """The same item of the same note has the same name, however often it is imported."""
        words = json.dumps([self.name, titles, said])
        self._seen[words] = self._seen.get(words, 0) + 1
        return f"note:{hashlib.sha256(f'{words}{self._seen[words]}'.encode()).hexdigest()[:40]}"

    def _day(self, said: str) -> date | None:
        """The day that an item names, or the heading nearest to it, or the file."""
        for words in (said, *(title for _, title in reversed(self._path)), self.stem):
            for match in _DATE.finditer(words):
                if day := _day(match[1]):
                    return day
        return None


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _slug(title: str) -> str:
    return re.sub(r"\W+", "_", title.casefold()).strip("_")

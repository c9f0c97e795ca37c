"""From the bytes of a policy file to YAML nodes that know their lines, without the parts of YAML that surprise."""

from collections.abc import Iterator
from typing import Protocol

import yaml
from yaml.reader import ReaderError

from memplane.adapters.policy.report import PolicyProblem, Report

MAX_BYTES = 262_144
"""The largest policy file that is read."""

MAX_DEPTH = 16
"""How deep lists and mappings may nest; a policy needs five levels."""


_PLAIN = frozenset(map(chr, range(0x20, 0x7F))) - {"?"} | {"\n"}
"""What both parsers take alike: libyaml lets tabs and question marks stand where the other one refuses them."""


class _Mark(Protocol):
    @property
    def line(self) -> int: ...


def parse(file: str, content: bytes, report: Report) -> yaml.Node | None:
    """The root node of a policy file.

    Anchors, aliases, tags, more than one document, deep nesting and oversized files are refused: a policy needs none of
    them, and each is a way to say something else than what a reader sees, or to exhaust the process.

    Args:
        file: the name that problems are reported under.
        content: the bytes of the file; UTF-8, with or without a byte order mark.
        report: takes every problem found.

    Returns:
        The root, or ``None`` when a problem was reported that keeps the file from being read.
    """
    text = _decode(file, content, report)
    if text is None:
        return None
    if (plain := _plainly(text)) is not None:
        return plain
    wrong: list[tuple[int, str]] = []
    try:
        events = yaml.SafeLoader(text)
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        report.add(PolicyProblem(file, line, "", f"character U+{error.character:04X} may not stand in YAML; remove it"))
        return None
    try:
        wrong.extend(_refused(events))
        root = None if wrong else yaml.compose(text, Loader=yaml.SafeLoader)
        if not wrong and root is None:
            wrong.append((1, "the file is empty"))
    except yaml.MarkedYAMLError as error:
        reason = ", ".join(part for part in (error.context, error.problem) if part)
        wrong.append((_line(error.problem_mark or error.context_mark), f"not valid YAML: {reason}"))
    except (ValueError, OverflowError):  # PyYAML lets these through for an escape beyond the last code point
        wrong.append((events.line + 1, r"not valid YAML: an escape such as \U00110000 names no character"))
    for line, message in wrong:
        report.add(PolicyProblem(file, line, "", message))
    return None if wrong else root


def _plainly(text: str) -> yaml.Node | None:
    """The root of a text in which nothing is wrong, by libyaml, which is faster; what is wrong, the other one tells."""
    if not yaml.__with_libyaml__ or not set(text) <= _PLAIN:
        return None
    try:
        if any(True for _ in _refused(yaml.CSafeLoader(text))):
            return None
        return yaml.compose(text, Loader=yaml.CSafeLoader)
    except (yaml.YAMLError, ValueError, OverflowError):
        return None


def _decode(file: str, content: bytes, report: Report) -> str | None:
    if len(content) > MAX_BYTES:
        report.add(PolicyProblem(file, 1, "", f"larger than the accepted {MAX_BYTES} bytes"))
        return None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        report.add(
            PolicyProblem(file, line, "", f"byte 0x{content[error.start]:02x} is not UTF-8; save the file as UTF-8")
        )
        return None


def _line(mark: _Mark | None) -> int:
    return mark.line + 1 if mark else 1


def _refused(events: yaml.SafeLoader | yaml.CSafeLoader) -> Iterator[tuple[int, str]]:
    """Line and reason of each part of YAML that a policy may not use."""
    depth = documents = 0
    while events.check_event():
        event: yaml.Event = events.get_event()  # type: ignore[assignment]  # there is one, which was checked
        line = _line(event.start_mark)
        if isinstance(event, yaml.AliasEvent):
            yield line, f"alias '*{event.anchor}' is not accepted; write the value out (quote a literal *)"
        elif isinstance(event, yaml.NodeEvent) and event.anchor is not None:
            yield line, f"anchor '&{event.anchor}' is not accepted; write the value out where it is needed"
        if isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent) and event.tag is not None:
            yield line, f"tag {event.tag!r} is not accepted; write the plain value"
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents == 2:
                yield line, "a second document begins; a policy file holds one"
        elif isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                yield line, f"nested deeper than the accepted {MAX_DEPTH} levels"
                return
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1

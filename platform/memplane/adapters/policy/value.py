"""Strict, typed readings of YAML nodes: what does not fit is reported with its place, and reading goes on."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from enum import StrEnum
from typing import TypeVar

import yaml

from memplane.adapters.policy.report import PolicyProblem, Report

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)

MAX_TEXT = 200
"""The longest single text in a policy: a name or a word."""

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}")
_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,14})")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,17})?")
_TAG = "tag:yaml.org,2002:"
_KINDS = {
    "str": "text",
    "int": "number",
    "float": "number",
    "bool": "truth value",
    "timestamp": "date",
    "merge": "merge key",
}


@dataclass(frozen=True, slots=True)
class Value:
    """A place in a policy file, and what stands there.

    A reading that fails reports the problem and returns its ``fallback``, as does the reading of an absent value. No
    policy comes of a report that has problems, so a fallback only ever counts for what may be absent.

    Attributes:
        report: takes the problems.
        file: the file's name.
        key: dotted path within it.
        line: where the key, or the list item, begins.
        node: what stands there; ``None`` when it is absent.
    """

    report: Report
    file: str
    key: str
    line: int
    node: yaml.Node | None

    @property
    def present(self) -> bool:
        """Whether anything stands there."""
        return self.node is not None

    @property
    def is_list(self) -> bool:
        """Whether a list stands there."""
        return isinstance(self.node, yaml.SequenceNode)

    @property
    def is_mapping(self) -> bool:
        """Whether a mapping stands there."""
        return isinstance(self.node, yaml.MappingNode)

    def child(self, key: str) -> "Value":
        """The place of a key that is absent."""
        return self._child(key, self.line, None)

    def fail(self, message: str) -> None:
        """Report that what stands here is wrong."""
        line = self.node.start_mark.line + 1 if self.node else self.line
        self.report.add(PolicyProblem(self.file, line, self.key, message))

    def fail_key(self, message: str) -> None:
        """Report that the key itself is wrong, or missing."""
        self.report.add(PolicyProblem(self.file, self.line, self.key, message))

    def fields(self, required: Iterable[str], optional: Iterable[str] = ()) -> dict[str, "Value"]:
        """A mapping whose keys are known; unknown, missing and repeated ones are reported.

        Returns:
            A value for every key of ``required`` and ``optional``, absent ones included.
        """
        needed = tuple(required)
        accepted = (*needed, *optional)
        absent = {key: self.child(key) for key in accepted}
        found = self._entries()
        if found is None:
            return absent
        for key, value in found.items():
            if key not in accepted:
                hint = did_you_mean(key, accepted)
                value.fail_key(f"unknown key;{hint} accepted: {', '.join(accepted)}")
        for key in needed:
            if key not in found:
                absent[key].fail_key(f"missing; required here: {', '.join(needed)}")
        return {key: found.get(key, absent[key]) for key in accepted}

    def table(self, *, names: bool = True) -> dict[str, "Value"]:
        """A mapping whose keys are the operator's own.

        Args:
            names: whether the keys must be names; otherwise any short printable text will do.
        """
        found = self._entries() or {}
        for key, value in found.items():
            message = _not_a_name(key) if names else _not_short(key)
            if message:
                value.fail_key(message)
        return found

    def items(self) -> list["Value"]:
        """The items of a list."""
        if self.node is None:
            return []
        if not isinstance(self.node, yaml.SequenceNode):
            self.fail(f"expected a list, got {_found(self.node)}")
            return []
        return [
            replace(self, key=f"{self.key}[{place}]", line=node.start_mark.line + 1, node=node)
            for place, node in enumerate(self.node.value)
        ]

    def distinct(self, read: Callable[["Value"], T]) -> tuple[T, ...]:
        """The items of a list, each read by ``read``; a repeated one is reported."""
        first: dict[T, int] = {}
        for item in self.items():
            problems = len(self.report)
            result = read(item)
            if result in first:
                item.fail(f"'{result}' is listed twice, first on line {first[result]}; keep one")
            elif len(self.report) == problems:
                first[result] = item.line
        return tuple(first)

    def text(self) -> str:
        """Short printable text."""
        scalar = self._scalar("text", "str")
        message = _not_short(scalar) if scalar is not None else None
        if message:
            self.fail(message)
        return scalar or ""

    def name(self) -> str:
        """A name: a lower-case letter, then lower-case letters, digits, ``_`` or ``-``; at most 64."""
        scalar = self._scalar("a name", "str")
        message = _not_a_name(scalar) if scalar is not None else None
        if message:
            self.fail(message)
        return scalar or ""

    def one_of(self, kind: str, accepted: Iterable[str], fallback: str = "") -> str:
        """One word out of a set; ``kind`` says what they are, for the message."""
        words = tuple(accepted)
        scalar = self._scalar(f"a {kind}", "str")
        if scalar is None or scalar in words:
            return fallback if scalar is None else scalar
        self.fail(
            f"unknown {kind} {_shown(scalar)};{did_you_mean(scalar, words)} accepted: {', '.join(words) or 'none'}"
        )
        return fallback

    def choice(self, kind: str, options: type[E], fallback: E) -> E:
        """A member of an enumeration."""
        return options(self.one_of(kind, tuple(options), fallback))

    def says_off(self) -> bool:
        """Whether it says ``off``, which YAML takes for a truth value unless it is quoted."""
        return isinstance(self.node, yaml.ScalarNode) and self.node.value == "off"

    def flag(self, *, fallback: bool = False) -> bool:
        """``true`` or ``false``."""
        scalar = self._scalar("true or false", "bool")
        if scalar is None:
            return fallback
        if scalar not in {"true", "false"}:
            self.fail(f"expected true or false, got {_shown(scalar)}")
        return scalar == "true"

    def whole(self, low: int, high: int, fallback: int = 0) -> int:
        """A whole number from ``low`` to ``high``, both included."""
        expected = f"a whole number from {low} to {high}"
        scalar = self._scalar(expected, "int")
        if scalar is None:
            return fallback
        if not _WHOLE.fullmatch(scalar) or not low <= int(scalar) <= high:
            self.fail(f"expected {expected}, got {_shown(scalar)}")
            return fallback
        return int(scalar)

    def number(self, low: float, high: float, fallback: float = 0.0) -> float:
        """A number from ``low`` to ``high``, both included, in decimal notation."""
        expected = f"a number from {low:g} to {high:g} in decimal notation"
        scalar = self._scalar(expected, "int", "float")
        if scalar is None:
            return fallback
        if not _NUMBER.fullmatch(scalar) or not low <= float(scalar) <= high:
            self.fail(f"expected {expected}, got {_shown(scalar)}")
            return fallback
        return float(scalar)

    def _scalar(self, expected: str, *kinds: str) -> str | None:
        """The characters of a scalar that YAML takes for one of ``kinds``; ``None`` when absent or reported."""
        if self.node is None:
            return None
        if isinstance(self.node, yaml.ScalarNode) and self.node.tag in {_TAG + kind for kind in kinds}:
            return str(self.node.value)
        quote = "; put it in quotes" if "str" in kinds and _is_filled_scalar(self.node) else ""
        self.fail(f"expected {expected}, got {_found(self.node)}{quote}")
        return None

    def _entries(self) -> dict[str, "Value"] | None:
        """The entries of a mapping, or ``None`` when it is absent or something else, which is reported."""
        if self.node is None:
            return None
        if not isinstance(self.node, yaml.MappingNode):
            self.fail(f"expected a mapping, got {_found(self.node)}")
            return None
        entries: dict[str, Value] = {}
        for key_node, node in self.node.value:
            line = key_node.start_mark.line + 1
            if key_node.tag != f"{_TAG}str":
                quote = "; put it in quotes" if _is_filled_scalar(key_node) else ""
                self.report.add(
                    PolicyProblem(self.file, line, self.key, f"a key must be text, got {_found(key_node)}{quote}")
                )
                continue
            value = self._child(key_node.value, line, node)
            if key_node.value in entries:
                value.fail_key(f"given twice, first on line {entries[key_node.value].line}; keep one")
            else:
                entries[key_node.value] = value
        return entries

    def _child(self, key: str, line: int, node: yaml.Node | None) -> "Value":
        shown = key if key.isprintable() and len(key) <= MAX_TEXT else _shown(key)
        return replace(self, key=f"{self.key}.{shown}" if self.key else shown, line=line, node=node)


def did_you_mean(word: str, accepted: Iterable[str]) -> str:
    """`` did you mean 'x'?`` for the accepted word that is nearest, or nothing."""
    near = get_close_matches(word[:MAX_TEXT], list(accepted), n=1)
    return f" did you mean '{near[0]}'?" if near else ""


def _shown(text: str) -> str:
    """Text as a message may quote it: one line, not long."""
    return repr(text if len(text) <= 40 else f"{text[:39]}…")


def _not_a_name(text: str) -> str | None:
    if _NAME.fullmatch(text):
        return None
    return f"{_shown(text)} is no name; a name is a lower-case letter, then up to 63 of a-z, 0-9, _ and -"


def _not_short(text: str) -> str | None:
    if 0 < len(text) <= MAX_TEXT and text.isprintable():
        return None
    return f"expected 1 to {MAX_TEXT} printable characters, got {_shown(text)}"


def _is_filled_scalar(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag != f"{_TAG}null"


def _found(node: yaml.Node) -> str:
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    if not _is_filled_scalar(node):
        return "nothing"
    return f"the {_KINDS.get(node.tag.removeprefix(_TAG), 'text')} {_shown(node.value)}"

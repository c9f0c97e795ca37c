"""The compiled regular expressions of the product's modules, wherever they are kept."""

import dataclasses
import importlib
import pkgutil
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, partial
from types import FunctionType, ModuleType

import memplane

Placed = tuple[str, re.Pattern[str]]
"""Where a pattern is, and the pattern."""
_DEPTH = 8
_OPTIONAL = ("memplane.adapters.llm.",)
"""Modules that need what is not installed everywhere."""


@cache
def patterns() -> Mapping[str, Mapping[str, re.Pattern[str]]]:
    """By module and place, each pattern once, in the module that comes first."""
    found: dict[str, dict[str, re.Pattern[str]]] = {}
    seen: dict[int, object] = {}  # with what it names, so that no id is used twice
    for each in pkgutil.walk_packages(memplane.__path__, "memplane."):
        if each.name.endswith("__main__") or each.name.startswith(_OPTIONAL):
            continue
        module = importlib.import_module(each.name)
        own = {name: value for name, value in vars(module).items() if not name.startswith("__")}
        parts = {where: pattern for where, pattern in _within(own, "", seen) if isinstance(pattern.pattern, str)}
        if parts:
            found[each.name] = parts
    return found


def _within(value: object, where: str, seen: dict[int, object], depth: int = 0) -> Iterator[Placed]:
    if depth > _DEPTH or id(value) in seen or isinstance(value, (str, bytes, int, float, ModuleType)):
        return
    seen[id(value)] = value
    if isinstance(value, re.Pattern):
        yield where, value
        return
    for name, part in _parts(value):
        yield from _within(part, f"{where}.{name}".lstrip("."), seen, depth + 1)


def _parts(value: object) -> Iterable[tuple[str, object]]:
    """What something holds: items, fields, the object of a bound method, what a function closes over."""
    match value:
        case Mapping():
            return [(str(name)[:40], part) for name, each in value.items() for part in (name, each)]
        case list() | tuple() | set() | frozenset():
            return [(str(number), each) for number, each in enumerate(value)]
        case partial():
            return [("function", value.func), ("given", value.args)]
        case FunctionType():
            return [("closure", [each.cell_contents for each in value.__closure__ or ()])]
        case type() if value.__module__.startswith("memplane."):
            return list(vars(value).items())
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return [(each.name, getattr(value, each.name, None)) for each in dataclasses.fields(value)]
        case _ if isinstance(getattr(value, "__self__", None), re.Pattern):
            return [("pattern", value.__self__)]  # type: ignore[attr-defined]  # it has one
        case _:
            return []

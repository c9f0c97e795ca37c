"""Values of channels as bytes and back: of declared types alone, and never as something else."""

import dataclasses
import importlib
import re
from collections.abc import Callable, Collection, Iterator
from enum import Enum
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import ormsgpack
from langgraph.checkpoint.serde import jsonplus
from langgraph.checkpoint.serde._msgpack import SAFE_MSGPACK_METHODS, SAFE_MSGPACK_TYPES
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.types import Send

from memplane.domain.errors import CheckpointMismatch, UndeclaredType

Declared = tuple[str, str]
Unknown = list[str]
MSGPACK = "msgpack"
_BARE = frozenset({"null", "bytes", "bytearray"})
_OPTION = ormsgpack.OPT_NON_STR_KEYS
_PLAIN = (str, int, float, dict, list)
_DEPTH = 64
"""As deep as a value is looked into."""
_KNOWN_PACKAGES = re.compile(r"(builtins|collections|langgraph|langchain_core)\b")
_ADVICE = (
    "declare it: MemplaneSaver.open(…, types=[TheType]). LangGraph's messages, times, ids, sets and the like are known"
)


class StrictSerializer:
    """LangGraph's own format, held to its strict rules whatever `LANGGRAPH_STRICT_MSGPACK` says.

    LangGraph reads a value of a type that it was not told of as a dict, a list or a text, and goes on; this one refuses
    to store it, and to read it.
    """

    def __init__(self, types: Collection[type | Declared] = ()) -> None:
        named = (each if isinstance(each, tuple) else (each.__module__, each.__name__) for each in types)
        self.types: frozenset[Declared] = frozenset(named)
        self._inner = JsonPlusSerializer(allowed_msgpack_modules=tuple(self.types) or None)

    def with_types(self, types: Collection[type | tuple[str, ...]]) -> "StrictSerializer":
        """The same, told of more types."""
        more = (each if isinstance(each, type) else (each[0], each[1]) for each in types)
        return StrictSerializer((*self.types, *more))

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:  # noqa: ANN401 - LangGraph's signature
        """A value's kind and bytes.

        Raises:
            UndeclaredType: it is, or holds, a value of a type that was not declared.
        """
        unknown = [f"{kind.__module__}.{kind.__name__}" for kind in _flattened(obj)]
        try:
            kind, data = self._inner.dumps_typed(obj)
        except (TypeError, ormsgpack.MsgpackEncodeError) as error:
            raise UndeclaredType(f"a value of type {type(obj).__name__} cannot be stored: {error}") from error
        if kind == MSGPACK:
            self._unpacked(data, lambda module, name, _arg: unknown.extend(self._undeclared(module, name)))
        if unknown:
            raise UndeclaredType(f"{', '.join(sorted(set(unknown)))}: not a declared type; {_ADVICE}", types=unknown)
        return kind, bytes(data)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:  # noqa: ANN401 - LangGraph's signature
        """The value of some bytes.

        Raises:
            UndeclaredType: it is, or holds, a value of a type that was not declared.
            CheckpointMismatch: a declared type does not accept it, or it is in a format that is not read.
        """
        kind, raw = data
        if kind == MSGPACK:
            return self._unpacked(raw, None)
        if kind not in _BARE:  # LangGraph reads JSON that names classes to build, which is never written here
            raise CheckpointMismatch(f"the checkpoint holds a value in the format '{kind}', which is not read")
        return self._inner.loads_typed(data)

    def _undeclared(self, module: str, name: str) -> list[str]:
        known = (module, name) in self.types or (module, name) in SAFE_MSGPACK_TYPES
        return [] if known else [f"{module}.{name}"]

    def _unpacked(self, data: bytes, told: Callable[[str, str, Any], None] | None) -> Any:  # noqa: ANN401 - any value
        """The value; with ``told``, the types in it are named instead and nothing is built."""
        failures: list[Exception] = []

        def hook(code: int, raw: bytes) -> Any:  # noqa: ANN401 - any value
            inside = ormsgpack.unpackb(raw, ext_hook=hook, option=_OPTION)
            if code == jsonplus.EXT_DELTA_SNAPSHOT:
                return None if told else _DeltaSnapshot(inside)
            if code == jsonplus.EXT_NUMPY_ARRAY:
                return None if told else _array(*inside)
            module, name, *rest = inside
            if told is not None:
                told(module, name, rest)
                return None
            try:
                return self._built(code, module, name, rest)
            except (CheckpointMismatch, UndeclaredType) as error:
                failures.append(error)  # raised below: the parser would wrap it
                return None

        value = ormsgpack.unpackb(data, ext_hook=hook, option=_OPTION)
        if failures:
            raise failures[0]
        return value

    def _built(self, code: int, module: str, name: str, rest: list[Any]) -> object:
        if self._undeclared(module, name):
            raise UndeclaredType(f"{module}.{name}: the checkpoint holds a type that is not declared; {_ADVICE}")
        try:
            kind = getattr(importlib.import_module(module), name)
            return _make(code, kind, rest)
        except Exception as error:
            raise CheckpointMismatch(
                f"{module}.{name}: the checkpoint holds a value that this type does not accept "
                f"({type(error).__name__}); give its new fields defaults, or load with the version that stored it"
            ) from error


def _make(code: int, kind: Any, rest: list[Any]) -> object:  # noqa: ANN401 - a class or one of the known functions
    """A value of a type from what stands in a checkpoint."""
    argument = rest[0]
    match code:
        case jsonplus.EXT_CONSTRUCTOR_SINGLE_ARG:
            return kind(argument)
        case jsonplus.EXT_CONSTRUCTOR_POS_ARGS if kind is Send:
            return Send(argument[0], argument[1], **({"timeout": argument[2]} if len(argument) > 2 else {}))
        case jsonplus.EXT_CONSTRUCTOR_POS_ARGS:
            return kind(*argument)
        case jsonplus.EXT_CONSTRUCTOR_KW_ARGS | jsonplus.EXT_PYDANTIC_V1 | jsonplus.EXT_PYDANTIC_V2:
            return kind(**argument)
        case jsonplus.EXT_METHOD_SINGLE_ARG if (kind.__module__, kind.__name__, rest[1]) in SAFE_MSGPACK_METHODS:
            return getattr(kind, rest[1])(argument)
        case _:
            raise ValueError(f"no way to read code {code}")


def _array(dtype: str, shape: list[int], order: Literal["C", "F"], buffer: bytes) -> object:
    return np.frombuffer(buffer, dtype=np.dtype(dtype)).reshape(tuple(shape), order=order)


def _flattened(value: Any) -> Iterator[type]:  # noqa: ANN401 - any value
    """Types that the format would quietly take for the plain type that they are built on."""
    looked = [value]
    for _ in range(_DEPTH):
        inside: list[Any] = []
        for each in looked:
            kind = type(each)
            match _held(kind):  # type: ignore[arg-type]  # a class has a hash
                case _Held.QUIETLY:
                    yield kind
                case _Held.VALUES:
                    inside.extend(each.values())
                case _Held.ITEMS:
                    inside.extend(each)
                case _:
                    pass
        if not inside:
            return
        looked = inside


class _Held(Enum):
    """What the format does with values of a type: it takes them for another one, looks into them, or neither."""

    QUIETLY = 1
    VALUES = 2
    ITEMS = 3
    ITSELF = 4


@lru_cache(maxsize=1024)
def _held(kind: type) -> _Held:
    if issubclass(kind, _PLAIN) and not issubclass(kind, Enum) and not _KNOWN_PACKAGES.match(kind.__module__):
        return _Held.QUIETLY
    if dataclasses.is_dataclass(kind):
        return _Held.ITSELF
    if issubclass(kind, dict):
        return _Held.VALUES
    return _Held.ITEMS if issubclass(kind, (list, tuple, set, frozenset)) else _Held.ITSELF

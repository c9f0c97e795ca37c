"""Lists of names, ids and vectors as PostgreSQL's arrays, written at once.

A read binds a dozen lists, most of them the same in every request, and an import hundreds of vectors. The driver looks
at each member of each list; these are written from what is known about them.

Format: the binary one of ``array_send`` and ``array_recv``, PostgreSQL 18, src/backend/utils/adt/arrayfuncs.c; of a
vector ``halfvec_send``, pgvector 0.8, src/halfvec.c.
"""

from collections.abc import Mapping
from functools import lru_cache
from struct import pack
from typing import Any, ClassVar
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from psycopg.abc import AdaptContext
from psycopg.adapt import Dumper
from psycopg.pq import Format

_TEXT, _TEXT_ARRAY, _UUID, _UUID_ARRAY = 25, 1009, 2950, 2951
"""Object ids of PostgreSQL's types (pg_type.dat)."""
_ID_LENGTH = pack("!i", 16)


class TextArray(tuple[str, ...]):
    """Texts that are bound as one array."""

    __slots__ = ()


class IdArray(tuple[UUID, ...]):
    """Ids that are bound as one array."""

    __slots__ = ()


class VectorArray(tuple[NDArray[np.float32], ...]):
    """Vectors of one length that are bound as one array, in half precision."""

    __slots__ = ()


class _NamesDumper(Dumper):
    format = Format.BINARY
    oid = _TEXT_ARRAY

    def dump(self, obj: TextArray) -> bytes:
        return _texts(obj)


class _IdsDumper(Dumper):
    format = Format.BINARY
    oid = _UUID_ARRAY

    def dump(self, obj: IdArray) -> bytes:
        return _head(len(obj), _UUID) + b"".join(_ID_LENGTH + each.bytes for each in obj)


class _VectorsDumper(Dumper):
    format = Format.BINARY
    member: ClassVar[int]
    """The object id of the members' type."""

    def dump(self, obj: VectorArray) -> bytes:
        if not obj:
            return _head(0, self.member)
        length = len(obj[0])
        packed: NDArray[np.void] = np.zeros(
            len(obj), dtype=[("size", ">i4"), ("length", ">i2"), ("unused", ">i2"), ("values", ">f2", (length,))]
        )
        packed["size"], packed["length"] = packed.itemsize - 4, length
        packed["values"] = np.stack(obj)
        return _head(len(obj), self.member) + packed.tobytes()


def register_arrays(context: AdaptContext) -> None:
    """Let a connection take :class:`TextArray`, :class:`IdArray` and, if it knows vectors, :class:`VectorArray`."""
    adapters = context.adapters
    adapters.register_dumper(TextArray, _NamesDumper)
    adapters.register_dumper(IdArray, _IdsDumper)
    if (known := adapters.types.get("halfvec")) is not None:
        dumper = type("_VectorsDumper", (_VectorsDumper,), {"oid": known.array_oid, "member": known.oid})
        adapters.register_dumper(VectorArray, dumper)


def bind_arrays(values: Mapping[str, object]) -> dict[str, object]:
    """Values of a statement, in which lists of texts and of ids are ready to be written at once."""
    return {name: _arrayed(value) if type(value) is list and value else value for name, value in values.items()}


def _arrayed(value: list[Any]) -> object:
    kinds = set(map(type, value))
    if kinds == {UUID}:
        return IdArray(value)
    return TextArray(map(str, value)) if all(issubclass(kind, str) for kind in kinds) else value


def _head(size: int, member: int) -> bytes:
    """One dimension from 1, without NULLs; an empty array has no dimension."""
    return pack("!iiIii", 1, 0, member, size, 1) if size else pack("!iiI", 0, 0, member)


@lru_cache(maxsize=1024)
def _texts(names: TextArray) -> bytes:
    plain = [name.encode() for name in names]
    return _head(len(plain), _TEXT) + b"".join(pack("!i", len(each)) + each for each in plain)

"""How PostgreSQL packs units: one pass over a scope, ten thousand units in a few values."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memplane.adapters.sql.queries.material import Columns
from memplane.adapters.sql.queries.packing import PackedIds, count_units, postings
from memplane.adapters.sql.rows import TERM
from memplane.adapters.sql.scope import Predicate
from memplane.application.recall.search_material import Candidates, Query
from memplane.domain.ranking.embedding_models import Column
from memplane.domain.ranking.priors import TURN_IMPORTANCE, Priors
from memplane.domain.ranking.signals import Signals
from memplane.domain.ranking.thread_neighbours import Surroundings, in_thread_order

UNIT = np.dtype(
    [
        *(("id", "V16"), ("thread", ">i8"), ("seq", ">i4"), ("length", ">i4"), ("terms", ">i4"), ("sim", ">f4")),
        ("actor", "u1"),
        *(("happened", ">i8"), ("hit", ">i8"), ("importance", ">i2"), ("marks", ">i2")),
        *(("reinforcement", ">i4"), ("mentions", ">i4"), ("hits", ">i4")),
    ]
)
"""One unit as a statement packs it, big-endian like PostgreSQL's binary send functions."""
UNIT_BYTES = UNIT.itemsize
_PINNED, _INSIGHT = 1, 2
# microseconds since 2000, as PostgreSQL keeps times
_OF_MEMORIES = (
    "timestamptz_send(coalesce(u.event_time, u.updated_at))"
    " || timestamptz_send(coalesce(u.last_hit_at, u.recorded_at)) || int2send(u.importance)"
    f" || int2send((u.pinned::int * {_PINNED} + (u.type IN ('insight', 'reflection'))::int * {_INSIGHT})::int2)"
    " || int4send(u.reinforcement) || int4send(u.mention_count) || int4send(u.hits)"
)
_ORDINARY = "".join(f"{value:0{size}x}" for value, size in ((TURN_IMPORTANCE, 4), (0, 4), (0, 8), (1, 8), (0, 8)))
_OF_TURNS = (
    "timestamptz_send(coalesce(u.event_time, u.recorded_at)) || timestamptz_send(u.recorded_at)"
    rf" || '\x{_ORDINARY}'::bytea"
)
_EPOCH = 946_684_800.0
"""The first moment of 2000, in seconds since 1970."""
MEMORIES: Mapping[str, str] = {
    "table": "memories", "thread": "0", "seq": "0", "priors": _OF_MEMORIES,
    "expiry": "min(least(u.expires_at, u.valid_until))",
}  # fmt: skip
TURNS: Mapping[str, str] = {
    "table": "turns", "thread": "u.thread_key", "seq": "u.seq::int4", "priors": _OF_TURNS,
    "expiry": "NULL::timestamptz",
}  # fmt: skip

# One pass over the units in scope: their places, lengths, similarity and terms, packed so that 10 000 units travel as
# two values. Served by ix_memories_user and uq_turns_tenant_id_user_id_thread_id_seq; cost follows the scope.
_PACKED = """string_agg(uuid_send(u.id) || int8send({thread}) || int4send({seq}) || int4send(u.term_length)
         || int4send(octet_length(u.terms) / 5) || float4send({similarity}) || {actor} || {priors}, ''::bytea) AS units,
       string_agg(u.terms, ''::bytea) AS terms"""
_SCAN = """
SELECT {packed}
  FROM {table} u
 WHERE {scope}"""
_SIMILARITY = "coalesce(-(u.{vectors} <#> %(embedding)s::halfvec), 'NaN')::real"
_NO_SIMILARITY = "'NaN'::real"
_ACTOR = r"CASE WHEN string_to_array(lower(u.actor_id), ' ') && %(words)s THEN '\x01'::bytea ELSE '\x00'::bytea END"

# The same with everything that later questions need: vectors and actors. Served by the same indexes, and for what has
# changed by ix_memories_changed and ix_turns_changed.
_MATERIAL = """
SELECT {packed}, string_agg(halfvec_send(u.{vectors}), ''::bytea) AS vectors,
       string_agg(coalesce(u.actor_id, ''), {separator}) AS actors, {expiry} AS expiry
  FROM {table} u
 WHERE {scope}{since}"""
_HAS_VECTOR = "CASE WHEN u.{vectors} IS NULL THEN 'NaN'::real ELSE 0::real END"
_NO_ACTOR = r"'\x00'::bytea"
_SEPARATOR = "\x1f"  # no name holds a control character


def scan_of(columns: Mapping[str, str], allowed: Predicate, vectors: Column, *, by_meaning: bool) -> str:
    """The statement that measures a table's units in scope for one question, by the vectors of a column."""
    similarity = _SIMILARITY.format(vectors=vectors) if by_meaning else _NO_SIMILARITY
    packed = _PACKED.format(similarity=similarity, actor=_ACTOR, **columns)
    return _SCAN.format(packed=packed, table=columns["table"], scope=allowed.sql)


def material_of(columns: Mapping[str, str], allowed: Predicate, vectors: Column, *, since: bool) -> str:
    """The statement for the material of a table's units in scope, or of those that changed since a transaction."""
    return _MATERIAL.format(
        packed=_PACKED.format(similarity=_HAS_VECTOR.format(vectors=vectors), actor=_NO_ACTOR, **columns),
        vectors=vectors, table=columns["table"],
        separator="chr(31)", expiry=columns["expiry"], scope=allowed.sql,
        since=" AND u.changed_in >= %(since)s AND u.changed_in < %(next)s" if since else "",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class UnitMaterial:
    """The material of units, and when the first of them ends."""

    columns: Columns
    expiry: datetime | None


def load_material(row: Mapping[str, Any], dimensions: int) -> UnitMaterial:
    """A row of the statement for material."""
    read = np.frombuffer(row["units"] or b"", dtype=UNIT)
    vectors = np.frombuffer(row["vectors"] or b"", dtype=np.dtype([("head", "V4"), ("values", ">f2", (dimensions,))]))
    columns = Columns(
        version=np.zeros(len(read), dtype=np.int64),
        ids=read["id"],
        thread=read["thread"].astype(np.int64),
        seq=read["seq"].astype(np.int32),
        length=read["length"].astype(np.int32),
        actors=(row["actors"] or "").split(_SEPARATOR) if len(read) else (),
        sizes=read["terms"].astype(np.int64),
        terms=np.frombuffer(row["terms"] or b"", dtype=TERM),
        embedding=vectors["values"].astype(np.float32),
        embedded=~np.isnan(read["sim"]),
        priors=_priors(read),
    )
    return UnitMaterial(columns, row["expiry"])


def unpack(units: bytes, terms: bytes, query: Query, named: bytes = b"") -> Candidates:
    """Packed units and their terms as ids and signals, with who mentions what the query names."""
    read = np.frombuffer(units, dtype=UNIT)
    order = in_thread_order(read["thread"].astype(np.int64), read["seq"].astype(np.int32))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    rows = read[order]
    ids = PackedIds(rows["id"])
    signals = Signals(
        surroundings=Surroundings(
            rows["thread"].astype(np.int64), rows["seq"].astype(np.int32), rows["length"].astype(np.int32)
        ),
        postings=postings(read["terms"], terms, query.terms, place),
        similarity=None if query.vector is None else rows["sim"].astype(np.float32),
        actor=rows["actor"].astype(bool),
        priors=_priors(rows),
        entity=count_units(ids, named) if query.names else None,
    )
    return Candidates(ids=ids, signals=signals)


def _priors(rows: NDArray[np.void]) -> Priors:
    return Priors(
        happened=rows["happened"] / 1e6 + _EPOCH,
        hit=rows["hit"] / 1e6 + _EPOCH,
        importance=rows["importance"].astype(np.int64),
        pinned=(rows["marks"] & _PINNED) > 0,
        insight=(rows["marks"] & _INSIGHT) > 0,
        reinforcement=rows["reinforcement"].astype(np.int64),
        mentions=rows["mentions"].astype(np.int64),
        hits=rows["hits"].astype(np.int64),
    )

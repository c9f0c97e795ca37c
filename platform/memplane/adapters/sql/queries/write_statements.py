"""Statements of the write path, built once: to build one takes longer than to send it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import sqlalchemy as sa

from memplane.adapters.sql.rows import MEMORY_COLUMNS
from memplane.adapters.sql.schema import tables
from memplane.domain.memory.memory import Memory, State, TrustState

Insert = Callable[[sa.Table], Any]
"""The database's own ``insert``, which knows ``ON CONFLICT``."""

# what makes a text findable stays in the database
MEMORY = [tables.memories.c[name] for name in MEMORY_COLUMNS]
_M = tables.memories.c
_T, _E, _R = tables.thread_revision.c, tables.entities.c, tables.relations.c
_B, _K, _A = tables.tombstones.c, tables.idempotency_keys.c, tables.entity_aliases.c


def _is(column: sa.Column[Any], name: str | None = None) -> sa.ColumnElement[bool]:
    return column == sa.bindparam(name or column.name)


def _state(*states: State) -> sa.ColumnElement[bool]:
    """Written out, as the partial indexes have it: a bound value would keep a generic plan from them."""
    named: list[sa.ColumnElement[str]] = [sa.literal_column(f"'{state}'") for state in states]
    return _M.state == named[0] if len(named) == 1 else _M.state.in_(named)


_SAME_VALUE = sa.and_(*(_is(_M[name]) for name in ("category", "type", "visibility", "min_trust", "value_hash")))
_ACTIVE_OF_USER = sa.select(*MEMORY).where(_is(_M.tenant_id), _is(_M.user_id), _state(State.ACTIVE))
SAME_VALUE = _ACTIVE_OF_USER.where(_SAME_VALUE).order_by(_M.id).limit(1).with_for_update()
# each half is served by its own index; an OR of both would be by none on SQLite
_NAMED_OR_SAME = sa.union_all(
    *(
        sa.select(_M.id).where(_is(_M.tenant_id), _is(_M.user_id), _state(State.ACTIVE), condition)
        for condition in (_is(_M.external_id), _SAME_VALUE)
    )
)
SAME_NAME_OR_VALUE = (
    sa.select(*MEMORY)
    .where(_is(_M.tenant_id), _M.id.in_(_NAMED_OR_SAME), _state(State.ACTIVE))
    .order_by(sa.case((_is(_M.external_id), 0), else_=1), _M.id)
    .limit(1)
    .with_for_update()
)
# an expression: the index of the time, as that of the id, would lead SQLite through all of a user's memories
_LATEST_FIRST = sa.func.coalesce(_M.recorded_at, _M.updated_at).desc()
PAST_OF_NAME = (
    sa.select(*MEMORY)
    .where(_is(_M.tenant_id), _is(_M.user_id), _is(_M.external_id), _state(State.SUPERSEDED, State.ARCHIVED))
    .order_by(_LATEST_FIRST)
    .limit(1)
)

LAST_RECORDED = (
    sa.select(_M.recorded_at)
    .where(_is(_M.tenant_id), _is(_M.user_id))
    .order_by(_M.tenant_id.desc(), _M.user_id.desc(), _M.recorded_at.desc())
    .limit(1)
)
"""When the latest memory of a user was recorded: not the one of the greatest id, which an import may choose."""

_STANDS = sa.select(sa.literal(1)).where(_is(_M.tenant_id), _is(_M.user_id))
_OF_VALUE = _STANDS.where(_state(State.ACTIVE), _SAME_VALUE)
_OF_NAME_OR_VALUE = sa.union_all(
    _OF_VALUE,
    _STANDS.where(_state(State.ACTIVE), _is(_M.external_id)),
    _STANDS.where(_state(State.SUPERSEDED, State.ARCHIVED), _is(_M.external_id)),
)


def is_taken(memory: Memory) -> sa.SelectBase:
    """Whether a memory's value or name is taken, so that nobody asks what is near it."""
    return _OF_VALUE if memory.external_id is None else _OF_NAME_OR_VALUE


def same(memory: Memory) -> sa.Select[Any]:
    """The active memory of a memory's name or value, locked."""
    return SAME_VALUE if memory.external_id is None else SAME_NAME_OR_VALUE


BURIED = sa.select(_B.value_hash).where(_is(_B.tenant_id), _is(_B.scope), _is(_B.category))
REJECTED = (
    sa.select(*MEMORY)
    .where(
        _is(_M.tenant_id), _is(_M.user_id), _is(_M.category), _state(State.SOFT_DELETED),
        _M.trust_state == sa.literal_column(f"'{TrustState.REJECTED}'"),
    )
    .order_by(_LATEST_FIRST)
    .limit(sa.bindparam("most", type_=sa.Integer))
)  # fmt: skip
RECENT = (
    sa.select(_T.thread_id, _T.updated_at)
    .where(_is(_T.tenant_id), _is(_T.user_id), _T.updated_at > sa.bindparam("since"))
    .order_by(_T.updated_at.desc())
    .limit(sa.bindparam("most", type_=sa.Integer))
)
REVISION = sa.select(_T.rev).where(_is(_T.tenant_id), _is(_T.user_id), _is(_T.thread_id))
ALIASED = sa.select(_E.id, _A.alias_key.label("key"), _E.kind, sa.literal(value=True).label("alias")).where(
    _is(_A.tenant_id), _A.alias_key.in_(sa.bindparam("keys", expanding=True)),
    _E.tenant_id == _A.tenant_id, _E.id == _A.entity_id, _is(_E.user_id),
)  # fmt: skip
NAMED = sa.select(_E.id, _E.name_key.label("key"), _E.kind, sa.literal(value=False).label("alias")).where(
    _is(_E.tenant_id), _is(_E.user_id),
    _E.kind.in_(sa.bindparam("kinds", expanding=True)), _E.name_key.in_(sa.bindparam("keys", expanding=True)),
)  # fmt: skip
KNOWN_ENTITIES = sa.union_all(ALIASED, NAMED)
_REPLACED = [*dict.fromkeys((*MEMORY_COLUMNS, "token_count"))]
_COUNTED = ("access_count", "last_accessed")
MATERIAL = ("terms", "term_length", "embedding", "embedding_2")


@lru_cache
def replacing(*, with_material: bool, active: bool) -> sa.Update:
    """A memory by its id, all but what is counted beside; an active one only where no other is of its value or name."""
    names = [name for name in (*_REPLACED, *(MATERIAL if with_material else ())) if name not in _COUNTED]
    values = {name: sa.bindparam(f"new_{name}", type_=_M[name].type) for name in names}
    anew = {"enriched_by": sa.null()} if with_material else {}
    statement = sa.update(tables.memories).where(_is(_M.tenant_id, "of_tenant"), _M.id == values["id"])
    statement = statement.values(values | anew)
    if not active:
        return statement
    other = tables.memories.alias("other")
    same = sa.and_(
        *(other.c[name] == values[name] for name in ("category", "type", "visibility", "min_trust", "value_hash"))
    )
    rivals = sa.select(sa.literal(1)).where(
        other.c.tenant_id == sa.bindparam("of_tenant"), other.c.user_id == values["user_id"],
        other.c.state == sa.literal_column(f"'{State.ACTIVE}'"), other.c.id != values["id"],
    )  # fmt: skip
    named = rivals.where(other.c.external_id == values["external_id"])
    return statement.where(~sa.exists(rivals.where(same)), ~sa.exists(named))


ANSWERED = sa.select(_K.request_hash, _K.answer).where(_is(_K.tenant_id), _is(_K.key_id), _is(_K.idempotency_key))
ADD_HISTORY = sa.insert(tables.history)
ADD_EVENTS = sa.insert(tables.events)
ADD_CHANGES = sa.insert(tables.change_log)
ADD_TURNS = sa.insert(tables.turns)
ADD_UNDO = sa.insert(tables.undo_records)
ADD_RUNS = sa.insert(tables.job_runs)


def one_or_many(rows: list[dict[str, Any]]) -> dict[str, Any] | list[dict[str, Any]]:
    """Rows for one statement: a driver takes a detour for many, even for many that are one."""
    return rows[0] if len(rows) == 1 else rows


@dataclass(frozen=True, slots=True)
class Upserts:
    """What a database inserts, and what it does about rows that are there.

    Each but `co_recalled` returns something: only then do many rows travel as one statement.
    """

    memory: Any
    thread: Any
    relations: Any
    co_recalled: Any
    entities: Any
    mentions: Any
    answer: Any


@lru_cache
def upserts(insert: Insert) -> Upserts:
    """The upserts in a database's own syntax."""
    threads, relations, entities = (
        insert(table) for table in (tables.thread_revision, tables.relations, tables.entities)
    )
    later = sa.case((_T.updated_at < threads.excluded.updated_at, threads.excluded.updated_at), else_=_T.updated_at)
    stronger = sa.case((_R.strength < relations.excluded.strength, relations.excluded.strength), else_=_R.strength)
    return Upserts(
        memory=insert(tables.memories).on_conflict_do_nothing().returning(_M.id),
        thread=threads.on_conflict_do_update(
            index_elements=[_T.tenant_id, _T.user_id, _T.thread_id],
            set_={
                "rev": _T.rev + threads.excluded.rev,
                "turns": _T.turns + threads.excluded.turns,
                "updated_at": later,
            },
        ).returning(_T.thread_id, _T.rev, _T.turns),
        relations=relations.on_conflict_do_update(
            index_elements=[_R.tenant_id, _R.from_id, _R.to_id, _R.relation_type],
            set_={"strength": stronger, "updated_at": relations.excluded.updated_at},
        ).returning(_R.id),
        # with `before`, for each row: what was counted later is not counted again; PostgreSQL adds these rows as JSON
        co_recalled=relations.on_conflict_do_update(
            index_elements=[_R.tenant_id, _R.from_id, _R.to_id, _R.relation_type],
            set_={"co_recalls": _R.co_recalls + 1, "updated_at": relations.excluded.updated_at},
            where=_R.updated_at <= sa.bindparam("before", type_=_R.updated_at.type),
        ),
        entities=entities.on_conflict_do_update(
            index_elements=[_E.tenant_id, _E.user_id, _E.kind, _E.name_key],
            set_={"name_key": entities.excluded.name_key},
        ).returning(_E.id),
        mentions=insert(tables.memory_entities).on_conflict_do_nothing().returning(tables.memory_entities.c.entity_id),
        answer=insert(tables.idempotency_keys).on_conflict_do_nothing().returning(_K.key_id),
    )

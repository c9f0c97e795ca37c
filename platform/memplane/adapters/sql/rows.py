"""Rows to domain objects and back, and the packed form of terms."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from memplane.application.keys.key_history import KeyEntry, KeyEvent
from memplane.application.recall.search_material import SearchMaterial
from memplane.application.records import ContextField, Proposal, StoredKey
from memplane.domain.consent.consent_rules import ProposalState
from memplane.domain.identity.principal import KeyScope
from memplane.domain.language.terms import Terms
from memplane.domain.language.text import estimate_tokens
from memplane.domain.memory.history import HistoryEntry, HistoryEvent
from memplane.domain.memory.memory import (
    Layer,
    Memory,
    MemoryText,
    MemoryType,
    Role,
    Source,
    State,
    TrustState,
    Turn,
    Visibility,
)
from memplane.domain.ranking.embedding_models import InForce

Row = Mapping[str, Any]

TERM = np.dtype([("term", "<u4"), ("count", "u1")])
"""One packed term: 32-bit hash of the stem and how often it stands in the text, at most 255."""


def pack_terms(terms: Terms) -> bytes:
    """Terms as bytes, five for each."""
    packed: NDArray[np.void] = np.empty(len(terms.counts), dtype=TERM)
    packed["term"] = list(terms.counts)
    packed["count"] = [min(count, 255) for count in terms.counts.values()]
    return packed.tobytes()


_PLAIN = (
    *("id", "user_id", "agent_id", "run_id", "actor_id", "thread_id", "external_id", "category", "min_trust"),
    *(
        "importance",
        "pinned",
        "confidence",
        "decay_rate",
        "reinforcement",
        "mention_count",
        "access_count",
        "hits",
        "value_hash",
        "authority",
    ),
    *("event_time", "valid_from", "valid_until", "asserted_at", "recorded_at", "superseded_at"),
    *("updated_at", "last_accessed", "last_hit_at", "expires_at", "purge_at", "superseded_by", "version", "attributes"),
)
TEXT_COLUMNS = ("title", "content", "narrative", "facts", "steps", "tags", "related_files", "lang")
_LISTS = ("facts", "steps", "tags", "related_files")
_NAMED = ("role", "type", "visibility", "trust_state", "source", "state", "layer")

MEMORY_COLUMNS = (*_PLAIN, *TEXT_COLUMNS, *_NAMED, "source_ids", "pii")
TURN_COLUMNS = (
    *("id", "user_id", "thread_id", "seq", "rev", "role", "text", "recorded_at", "actor_id", "agent_id", "run_id"),
    *("event_time", "external_id", "key_id", "vouched", "time_zone"),
)


def text_of(row: Row) -> MemoryText:
    """What a row of ``memories`` says."""
    text: dict[str, Any] = {name: row[name] for name in TEXT_COLUMNS}
    return MemoryText(**text | {name: tuple(text[name]) for name in _LISTS})


def memory_of(row: Row) -> Memory:
    """A row of ``memories`` as a memory."""
    return Memory(
        **{name: row[name] for name in _PLAIN},
        text=text_of(row),
        role=Role(row["role"]) if row["role"] else None,
        type=MemoryType(row["type"]),
        visibility=Visibility(row["visibility"]),
        trust_state=TrustState(row["trust_state"]),
        source=Source(row["source"]),
        state=State(row["state"]),
        layer=Layer(row["layer"]),
        source_ids=tuple(UUID(value) for value in row["source_ids"]),
        pii=tuple(row["pii"]),
    )


def memory_values(memory: Memory) -> dict[str, object]:
    """A memory as column values, without its search material."""
    values: dict[str, object] = {name: getattr(memory, name) for name in (*_PLAIN, *_NAMED)}
    values |= {name: getattr(memory.text, name) for name in TEXT_COLUMNS}
    return values | {
        "source_ids": tuple(str(value) for value in memory.source_ids),
        "pii": memory.pii,
        "attributes": dict(memory.attributes),
        "token_count": estimate_tokens(memory.text.content),
    }


def material_values(material: SearchMaterial, in_force: InForce) -> dict[str, object]:
    """Search material as column values: its terms, and a vector in each column that is in force or being filled.

    Raises:
        EmbeddingMismatch: this process does not run one of the models.
    """
    vectors = {str(column): material.vector(model) for column, model in in_force.write_models.items()}
    return {"terms": pack_terms(material.terms), "term_length": material.terms.length} | vectors


def turn_of(row: Row) -> Turn:
    """A row of ``turns`` as a turn."""
    return Turn(**{name: row[name] for name in TURN_COLUMNS} | {"role": Role(row["role"])})


def turn_values(turn: Turn) -> dict[str, object]:
    """A turn as column values, without its search material."""
    return {name: getattr(turn, name) for name in TURN_COLUMNS}


def history_of(row: Row) -> HistoryEntry:
    """A row of ``history`` as an entry."""
    return HistoryEntry(
        id=row["id"],
        memory_id=row["memory_id"],
        event=HistoryEvent(row["event"]),
        actor=row["actor"],
        policy_hash=row["policy_hash"],
        ts=row["ts"],
        old_ref=row["old_ref"],
        new_ref=row["new_ref"],
        meta=row["meta"],
    )


def proposal_of(row: Row) -> Proposal:
    """A row of ``consent_proposals`` as a proposal."""
    return Proposal(**{name: row[name] for name in Proposal.__slots__} | {"state": ProposalState(row["state"])})


def context_field_of(row: Row) -> ContextField:
    """A row of ``user_context`` as a decided field."""
    return ContextField(**{name: row[name] for name in ContextField.__slots__})


def key_entry_of(row: Row) -> KeyEntry:
    """A row of ``key_history`` as an entry."""
    return KeyEntry(**{name: row[name] for name in KeyEntry.__slots__} | {"event": KeyEvent(row["event"])})


def key_values(key: StoredKey) -> dict[str, object]:
    """A key as column values; the scope ``turns:user`` has a column of its own."""
    values = {name: getattr(key, name) for name in StoredKey.__slots__ if name != "tenant"}
    return values | {
        "users": None if key.users is None else list(key.users),
        "scopes": tuple(scope for scope in key.scopes if scope != KeyScope.USER_TURNS),
        "user_turns": KeyScope.USER_TURNS in key.scopes,
    }


def key_of(row: Row) -> StoredKey:
    """A row of ``api_keys`` as a key."""
    return StoredKey(
        tenant=row["tenant_id"],
        key_id=row["key_id"],
        secret_hash=bytes(row["secret_hash"]),
        agent=row["agent"],
        act_for=tuple(row["act_for"]),
        users=None if row["users"] is None else tuple(row["users"]),
        trust=row["trust"],
        scopes=(*row["scopes"], *((KeyScope.USER_TURNS.value,) if row["user_turns"] else ())),
        label=row["label"],
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        revoked_at=row["revoked_at"],
        last_used_at=row["last_used_at"],
    )

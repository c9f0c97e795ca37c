"""The scope predicate as SQL, written once: every query of memories and turns is built on it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from memplane.domain.language.entities import key_of
from memplane.domain.memory.memory import SHARED, MemoryType, TrustState, Visibility
from memplane.domain.memory.scope import Scope
from memplane.domain.ranking.priors import TURN_IMPORTANCE

_MENTIONS = """EXISTS (
SELECT 1 FROM memory_entities me JOIN entities e ON e.tenant_id = me.tenant_id AND e.id = me.entity_id
 WHERE me.tenant_id = {alias}.tenant_id AND me.memory_id = {alias}.id
   AND ({name} OR EXISTS (
        SELECT 1 FROM entity_aliases a
         WHERE a.tenant_id = e.tenant_id AND a.entity_id = e.id AND {alias_name})))"""
# Served by pk_memory_entities, pk_entities and uq_entity_aliases_tenant_id_entity_id_alias_key.


class Syntax(Protocol):
    """How a database writes the few things that the predicate needs."""

    def value(self, name: str) -> str:
        """A bound value."""
        ...

    def any_of(self, column: str, name: str) -> str:
        """The column's value is one of a bound list."""
        ...

    def holds_all(self, column: str, name: str) -> str:
        """The list column holds every item of a bound list."""
        ...

    def rows_by_ids(self, table: str, alias: str, name: str) -> tuple[str, str]:
        """Rows of a table by a bound list of ids: what to select from, and the condition."""
        ...

    def pack_ids(self, column: str) -> str:
        """All ids of a column as one value: see ``PackedIds.unpacked``."""
        ...

    def bind_values(self, values: Mapping[str, object]) -> dict[str, object]:
        """Values as the database's driver takes them."""
        ...

    def json(self, name: str) -> str:
        """A bound JSON document, given as text."""
        ...

    def members(self, column: str, member: str) -> str:
        """What to select from for the members of an object in a JSON column, as ``e (key, value)``."""
        ...

    @property
    def shared_lock(self) -> str:
        """A statement that keeps who locks a bound ``name`` for itself away until the transaction ends, or nothing."""
        ...

    @property
    def for_update(self) -> str:
        """What locks the rows that are selected; nothing where a transaction that writes is the only one."""
        ...


@dataclass(slots=True)
class Predicate:
    """Conditions and the values bound in them."""

    syntax: Syntax
    conditions: list[str] = field(default_factory=list)
    values: dict[str, object] = field(default_factory=dict)

    @property
    def sql(self) -> str:
        """The conditions, joined."""
        return " AND ".join(self.conditions)

    def compare(self, column: str, operator: str, name: str, value: object) -> None:
        """Add ``column operator value``."""
        self.conditions.append(f"{column} {operator} {self.syntax.value(name)}")
        self.values[name] = value

    def equal_if(self, column: str, name: str, value: object | None) -> None:
        """Add ``column = value`` when there is a value."""
        if value is not None:
            self.compare(column, "=", name, value)

    def one_of(self, column: str, name: str, values: object) -> None:
        """Add ``column`` is one of the values."""
        self.conditions.append(self.syntax.any_of(column, name))
        self.values[name] = values


def memories_in(scope: Scope, syntax: Syntax, alias: str = "m", *, any_state: bool = False) -> Predicate:
    """The predicate of memories.

    Args:
        scope: what may be read.
        syntax: of the database.
        alias: of the memories table in the statement.
        any_state: leave out state, trust state and expiry, for histories and change logs. Permission stays.
    """
    found = Predicate(syntax)
    _owner(found, scope, alias, of_memories=True)
    found.one_of(f"{alias}.category", "categories", list(scope.categories))
    found.one_of(f"{alias}.visibility", "visibilities", sorted(scope.visibilities))
    found.one_of(f"{alias}.min_trust", "trust_levels", list(scope.trust_levels))
    if not scope.procedures:
        found.compare(f"{alias}.type", "<>", "hidden_type", MemoryType.PROCEDURAL)
    if scope.outweighing is not None:
        found.compare(f"{alias}.authority", ">", "outweighed", scope.outweighing)
        found.conditions[-1] = f"({found.conditions[-1]} OR {alias}.trust_state = '{TrustState.CONFIRMED}')"
    if scope.lasting_beyond is not None:
        found.compare(f"{alias}.valid_until", ">", "lasting_beyond", scope.lasting_beyond)
    if not any_state:
        found.one_of(f"{alias}.state", "states", list(scope.states))
        found.one_of(f"{alias}.trust_state", "trust_states", list(scope.trust_states))
        if not scope.expired:
            found.conditions.append(f"({alias}.expires_at IS NULL OR {alias}.expires_at > {syntax.value('now')})")
            found.values["now"] = scope.now
        _moment(found, scope, alias)
    _memory_filters(found, scope, alias)
    return found


def turns_in(scope: Scope, syntax: Syntax, alias: str = "t") -> Predicate | None:
    """The predicate of turns, or ``None`` when no turn can be in scope.

    A turn counts as an episodic, private, active memory of ordinary importance, unpinned, without tags and entities,
    in the category that the policy gives to turns.
    """
    chosen = scope.filters
    importance_fits = (chosen.importance_min or 1) <= TURN_IMPORTANCE <= (chosen.importance_max or 5)
    if (
        not scope.turns
        or Visibility.PRIVATE not in scope.visibilities
        or (chosen.types and MemoryType.EPISODIC not in chosen.types)
        or chosen.visibility not in (None, Visibility.PRIVATE)
        or chosen.layer is not None
        or chosen.tags
        or chosen.entities
        or chosen.pinned
        or not importance_fits
    ):
        return None
    found = Predicate(syntax)
    _owner(found, scope, alias)
    _speech_filters(found, scope, alias)
    _time_filters(found, scope, f"{alias}.recorded_at")
    if scope.believed_at is not None:
        found.compare(f"{alias}.recorded_at", "<=", "believed_at", scope.believed_at)
    return found


def _moment(found: Predicate, scope: Scope, alias: str) -> None:
    """What is true and believed at the moments that the scope names.

    What overruled a memory later also said until when it was true: at an earlier moment nobody knew. One that was
    overruled and has no end was wrong all along.
    """
    until = f"{alias}.valid_until IS NULL OR {alias}.valid_until > "
    if scope.believed_at is not None:
        found.compare(f"{alias}.recorded_at", "<=", "believed_at", scope.believed_at)
        later = f"{alias}.superseded_at > {found.syntax.value('believed_at')}"
        found.conditions.append(f"({alias}.superseded_at IS NULL OR {later})")
        until = f"{later} OR {until}"
    if scope.true_at is not None:
        found.values["true_at"] = scope.true_at
        moment = found.syntax.value("true_at")
        found.conditions.append(f"({alias}.valid_from IS NULL OR {alias}.valid_from <= {moment})")
        found.conditions.append(f"({until}{moment})")
        if scope.believed_at is None:
            found.conditions.append(f"({alias}.superseded_at IS NULL OR {alias}.valid_until IS NOT NULL)")
    elif scope.believed_at is not None:
        found.conditions.append(f"({until}{found.syntax.value('believed_at')})")
    elif not scope.ended:
        found.conditions.append(f"({until}{found.syntax.value('now')})")


def _owner(found: Predicate, scope: Scope, alias: str, *, of_memories: bool = False) -> None:
    found.compare(f"{alias}.tenant_id", "=", "tenant", scope.tenant)
    own = Predicate(found.syntax)
    own.equal_if(f"{alias}.user_id", "user_id", scope.filters.user_id)
    if scope.users is not None:
        own.one_of(f"{alias}.user_id", "users", sorted(scope.users))
    found.values |= own.values
    if own.conditions and of_memories and scope.shared:
        nobody = Predicate(found.syntax)
        nobody.compare(f"{alias}.user_id", "=", "nobody", SHARED)
        nobody.one_of(f"{alias}.category", "shared", list(scope.shared))
        found.values |= nobody.values
        found.conditions.append(f"({own.sql} OR {nobody.sql})")
    else:
        found.conditions += own.conditions


def _speech_filters(found: Predicate, scope: Scope, alias: str) -> None:
    chosen = scope.filters
    columns: Mapping[str, object | None] = {
        "agent_id": chosen.agent_id,
        "run_id": chosen.run_id,
        "actor_id": chosen.actor_id,
        "role": chosen.role,
        "thread_id": chosen.thread_id,
    }
    for name, value in columns.items():
        found.equal_if(f"{alias}.{name}", f"f_{name}", value)


def _time_filters(found: Predicate, scope: Scope, column: str) -> None:
    if scope.filters.updated_after is not None:
        found.compare(column, ">=", "updated_after", scope.filters.updated_after)
    if scope.filters.updated_before is not None:
        found.compare(column, "<", "updated_before", scope.filters.updated_before)


def _memory_filters(found: Predicate, scope: Scope, alias: str) -> None:
    chosen = scope.filters
    _speech_filters(found, scope, alias)
    _time_filters(found, scope, f"{alias}.updated_at")
    if len(chosen.types) == 1:
        found.compare(f"{alias}.type", "=", "f_type", chosen.types[0])
    elif chosen.types:
        found.one_of(f"{alias}.type", "f_types", sorted(chosen.types))
    found.equal_if(f"{alias}.visibility", "f_visibility", chosen.visibility)
    found.equal_if(f"{alias}.layer", "f_layer", chosen.layer)
    found.equal_if(f"{alias}.pinned", "f_pinned", chosen.pinned)
    if chosen.importance_min is not None:
        found.compare(f"{alias}.importance", ">=", "importance_min", chosen.importance_min)
    if chosen.importance_max is not None:
        found.compare(f"{alias}.importance", "<=", "importance_max", chosen.importance_max)
    if chosen.tags:
        found.conditions.append(found.syntax.holds_all(f"{alias}.tags", "f_tags"))
        found.values["f_tags"] = [tag.casefold() for tag in chosen.tags]
    if chosen.entities:
        by = {"name": "e.name_key", "alias_name": "a.alias_key"}
        names = {part: found.syntax.any_of(column, "f_entities") for part, column in by.items()}
        found.conditions.append(_MENTIONS.format(alias=alias, **names))
        keys = {key for name in chosen.entities for key in (" ".join(name.casefold().split()), key_of(name))}
        found.values["f_entities"] = sorted(keys)

"""Deliberate breaks of single functions, to show that the matrix would notice each."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import psycopg

from memplane.adapters.postgres import search as postgres_search
from memplane.adapters.sql import scope as sql_scope
from memplane.adapters.sql.queries import read_statements, tracking_reader
from memplane.adapters.sqlite import search as sqlite_search
from memplane.application.memories import browse
from memplane.domain.identity.principal import Principal
from memplane.domain.memory import scope as scopes
from memplane.domain.memory.memory import State, TrustState, Visibility
from memplane.domain.memory.scope import Scope
from memplane.domain.policy.policy import Policy, Trust
from support.leaks.world import World

Patch = tuple[object, str, Any]
"""Whose attribute, which, and what instead."""
Function = Callable[..., Any]
TRUST = tuple(Trust)


@dataclass(frozen=True)
class Break:
    """Something that is out of order.

    Attributes:
        name: what.
        patches: functions that are replaced.
        tables: tables whose row-level security is off.
        unbound: tables whose row-level security forgets users.
    """

    name: str
    patches: Callable[[World], Sequence[Patch]] = lambda _: ()
    tables: tuple[str, ...] = ()
    unbound: tuple[str, ...] = ()

    def __and__(self, other: "Break") -> "Break":
        return Break(
            f"{self.name}, and {other.name}",
            lambda world: [*self.patches(world), *other.patches(world)],
            self.tables + other.tables,
            self.unbound + other.unbound,
        )

    @contextmanager
    def made(self, world: World) -> Iterator[None]:
        """The break, until it is left."""
        kept: list[Patch] = []
        with _row_security(world, self.tables, self.unbound):
            try:
                for owner, name, instead in self.patches(world):
                    kept.append((owner, name, getattr(owner, name)))
                    setattr(owner, name, instead)
                yield
            finally:
                for owner, name, before in reversed(kept):
                    setattr(owner, name, before)


@contextmanager
def _row_security(world: World, tables: Sequence[str], unbound: Sequence[str]) -> Iterator[None]:
    if not (tables or unbound):
        yield
        return
    with psycopg.connect(world.server.database.admin_url, autocommit=True) as admin:  # type: ignore[union-attr]  # PostgreSQL alone
        found = admin.execute("SELECT tablename, qual FROM pg_policies WHERE policyname = 'user_isolation'").fetchall()
        rules = dict(found)
        for table in tables:
            admin.execute(f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY")
        for table in unbound:
            admin.execute(f"ALTER POLICY user_isolation ON {table} USING (true)")
        try:
            yield
        finally:
            for table in tables:
                admin.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
            for table in unbound:
                admin.execute(f"ALTER POLICY user_isolation ON {table} USING {rules[table]}")


def _everything(world: World, scope: Scope) -> Scope:
    """The same scope, but for tenant and users, without a rule."""
    return replace(
        scope, categories=tuple(world.oracle.categories), visibilities=frozenset(Visibility), trust_levels=TRUST,
        turns=True,
    )  # fmt: skip


def _any_state(scope: Scope) -> Scope:
    return replace(scope, states=tuple(State))


def _any_belief(scope: Scope) -> Scope:
    return replace(scope, trust_states=tuple(TrustState))


def _any_user(scope: Scope) -> Scope:
    return replace(scope, users=None)


def _wider(original: Function, widened: Callable[[Scope], Scope]) -> Function:
    return lambda scope, *rest, **more: original(widened(scope), *rest, **more)


def statement(name: str, widened: Callable[[World, Scope], Scope] = _everything) -> Break:
    """One read statement whose scope is wider than it may be."""
    return Break(
        f"{name} is not scoped",
        lambda world: [(read_statements, name, _wider(getattr(read_statements, name), partial(widened, world)))],
    )


def everywhere(what: str, widened: Callable[[Scope], Scope], predicate: str = "memories_in") -> Break:
    """The predicate itself, in every statement that has it, is wider than it may be."""
    modules = (read_statements, postgres_search, sqlite_search)
    return Break(what, lambda _: [(m, predicate, _wider(getattr(m, predicate), widened)) for m in modules])


def without(what: str, name: str, condition: str) -> Break:
    """One read statement that lacks one of the predicate's conditions."""
    original: Function = getattr(read_statements, name)

    def stripped(*given: Any, **more: Any) -> sql_scope.Predicate:  # noqa: ANN401 - of the predicate
        found = sql_scope.memories_in(*given, **more)
        found.conditions = [each for each in found.conditions if condition not in each]
        return found

    def broken(*given: Any, **more: Any) -> Any:  # noqa: ANN401 - of the statement
        kept = read_statements.memories_in
        read_statements.memories_in = stripped
        try:
            return original(*given, **more)
        finally:
            read_statements.memories_in = kept

    return Break(what, lambda _: [(read_statements, name, broken)])


def _touch_anyone(_self: Principal, user_id: str) -> str:
    return user_id


def _as_supervisor(original: Function) -> Function:
    return lambda policy, _agent: original(policy, "supervisor")


NO_TENANT = without("a page of memories has lost its tenant", "page_of_memories", ".tenant_id =")
NO_USER = statement("page_of_memories", lambda _, scope: _any_user(scope))
NO_TENANT_SECURITY = Break("row-level security of memories is off", tables=("memories",))
NO_USER_SECURITY = Break("row-level security forgets users", unbound=("memories", "change_log", "thread_revision"))
ANY_USER_NAMED = Break("a bound key may name any user", lambda _: [(Principal, "touch", _touch_anyone)])
ANY_USER_S_CHANGES = statement("changes", lambda _, scope: _any_user(scope))
CANDIDATES = Break(
    "candidates are not scoped",
    lambda world: [
        (m, "memories_in", _wider(m.memories_in, partial(_everything, world))) for m in (postgres_search, sqlite_search)
    ],
)
NOT_FETCHED_IN_SCOPE = statement("memories_by_id")
LEAKS: tuple[tuple[Break, str], ...] = (
    (statement("page_of_memories"), "GET /v1/memories"),
    (statement("memories_by_id"), "GET /v1/memories/{memory_id}"),
    (
        Break(
            "events are not scoped",
            lambda world: [(tracking_reader, "_events", _wider(tracking_reader._events, partial(_everything, world)))],
        ),
        "GET /v1/events",
    ),
    (statement("memories_by_id"), "POST /v1/memories:batchGet"),
    (
        Break("turns are every agent's", lambda _: [(Policy, "allowlist", _as_supervisor(Policy.allowlist))]),
        "GET /v1/threads/{thread_id:text}/turns",
    ),
    (statement("related_memories"), "GET /v1/memories/{memory_id}/related"),
    (statement("changes"), "GET /v1/threads/{thread_id:text}/delta"),
    (statement("is_visible"), "GET /v1/memories/{memory_id}/history"),
    (statement("whole"), "GET /v1/memories/{memory_id}/timeline"),
    (statement("whole") & statement("is_visible"), "GET /v1/memories/{memory_id}/why"),
    (statement("entities"), "GET /v1/entities"),
    (statement("entities"), "GET /v1/entities/{entity_id}"),
    (
        statement("context", lambda world, scope: replace(_everything(world, scope), filters=scope.filters)),
        "GET /v1/users/{user_id:text}/context",
    ),
    (
        Break(
            "proposals lie in no store", lambda _: [(Policy, "visible", lambda _self, _trust: frozenset(Visibility))]
        ),
        "GET /v1/consents",
    ),
    (
        Break("proposals are every agent's", lambda _: [(Policy, "allowlist", _as_supervisor(Policy.allowlist))]),
        "GET /v1/consents",
    ),
    (
        Break("a state lies in no store", lambda _: [(Policy, "visible", lambda _self, _trust: frozenset(Visibility))]),
        "GET /v1/checkpoints/{thread_id:text}",
    ),
    (
        Break("a state is every agent's", lambda _: [(Policy, "allowlist", _as_supervisor(Policy.allowlist))]),
        "GET /v1/checkpoints/{thread_id:text}",
    ),
    (
        Break(
            "a history tells words of any category", lambda _: [(browse, "redact_entry", lambda entry, _scope: entry)]
        ),
        "GET /v1/memories/{memory_id}/history",
    ),
    (
        Break("a history tells words of any store", lambda _: [(browse, "_reaches", lambda _scope, _store: True)]),
        "GET /v1/memories/{memory_id}/history",
    ),
    (
        Break("trust levels are ignored", lambda _: [(scopes, "trust_levels", lambda _trust: TRUST)]),
        "GET /v1/memories",
    ),
    (
        Break("stores are ignored", lambda _: [(Policy, "visible", lambda _self, _trust: frozenset(Visibility))]),
        "POST /v1/memory/query",
    ),
    (
        Break("another agent's allowlist counts", lambda _: [(Policy, "allowlist", _as_supervisor(Policy.allowlist))]),
        "POST /v1/memory/query",
    ),
    (everywhere("what is deleted is shown", _any_state), "POST /v1/memory/query"),
    (everywhere("what is disputed is shown", _any_belief), "POST /v1/memory/query"),
    (without("what expired is shown", "page_of_memories", ".expires_at IS NULL"), "GET /v1/memories"),
    (
        everywhere(
            "turns are anybody's",
            lambda scope: replace(scope, turns=True, visibilities=frozenset(Visibility)),
            "turns_in",
        ),
        "POST /v1/memory/query",
    ),
)
"""Breaks that no second layer stops, and a route that leaks by each."""

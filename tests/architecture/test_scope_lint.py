"""No statement reads memories or turns past the scope predicate.

Two ways lead to a statement, and both are looked at in every adapter: SQL as text, which must hold ``{scope}`` and be
filled from the predicate, and SQLAlchemy Core, whose function must build the predicate or stand in the list below.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ADAPTERS = ROOT / "platform" / "memplane" / "adapters"

# Writes that the gateway has authorised, keyed by the transaction's tenant and by a record that the caller named or
# holds locked, and reads of what a scoped statement has found. Whoever adds one says why it needs no predicate.
KEYED = {
    "sql/queries/write_statements.py _ACTIVE_OF_USER": "the beginning of the two below",
    "sql/queries/write_statements.py SAME_VALUE": "finds the new memory itself, by its user and its value",
    "sql/queries/write_statements.py _NAMED_OR_SAME": "both halves of the one below",
    "sql/queries/write_statements.py SAME_NAME_OR_VALUE": (
        "finds the new memory itself, by its user and its value or name"
    ),
    "sql/queries/write_statements.py _STANDS": "the beginning of the two below",
    "sql/queries/write_statements.py _OF_VALUE": (
        "whether the new memory's value is taken; shows nothing of what took it"
    ),
    "sql/queries/write_statements.py _OF_NAME_OR_VALUE": "whether the new memory's value or name is taken",
    "sql/queries/write_statements.py REJECTED": (
        "values that nobody may say again, by user and category; shown to nobody"
    ),
    "sql/stores/gateway_stores.py SqlTombstones.rejected_at": "of a verdict that the caller may lift, by its user",
    "sql/queries/write_statements.py LAST_RECORDED": "when a user whom the caller may write was written to last",
    "sql/stores/gateway_stores.py SqlGraph.conflicts": "of memories that a scoped read has brought; only counted",
    "sql/queries/write_statements.py PAST_OF_NAME": (
        "finds what the new memory was, by its user and its name; shown in scope"
    ),
    "sql/queries/write_statements.py replacing": "stores a memory that `lock` has found through the predicate",
    "sql/stores/memory_stores.py SqlMemories.share_material": (
        "of a memory that a scoped read has found, for a part of it; not shown"
    ),
    "sql/stores/memory_stores.py SqlThreads.release_names": "takes names from turns that `existing_turns` has found",
    "sql/stores/memory_stores.py SqlThreads.existing_turns": (
        "finds by the caller's own names for turns that it may write"
    ),
    "sql/stores/memory_stores.py SqlJournal.count_accesses": (
        "counts ids that a scoped read has returned, and returns nothing"
    ),
    "sql/stores/turn_deletions.py SqlRemovals.lock": "locks a turn that a scoped read has brought, by its user too",
    "sql/stores/turn_deletions.py SqlRemovals.turns_of": (
        "other turns of facts that follow a deleted one; shown to nobody"
    ),
    "sql/stores/turn_deletions.py SqlRemovals.remove": "removes a turn that `lock` has locked",
    "sql/stores/jobs/upkeep.py SqlUpkeep.purge": (
        "removes memories that are locked, found through the predicate or by a job"
    ),
    "sql/stores/activity.py SqlActivity._been_away": "when users of a write were last there; shown to nobody",
    "sql/stores/user_settings.py SqlUsage.of_user": (
        "numbers of what is stored of a user whom the caller may touch; no memory"
    ),
    "sql/stores/user_settings.py tenant_usage": "numbers of what is stored in the tenant; no memory",
    "sql/stores/jobs/upkeep.py _may_fade": "a condition of the two statements of the work of the night",
    "sql/stores/jobs/upkeep.py _holds_a_field": "a condition of the two statements of the work of the night",
    "sql/stores/jobs/upkeep.py SqlUpkeep.users_of_derived": (
        "names users to lock, whose memories rest on sources; shown to nobody"
    ),
    "sql/stores/jobs/upkeep.py SqlUpkeep.lock_derived": (
        "what follows a source that the caller deletes, wherever it is; not shown"
    ),
    "sql/stores/jobs/upkeep.py SqlUpkeep.due": "the work of the night, on all of a tenant; shown to nobody",
    "sql/stores/jobs/upkeep.py SqlUpkeep._locked": "of what `due` or `weighed` has found, for the work of the night",
    "sql/stores/jobs/upkeep.py SqlUpkeep._set": "changes memories that `_locked` has locked",
    "sql/stores/jobs/upkeep.py SqlUpkeep.next_crowded_user": "names users to the work of the night; shown to nobody",
    "sql/stores/jobs/upkeep.py SqlUpkeep.weigh_memories": "numbers of a user's memories, for the work of the night",
    "sql/stores/jobs/upkeep.py SqlUpkeep.tally": "counts and averages over a tenant, for its operator",
    "sql/stores/jobs/enrichments.py SqlEnrichments._unseen": (
        "the work of the night, on all of a tenant; shown to nobody"
    ),
    "sql/stores/jobs/enrichments.py SqlEnrichments.mark": "notes at memories that `lock` has locked who looked at them",
    "sql/stores/jobs/text_repairs.py SqlTextRepairs.find_vanished": (
        "whether what a memory rests on is there; shown to nobody"
    ),
    "sql/stores/jobs/text_repairs.py SqlTextRepairs.rest_on": "changes memories that `lock` has locked",
    "sql/stores/jobs/text_repairs.py SqlTextRepairs._memories": (
        "of what the work of the night has found; shown to nobody"
    ),
    "sql/stores/jobs/graph_repairs.py _joins": (
        "whether a relation joins memories of one user, within a statement; shown to nobody"
    ),
    "sql/stores/jobs/graph_repairs.py _names": "the same of a memory and an entity",
    "sql/stores/jobs/graph_repairs.py SqlRepairs.relations": (
        "whose the ends of relations are, for the work of the night"
    ),
    "sql/stores/jobs/graph_repairs.py SqlRepairs.mentions": (
        "whose memories mention entities, for the work of the night"
    ),
    "sql/stores/jobs/graph_repairs.py SqlRepairs.placings": "places of a tenant's memories, for the work of the night",
    "sql/stores/jobs/graph_repairs.py SqlRepairs.around": (
        "vectors of users whom `placings` has found, for the work of the night"
    ),
    "sql/stores/jobs/co_recalls.py SqlCoRecalls._users": (
        "whose memories are that a scoped read has returned; shown to nobody"
    ),
    "sql/stores/jobs/co_recalls.py SqlCoRecalls.users": "names users to the work of the night; shown to nobody",
    "sql/stores/jobs/co_recalls.py SqlCoRecalls.of": (
        "counts of pairs of users, for the work of the night; shown to nobody"
    ),
    "postgres/scope_cache.py freshen": "says that units changed which the work of the night has locked",
    "sql/stores/session_closings.py SqlClosings.began_at": "when a thread began whose turns a scoped read has brought",
    "sql/stores/session_closings.py SqlClosings.unread": (
        "turns of closed conversations, for the work of the night; shown to nobody"
    ),
    "sql/stores/session_closings.py SqlClosings.remaining": (
        "which of the turns that `unread` has brought are still there"
    ),
    "sql/stores/session_closings.py SqlClosings.resting": (
        "reads how many turns a thread has, for the work of the night"
    ),
    "sql/stores/jobs/pairs.py SqlPairs.next_user": "names a user to the work of the night; shown to nobody",
    "sql/stores/jobs/pairs.py SqlPairs.recent_facts": "numbers of a user's memories, for the work of the night",
    "sql/stores/jobs/pairs.py SqlPairs.candidates": "of what `glanced` has found, for the work of the night",
    "sql/stores/jobs/job_users.py SqlJobUsers.due": (
        "names users to the work of the night, and their threads; shown to nobody"
    ),
    "sql/stores/jobs/job_users.py SqlJobUsers._memories": "names users to the work of the night; shown to nobody",
    "sql/stores/jobs/job_users.py SqlJobUsers._turns": "the same of turns",
    "sql/stores/jobs/job_users.py SqlJobUsers.there": (
        "which turns of a user, whom a scoped read has brought, are still there"
    ),
    "sql/stores/portable_store.py SqlPortableStore.holders": "whose an id of an import is; shown to nobody",
    "sql/stores/portable_store.py SqlPortableStore.speakers": "whose a turn's id of an import is; shown to nobody",
    "sql/stores/portable_store.py SqlPortableStore.rivals": (
        "how heavy those are that hold values of an import's own user"
    ),
    "sql/stores/vectors.py SqlVectors.count": "counts what there is of a tenant, for its operator",
    "postgres/scope_cache.py horizon": "says which transaction was the last to change a unit, and nothing of the unit",
    "postgres/scope_cache.py changed_units": (
        "names units of the user that leave what is remembered of a scope; shown to nobody"
    ),
    "postgres/session.py _flushing": "counts the rows that the same statement added",
    "postgres/session.py _adding": "adds rows that the gateway has authorised, and reads them from its parameter alone",
    "sqlite/values.py SqliteSyntax.rows_by_ids": "is the FROM of a statement; the statement carries the predicate",
    "sql/stores/erasures.py SqlErasures.memories": "all of a user who is being erased; shown to nobody",
    "sql/stores/erasures.py SqlErasures.turns": "the same of turns",
    "sql/stores/erasures.py SqlErasures.derived_from": (
        "what was derived from a user who is being erased; shown to nobody"
    ),
    "sql/stores/erasures.py SqlErasures.count": "counts what there is of a user, for a fully trusted administrator",
    "sql/stores/erasures.py SqlErasures.users": "names users to the replay of erasures; shown to nobody",
    "sql/stores/user_merges.py SqlUserMerges.active": (
        "what a user rejects who is merged into this one; shown to nobody"
    ),
    "sql/stores/user_merges.py SqlUserMerges.versions": "numbers of memories that a merge has moved",
    "sql/stores/user_merges.py Moving.memories": "memories of a user that is merged, for a fully trusted administrator",
    "sql/stores/user_merges.py Moving.threads": "the same of turns",
    "sql/stores/user_unmerges.py TakingBack._threads": "gives turns back that a merge has moved",
    "sql/stores/user_unmerges.py TakingBack._continued": "how many turns threads have that a merge has moved",
    "sql/stores/user_unmerges.py TakingBack._memories": "gives memories back that a merge has moved",
    "sql/stores/user_unmerges.py TakingBack._unchanged": "which of them nobody has changed since",
    "sql/stores/user_unmerges.py TakingBack._entities": "whose memories mention an entity; shown to nobody",
    "sql/stores/user_unmerges.py TakingBack._unlink": "whose memories a relation ends at; shown to nobody",
    "sql/stores/reverts.py SqlReverts.users": "names users of whom a writer wrote, for a fully trusted administrator",
    "sql/stores/reverts.py SqlReverts.turns": "turns that are taken back, by their key; shown to nobody",
    "sql/stores/reverts.py SqlReverts.memories": (
        "of what the history of a writer names, for a fully trusted administrator"
    ),
    "sql/stores/reverts.py SqlReverts.ended_by": (
        "memories in whose place are those that are taken back; shown to nobody"
    ),
    "sql/stores/reverts.py SqlReverts.changed_since": "what stands beside memories that come back; shown to nobody",
    "sql/stores/reverts.py SqlReverts.holding": "whether values and names of memories that come back are taken",
    "sql/stores/reverts.py SqlReverts.rejected_memories": "values that nobody may say again, by user; shown to nobody",
    "sql/stores/reverts.py SqlReverts.replace": "stores memories that `memories` has locked",
    "sql/stores/reverts.py SqlReverts.remove_turns": "removes turns that `turns` has found",
    "sql/stores/reverts.py SqlReverts.unfold": "which of the memories of an undo record are still there",
    "postgres/tenant_removal.py RemoveTenant._emptied": "all of a tenant that is being removed; shown to nobody",
    "sqlite/search.py _load": "reads by row numbers that a scoped statement of this transaction has found",
}

# the tables by name, or by a gap that may be filled with one
READ = re.compile(
    r"(?i:\b(?:FROM|JOIN|UPDATE|USING)\s+(?:ONLY\s+)?(?:public\.)?(?:memories|turns)(?!\w))|\b(?:FROM|JOIN|UPDATE)\s+\{"
)
PREDICATES = {"memories_in", "turns_in"}
READING_CALLS = {"select", "update", "delete"}
TABLES = {"memories", "turns"}


def text_of(node: ast.expr) -> str | None:
    """A text as written, with its gaps in braces."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = (
            part.value if isinstance(part, ast.Constant) else "{" + ast.unparse(part)[2:-1].strip("{}") + "}"
            for part in node.values
        )
        return "".join(str(part) for part in parts)
    return None


def statements(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Texts that read one of the tables."""
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.expr) and id(node) not in inside:
            text = text_of(node)
            if text is not None and READ.search(text):
                yield node.lineno, text


def functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Top-level functions and methods, with what is nested in them, by qualified name."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from functions(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + node.name, node


def called(tree: ast.AST) -> set[str]:
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    return {func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "") for func in calls}


def reads_by_core(function: ast.AST) -> bool:
    tables = (
        node.attr for node in ast.walk(function) if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    )
    return bool(READING_CALLS & called(function)) and bool(TABLES & set(tables))


def predicates_given(function: ast.AST) -> set[str]:
    """Names of the parameters that are a predicate."""
    return {
        argument.arg
        for node in ast.walk(function)
        if isinstance(node, ast.arguments)
        for argument in node.args + node.kwonlyargs
        if argument.annotation is not None and ast.unparse(argument.annotation) == "Predicate"
    }


def fillings(function: ast.AST) -> list[ast.expr]:
    """What a function puts in the place of ``{scope}``."""
    return [
        keyword.value
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format"
        for keyword in node.keywords
        if keyword.arg == "scope"
    ]


def texts_used(function: ast.AST, constants: dict[str, str]) -> list[str]:
    """Texts that read one of the tables, written in a function or named by it."""
    named = [constants[node.id] for node in ast.walk(function) if isinstance(node, ast.Name) and node.id in constants]
    return named + [text for _, text in statements(function)]


def reading_constants(tree: ast.Module) -> dict[str, str]:
    """The module's texts that read one of the tables, by name."""
    return {
        target.id: text
        for node in tree.body
        if isinstance(node, ast.Assign)
        for _, text in statements(node)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def core_constants(tree: ast.Module) -> dict[str, str]:
    """The module's own Core statements that read one of the tables, by name, each with those that it is built on."""
    touching: set[str] = set()
    found: dict[str, str] = {}
    for node in tree.body:
        if not isinstance(node, ast.Assign):
            continue
        text = ast.unparse(node.value)
        used = {part.id for part in ast.walk(node.value) if isinstance(part, ast.Name)}
        if used & touching or re.search(r"\btables\.(?:memories|turns)\b", text):
            names = {part.id for target in node.targets for part in ast.walk(target) if isinstance(part, ast.Name)}
            touching |= names
            if READING_CALLS & called(node.value) or used & set(found):
                found |= dict.fromkeys(names, text + "".join(found[name] for name in used & set(found)))
    return found


def unguarded(function: ast.AST, constants: dict[str, str]) -> list[str]:
    """Why a function reads past the predicate; empty when it does not."""
    built, given = bool(PREDICATES & called(function)), predicates_given(function)
    texts = texts_used(function, constants)
    why = ["a text without {scope}" for text in texts if "{scope}" not in text]
    if texts and not (built or given):
        why.append("a text without the predicate")
    for value in fillings(function):
        of = value.value if isinstance(value, ast.Attribute) and value.attr == "sql" else None
        if of is None or not (built or (isinstance(of, ast.Name) and of.id in given)):
            why.append("{scope} filled with something else")
    if reads_by_core(function) and not built:
        why.append("a read without the predicate")
    return why


def faults(source: str, name: str, keyed: set[str]) -> list[str]:
    """What in a module reads memories or turns past the predicate; ``keyed`` receives the listed functions met."""
    tree = ast.parse(source)
    constants = reading_constants(tree)
    used = [text for _, function in functions(tree) for text in texts_used(function, constants)]
    found = [f"{name}:{line}: a text that no function uses" for line, text in statements(tree) if text not in used]
    for qualified, function in functions(tree):
        where, why = f"{name} {qualified}", unguarded(function, constants)
        if why and where in KEYED:
            keyed.add(where)
            why = [] if "tenant_id" in ast.unparse(function) or not reads_by_core(function) else ["not keyed by tenant"]
        found += [f"{where}: {reason}" for reason in why]
    for constant, text in core_constants(tree).items():
        where = f"{name} {constant}"
        if where in KEYED:
            keyed.add(where)
        if where not in KEYED or "tenant_id" not in text:
            found.append(f"{where}: a statement of the module without the predicate, or not keyed by tenant")
    return found


def test_every_statement_carries_the_scope_predicate() -> None:
    keyed: set[str] = set()
    found = [
        fault
        for path in sorted(ADAPTERS.rglob("*.py"))
        for fault in faults(path.read_text(), path.relative_to(ADAPTERS).as_posix(), keyed)
    ]
    assert found == []
    assert keyed == set(KEYED)  # the list holds nothing that is no longer there


def test_there_is_sql_in_adapters_alone() -> None:
    others = [path for path in sorted(ADAPTERS.parent.rglob("*.py")) if not path.is_relative_to(ADAPTERS)]
    sql = re.compile(r"\b(?:SELECT|INSERT INTO|UPDATE|DELETE FROM)\b.*\b(?:FROM|VALUES|SET|WHERE)\b", re.DOTALL)
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in others
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.expr) and sql.search(text_of(node) or "")
    ]
    assert found == []


def test_the_search_finds_the_statements_that_there_are() -> None:
    texts = [text for path in ADAPTERS.rglob("*.py") for text in statements(ast.parse(path.read_text()))]
    assert len(texts) >= 8


PLANTED = {
    "text": 'SQL = "SELECT id FROM memories m WHERE m.tenant_id = 1"\ndef read(s): return SQL, memories_in(s, SYNTAX)',
    "text over a table's name": 'SQL = "SELECT id FROM {table} WHERE {page}"',
    "text of turns, joined": 'SQL = "SELECT 1 FROM change_log c JOIN turns t ON t.id = c.memory_id"',
    "text with gaps": 'def read(page): return f"SELECT id FROM turns WHERE {page}"',
    "scope from somewhere else": 'def read(sql): return "SELECT id FROM memories WHERE {scope}".format(scope=sql)',
    "a scope made by hand": (
        'SQL = "SELECT id FROM memories WHERE {scope}"\n'
        "def read(tenant): return fill(SQL, Predicate(SYNTAX, values={'tenant': tenant}))"
    ),
    "core": "class Store:\n  async def read(self): return sa.select(tables.memories.c.id)",
    "core through an alias": "def read():\n  m = tables.memories.c\n  return sa.select(m.id).where(m.id == 1)",
    "core, of the module": "_M = tables.memories.c\nALL = sa.select(_M.id).where(_M.tenant_id == 1)",
    "core, changing": "def read(): return sa.delete(tables.turns)",
}
ALLOWED = {
    "text with the predicate": (
        'SQL = "SELECT id FROM memories m WHERE {scope}"\n'
        "def read(scope): return SQL.format(scope=memories_in(scope, SYNTAX).sql)"
    ),
    "a predicate that is handed on": (
        'SQL = "SELECT id FROM memories m WHERE {scope}"\n'
        "def fill(template: str, allowed: Predicate): return template.format(scope=allowed.sql)\n"
        "def read(scope): return fill(SQL, memories_in(scope, SYNTAX))"
    ),
    "core with the predicate": "def read(s): return sa.select(tables.memories).where(sa.text(memories_in(s).sql))",
    "an insert": "def add(): return sa.insert(tables.memories)",
    "another table": 'SQL = "SELECT 1 FROM memory_entities"',
}


@pytest.mark.parametrize("source", PLANTED.values(), ids=PLANTED)
def test_a_read_past_the_predicate_is_found(source: str) -> None:
    assert faults(source, "planted.py", set())


@pytest.mark.parametrize("source", ALLOWED.values(), ids=ALLOWED)
def test_a_read_through_the_predicate_is_not(source: str) -> None:
    assert not faults(source, "planted.py", set())

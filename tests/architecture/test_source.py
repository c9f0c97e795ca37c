"""Habits of the source text: every exception to a rule says why, and databases are told apart in one place only."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("platform", "alembic", "tests", "benchmarks", "examples")
DIRECTIVE = re.compile(
    r"type:\s*ignore(?:\[(?P<types>[^\]]*)\])?|noqa(?::\s*(?P<rules>[A-Z]+\d+(?:\s*,\s*[A-Z]+\d+)*))?"
)
MAY_ASK_FOR_THE_DIALECT = ("platform/memplane/adapters/", "alembic/")


def sources(*folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from (path for path in sorted((ROOT / folder).rglob("*.py")) if "__pycache__" not in path.parts)


def comments(text: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def faults(text: str) -> list[str]:
    """Ignores that name no rule, or give no reason beside them."""
    found = []
    for line, comment in comments(text):
        directives = list(DIRECTIVE.finditer(comment))
        if not directives:
            continue
        unnamed = any(not (directive["types"] or directive["rules"]) for directive in directives)
        reason = DIRECTIVE.sub("", comment)
        if unnamed or not re.search(r"[^\W\d_]{3,}", reason):
            found.append(f"{line}: {comment}")
    return found


def test_every_ignore_names_its_rule_and_its_reason() -> None:
    wrong = {str(path.relative_to(ROOT)): faults(path.read_text()) for path in sources(*FOLDERS)}
    assert {path: found for path, found in wrong.items() if found} == {}


@pytest.mark.parametrize(
    "line",
    [
        "x = 1  # noqa",
        "x = 1  # noqa: E501",
        "x = 1  # noqa: E501, S101 -",
        "x = 1  # type: ignore",
        "x = 1  # type: ignore[misc]",
        "x = 1  # type: ignore # the library has no types",
        "x = 1  # type: ignore[misc]  # noqa: E501",
    ],
)
def test_an_ignore_without_rule_or_reason_is_found(line: str) -> None:
    assert faults(line)


@pytest.mark.parametrize(
    "line",
    [
        "x = 1  # noqa: E501 - a link",
        "x = 1  # type: ignore[misc]  # the library has no types",
        "x = 1  # type: ignore[misc]  # noqa: E501 - the two overloads",
        'x = "# noqa"',
    ],
)
def test_an_ignore_with_both_is_not(line: str) -> None:
    assert not faults(line)


def asks_for_dialect(text: str) -> bool:
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == "name"
        and (node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")) == "dialect"
        for node in ast.walk(ast.parse(text))
    )


def test_only_adapters_and_migrations_ask_which_database_it_is() -> None:
    asking = {
        path.relative_to(ROOT).as_posix()
        for path in sources("platform", "alembic")
        if asks_for_dialect(path.read_text())
    }
    assert asking  # the search does find some
    assert {path for path in asking if not path.startswith(MAY_ASK_FOR_THE_DIALECT)} == set()


def naive_times(text: str) -> list[str]:
    """Where a time may come to be without a zone: by a zone that may be none, or from a text that may have none.

    ruff's DTZ rules see only what is written out.
    """
    tree = ast.parse(text)
    exempt = {
        node
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef) and function.name == "instant"
        for node in ast.walk(function)
    }
    found = []
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call) and node not in exempt):
        name = ast.unparse(call.func)
        zones = [each.value for each in call.keywords if each.arg == "tzinfo"]
        parsed = name.endswith("datetime.fromisoformat")
        if parsed or any(not _is_zone(zone) for zone in zones):
            found.append(f"{call.lineno}: {ast.unparse(call)}")
    return found


def _is_zone(zone: ast.expr) -> bool:
    """Whether it is UTC, another time's own, or UTC at least."""
    if isinstance(zone, ast.BoolOp) and isinstance(zone.op, ast.Or):
        zone = zone.values[-1]
    return ast.unparse(zone) == "UTC" or (isinstance(zone, ast.Attribute) and zone.attr == "tzinfo")


def test_every_time_of_rules_and_use_cases_has_a_zone() -> None:
    folders = ("platform/memplane/domain", "platform/memplane/application")
    wrong = {path.relative_to(ROOT).as_posix(): naive_times(path.read_text()) for path in sources(*folders)}
    assert {path: found for path, found in wrong.items() if found} == {}


@pytest.mark.parametrize(
    "line",
    [
        "datetime(2023, 5, 1, tzinfo=zone)",
        "moment.replace(tzinfo=None)",
        "datetime(2023, 5, 1, tzinfo=when.tzinfo if when else None)",
        "datetime.fromisoformat(text)",
    ],
)
def test_a_time_that_may_have_none_is_found(line: str) -> None:
    assert naive_times(line)


@pytest.mark.parametrize(
    "line",
    [
        "datetime(2023, 5, 1, tzinfo=UTC)",
        "datetime(2023, 5, 1, tzinfo=today.tzinfo)",
        "datetime(2023, 5, 1, tzinfo=(when.tzinfo if when else None) or UTC)",
        "def instant(text):\n    return datetime.fromisoformat(text)",
        "date.fromisoformat(text)",
    ],
)
def test_a_time_that_has_one_is_not(line: str) -> None:
    assert not naive_times(line)

"""The one tree of errors: every error stands in it, with a code of its own and a status that somebody chose."""

import importlib
import pkgutil
import re
from collections.abc import Iterator

import pytest

import memplane
from memplane.domain import errors
from memplane.entrypoints.http.middleware import problems

# What a caller cannot mend: the details are for the operator's log.
OPERATORS = (errors.PolicyError, errors.SettingsError, errors.StorageError)


def tree(root: type[errors.MemplaneError] = errors.MemplaneError) -> Iterator[type[errors.MemplaneError]]:
    yield root
    for child in root.__subclasses__():
        yield from tree(child)


@pytest.fixture(scope="module", autouse=True)
def _everything_imported() -> None:
    for module in pkgutil.walk_packages(memplane.__path__, "memplane."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def test_every_error_is_exported_by_the_tree_s_own_module() -> None:
    assert {kind.__module__ for kind in tree()} == {errors.__name__}
    assert {getattr(errors, kind.__name__, None) for kind in tree()} == set(tree())
    assert not any(kind.__name__.startswith("_") for kind in tree())


def test_every_error_has_a_code_of_its_own() -> None:
    codes = [vars(kind).get("code") for kind in tree()]
    assert len(codes) > 20
    assert len(set(codes)) == len(codes)
    assert all(code and re.fullmatch("[a-z]+(_[a-z]+)*", code) for code in codes)


def status(kind: type[errors.MemplaneError]) -> int:
    """The status that the first fitting row of the table gives."""
    return next(found for row, (found, _) in problems.STATUS.items() if issubclass(kind, row))


def test_only_what_a_caller_cannot_mend_is_an_internal_error() -> None:
    internal = {kind for kind in tree() if status(kind) == 500}
    elsewhere = {
        errors.StorageUnavailable,
        errors.StorageFull,
        errors.EmbeddingMismatch,
    }  # or later: another server may do it
    assert internal - {errors.MemplaneError} == {kind for kind in tree() if issubclass(kind, OPERATORS)} - elsewhere


def test_no_row_of_the_status_table_is_hidden_by_an_earlier_one() -> None:
    rows = list(problems.STATUS)
    hidden = [later for place, later in enumerate(rows) if any(issubclass(later, row) for row in rows[:place])]
    assert hidden == []

"""Names: the field's nouns and verbs, each public class name once."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

import memplane

PACKAGE = Path(memplane.__file__).parent
LANGUAGE = PACKAGE / "domain" / "language"
"""Is replaced by one reader of sentences, which counts from then on."""
ON_THE_WIRE = {"Extracted", "Recovered", "Purged", "Unauthenticated"}
"""Names of documents in the OpenAPI description, and of an error of the client."""
COMMANDS = {"related"}
"""The word of the command line, and the route of the same name."""
LIKE_A_VERB = {"read", "put", "cut", "set", "let", "fit", "split", "embed", "need", "seed", "feed", "exceed", "proceed"}
"""A verb's first form, or no participle at all."""
IRREGULAR = frozenset({
    "begun", "bound", "bought", "broken", "brought", "built", "buried", "caught", "chosen", "done", "drawn", "dug",
    "fed", "felt", "forgotten", "found", "given", "gone", "heard", "held", "hidden", "hit", "kept", "known", "laid",
    "led", "left", "lost", "made", "meant", "met", "paid", "said", "seen", "sent", "shown", "sold", "spent", "spoken",
    "stood", "stuck", "taken", "thought", "told", "torn", "understood", "won", "written",
})  # fmt: skip


def participle(name: str) -> bool:
    """Whether a name is one word, and that word a past participle."""
    word = name.lower() if re.fullmatch(r"[A-Z][a-z]+|[a-z]+", name) else ""
    return word not in LIKE_A_VERB and (word in IRREGULAR or word.endswith("ed"))


def public(path: Path) -> Iterator[tuple[str, bool]]:
    """Public classes, functions and methods that are no properties, and whether each is a class of the module."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            yield node.name, isinstance(node, ast.ClassDef)
            for part in node.body if isinstance(node, ast.ClassDef) else ():
                if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef) and not part.decorator_list:
                    yield part.name, False


def test_no_public_name_is_a_bare_participle() -> None:
    bare = {
        f"{path.relative_to(PACKAGE)}: {name}"
        for path in PACKAGE.rglob("*.py")
        if not path.is_relative_to(LANGUAGE)
        for name, _ in public(path)
        if participle(name) and name not in ON_THE_WIRE | COMMANDS
    }
    assert bare == set()


def test_each_public_class_name_is_used_once() -> None:
    places = defaultdict(list)
    for path in PACKAGE.rglob("*.py"):
        for name, is_class in public(path):
            if is_class:
                places[name].append(str(path.relative_to(PACKAGE)))
    assert len(places) > 900
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


def test_no_folder_has_more_than_25_modules() -> None:
    folders = {folder: len(list(folder.glob("*.py"))) for folder in PACKAGE.rglob("*") if folder.is_dir()}
    assert {str(folder.relative_to(PACKAGE)): count for folder, count in folders.items() if count > 25 + 1} == {}


@pytest.mark.parametrize(
    ("name", "bare"),
    [("told", True), ("Placed", True), ("asked", True), ("read", False), ("parse_query", False), ("ScoredUnit", False)],
)
def test_what_counts_as_a_participle(name: str, bare: bool) -> None:
    assert participle(name) is bare

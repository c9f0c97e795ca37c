"""No request is without end: every text, list and map that a caller may send has a bound in the OpenAPI document."""

from collections.abc import Callable, Iterator
from typing import Annotated, Any

import pytest
from fastapi import FastAPI, Query
from pydantic import BaseModel

from memplane.bootstrap import Application
from memplane.entrypoints.http.app import create_app
from memplane.settings import Settings

Json = dict[str, Any]
OF_FIXED_LENGTH = frozenset({"uuid", "date-time"})


def unbounded(document: Json) -> list[str]:
    """Where a request may hold a text, list, map or number without a bound."""
    return [fault for name, schema in requests(document) for fault in faults(document, schema, name, frozenset())]


def faults(document: Json, schema: Json, place: str, inside: frozenset[str]) -> Iterator[str]:
    """What has no bound in a schema and in those that it is made of."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if name not in inside:
            yield from faults(document, document["components"]["schemas"][name], place, inside | {name})
        return
    kind = schema.get("type")
    if kind in BOUNDED and not BOUNDED[kind](schema):
        yield f"{place}: {NAMES[kind]}"
    parts = [(place, each) for word in ("anyOf", "allOf", "oneOf") for each in schema.get(word, ())]
    parts += [(f"{place}.{name}", member) for name, member in schema.get("properties", {}).items()]
    parts += [(f"{place}[]", schema["items"])] if "items" in schema else []
    for where, part in parts:
        yield from faults(document, part, where, inside)


def _bounded_text(schema: Json) -> bool:
    named = bool({"enum", "const", "maxLength"} & schema.keys())
    return named or schema.get("format") in OF_FIXED_LENGTH or schema.get("pattern", "").endswith("}$")


def _bounded_number(schema: Json) -> bool:
    return all({f"{end}imum", f"exclusive{end.title()}imum"} & schema.keys() for end in ("min", "max"))


NAMES = {"string": "a text", "array": "a list", "object": "a map", "integer": "a number", "number": "a number"}
BOUNDED: dict[str, Callable[[Json], bool]] = {
    "string": _bounded_text,
    "array": lambda schema: "maxItems" in schema,
    "object": lambda schema: schema.get("additionalProperties", True) is False or "maxProperties" in schema,
    "integer": _bounded_number,
    "number": _bounded_number,
}


def requests(document: Json) -> Iterator[tuple[str, Json]]:
    """Every schema that a request is held to, with its place."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            for parameter in operation.get("parameters", ()):
                yield f"{method} {path} {parameter['name']}", parameter["schema"]
            for content in operation.get("requestBody", {}).get("content", {}).values():
                yield f"{method} {path}", content["schema"]


def test_everything_that_can_be_sent_has_a_bound() -> None:
    wired = Application(Settings(), "postgresql://nobody@127.0.0.1:1/none")
    document = create_app(wired, max_body_bytes=100_000).openapi()
    wired.embedder.close()
    assert len(list(requests(document))) > 40
    assert sorted(set(unbounded(document))) == []


class Free(BaseModel):
    """A message without any bound."""

    text: str
    names: list[str]
    more: dict[str, int]
    number: int
    maybe: str | None = None


@pytest.mark.parametrize("what", ["text", "list", "map", "number"])
def test_what_has_none_is_found(what: str) -> None:
    app = FastAPI()

    @app.post("/free")
    def free(body: Free, tag: Annotated[list[str] | None, Query()] = None) -> None:
        del body, tag

    found = unbounded(app.openapi())
    assert any(f"a {what}" in place for place in found)
    assert "post /free.maybe: a text" in found
    assert "post /free tag: a list" in found

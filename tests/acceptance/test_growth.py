"""No route that takes text does work that grows faster than the text, and none takes more than a second."""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from time import process_time
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from memplane.application.memories import service
from memplane.domain.identity.principal import KeyScope
from support.access_matrix import ACCESS
from support.callers import Caller, Tenant
from support.growing import Make, grown, growth
from support.serving import RunningServer

Json = dict[str, Any]
MEMORY, PARTS, LONGEST_NAME = "/v1/memories/{memory_id}", 50, 255
SIZE = 16_000
"""Characters of the longest text of one field; a list has as many in fifty parts."""
LONGER = {"query": 8_000, "message": 100_000, "title": 200}
"""The same of fields that take more, or less."""
SPOKEN = "The hall is booked."
TEXT_ROUTES: Mapping[str, tuple[str, ...]] = {
    "POST /v1/memory/query": ("query",),
    "POST /v1/context": ("message",),
    "POST /v1/turns": ("text",),
    "POST /v1/turns:batch": ("turns[].text",),
    "POST /v1/memories": (
        "content", "title", "narrative", "facts[]", "steps[]", "related_files[]", "lang", "attributes{}",
    ),
    f"PATCH {MEMORY}": (
        "content", "title", "narrative", "facts[]", "steps[]", "related_files[]", "lang", "attributes{}",
    ),
    f"POST {MEMORY}/correct": ("content", "title", "narrative", "facts[]", "lang"),
    "POST /v1/observations": ("outcome", "arguments{}", "files[]"),
    "PUT /v1/checkpoints/{thread_id:text}": ("graph{}", "memory{}", "conversation[]{}", "agents{}"),
    "POST /v1/users/{user_id:text}/import": ("lines[]",),
    "POST /v1/shared/import": ("lines[]",),
    "POST /v1/admin/policy/check": ("files{}",),
}  # fmt: skip
"""Fields of requests that take more text than a name has, by route."""
CASES = [(route, field) for route, fields in TEXT_ROUTES.items() for field in fields]
BODIES = {f"{access.method} {access.path}": access.body for access in ACCESS if access.body is not None}


def text_fields(document: Json, schema: Json, path: str = "", within: tuple[str, ...] = ()) -> Iterator[str]:
    """Where a request of a schema has text of any form that is longer than a name, or anything at all."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        if name not in within:
            yield from text_fields(document, document["components"]["schemas"][name], path, (*within, name))
        return
    for each in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())):
        yield from text_fields(document, each, path, within)
    kind = schema.get("type")
    if kind is None and schema.keys().isdisjoint({"anyOf", "oneOf", "allOf", "enum", "const"}):
        yield path
    elif kind == "string" and schema.keys().isdisjoint({"format", "enum", "const"}):
        yield from [path] if schema.get("maxLength", math.inf) > LONGEST_NAME else []
    for place, part in parts_of(schema, path):
        yield from text_fields(document, part, place, within)


def parts_of(schema: Json, path: str) -> Iterator[tuple[str, Json]]:
    """The parts of a list or an object, with their places."""
    if "items" in schema:
        yield f"{path}[]", schema["items"]
    for name, each in schema.get("properties", {}).items():
        yield f"{path}.{name}".lstrip("."), each
    if more := schema.get("additionalProperties"):
        yield f"{path}{{}}", more if isinstance(more, dict) else {}


def declared(document: Json) -> dict[str, tuple[str, ...]]:
    """The fields that take text, by route, as the OpenAPI document has them."""
    found = {
        f"{method.upper()} {path}": tuple(
            dict.fromkeys(
                field
                for content in operation.get("requestBody", {}).get("content", {}).values()
                for field in text_fields(document, content["schema"])
            )
        )
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    }
    return {route: fields for route, fields in found.items() if fields}


def test_every_route_that_takes_text_is_measured(server: RunningServer) -> None:
    document = server.client.get("/openapi.json").json()
    named = {route.replace(":text}", "}"): sorted(fields) for route, fields in TEXT_ROUTES.items()}
    assert {route: sorted(fields) for route, fields in declared(document).items()} == named


def test_a_route_that_is_not_is_noticed(server: RunningServer) -> None:
    """The control: a field and a route that came later."""
    document = server.client.get("/openapi.json").json()
    document["components"]["schemas"]["NewMemoryRequest"]["properties"]["remark"] = {"type": "string"}
    schema = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 80}, "words": {}}}
    body = {"content": {"application/json": {"schema": schema}}}
    document["paths"]["/v1/later"] = {"post": {"requestBody": body}}
    assert "remark" in declared(document)["POST /v1/memories"]
    assert declared(document)["POST /v1/later"] == ("words",)


def filled(route: str, field: str, text: str, user: str) -> Json:
    """A request of a route that is right, with a text in one of its fields."""
    body = BODIES[route]("tasks")
    if "user_id" in body:
        body["user_id"] = user
    name = field.rstrip("[]{}")
    parts = [part for start in range(PARTS) if (part := text[start * len(text) // PARTS :][: -(-len(text) // PARTS)])]
    if name == "turns[].text":
        return {"turns": [body["turns"][0] | {"user_id": user, "text": part} for part in parts]}
    if name == "lines":
        lines = [{"record": "memory", "category": "tasks", "content": SPOKEN, "narrative": text}]
        return {"lines": [json.dumps(each) for each in lines]}
    if name == "steps":
        body |= {"type": "procedural"} if route.startswith("POST") else {}
    value: object = text
    if field.endswith("[]{}"):
        value = [{"content": part} for part in parts]
    elif field.endswith("[]"):
        value = parts
    elif field == "files{}":
        value = {"trust.yaml": text}
    elif field.endswith("{}"):
        value = {"note": {"text": text}}
    return body | {name: value}


class Sender:
    """Sends texts in one field of one route, each for a user of its own."""

    def __init__(self, caller: Caller, route: str, field: str) -> None:
        self.caller = caller
        self.route = route
        self.field = field
        self.answers: dict[int, int] = {}

    def prepare(self) -> Callable[[str], httpx2.Response]:
        """Make what the next request changes."""
        method, path = self.route.split(" ")
        user = uuid4().hex
        memory = self.caller.remember(SPOKEN, user_id=user) if "{memory_id}" in path else ""
        url = path.replace("{memory_id}", memory).replace("{user_id:text}", user).replace("{thread_id:text}", user)

        def send(text: str) -> httpx2.Response:
            return self.caller.send(method, url, json=filled(self.route, self.field, text, user))

        return send

    def cost(self, text: str) -> float:
        """Processor seconds of the process, which is the server's and this client's."""
        send = self.prepare()
        began = process_time()
        answer = send(text)
        spent = process_time() - began
        assert answer.status_code < 500, answer.text
        self.answers[answer.status_code // 100] = self.answers.get(answer.status_code // 100, 0) + 1
        return spent


@pytest.fixture
def admin(start_server: Callable[..., RunningServer]) -> Caller:
    """One who may do everything, as often as it likes."""
    return Tenant(start_server(rate_per_second=0)).caller("supervisor", act_for=["*"], scopes=tuple(KeyScope))


def test_work_grows_as_the_text_does(admin: Caller) -> None:
    found: dict[str, str] = {}
    for number, (route, field) in enumerate(CASES):
        sender, size = Sender(admin, route, field), LONGER.get(field, SIZE)
        fixed = min(sender.cost(SPOKEN) for _ in range(3))
        texts: list[tuple[str, Make]] = grown(number, 80)
        for name, make in texts:
            measured = growth(sender.cost, make, size, fixed)
            if not measured.is_linear:
                found[f"{route} {field}: {name}"] = str(measured)
        assert field in {"lang", "title"} or sender.answers[2] >= len(texts) / 2, (route, field, sender.answers)
    assert not found


@pytest.mark.breaks
def test_a_route_whose_work_grows_faster_is_found(admin: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: a rule that looks from each word at all that follow."""
    prepare = service.prepare

    def slower(*args: Any, **kwargs: Any) -> object:  # noqa: ANN401 - as they came
        memory = prepare(*args, **kwargs)
        parts = (memory.text.narrative or "").split()
        sum(one == other for place, one in enumerate(parts) for other in parts[place:])
        return memory

    monkeypatch.setattr(service, "prepare", slower)
    sender = Sender(admin, "POST /v1/memories", "narrative")
    texts: dict[str, Make] = dict(grown(0, 80))
    measured = growth(sender.cost, texts["names of names"], SIZE, min(sender.cost(SPOKEN) for _ in range(3)))
    assert not measured.is_linear
    assert measured.exponent > 1.5

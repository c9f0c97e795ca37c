"""Health, the OpenAPI document, and what a person reads first."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import memplane
from memplane.domain.policy.capabilities import Capability
from support.callers import Caller, Tenant
from support.cluster import Databases
from support.serving import RunningServer

Json = dict[str, Any]


def test_it_lives_and_is_ready(server: RunningServer, nobody: Caller) -> None:
    alive, ready = nobody.get("/healthz"), nobody.get("/readyz")
    assert (alive.status_code, ready.status_code) == (200, 200)
    assert alive.json() == {"status": "ok", "version": memplane.__version__, "policy": None}
    assert ready.json()["policy"] == server.wired.policies.current.digest


@pytest.mark.needs(Capability.SEVERAL_MACHINES)  # a file that is open does not go away as a server does
def test_without_its_database_it_lives_but_is_not_ready(
    start_server: Callable[..., RunningServer], databases: Databases
) -> None:
    server = start_server(pool_wait=0.5)
    planner = Tenant(server).caller("planner")
    assert planner.get("/readyz").status_code == 200
    databases.break_connections(server.database)
    assert planner.get("/healthz").status_code == 200
    ready = planner.get("/readyz")
    assert (ready.status_code, ready.json()["status"]) == (503, "unavailable")
    query = planner.query("hall")
    assert (query.status_code, query.json()["code"]) == (503, "unavailable")
    assert query.headers["Retry-After"].isdigit()
    databases.mend_connections(server.database)


class TestOpenApi:
    """The OpenAPI document says what the server does."""

    @pytest.fixture
    def document(self, server: RunningServer) -> Json:
        response = server.client.get("/openapi.json")
        assert response.status_code == 200
        return dict(response.json())

    @staticmethod
    def operations(document: Json) -> Iterator[tuple[str, Json]]:
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                yield f"{method.upper()} {path}", operation

    def test_it_is_of_version_3_1(self, document: Json) -> None:
        assert document["openapi"].startswith("3.1.")
        assert document["info"]["title"] == "Memplane"
        assert document["info"]["version"] == memplane.__version__

    def test_its_schemas_are_json_schemas_and_every_reference_leads_somewhere(self, document: Json) -> None:
        assert len(document["components"]["schemas"]) > 10
        for schema in document["components"]["schemas"].values():
            Draft202012Validator.check_schema(schema)

        def references(node: object) -> Iterator[str]:
            if isinstance(node, dict):
                if isinstance(node.get("$ref"), str):
                    yield node["$ref"]
                for value in node.values():
                    yield from references(value)
            elif isinstance(node, list):
                for value in node:
                    yield from references(value)

        found = set(references(document))
        assert found
        for reference in found:
            target: Any = document
            for step in reference.removeprefix("#/").split("/"):
                target = target[step]

    def test_every_operation_is_described(self, document: Json) -> None:
        operations = dict(self.operations(document))
        assert len({operation["operationId"] for operation in operations.values()}) == len(operations) >= 12
        for name, operation in operations.items():
            assert operation["summary"], name
            assert operation["description"], name
            assert operation["tags"], name

    def test_every_guarded_operation_names_its_key_and_its_problems(self, document: Json) -> None:
        assert document["components"]["securitySchemes"]["HTTPBearer"]["scheme"] == "bearer"
        for name, operation in self.operations(document):
            if "/v1/" not in name:
                assert "security" not in operation, name
                continue
            assert operation["security"] == [{"HTTPBearer": []}], name
            assert {"401", "403", "422", "503"} <= operation["responses"].keys(), name
            for status, response in operation["responses"].items():
                if status >= "400":
                    assert "application/problem+json" in response["content"], (name, status)

    @pytest.mark.parametrize("path", ["/v1/memory/query", "/v1/turns", "/v1/memories"])
    def test_its_examples_are_right_and_work(self, document: Json, tenant: Tenant, path: str) -> None:
        content = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]
        validator = Draft202012Validator({**content["schema"], "components": document["components"]})
        caller = tenant.caller("planner" if path == "/v1/memory/query" else "supervisor")
        assert content["examples"]
        for name, example in content["examples"].items():
            validator.validate(example["value"])
            assert example["summary"], name
            assert caller.post(path, example["value"]).status_code in (200, 201), name
        assert not validator.is_valid({"no such field": 1})

    def test_a_person_can_read_it(self, nobody: Caller) -> None:
        page = nobody.get("/docs")
        assert page.status_code == 200
        assert page.headers["content-type"].startswith("text/html")
        assert "/openapi.json" in page.text

    def test_the_page_loads_nothing_from_elsewhere(self, nobody: Caller) -> None:
        page = nobody.get("/docs").text
        loaded = re.findall(r"""(?:src|href)=["']([^"']+)["']""", page)
        kinds = {"/docs/swagger-ui-bundle.js": "javascript", "/docs/swagger-ui.css": "text/css"}
        assert kinds.keys() < set(loaded)
        assert all(each in kinds or each.startswith("data:") for each in loaded)
        for path, kind in kinds.items():
            answer = nobody.get(path)
            assert (answer.status_code, kind in answer.headers["content-type"]) == (200, True)
            assert len(answer.content) > 10_000
        assert nobody.get("/docs/favicon.png").status_code == 404
        assert "SwaggerUIBundle" in nobody.get("/docs/swagger-ui-bundle.js").text

"""Those who call the server: tenants, their keys, and what each can say in one line."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import httpx2
import psycopg
from psycopg.rows import dict_row

from memplane.application.keys.api_keys import AGENT_SCOPES, NewKey
from memplane.domain.identity.principal import KeyScope
from memplane.domain.memory.memory import new_id
from memplane.domain.memory.tombstones import value_key
from memplane.domain.policy.policy import Trust
from support.serving import RunningServer

USER = "ana"
THREAD = "planning"
Json = dict[str, Any]
SUPERVISING = (*AGENT_SCOPES, KeyScope.USER_TURNS)
"""The scopes of the supervisor's key, which alone records what people say."""


@dataclass(frozen=True)
class Caller:
    """One who calls with one key, or without any.

    Attributes:
        client: of the server.
        credential: the key, sent as bearer.
        key_id: its public part.
    """

    client: httpx2.Client
    credential: str | None = field(default=None, repr=False)
    key_id: str = ""

    def send(self, method: str, path: str, **more: Any) -> httpx2.Response:  # noqa: ANN401 - what httpx2 takes
        """Send a request."""
        headers = dict(more.pop("headers", {}))
        if self.credential is not None:
            headers.setdefault("Authorization", f"Bearer {self.credential}".strip())
        return self.client.request(method, path, headers=headers, **more)

    def get(self, path: str, **params: Any) -> httpx2.Response:  # noqa: ANN401 - query parameters
        """GET, with query parameters."""
        return self.send("GET", path, params=params)

    def post(self, path: str, body: object) -> httpx2.Response:
        """POST a JSON body."""
        return self.send("POST", path, json=body)

    def patch(self, path: str, body: object, **headers: str) -> httpx2.Response:
        """PATCH with a JSON body; headers by name, `_` for `-`."""
        return self.send("PATCH", path, json=body, headers=_headers(headers))

    def delete(self, path: str, **headers: str) -> httpx2.Response:
        """DELETE; headers by name, `_` for `-`."""
        return self.send("DELETE", path, headers=_headers(headers))

    def query(self, text: str | None = None, **body: Any) -> httpx2.Response:  # noqa: ANN401 - fields of the request
        """Ask the memory; a trailing `_` of a name is dropped (`return_`)."""
        named = {name.rstrip("_"): value for name, value in body.items()}
        return self.post("/v1/memory/query", ({} if text is None else {"query": text}) | named)

    def ask(self, text: str | None = None, **body: Any) -> Json:  # noqa: ANN401 - fields of the request
        """Ask the memory and get the answer, which must be one."""
        return _answer(self.query(text, **body), 200)

    def found(self, text: str | None = None, **body: Any) -> list[str]:  # noqa: ANN401 - fields of the request
        """The ids that a question brings, best first."""
        return [item["id"] for item in self.ask(text, **body)["items"]]

    def remember(self, content: str, category: str = "tasks", **fields: Any) -> str:  # noqa: ANN401 - of the memory
        """Store a new memory, and get its id."""
        body = {"user_id": USER, "category": category, "content": content} | fields
        return str(_answer(self.post("/v1/memories", body), 201)["id"])

    def entity(self, name: str, user: str = USER) -> str:
        """The id of the one entity of a name."""
        (found,) = _answer(self.get("/v1/entities", user_id=user, name=name), 200)["items"]
        return str(found["id"])

    def say(self, text: str, **fields: Any) -> Json:  # noqa: ANN401 - of the turn
        """Store a new turn, and get where it stands."""
        body = {"user_id": USER, "thread_id": THREAD, "role": "user", "text": text} | fields
        return _answer(self.post("/v1/turns", body), 201)


class Tenant:
    """A tenant of its own for one test: its keys, and its rows as an administrator sees them."""

    def __init__(self, server: RunningServer) -> None:
        self.name = server.database.new_tenant()
        self.server = server

    def caller(
        self,
        agent: str | None = "supervisor",
        *,
        trust: str = "full",
        users: Sequence[str] | None = None,
        act_for: Sequence[str] = (),
        scopes: Sequence[KeyScope] | None = None,
        expires_at: datetime | None = None,
    ) -> Caller:
        """One who calls with a new key of this tenant; its scopes are those of the agent's first key, unless said."""
        usual = SUPERVISING if agent == "supervisor" else AGENT_SCOPES
        new = NewKey(
            agent=agent,
            trust=Trust(trust),
            scopes=usual if scopes is None else tuple(scopes),
            act_for=tuple(act_for),
            users=None if users is None else tuple(users),
            expires_at=expires_at,
        )
        stored, credential = self.server.run(self.server.wired.keys.create(self.name, new))
        return Caller(self.server.client, credential, stored.key_id)

    def rows(self, statement: str, **values: object) -> list[dict[str, Any]]:
        """Run SQL as the administrator; the tenant is ``%(tenant)s``.

        The database is shared with other tests: a statement that names neither the tenant nor an id is refused.
        """
        assert "%(tenant)s" in statement or "%(id)s" in statement, f"would touch other tests' rows: {statement}"
        return self.server.database.rows(self.name, statement, values)

    def count(self, *tables: str) -> int:
        """How many rows of these tables the tenant has."""
        return sum(
            row["found"]
            for table in tables
            for row in self.rows(f"SELECT count(*) AS found FROM {table} WHERE tenant_id = %(tenant)s")
        )

    def rows_as_application(self, statement: str, *, named: bool = True) -> list[dict[str, Any]]:
        """Run SQL as PostgreSQL's role of the application, with the tenant named as it does, or not named."""
        with psycopg.connect(self.server.database.url, row_factory=dict_row) as connection:
            if named:
                connection.execute("SELECT set_config('memplane.tenant', %s, true)", (self.name,))
            return connection.execute(statement).fetchall()

    def expire(self, memory_id: str) -> None:
        """Let a memory's time run out."""
        past = "2020-01-01T00:00:00+00:00"
        self.rows("UPDATE memories SET expires_at = %(past)s WHERE id = %(id)s", past=past, id=memory_id)

    def relate(self, from_id: str, to_id: str, strength: float = 0.9) -> None:
        """Link two memories."""
        self.rows(
            "INSERT INTO relations (tenant_id, id, from_id, to_id, strength, created_at, updated_at)"
            " VALUES (%(tenant)s, %(id)s, %(from_id)s, %(to_id)s, %(strength)s, now(), now())",
            id=new_id(), from_id=from_id, to_id=to_id, strength=strength,
        )  # fmt: skip

    def propose(self, category: str = "profile", value: str = "Oslo", user_id: str = USER) -> str:
        """A proposal for a sensitive field, made a while ago; its id."""
        proposal = new_id()
        self.rows(
            "INSERT INTO consent_proposals (tenant_id, id, user_id, field, new_value, value_hash, confidence, state,"
            " actor, policy_hash, meta, created_at, expires_at, category)"
            " VALUES (%(tenant)s, %(id)s, %(user_id)s, 'city', %(value)s, %(key)s, 0.9, 'pending', 'agent:x',"
            " 'sha256:0', '{}', %(made)s, %(ends)s, %(category)s)",
            id=proposal, user_id=user_id, value=value, key=value_key(value), category=category,
            made="2020-01-01T00:00:00.000000+00:00", ends="2120-01-01T00:00:00.000000+00:00",
        )  # fmt: skip
        return str(proposal)

    def mention(self, memory_id: str, name: str, *aliases: str, user_id: str = USER) -> None:
        """Link a memory to a new entity."""
        entity = new_id()
        self.rows(
            "INSERT INTO entities (tenant_id, id, user_id, kind, name, name_key, created_at)"
            " VALUES (%(tenant)s, %(id)s, %(user_id)s, 'person', %(name)s, %(key)s, now())",
            id=entity, user_id=user_id, name=name, key=name.casefold(),
        )  # fmt: skip
        for alias in aliases:
            self.rows(
                "INSERT INTO entity_aliases (tenant_id, id, entity_id, alias, alias_key)"
                " VALUES (%(tenant)s, %(id)s, %(entity)s, %(alias)s, %(key)s)",
                id=new_id(), entity=entity, alias=alias, key=alias.casefold(),
            )  # fmt: skip
        self.rows(
            "INSERT INTO memory_entities (tenant_id, memory_id, entity_id)"
            " VALUES (%(tenant)s, %(memory)s, %(entity)s)",
            memory=memory_id, entity=entity,
        )  # fmt: skip


def refused(response: httpx2.Response, status: int, code: str) -> Json:
    """The problem document of a refusal, which must be one of this status and code, and give no result."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    body: Json = response.json()
    assert {"type", "title", "status", "detail", "code"} <= body.keys()
    assert body.pop("request_id", None) in {response.headers["X-Request-Id"], None}  # not in an answer that is replayed
    assert (body["status"], body["code"]) == (status, code)
    assert "items" not in body
    return body


def _answer(response: httpx2.Response, status: int) -> Json:
    assert response.status_code == status, response.text
    body: Json = response.json()
    return body


def _headers(named: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in named.items()}

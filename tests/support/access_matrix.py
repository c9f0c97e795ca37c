"""Who may do what over HTTP: every route, and the rules that it is held to.

A route that is not in this table fails the architecture tests; the acceptance tests try each rule on each route that
has it. So a new route cannot come without its permission tests.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any
from uuid import UUID

from memplane.domain.identity.principal import KeyScope
from support.callers import THREAD, USER

Json = dict[str, Any]


class Categories(Enum):
    """What happens to a category outside the agent's allowlist."""

    REFUSED = "named in the request: the whole request is refused"
    NOT_WRITTEN = "outside the write allowlist: refused"
    ABSENT = "its records are as if they were not there"
    LEFT_OUT = "its changes are left out"
    EACH = "of several records each that is foreign is as if it were not there"
    LISTED = "of several memories each that is foreign is left out"
    TURNS = "refused, where the category of turns is outside the allowlist"
    TRACKED = "events and counts of its memories are left out; a key of no agent sees its tenant"
    OPERATED = "those outside the agent's allowlist stay as they are; a key of no agent reaches all"
    LINES = "a line outside the write allowlist is refused, and the others are not"
    EXPORTED = "those outside the agent's allowlist are left out; a key of no agent gets all"
    SHARED = "shared knowledge alone, as far as the agent reaches its category; see test_shared_knowledge"
    NONE = "the route touches no memories"


class Tenants(Enum):
    """What happens to another tenant's rows."""

    ABSENT = "a foreign id is as if it were not there"
    LEFT_OUT = "the answer has the caller's own rows only"
    NOT_WRITTEN = "what is written is the caller's own"
    EACH = "of several ids each that is foreign is as if it were not there"
    LISTED = "of several memories each that is foreign is left out"
    TURNS = "a thread of the same name is the caller's own, or has no turns"
    TRACKED = "events and counts are of the caller's own rows only"
    JOBS = "the caller sees and changes jobs of its own tenant alone"
    KEYS = "the caller sees and changes keys of its own tenant alone"
    THREADS = "a thread of the same name is the caller's own, or as if it were not there"
    OPERATED = "another tenant's stay as they are, and a foreign id is as if it were not there"
    LINES = "what is written is the caller's own, and foreign ids in it lead nowhere"
    EXPORTED = "a user of another tenant has nothing that could be exported"
    SETTINGS = "settings and counts are those of the caller's own tenant; see test_time_zones and test_quotas"
    SHARED = "shared knowledge of the caller's own tenant alone; see test_shared_knowledge"
    NONE = "the route touches no tenant"


@dataclass(frozen=True)
class Access:
    """One route and its rules.

    Attributes:
        method: of HTTP.
        path: as the application declares it.
        scope: what the key needs; ``None`` where no key is needed.
        categories: rule for foreign categories.
        tenants: rule for foreign tenants.
        body: a request body that is right, for a category.
        params: query parameters that name a category.
        deleted: whether it acts on memories that are deleted.
        entity: whether the record is an entity that a memory mentions, and not the memory.
        proposal: whether the record is a proposal for a field of the memory's category, and not the memory.
        conflict: whether the record is a possible conflict between two memories, and not a memory.
        turn: whether the record is a turn, and not a memory.
        verdict: whether the record is a verdict by which values are refused, and not a memory.
    """

    method: str
    path: str
    scope: KeyScope | None
    categories: Categories
    tenants: Tenants
    body: Callable[[str], Json] | None = None
    params: Callable[[str], Json] | None = None
    deleted: bool = False
    entity: bool = False
    proposal: bool = False
    conflict: bool = False
    turn: bool = False
    verdict: bool = False

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    def url(self, record: str) -> str:
        """The path with ids filled in."""
        return (
            self.path.replace("{memory_id}", record)
            .replace("{entity_id}", record)
            .replace("{job_id}", record)
            .replace("{key_id}", record[:32])
            .replace("{thread_id:text}", THREAD)
            .replace("{proposal_id}", record)
            .replace("{conflict_id}", record)
            .replace("{turn_id}", record)
            .replace("{tombstone_id}", record)
            .replace("{user_id:text}", USER)
        )

    def request(self, category: str, other: str = str(UUID(int=1))) -> Json:
        """What of a request concerns a category, and another record of the same kind, as arguments of the client."""
        body = {"json": self.body(category)} if self.body else {}
        if "into" in body.get("json", {}):
            body["json"]["into"] = other
        return body | ({"params": self.params(category)} if self.params else {})


def _turn(_category: str) -> Json:
    return {"user_id": USER, "thread_id": THREAD, "role": "user", "text": "The release moves to October."}


def _line(category: str) -> str:
    return json.dumps({"record": "memory", "category": category, "content": "The release moves to October."})


_READ, _WRITE, _ADMIN, _CONSENT = KeyScope.READ, KeyScope.WRITE, KeyScope.ADMIN, KeyScope.CONSENT
_STATE = KeyScope.CHECKPOINT
_JOBS, _JOB = "/v1/admin/jobs", "/v1/admin/jobs/{job_id}"
_KEYS, _CHECKPOINT = "/v1/admin/keys", "/v1/checkpoints/{thread_id:text}"
_MEMORY, _ENTITY = "/v1/memories/{memory_id}", "/v1/entities/{entity_id}"
_PROPOSAL = "/v1/consents/{proposal_id}"

ACCESS: Sequence[Access] = (
    Access(
        "POST", "/v1/memory/query", _READ, Categories.REFUSED, Tenants.LEFT_OUT,
        body=lambda category: {"query": "release", "categories": [category]},
    ),
    Access(
        "POST", "/v1/context", _READ, Categories.LEFT_OUT, Tenants.LEFT_OUT,
        body=lambda _: {"user_id": USER, "thread_id": THREAD, "message": "release"},
    ),
    Access("POST", "/v1/turns", _WRITE, Categories.NOT_WRITTEN, Tenants.NOT_WRITTEN, body=_turn),
    Access(
        "POST", "/v1/turns:batch", _WRITE, Categories.NOT_WRITTEN, Tenants.NOT_WRITTEN,
        body=lambda category: {"turns": [_turn(category)]},
    ),
    Access("DELETE", "/v1/turns/{turn_id}", _WRITE, Categories.NOT_WRITTEN, Tenants.ABSENT, turn=True),
    Access(
        "POST", "/v1/sessions/{thread_id:text}/close", _WRITE, Categories.NOT_WRITTEN, Tenants.THREADS,
        body=lambda _: {"user_id": USER},
    ),
    Access(
        "POST", "/v1/memories", _WRITE, Categories.NOT_WRITTEN, Tenants.NOT_WRITTEN,
        body=lambda category: {"user_id": USER, "category": category, "content": "The release moves to October."},
    ),
    Access(
        "POST", "/v1/observations", _WRITE, Categories.NOT_WRITTEN, Tenants.NOT_WRITTEN,
        body=lambda category: {"user_id": USER, "category": category, "tool": "search", "outcome": "The hall is free."},
    ),
    Access(
        "GET", "/v1/memories", _READ, Categories.REFUSED, Tenants.LEFT_OUT,
        params=lambda category: {"category": category},
    ),
    Access(
        "POST", "/v1/memories:batchGet", _READ, Categories.LISTED, Tenants.LISTED,
        body=lambda _: {"ids": [str(UUID(int=1))]},
    ),
    Access("GET", _MEMORY, _READ, Categories.ABSENT, Tenants.ABSENT),
    Access("PATCH", _MEMORY, _WRITE, Categories.ABSENT, Tenants.ABSENT, body=lambda _: {"importance": 5}),
    Access("DELETE", _MEMORY, _WRITE, Categories.ABSENT, Tenants.ABSENT),
    Access("GET", f"{_MEMORY}/history", _READ, Categories.ABSENT, Tenants.ABSENT),
    Access("GET", f"{_MEMORY}/why", _READ, Categories.ABSENT, Tenants.ABSENT),
    Access("GET", f"{_MEMORY}/timeline", _READ, Categories.ABSENT, Tenants.ABSENT),
    Access("GET", f"{_MEMORY}/related", _READ, Categories.ABSENT, Tenants.ABSENT),
    *(
        Access("POST", f"{_MEMORY}/{verb}", _WRITE, Categories.ABSENT, Tenants.ABSENT)
        for verb in ("reinforce", "demote", "pin", "confirm", "retract", "reject")
    ),
    Access("POST", f"{_MEMORY}/restore", _WRITE, Categories.ABSENT, Tenants.ABSENT, deleted=True),
    Access(
        "POST", f"{_MEMORY}/correct", _WRITE, Categories.ABSENT, Tenants.ABSENT,
        body=lambda _: {"content": "The release moves to November."},
    ),
    Access(
        "GET", "/v1/entities", _READ, Categories.LEFT_OUT, Tenants.LEFT_OUT, entity=True,
        params=lambda _: {"user_id": USER},
    ),
    Access("GET", _ENTITY, _READ, Categories.ABSENT, Tenants.ABSENT, entity=True),
    Access(
        "POST", f"{_ENTITY}/aliases", _WRITE, Categories.ABSENT, Tenants.ABSENT, entity=True,
        body=lambda _: {"alias": "Bo"},
    ),
    Access(
        "POST", f"{_ENTITY}/merge", _WRITE, Categories.ABSENT, Tenants.ABSENT, entity=True, body=lambda _: {"into": ""},
    ),
    Access("GET", "/v1/threads/{thread_id:text}/delta", _READ, Categories.LEFT_OUT, Tenants.LEFT_OUT),
    Access("GET", "/v1/threads/{thread_id:text}/turns", _READ, Categories.TURNS, Tenants.TURNS),
    Access("GET", "/v1/events", _READ, Categories.TRACKED, Tenants.TRACKED),
    Access("GET", "/v1/stats", _READ, Categories.TRACKED, Tenants.TRACKED),
    Access("GET", _CHECKPOINT, _STATE, Categories.NONE, Tenants.THREADS),
    Access(
        "PUT", _CHECKPOINT, _STATE, Categories.NONE, Tenants.THREADS,
        body=lambda _: {"user_id": USER, "agents": {"planner": {"step": 1}}},
    ),
    Access("DELETE", _CHECKPOINT, _STATE, Categories.NONE, Tenants.THREADS),
    Access("GET", "/v1/users/{user_id:text}/context", _READ, Categories.LEFT_OUT, Tenants.LEFT_OUT, proposal=True),
    Access(
        "PATCH", "/v1/users/{user_id:text}/context", _WRITE, Categories.NONE, Tenants.SETTINGS,
        body=lambda _: {"time_zone": "Europe/Berlin"},
    ),
    Access("GET", "/v1/quotas", _ADMIN, Categories.NONE, Tenants.SETTINGS),
    Access("GET", "/v1/conflicts", _READ, Categories.LEFT_OUT, Tenants.LEFT_OUT, conflict=True),
    Access(
        "POST", "/v1/conflicts/{conflict_id}/decide", _WRITE, Categories.ABSENT, Tenants.ABSENT, conflict=True,
        body=lambda _: {"verdict": "keep_both"},
    ),
    Access("GET", "/v1/tombstones", _CONSENT, Categories.LEFT_OUT, Tenants.LEFT_OUT, verdict=True),
    Access(
        "POST", "/v1/tombstones/{tombstone_id}/lift", _CONSENT, Categories.ABSENT, Tenants.ABSENT, verdict=True,
        body=lambda _: {},
    ),
    Access("GET", "/v1/consents", _CONSENT, Categories.LEFT_OUT, Tenants.LEFT_OUT, proposal=True),
    Access(
        "POST", "/v1/consents/bulk", _CONSENT, Categories.EACH, Tenants.EACH, proposal=True,
        body=lambda _: {"items": [{"id": str(UUID(int=1)), "decision": "approve"}]},
    ),
    *(
        Access("POST", f"{_PROPOSAL}/{verb}", _CONSENT, Categories.ABSENT, Tenants.ABSENT, proposal=True)
        for verb in ("approve", "reject")
    ),
    Access(
        "POST", f"{_PROPOSAL}/ack", _WRITE, Categories.ABSENT, Tenants.ABSENT, proposal=True,
        body=lambda _: {"turn_id": str(UUID(int=1))},
    ),
    Access("GET", _KEYS, _ADMIN, Categories.NONE, Tenants.KEYS),
    Access("GET", f"{_KEYS}/history", _ADMIN, Categories.NONE, Tenants.KEYS),
    Access(
        "POST", _KEYS, _ADMIN, Categories.NONE, Tenants.KEYS, body=lambda _: {"agent": "planner", "scopes": ["admin"]},
    ),
    Access("POST", f"{_KEYS}/{{key_id}}/rotate", _ADMIN, Categories.NONE, Tenants.KEYS, body=lambda _: {}),
    Access("POST", f"{_KEYS}/{{key_id}}/revoke", _ADMIN, Categories.NONE, Tenants.KEYS),
    Access("GET", _JOBS, _ADMIN, Categories.NONE, Tenants.JOBS),
    Access("POST", _JOBS, _ADMIN, Categories.NONE, Tenants.JOBS, body=lambda _: {"name": "expiry"}),
    *(Access("POST", f"{_JOB}/{verb}", _ADMIN, Categories.NONE, Tenants.JOBS) for verb in ("cancel", "retry")),
    Access(
        "POST", "/v1/admin/restore", _ADMIN, Categories.OPERATED, Tenants.OPERATED, deleted=True,
        body=lambda _: {"user_id": USER, "since": "2020-01-01T00:00:00Z"},
    ),
    Access(
        "POST", "/v1/admin/purge", _ADMIN, Categories.OPERATED, Tenants.OPERATED, deleted=True,
        body=lambda _: {"user_id": USER, "early": True},
    ),
    Access(
        "POST", "/v1/admin/revert", _ADMIN, Categories.OPERATED, Tenants.OPERATED,
        body=lambda _: {"of_agent": "supervisor", "since": "2020-01-01T00:00:00Z"},
    ),
    Access(
        "POST", "/v1/admin/gc", _ADMIN, Categories.NONE, Tenants.OPERATED, body=lambda _: {"user_id": USER},
    ),
    Access("GET", "/v1/shared/export", _ADMIN, Categories.SHARED, Tenants.SHARED),
    Access(
        "POST", "/v1/shared/import", _WRITE, Categories.SHARED, Tenants.SHARED,
        body=lambda category: {"lines": [_line(category)]},
    ),
    Access("GET", "/v1/users/{user_id:text}/export", _ADMIN, Categories.EXPORTED, Tenants.EXPORTED),
    Access(
        "POST", "/v1/users/{user_id:text}/import", _WRITE, Categories.LINES, Tenants.LINES,
        body=lambda category: {"lines": [_line(category)]},
    ),
    Access(
        "POST", "/v1/users/{user_id:text}/erase", _ADMIN, Categories.NONE, Tenants.OPERATED,
        body=lambda _: {"confirm": USER},
    ),
    Access(
        "POST", "/v1/users/{user_id:text}/merge", _ADMIN, Categories.NONE, Tenants.OPERATED,
        body=lambda _: {"into": "another"},
    ),
    Access(
        "POST", "/v1/users/{user_id:text}/unmerge", _ADMIN, Categories.NONE, Tenants.OPERATED, body=lambda _: {},
    ),
    Access("GET", "/v1/admin/user-merges", _ADMIN, Categories.NONE, Tenants.SETTINGS),
    Access("GET", "/v1/admin/policy", _ADMIN, Categories.NONE, Tenants.NONE),
    Access(
        "POST", "/v1/admin/policy/check", _ADMIN, Categories.NONE, Tenants.NONE,
        body=lambda _: {"files": {"trust.yaml": "levels: {}"}},
    ),
    Access("POST", "/v1/admin/policy/reload", _ADMIN, Categories.NONE, Tenants.NONE),
    Access("GET", "/v1/admin/audit", _ADMIN, Categories.NONE, Tenants.NONE),
    Access("GET", "/healthz", None, Categories.NONE, Tenants.NONE),
    Access("GET", "/readyz", None, Categories.NONE, Tenants.NONE),
    Access("GET", "/openapi.json", None, Categories.NONE, Tenants.NONE),
    Access("GET", "/docs", None, Categories.NONE, Tenants.NONE),
    Access("GET", "/docs/swagger-ui-bundle.js", None, Categories.NONE, Tenants.NONE),
    Access("GET", "/docs/swagger-ui.css", None, Categories.NONE, Tenants.NONE),
)  # fmt: skip
"""Every route of the server."""


def routes(
    categories: Categories | None = None, tenants: Tenants | None = None, *, proposals: bool = False,
    conflicts: bool = False, verdicts: bool = False,
) -> list[Access]:  # fmt: skip
    """The routes that are held to a rule: those of memories, turns and entities, or of another kind of record."""
    return [
        access
        for access in ACCESS
        if categories in (None, access.categories)
        and tenants in (None, access.tenants)
        and access.proposal is proposals
        and access.conflict is conflicts
        and access.verdict is verdicts
    ]

"""Every way to read, as requests of one caller: the routes of the access matrix, each with its options."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from support.leaks.canaries import Record
from support.leaks.oracle import ANCHORED, BELIEVED, DISPUTED, EVER, LISTED, NOW, PROPOSED, REFUSED, SAVED, TOLD, Voice
from support.leaks.world import THREAD, USERS, World

Json = dict[str, Any]
QUERY, LIST, ENTITIES, CONSENTS = "/v1/memory/query", "/v1/memories", "/v1/entities", "/v1/consents"
CONTEXT, CONFLICTS, TOMBSTONES = "/v1/context", "/v1/conflicts", "/v1/tombstones"
REVERT = "/v1/admin/revert"
NOTHING: frozenset[str] = frozenset()
TRACKED = EVER | PROPOSED
"""What events tell by the names of threads, which go on after a record's end."""
ALL: Json = {"top_k": 200, "budget_tokens": 100_000}
_DAY = timedelta(days=1)
ADMINISTRATION = (
    "/v1/admin/audit", "/v1/admin/jobs", "/v1/admin/keys", "/v1/admin/keys/history", "/v1/admin/policy",
    "/v1/admin/user-merges", "/v1/quotas",
)  # fmt: skip
FILES = ("/docs/swagger-ui.css", "/docs/swagger-ui-bundle.js")


@dataclass(frozen=True)
class Ask:
    """One request and what its answer may tell.

    Attributes:
        route: as the access matrix names it.
        how: the option that it tries.
        lives: lives of the records that the answer may tell of.
        target: the record that it names, if any.
        own: lives that may be told of the target itself.
        there: lives in which the target is found; ``None`` where the status says nothing of it.
        pages: whether all pages are read.
        names: whether the answer names records by their ids alone, which must be the caller's to read and to write.
        alone: whether it is about users alone, so that nothing shared may stand in it.
    """

    route: str
    how: str
    lives: frozenset[str]
    path: str
    params: Json | None = None
    body: Json | None = None
    target: Record | None = None
    own: frozenset[str] = NOTHING
    there: frozenset[str] | None = None
    pages: bool = field(default=False)
    names: bool = field(default=False)
    alone: bool = field(default=False)

    @property
    def method(self) -> str:
        """Of HTTP."""
        return self.route.split()[0]

    @property
    def name(self) -> str:
        """Route and option."""
        return f"{self.route} {self.how}"


def _query(how: str, lives: frozenset[str], target: Record | None = None, **body: Any) -> Ask:  # noqa: ANN401 - of the request
    return Ask(f"POST {QUERY}", how, lives, QUERY, body={k.rstrip("_"): v for k, v in body.items()}, target=target)


def _list(how: str, lives: frozenset[str] = LISTED, target: Record | None = None, **params: Any) -> Ask:  # noqa: ANN401 - of the request
    alone = "user_id" in params
    return Ask(f"GET {LIST}", how, lives, LIST, params=params | {"limit": 200}, target=target, alone=alone)


def _one(part: str, record: Record, own: frozenset[str], lives: frozenset[str], **params: Any) -> Ask:  # noqa: ANN401 - of the request
    route, path = f"GET {LIST}/{{memory_id}}{part}", f"{LIST}/{record.id}{part}"
    return Ask(route, "by id", lives, path, params or None, target=record, own=own, there=own)


def broad(world: World, voice: Voice, turn: int) -> Iterator[Ask]:
    """Requests that name no record: whatever they bring must be the caller's. ``turn`` chooses among like ones."""
    reads = world.oracle.reads(voice.agent)
    some: Json = {"top_k": 60, "budget_tokens": 20_000}
    yield _query("newest", NOW, **ALL, return_="full")
    yield _query("words", NOW, query="clerk met hall", **ALL, return_="full", explain=True)
    yield _query("bullets", NOW, query="clerk met hall", **some, explain=True, threshold=0.0)
    yield _query("related", NOW, query="clerk met hall", top_k=5)
    for name in reads[turn % len(reads) :][:1] if reads else ():
        yield _query("category", NOW, query="hall", categories=[name], **ALL)
        yield _list("category", category=[name])
    ranking = ("rrf", "lexical", "semantic", "weighted", "hebbian", "layered")[turn % 6]
    yield _query(f"ranking {ranking}", NOW, query="clerk hall", ranking=ranking, **some)
    now = datetime.now(UTC)
    how, moment = (
        ("believed", {"believed_at": now.isoformat()}),
        ("true", {"true_at": (now - _DAY / 2).isoformat()}),
        ("believed and true", {"believed_at": now.isoformat(), "true_at": (now - 2 * _DAY).isoformat()}),
    )[turn % 3]
    yield _query(f"as of {how}", BELIEVED, query="clerk hall", as_of=moment, **ALL, return_="full")
    yield Ask(f"GET {LIST}", "all pages", LISTED, LIST, {"limit": 200}, pages=True)
    yield _list("shared", shared=True)
    yield Ask(f"GET {ENTITIES}", "shared", LISTED, ENTITIES, {"shared": True, "limit": 200})
    yield Ask("GET /v1/shared/export", "all", EVER, "/v1/shared/export")
    yield _list("disputed", DISPUTED, trust_state="disputed")
    state = ("superseded", "archived", "soft_deleted")[turn % 3]
    there = NOW | {state}  # a thread's name may be that of an active record too
    yield _list(f"state {state}", there, state=state)
    yield _list(f"words, {state}", there, state=state, q="clerk met hall")
    yield _list("words", q="clerk met hall", layer="mid")
    narrow = {"types": ["semantic", "episodic"], "visibility": ("private", "shared", "social")[turn % 3]}
    yield _query("types and a store", NOW, query="clerk hall", filters=narrow, **some)
    yield Ask(f"GET {CONSENTS}", "all", PROPOSED, CONSENTS, {"limit": 200})
    yield Ask(f"GET {CONFLICTS}", "newest", NOW, CONFLICTS, {"limit": 200})
    yield Ask(f"GET {TOMBSTONES}", "all", REFUSED, TOMBSTONES, {"limit": 200})
    for user in USERS:
        yield from _of_user(user, turn)
    yield Ask(f"GET {LIST}/{{memory_id}}", "no id", NOTHING, f"{LIST}/nonsense")
    yield Ask("GET /v1/stats", "all", NOTHING, "/v1/stats", {"days": 365})
    yield Ask("GET /v1/events", "newest", TRACKED, "/v1/events", {"limit": 200})
    for path in ADMINISTRATION[turn % len(ADMINISTRATION) :][:1]:
        yield Ask(f"GET {path}", "administration", NOTHING, path)
    yield _reverted(world, turn)
    for path in ("/healthz", "/readyz", "/openapi.json", "/docs", *FILES)[turn % 6 :][:1]:
        yield Ask(f"GET {path}", "open", NOTHING, path)


def _reverted(world: World, turn: int) -> Ask:
    """What would be taken back of what was planted: of the key that planted it, of another tenant's, or of an agent."""
    keys = [world.operator(tenant.name).credential.split("_")[1] for tenant in world.tenants]
    whose: Json = {"of_agent": "supervisor"} if turn % 4 == 3 else {"key_id": keys[turn % 2 * turn % len(keys)]}
    body = {"since": "2020-01-01T00:00:00Z", "dry_run": True, **whose}
    return Ask(f"POST {REVERT}", f"dry run of {[*whose]}", NOTHING, REVERT, body=body, names=True)


def _of_user(user: str, turn: int) -> Iterator[Ask]:
    """Requests that name a user, who may not be the caller's."""
    yield _query("user", NOW, query="hall", filters={"user_id": user}, top_k=60, budget_tokens=20_000)
    beside = {"agent_id": "supervisor", "role": "user"} if turn % 2 else {}
    yield _query("user beside the filters", NOW, query="hall", user_id=user, **beside, top_k=60, budget_tokens=20_000)
    yield _query("delta", NOW | TOLD, query="hall", top_k=1, filters={"user_id": user}, thread_id=THREAD, since_rev=0)
    told = {"user_id": user, "thread_id": THREAD, "message": "clerk met hall", "since_rev": 0, "k": 200}
    yield Ask(f"POST {CONTEXT}", "user", NOW | TOLD, CONTEXT, body=told | {"budget_tokens": 20_000})
    yield _list("user", user_id=user, type="episodic")
    kind = (None, "name")[turn % 2]
    named = {"user_id": user, "limit": 200} | ({"kind": kind} if kind else {})
    yield Ask(f"GET {ENTITIES}", f"user, kind {kind}", LISTED, ENTITIES, named)
    asked = {"user_id": user} | ({"state": "pending"} if turn % 2 else {"field": "city"})
    yield Ask(f"GET {CONSENTS}", "user", PROPOSED, CONSENTS, asked)
    yield Ask(f"GET {CONFLICTS}", "user", NOW, CONFLICTS, {"user_id": user})
    refused = {"user_id": user} | ({"erased": True} if turn % 2 else {})
    yield Ask(f"GET {TOMBSTONES}", "user", REFUSED, TOMBSTONES, refused)
    yield Ask("GET /v1/users/{user_id:text}/context", "user", NOW, f"/v1/users/{user}/context")
    yield Ask("GET /v1/users/{user_id:text}/export", "user", EVER | PROPOSED, f"/v1/users/{user}/export", alone=True)
    for params in ({"user_id": user}, {}):
        yield Ask("GET /v1/checkpoints/{thread_id:text}", "thread", SAVED, f"/v1/checkpoints/{THREAD}", params)
    yield Ask("GET /v1/stats", "user", NOTHING, "/v1/stats", {"user_id": user})
    tracked = {"user_id": user} | ({"node": "hotpath", "op": "create"} if turn % 2 else {"thread_id": THREAD})
    yield Ask("GET /v1/events", "user", TRACKED, "/v1/events", tracked | {"status": "ok", "limit": 200})
    span = {"user_id": user} | ({"after_seq": 0} if turn % 2 else {"before_seq": 1000, "limit": 200})
    yield Ask("GET /v1/threads/{thread_id:text}/turns", "thread", LISTED, f"/v1/threads/{THREAD}/turns", span)
    params = {"since": turn % 3, "user_id": user}
    yield Ask("GET /v1/threads/{thread_id:text}/delta", "thread", TOLD, f"/v1/threads/{THREAD}/delta", params)


def by_id(world: World, record: Record) -> Iterator[Ask]:
    """Requests that name a record by its id."""
    # whatever is not deleted shows what stood around it
    yield _one("/timeline", record, LISTED if record.turn else ANCHORED, LISTED, before=2, after=2)
    yield _query("on demand", NOW, record, top_k=1, thread_id=record.thread or THREAD, purpose="on_demand")
    yield Ask("GET /v1/events", "memory", TRACKED, "/v1/events", {"memory_id": record.id}, target=record)
    several = {"ids": [str(record.id), *(str(each.id) for each in world.planted.records[:5])]}
    yield Ask(f"POST {LIST}:batchGet", "by ids", LISTED, f"{LIST}:batchGet", body=several, target=record)
    if record.turn:
        place = f"/v1/threads/{record.thread}/turns"
        yield Ask("GET /v1/threads/{thread_id:text}/turns", "its thread", LISTED, place, target=record)
        yield _one("", record, NOTHING, NOTHING)
        return
    yield _one("", record, LISTED, NOTHING)
    yield _one("/history", record, EVER, EVER)  # what overruled it is told beside it
    yield _one("/why", record, EVER, LISTED)
    yield _one("/why", record, EVER, LISTED, query="clerk met hall", ranking="rrf")
    yield _one("/related", record, LISTED, LISTED, limit=100)
    if "entity" in record.words:
        path = f"{ENTITIES}/{world.entity(record)}"
        yield Ask(f"GET {ENTITIES}/{{entity_id}}", "by id", NOTHING, path, target=record, own=LISTED, there=LISTED)
        page = {"limit": 1, "cursor": record.id}
        yield Ask(
            f"GET {ENTITIES}/{{entity_id}}", "a page", LISTED, path, page, target=record, own=LISTED, there=LISTED
        )


def by_words(world: World, record: Record, turn: int) -> Iterator[Ask]:
    """Requests that name words of a record; ``turn`` chooses among ways that differ little."""
    words, user = record.words, record.place.user or USERS[0]
    yield _query("its word", NOW, record, query=words["text" if record.turn else "content"], top_k=3, explain=True)
    ways = list(_filtered(record))
    yield ways[turn % len(ways)]
    if not record.turn:
        alias = world.alias_of(record)
        named = {"user_id": user, "name": f"{alias.word} hall" if alias else words.get("entity", words["content"])}
        yield Ask(f"GET {ENTITIES}", "by name", LISTED, ENTITIES, named, target=record)
        # it shows what would change, and what would follow from that
        tried = f"{LIST}/{record.id}/retract"
        yield Ask(f"POST {LIST}/{{memory_id}}/retract", "dry run", EVER, tried, body={"dry_run": True}, target=record)
    name = record.thread or THREAD
    if turn % 2:
        thread = {"thread_id": name, "since_rev": 0, "filters": {"user_id": user}}
        yield _query("its thread", NOW | TOLD, record, top_k=1, **thread)
    else:
        yield Ask("GET /v1/threads/{thread_id:text}/delta", "its thread", TOLD, f"/v1/threads/{name}/delta",
                  {"since": 0, "user_id": user}, target=record)  # fmt: skip


def _filtered(record: Record) -> Iterator[Ask]:
    words, user, thread = record.words, record.place.user or USERS[0], record.thread or THREAD
    tag = words.get("tag", "none")
    yield _query("filter tag", NOW, record, filters={"tags": [tag]})
    yield _query("filter entity", NOW, record, query="hall", filters={"entity": words.get("entity", "none")})
    several = [words.get("entity", "none"), "Nobody"]
    yield _query("filter entities", NOW, record, query="hall", filters={"entity": several})
    yield _query("filter category", NOW, record, query="hall", filters={"category": record.place.category}, top_k=3)
    yield _query("filter actor", NOW, record, filters={"actor_id": words.get("actor", "none")}, return_="full")
    names = {"actor_id": words.get("actor", "none"), "run_id": words.get("run", "none")}
    yield _query("names beside the filters", NOW, record, **names)
    yield _query("filter run", NOW, record, query="clerk", filters={"run_id": words.get("run", "none")})
    yield _query("filter thread", NOW, record, filters={"thread_id": thread, "user_id": user}, top_k=3)
    yield _query("filter category", NOW, record, query="hall", categories=[record.place.category], top_k=3)
    yield _list("tag", target=record, tag=[tag])
    yield _list("cursor", target=record, cursor=record.id, category=[record.place.category])

"""Tenants, users, keys and memories of every kind that the policy knows, each with words of its own."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from memplane.adapters.policy import shipped_policies
from memplane.application.erasure.erasure_ports import NoLedger
from memplane.application.keys.api_keys import NewKey
from memplane.application.memories.gateway import Write
from memplane.application.memories.placement import Candidate, _stored
from memplane.application.memories.service import prepare
from memplane.application.recall.search_material import SearchMaterial
from memplane.application.transaction import UnitOfWork
from memplane.contracts.memories import NewMemoryRequest
from memplane.domain.identity.principal import KeyScope
from memplane.domain.language.entities import mentions
from memplane.domain.language.terms import terms
from memplane.domain.memory.conflict_verdicts import POSSIBLE_CONFLICT
from memplane.domain.memory.memory import new_id
from memplane.domain.memory.write_decisions import Action, WriteDecision
from memplane.domain.policy.policy import Trust
from memplane.entrypoints.http import wire_conversion
from support.callers import SUPERVISING, Tenant
from support.leaks.canaries import LIVES, Canary, Place, Planted, Record
from support.leaks.oracle import NOBODY, Oracle, Voice
from support.leaks.wire import Answer, Wire
from support.serving import RunningServer

Json = dict[str, Any]
USERS = ("ana", "ben")
STORES = ("private", "shared", "social")
THREAD = "planning"
MEMORY_PARTS = (
    "title", "content", "entity", "narrative", "fact", "tag", "file", "key", "value", "external", "actor", "run",
)  # fmt: skip
TURN_PARTS = ("text", "actor", "external", "run")
MORE_AGENTS = (
    "\n  auditor: {read: [knowledge, event], write: [tasks, activity], trust: full}"  # it reads other than it writes
    "\n  stranger: {read: [], write: []}\n"
)
_FAR = datetime.now(UTC) - timedelta(days=1)
_ENDS = {"ended": {"valid_until": _FAR.isoformat()}}
_LATER = {
    "confirmed": "trust_state = 'confirmed'",
    "disputed": "trust_state = 'disputed'",
    "rejected": "state = 'soft_deleted', trust_state = 'rejected'",
    "soft_deleted": "state = 'soft_deleted'",
    "superseded": "state = 'superseded', superseded_at = now()",
    "archived": "state = 'archived'",
    "expired": "expires_at = '2020-01-01T00:00:00.000000+00:00'",
}


def policies_in(folder: Path) -> Path:
    """The shipped policy, with two unusual agents more."""
    for path in shipped_policies().glob("*.yaml"):
        more = MORE_AGENTS if path.name == "categories.yaml" else ""
        (folder / path.name).write_text(path.read_text() + more)
    return folder


class World:
    """A server full of planted words, and those who call it."""

    def __init__(self, server: RunningServer, policies: Path, tenants: int) -> None:
        self.server = server
        self.oracle = Oracle(policies)
        self.planted = Planted()
        self.wire = Wire(server.url)
        self.tenants = [Tenant(server) for _ in range(tenants)]
        self.hubs: list[Record] = []
        self._count = 0
        self._entities: dict[str, str] = {}
        self._operators = {tenant.name: self.voice(tenant, None) for tenant in self.tenants}
        for number, tenant in enumerate(self.tenants):
            grid = self._grid(tenant.name, whole=number == 0)
            self._store(tenant.name, [self._memory(place, life) for place, life in grid])
            for user in USERS:
                self._turns(tenant, user)
            self._settle(tenant)
        for tenant in self.tenants:
            for user in USERS:
                self._hub(tenant, user)
                self._names(tenant, user)
                self._consents(tenant, user)
                self._state(tenant, user)
        self.voices = [*self._voices()]

    # who calls

    def voice(
        self, tenant: Tenant, agent: str | None, trust: str = "full", users: Sequence[str] | None = None
    ) -> Voice:
        """One with a new key; without an agent, an operator, who reaches every category unless it names an agent."""
        new = NewKey(
            agent=agent, trust=Trust(trust), scopes=(*SUPERVISING, KeyScope.CONSENT, KeyScope.ADMIN),
            act_for=() if agent else ("*",), users=None if users is None else tuple(users),
        )  # fmt: skip
        _, credential = self.server.run(self.server.wired.keys.create(tenant.name, new))
        return Voice(tenant.name, agent or "", trust, None if users is None else tuple(users), credential)

    def operator(self, tenant: str) -> Voice:
        """A fully trusted key that may act for every agent."""
        return self._operators[tenant]

    def send(self, voice: Voice | None, method: str, path: str, **more: Any) -> Answer:  # noqa: ANN401 - of the wire
        """Send a request with somebody's key."""
        return self.wire.send(None if voice is None else voice.credential, method, path, **more)

    def _voices(self) -> Iterator[Voice]:
        first, *others = self.tenants
        for agent, trust in itertools.product(self.oracle.agents, self.oracle.order):
            # one who reads nothing needs no more than one key
            for users in (None, ("ana",)) if self.oracle.reads(agent) else (None,):
                yield self.voice(first, agent, trust, users)
        for trust, users in itertools.product(self.oracle.order, (None, ("ana",))):
            yield self.voice(first, None, trust, users)
        yield self.voice(first, "supervisor", users=("ben",))
        yield self.voice(first, "supervisor", users=("nobody",))
        for tenant in others:
            for agent, users in itertools.product(("supervisor", "planner", None), (None, ("ana",))):
                yield self.voice(tenant, agent, users=users)

    # what is planted

    def _grid(self, tenant: str, *, whole: bool) -> Iterator[tuple[Place, str]]:
        """Every category in every store for each user, and every life in every store; less for further tenants."""
        stores = list(itertools.product(STORES, self.oracle.order))
        lives = itertools.cycle(LIVES)
        for category, user in itertools.product(self.oracle.categories, USERS):
            for store in stores if whole else stores[::5]:
                yield Place(tenant, user, category, *store), "active"
            for _ in range(2 if whole else 1):
                yield Place(tenant, user, category, "social", "public"), next(lives)
        for category, store in itertools.product(self.oracle.shared, stores if whole else stores[::5]):
            yield Place(tenant, NOBODY, category, *store), "active"
            yield Place(tenant, NOBODY, category, "social", "public"), next(lives)
        for life, user, store in itertools.product(LIVES[1:], USERS, stores if whole else stores[::7]):
            yield Place(tenant, user, "tasks", *store), life

    def _memory(self, place: Place, life: str, **more: Any) -> tuple[Record, Json]:  # noqa: ANN401 - of the memory
        """A memory's words and its request; it gets its id when it is stored."""
        words = self.planted.words(MEMORY_PARTS)
        # every sixteenth has a thread of its own, with a name that nobody else has
        self._count += 1
        thread = THREAD
        if place.user == NOBODY:
            thread = ""
        elif self._count % 16 == 1:
            words["thread"] = thread = self.planted.word()
        body = {
            "agent": self.oracle.writer(place.category), "user_id": place.user or None, "category": place.category,
            # types other than facts are never merged with what they resemble
            "type": "episodic", "visibility": place.visibility, "min_trust": place.min_trust,
            "content": f"The clerk met {words['entity'].capitalize()} about the {words['content']} hall.",
            "title": f"note {words['title']}", "narrative": f"It went {words['narrative']} well.",
            "facts": [f"The fee was {words['fact']}."], "tags": [words["tag"]], "related_files": [words["file"]],
            "attributes": {words["key"]: words["value"]}, "external_id": words["external"],
            "actor_id": words["actor"], "run_id": words["run"], "thread_id": thread or None,
            **_ENDS.get(life, {}), **more,
        }  # fmt: skip
        return Record("", place, life, words, thread), body

    def _store(self, tenant: str, many: Sequence[tuple[Record, Json]]) -> None:
        """Store many at once, as the gateway does with what is like nothing that is there."""
        wired = self.server.wired
        by_thread = sorted(many, key=lambda pair: (pair[0].place.user, pair[0].thread))

        async def stored() -> list[str]:
            caller = await wired.keys.authenticate(self.operator(tenant).credential)
            policy, now = wired.policies.current, datetime.now(UTC)
            new = [wire_conversion.new_memory_of(NewMemoryRequest(**body)) for _, body in by_thread]
            agents = [str(body["agent"]) for _, body in by_thread]
            memories = [prepare(caller, policy, n, now, agent) for n, agent in zip(new, agents, strict=True)]
            vectors = await wired.embedder.embed([memory.text.embeddable() for memory in memories])

            async def work(uow: UnitOfWork) -> list[str]:
                write = Write(caller, policy, now, uow, wired.embedder.model, NoLedger())
                for (user, thread), group in itertools.groupby(
                    zip(memories, vectors, agents, strict=True), key=lambda one: (one[0].user_id, one[0].thread_id)
                ):
                    for memory, vector, agent in group:
                        material = SearchMaterial(terms(memory.text.searchable()), vector)
                        found = mentions(memory.text.searchable())
                        named = await uow.graph.entities(memory.user_id, found, now)
                        await _stored(write, Candidate(memory, material, agent), WriteDecision(Action.CREATE), named)
                    await write.settle(user, thread)
                return [str(memory.id) for memory in memories]

            return await wired.storage.write(caller.reach, work)

        for (record, _), memory in zip(by_thread, self.server.run(stored()), strict=True):
            self.planted.note(replace(record, id=memory))

    def _turns(self, tenant: Tenant, user: str) -> None:
        place = Place(tenant.name, user, self.oracle.turns, "private", "public")
        for number in range(4):
            words = self.planted.words(TURN_PARTS)
            thread = THREAD
            if number == 3:
                words["thread"] = thread = self.planted.word()
            body = {
                "agent": self.oracle.writer(place.category), "user_id": user, "thread_id": thread, "role": "user",
                "text": f"The clerk asked about the {words['text']} hall.", "actor_id": words["actor"],
                "external_id": words["external"], "run_id": words["run"], "auto_extract": False,
            }  # fmt: skip
            answer = self.send(self.operator(tenant.name), "POST", "/v1/turns", body=body)
            assert answer.status == 201, answer.raw
            self.planted.note(Record(answer.json()["turn_id"], place, "active", words, thread, turn=True))

    def _settle(self, tenant: Tenant) -> None:
        """Give records the lives that no caller can give them at once."""
        for life, assigned in _LATER.items():
            ids = {f"i{n}": r.id for n, r in enumerate(r for r in self.of(tenant.name) if r.life == life)}
            listed = ", ".join(f"%({name})s" for name in ids)
            tenant.rows(f"UPDATE memories SET {assigned} WHERE tenant_id = %(tenant)s AND id IN ({listed})", **ids)

    def _hub(self, tenant: Tenant, user: str) -> None:
        """A memory that most may read, related to and drawn from others of every kind."""
        others = self.kinds(tenant.name)
        sources = [record.id for record in (*others, *(r for r in self.planted.records if r.turn))][-100:]
        place = Place(tenant.name, user, "tasks", "social", "public")
        # as an import would: no caller may name sources that its agent does not read
        self._store(tenant.name, [self._memory(place, "active", source_ids=sources)])
        hub = self.planted.records[-1]
        self.hubs.append(hub)
        linked = [record.id for record in others if not record.turn]
        values = {f"t{n}": each for n, each in enumerate(linked)} | {f"i{n}": new_id() for n, _ in enumerate(linked)}
        ends = "%(hub)s, %(t{n})s, 0.9, now(), now())"
        for kind in ("related_to", POSSIBLE_CONFLICT):
            rows = ", ".join(f"(%(tenant)s, %(i{n})s, %(kind)s, {ends.format(n=n)}" for n, _ in enumerate(linked))
            tenant.rows(
                "INSERT INTO relations (tenant_id, id, relation_type, from_id, to_id, strength, created_at, updated_at)"
                f" VALUES {rows} ON CONFLICT DO NOTHING",
                hub=hub.id, kind=kind, **values,
            )  # fmt: skip
            values |= {f"i{n}": new_id() for n, _ in enumerate(linked)}

    def kinds(self, tenant: str) -> list[Record]:
        """One record for each user and category, store, least trust or life."""
        found: dict[object, Record] = {}
        for record in self.of(tenant):
            place = record.place
            for kind in (place.category, (place.visibility, place.min_trust), record.life):
                found.setdefault((place.user, kind), record)
        return list({record.id: record for record in found.values()}.values())

    def _names(self, tenant: Tenant, user: str) -> None:
        """Entities get other names, which belong to whoever sees the entity."""
        for record in [r for r in self.kinds(tenant.name) if r.place.user == user and r.life == "active"][:12]:
            if record.turn:
                continue
            agent, operator = self.oracle.writer(record.place.category), self.operator(tenant.name)
            if record.place.category not in self.oracle.reads(agent):
                continue
            entity = self.entity(record)
            alias = self.planted.word()
            body = {"alias": f"{alias.capitalize()} Hall", "agent": agent}
            answer = self.send(operator, "POST", f"/v1/entities/{entity}/aliases", body=body)
            assert answer.status == 200, answer.raw
            self.planted.canary(alias, "alias", record.id, record.life, record.place)

    def _consents(self, tenant: Tenant, user: str) -> None:
        """A field of the profile that was decided on, another value that waits for consent, and a refused one."""
        operator, place = self.operator(tenant.name), Place(tenant.name, user, "profile", "private", "public")
        agent = {"agent": self.oracle.writer(place.category)}
        decided, waiting, rejected = (self.planted.word() for _ in range(3))
        for word in (decided, waiting, rejected):
            body = {"user_id": user, "category": place.category, "content": f"Vera lives in {word.capitalize()}."}
            proposed = self.send(operator, "POST", "/v1/memories", body=body | agent)
            assert proposed.status == 202, proposed.raw
            proposal = proposed.json()["id"]
            if word == waiting:
                self.planted.canary(word, "proposal", proposal, "proposed", place)
                continue
            if word == rejected:
                refused = self.send(operator, "POST", f"/v1/consents/{proposal}/reject", body=agent)
                assert refused.status == 200, refused.raw
                self.planted.canary(word, "proposal", proposal, "refused", place)
                continue
            done = self.send(operator, "POST", f"/v1/consents/{proposal}/approve", body=agent)
            assert done.status == 200, done.raw
            memory = done.json()["memory_id"]
            self.planted.note(Record(memory, place, "confirmed", {"content": word}, THREAD))

    def _state(self, tenant: Tenant, user: str) -> None:
        """The state of a supervisor, which holds a conversation: it is as private as turns are."""
        place = Place(tenant.name, user, self.oracle.turns, "private", "public")
        words = self.planted.words(("graph", "memory", "conversation", "agents"))
        body = {part: [{"text": word}] if part == "conversation" else {"text": word} for part, word in words.items()}
        path = f"/v1/checkpoints/{THREAD}"
        answer = self.send(self.operator(tenant.name), "PUT", path, body={"user_id": user, **body})
        assert answer.status == 201, answer.raw
        for part, word in words.items():
            self.planted.canary(word, part, path, "saved", place)

    def entity(self, record: Record) -> str:
        """The id of the entity that a record mentions."""
        if record.id not in self._entities:
            for tenant in self.tenants:
                found = tenant.rows("SELECT memory_id, entity_id FROM memory_entities WHERE tenant_id = %(tenant)s")
                self._entities |= {str(row["memory_id"]): str(row["entity_id"]) for row in found}
        return self._entities[record.id]

    def of(self, tenant: str) -> list[Record]:
        """A tenant's records."""
        return [record for record in self.planted.records if record.place.tenant == tenant]

    @property
    def stories(self) -> list[Record]:
        """Records of the users that stories are about."""
        return [record for record in self.planted.records if record.place.user not in {*USERS, NOBODY}]

    def tenant(self, name: str) -> Tenant:
        """A tenant by its name."""
        return next(tenant for tenant in self.tenants if tenant.name == name)

    def alias_of(self, record: Record) -> Canary | None:
        """The other name of the entity that a record mentions."""
        found = (c for c in self.planted.canaries.values() if c.record == record.id and c.part == "alias")
        return next(found, None)

    def close(self) -> None:
        """Let go of the server."""
        self.wire.close()

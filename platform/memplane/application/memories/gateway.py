"""The write gateway.

Every mutation, whichever way it came, passes here, in one transaction with its history, change log, revision and
events.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from memplane.application.erasure.erasure_ports import ErasureLedger
from memplane.application.erasure.user_tombstones import keyrings_of
from memplane.application.limits.idempotency import Once, raise_if_done, run_once
from memplane.application.limits.offload import offload
from memplane.application.limits.user_queues import UnderWay, UserQueues
from memplane.application.memories.activity_log import ActivityLog
from memplane.application.memories.change_feed import PublishedChange, publish
from memplane.application.memories.write_effects import Effects, WriteChange
from memplane.application.ports import Clock, Policies, Storage
from memplane.application.recall.embedders import Embedders
from memplane.application.recall.embedding_guard import EmbeddingGuard
from memplane.application.recall.search_material import SearchMaterial, Vector
from memplane.application.records import EXTRACT, LinkChange, OperationalEvent, Proposal, TombstonedValues
from memplane.application.transaction import UnitOfWork
from memplane.application.users.merged_users import refuse_alias
from memplane.domain.errors import LimitExceeded, UnknownSource
from memplane.domain.identity.principal import JOB, KeyScope, Principal, Reach
from memplane.domain.language.terms import terms
from memplane.domain.language.text import normalise
from memplane.domain.memory.delta import ChangeEvent
from memplane.domain.memory.history import HistoryEntry, HistoryEvent
from memplane.domain.memory.memory import Memory, MemoryText, State, TrustState, Turn, new_id
from memplane.domain.memory.scope import Filters, Scope
from memplane.domain.memory.undo_records import Restatement, UndoKind, UndoRecord, difference, kept_of
from memplane.domain.policy.capabilities import Capability
from memplane.domain.policy.policy import Policy
from memplane.domain.privacy.erasure import TombstoneKeyring

T = TypeVar("T")
_OPS: Mapping[HistoryEvent, str] = {HistoryEvent.ADD: "create"}
"""What the operational events call a change, where it is not the word of the history."""
_EPISODIC = frozenset({"sessions", "facts"})
"""Jobs that work on conversations as a whole."""
MAX_ID_CHARS = 255
MAX_ID_BYTES = 800
"""Three such names and a tenant fit one key of a B-tree."""


@dataclass(frozen=True, slots=True)
class Write:
    """One write under way: who, under which policy, when, and the open transaction.

    What changed is collected, and written when the changes are settled: a few statements for any number of them.

    Attributes:
        imported: whether it takes in what a file says, rather than what is said now.
    """

    principal: Principal
    policy: Policy
    now: datetime
    uow: UnitOfWork
    model: str
    ledger: ErasureLedger
    imported: bool = False
    effects: Effects = field(default_factory=Effects)
    _history: list[HistoryEntry] = field(default_factory=list)
    _events: list[OperationalEvent] = field(default_factory=list)
    _told: list[PublishedChange] = field(default_factory=list)
    _undo: list[UndoRecord] = field(default_factory=list)
    _graves: dict[str, Sequence[TombstoneKeyring]] = field(default_factory=dict)
    _users: set[str] = field(default_factory=set)

    @property
    def users(self) -> frozenset[str]:
        """Whom it is about, as far as it is known by now."""
        return frozenset(self._users)

    @property
    def user(self) -> str | None:
        """Whom it is about; '' for nobody, ``None`` for several."""
        return (*self._users, "")[0] if len(self._users) < 2 else None

    def vector(self, material: SearchMaterial) -> Vector | None:
        """A text's vector by the model in force.

        Raises:
            EmbeddingMismatch: this process does not run it.
        """
        return material.vector(self.uow.in_force.model)

    def about(self, users: Iterable[str]) -> None:
        """Note whom it is about."""
        self._users.update(users)

    async def dig(self, users: Collection[str]) -> None:
        """Look up where values of some users are buried.

        Raises:
            UserMerged: one of them was merged into another user.
            UserErased: one of them is being erased, or was since the request came.
        """
        unknown = [user for user in users if user not in self._graves]
        if not unknown:
            return
        keys, merged = await self.uow.erasures.fences(unknown)
        for user in unknown:
            refuse_alias(self.principal, merged.get(user))
        names = {user: [user, *(name for name, into in merged.items() if into == user)] for user in unknown}
        self._graves.update(await keyrings_of(self.uow.erasures, names, self.now, keys))

    async def graves(self, user_id: str) -> Sequence[TombstoneKeyring]:
        """Where values of a user are buried who was erased once.

        Raises:
            UserErased: the user is being erased, or was since the request came.
        """
        await self.dig((user_id,))
        return self._graves[user_id]

    @asynccontextmanager
    async def attempt(self) -> AsyncIterator[None]:
        """Work that is taken back alone, with what was noted of it, when it fails."""
        done = self.effects
        noted: tuple[list[Any], ...] = (self._history, self._events, self._told, self._undo)
        noted += (done.changes, done.proposals, done.new_ids)
        counts = [len(each) for each in noted]
        try:
            async with self.uow.attempt():
                yield
        except BaseException:
            for each, count in zip(noted, counts, strict=True):
                del each[count:]
            raise

    def record_change(
        self,
        event: HistoryEvent,
        change: ChangeEvent | None,
        memory: Memory,
        before: Memory | None = None,
        meta: Mapping[str, object] | None = None,
        *,
        said: Restatement | None = None,
    ) -> None:
        """Record a change of a memory for its history and the events, and for threads if ``change`` is given.

        Args:
            event: what was done.
            change: the entry for the delta of threads; ``None`` for no entry.
            memory: the memory as it is now.
            before: as it was; another memory where this one is new.
            meta: for the history.
            said: the memory that was counted into it.
        """
        told = {**(meta or {}), **_categories(memory, before)}
        entry = self._entry(event, memory.id, memory.user_id, told)
        old = before.text.content if before else None
        entry = replace(entry, old_ref=old, new_ref=memory.text.content)
        self._history.append(entry)
        is_new = before is None or before.id != memory.id
        self.effects.changes.append(WriteChange(entry, memory, is_new))
        if is_new:
            self.effects.new_ids.append(memory.id)
        self._note_undo(entry, memory, before, said)
        similarity = told.get("similarity")
        sim = similarity if isinstance(similarity, float) else None
        self._events.append(replace(self.event(_OPS.get(event, event.value.lower()), memory), sim=sim))
        if change is not None and memory.trust_state is not TrustState.DISPUTED:
            self._told.append(PublishedChange(change, memory))

    def record_similarity(self, similarity: float) -> None:
        """Note with the change that was recorded last how similar the nearest memory was; its history does not tell."""
        self._events[-1] = replace(self._events[-1], sim=similarity)

    def record_links(self, memory: Memory, links: Sequence[LinkChange], *, removed: bool = False) -> None:
        """Note that a memory has relations from now on, or has them no longer: one entry for all of them.

        Relations that follow from an entry of their own, such as those to what was superseded, need no other.
        """
        if not links:
            return
        listed = [
            {
                "to": str(each.other.id), "relation": each.relation, "strength": round(each.strength, 4),
                "in": {"visibility": each.other.visibility.value, "min_trust": each.other.min_trust},
            }
            for each in links
        ]  # fmt: skip
        meta: dict[str, object] = {"links": listed, **_categories(memory, links[0].other)}
        if removed:
            meta["removed"] = True
        self._history.append(self._entry(HistoryEvent.LINK, memory.id, memory.user_id, meta))
        if not removed:
            strongest = max(each.strength for each in links)
            self._events.append(replace(self.event("link", memory), sim=strongest))

    async def notes(self, memory_id: UUID) -> list[Mapping[str, object]]:
        """What the history of a memory notes besides its words, oldest first, this write's own entries last."""
        own = [entry.meta for entry in self._history if entry.memory_id == memory_id]
        return [*await self.uow.journal.notes(memory_id), *own]

    def _note_undo(self, entry: HistoryEntry, memory: Memory, before: Memory | None, said: Restatement | None) -> None:
        if before is None or before.id != memory.id:  # it is new: without its writer it would not be there
            return
        if changes := difference(before, memory):
            kept = None if said is None else kept_of(said)
            self._undo.append(replace(self._undo_of(entry.id, memory.user_id, memory.id, changes), said=kept))

    def undoing(self, kind: UndoKind, user_id: str, subject: UUID, before: Mapping[str, Any]) -> None:
        """Note what there was before a change of something else than a memory."""
        self._undo.append(replace(self._undo_of(new_id(), user_id, subject, before), kind=kind))

    def _undo_of(self, name: UUID, user_id: str, subject: UUID, changes: Mapping[str, Any]) -> UndoRecord:
        by = self.principal
        return UndoRecord(name, user_id, subject, UndoKind.MEMORY, by.actor, by.key_id, self.now, changes)

    def record_refusal(self, memory: Memory) -> None:
        """Note that a memory was not stored."""
        self._events.append(replace(self.event("refuse", memory), status="skipped", memory_id=None))

    def record_proposal(self, proposal: Proposal, *, is_new: bool) -> None:
        """Note a proposal: a new one, or one that was open already."""
        self.effects.proposals.append(proposal)
        if is_new:
            self.effects.new_ids.append(proposal.id)

    def record_queued(self, memory: Memory) -> None:
        """Note that a memory waits for consent."""
        self._events.append(replace(self.event("propose", memory), memory_id=None))

    def record_classified(self, turn: Turn, *, stated: bool) -> None:
        """Note that a turn was looked through for facts, and whether it states any."""
        status = "ok" if stated else "skipped"
        noted = OperationalEvent(self._node, "classify", status, self.now, turn.user_id, turn.thread_id)
        self._events.append(replace(noted, category=self.policy.turns_category))

    def record_lost_fact(self, turn: Turn, category: str | None, status: str) -> None:
        """Note that a fact of a turn is not stored: an ``error``, or ``skipped`` by the policy or a limit."""
        noted = OperationalEvent(self._node, EXTRACT, status, self.now, turn.user_id, turn.thread_id)
        self._events.append(replace(noted, category=category))

    def record_dismissal(self, subject: UUID, user_id: str, meta: Mapping[str, object]) -> None:
        """Note a decision that no memory came of: its history stands under the id of what was decided on."""
        self._history.append(self._entry(HistoryEvent.CONSENT, subject, user_id, meta))
        self._events.append(OperationalEvent("hotpath", "dismiss", "ok", self.now, user_id))

    def record_lift(self, buried: TombstonedValues, meta: Mapping[str, object]) -> None:
        """Note that a verdict was taken back: its history stands under its id, with nothing of the values."""
        user, told = buried.scope, {"scope": buried.scope, "places": sorted(buried.places), **meta}
        self._history.append(self._entry(HistoryEvent.LIFT, buried.id, user, told))
        self._events.append(OperationalEvent("hotpath", "lift", "ok", self.now, user))

    def record_purge(self, memory: Memory) -> None:
        """Note that a memory was removed for good; its words are not said again."""
        entry = self._entry(HistoryEvent.PURGE, memory.id, memory.user_id, _categories(memory, None))
        self._history.append(entry)
        self._events.append(self.event("purge", memory))

    def removed_turn(self, turn: Turn, lapsed: Sequence[str] = ()) -> None:
        """Note that a turn was removed for good: its history is this entry, under its id and without its words.

        Args:
            turn: the turn.
            lapsed: fields of its user that have no value any more, since it spoke for it.
        """
        meta: dict[str, object] = {"categories": [self.policy.turns_category], "turn": turn.seq}
        if lapsed:
            meta["fields"] = list(lapsed)
        self._history.append(self._entry(HistoryEvent.PURGE, turn.id, turn.user_id, meta))
        told = OperationalEvent("hotpath", "delete", "ok", self.now, turn.user_id, turn.thread_id)
        self._events.append(replace(told, category=self.policy.turns_category))

    def reverted_turn(self, turn: Turn, meta: Mapping[str, object]) -> None:
        """Note that a turn was taken back: its entry has none of its words."""
        told = {**meta, "categories": [self.policy.turns_category], "turn": turn.seq}
        self._history.append(self._entry(HistoryEvent.REVERT, turn.id, turn.user_id, told))
        event = OperationalEvent(self._node, "revert", "ok", self.now, turn.user_id, turn.thread_id)
        self._events.append(replace(event, category=self.policy.turns_category))

    @property
    def _node(self) -> str:
        if not self.principal.is_job:
            return "hotpath"
        return "episodic" if self.principal.key_id.removeprefix(JOB) in _EPISODIC else "worker"

    def _entry(self, event: HistoryEvent, subject: UUID, user_id: str, meta: Mapping[str, object]) -> HistoryEntry:
        """An entry of the history without words. Which key wrote is in it: who acts for another hides behind nobody."""
        return HistoryEntry(
            id=new_id(),
            memory_id=subject,
            event=event,
            actor=self.principal.actor,
            policy_hash=self.policy.digest,
            ts=self.now,
            meta={**meta, "key": self.principal.key_id},
            of_user=user_id,
        )

    async def settle(self, user_id: str, thread_id: str | None) -> int | None:
        """Write what was noted, and tell each user's threads of their own: the change's, and the recent ones.

        Args:
            user_id: whose thread is asked for.
            thread_id: that thread, which is told in any case; or none.

        Returns:
            The revision of the thread; ``None`` without one.
        """
        journal = self.uow.journal
        await journal.record(self._history)
        if purged := [each.id for each in self._history if each.event is HistoryEvent.PURGE]:
            await journal.forget(purged)
        await journal.keep_undo(self._undo)
        await journal.events(self._events)
        told = list(self._told)
        for noted in (self._history, self._events, self._told, self._undo):
            noted.clear()
        return await publish(self.uow.threads, told, self.now, (user_id, thread_id))

    def event(self, op: str, memory: Memory) -> OperationalEvent:
        """An operational event about a memory."""
        self._users.add(memory.user_id)
        return OperationalEvent(
            node=self._node,
            op=op,
            status="ok",
            ts=self.now,
            user_id=memory.user_id,
            thread_id=memory.thread_id,
            memory_id=memory.id,
            category=memory.category,
        )


def _categories(memory: Memory, before: Memory | None) -> dict[str, object]:
    """The categories that an entry's words were written under: who reads them must be allowed to read each."""
    found = {memory.category} | ({before.category} if before else set())
    return {"categories": sorted(found)}


class Gateway:
    """What every write shares: the permission to write at all, search material, and the transaction.

    Attributes:
        activity: on which days users are active.
    """

    def __init__(
        self,
        storage: Storage,
        policies: Policies,
        embedders: Embedders,
        guard: EmbeddingGuard,
        clock: Clock,
        ledger: ErasureLedger,
    ) -> None:
        self._storage = storage
        self._guard = guard
        self._policies = policies
        self._embedders = embedders
        self._clock = clock
        self._ledger = ledger
        self.activity = ActivityLog(storage, policies, clock)
        self._queues = UserQueues()
        self._under_way = UnderWay()

    def begin(self, principal: Principal, scope: KeyScope = KeyScope.WRITE) -> tuple[Policy, datetime]:
        """The policy and the moment of a write, once the key is allowed to write.

        Args:
            principal: the caller.
            scope: what its key needs.

        Raises:
            ScopeForbidden: the key lacks the scope.
            VisibilityForbidden: its trust level cannot write.
        """
        principal.require(scope)
        policy = self._policies.current
        policy.write_visibility(principal.trust, None)
        return policy, self._clock()

    async def require_sources(self, scope: Scope, ids: Sequence[UUID]) -> None:
        """Refuse sources that the writer cannot read, whether they are absent, another user's or in another category.

        Args:
            scope: what the writer may read.
            ids: the sources.

        Raises:
            UnknownSource: at least one is not in scope.
        """
        if not ids:
            return
        lasting = replace(
            scope, states=(State.ACTIVE, State.SUPERSEDED, State.ARCHIVED), trust_states=tuple(TrustState)
        )
        async with self._storage.reading(Reach(scope.tenant, scope.users)) as reader:
            found = await reader.units(lasting, ids)
        if unknown := [str(each) for each in dict.fromkeys(ids) if each not in found]:
            raise UnknownSource(
                f"source_ids: {', '.join(unknown)}: no turn or memory that this key may read; leave it out",
                field="source_ids",
                ids=unknown,
            )

    async def material(self, *texts: MemoryText | str) -> list[SearchMaterial]:
        """Search material for texts: of memories, and of turns as they were said.

        Computed before a transaction opens: no connection is held while a model works.
        """
        told = [(each, None) if isinstance(each, str) else (each.searchable(), each.lang) for each in texts]
        vectors = await self._embedders.embed([each if isinstance(each, str) else each.embeddable() for each in texts])
        found = await offload(sum(len(words) for words, _ in told), lambda: [terms(*each) for each in told])
        return [SearchMaterial(*both) for both in zip(found, vectors, strict=True)]

    async def material_of(self, text: MemoryText) -> SearchMaterial:
        """Search material for a memory."""
        (material,) = await self.material(text)
        return material

    async def run(
        self,
        principal: Principal,
        policy: Policy,
        now: datetime,
        work: Callable[[Write], Awaitable[T]],
        *,
        users: Collection[str] = (),
        once: Once[T] | None = None,
    ) -> T:
        """Run the work in one transaction, again when the database asks for a retry.

        Args:
            principal: the caller.
            policy: the policy in force when the request came.
            now: when it came.
            work: what to do.
            users: whose memories will be written, as far as it is known before.
            once: what to keep of the outcome, so that the same request has no second effect.

        Raises:
            AlreadyDone: the request was carried out before.
            IdempotencyMismatch: its key was used for another one.
            OutOfOrder: what it comes after was not carried out.
        """
        await self._check_embedding(principal.tenant)
        if once is not None and once.after is not None:
            await self._under_way.over((principal.namespace, once.after))

        about: list[Write] = []
        active: set[str] = set()

        async def attempt(uow: UnitOfWork) -> T:
            model = uow.in_force.model or self._embedders.own
            write = Write(principal, policy, now, uow, model.name, self._ledger)
            about[:] = [write]
            write.about(users)
            await write.dig(users)
            done = await work(write)
            active.clear()
            active.update(await self.activity.note(uow, principal, write.users, now))
            return done

        # where writers take turns anyway, a second queue would only add its wait to theirs
        queued = users if Capability.SIMULTANEOUS_WRITES in self._storage.capabilities else ()
        async with self._queues.of(principal.tenant, queued):
            told = None if once is None else replace(once, about=lambda: about[0].user)
            done = await self._carry_out(principal, attempt, now, users, told)
        self._carried_out(about[0], active)
        return done

    async def _check_embedding(self, tenant: str) -> None:
        await self._guard.check(tenant)

    async def _carry_out(
        self,
        principal: Principal,
        attempt: Callable[[UnitOfWork], Awaitable[T]],
        now: datetime,
        users: Collection[str],
        once: Once[T] | None,
    ) -> T:
        """Run the work in one transaction and commit it."""
        return await run_once(self._storage, principal, attempt, now, users=users, once=once)

    def _carried_out(self, write: Write, active: Collection[str]) -> None:
        """Remember what the committed write noted of users."""
        self.activity.confirm(write.principal.tenant, active, write.now)

    async def time_zones(self, principal: Principal, users: Collection[str]) -> Mapping[str, str]:
        """The time zones that some users set."""
        async with self._storage.reading(principal.reach) as reader:
            return await reader.time_zones(users)

    @contextmanager
    def under_way(self, principal: Principal, once: Once[T] | None) -> Iterator[None]:
        """Let what comes after a request wait for it, from before it is prepared until it is over."""
        with nullcontext() if once is None else self._under_way.under_name((principal.namespace, once.key)):
            yield

    async def raise_if_done(self, principal: Principal, once: Once[T] | None) -> None:
        """Stop here when the request was carried out before: for work that looks at what it changes beforehand.

        Raises:
            AlreadyDone: it was carried out before.
            IdempotencyMismatch: its key was used for another one.
        """
        await raise_if_done(self._storage, principal, once)


def clean_id(value: str | None, field: str) -> str | None:
    """A caller's own name for a user, thread, agent, run, actor or record: one line, at most 255 characters.

    Raises:
        InvalidText: it is empty or cannot be stored.
        LimitExceeded: it is too long.
    """
    if value is None:
        return None
    clean = " ".join(normalise(value, field).split())
    if len(clean) > MAX_ID_CHARS:
        raise LimitExceeded(f"{field}: {len(clean)} characters, at most {MAX_ID_CHARS}", field=field)
    if (size := len(clean.encode())) > MAX_ID_BYTES:
        raise LimitExceeded(f"{field}: {size} bytes, at most {MAX_ID_BYTES}", field=field)
    return clean


def clean_filters(filters: Filters) -> Filters:
    """Filters whose names are normalised as they were when they were stored, so that they compare equal.

    Raises:
        InvalidText: a name is empty or cannot be stored.
        LimitExceeded: a name is too long.
    """
    return replace(
        filters,
        user_id=clean_id(filters.user_id, "user_id"),
        agent_id=clean_id(filters.agent_id, "agent_id"),
        run_id=clean_id(filters.run_id, "run_id"),
        actor_id=clean_id(filters.actor_id, "actor_id"),
        thread_id=clean_id(filters.thread_id, "thread_id"),
        entities=tuple(name for each in filters.entities if (name := clean_id(each, "entity"))),
        tags=tuple(normalise(tag, "tags") for tag in filters.tags),
    )

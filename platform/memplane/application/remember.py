"""Create, change and delete memories."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from uuid import UUID

from memplane.application.gateway import Gateway, Write, clean_id
from memplane.domain.attributes import checked
from memplane.domain.delta import ChangeEvent
from memplane.domain.errors import Conflict, Invalid, NotFound, VersionConflict, VisibilityForbidden
from memplane.domain.history import HistoryEvent
from memplane.domain.lifecycle import PURGE_AFTER, check_transition
from memplane.domain.memory import (
    Memory,
    MemoryText,
    MemoryType,
    Role,
    Source,
    State,
    Visibility,
    new_id,
)
from memplane.domain.merging import value_hash
from memplane.domain.policy import Policy, Trust
from memplane.domain.principal import Principal
from memplane.domain.scope import Scope, read_scope, trust_levels
from memplane.domain.writing import constrain, numbered

_MISSING = "no such memory"
_TRIES = 3


@dataclass(frozen=True, slots=True)
class NewMemory:
    """What a caller may say of a new memory; trust and source are not the caller's to say."""

    user_id: str
    category: str
    text: MemoryText
    type: MemoryType = MemoryType.SEMANTIC
    visibility: Visibility | None = None
    min_trust: str | None = None
    agent_id: str | None = None
    run_id: str | None = None
    actor_id: str | None = None
    role: Role | None = None
    thread_id: str | None = None
    external_id: str | None = None
    importance: int = 3
    pinned: bool = False
    confidence: float = 1.0
    source_ids: tuple[UUID, ...] = ()
    event_time: datetime | None = None
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    expires_at: datetime | None = None
    attributes: Mapping[str, object] = field(default_factory=dict)


TEXT_FIELDS = frozenset({"content", "title", "narrative", "facts", "steps", "tags", "related_files", "lang"})
RECORD_FIELDS = frozenset(
    {"category", "importance", "pinned", "confidence", "event_time", "valid_from", "valid_until", "expires_at"}
    | {"attributes"}
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a write did.

    Attributes:
        outcome: ``created``, ``updated``, ``duplicate``, ``deleted`` or ``unchanged``.
        memory: the memory as it is now.
        rev: the thread's revision, for a memory with a thread.
    """

    outcome: str
    memory: Memory
    rev: int | None


class Remember:
    """The writes of single memories."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def create(self, principal: Principal, new: NewMemory, agent: str | None = None) -> Outcome:
        """Store a memory; one that is there already is counted as mentioned again.

        Raises:
            CategoryForbidden, VisibilityForbidden, UserForbidden, AgentForbidden, ScopeForbidden: not allowed.
            InvalidText, LimitExceeded, WritingConstraintViolated: the text cannot be stored as it is.
        """
        policy, now = self._gateway.begin(principal)
        speaker = principal.speak_as(agent)
        memory = prepare(principal, policy, new, now, speaker)
        material = await self._gateway.material_of(memory.text)

        async def work(write: Write) -> Outcome:
            for _ in range(_TRIES):
                if await write.uow.memories.add(memory, material):
                    rev = await write.changed(HistoryEvent.ADD, ChangeEvent.CREATED, memory)
                    return Outcome("created", memory, rev)
                there = await write.uow.memories.find_duplicate(memory)
                if there is not None and there.expires_at is not None and there.expires_at <= now:
                    await _retired(write, there)
                elif there is not None:
                    return await _mentioned(write, there, memory, speaker)
            raise Conflict("the same memory is being changed at this moment; try again")

        return await self._gateway.run(principal, policy, now, work)

    async def update(
        self,
        principal: Principal,
        memory_id: UUID,
        changes: Mapping[str, object],
        *,
        version: int | None = None,
        agent: str | None = None,
    ) -> Outcome:
        """Change fields of a memory in place; its older text stays in the history.

        Args:
            principal: the caller.
            memory_id: which memory.
            changes: new values by field, of ``TEXT_FIELDS`` and ``RECORD_FIELDS``.
            version: the version that the caller holds, or none to change whichever is there.
            agent: the agent to act for.

        Raises:
            NotFound: absent, or not the caller's.
            VersionConflict: it changed since.
            Conflict: another memory says exactly this already.
        """
        policy, now = self._gateway.begin(principal)
        speaker = principal.speak_as(agent)
        if unknown := set(changes) - TEXT_FIELDS - RECORD_FIELDS:
            raise Invalid(f"these fields cannot be changed: {', '.join(sorted(unknown))}")
        if "category" in changes:
            policy.check_write(speaker, str(changes["category"]))
        for _ in range(_TRIES):
            read = partial(_locked, agent=speaker, memory_id=memory_id, version=version)
            before = await self._gateway.run(principal, policy, now, read)
            try:
                return await self._replace(principal, policy, now, before, changes, speaker)
            except VersionConflict:
                if version is not None:
                    raise
        raise Conflict("the memory is being changed at this moment; try again")

    async def _replace(
        self,
        principal: Principal,
        policy: Policy,
        now: datetime,
        before: Memory,
        changes: Mapping[str, object],
        speaker: str,
    ) -> Outcome:
        """Change the memory, if it is still as it was read.

        Raises:
            VersionConflict: it is not.
        """
        changed = _changed(before, changes, policy, now)
        material = await self._gateway.material_of(changed.text) if changed.text != before.text else None

        async def work(write: Write) -> Outcome:
            current = await _locked(write, speaker, before.id, before.version)
            if _same(current, changed):
                return Outcome("unchanged", current, None)
            if not await write.uow.memories.replace(changed, material):
                raise Conflict("another memory of this user and category says exactly this already")
            rev = await write.changed(
                HistoryEvent.UPDATE, ChangeEvent.UPDATED, changed, current, {"fields": sorted(changes)}
            )
            return Outcome("updated", changed, rev)

        return await self._gateway.run(principal, policy, now, work)

    async def delete(
        self, principal: Principal, memory_id: UUID, *, version: int | None = None, agent: str | None = None
    ) -> Outcome:
        """Take a memory out of every read at once; it can be restored until its purge.

        Raises:
            NotFound: absent, deleted already, or not the caller's.
            VersionConflict: it changed since.
        """
        policy, now = self._gateway.begin(principal)
        speaker = principal.speak_as(agent)

        async def work(write: Write) -> Outcome:
            before = await _locked(write, speaker, memory_id, version)
            check_transition(before.state, State.SOFT_DELETED)
            gone = _deleted(before, now)
            await write.uow.memories.replace(gone, None)
            rev = await write.changed(HistoryEvent.DELETE, ChangeEvent.SOFT_DELETED, gone, before)
            return Outcome("deleted", gone, rev)

        return await self._gateway.run(principal, policy, now, work)


def prepare(principal: Principal, policy: Policy, new: NewMemory, now: datetime, agent: str) -> Memory:
    """A new memory, authorised, normalised and constrained, ready to be stored."""
    policy.check_write(agent, new.category)
    user_id = principal.touch(clean_id(new.user_id, "user_id") or "")
    visibility = policy.write_visibility(principal.trust, new.visibility)
    if new.min_trust is not None and new.min_trust not in trust_levels(principal.trust):
        raise VisibilityForbidden(f"min_trust: '{new.min_trust}' is above this key's own trust", field="min_trust")
    text = constrain(new.text, new.type, policy.writing)
    return Memory(
        id=new_id(),
        user_id=user_id,
        category=new.category,
        type=new.type,
        visibility=visibility,
        text=text,
        value_hash=value_hash(text),
        source=Source.AGENT,
        recorded_at=now,
        updated_at=now,
        agent_id=clean_id(new.agent_id, "agent_id") or agent,
        run_id=clean_id(new.run_id, "run_id"),
        actor_id=clean_id(new.actor_id, "actor_id"),
        role=new.role,
        thread_id=clean_id(new.thread_id, "thread_id"),
        external_id=clean_id(new.external_id, "external_id"),
        importance=new.importance,
        pinned=new.pinned,
        confidence=new.confidence,
        min_trust=new.min_trust or Trust.PUBLIC,
        source_ids=new.source_ids,
        event_time=new.event_time,
        valid_from=new.valid_from,
        valid_until=new.valid_until,
        expires_at=new.expires_at,
        attributes=checked(new.attributes),
    )


def writable_scope(write: Write, agent: str) -> Scope:
    """What an agent may change: memories that it may both read and write."""
    allowed = write.policy.allowlist(agent)
    both = tuple(name for name in allowed.read if name in allowed.write)
    return read_scope(write.principal, write.policy, both, write.now)


async def _locked(write: Write, agent: str, memory_id: UUID, version: int | None) -> Memory:
    memory = await write.uow.memories.lock(writable_scope(write, agent), memory_id)
    if memory is None:
        raise NotFound(_MISSING)
    if version is not None and memory.version != version:
        raise VersionConflict(
            f"the memory is at version {memory.version}, not {version}: read it again", version=memory.version
        )
    return memory


async def _retired(write: Write, expired: Memory) -> None:
    """Take an expired memory out of the way of one that says the same anew."""
    gone = _deleted(expired, write.now)
    await write.uow.memories.replace(gone, None)
    await write.changed(HistoryEvent.TTL, ChangeEvent.SOFT_DELETED, gone, expired)


async def _mentioned(write: Write, there: Memory, told: Memory, agent: str) -> Outcome:
    if there.value_hash != told.value_hash:  # found by its name alone, which must not open another category
        allowed = write.policy.allowlist(agent).read
        scope = read_scope(write.principal, write.policy, allowed, write.now)
        if await write.uow.memories.lock(scope, there.id) is None:
            raise Conflict("external_id: is taken; choose another", field="external_id")
    again = replace(there, mention_count=there.mention_count + 1, updated_at=write.now, version=there.version + 1)
    await write.uow.memories.replace(again, None)
    await write.changed(HistoryEvent.MENTION, None, again, there, {"mention_count": again.mention_count})
    rev = await write.uow.threads.revision(told.user_id, told.thread_id) if told.thread_id else None
    return Outcome("duplicate", again, rev)


def _deleted(memory: Memory, now: datetime) -> Memory:
    return replace(
        memory, state=State.SOFT_DELETED, purge_at=now + PURGE_AFTER, updated_at=now, version=memory.version + 1
    )


def _changed(before: Memory, changes: Mapping[str, object], policy: Policy, now: datetime) -> Memory:
    words = {name: value for name, value in changes.items() if name in TEXT_FIELDS}
    record = {name: value for name, value in changes.items() if name in RECORD_FIELDS}
    text = before.text
    if "attributes" in record:
        record["attributes"] = checked(record["attributes"] or {})  # type: ignore[arg-type]  # it checks every form
    if words:
        if "content" in words:
            words = {"narrative": None} | words  # what was too long in the older text went there
        elif "steps" in words and text.content == numbered(text.steps):
            words = words | {"content": numbered(words["steps"])}  # type: ignore[arg-type]  # a tuple of steps
        renumbered = {"steps": ()} if "content" in words and "steps" not in words and text.steps else {}
        merged = replace(text, **(renumbered | words))  # type: ignore[arg-type]  # names checked by replace
        text = constrain(merged, before.type, policy.writing)
    changed = replace(before, text=text, value_hash=value_hash(text), **record)  # type: ignore[arg-type]  # as above
    return replace(changed, updated_at=now, version=before.version + 1)


def _same(before: Memory, after: Memory) -> bool:
    return replace(after, updated_at=before.updated_at, version=before.version) == before

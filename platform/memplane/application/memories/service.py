"""Create, change and delete memories."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from uuid import UUID

from memplane.application.consent.proposals import require_consent, require_consent_to_change, seen_in
from memplane.application.limits.idempotency import Once
from memplane.application.limits.offload import in_thread
from memplane.application.limits.quotas import charge
from memplane.application.memories.authorization import (
    AUTHORITY,
    LASTING,
    find_target,
    lock_target,
    require_full,
    require_weight,
)
from memplane.application.memories.cascade_delete import cascade_delete
from memplane.application.memories.conflicts import rejudge
from memplane.application.memories.gateway import Gateway, Write, clean_id
from memplane.application.memories.placement import STORED, Candidate, Outcome, note_mentions, place
from memplane.application.memories.restoration import add_tombstones
from memplane.application.memories.shared_memories import owner_of, require_shareable
from memplane.application.memories.supersession import (
    OverruleResult,
    PendingWrites,
    as_deleted,
    overrule,
    own_end,
    refuse_rejected,
    rejection_error,
    said_now,
)
from memplane.application.recall.search_material import SearchMaterial
from memplane.domain.errors import (
    InvalidInterval,
    InvalidRequest,
    LessTrustedWords,
    StateConflict,
    VersionMismatch,
    VisibilityForbidden,
)
from memplane.domain.identity.principal import Principal
from memplane.domain.memory.attributes import check_attributes
from memplane.domain.memory.delta import ChangeEvent
from memplane.domain.memory.history import HistoryEvent
from memplane.domain.memory.items import no_item
from memplane.domain.memory.lifecycle import check_transition
from memplane.domain.memory.memory import (
    Memory,
    MemoryText,
    MemoryType,
    Role,
    Source,
    State,
    TrustState,
    Visibility,
    new_id,
)
from memplane.domain.memory.merging import value_hash
from memplane.domain.memory.scope import Scope, read_scope, trust_levels
from memplane.domain.memory.writing import Style, constrain, number_lines, style_warnings
from memplane.domain.policy.policy import Policy, Speaker, Trust
from memplane.domain.privacy import pii
from memplane.domain.privacy.screening import screen_text, screened_values

_MISSING = "no such memory"
_TRIES = 20


@dataclass(frozen=True, slots=True)
class NewMemory:
    """What a caller may say of a new memory; trust and source are not the caller's to say.

    Attributes:
        user_id: whom it is about; ``None`` for nobody: it is part of the recall of every user of the tenant.
    """

    user_id: str | None
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


ANYONES = frozenset({"importance", "pinned"})
"""Fields that do not change what a memory says, when, or to whom: who may write the category may change them."""
TEXT_FIELDS = frozenset({"content", "title", "narrative", "facts", "steps", "tags", "related_files", "lang"})
RECORD_FIELDS = frozenset(
    {"category", "importance", "pinned", "confidence", "event_time", "valid_from", "valid_until", "expires_at"}
    | {"attributes"}
)


class Remember:
    """The writes of single memories."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def create(
        self,
        principal: Principal,
        new: NewMemory,
        agent: str | None = None,
        *,
        source: Source = Source.AGENT,
        once: Once[Outcome] | None = None,
    ) -> Outcome:
        """Store a memory, once: what says the same is merged with it, what it overrules becomes a thing of the past.

        One that would change a sensitive field of the profile waits for consent instead.

        Raises:
            CategoryForbidden, VisibilityForbidden, UserForbidden, AgentForbidden, ScopeForbidden: not allowed.
            InvalidText, LimitExceeded, WritingConstraintViolated, PersonalDataRefused: the text cannot be stored so.
            UnknownSource: a source is nothing that the writer may read.
            ValueRejected: a person rejected or erased this value.
            AlreadyDone: the same request was carried out before.
        """
        policy, now = self._gateway.begin(principal)
        speaker = principal.speak_as(agent)
        try:
            memory = await in_thread(prepare, principal, policy, new, now, speaker, source)
            await self._gateway.require_sources(sources_scope(principal, policy, speaker, now), memory.source_ids)
        except InvalidRequest:
            await self._gateway.raise_if_done(principal, once)  # what could be stored then may be too late now
            raise
        fresh = Candidate(memory, await self._gateway.material_of(memory.text), speaker)
        sensitive = await seen_in(policy, memory)

        async def work(write: Write) -> Outcome:
            placed = await require_consent(write, memory, sensitive, policy.allowlist(speaker).read)
            if placed is None:  # a transaction that begins anew has placed nothing yet
                placed = await place(write, replace(fresh, placed=PendingWrites()))
            await charge(write, memory.user_id, stores=placed.outcome in STORED)
            # a memory that was there already may lie in another thread: the caller's own is told
            placed = replace(placed, rev=await write.settle(memory.user_id, memory.thread_id))
            placed = replace(placed, warnings=style_warnings(memory.text, memory.type, policy.writing))
            return _readable(policy, speaker, placed)

        done = await self._gateway.run(principal, policy, now, work, users=[memory.user_id], once=once)
        if done.outcome == "refused":
            raise rejection_error()
        return done

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
            ConsentRequired: a sensitive field that the memory states would be gone.
        """
        policy, now = self._gateway.begin(principal)
        speaker = principal.act_as(agent)
        if unknown := set(changes) - TEXT_FIELDS - RECORD_FIELDS:
            raise InvalidRequest(f"these fields cannot be changed: {', '.join(sorted(unknown))}")
        if "category" in changes:
            policy.check_write(speaker, str(changes["category"]))
        for _ in range(_TRIES):
            read = partial(find_target, agent=speaker, memory_id=memory_id, version=version)
            before = await self._gateway.run(principal, policy, now, read)
            try:
                return await self._replace(principal, policy, now, before, changes, speaker)
            except VersionMismatch:
                if version is not None:
                    raise
        raise StateConflict("the memory is being changed at this moment; try again")

    async def _replace(
        self,
        principal: Principal,
        policy: Policy,
        now: datetime,
        before: Memory,
        changes: Mapping[str, object],
        speaker: Speaker,
    ) -> Outcome:
        """Change the memory, if it is still as it was read.

        Raises:
            VersionConflict: it is not.
        """
        changed = await in_thread(_changed, before, changes, policy, now)
        if changed.text != before.text and AUTHORITY[principal.trust] > before.authority:
            _states_all(before, changes)  # who rewrites stands behind the words; who pins them does not
            changed = replace(changed, authority=AUTHORITY[principal.trust])
        material = await self._gateway.material_of(changed.text) if _says(before) != _says(changed) else None

        async def work(write: Write) -> Outcome:
            current = await lock_target(write, speaker, before.id, before.version)
            if set(changes) - ANYONES:
                require_weight(principal, current)
            if _same(current, changed):
                return Outcome("unchanged", current, None)
            ruled = OverruleResult(changed)
            if material is not None:
                await refuse_rejected(write, changed)
                waiting = await require_consent_to_change(write, current, changed, policy.allowlist(speaker).read)
                if waiting is not None:
                    return replace(waiting, rev=await write.settle(changed.user_id, changed.thread_id))
                said = changed if changed.text == current.text else await _said(write, changed, changes)
                ruled = await _ruled(write, said, material)
            after = _hit(ruled.memory, current, write.now)
            if not await write.uow.memories.replace(after, material):
                raise StateConflict("another memory of this user and category says exactly this already")
            conflicts: tuple[UUID, ...] = ()
            if material is not None:
                await note_mentions(write, after)
                if after.state is State.ACTIVE:
                    conflicts = await rejudge(write, current, after, material)
            await charge(write, after.user_id, stores=_size(after) > _size(current))
            was = {name: _plain(_value(current, name)) for name in changes if name != "content"}
            meta: dict[str, object] = {"fields": sorted(changes), "was": was}
            over = after.state is State.SUPERSEDED
            meta |= own_end(changed) if over else {}
            told = ChangeEvent.SUPERSEDED if over else ChangeEvent.UPDATED
            write.record_change(HistoryEvent.UPDATE, told, after, current, meta)
            rev = await write.settle(after.user_id, after.thread_id)
            outcome = "outdated" if over else "updated"
            advised = style_warnings(after.text, after.type, policy.writing) if "content" in changes else ()
            done = Outcome(outcome, after, rev, ruled.memory_ids, conflicts=conflicts, warnings=advised)
            return _readable(policy, speaker, done)

        return await self._gateway.run(principal, policy, now, work, users=[before.user_id])

    async def delete(
        self, principal: Principal, memory_id: UUID, *, version: int | None = None, agent: str | None = None,
        tombstone: bool = False,
    ) -> Outcome:  # fmt: skip
        """Take a memory out of every read at once; it can be restored until its purge.

        Args:
            principal: the caller.
            memory_id: which.
            version: the version that the caller holds, or none.
            agent: the agent to act for, or none for the key's own.
            tombstone: whether its value is refused from now on, until it is restored.

        Raises:
            NotFound: absent, deleted already, or not the caller's.
            VersionConflict: it changed since.
            TrustTooLow: a more trusted writer stands behind it; or the key is not fully trusted, for a tombstone.
        """
        policy, now = self._gateway.begin(principal)
        if tombstone:
            require_full(principal, "refuse a value")
        speaker = principal.act_as(agent)

        async def work(write: Write) -> Outcome:
            before = await lock_target(write, speaker, memory_id, version, LASTING)
            require_weight(principal, before)
            check_transition(before.state, State.SOFT_DELETED)
            gone = as_deleted(write, before)
            await write.uow.memories.replace(gone, None)
            if tombstone:
                await add_tombstones(write, before, "deleted")
            meta = {"tombstone": True} if tombstone else {}
            write.record_change(HistoryEvent.DELETE, ChangeEvent.SOFT_DELETED, gone, before, meta)
            await cascade_delete(write, [gone.id])
            return Outcome("deleted", gone, await write.settle(gone.user_id, gone.thread_id))

        return await self._gateway.run(principal, policy, now, work)


def _readable(policy: Policy, agent: Speaker, outcome: Outcome) -> Outcome:
    """An outcome without the ids of what was overruled, in a category that the agent writes and does not read."""
    reads = outcome.memory.category in policy.allowlist(agent).read
    return outcome if reads else replace(outcome, overruled=(), conflicts=())


_STYLES = {Source.AGENT: Style.FULL, Source.EXTRACTION: Style.FREE, Source.MIGRATION: Style.FREE}
"""How the words of a source are held to the rules of style; what is not named here comes of background work."""


def sources_scope(principal: Principal, policy: Policy, speaker: Speaker, now: datetime) -> Scope:
    """Where the sources of a memory must stand: what its writer may read, of whatever user."""
    return read_scope(principal, policy, policy.allowlist(speaker).read, now).with_shared(policy.shared)


def prepare(
    principal: Principal, policy: Policy, new: NewMemory, now: datetime, agent: Speaker, source: Source = Source.AGENT
) -> Memory:
    """A new memory, authorised, normalised and constrained, ready to be stored."""
    policy.check_write(agent, new.category)
    return _composed(principal, policy, new, now, agent, source)


def prepare_drawn(
    principal: Principal, policy: Policy, new: NewMemory, now: datetime, agent: str, source: Source = Source.EXTRACTION
) -> Memory:
    """The same for what is drawn from turns that an agent recorded, which goes by the allowlist of extraction."""
    policy.check_drawn(agent, new.category)
    return _composed(principal, policy, new, now, agent, source)


def _composed(
    principal: Principal, policy: Policy, new: NewMemory, now: datetime, agent: Speaker, source: Source
) -> Memory:
    user_id = owner_of(principal, new.user_id)
    visibility = policy.write_visibility(principal.trust, new.visibility)
    if new.min_trust is not None and new.min_trust not in trust_levels(principal.trust):
        raise VisibilityForbidden(f"min_trust: '{new.min_trust}' is above this key's own trust", field="min_trust")
    _lies_ahead(new.expires_at, now)
    require_interval(new.valid_from, new.valid_until)
    rules = policy.category(new.category).pii
    style = _STYLES.get(source, Style.SUBJECTS)
    text = screen_text(constrain(new.text, new.type, policy.writing, style), rules, policy.find_pii)
    external_id = clean_id(new.external_id, "external_id")
    memory = Memory(
        id=new_id(),
        user_id=user_id,
        category=new.category,
        type=new.type,
        visibility=visibility,
        text=text,
        value_hash=value_hash(text, external_id),
        source=source,
        authority=AUTHORITY[principal.trust],
        pii=pii.kinds(text.searchable(), policy.find_pii),
        recorded_at=now,
        updated_at=now,
        agent_id=clean_id(new.agent_id, "agent_id") or (agent if isinstance(agent, str) else None),
        run_id=clean_id(new.run_id, "run_id"),
        actor_id=clean_id(new.actor_id, "actor_id"),
        role=new.role,
        thread_id=clean_id(new.thread_id, "thread_id"),
        external_id=external_id,
        importance=new.importance,
        pinned=new.pinned,
        confidence=new.confidence,
        decay_rate=policy.lifecycle.decay_rate if new.type is MemoryType.SEMANTIC else 0.0,
        min_trust=new.min_trust or Trust.PUBLIC,
        source_ids=new.source_ids,
        event_time=new.event_time,
        valid_from=new.valid_from,
        valid_until=new.valid_until,
        expires_at=new.expires_at,
        attributes=screened_values(check_attributes(new.attributes), rules, policy.find_pii),
    )
    require_shareable(policy, memory, of_agent=style is Style.FULL)
    return memory


def _lies_ahead(expires_at: object, now: datetime) -> None:
    """Refuse a memory that nobody would ever read."""
    if isinstance(expires_at, datetime) and expires_at <= now:
        raise InvalidRequest(
            f"expires_at: {expires_at.isoformat()} is in the past; to take a memory out, delete it", field="expires_at"
        )


def require_interval(valid_from: datetime | None, valid_until: datetime | None) -> None:
    """Refuse what would be true at no time.

    Raises:
        InvalidInterval: the end is not after the beginning.
    """
    if valid_from is not None and valid_until is not None and valid_until <= valid_from:
        raise InvalidInterval(
            f"valid_until: {valid_until.isoformat()} is not after valid_from, {valid_from.isoformat()}",
            field="valid_until",
        )


def _changed(before: Memory, changes: Mapping[str, object], policy: Policy, now: datetime) -> Memory:
    words = {name: value for name, value in changes.items() if name in TEXT_FIELDS}
    record = {name: value for name, value in changes.items() if name in RECORD_FIELDS}
    text, moved = before.text, "category" in record
    if changed_end := changes.get("expires_at"):
        _lies_ahead(changed_end, now)
    rules = policy.category(str(record.get("category", before.category))).pii
    if "attributes" in record or moved:
        attributes = check_attributes(record.get("attributes", before.attributes) or {})  # type: ignore[arg-type]  # it checks every form
        record["attributes"] = screened_values(attributes, rules, policy.find_pii)
    if moved:
        text = screen_text(text, rules, policy.find_pii)
    if words:
        if "content" in words:
            words = {"narrative": None} | words  # what was too long in the older text went there
        elif "steps" in words and text.content == number_lines(text.steps):
            words = words | {"content": number_lines(words["steps"])}  # type: ignore[arg-type]  # a tuple of steps
        renumbered = {"steps": ()} if "content" in words and "steps" not in words and text.steps else {}
        merged = replace(text, **(renumbered | words))  # type: ignore[arg-type]  # names checked by replace
        style = Style.FULL if {"content", "steps"} & words.keys() else Style.FREE
        text = screen_text(constrain(merged, before.type, policy.writing, style), rules, policy.find_pii)
    if (words or moved) and "attributes" not in changes:
        before = no_item(before)
    kinds = pii.kinds(text.searchable(), policy.find_pii)
    key = value_hash(text, before.external_id)
    changed = replace(before, text=text, value_hash=key, pii=kinds, **record)  # type: ignore[arg-type]  # as above
    require_interval(changed.valid_from, changed.valid_until)
    require_shareable(policy, changed)
    return replace(changed, updated_at=now, version=before.version + 1)


def _states_all(before: Memory, changes: Mapping[str, object]) -> None:
    """Refuse a change that would lend authority to words of a less trusted writer."""
    stated = {*changes, *(("narrative", "steps") if "content" in changes else ())}
    left = [name for name in (*sorted(TEXT_FIELDS - {"lang"}), "attributes") if _value(before, name)]
    left = [name for name in left if name not in stated]
    if left:
        raise LessTrustedWords(
            f"{', '.join(left)}: written by a less trusted writer; a change of the words by a more trusted one states"
            " these fields too, or empties them",
            fields=left,
        )


def _says(memory: Memory) -> tuple[object, ...]:
    """What a memory says, and when it is so: a change of it may contradict others."""
    return (memory.text, memory.category, memory.attributes, memory.valid_from, memory.valid_until)


async def _ruled(write: Write, said: Memory, material: SearchMaterial) -> OverruleResult:
    """A changed memory in its place in time; one that waits for a verdict overrules nothing."""
    if said.trust_state is TrustState.DISPUTED:
        return OverruleResult(said)
    return await overrule(write, said, material, {"verdict": "updated"}, forgiving=True)


async def _said(write: Write, changed: Memory, changes: Mapping[str, object]) -> Memory:
    """A memory in new words; they are of the time that the change names, else of the memory's own, else of now."""
    return replace(changed, asserted_at=None) if changes.get("valid_from") else await said_now(write, changed)


def _hit(after: Memory, before: Memory, now: datetime) -> Memory:
    """A memory that counts as used now when its words are others; its score stays (koshi-hebbian, `memory_update`)."""
    return after if after.text == before.text else replace(after, last_hit_at=now)


def _size(memory: Memory) -> int:
    return len(memory.text.searchable()) + len(memory.text.narrative or "")


def _value(memory: Memory, name: str) -> object:
    return getattr(memory.text if name in TEXT_FIELDS else memory, name)


def _plain(value: object) -> object:
    """A field's value as JSON has it."""
    if isinstance(value, datetime):
        return value.isoformat()
    return list(value) if isinstance(value, tuple) else value


def _same(before: Memory, after: Memory) -> bool:
    return replace(after, updated_at=before.updated_at, version=before.version) == before

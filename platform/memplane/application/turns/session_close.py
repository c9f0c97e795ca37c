"""Close a conversation: what it was about is summed up, as a memory that is found like any other."""

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from memplane.application.consent.proposals import known_values
from memplane.application.jobs.job_submission import enqueue
from memplane.application.limits.idempotency import Once
from memplane.application.limits.offload import offload
from memplane.application.memories.gateway import Gateway, Write, clean_id
from memplane.application.memories.placement import Candidate, note_mentions, place
from memplane.application.memories.service import NewMemory, prepare
from memplane.application.memories.supersession import PendingWrites, evidence, is_rejected
from memplane.application.ports import Storage
from memplane.application.recall.search_material import SearchMaterial
from memplane.application.recall.threads import thread_user
from memplane.application.turns.session_records import Closing
from memplane.domain.errors import RecordNotFound, StateConflict, StorageUnavailable
from memplane.domain.identity.principal import KeyScope, Principal, Reach
from memplane.domain.language.extraction.session_summary import Said, SessionSummaryText, summarised
from memplane.domain.language.profile_statements import Sought, Stated, spoken_fields, stated_fields
from memplane.domain.memory.delta import ChangeEvent
from memplane.domain.memory.history import HistoryEvent
from memplane.domain.memory.memory import Memory, MemoryText, MemoryType, Role, Source, Turn, Visibility
from memplane.domain.memory.scope import Filters, read_scope
from memplane.domain.policy.policy import Policy

logger = logging.getLogger("memplane.sessions")
MOST = 1_000
"""The last turns of a conversation that are read to sum it up."""
_TRIES = 3
_TITLE = 120
"""Characters of a thread's name that a title takes."""
_OF_HEARER = tuple(
    (re.compile(rf"\b{word}\b", re.IGNORECASE), own)
    for word, own in (("you are", "I am"), ("you['’]re", "I'm"), ("your", "my"), ("you", "I"))
)


class TurnsGone(Exception):
    """A conversation is not as it was read: a turn that its summary quotes was deleted. It is to be read anew."""


@dataclass(frozen=True, slots=True)
class SessionCloseResult:
    """What closing did: ``closed``, or ``unchanged`` when nothing was said since the last time.

    Attributes:
        closing: the closing that holds now, with the memory that sums the conversation up.
        summary: what the conversation was about; ``None`` when nothing in it can be told.
        rev: the thread's revision.
        left_out: how many sentences the summary lacks because they state sensitive fields that nobody agreed to.
    """

    outcome: str
    closing: Closing
    summary: SessionSummaryText | None
    rev: int
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class SessionReading:
    """A conversation as it was read: its last turns, oldest first, and what they come to.

    Attributes:
        claims: the sensitive fields that its summary states.
        discreet: the same without the sentences that state them, where there are any.
        left_out: how many these are.
    """

    user_id: str
    turns: Sequence[Turn]
    summary: SessionSummaryText | None
    memory: Memory | None
    material: SearchMaterial | None
    claims: tuple[Stated, ...] = ()
    discreet: "SessionReading | None" = None
    left_out: int = 0


class CloseSessions:
    """Closes conversations."""

    def __init__(self, storage: Storage, gateway: Gateway) -> None:
        self._storage = storage
        self.gateway = gateway

    async def __call__(
        self,
        principal: Principal,
        thread_id: str,
        user_id: str | None = None,
        agent: str | None = None,
        *,
        once: Once[SessionCloseResult] | None = None,
    ) -> SessionCloseResult:
        """Close a conversation and store its summary; closed again after more was said, it says that too.

        Args:
            principal: the caller, who reads and writes turns.
            thread_id: the conversation.
            user_id: whose it is; may be left out where one user alone has a thread of this name.
            agent: the agent to speak as, or none for the key's own.
            once: what to keep of the outcome, so that the same request has no second effect.

        Raises:
            NotFound: there is no such thread, or it is not the caller's.
            AmbiguousThread: several users of the caller have one, and none was named.
            Conflict: turns of it are being deleted at this moment.
            CategoryForbidden, UserForbidden, VisibilityForbidden, AgentForbidden, ScopeForbidden: not allowed.
        """
        policy, now = self.gateway.begin(principal)
        principal.require(KeyScope.READ)  # the answer tells what was said
        speaker, thread = principal.speak_as(agent), clean_id(thread_id, "thread_id") or ""
        policy.check_write(speaker, policy.turns_category)
        policy.readable(speaker, (policy.turns_category,))
        policy.write_visibility(principal.trust, Visibility.PRIVATE)
        await self.gateway.raise_if_done(principal, once)

        async def tried() -> SessionCloseResult:
            read = await self.read_session(principal, policy, now, (thread, clean_id(user_id, "user_id"), speaker))

            async def work(write: Write) -> SessionCloseResult:
                return await note_close(write, read, thread, speaker)

            return await self.gateway.run(principal, policy, now, work, users=[read.user_id], once=once)

        for left in reversed(range(_TRIES)):
            try:
                done = await tried()
                break
            except TurnsGone:
                if not left:
                    raise StateConflict("turns of the conversation are being deleted; try again") from None
        if done.outcome == "closed" and policy.workers.schedules.get("facts") is not None:
            await self._queued(principal, now)
        return done

    async def _queued(self, principal: Principal, now: datetime) -> None:
        """Let what was said be consolidated soon.

        Not in the transaction that closes: its user is locked there, and a worker locks the job before its users.
        """
        try:
            await self._storage.write(Reach(principal.tenant), lambda uow: enqueue(uow, "facts", now))
        except (StateConflict, StorageUnavailable) as error:
            logger.warning("a closed conversation waits for the night to be consolidated: %s", error.code)

    async def read_session(
        self, principal: Principal, policy: Policy, now: datetime, of: tuple[str, str | None, str]
    ) -> SessionReading:
        """A conversation and what it comes to, before the transaction that closes it opens.

        Args:
            principal: the caller.
            policy: in force.
            now: when.
            of: the thread, whose it is if that is known, and the agent.

        Raises:
            NotFound: there is no such thread, or it is not the caller's.
            AmbiguousThread: several users of the caller have one, and none was named.
        """
        thread, named, _ = of
        scope = read_scope(principal, policy, (policy.turns_category,), now, Filters(user_id=named))
        async with self._storage.reading(principal.reach) as reader:
            user = await thread_user(reader, scope, thread, named)
            if user is None:
                raise RecordNotFound("no such thread")
            own = replace(scope, filters=Filters(user_id=user))
            _, newest = await reader.pages_and_window([], own, thread, MOST)
        if not newest:
            raise RecordNotFound("no such thread")
        turns = newest[::-1]
        summary = await offload(sum(len(turn.text) for turn in turns), summarised, turns)
        whole = SessionReading(user, turns, summary, None, None)
        if summary is None:
            return whole
        said = {each.text: claims_in(policy, each) for each in summary.told}
        claims = tuple(dict.fromkeys(claim for found in said.values() for claim in found))
        if not claims:
            return await self._composed(principal, policy, now, whole, of)
        left_out = sum(bool(found) for found in said.values())
        part = replace(whole, summary=summary.without(lambda each: bool(said[each.text])), left_out=left_out)
        discreet = await self._composed(principal, policy, now, part, of)
        return replace(await self._composed(principal, policy, now, whole, of), claims=claims, discreet=discreet)

    async def _composed(
        self, principal: Principal, policy: Policy, now: datetime, read: SessionReading, of: tuple[str, str | None, str]
    ) -> SessionReading:
        """A conversation with the memory that its summary becomes."""
        thread, _, agent = of
        if read.summary is None:
            return read
        new = _told(policy, read.user_id, thread, read.summary)
        memory = prepare(principal, policy, new, now, agent, Source.CONSOLIDATION)
        return replace(read, memory=memory, material=await self.gateway.material_of(memory.text))


def claims_in(policy: Policy, said: Said) -> tuple[Stated, ...]:
    """The sensitive fields that a sentence of a conversation states of its user, whoever says it."""
    text = said.text
    if said.turn.role is not Role.USER:  # `you live in Porto`
        for word, own in _OF_HEARER:
            text = word.sub(own, text)
    year = (said.turn.event_time or said.turn.recorded_at).year
    sensitive = frozenset(policy.consent.sensitive)
    of_user = stated_fields(MemoryText(text), None, Sought(frozenset(), sensitive, year=year))
    return (*spoken_fields(text, sensitive, year), *(each for each in of_user if each.of is None))


async def note_close(write: Write, read: SessionReading, thread: str, agent: str) -> SessionCloseResult:
    """Note the closing, with what was read of the conversation, unless somebody closed it with as much or more.

    Raises:
        TurnsGone: a turn that its summary quotes was deleted since it was read.
    """
    await write.uow.lock_users([read.user_id])
    if read.discreet is not None and read.memory is not None and not await _agreed(write, read.memory, read.claims):
        read = read.discreet
    quoted = () if read.summary is None else [turn.id for turn in read.summary.sources]
    if quoted and not (await write.uow.closings.remaining(quoted)).issuperset(quoted):
        raise TurnsGone
    before = await write.uow.closings.find(read.user_id, thread)
    last = read.turns[-1].seq
    if before is not None and before.seq >= last:
        return SessionCloseResult(
            "unchanged", before, read.summary, await write.uow.threads.revision(read.user_id, thread), read.left_out
        )
    told = None
    if read.memory is not None and read.material is not None:
        told = await _summed_up(write, read.memory, read.material, agent, before)
    since = await write.uow.closings.began_at(read.user_id, thread) if before is None else before.first_seen
    closing = Closing(read.user_id, thread, agent, since or read.turns[0].recorded_at, write.now, last, told)
    await write.uow.closings.keep(closing)
    if read.left_out:
        write.record_lost_fact(read.turns[-1], write.policy.turns_category, "skipped")
    rev = await write.settle(read.user_id, thread)
    return SessionCloseResult("closed", closing, read.summary, rev or 0, read.left_out)


async def _agreed(write: Write, memory: Memory, claims: Sequence[Stated]) -> bool:
    """Whether a person agreed to each of some claims."""
    known = await known_values(write, memory, {each.field for each in claims}, write.policy.categories)
    return all(each.key in known for each in claims)


async def _summed_up(
    write: Write, memory: Memory, material: SearchMaterial, agent: str, before: Closing | None
) -> UUID | None:
    """Store the summary, in the place of the one before; its id, or none when a person rejected what it says."""
    if before is not None and before.summary_id is not None:
        for there in await write.uow.upkeep.lock_active([before.summary_id]):  # none, if it was deleted or corrected
            if await is_rejected(write, memory):
                return None
            await _rewritten(write, there, memory, material)
            return there.id
    done = await place(write, Candidate(memory, material, agent, PendingWrites()))
    return None if done.outcome == "refused" else done.memory.id


async def _rewritten(write: Write, there: Memory, memory: Memory, material: SearchMaterial) -> None:
    """Let a summary say what is so by now; what it said stays in its history.

    Raises:
        Conflict: another memory says exactly this already.
    """
    if there.text == memory.text:
        return
    changed = replace(
        there,
        text=memory.text,
        value_hash=memory.value_hash,
        pii=memory.pii,
        source_ids=memory.source_ids,
        event_time=memory.event_time,
        attributes=memory.attributes,
        updated_at=write.now,
        version=there.version + 1,
    )
    if not await write.uow.memories.replace(changed, material):
        raise StateConflict("another memory of this user and category says exactly this already")
    await note_mentions(write, changed)
    write.record_change(HistoryEvent.UPDATE, ChangeEvent.UPDATED, changed, there, evidence(memory))


def _told(policy: Policy, user_id: str, thread: str, summary: SessionSummaryText) -> NewMemory:
    """The summary as a memory: an episode of the category of turns, with the turns that it quotes as its sources."""
    parts = [f"The user asked: {_ended(summary.request)}"] if summary.request else []
    parts += [f"The assistant said last: {_ended(summary.outcome)}"] if summary.outcome else []
    facts = [f"Decided: {each.text}" for each in summary.decisions]
    facts += [f"Open: {each.text}" for each in summary.open_items]
    title = f"Conversation {thread if len(thread) <= _TITLE else thread[: _TITLE - 1] + '…'}"
    text = MemoryText(" ".join(parts or facts[:1]), title=title, facts=tuple(facts))
    happened = summary.sources[-1]
    return NewMemory(
        user_id,
        policy.turns_category,
        text,
        MemoryType.EPISODIC,
        visibility=Visibility.PRIVATE,
        thread_id=thread,
        source_ids=tuple(turn.id for turn in summary.sources),
        event_time=happened.event_time or happened.recorded_at,
        attributes={"session": _structure(summary)},
    )


def _structure(summary: SessionSummaryText) -> dict[str, object]:
    """The summary part by part, as the memory's attributes have it."""
    return {
        "request": _words(summary.request),
        "outcome": _words(summary.outcome),
        "decisions": [each.text for each in summary.decisions],
        "open_items": [each.text for each in summary.open_items],
    }


def _words(said: Said | None) -> str | None:
    return None if said is None else said.text


def _ended(said: Said) -> str:
    return said.text if said.text.endswith((".", "!", "?", "…")) else f"{said.text}."

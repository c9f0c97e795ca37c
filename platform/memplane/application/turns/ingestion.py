"""Store the turns of conversations, word for word."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby

from memplane.application.jobs.job_submission import enqueue_for
from memplane.application.limits.idempotency import Once
from memplane.application.limits.offload import in_thread
from memplane.application.limits.quotas import charge
from memplane.application.memories.gateway import Gateway, Write, clean_id
from memplane.application.memories.supersession import PendingWrites, is_erased
from memplane.application.recall.search_material import SearchMaterial
from memplane.application.records import ChangeEntry, OperationalEvent
from memplane.application.turns.extraction import (
    ExtractedMemory,
    LostFact,
    TurnFacts,
    TurnStatement,
    extract_facts,
    is_readable,
    sparing,
    statements_of,
)
from memplane.application.turns.new_turn import NewTurn, is_vouched
from memplane.domain.errors import LimitExceeded, ValueRejected
from memplane.domain.identity.principal import Principal
from memplane.domain.jobs.job_definitions import SESSION_CLOSE
from memplane.domain.language.extraction.extraction import Omissions
from memplane.domain.language.extraction.extraction_dates import names_time
from memplane.domain.language.text import normalise
from memplane.domain.language.time_zones import offset_of
from memplane.domain.memory.delta import ChangeEvent
from memplane.domain.memory.memory import Role, Turn, Visibility, new_id
from memplane.domain.memory.turn_hashes import NAMES, name_key
from memplane.domain.policy.policy import Policy
from memplane.domain.privacy.erasure import TURNS, turn_key
from memplane.domain.privacy.screening import plain

MAX_BATCH = 1_000


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """A turn as stored; ``created`` is False when it was there already under the same external id.

    Attributes:
        turn: the turn.
        created: whether this call stored it.
        drawn: what was drawn from it in categories that the agent reads.
        elsewhere: how many facts it states in others, whatever became of them.
        omissions: what the limits of extraction left out of it, in whatever category.
    """

    turn: Turn
    created: bool
    drawn: tuple[ExtractedMemory, ...] = ()
    elsewhere: int = 0
    omissions: Omissions = field(default_factory=Omissions)


@dataclass(slots=True)
class _Stated:
    """What a turn states, ready to be placed."""

    facts: list[tuple[TurnStatement, SearchMaterial]] = field(default_factory=list)
    lost: list[LostFact] = field(default_factory=list)


class IngestTurns:
    """Stores turns so that the next request finds them."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def __call__(
        self,
        principal: Principal,
        new: Sequence[NewTurn],
        agent: str | None = None,
        *,
        once: Once[list[StoredTurn]] | None = None,
    ) -> list[StoredTurn]:
        """Store turns, all or none, in the order given, and the facts that users state; the answer is in that order.

        Nothing is drawn from what users say where the key lacks ``turns:user``: these turns are stored as unvouched.

        Raises:
            CategoryForbidden, UserForbidden, VisibilityForbidden, AgentForbidden, ScopeForbidden: not allowed.
            InvalidText, LimitExceeded: a text cannot be stored, or there are too many turns.
        """
        policy, now = self._gateway.begin(principal)
        speaker = principal.speak_as(agent)
        policy.check_write(speaker, policy.turns_category)
        policy.write_visibility(principal.trust, Visibility.PRIVATE)
        if len(new) > MAX_BATCH:
            raise LimitExceeded(f"turns: {len(new)} in one call, at most {MAX_BATCH}", limit=MAX_BATCH)
        zones = await self._zones(principal, new)
        clean, facts = await in_thread(_prepared, principal, policy, new, now, speaker, zones)
        material, stated = await self._material(clean, facts)

        async def work(write: Write) -> list[StoredTurn]:
            stored: dict[int, StoredTurn] = {}
            # threads in one order for every writer, so that two batches cannot wait for each other
            places = sorted(range(len(clean)), key=lambda i: (clean[i].user_id, clean[i].thread_id, i))
            for (user_id, thread_id), group in groupby(places, key=lambda i: (clean[i].user_id, clean[i].thread_id)):
                mine = list(group)
                pairs = [(clean[i], material[i]) for i in mine]
                stored.update(zip(mine, await append(write, user_id, thread_id, pairs), strict=True))
            for user_id in sorted({clean[i].user_id for i in places}):
                fresh = sum(clean[i].user_id == user_id and stored[i].created for i in places)
                await charge(write, user_id, writes=fresh, stores=fresh > 0)
            # all turns before the first fact: what becomes of facts that the agent may not read shows in no revision
            placed = PendingWrites()
            for i in (i for i in places if stored[i].created):
                if _is_classified(clean[i]):
                    write.record_classified(stored[i].turn, stated=bool(facts[i].statements))
                counted = replace(stored[i], omissions=facts[i].omissions)
                stored[i] = await _drawn(write, counted, stated[i], speaker, placed)
            await write.settle("", None)  # nobody asks for a thread's revision; each turn has its own
            await _close_others(write, [each.turn for each in stored.values() if each.created])
            return [stored[i] for i in range(len(clean))]

        users = {turn.user_id for turn in clean}
        return await self._gateway.run(principal, policy, now, work, users=users, once=once)

    async def _zones(self, principal: Principal, new: Sequence[NewTurn]) -> Mapping[str, str]:
        """The time zones of the users whose words name a time that depends on it."""
        users = {turn.user_id for turn in new if turn.role is Role.USER and turn.auto_extract and names_time(turn.text)}
        return await self._gateway.time_zones(principal, users) if users else {}

    async def _material(
        self, turns: Sequence[NewTurn], facts: Sequence[TurnFacts]
    ) -> tuple[list[SearchMaterial], list[_Stated]]:
        """Search material of turns, and of what they state; what cannot be made for a fact costs that fact alone."""
        texts = [turn.text for turn in turns]
        words = [statement.memory.text for each in facts for statement in each.statements]
        stated = [_Stated(lost=list(each.lost)) for each in facts]
        try:
            made = await self._gateway.material(*texts, *words)
        except Exception:
            if not words:
                raise
            return await self._gateway.material(*texts), await self._one_by_one(facts, stated)
        found = iter(made[len(texts) :])
        for each, ready in zip(facts, stated, strict=True):
            ready.facts = [(statement, next(found)) for statement in each.statements]
        return made[: len(texts)], stated

    async def _one_by_one(self, facts: Sequence[TurnFacts], stated: list[_Stated]) -> list[_Stated]:
        for each, ready in zip(facts, stated, strict=True):
            for statement in each.statements:
                with sparing(ready.lost, "embedding", statement.stated):
                    ready.facts.append((statement, await self._gateway.material_of(statement.memory.text)))
        return stated


async def _close_others(write: Write, turns: Iterable[Turn]) -> None:
    """Let the other conversations of users who began a new one be closed, where the policy has them closed by a job."""
    if write.policy.workers.schedules.get("sessions") is not None:
        users = {turn.user_id for turn in turns if turn.seq == 1}
        await enqueue_for(write.uow, SESSION_CLOSE, users, write.now)


async def _drawn(write: Write, stored: StoredTurn, stated: _Stated, agent: str, placed: PendingWrites) -> StoredTurn:
    """A new turn with what was drawn from it."""
    for each in stated.lost:
        write.record_lost_fact(stored.turn, each.category, each.status)
    done = await extract_facts(write, stored.turn, stated.facts, agent, placed)
    readable = [is_readable(write.principal, write.policy, agent, statement.memory) for statement, _ in stated.facts]
    told = tuple(drawn for drawn, reads in zip(done, readable, strict=True) if reads)
    return replace(stored, drawn=told, elsewhere=readable.count(False))


def _prepared(
    principal: Principal, policy: Policy, new: Sequence[NewTurn], now: datetime, agent: str, zones: Mapping[str, str]
) -> tuple[list[NewTurn], list[TurnFacts]]:
    """Turns as they are stored, and what each of them states; in a worker thread, for texts may be long."""
    clean = [
        clean_turn(principal, policy, replace(turn, time_zone=zones.get(turn.user_id)), f"turns[{place}].text")
        for place, turn in enumerate(new)
    ]
    return clean, [
        statements_of(principal, policy, turn, now, agent) if _is_classified(turn) else TurnFacts() for turn in clean
    ]


def _is_classified(turn: NewTurn) -> bool:
    """Whether a turn is looked through for facts."""
    return turn.role is Role.USER and turn.vouched and turn.auto_extract


async def append(
    write: Write, user_id: str, thread_id: str, new: Sequence[tuple[NewTurn, SearchMaterial]]
) -> list[StoredTurn]:
    """Append turns to one thread, which stays locked until the transaction ends."""
    threads = write.uow.threads
    names = [turn.external_id for turn, _ in new if turn.external_id is not None]
    if names:
        await threads.advance(user_id, thread_id, write.now, revs=0)
    known = dict(await threads.existing_turns(user_id, thread_id, names))
    if outweighed := {t.external_id for t, _ in new if t.external_id in known and _outweighs(t, known[t.external_id])}:
        await threads.release_names([known.pop(name).id for name in sorted(outweighed)])
    fresh = len({t.external_id for t, _ in new if t.external_id not in known and t.external_id is not None}) + sum(
        t.external_id is None for t, _ in new
    )
    if not fresh:
        return [StoredTurn(known[turn.external_id or ""], created=False) for turn, _ in new]
    unknown = [turn for turn, _ in new if turn.external_id not in known]
    await _refuse_erased(write, user_id, thread_id, unknown)
    await _refuse_deleted(write, user_id, thread_id, unknown)
    last = await threads.advance(user_id, thread_id, write.now, revs=fresh, turns=fresh)
    seq, rev = last.seq - fresh, last.rev - fresh
    answer: list[StoredTurn] = []
    rows: list[tuple[Turn, SearchMaterial]] = []
    for turn, material in new:
        if turn.external_id is not None and turn.external_id in known:
            answer.append(StoredTurn(known[turn.external_id], created=False))
            continue
        seq, rev = seq + 1, rev + 1
        row = _turn(turn, seq, rev, write)
        rows.append((row, material))
        write.effects.new_ids.append(row.id)
        answer.append(StoredTurn(row, created=True))
        if turn.external_id is not None:
            known[turn.external_id] = row
    await threads.add_turns(rows)
    await threads.log([_change(turn, write) for turn, _ in rows])
    await write.uow.journal.events([_event(turn, write) for turn, _ in rows])
    return answer


def _outweighs(new: NewTurn, there: Turn) -> bool:
    """Whether a turn takes the name of another: what a person said, from what nobody vouches that a person said."""
    said = new.role is Role.USER and new.vouched
    return said and not (there.role is Role.USER and there.vouched)


async def _refuse_erased(write: Write, user_id: str, thread_id: str, turns: Sequence[NewTurn]) -> None:
    """Stop here when a turn of the thread was erased with its user, unless the user says it again.

    Raises:
        ValueRejected: one was.
    """
    if not await write.graves(user_id):
        return
    said: dict[datetime | None, set[str]] = {}
    for turn in turns:
        anew = turn.role is Role.USER and turn.vouched and not write.imported
        moment = (turn.event_time or write.now) if anew else None
        said.setdefault(moment, set()).add(turn_key(thread_id, turn.text))
    if any([await is_erased(write, user_id, TURNS, keys, moment) for moment, keys in said.items()]):
        raise ValueRejected(
            "text: a turn of this thread was erased with its user; it is not stored again", field="text"
        )


async def _refuse_deleted(write: Write, user_id: str, thread_id: str, turns: Sequence[NewTurn]) -> None:
    """Stop here when a turn of the thread had the name of one of these, and was deleted.

    Raises:
        ValueRejected: one had.
    """
    keys = {name_key(thread_id, turn.external_id) for turn in turns if turn.external_id is not None}
    if keys and (
        await write.uow.removals.tombstoned_keys(user_id, NAMES, keys) or await is_erased(write, user_id, NAMES, keys)
    ):
        raise ValueRejected(
            "external_id: the turn of this name was deleted; it is not stored again", field="external_id"
        )


def clean_turn(principal: Principal, policy: Policy, turn: NewTurn, field: str) -> NewTurn:
    """A turn as it is stored.

    Raises:
        UserForbidden: the key may not touch its user.
        InvalidText, LimitExceeded, PersonalDataRefused: its text or a name cannot be stored.
    """
    limit = policy.writing.max_text_chars
    if len(turn.text) > limit:
        raise LimitExceeded(f"{field}: {len(turn.text)} characters, at most {limit}", field=field, limit=limit)
    return NewTurn(
        user_id=principal.touch(clean_id(turn.user_id, "user_id") or ""),
        thread_id=clean_id(turn.thread_id, "thread_id") or "",
        role=turn.role,
        text=plain(normalise(turn.text, field), policy.category(policy.turns_category).pii, field, policy.find_pii),
        actor_id=clean_id(turn.actor_id, "actor_id"),
        agent_id=clean_id(turn.agent_id, "agent_id"),
        run_id=clean_id(turn.run_id, "run_id"),
        event_time=turn.event_time,
        external_id=clean_id(turn.external_id, "external_id"),
        auto_extract=turn.auto_extract,
        vouched=is_vouched(principal, turn.role, before=turn.vouched),
        time_zone=turn.time_zone or offset_of(turn.event_time),
    )


def _turn(new: NewTurn, seq: int, rev: int, write: Write) -> Turn:
    return Turn(
        id=new_id(),
        user_id=new.user_id,
        thread_id=new.thread_id,
        seq=seq,
        rev=rev,
        role=new.role,
        text=new.text,
        recorded_at=write.now,
        actor_id=new.actor_id,
        agent_id=new.agent_id,
        run_id=new.run_id,
        event_time=new.event_time,
        external_id=new.external_id,
        key_id=write.principal.key_id,
        vouched=new.vouched,
        time_zone=new.time_zone,
    )


def _change(turn: Turn, write: Write) -> ChangeEntry:
    category = write.policy.turns_category
    return ChangeEntry(turn.user_id, turn.thread_id, turn.rev, turn.id, ChangeEvent.TURN, category, write.now)


def _event(turn: Turn, write: Write) -> OperationalEvent:
    return OperationalEvent(
        node="hotpath",
        op="turn",
        status="ok",
        ts=write.now,
        user_id=turn.user_id,
        thread_id=turn.thread_id,
        category=write.policy.turns_category,
    )

"""What each job does in one batch: it looks, locks users, looks again at what is locked, and changes all at once."""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby
from uuid import UUID

from memplane.application.erasure.user_erasure import erase_next_batch, locks
from memplane.application.jobs.job_records import Due, MemorySelection, TokensSpent
from memplane.application.memories.gateway import Write
from memplane.domain.errors import StorageUnavailable
from memplane.domain.identity.principal import Principal
from memplane.domain.language.text import instant
from memplane.domain.memory.active_days import Activity, present_since
from memplane.domain.memory.delta import ChangeEvent
from memplane.domain.memory.history import HistoryEvent
from memplane.domain.memory.lifecycle import (
    DAY,
    Cause,
    WeighedMemory,
    after,
    crowded_out,
    decayed_confidence,
    memories_to_archive,
)
from memplane.domain.memory.memory import Layer, Memory, State
from memplane.domain.privacy.erasure import Erasure

logger = logging.getLogger("memplane.jobs")
BATCH = 500
_CHAIN = "\x01chain"
_SETTLED = "settled"
"""What the place of the second half of `layers` begins with; users have no control characters in their names."""
AGAIN = "again"
"""The place of a next batch that begins at the beginning, where less is left by then."""
_ANSWERS = "answers"
"""What the place of the second part of `purge` begins with."""
_CHANGES, _EVENTS = "changes", "events"
"""The places of its last two parts, each of which begins at the beginning, where less is left by then."""


@dataclass(frozen=True, slots=True)
class JobBatch:
    """What a batch did.

    Attributes:
        counts: how many of what.
        place: where the next one begins; ``None`` at the end.
        scrub: whether what the storage remembers of erased rows is to be forgotten once it is committed.
        spent: what a language model took for it.
        skipped: why a part of its work was left out; ``None`` where nothing was.
    """

    counts: Mapping[str, float] = field(default_factory=dict)
    place: str | None = None
    scrub: bool = False
    spent: TokensSpent = field(default_factory=TokensSpent)
    skipped: str | None = None


Step = Callable[[Write, datetime, str | None], Awaitable[JobBatch]]
"""One batch of a job: the write under way, the moment by which the run decides, and where the batch begins."""
Prepare = Callable[[Principal, datetime, str | None], Awaitable[Step]]
"""What a job reads and works out before the transaction of its next batch opens: none is held while it thinks.

It is told who does the job, the moment by which the run decides, and where the batch begins.
"""


async def expiry(write: Write, as_of: datetime, place: str | None, user: str | None = None) -> JobBatch:
    """What has expired is gone from reads already; now it is deleted."""
    return await _deleting(write, MemorySelection(Due.EXPIRED, as_of, user=user), Cause.EXPIRED, place)


async def ttl(write: Write, as_of: datetime, place: str | None, user: str | None = None) -> JobBatch:
    """What nobody asked for in a long time, and is of no importance, is deleted."""
    rules = write.policy.lifecycle
    wanted = MemorySelection(
        Due.IDLE,
        as_of - rules.idle,
        rules.importance_below,
        rules.importance_below_in,
        present_since(as_of, rules.away),
        user,
    )
    found, following = await _found(write, wanted, place)
    since = await _ages_since(write, found, _touched, as_of)
    idle = [each for each in found if since[each.id] < wanted.moment]
    await _delete(write, idle, Cause.IDLE)
    return JobBatch({"deleted": len(idle)}, following)


async def decay(write: Write, as_of: datetime, place: str | None) -> JobBatch:
    """Confidence wanes with the days since access; what nobody can be sure of any more is deleted.

    It does not while the user is away for long: each night takes its part, so a night of such a day must take none.
    """
    rules = write.policy.lifecycle
    wanted = MemorySelection(Due.DECAYING, as_of, present_since=present_since(as_of, rules.away))
    found, following = await _found(write, wanted, place)
    since = await _ages_since(write, found, _accessed, as_of)
    left = {each.id: decayed_confidence(each.confidence, each.decay_rate, since[each.id], as_of) for each in found}
    await write.uow.upkeep.fade({each.id: left[each.id] for each in found if left[each.id] < each.confidence})
    gone = [replace(each, confidence=left[each.id]) for each in found if left[each.id] < rules.floor]
    await _delete(write, gone, Cause.DECAYED)
    return JobBatch({"faded": len(found) - len(gone), "deleted": len(gone)}, following)


async def purge(write: Write, as_of: datetime, place: str | None, user: str | None = None) -> JobBatch:
    """What is deleted, and can be restored no longer, is removed for good; then as old answers and counts of tokens.

    Last what threads were told of changes, and operational events, each for as long as the policy keeps it. Of one
    user alone, only what is deleted.
    """
    old = as_of - write.policy.lifecycle.purge_after
    if place is not None and place.startswith(_ANSWERS):
        since = place.removeprefix(_ANSWERS)
        swept = await write.uow.upkeep.sweep_answers(instant(since) if since else None, old, BATCH)
        return JobBatch({"answers": swept.count}, f"{_ANSWERS}{swept.last.isoformat()}" if swept.last else _CHANGES)
    if place in {_CHANGES, _EVENTS}:
        return await _untracked(write, as_of, place)
    found, following = await _found(write, MemorySelection(Due.PURGE, as_of, user=user), place)
    for each in found:
        after(Cause.PURGED, each.state)
        write.record_purge(each)
    await write.uow.upkeep.purge(found)
    if user is None:
        await write.uow.budgets.sweep(old.date())
        await write.uow.merges.expire(as_of, BATCH)
    await write.settle("", None)  # no thread is told of what was gone before
    return JobBatch({"purged": len(found)}, following or (_ANSWERS if user is None else None))


async def _untracked(write: Write, as_of: datetime, place: str) -> JobBatch:
    """The next batch of what threads were told, and then of operational events, that is kept no longer."""
    rules, upkeep = write.policy.lifecycle, write.uow.upkeep
    if place == _EVENTS:
        count = await upkeep.prune_events(as_of - rules.keep_events, BATCH)
        return JobBatch({"events": count} if count else {}, _EVENTS if count == BATCH else None)
    found = await upkeep.old_changes(as_of - rules.keep_changes, BATCH)
    if found:
        await write.uow.lock_users({user for _, user in found})
        await upkeep.prune_changes([each for each, _ in found])
    return JobBatch({"changes": len(found)} if found else {}, _CHANGES if len(found) == BATCH else _EVENTS)


async def layers(write: Write, as_of: datetime, place: str | None, user: str | None = None) -> JobBatch:
    """What was hit often and lately is settled; then users with too much that is not have the lowest archived."""
    rules = write.policy.lifecycle
    if place is None or not place.startswith(_SETTLED):
        wanted = MemorySelection(Due.PROMOTED, as_of - rules.promote_within, rules.promote_hits, user=user)
        found, following = await _found(write, wanted, place)
        await write.uow.upkeep.promote([each.id for each in found])
        for owner, memories in _by_user(found):
            for each in memories:
                settled = replace(each, layer=Layer.LONG)
                write.record_change(HistoryEvent.PROMOTE, None, settled, each, {"hits": each.hits})
            await write.settle(owner, None)
        return JobBatch({"promoted": len(found)}, following or _SETTLED)
    last = place.removeprefix(_SETTLED) or None
    batch = await _making_room(
        write, (last, user), as_of, (rules.capacity, Layer.MID, Cause.CROWDED),
        lambda all_: crowded_out(all_, rules, as_of),
    )  # fmt: skip
    return replace(batch, place=None if batch.place is None else f"{_SETTLED}{batch.place}")


async def size(write: Write, as_of: datetime, place: str | None, user: str | None = None) -> JobBatch:
    """Users with too many memories have the lowest of them archived."""
    rules = write.policy.lifecycle
    return await _making_room(
        write,
        (place, user),
        as_of,
        (rules.max_size, None, Cause.PRUNED),
        lambda all_: memories_to_archive(all_, rules, as_of),
    )


async def proposals(write: Write, as_of: datetime, _place: str | None) -> JobBatch:
    """Proposals that lapsed long ago are removed; what waits and what was decided on stays."""
    count = await write.uow.upkeep.sweep_proposals(as_of - write.policy.lifecycle.purge_after, BATCH)
    return JobBatch({"removed": count}, AGAIN if count == BATCH else None)


async def seal(write: Write, _as_of: datetime, _place: str | None) -> JobBatch:
    """What was added to the history is put at the end of the chain: from then on nobody changes it unseen."""
    await write.uow.lock_users([_CHAIN])  # one end, whoever works on it
    entries = await write.uow.chain.next_unsealed(BATCH)
    if not entries:
        return JobBatch({"sealed": 0})
    count = await write.uow.chain.seal(await write.uow.chain.head(), entries, write.now)
    return JobBatch({"sealed": count}, AGAIN if count == BATCH else None)


async def erasures(write: Write, _as_of: datetime, place: str | None) -> JobBatch:
    """Erasures that were begun, and that nobody asked to go on with, are gone on with until they are finished.

    One that fails holds up no other: it is put aside, by its place, until the others are finished. Then it is tried
    once more, and what is wrong with it is what is wrong with the job.
    """
    aside = None if place in (None, AGAIN) else UUID(place)
    begun = await write.uow.erasures.next_unfinished(aside)
    if begun is None and aside is not None:
        begun = await write.uow.erasures.next_unfinished()
        return JobBatch() if begun is None else await _further(write, begun, AGAIN)
    if begun is None:
        return JobBatch({"batches": 0, "finished": 0})
    try:
        async with write.attempt():
            return await _further(write, begun, place or AGAIN)
    except StorageUnavailable:
        raise  # then all of them wait
    except Exception as error:  # noqa: BLE001 - whatever is wrong with this one is not wrong with the next
        logger.warning("the erasure %s is put aside, until the others are finished: %s", begun.id, type(error).__name__)
        return JobBatch({"put_aside": 1}, str(begun.id))


async def _further(write: Write, begun: Erasure, place: str) -> JobBatch:
    """The next batch of an erasure."""
    await write.uow.lock_users(locks(begun.user_id or ""))
    done = await erase_next_batch(write.uow, write.ledger, write.principal.tenant, begun, write.now)
    finished = done.finished_at is not None
    return JobBatch({"batches": 1, "finished": int(finished)}, place, scrub=finished)


async def gc(write: Write, as_of: datetime, _place: str | None) -> JobBatch:
    """The report: what was made, promoted, archived and deleted within a day, averages, and facts lost to errors."""
    return JobBatch(await write.uow.upkeep.tally(as_of - DAY))


async def _deleting(write: Write, wanted: MemorySelection, cause: Cause, place: str | None) -> JobBatch:
    found, following = await _found(write, wanted, place)
    await _delete(write, found, cause)
    return JobBatch({"deleted": len(found)}, following)


async def _found(write: Write, wanted: MemorySelection, place: str | None) -> tuple[list[Memory], str | None]:
    """The memories of the next batch, with their users locked, and where the one after it begins."""
    upkeep = write.uow.upkeep
    due = await upkeep.due(wanted, None if place is None else UUID(place), BATCH)
    if not due:
        return [], None
    await write.uow.lock_users({user for _, user in due})
    found = await upkeep.lock_due(wanted, [each for each, _ in due])  # some changed while their users were waited for
    return found, str(due[-1][0]) if len(due) == BATCH else None


async def _delete(write: Write, gone: Sequence[Memory], cause: Cause) -> None:
    until = write.now + write.policy.lifecycle.purge_after
    await _move(write, gone, cause, HistoryEvent.TTL, until)


async def _move(
    write: Write, going: Sequence[Memory], cause: Cause, event: HistoryEvent, purge_at: datetime | None
) -> None:
    """Give memories the state that a cause leads to, and tell their users' threads: a statement or two for a user."""
    if not going:
        return
    state = after(cause, going[0].state)
    told = ChangeEvent.ARCHIVED if state is State.ARCHIVED else ChangeEvent.SOFT_DELETED
    await write.uow.upkeep.move([each.id for each in going], state, purge_at, write.now)
    for user, memories in _by_user(going):
        for each in memories:
            moved = replace(each, state=state, purge_at=purge_at, updated_at=write.now, version=each.version + 1)
            write.record_change(event, told, moved, each, {"cause": cause.value})
        await write.settle(user, None)


async def _making_room(
    write: Write,
    whose: tuple[str | None, str | None],
    as_of: datetime,
    bound: tuple[int, Layer | None, Cause],
    going: Callable[[Sequence[WeighedMemory]], list[UUID]],
) -> JobBatch:
    """Archive what there is no room for, of the next user who has too much: at once, for it is one decision.

    ``whose`` are the user after whom the next one comes, and the only one who is looked at, if any.
    """
    upkeep, away = write.uow.upkeep, write.policy.lifecycle.away
    most, layer, cause = bound
    crowded = await upkeep.next_crowded_user(most, layer, *whose)
    if crowded is None:
        return JobBatch()
    user, activity = crowded
    await write.uow.lock_users([user])
    weighed = await upkeep.weigh_memories(user, layer)
    chosen = going([replace(each, used=activity.ages_since(each.used, as_of, away)) for each in weighed])
    found = await upkeep.lock_active(chosen)
    await _move(write, found, cause, HistoryEvent.ARCHIVE, None)
    return JobBatch({"archived": len(found), "users": 1}, user)


async def _ages_since(
    write: Write, found: Sequence[Memory], used: Callable[[Memory], datetime], as_of: datetime
) -> Mapping[UUID, datetime]:
    """Since when memories age, without the days that do not count: one look for all of their users."""
    activity = await write.uow.activity.of({each.user_id for each in found})
    away, unknown = write.policy.lifecycle.away, Activity()
    return {each.id: activity.get(each.user_id, unknown).ages_since(used(each), as_of, away) for each in found}


def _accessed(memory: Memory) -> datetime:
    return max(filter(None, (memory.recorded_at, memory.last_accessed, memory.last_hit_at)))


def _touched(memory: Memory) -> datetime:
    return max(filter(None, (memory.updated_at, memory.last_accessed, memory.last_hit_at)))


def _by_user(memories: Iterable[Memory]) -> Iterable[tuple[str, Iterable[Memory]]]:
    return groupby(sorted(memories, key=lambda each: (each.user_id, each.id)), key=lambda each: each.user_id)


STEPS: Mapping[str, Step] = {
    "expiry": expiry,
    "proposals": proposals,
    "decay": decay,
    "ttl": ttl,
    "layers": layers,
    "size": size,
    "purge": purge,
    "erasures": erasures,
    "seal": seal,
    "gc": gc,
}
"""The jobs that need nothing but their transaction, by name."""
ONCE_A_DAY = frozenset({"decay"})
"""Jobs whose work done twice would be twice the work; what the others have done is not there to be done again."""

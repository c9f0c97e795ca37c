"""The job `co_recall`: memories that were recalled together again and again are linked, and others no longer."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import groupby
from uuid import UUID

from memplane.application.jobs.lifecycle_jobs import JobBatch, Step
from memplane.application.limits.offload import offload
from memplane.application.memories.gateway import Write
from memplane.application.records import LinkChange
from memplane.domain.identity.principal import Principal
from memplane.domain.ranking.co_recall import CO_RECALLED, CoRecallCount, co_recall_links

JOB = "co_recall"
USERS = 20
"""Users of one batch."""


async def co_recalls(_principal: Principal, _as_of: datetime, _place: str | None) -> Step:
    """The next batch: it needs nothing but its transaction."""
    return _settled


async def _settled(write: Write, as_of: datetime, place: str | None) -> JobBatch:
    """Settle all pairs of the next users; what comes of them follows from the counts and the moment alone."""
    store = write.uow.co_recalls
    users = await store.users(place, USERS)
    more = users[-1] if len(users) == USERS else None
    concerned = {each.user_id for each in await store.of(users)} if users else set[str]()
    counts = {"linked": 0, "unlinked": 0, "forgotten": 0}
    if not concerned:
        return JobBatch(counts, more)
    await write.uow.lock_users(concerned)
    pairs = await store.of(concerned)
    strengths, gone = await offload(len(pairs) * 10, _all_settled, pairs, as_of)
    await store.strengthen(strengths)
    await store.forget(gone)
    before = {each.id: each.strength for each in pairs}
    left = strengths | dict.fromkeys(gone, 0.0)
    await _note(
        write, [each for each in pairs if bool(before[each.id]) != bool(left.get(each.id, each.strength))], left
    )
    counts["linked"] = sum(before[each] == 0 < strength for each, strength in strengths.items())
    counts["unlinked"] = sum(strength == 0 for strength in strengths.values())
    counts["forgotten"] = len(gone)
    return JobBatch(counts, more)


async def _note(write: Write, pairs: Sequence[CoRecallCount], strengths: Mapping[UUID, float]) -> None:
    """Note in the history which memories are linked from now on, and which no longer."""
    ends = {end for each in pairs for end in (each.from_id, each.to_id)}
    known = {each.id: each for each in await write.uow.repairs.memories(ends)} if ends else {}
    for each in pairs:
        if each.from_id in known and each.to_id in known:
            strength = strengths[each.id]
            link = LinkChange(known[each.to_id], CO_RECALLED, strength or each.strength)
            write.record_links(known[each.from_id], [link], removed=not strength)
    await write.settle("", None)


def _all_settled(pairs: Sequence[CoRecallCount], as_of: datetime) -> tuple[dict[UUID, float], list[UUID]]:
    strengths: dict[UUID, float] = {}
    gone: list[UUID] = []
    for _, group in groupby(sorted(pairs, key=lambda each: each.user_id), key=lambda each: each.user_id):
        found = co_recall_links(list(group), as_of)
        strengths |= found.changed
        gone += found.forgotten
    return strengths, gone

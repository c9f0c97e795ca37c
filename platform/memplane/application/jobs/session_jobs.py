"""The jobs `sessions` and `session_close`: conversations that have come to rest are closed and summed up."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from memplane.application.jobs.lifecycle_jobs import JobBatch, Step
from memplane.application.memories.gateway import Write
from memplane.application.ports import Policies, Storage
from memplane.application.turns.session_close import (
    CloseSessions,
    SessionCloseResult,
    SessionReading,
    TurnsGone,
    note_close,
)
from memplane.application.turns.session_records import Closing, Resting
from memplane.domain.errors import InvalidRequest, RecordNotFound, StateConflict
from memplane.domain.identity.principal import Principal
from memplane.domain.policy.policy import Policy

logger = logging.getLogger("memplane.jobs")
REST = timedelta(hours=12)
"""A conversation in which nothing happened for so long has come to rest."""
MOST = 20
"""Conversations that are summed up in one batch."""
_Found = tuple[Resting, SessionReading | None]


class _Closer:
    """Reads conversations: what each comes to is worked out before a transaction opens."""

    def __init__(self, storage: Storage, policies: Policies, closing: CloseSessions) -> None:
        self._storage = storage
        self._policies = policies
        self._closing = closing

    async def _found(
        self, principal: Principal, as_of: datetime, since: datetime, user: str | None = None
    ) -> tuple[Sequence[_Found], str | None]:
        """What rests since a moment, and the agent by whose allowlist it is closed; nothing without such an agent."""
        policy = self._policies.current
        agent = policy.keeper(policy.turns_category)
        if agent is None:
            return (), None
        due = await self._storage.write(principal.reach, lambda uow: uow.closings.resting(since, MOST, user))
        return [(each, await self._read(principal, policy, as_of, each, agent)) for each in due], agent

    async def _read(
        self, principal: Principal, policy: Policy, as_of: datetime, each: Resting, agent: str
    ) -> SessionReading | None:
        try:
            return await self._closing.read_session(principal, policy, as_of, (each.thread_id, each.user_id, agent))
        except (RecordNotFound, InvalidRequest):  # none of its turns is left, or the policy does not let it be told
            return None


class SumUpSessions(_Closer):
    """Prepares the batches of `sessions`."""

    async def __call__(self, principal: Principal, as_of: datetime, _place: str | None) -> Step:
        """The next batch: what rests is read here, and closed by the step unless somebody closed it meanwhile."""
        found, agent = await self._found(principal, as_of, as_of - REST)
        if agent is None:
            return _nothing

        async def step(write: Write, _as_of: datetime, _place: str | None) -> JobBatch:
            return await _close(write, found, agent)

        return step


class CloseQuietSessions(_Closer):
    """Prepares the batches of `session_close`: a user began a conversation, and the others are closed if they rest.

    The place of a run is the user's name. What rests is decided by when turns were recorded, whatever time they name.
    """

    async def __call__(self, principal: Principal, as_of: datetime, place: str | None) -> Step:
        """The next batch: what was quiet when the user began another conversation, and has been since."""
        if place is None:  # the user was erased
            return _nothing
        since = as_of - self._policies.current.workers.quiet
        found, agent = await self._found(principal, as_of, since, place)
        if agent is None:
            return _nothing

        async def step(write: Write, _as_of: datetime, place: str | None) -> JobBatch:
            await write.uow.lock_users({each.user_id for each, _ in found})
            quiet = await write.uow.closings.resting(since, MOST, place)
            batch = await _close(write, [(each, read) for each, read in found if each in quiet], agent)
            more = batch.place is not None or len(found) == MOST
            return replace(batch, place=place if more else None)

        return step


async def _nothing(_write: Write, _as_of: datetime, _place: str | None) -> JobBatch:
    """No agent of the policy hears the talk: nobody could be told what came of it."""
    return JobBatch({"closed": 0, "summaries": 0})


async def _close(write: Write, found: Sequence[_Found], agent: str) -> JobBatch:
    await write.uow.lock_users({each.user_id for each, _ in found})
    summaries, outdated = 0, 0
    for each, read in found:
        try:
            done = None if read is None else await _tried(write, each, read, agent)
        except TurnsGone:  # it is read anew
            outdated += 1
            continue
        if done is None or done.closing.seq < each.turns:  # else it would be found again and again
            await _passed_over(write, each, agent)
        summaries += done is not None and done.outcome == "closed" and done.closing.summary_id is not None
    counts = {"closed": len(found) - outdated, "summaries": summaries}
    return JobBatch(counts, "again" if outdated or len(found) == MOST else None)


async def _tried(write: Write, each: Resting, read: SessionReading, agent: str) -> SessionCloseResult | None:
    """Close a conversation; ``None`` where it cannot be: one that fails keeps no other from being closed.

    Raises:
        TurnsGone: a turn that its summary quotes was deleted since it was read.
    """
    try:
        async with write.attempt():
            return await note_close(write, read, each.thread_id, agent)
    except TurnsGone:
        raise
    except (StateConflict, InvalidRequest) as error:
        logger.warning("a conversation is closed without a summary: %s", error.code)
        return None


async def _passed_over(write: Write, each: Resting, agent: str) -> None:
    """Note that a conversation is closed as it is, with the summary that it has, if any."""
    closings = write.uow.closings
    before = await closings.find(each.user_id, each.thread_id)
    if before is None:
        begun = await closings.began_at(each.user_id, each.thread_id)
        before = Closing(each.user_id, each.thread_id, agent, begun or each.updated_at, write.now, 0)
    await closings.keep(replace(before, closed_at=write.now, seq=each.turns))

"""Lines of an export, or of notes, taken in: as anybody may write them, or restored as they were."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from memplane.application.limits.idempotency import Once
from memplane.application.memories.authorization import require_full
from memplane.application.memories.gateway import Gateway, Write
from memplane.application.memories.shared_memories import owner_of
from memplane.application.transfer.import_add import import_add
from memplane.application.transfer.import_records import Incoming, Outcomes, Taking
from memplane.application.transfer.restore import reinstating
from memplane.domain.errors import LimitExceeded
from memplane.domain.identity.principal import KeyScope, Principal

MAX_LINES = 500


class ImportMode(StrEnum):
    """How lines are taken in."""

    ADD = "add"
    RESTORE = "restore"


@dataclass(frozen=True, slots=True)
class ImportBatch:
    """Some lines of a file for one user.

    Attributes:
        user_id: whose they become, whatever the file says; ``None`` for what is about no user.
        mode: how.
        lines: in the order of the file.
        agent: the agent to act for; to restore, a key of no agent that may act for each reaches all without one.
    """

    user_id: str | None
    mode: ImportMode
    lines: Sequence[Incoming]
    agent: str | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a line was not taken."""

    code: str
    detail: str


@dataclass(frozen=True, slots=True)
class ImportResult:
    """What became of each line, in their order; and of those that were refused why, by their place."""

    outcomes: Sequence[str]
    refusals: Mapping[int, Refusal] = field(default_factory=dict)


class Imports:
    """Takes lines in, each for itself: one that is refused does not stop the others."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def __call__(
        self, principal: Principal, batch: ImportBatch, *, once: Once[ImportResult] | None = None
    ) -> ImportResult:
        """Take lines in, in one transaction.

        Raises:
            ScopeForbidden: the key may not write; or lacks ``admin``, to restore.
            TrustTooLow: it is not fully trusted, to restore.
            AgentForbidden, UserForbidden, VisibilityForbidden: it does not reach the agent or user, or cannot write.
            LimitExceeded: too many lines.
            AlreadyDone: the same request was carried out before.
            OutOfOrder: the batch that this one comes after was not taken in.
        """
        with self._gateway.under_way(principal, once):
            return await self._taken(principal, batch, once)

    async def _taken(self, principal: Principal, batch: ImportBatch, once: Once[ImportResult] | None) -> ImportResult:
        policy, now = self._gateway.begin(principal)
        if batch.mode is ImportMode.RESTORE:
            principal.require(KeyScope.ADMIN)
            require_full(principal, "restore what was exported")
        if len(batch.lines) > MAX_LINES:
            raise LimitExceeded(f"lines: {len(batch.lines)} in one call, at most {MAX_LINES}", limit=MAX_LINES)
        user_id = owner_of(principal, batch.user_id)
        await self._gateway.raise_if_done(principal, once)
        prepared = reinstating if batch.mode is ImportMode.RESTORE else import_add
        taking = Taking(principal, policy, now, user_id, batch.agent)
        attempt = await prepared(self._gateway, taking, batch.lines)

        async def work(write: Write) -> ImportResult:
            write = replace(write, imported=True)
            outcomes = Outcomes.of(batch.lines)
            await attempt(write, outcomes)
            await write.settle(user_id, None)
            told = {place: Refusal(error.code, error.detail) for place, error in sorted(outcomes.refused.items())}
            return ImportResult(outcomes.all, told)

        caller = principal.as_operator() if batch.mode is ImportMode.RESTORE else principal
        return await self._gateway.run(caller, policy, now, work, users=[user_id], once=once)

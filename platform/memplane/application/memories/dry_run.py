"""Dry runs: a write is carried out in its transaction, and the transaction is rolled back."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from memplane.application.limits.idempotency import Once
from memplane.application.memories.browse import redact_entry
from memplane.application.memories.explanation import words_of
from memplane.application.memories.gateway import Gateway, Write
from memplane.application.memories.write_effects import WriteChange
from memplane.application.records import Proposal
from memplane.application.transaction import UnitOfWork
from memplane.domain.identity.principal import KeyScope, Principal
from memplane.domain.memory.history import HistoryEvent
from memplane.domain.memory.memory import Visibility
from memplane.domain.memory.scope import Scope, read_scope

T = TypeVar("T")


class _RolledBack(Exception):
    """Ends the transaction of a dry run; it carries what the write would have answered."""

    def __init__(self, outcome: object) -> None:
        super().__init__("the dry run is over")
        self.outcome = outcome


@dataclass(frozen=True, slots=True)
class DryRunChange:
    """A change of a memory that a write would make.

    Attributes:
        event: as its history would name it.
        memory_id: ``None`` for a memory that does not exist yet.
        category: of the memory.
        before: its text before the change.
        after: its text after it.
        rule: the rule that decided: a verdict of the comparison, or a rule of the extraction.
        words: the words that the rule went by: `common`, `old` and `new` of two texts, or those `matched` in a turn.
        meta: what else the history would note.
    """

    event: HistoryEvent
    memory_id: UUID | None
    category: str
    before: str | None
    after: str | None
    rule: str | None
    words: Mapping[str, Sequence[str]]
    meta: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class DryRunResult:
    """What a dry run would have done, as far as the caller may read it.

    Attributes:
        changes: of memories.
        proposals: for fields that would wait for consent.
        new_ids: ids in the outcome that name nothing, because nothing was stored.
    """

    changes: tuple[DryRunChange, ...] = ()
    proposals: tuple[Proposal, ...] = ()
    new_ids: frozenset[UUID] = frozenset()


class DryRun(Gateway):
    """A gateway that rolls back whatever is written through it; of one request.

    It shares everything with the gateway that commits: permissions, rules, locks and queues are the same.
    """

    def __init__(self, gateway: Gateway) -> None:
        vars(self).update(vars(gateway))
        self._writes: list[Write] = []

    async def _check_embedding(self, tenant: str) -> None:
        await self._guard.check(tenant, record=False)

    async def _carry_out(
        self,
        principal: Principal,
        attempt: Callable[[UnitOfWork], Awaitable[T]],
        now: datetime,
        users: Collection[str],
        once: Once[T] | None,
    ) -> T:
        del now, once  # the request is not remembered: it can still be sent for real

        async def rolled_back(uow: UnitOfWork) -> T:
            async with uow.attempt():  # so that whatever waits is sent, and the database has checked it
                done = await attempt(uow)
            raise _RolledBack(done)

        try:
            return await self._storage.write(principal.reach, rolled_back, users)
        except _RolledBack as end:
            done: T = end.outcome  # type: ignore[assignment]  # of the attempt above
            return done

    def _carried_out(self, write: Write, active: Collection[str]) -> None:
        del active
        self._writes.append(write)

    async def plan(self, principal: Principal, agent: str | None) -> DryRunResult:
        """What the write would have done, as far as the caller could read it afterwards.

        Args:
            principal: the caller.
            agent: the agent that it acts for, or none for its own.
        """
        new_ids = frozenset(new for write in self._writes for new in write.effects.new_ids)
        if KeyScope.READ not in principal.scopes:
            return DryRunResult(new_ids=new_ids)
        changes: list[DryRunChange] = []
        proposals: list[Proposal] = []
        for write in self._writes:
            scope = _readable(write, principal, agent)
            changes += [_planned(each, scope, new_ids) for each in write.effects.changes if scope.permits(each.memory)]
            if Visibility.PRIVATE in scope.visibilities:  # where proposals lie
                proposals += [each for each in write.effects.proposals if each.category in scope.categories]
        return DryRunResult(tuple(changes), tuple(proposals), new_ids)


def _readable(write: Write, principal: Principal, agent: str | None) -> Scope:
    allowed = write.policy.allowlist(principal.act_as(agent)).read
    return read_scope(principal, write.policy, allowed, write.now)


def _planned(change: WriteChange, scope: Scope, new_ids: Collection[UUID]) -> DryRunChange:
    shown = redact_entry(change.entry, scope)
    meta = {name: value for name, value in shown.meta.items() if name != "words"}
    rule = meta.get("rule") or meta.get("verdict") or (change.memory.attributes.get("rule") if change.is_new else None)
    memory_id = None if change.memory.id in new_ids else change.memory.id
    return DryRunChange(
        change.entry.event, memory_id, change.memory.category, shown.old_ref, shown.new_ref,
        None if rule is None else str(rule), words_of(shown.meta), meta,
    )  # fmt: skip

"""The chain over the history: sealing what is new, and verifying what was sealed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from memplane.application.operations.audit_chain_ports import SealState
from memplane.application.ports import Storage
from memplane.application.transaction import UnitOfWork
from memplane.domain.errors import LimitExceeded, UserForbidden
from memplane.domain.identity.principal import KeyScope, Principal, Reach
from memplane.domain.privacy.audit_chain import GENESIS, ChainEntry, ChainFault, FaultPosition, Head, first_fault

BATCH = 1_000
MAX_ENTRIES = 10_000
"""Entries that one request verifies."""
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class VerificationResult:
    """How a chain came out.

    Attributes:
        entries: how many were looked at.
        found: what is wrong first; ``None`` when nothing is.
        following: after which entry to go on; ``None`` at the end.
    """

    state: SealState
    entries: int
    found: FaultPosition | None
    following: int | None = None


class VerifyHistory:
    """Looks through a tenant's chain for what was edited, deleted, put elsewhere or cut off."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    async def state(self, tenant: str) -> SealState:
        """How far a tenant's history is sealed."""
        return await self._storage.write(Reach(tenant), lambda uow: uow.chain.state())

    async def __call__(
        self, tenant: str, anchor: Head | None = None, *, after: int = 0, most: int | None = None,
        progress: Progress = lambda _done, _all: None,
    ) -> VerificationResult:  # fmt: skip
        """Verify a chain, or a part of it, entry by entry.

        Args:
            tenant: whose.
            anchor: a head that was written down elsewhere: only it shows that the end was cut off, or all written anew.
            after: go on after this position.
            most: so many entries at most; all, unless it is said.
            progress: hears how many were looked at, of how many.
        """
        state = await self.state(tenant)
        end = state.head.position
        limit = end if most is None else min(end, after + most)
        before = await self._storage.write(Reach(tenant), lambda uow: uow.chain.at(after))
        start, found = after, None
        while before.position < limit and found is None:
            before, found = await self._part(tenant, before, min(BATCH, limit - before.position), anchor)
            progress(before.position, end)
        if found is None:
            found = await self._end(tenant, state.head, anchor)
        following = before.position if found is None and limit < end else None
        return VerificationResult(state, max(before.position - start, 0), found, following)

    async def for_administrator(
        self, principal: Principal, anchor: str | None, after: int, most: int
    ) -> VerificationResult:
        """The same for an administrator of the tenant.

        Raises:
            ScopeForbidden: the key lacks ``admin``.
            UserForbidden: it is bound to users.
            Invalid, LimitExceeded: the anchor is none; it is too much.
        """
        principal.require(KeyScope.ADMIN)
        if principal.users is not None:
            raise UserForbidden("this key is bound to users: the chain is over everybody's history")
        if not 0 <= most <= MAX_ENTRIES:
            raise LimitExceeded(f"limit: {most}, it must be 0 to {MAX_ENTRIES}", field="limit")
        head = None if anchor is None else Head.parse(anchor)
        return await self(principal.tenant, head, after=after, most=most)

    async def _part(
        self, tenant: str, before: Head, limit: int, anchor: Head | None
    ) -> tuple[Head, FaultPosition | None]:
        async def read(uow: UnitOfWork) -> tuple[Sequence[ChainEntry], Mapping[UUID, str], Sequence[Head]]:
            entries = await uow.chain.entries(before.position, limit)
            erasers = await uow.chain.erasers({each.erased_by for each in entries if each.erased_by is not None})
            return entries, erasers, await uow.chain.seals(before.position, limit)

        entries, erasers, seals = await self._storage.write(Reach(tenant), read)
        found = first_fault(before, entries, erasers)
        if found is not None:
            return before, found
        if not entries:
            return before, FaultPosition(ChainFault.DELETED, before.position + 1, None)
        links = {each.position: each for each in entries}
        for written in (*seals, *(() if anchor is None else (anchor,))):
            there = links.get(written.position)
            if there is not None and there.link != written.link:
                return before, FaultPosition(ChainFault.REWRITTEN, written.position, there.id)
        last = entries[-1]
        return Head(last.position or 0, last.link or GENESIS), None

    async def _end(self, tenant: str, head: Head, anchor: Head | None) -> FaultPosition | None:
        """Whether the chain once was longer."""
        last = await self._storage.write(Reach(tenant), lambda uow: uow.chain.last_seal())
        longest = max((each.position for each in (last, anchor) if each is not None), default=0)
        return FaultPosition(ChainFault.TRUNCATED, head.position + 1, None) if longest > head.position else None

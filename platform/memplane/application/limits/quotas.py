"""Quotas: how much may be stored of a user and in a tenant, and how much may be written in a day.

What takes something away or decides something is never refused: deletions, erasure, verdicts and consent.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from memplane.application.limits.usage import StoredAmounts
from memplane.application.memories.authorization import require_every_category, require_full
from memplane.application.memories.gateway import Write
from memplane.application.ports import Clock, Policies, Storage
from memplane.application.transaction import UnitOfWork
from memplane.application.users.merged_users import refuse_alias
from memplane.domain.errors import QuotaExceeded
from memplane.domain.identity.principal import KeyScope, Principal
from memplane.domain.memory.memory import SHARED
from memplane.domain.policy.quota_limits import Limits


@dataclass(frozen=True, slots=True)
class QuotaUsage:
    """How much there is, and how much there may be."""

    usage: StoredAmounts
    limits: Limits


@dataclass(frozen=True, slots=True)
class Standings:
    """The standing of the tenant, and of a user who was asked for; and when the count of writes begins again.

    Attributes:
        tenant: of all users together; ``None`` for a key that is bound to some of them.
    """

    tenant: QuotaUsage | None
    user: QuotaUsage | None
    resets_at: datetime


class ReadQuotas:
    """Tells an administrator how much is stored, and how much may be."""

    def __init__(self, storage: Storage, policies: Policies, clock: Clock) -> None:
        self._storage = storage
        self._policies = policies
        self._clock = clock

    async def __call__(self, principal: Principal, user_id: str | None) -> Standings:
        """The tenant's standing, and a user's.

        Raises:
            ScopeForbidden: the key lacks ``admin``.
            TrustTooLow, CategoryForbidden: it does not reach all that is counted.
            UserForbidden: it may not touch the user.
        """
        principal.require(KeyScope.ADMIN)
        require_full(principal, "see how much is stored")
        require_every_category(principal, self._policies.current, "a count of what is stored")
        if user_id is not None:
            principal.touch(user_id)
        quotas, now = self._policies.current.writing.quotas, self._clock()
        day = _day(now)

        async def look(uow: UnitOfWork) -> Standings:
            if user_id is not None and (merged := await uow.merges.standing([user_id])):
                refuse_alias(principal, merged[user_id].into_user)
            bound = principal.users is not None
            tenant = None if bound else QuotaUsage(await uow.usage.of_tenant(day), quotas.tenant)
            user = None if user_id is None else QuotaUsage(await uow.usage.of_user(user_id, day), quotas.user)
            return Standings(tenant, user, _midnight(now))

        return await self._storage.write(principal.reach, look)


async def charge(write: Write, user_id: str, *, writes: int = 1, stores: bool = True) -> None:
    """Count what a write adds, once it is written: its transaction, or savepoint, is rolled back when that is too much.

    Background work is not limited. Writers of other users that are under way are not counted yet: a tenant may exceed
    its quota by what these add.

    Args:
        write: the write under way, with the user locked.
        user_id: whose memories or turns were added.
        writes: how many.
        stores: whether more is stored than before.

    Raises:
        QuotaExceeded: it is more than the policy allows.
    """
    quotas = write.policy.writing.quotas
    if write.principal.is_job or not quotas.any:
        return
    counted = writes if quotas.counts_writes else 0
    usage = await write.uow.usage.spend(user_id, _day(write.now), counted)
    if user_id != SHARED:
        _require(quotas.user, usage, "user", write.now, writes=bool(writes), stores=stores)
    if quotas.tenant.any:
        usage = await write.uow.usage.of_tenant(_day(write.now))
        _require(quotas.tenant, usage, "tenant", write.now, writes=bool(writes), stores=stores)


def _require(limits: Limits, usage: StoredAmounts, of: str, now: datetime, *, writes: bool, stores: bool) -> None:
    stored: Mapping[str, tuple[int, int | None]] = {
        "memories": (usage.memories, limits.memories),
        "bytes": (usage.bytes, limits.bytes),
    }
    for name, (used, limit) in stored.items() if stores else ():
        if limit is not None and used > limit:
            raise QuotaExceeded(
                f"the {of} may have {limit} {name}; delete some, or have the quota raised",
                quota=f"{of}.{name}", limit=limit, resets_at=None, retry_after=int(timedelta(hours=1).total_seconds()),
            )  # fmt: skip
    if writes and limits.writes_per_day is not None and usage.writes > limits.writes_per_day:
        end = _midnight(now)
        raise QuotaExceeded(
            f"the {of} may have {limits.writes_per_day} writes a day; the next day begins at {end.isoformat()}",
            quota=f"{of}.writes_per_day", limit=limits.writes_per_day, resets_at=end.isoformat(),
            retry_after=max(int((end - now).total_seconds()), 1),
        )  # fmt: skip


def _day(now: datetime) -> str:
    return now.astimezone(UTC).date().isoformat()


def _midnight(now: datetime) -> datetime:
    return now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)

"""Erasures done again from their notes: a backup that was restored is older than what was erased since."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from memplane.application.erasure.erasure_ports import Buried
from memplane.application.erasure.user_erasure import BATCH, EraseUsers, notes, tombstone_entries
from memplane.application.ports import Clock, Storage
from memplane.application.records import TombstoneOrigin
from memplane.application.transaction import UnitOfWork
from memplane.domain.errors import InvalidRequest, StateConflict
from memplane.domain.identity.principal import Reach
from memplane.domain.language.text import instant
from memplane.domain.privacy.erasure import ERASED, REJECTED, Erasure, TombstoneKeyring

Note = Mapping[str, Any]
TENANT_REMOVAL = "tenant_removal"
"""The type of the lines that tell of the removal of a tenant."""


@dataclass(slots=True)
class _Noted:
    """What a ledger says of one erasure; ``buried`` is by the reason."""

    erasure: Erasure | None = None
    key: bytes = b""
    buried: dict[str, list[Buried]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """What became of one erasure.

    Attributes:
        outcome: ``erased`` when the user was there again; ``absent`` when it was not, and its tombstones are there now;
            ``known`` when this database has the receipt; ``no_tenant`` when it lacks the tenant.
        counts: what was erased.
    """

    tenant: str
    receipt: UUID
    outcome: str
    counts: Mapping[str, int]


class ReplayErasures:
    """Does erasures again, and tells those that a database knows."""

    def __init__(self, storage: Storage, erase: EraseUsers, clock: Clock) -> None:
        self._storage = storage
        self._erase = erase
        self._clock = clock

    async def __call__(self, entries: Iterable[Note]) -> list[ReplayResult]:
        """Do every erasure again that this database does not know to be finished.

        Args:
            entries: the lines of ledgers, in any order; one that is there twice counts once.

        Raises:
            Conflict: a tenant is here again that was removed, which is the schema's owner's to do again.
            Invalid: a line is not whole.
        """
        done: list[ReplayResult] = []
        lines = list(entries)
        for tenant in sorted({str(each["tenant"]) for each in lines if each["type"] == TENANT_REMOVAL}):
            if await self._storage.has_tenant(tenant):
                raise StateConflict(
                    f"the tenant '{tenant}' was removed and is here again: run `memplane tenants remove --replay` first"
                )
        for (tenant, receipt), noted in _gathered(each for each in lines if each["type"] != TENANT_REMOVAL).items():
            if noted.erasure is None:
                raise InvalidRequest(f"the ledger has tombstones of receipt {receipt}, and not the receipt")
            if not await self._storage.has_tenant(tenant):
                done.append(ReplayResult(tenant, receipt, "no_tenant", {}))
            else:
                done.append(await self._again(tenant, noted, noted.erasure))
        return done

    async def ledger_entries(self, tenant: str) -> list[Mapping[str, object]]:
        """Every erasure of a tenant that this database knows, as a ledger has it."""

        async def work(uow: UnitOfWork) -> list[Mapping[str, object]]:
            found: list[Mapping[str, object]] = []
            keys = await uow.erasures.keys()
            for erasure in await uow.erasures.all():
                found += [entry for key in keys for entry in notes(tenant, erasure, key)][:1]
                for reason in (ERASED, REJECTED):
                    after: Buried | None = None
                    while graves := await uow.erasures.graves(erasure.subject, reason, after, BATCH):
                        after = graves[-1]
                        found += tombstone_entries(tenant, erasure, graves, reason)
            return found

        return await self._storage.write(Reach(tenant), work)

    async def _again(self, tenant: str, noted: _Noted, erasure: Erasure) -> ReplayResult:
        now = self._clock()

        async def restore(uow: UnitOfWork) -> tuple[str, Erasure]:
            """The key, the tombstones and the receipt; the user, if it is there again, is being erased from now on."""
            known = {each.id: each for each in await uow.erasures.of_subjects([erasure.subject])}.get(erasure.id)
            await uow.erasures.add_key(noted.key, now)
            for reason, buried in noted.buried.items():
                burial = TombstoneOrigin(reason, erasure.actor, erasure.finished_at or now)
                await uow.erasures.bury(erasure.subject, buried, burial)
            if known is not None and known.finished_at is not None:
                return "known", known
            there = await uow.erasures.users()
            user = next(
                (each for each in there if TombstoneKeyring.of(noted.key, each).subject == erasure.subject), None
            )
            if user is None:
                await uow.erasures.keep(replace(erasure, finished_at=erasure.finished_at or now))
                return "absent", replace(erasure, counts={})
            await _taken_apart(uow, user, now)
            begun = replace(erasure, user_id=user, finished_at=None, counts={})
            await uow.erasures.keep(begun)
            return "erased", begun

        outcome, found = await self._storage.write(Reach(tenant), restore)
        while outcome == "erased" and found.finished_at is None:
            found = await self._erase.go_on(tenant, found)
        return ReplayResult(tenant, erasure.id, outcome, found.counts if outcome == "erased" else {})


async def _taken_apart(uow: UnitOfWork, user: str, now: datetime) -> None:
    """Undo the merge of a user, and what was merged after it: what belongs to the user is erased with it."""
    merge = (await uow.merges.standing([user])).get(user)
    if merge is None:
        return
    while (later := await uow.merges.following(merge)) is not None:
        await _taken_apart(uow, later.from_user, now)
    await uow.merges.move_back(merge)
    await uow.merges.keep(replace(merge, undone_at=now))


def _gathered(entries: Iterable[Note]) -> Mapping[tuple[str, UUID], _Noted]:
    """What ledgers say, by tenant and receipt; of several lines of one erasure the last."""
    found: dict[tuple[str, UUID], _Noted] = {}
    for entry in entries:
        try:
            noted = found.setdefault((entry["tenant"], UUID(entry["receipt"])), _Noted())
            if entry["type"] == "tombstones":
                reason = REJECTED if entry.get("reason") == REJECTED else ERASED  # older ledgers name none
                noted.buried.setdefault(reason, []).extend(_buried(each) for each in entry["buried"])
            else:
                noted.erasure, noted.key = _erasure(entry), bytes.fromhex(entry["key"])
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidRequest(f"a line of the ledger is not whole: {error}") from error
    return found


def _buried(pair: Sequence[str]) -> Buried:
    where, value = pair
    return where, value


def _erasure(entry: Note) -> Erasure:
    finished = entry["finished_at"]
    return Erasure(
        id=UUID(entry["receipt"]),
        subject=entry["subject"],
        actor=entry["actor"],
        policy_hash=entry["policy_hash"],
        started_at=instant(entry["started_at"]),
        counts=entry["counts"],
        finished_at=None if finished is None else instant(finished),
    )

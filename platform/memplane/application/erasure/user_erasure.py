"""Erasing a user: whatever there is, batch by batch, with a receipt, and so that it does not come back."""

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from memplane.application.consent.proposals import field_namespace
from memplane.application.erasure.erasure_ports import Buried, ErasureLedger
from memplane.application.limits.idempotency import Once, raise_if_done
from memplane.application.memories.authorization import require_every_category, require_full
from memplane.application.memories.gateway import clean_id
from memplane.application.ports import Clock, Policies, Storage
from memplane.application.records import StoredAnswer, TombstoneOrigin
from memplane.application.transaction import UnitOfWork
from memplane.application.users.merged_users import refuse_alias
from memplane.domain.errors import InvalidRequest
from memplane.domain.identity.principal import KeyScope, Principal, Reach
from memplane.domain.identity.user_merges import former_names
from memplane.domain.memory.history import HistoryEntry, HistoryEvent
from memplane.domain.memory.memory import Memory, new_id
from memplane.domain.memory.tombstones import rejected_keys
from memplane.domain.privacy.erasure import (
    ERASED,
    REJECTED,
    TURNS,
    Erasure,
    TombstoneKeyring,
    checkpoint_lock,
    new_key,
    turn_key,
)

BATCH = 500
"""Memories, and as many turns, of one transaction."""
ROWS = 5_000
"""Rows of each other table of one transaction."""
MOST_BATCHES = 20
"""Transactions of one request."""


@dataclass(frozen=True, slots=True)
class ErasureBatch:
    """What one transaction erased, and whether it found all that was left; ``buried`` is of erasures, by reasons."""

    counts: Mapping[str, int]
    whole: bool
    buried: Sequence[tuple[Erasure, str, Sequence[Buried]]] = ()


class EraseUsers:
    """Erases users, for fully trusted keys with the scope ``admin``.

    Each transaction erases a batch under the user's lock and adds to the receipt what it erased. From the first to the
    last nothing is written of the user; the last one finds nothing more in any table. One that was interrupted goes on
    when it is asked for again, or in the night.
    """

    def __init__(self, storage: Storage, policies: Policies, ledger: ErasureLedger, clock: Clock) -> None:
        self._storage = storage
        self._policies = policies
        self._ledger = ledger
        self._clock = clock

    async def __call__(
        self, principal: Principal, user_id: str, confirm: str, *, once: Once[Erasure] | None = None
    ) -> Erasure:
        """Erase a user, or so much of one as a request may take; ``finished_at`` tells when it is done.

        Args:
            principal: the caller.
            user_id: whom.
            confirm: the same name again.
            once: what to keep of the receipt.

        Raises:
            ScopeForbidden: the key lacks ``admin``.
            TrustTooLow: it is not fully trusted.
            UserForbidden: it may not touch the user.
            UserMerged: the user was merged into another one, with which it is erased.
            CategoryForbidden: it is bound to agents that do not read and write every category.
            Invalid: the name is not confirmed.
            StorageUnavailable: the database or the ledger cannot be written; what was erased before is noted.
        """
        user = self._authorised(principal, user_id)
        if clean_id(confirm, "confirm") != user:
            raise InvalidRequest("confirm: is not the user's name; nothing was erased", field="confirm")
        policy = self._policies.current.digest
        actor = "erased" if user in principal.actor else principal.actor
        begun = Erasure(new_id(), "", actor, policy, self._clock(), user_id=user)
        await raise_if_done(self._storage, principal, once)
        merged, erasure = await self._storage.write(
            _whole(principal), lambda uow: self._begun_with_aliases(uow, principal, begun), locks(user)
        )
        for _ in range(MOST_BATCHES):
            if merged:  # first: once the user is erased nothing tells whom it was merged from
                merged[0] = await self.go_on(principal.tenant, merged[0])
                merged = merged if merged[0].finished_at is None else merged[1:]
                continue
            if erasure.finished_at is not None:
                break
            erasure = await self.go_on(principal.tenant, erasure, None if once is None else (principal.namespace, once))
        return erasure

    async def preview(self, principal: Principal, user_id: str) -> Mapping[str, int]:
        """How many rows would be erased of a user, by what they are.

        Raises:
            ScopeForbidden, TrustTooLow, UserForbidden, CategoryForbidden: as for the erasure.
        """
        user = self._authorised(principal, user_id)

        async def counted(uow: UnitOfWork) -> Mapping[str, int]:
            await _refuse_alias(uow, principal, user)
            return await uow.erasures.count(user)

        return await self._storage.write(_whole(principal), counted)

    def _authorised(self, principal: Principal, user_id: str) -> str:
        principal.require(KeyScope.ADMIN)
        require_full(principal, "erase a user")
        user = principal.touch(clean_id(user_id, "user_id") or "")
        require_every_category(principal, self._policies.current)
        return user

    async def _begun_with_aliases(
        self, uow: UnitOfWork, principal: Principal, new: Erasure
    ) -> tuple[list[Erasure], Erasure]:
        """The erasure of a user, and those of users that were merged into it, each with a receipt of its own."""
        await _refuse_alias(uow, principal, new.user_id or "")
        aliases = await uow.merges.aliases(new.user_id or "")
        await uow.lock_users([name for alias in aliases for name in locks(alias)])
        begun = await self._begun(uow, new)
        of = [await self._begun(uow, replace(new, id=new_id(), user_id=alias)) for alias in aliases]
        return [each for each in of if each.finished_at is None], begun

    async def _begun(self, uow: UnitOfWork, new: Erasure) -> Erasure:
        """The erasure of the user that is under way, or a new one: from now on nothing is written of the user."""
        user = new.user_id or ""
        if not await uow.erasures.keys():
            await uow.ensure_tenant(new.started_at)
            await uow.erasures.add_key(new_key(), new.started_at)
        graves = {
            found.subject: found for key in await uow.erasures.keys() for found in [TombstoneKeyring.of(key, user)]
        }
        last: Erasure | None = None
        for each in await uow.erasures.of_subjects(sorted(graves)):
            if each.finished_at is None:
                return each
            last = each
        if last is not None and not (await uow.erasures.count(user)).keys() - {"user_merges"}:
            return last  # asked for again
        erasure = replace(new, subject=next(iter(graves)))
        await uow.erasures.keep(erasure)
        return erasure

    async def go_on(self, tenant: str, erasure: Erasure, once: tuple[str, Once[Erasure]] | None = None) -> Erasure:
        """Erase the next batch of an erasure that is not finished.

        Args:
            tenant: whose user it is.
            erasure: as it was after the batch before.
            once: what to keep of the receipt when it is finished, and in whose name.

        Raises:
            StorageUnavailable: the database or the ledger cannot be written.
        """
        now = self._clock()

        async def work(uow: UnitOfWork) -> Erasure:
            after = await erase_next_batch(uow, self._ledger, tenant, erasure, now)
            if after.finished_at is not None and once is not None:
                namespace, request = once
                answered = StoredAnswer(request.request, request.answer(after))
                await uow.answers.keep(namespace, request.key, answered, now, "")
            return after

        done = await self._storage.write(Reach(tenant), work, locks(erasure.user_id or ""))
        if done.finished_at is not None:
            await self._storage.scrub(tenant)
        return done


async def _refuse_alias(uow: UnitOfWork, principal: Principal, user: str) -> None:
    merge = (await uow.merges.standing([user])).get(user)
    refuse_alias(principal, None if merge is None else merge.into_user)


async def erase_next_batch(
    uow: UnitOfWork, ledger: ErasureLedger, tenant: str, erasure: Erasure, now: datetime
) -> Erasure:
    """Erase the next batch of an erasure, whose user's locks are held; the erasure as it is then.

    Raises:
        StorageUnavailable: the ledger cannot be written.
    """
    # whoever works on the same erasure meanwhile may be further
    known = {each.id: each for each in await uow.erasures.of_subjects([erasure.subject])}
    here = known.get(erasure.id, erasure)
    if here.finished_at is not None:
        return here
    key = next(
        k for k in await uow.erasures.keys() if TombstoneKeyring.of(k, here.user_id or "").subject == here.subject
    )
    batch = await erase_batch(uow, here, TombstoneKeyring(key, here.subject), now)
    after = replace(here, counts=_sum(here.counts, batch.counts))
    if batch.whole:
        after = replace(after, user_id=None, finished_at=now)
        await uow.journal.record([_told(after)])
    await uow.erasures.keep(after)
    # before the commit: an erasure that is noted and was not done is done when the note is replayed
    told = [note for of, why, some in batch.buried for note in tombstone_entries(tenant, of, some, why)]
    await ledger.note([*told, *notes(tenant, after, key)])
    return after


async def erase_batch(uow: UnitOfWork, erasure: Erasure, grave_: TombstoneKeyring, now: datetime) -> ErasureBatch:
    """Erase a batch of a user, whose lock is held, and bury what it said."""
    user, store = erasure.user_id or "", uow.erasures
    memories, turns = await store.memories(user, BATCH), await store.turns(user, BATCH)
    units = [*(each.id for each in memories), *(each.id for each in turns)]
    forgotten = await store.forget_history(erasure.id, [each.id for each in memories], ROWS)
    fields = [(field_namespace(field_), value) for field_, value in await store.field_values(user, ROWS)]
    said = await asyncio.to_thread(
        lambda: [
            *((each.category, key) for each in memories for key in rejected_keys(each.text)),
            *((TURNS, turn_key(each.thread_id, each.text)) for each in turns),
        ]
    )
    old = await store.take_tombstones(user, ROWS)
    merges = await uow.merges.standing(await uow.merges.aliases(user))
    former = [(TURNS, turn_key(name, each.text)) for each in turns for name in former_names(each.thread_id, merges)]
    values = {ERASED: sorted({*said, *fields, *former} - {*old}), REJECTED: sorted(old)}
    graves = [(erasure, grave_), *await _alias_graves(uow, merges, grave_)]
    buried = await asyncio.to_thread(
        lambda: [
            (of, why, [(where, hashed) for where, value in some for hashed in place.hashes([value])])
            for of, place in graves
            for why, some in values.items()
        ]
    )
    for of, why, some in buried:
        await store.bury(of.subject, some, TombstoneOrigin(why, erasure.actor, now))
    counts = Counter({"history": forgotten, "tombstones": len(old), "copies": await purge_copies(uow, erasure, units)})
    counts.update(await store.remove([each.id for each in memories], [each.id for each in turns]))
    swept = await store.sweep(user, ROWS)
    counts.update(swept)
    whole = max(len(memories), len(turns)) < BATCH and max((forgotten, len(old), *swept.values())) < ROWS
    if whole:
        counts.update(await uow.checkpoints.erase(user))
        counts.update(await store.finish(user, now))
        # a merge into a user that is still to be erased tells that erasure of the former name
        counts["user_merges"] = 0 if await _is_alias(uow, user) else await uow.merges.forget(user)
    return ErasureBatch({name: count for name, count in counts.items() if count}, whole, buried)


async def _alias_graves(
    uow: UnitOfWork, aliases: Collection[str], grave_: TombstoneKeyring
) -> list[tuple[Erasure, TombstoneKeyring]]:
    """Of the users that were merged into a user: what it said may have been said under their names."""
    found: list[tuple[Erasure, TombstoneKeyring]] = []
    for alias in sorted(aliases):
        place = TombstoneKeyring.of(grave_.key, alias)
        found += [(each, place) for each in (await uow.erasures.of_subjects([place.subject]))[-1:]]
    return found


async def _is_alias(uow: UnitOfWork, user: str) -> bool:
    return user in await uow.merges.standing([user])


async def purge_copies(uow: UnitOfWork, erasure: Erasure, units: Sequence[UUID]) -> int:
    """Purge what other users' memories took from these units, and what was taken from those; how many."""
    gone: dict[UUID, Memory] = {}
    following: Sequence[UUID] = units
    while following:
        found = [
            each for each in await uow.erasures.derived_from(following, erasure.user_id or "") if each.id not in gone
        ]
        gone |= {each.id: each for each in found}
        following = [each.id for each in found]
    if gone:
        entries = [_copy_gone(erasure, each) for each in gone.values()]
        await uow.journal.record(entries)
        await uow.upkeep.purge(list(gone.values()))
        await uow.journal.forget([each.id for each in entries])
    return len(gone)


def _copy_gone(erasure: Erasure, memory: Memory) -> HistoryEntry:
    meta = {"categories": [memory.category], "cause": "source_erased", "receipt": str(erasure.id)}
    return HistoryEntry(
        new_id(), memory.id, HistoryEvent.PURGE, erasure.actor, erasure.policy_hash, erasure.started_at, meta=meta,
        of_user=memory.user_id,
    )  # fmt: skip


def _told(erasure: Erasure) -> HistoryEntry:
    """That somebody was erased, for the history: under the receipt's id, with its numbers."""
    moment = erasure.finished_at or erasure.started_at
    meta = {"receipt": str(erasure.id), "counts": dict(erasure.counts)}
    return HistoryEntry(new_id(), erasure.id, HistoryEvent.ERASE, erasure.actor, erasure.policy_hash, moment, meta=meta)


def notes(tenant: str, erasure: Erasure, key: bytes) -> list[Mapping[str, object]]:
    """An erasure as the ledger has it: without a name, and with the key that finds it again."""
    return [
        {
            "type": "erasure",
            "tenant": tenant,
            "subject": erasure.subject,
            "receipt": str(erasure.id),
            "key": key.hex(),
            "actor": erasure.actor,
            "policy_hash": erasure.policy_hash,
            "counts": dict(erasure.counts),
            "started_at": erasure.started_at.isoformat(),
            "finished_at": None if erasure.finished_at is None else erasure.finished_at.isoformat(),
        }
    ]


def tombstone_entries(
    tenant: str, erasure: Erasure, buried: Sequence[Buried], reason: str
) -> list[Mapping[str, object]]:
    """What an erasure buried for a reason, as the ledger has it."""
    return [
        {
            "type": "tombstones",
            "tenant": tenant,
            "subject": erasure.subject,
            "receipt": str(erasure.id),
            "reason": reason,
            "buried": [list(each) for each in buried[start : start + BATCH]],
        }
        for start in range(0, len(buried), BATCH)
    ]


def locks(user_id: str) -> Sequence[str]:
    """What an erasure has alone: the user's memories and checkpoints."""
    return [user_id, checkpoint_lock(user_id)]


def _whole(principal: Principal) -> Reach:
    """All rows of the tenant: of a key that is bound to users the database would hide what is gone with a memory."""
    return Reach(principal.tenant)


def _sum(before: Mapping[str, int], more: Mapping[str, int]) -> Mapping[str, int]:
    return dict(Counter(before) + Counter(more))

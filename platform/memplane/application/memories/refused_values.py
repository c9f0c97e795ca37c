"""Values that are refused: listed by the verdict that refuses them, and lifted by a fully trusted person."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal
from uuid import UUID

from memplane.application.consent.proposals import field_namespace
from memplane.application.limits.idempotency import Once
from memplane.application.memories.authorization import require_full
from memplane.application.memories.gateway import Gateway, Write, clean_id
from memplane.application.memories.recovery import reachable
from memplane.application.ports import Clock, Policies, Storage, TenantReader
from memplane.application.records import ProposalQuery, TombstonedValues, TombstoneQuery
from memplane.application.users.merged_users import require_unmerged
from memplane.domain.errors import LimitExceeded, RecordNotFound, UserForbidden
from memplane.domain.identity.principal import KeyScope, Principal
from memplane.domain.language.text import normalise
from memplane.domain.memory.history import HistoryEvent
from memplane.domain.memory.memory import Memory, State, TrustState
from memplane.domain.memory.scope import Scope, read_scope
from memplane.domain.memory.turn_hashes import IDS, NAMES
from memplane.domain.memory.undo_records import UndoKind
from memplane.domain.policy.policy import Policy
from memplane.domain.privacy.erasure import TURNS, TombstoneKeyring

MAX_PAGE = 200
MAX_REASON = 63
MISSING = "no such tombstone"
_FIELD = field_namespace("")


@dataclass(frozen=True, slots=True)
class RefusedValues:
    """What one verdict refuses.

    Attributes:
        buried: the verdict.
        user_id: whose values; ``None`` of an erased user, of whom a hash is left.
        words: of the memory or proposal that it was given on, where that is there and the caller's to read.
        memory_id: that memory.
    """

    buried: TombstonedValues
    user_id: str | None
    words: str | None = None
    memory_id: UUID | None = None

    @property
    def categories(self) -> tuple[str, ...]:
        """The categories in which the values are refused."""
        return tuple(name for name in self.buried.places if name not in {IDS, NAMES, TURNS} and not _is_field(name))

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of the profile for which they are refused."""
        return tuple(name.removeprefix(_FIELD) for name in self.buried.places if _is_field(name))

    @property
    def turns(self) -> bool:
        """Whether it is a turn that does not come back."""
        return not {IDS, NAMES, TURNS}.isdisjoint(self.buried.places)


@dataclass(frozen=True, slots=True)
class VerdictFilters:
    """Which verdicts are asked for.

    Attributes:
        user_id: only this user's.
        erased: single values that erasures left, instead of what persons rejected.
    """

    user_id: str | None = None
    erased: bool = False


@dataclass(frozen=True, slots=True)
class LiftedVerdict:
    """What lifting a verdict did.

    Attributes:
        values: how many keys are refused no longer.
        memories: memories that it had rejected; they stay deleted, and can be restored.
    """

    outcome: Literal["lifted", "unchanged"]
    id: UUID
    values: int = 0
    memories: tuple[UUID, ...] = field(default=())


class RefusedValueReview:
    """Lists and lifts what refuses values, for fully trusted keys with ``consent:review``."""

    def __init__(self, storage: Storage, policies: Policies, gateway: Gateway, clock: Clock) -> None:
        self._storage = storage
        self._policies = policies
        self._gateway = gateway
        self._clock = clock

    async def list(
        self, principal: Principal, wanted: VerdictFilters, *, before: UUID | None = None, limit: int = 50,
        agent: str | None = None,
    ) -> tuple[Sequence[RefusedValues], bool]:  # fmt: skip
        """A page of verdicts, newest first, and whether there are more.

        Raises:
            ScopeForbidden: the key lacks ``consent:review``.
            TrustTooLow: it is not fully trusted.
            UserForbidden: it may not touch the user; or it is bound to users, for values of erased ones.
            LimitExceeded: the page is too long.
        """
        principal.require(KeyScope.CONSENT)
        require_full(principal, "list rejected values")
        if not 1 <= limit <= MAX_PAGE:
            raise LimitExceeded(f"limit: {limit}, it must be 1 to {MAX_PAGE}", field="limit")
        policy, user = self._policies.current, clean_id(wanted.user_id, "user_id")
        categories = reachable(principal, policy, agent)
        scopes = None if user is None else frozenset({principal.touch(user)})
        if wanted.erased:
            _require_all_users(principal)
            scopes = scopes and await self._subjects(principal, scopes)
        elif scopes is None:
            scopes = principal.users
        query = TombstoneQuery(principal.tenant, _places(policy, categories), scopes, wanted.erased)
        async with self._storage.reading(principal.reach) as reader:
            await require_unmerged(reader, principal, user)
            found = await reader.verdicts(query, before=before, limit=limit + 1)
            words = await self._words(reader, principal, policy, categories, found[:limit])
        shown = [_shown(each, words, erased=wanted.erased) for each in found[:limit]]
        return shown, len(found) > limit

    async def lift(
        self, principal: Principal, verdict_id: UUID, reason: str | None = None, agent: str | None = None,
        *, once: Once[LiftedVerdict] | None = None,
    ) -> LiftedVerdict:  # fmt: skip
        """Take a verdict back: all of its values can be stored again, in whatever category and spelling.

        Raises:
            ScopeForbidden: the key lacks ``consent:review``.
            TrustTooLow: it is not fully trusted.
            NotFound: no such verdict, or it reaches beyond what the agent reads and writes.
        """
        policy, now = self._gateway.begin(principal, KeyScope.CONSENT)
        require_full(principal, "lift a verdict")
        categories = reachable(principal, policy, agent)
        await self._gateway.raise_if_done(principal, once)
        why = normalise(reason, "reason")[:MAX_REASON] if reason else None

        async def work(write: Write) -> LiftedVerdict:
            return await _lifted(write, verdict_id, _places(policy, categories), why)

        return await self._gateway.run(principal, policy, now, work, once=once)

    async def _subjects(self, principal: Principal, users: Collection[str]) -> frozenset[str]:
        """The hashes that stand for users who were erased."""

        async def keys(write: Write) -> list[bytes]:
            return await write.uow.erasures.keys()

        found = await self._gateway.run(principal, self._policies.current, self._clock(), keys)
        return frozenset(TombstoneKeyring.of(key, user).subject for key in found for user in users)

    async def _words(
        self, reader: TenantReader, principal: Principal, policy: Policy, categories: tuple[str, ...],
        found: Sequence[TombstonedValues],
    ) -> Mapping[UUID, tuple[UUID | None, str]]:  # fmt: skip
        """By subject the memory and its words, or the words of a proposal, as far as the caller may read them."""
        subjects = [each.subject for each in found if each.subject is not None]
        if not subjects:
            return {}
        units = await reader.units(_past(principal, policy, categories, self._clock()), subjects)
        words: dict[UUID, tuple[UUID | None, str]] = {
            each.id: (each.id, each.text.content) for each in units.values() if isinstance(each, Memory)
        }
        query = ProposalQuery(principal.tenant, categories, principal.users, self._clock(), ids=tuple(subjects))
        for proposal in await reader.proposals(query, before=None, limit=len(subjects)):
            words.setdefault(proposal.id, (None, proposal.new_value))
        return words


def _past(principal: Principal, policy: Policy, categories: tuple[str, ...], now: datetime) -> Scope:
    """Memories that the caller may read, deleted and rejected ones too."""
    scope = read_scope(principal, policy, categories, now)
    return replace(scope, states=tuple(State), trust_states=tuple(TrustState), expired=True, turns=False)


def _require_all_users(principal: Principal) -> None:
    """Who was erased is a hash: a key that is bound to users cannot be shown whether it is one of them.

    Raises:
        UserForbidden: the key is bound to users.
    """
    if principal.users is not None:
        raise UserForbidden("erased: this key is bound to users, and the values of erased ones belong to nobody")


def _is_field(place: str) -> bool:
    return place.startswith(_FIELD)


def _places(policy: Policy, categories: Sequence[str]) -> tuple[str, ...]:
    """The categories, and what values are buried under besides that belongs to them."""
    fields = [name for name in sorted(policy.consent.sensitive) if policy.home_of(name, "") in categories]
    turns = (IDS, NAMES, TURNS) if policy.turns_category in categories else ()
    return (*categories, *map(field_namespace, fields), *turns)


def _shown(buried: TombstonedValues, words: Mapping[UUID, tuple[UUID | None, str]], *, erased: bool) -> RefusedValues:
    memory, said = words.get(buried.subject, (None, None)) if buried.subject else (None, None)
    return RefusedValues(buried, None if erased else buried.scope, said, memory)


async def _lifted(write: Write, verdict_id: UUID, places: Collection[str], reason: str | None) -> LiftedVerdict:
    """Lift a verdict, once.

    Raises:
        NotFound: there is none, or it reaches further than the caller.
    """
    tombstones = write.uow.tombstones
    found = await tombstones.verdict(verdict_id)
    if found is None:
        return _again(verdict_id, await write.uow.journal.notes(verdict_id), write.principal, places)
    await write.uow.lock_users([found.scope])
    found = await tombstones.verdict(verdict_id)
    if found is None or not _reaches(write.principal, found.scope, found.places, places):
        raise RecordNotFound(MISSING)
    rows = await tombstones.lift_verdict(verdict_id)
    memories = await tombstones.rejected_at(found.scope, found.ts)
    for memory in memories:
        await _believed_again(write, memory, verdict_id)
    write.undoing(UndoKind.VERDICT, found.scope, verdict_id, {"rows": rows})
    write.record_lift(found, {"reason": reason, "values": len(rows)})
    await write.settle(found.scope, None)
    return LiftedVerdict("lifted", verdict_id, len(rows), tuple(each.id for each in memories))


def _again(
    verdict_id: UUID, notes: Sequence[Mapping[str, object]], principal: Principal, places: Collection[str]
) -> LiftedVerdict:
    """The answer to a verdict that was lifted before.

    Raises:
        NotFound: there never was one, or it was not the caller's.
    """
    for note in reversed(notes):
        reached, user = note.get("places"), note.get("scope")
        if isinstance(reached, list) and _reaches(principal, str(user), reached, places):
            return LiftedVerdict("unchanged", verdict_id)
    raise RecordNotFound(MISSING)


def _reaches(principal: Principal, scope: str, reached: Collection[str], places: Collection[str]) -> bool:
    """Whether a verdict on a user's values stands within what the caller reads and writes."""
    return (principal.users is None or scope in principal.users) and set(reached) <= set(places)


async def _believed_again(write: Write, memory: Memory, verdict_id: UUID) -> None:
    """Let a rejected memory be one that is only deleted: it can be restored, and no longer speaks against others."""
    was = next((note["was"] for note in reversed(await write.notes(memory.id)) if "was" in note), None)
    trust = TrustState(was) if isinstance(was, str) and was in set(TrustState) else TrustState.CANDIDATE
    free = replace(memory, trust_state=trust, updated_at=write.now, version=memory.version + 1)
    await write.uow.memories.replace(free, None)
    write.record_change(HistoryEvent.LIFT, None, free, memory, {"verdict": str(verdict_id)})

"""Proposals for sensitive fields of profiles: listed, decided on, acknowledged in a chat; and the decided fields."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID

from memplane.application.consent.decisions import MISSING, Decision, DecisionResult, decide
from memplane.application.consent.proposals import draft_of
from memplane.application.limits.idempotency import Once
from memplane.application.memories.authorization import require_full
from memplane.application.memories.gateway import Gateway, Write, clean_id
from memplane.application.ports import Clock, Policies, Storage
from memplane.application.recall.search_material import SearchMaterial
from memplane.application.records import ContextField, Proposal, ProposalQuery
from memplane.application.users.merged_users import require_unmerged
from memplane.domain.consent.agreement import is_agreement
from memplane.domain.consent.consent_rules import ProposalState, Verdict
from memplane.domain.errors import (
    InvalidRequest,
    LimitExceeded,
    MemplaneError,
    NotAnAgreement,
    RecordNotFound,
    TurnUnvouched,
)
from memplane.domain.identity.principal import KeyScope, Principal
from memplane.domain.language.text import normalise
from memplane.domain.memory.memory import Role, Turn, Visibility
from memplane.domain.memory.scope import Filters, read_scope
from memplane.domain.policy.policy import Speaker

MAX_PAGE = 200
MAX_BULK = 100
MAX_REASON = 63
MAX_FIELDS = 500
_CLOCKS = timedelta(minutes=5)
"""How far a caller's clock may be behind the server's."""
_OF_ONE = frozenset(
    {"conflict", "proposal_expired", "proposal_outdated", "already_decided", "value_rejected", "not_found"}
)
"""What goes wrong with one decision of several and concerns no other."""


@dataclass(frozen=True, slots=True)
class DecisionFailure:
    """A decision of several that could not be carried out, and why."""

    proposal_id: UUID
    error: MemplaneError


@dataclass(frozen=True, slots=True)
class ProposalSelection:
    """Which proposals are asked for; what is ``None`` does not narrow."""

    state: ProposalState | None = None
    user_id: str | None = None
    field: str | None = None


@dataclass(frozen=True, slots=True)
class _Ready:
    """What is looked up before the transaction opens: whose proposals they are, and search material by proposal."""

    users: frozenset[str]
    materials: dict[UUID, SearchMaterial]


class ReviewProposals:
    """What people decide of proposals. Who decides is fully trusted, and reads and writes the field's category."""

    def __init__(self, storage: Storage, policies: Policies, gateway: Gateway, clock: Clock) -> None:
        self._storage = storage
        self._policies = policies
        self._gateway = gateway
        self._clock = clock

    async def list(
        self,
        principal: Principal,
        wanted: ProposalSelection,
        *,
        before: UUID | None,
        limit: int,
        agent: str | None = None,
    ) -> tuple[Sequence[Proposal], bool]:
        """A page of proposals, newest first, and whether there are more.

        Raises:
            ScopeForbidden: the key lacks ``consent:review``.
            UserForbidden: it may not touch the user.
            LimitExceeded: the page is too long.
        """
        principal.require(KeyScope.CONSENT)
        if not 1 <= limit <= MAX_PAGE:
            raise LimitExceeded(f"limit: {limit}, it must be 1 to {MAX_PAGE}", field="limit")
        user = clean_id(wanted.user_id, "user_id")
        query = replace(
            self._query(principal, principal.act_as(agent)),
            state=wanted.state,
            user_id=None if user is None else principal.touch(user),
            field=clean_id(wanted.field, "field"),
        )
        async with self._storage.reading(principal.reach) as reader:
            await require_unmerged(reader, principal, user)
            found = await reader.proposals(query, before=before, limit=limit + 1)
        return found[:limit], len(found) > limit

    async def decide(
        self,
        principal: Principal,
        ruling: Decision,
        agent: str | None = None,
        *,
        once: Once[DecisionResult] | None = None,
    ) -> DecisionResult:
        """Decide on a proposal; the same decision again changes nothing.

        Raises:
            ScopeForbidden: the key lacks ``consent:review``.
            TrustTooLow: it is not fully trusted.
            NotFound: no such proposal, or not the caller's.
            ProposalExpired: its time is over.
            AlreadyDecided: the opposite was decided.
            ValueRejected: the value was rejected elsewhere since.
            ProposalOutdated: its words state another field besides, which has another value by now.
        """
        speaker = self._speaker(principal, KeyScope.CONSENT, agent)
        return await self._carried_out(principal, speaker, ruling, KeyScope.CONSENT, once)

    async def decide_all(
        self,
        principal: Principal,
        rulings: Sequence[Decision],
        agent: str | None = None,
        *,
        once: "Once[Sequence[DecisionResult | DecisionFailure]] | None" = None,
    ) -> Sequence[DecisionResult | DecisionFailure]:
        """Decide on several proposals, each for itself: one that cannot be decided leaves the others as they are.

        Raises:
            ScopeForbidden, TrustTooLow: as :meth:`decide`.
            Invalid: a proposal is named twice.
            LimitExceeded: there are too many.
        """
        speaker = self._speaker(principal, KeyScope.CONSENT, agent)
        if not 1 <= len(rulings) <= MAX_BULK:
            raise LimitExceeded(f"items: {len(rulings)} in one call, it must be 1 to {MAX_BULK}", limit=MAX_BULK)
        if len({ruling.proposal_id for ruling in rulings}) < len(rulings):
            raise InvalidRequest("items: a proposal is named twice; name each once", field="items")
        policy, now = self._gateway.begin(principal, KeyScope.CONSENT)
        await self._gateway.raise_if_done(principal, once)
        ready = await self._prepared(principal, speaker, rulings)

        async def work(write: Write) -> Sequence[DecisionResult | DecisionFailure]:
            done: list[DecisionResult | DecisionFailure] = []
            for ruling in rulings:
                try:
                    async with write.attempt():
                        material = ready.materials.get(ruling.proposal_id)
                        done.append(await decide(write, speaker, _cleaned(ruling), material))
                except MemplaneError as error:
                    if error.code not in _OF_ONE:
                        raise
                    done.append(DecisionFailure(ruling.proposal_id, error))
            return done

        return await self._gateway.run(principal, policy, now, work, users=ready.users, once=once)

    async def acknowledge(
        self,
        principal: Principal,
        proposal_id: UUID,
        turn_id: UUID,
        agent: str | None = None,
        *,
        once: Once[DecisionResult] | None = None,
    ) -> DecisionResult:
        """Approve a proposal by what its user said in the chat.

        Raises:
            ScopeForbidden: the key lacks ``memory:write``.
            TrustTooLow: it is not fully trusted.
            NotFound: no such proposal, or no such turn of its user, or not the caller's.
            NotAnAgreement: somebody else said it, before the proposal was made or dated ahead, it does not agree, or
                not to this one: it names no value and another was asked later, or it was taken for another one's.
            TurnUnvouched: a key without ``turns:user`` recorded the turn.
            ProposalExpired, AlreadyDecided, ValueRejected, ProposalOutdated: as :meth:`decide`.
        """
        speaker = self._speaker(principal, KeyScope.WRITE, agent)
        await self._gateway.raise_if_done(principal, once)
        proposal = await self._one(principal, speaker, proposal_id)
        turn = await self._turn(principal, speaker, turn_id)
        if turn is None or turn.user_id != proposal.user_id:
            raise RecordNotFound("no such turn of the proposal's user")
        check_acknowledgement(proposal, turn)
        ruling = Decision(proposal_id, Verdict.APPROVE, acknowledgement=turn)
        return await self._carried_out(principal, speaker, ruling, KeyScope.WRITE, once)

    async def context(self, principal: Principal, user_id: str, agent: str | None = None) -> Sequence[ContextField]:
        """The decided fields of a user's profile, as far as the caller may read the memories that hold them.

        Raises:
            UserForbidden: the key may not touch the user.
        """
        principal.require(KeyScope.READ)
        policy = self._policies.current
        filters = Filters(user_id=clean_id(user_id, "user_id"))
        allowed = policy.allowlist(principal.act_as(agent)).read
        scope = read_scope(principal, policy, allowed, self._clock(), filters)
        async with self._storage.reading(principal.reach) as reader:
            await require_unmerged(reader, principal, scope.filters.user_id)
            return await reader.context(replace(scope.as_of(None, None), turns=False), MAX_FIELDS)

    async def _carried_out(
        self,
        principal: Principal,
        speaker: Speaker,
        ruling: Decision,
        scope: KeyScope,
        once: Once[DecisionResult] | None,
    ) -> DecisionResult:
        policy, now = self._gateway.begin(principal, scope)
        await self._gateway.raise_if_done(principal, once)
        ready = await self._prepared(principal, speaker, [ruling])

        async def work(write: Write) -> DecisionResult:
            return await decide(write, speaker, _cleaned(ruling), ready.materials.get(ruling.proposal_id))

        return await self._gateway.run(principal, policy, now, work, users=ready.users, once=once)

    def _speaker(self, principal: Principal, scope: KeyScope, agent: str | None) -> Speaker:
        """Who decides, once the key may decide at all."""
        self._gateway.begin(principal, scope)
        require_full(principal, "decide on proposals")
        return principal.act_as(agent)

    def _query(self, principal: Principal, speaker: Speaker) -> ProposalQuery:
        """What the caller may see: a proposal lies in the private store."""
        policy = self._policies.current
        private = Visibility.PRIVATE in policy.visible(principal.trust)
        categories = policy.allowlist(speaker).read if private else ()
        return ProposalQuery(principal.tenant, categories, principal.users, self._clock())

    async def _one(self, principal: Principal, speaker: Speaker, proposal_id: UUID) -> Proposal:
        query = replace(self._query(principal, speaker), ids=(proposal_id,))
        async with self._storage.reading(principal.reach) as reader:
            found = await reader.proposals(query, before=None, limit=1)
        if not found:
            raise RecordNotFound(MISSING)
        return found[0]

    async def _turn(self, principal: Principal, speaker: Speaker, turn_id: UUID) -> Turn | None:
        policy = self._policies.current
        scope = read_scope(principal, policy, policy.allowlist(speaker).read, self._clock())
        async with self._storage.reading(principal.reach) as reader:
            found = (await reader.units(scope, [turn_id])).get(turn_id)
        return found if isinstance(found, Turn) else None

    async def _prepared(self, principal: Principal, speaker: Speaker, rulings: Sequence[Decision]) -> _Ready:
        """Search material of what becomes a memory is made before the transaction opens."""
        ids = tuple(ruling.proposal_id for ruling in rulings)
        query = replace(self._query(principal, speaker), ids=ids)
        async with self._storage.reading(principal.reach) as reader:
            found = await reader.proposals(query, before=None, limit=len(ids))
        approved = {ruling.proposal_id for ruling in rulings if ruling.verdict is Verdict.APPROVE}
        waiting = [each for each in found if each.id in approved and each.state is ProposalState.PENDING]
        texts = [draft_of(each, query.now).text for each in waiting]
        made = await self._gateway.material(*texts) if texts else []
        materials = {each.id: material for each, material in zip(waiting, made, strict=True)}
        return _Ready(frozenset(each.user_id for each in found), materials)


def check_acknowledgement(proposal: Proposal, turn: Turn) -> None:
    """Refuse a turn that does not agree to a proposal.

    Raises:
        NotAnAgreement: not the user said it, it is not later than the proposal or dated ahead, or its words do not
            agree.
        TurnUnvouched: a key without ``turns:user`` recorded it.
    """
    if turn.role is not Role.USER:
        raise NotAnAgreement(f"turn_id: the turn is the {turn.role}'s; only the user can agree", field="turn_id")
    if not turn.vouched:
        raise TurnUnvouched(
            f"turn_id: the key that recorded the turn lacks the scope '{KeyScope.USER_TURNS}': nobody vouches that the "
            "user said it",
            field="turn_id",
        )
    if turn.event_time is not None and turn.event_time > turn.recorded_at + _CLOCKS:
        raise NotAnAgreement("turn_id: the turn is dated ahead of its recording; ask the user again", field="turn_id")
    early = turn.event_time is not None and turn.event_time <= proposal.created_at - _CLOCKS
    if turn.recorded_at <= proposal.created_at or early:
        raise NotAnAgreement("turn_id: the turn is not later than the proposal", field="turn_id")
    if not is_agreement(turn.text, proposal.new_value):
        raise NotAnAgreement("turn_id: the turn does not plainly agree; ask the user again", field="turn_id")


def _cleaned(ruling: Decision) -> Decision:
    """With a reason as it is stored."""
    return replace(ruling, reason=normalise(ruling.reason, "reason")[:MAX_REASON] if ruling.reason else None)

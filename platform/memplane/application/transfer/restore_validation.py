"""What of an export an administrator may put back, and as what: looked at before a transaction opens."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from memplane.application.consent.proposals import draft_of, field_namespace, stated_in
from memplane.application.memories.gateway import clean_id
from memplane.application.memories.recovery import reachable
from memplane.application.memories.service import require_interval
from memplane.application.memories.shared_memories import refuse_conversations, require_shareable
from memplane.application.records import ContextField, Proposal
from memplane.application.transfer.import_records import Taking
from memplane.application.transfer.portable_records import MemoryRelation, Mentioning, NamedEntity, Record, Tombstone
from memplane.application.turns.new_turn import is_vouched
from memplane.domain.consent.consent_rules import ProposalState
from memplane.domain.errors import CategoryForbidden, InvalidRequest, LimitExceeded, MemplaneError
from memplane.domain.identity.principal import KeyScope, Principal
from memplane.domain.language.profile_statements import Stated
from memplane.domain.language.text import normalise
from memplane.domain.memory.attributes import check_attributes
from memplane.domain.memory.history import HistoryEntry
from memplane.domain.memory.memory import RETRIEVABLE_TRUST, Memory, State, Turn
from memplane.domain.memory.merging import value_hash
from memplane.domain.memory.tombstones import value_key
from memplane.domain.memory.writing import Style, constrain
from memplane.domain.policy.policy import Policy
from memplane.domain.privacy import pii
from memplane.domain.privacy.screening import plain, screen_text, screened_values


@dataclass(frozen=True, slots=True)
class ValidatedRecord:
    """A record as it is stored, and the sensitive fields that it states."""

    record: Record
    stated: Sequence[Stated] = ()


@dataclass(frozen=True, slots=True)
class RestoreRules:
    """By what records are looked at.

    Attributes:
        principal: the caller.
        policy: the policy in force.
        user_id: whose the records become.
        now: when.
        categories: what the caller's agent may both read and write.
    """

    principal: Principal
    policy: Policy
    user_id: str
    now: datetime
    categories: frozenset[str]

    @classmethod
    def of(cls, taking: Taking) -> "RestoreRules":
        """Those of a caller.

        Raises:
            AgentForbidden: the key does not reach the agent.
        """
        principal, policy, agent = taking.principal, taking.policy, taking.agent
        allowed = frozenset(reachable(principal, policy, agent))
        return cls(principal, policy, taking.user_id, taking.now, allowed)

    def check(self, category: str) -> None:
        """Refuse what belongs to a category that the caller does not reach.

        Raises:
            CategoryForbidden: it does not, or the policy has none such.
        """
        if category not in self.categories:
            raise CategoryForbidden(f"this key may not restore '{category}'", categories=[category])


def validate_record(rules: RestoreRules, record: Record) -> ValidatedRecord | MemplaneError:
    """A record as it is stored, or why it may not be."""
    try:
        return _LOOKS[type(record)](rules, record)
    except MemplaneError as error:
        return error


def _memory(rules: RestoreRules, record: Record) -> ValidatedRecord:
    if not isinstance(record, Mentioning):
        raise TypeError(type(record))
    memory = _screened(rules, record.memory)
    if memory.state is State.PURGED:
        raise InvalidRequest("state: what was purged has nothing that could be restored", field="state")
    lives = memory.state is State.ACTIVE and memory.trust_state in RETRIEVABLE_TRUST
    stated = stated_in(rules.policy, memory) if lives else ()
    return ValidatedRecord(replace(record, memory=memory), stated)


def _screened(rules: RestoreRules, memory: Memory) -> Memory:
    """A memory as the gateway lets it be stored, with what it was.

    Raises:
        MemplaneError: it may not be stored.
    """
    rules.check(memory.category)
    policy = rules.policy
    screening = policy.category(memory.category).pii
    text = screen_text(constrain(memory.text, memory.type, policy.writing, Style.FREE), screening, policy.find_pii)
    external_id = clean_id(memory.external_id, "external_id")
    attributes = screened_values(check_attributes(memory.attributes), screening, policy.find_pii)
    empty = memory.valid_from is not None and memory.valid_until is not None and memory.valid_until <= memory.valid_from
    if empty and memory.state is not State.SUPERSEDED:
        require_interval(memory.valid_from, memory.valid_until)
    names = {name: clean_id(getattr(memory, name), name) for name in ("agent_id", "run_id", "actor_id", "thread_id")}
    found = replace(
        memory,
        user_id=rules.user_id,
        text=text,
        external_id=external_id,
        value_hash=value_hash(text, external_id),
        attributes=attributes,
        pii=pii.kinds(text.searchable(), policy.find_pii),
        agent_id=names["agent_id"],
        run_id=names["run_id"],
        actor_id=names["actor_id"],
        thread_id=names["thread_id"],
        valid_until=None if empty else memory.valid_until,  # older exports ended at once what was wrong all along
    )
    require_shareable(policy, found, of_agent=False)
    return found


def _turn(rules: RestoreRules, record: Record) -> ValidatedRecord:
    if not isinstance(record, Turn):
        raise TypeError(type(record))
    policy, limit = rules.policy, rules.policy.writing.max_text_chars
    refuse_conversations(rules.user_id)
    rules.check(policy.turns_category)
    if len(record.text) > limit:
        raise LimitExceeded(f"text: {len(record.text)} characters, at most {limit}", field="text", limit=limit)
    screening = policy.category(policy.turns_category).pii
    text = plain(normalise(record.text, "text"), screening, "text", policy.find_pii)
    turn = replace(
        record,
        user_id=rules.user_id,
        text=text,
        thread_id=clean_id(record.thread_id, "thread_id") or "",
        actor_id=clean_id(record.actor_id, "actor_id"),
        agent_id=clean_id(record.agent_id, "agent_id"),
        run_id=clean_id(record.run_id, "run_id"),
        external_id=clean_id(record.external_id, "external_id"),
        key_id=rules.principal.key_id,
        vouched=is_vouched(rules.principal, record.role, before=record.vouched),
    )
    return ValidatedRecord(turn)


def _proposal(rules: RestoreRules, record: Record) -> ValidatedRecord:
    """A decision is restored by who may decide; the memory that a proposal may become is looked at like any other."""
    if not isinstance(record, Proposal):
        raise TypeError(type(record))
    rules.check(record.category)
    if record.state is not ProposalState.PENDING:
        rules.principal.require(KeyScope.CONSENT)
    value = normalise(record.new_value, "new_value")
    proposal = replace(record, user_id=rules.user_id, new_value=value, key_id=rules.principal.key_id)
    try:
        _screened(rules, draft_of(proposal, rules.now))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InvalidRequest("meta: is not of a proposal", field="meta") from error
    return ValidatedRecord(_with_meta(proposal))


def _with_meta(proposal: Proposal) -> Proposal:
    # a proposal that lapsed is told as such, and kept as one that nobody decided on
    lapsed = proposal.state is ProposalState.EXPIRED
    state = ProposalState.PENDING if lapsed else proposal.state
    return replace(proposal, meta=check_attributes(proposal.meta, "meta"), state=state)


def _field(rules: RestoreRules, record: Record) -> ValidatedRecord:
    if not isinstance(record, ContextField):
        raise TypeError(type(record))
    rules.check(record.category)
    value = normalise(record.field_value, "field_value")
    stated = Stated(record.field, value)
    if record.value_hash not in {stated.key[1], value_key(value)}:
        raise InvalidRequest("value_hash: is not that of the value", field="value_hash")
    sensitive = record.field in rules.policy.sensitive_fields(record.category)
    return ValidatedRecord(replace(record, user_id=rules.user_id, field_value=value), [stated] if sensitive else ())


def _history(rules: RestoreRules, record: Record) -> ValidatedRecord:
    """An entry of another server's history says who brought it here."""
    if not isinstance(record, HistoryEntry):
        raise TypeError(type(record))
    brought = {"imported_by": rules.principal.actor, "imported_key": rules.principal.key_id}
    refs = {
        name: None if (text := getattr(record, name)) is None else normalise(text, name)
        for name in ("old_ref", "new_ref")
    }
    meta = check_attributes({**record.meta, **brought}, "meta")
    return ValidatedRecord(replace(record, meta=meta, old_ref=refs["old_ref"], new_ref=refs["new_ref"]))


def _tombstone(rules: RestoreRules, record: Record) -> ValidatedRecord:
    if not isinstance(record, Tombstone):
        raise TypeError(type(record))
    fields = {field_namespace(field) for name in rules.categories for field in rules.policy.sensitive_fields(name)}
    if record.category not in fields:
        rules.check(record.category)
    return ValidatedRecord(record)


def _as_it_is(_rules: RestoreRules, record: Record) -> ValidatedRecord:
    return ValidatedRecord(record)


_LOOKS: Mapping[type[Record], Callable[[RestoreRules, Record], ValidatedRecord]] = {
    Mentioning: _memory,
    Turn: _turn,
    NamedEntity: _as_it_is,
    MemoryRelation: _as_it_is,
    HistoryEntry: _history,
    Proposal: _proposal,
    ContextField: _field,
    Tombstone: _tombstone,
}

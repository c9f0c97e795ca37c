"""Benign fields apply by themselves, once enough turns say the same."""

from collections.abc import Sequence

from memplane.application.memories.gateway import Write
from memplane.application.records import ContextField, Signal
from memplane.domain.consent.consent_rules import MULTIPLE
from memplane.domain.language.extraction.extraction import ExtractedFact
from memplane.domain.memory.history import HistoryEvent
from memplane.domain.memory.memory import Memory, State, TrustState, Turn
from memplane.domain.memory.tombstones import value_key
from memplane.domain.memory.undo_records import UndoKind
from memplane.domain.memory.undo_records import plain as as_json
from memplane.domain.privacy.screening import plain

GOALS_ADD = "goals_add"
GOALS = "goals"


def benign_value(stated: ExtractedFact, memory: Memory, fields: tuple[str, ...]) -> tuple[str, str, str] | None:
    """The benign field that a turn gives a value, with the value and its key; ``None`` when it gives none.

    A goal is the same goal in other words when it was merged into the same memory.
    """
    if stated.retracts:
        return None
    if stated.field is not None and stated.value is not None and stated.field in fields:
        return stated.field, stated.value, value_key(stated.value)
    if GOALS_ADD in fields and stated.category == GOALS:
        return GOALS_ADD, memory.text.content, value_key(str(memory.id))
    return None


async def corroborate(write: Write, turn: Turn, stated: ExtractedFact, memory: Memory) -> None:
    """Note what a turn says of a benign field, and let it apply once it is corroborated.

    A value that took another's place needs new turns to come back.
    """
    found = benign_value(stated, memory, write.policy.consent.benign)
    if found is None or memory.state is not State.ACTIVE or memory.trust_state is TrustState.DISPUTED:
        return
    field, said, key = found
    value = plain(said, write.policy.category(memory.category).pii, "text", write.policy.find_pii)
    consents = write.uow.consents
    await consents.signal(Signal(turn.user_id, field, key, turn.id, memory.id, stated.confidence, write.now))
    known = await consents.fields(turn.user_id, field)
    if any(row.value_hash == key and row.memory_id == memory.id for row in known):
        return
    alone = field not in MULTIPLE
    since = known[0].decided_at if known and alone else None
    turns = await consents.signals(turn.user_id, field, key, since)
    if not write.policy.consent.is_corroborated(turns):
        return
    decided = ContextField(
        turn.user_id, field, key, value, memory.category, memory.id, None, turn.id, write.principal.actor,
        write.policy.digest, write.now,
    )  # fmt: skip
    note_fields(write, decided, known)
    await consents.keep(decided, alone=alone)
    told = {"field": field, "decision": "corroborated", "evidence": [str(each) for each in turns]}
    write.record_change(HistoryEvent.CONSENT, None, memory, memory, told)


def note_fields(write: Write, decided: ContextField, known: Sequence[ContextField]) -> None:
    """Note which values a field had before another one is stored, so that they can be brought back."""
    before = [{name: as_json(getattr(row, name)) for name in ContextField.__slots__} for row in known]
    meta = {"field": decided.field, "value_hash": decided.value_hash, "before": before}
    write.undoing(UndoKind.FIELD, decided.user_id, decided.memory_id, meta)

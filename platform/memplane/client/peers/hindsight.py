"""Hindsight: the answer of `list_memories` or `recall`, or the archive of a bank or of documents.

The fields are those of hindsight-client 1.1.0 (models/memory_unit_list_item.py, recall_result.py) and, for archives, of
hindsight-api-slim 1.1.0 (hindsight_api/engine/transfer/schema.py: TransferFact, TransferObservation).
"""

from collections.abc import Mapping

from memplane.client.peers.records import (
    Conversion,
    ConvertedRecord,
    Document,
    Fields,
    LeftOut,
    Peer,
    left_out,
    strings,
)

LISTS = frozenset({"items", "results", "facts", "observations"})
ARCHIVED = "facts"
"""The list of a document of an archive that holds what was drawn from it."""
_TYPES: Mapping[str, str] = {
    "world": "semantic", "opinion": "semantic", "experience": "episodic", "bank": "episodic", "observation": "insight",
}  # fmt: skip


def recognises(document: Document) -> bool:
    """Whether a record is a memory unit, or a fact of an archive."""
    fields = document.fields
    return isinstance(fields.get("text"), str) and (fields.get("fact_type") or fields.get("type")) in _TYPES


def convert(document: Document, by: Conversion) -> ConvertedRecord:
    """A memory unit, or a fact or observation of an archive."""
    fields = Fields(Peer.HINDSIGHT, document, by)
    owner = fields.owner("bank_id", "source_bank_id")
    content, kind = fields.text("text"), fields.text("fact_type", "type")
    if document.kind == "observations":
        kind = "observation"
    if kind is None or kind not in _TYPES:
        told = f"'{document.kind}' of a bank: no fact" if document.kind not in LISTS else "no memory unit of Hindsight"
        known = document.kind in LISTS or not document.kind
        return left_out(document, LeftOut.UNKNOWN_RECORD if known else LeftOut.NOT_A_MEMORY, told, owner)
    if content is None or not content.strip():
        return left_out(document, LeftOut.NO_TEXT, "`text` is empty", owner)
    if fields.text("state") == "invalidated":
        told = f"it was invalidated: {document.fields.get('invalidation_reason') or 'no reason given'}"
        return left_out(document, LeftOut.NOT_BELIEVED, told, owner)
    times = [fields.time(name) for name in ("occurred_start", "date", "event_date", "mentioned_at", "created_at")]
    first = next((name for name in ("occurred_start", "date", "event_date") if document.fields.get(name)), None)
    fields.keep(
        fact_type=kind,
        mentioned_at=document.fields.get("mentioned_at") if first else None,
        document_id=fields.document.around.get("id") if document.kind == ARCHIVED else None,
    )
    confidence = fields.take("confidence_score")
    fields.drop("scores", "causal_relations", "chunk_id", "chunk_index", "source_memory_ids", "source_fact_ids",
                "sources", "attachments", "observation_scopes")  # fmt: skip
    opinion = ["opinion"] if kind == "opinion" else []
    return fields.memory(
        fields.text("id", "source_id"), content, owner=owner, categories=strings(fields.take("tags")),
        tags=[*opinion, *strings(document.fields.get("entities"))], type=_TYPES[kind],
        event_time=next((each for each in times if each), None),
        confidence=confidence if isinstance(confidence, float | int) and 0 <= confidence <= 1 else None,
    )  # fmt: skip

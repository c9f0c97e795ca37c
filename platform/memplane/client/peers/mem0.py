"""mem0: the answer of `get_all()`, of the library or the platform, or a list of its memories.

The fields are those of mem0ai 2.2.1: `MemoryItem` in mem0/configs/base.py, with the keys that
`Memory._get_all_from_vector_store` in mem0/memory/main.py adds, and the platform's pages of `MemoryClient.get_all`.
"""

from collections.abc import Mapping
from datetime import timedelta

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

LISTS = frozenset({"results", "memories"})


def recognises(document: Document) -> bool:
    """Whether a record is one of mem0's."""
    return isinstance(document.fields.get("memory"), str) and "id" in document.fields


def convert(document: Document, by: Conversion) -> ConvertedRecord:
    """A memory of mem0."""
    fields = Fields(Peer.MEM0, document, by)
    owner = fields.owner("user_id")
    if document.kind == "relations":
        return left_out(document, LeftOut.NOT_A_MEMORY, "a relation of mem0's graph, which names no memory", owner)
    content = fields.text("memory")
    if not recognises(document):
        return left_out(document, LeftOut.UNKNOWN_RECORD, "no memory of mem0: it has no `id` and `memory`", owner)
    if content is None or not content.strip():
        return left_out(document, LeftOut.NO_TEXT, "`memory` is empty", owner)
    until = fields.time("expiration_date")
    ends = until and until + timedelta(days=1)  # mem0 shows it on that day, and not after
    if ends is not None and ends <= by.now:
        return left_out(document, LeftOut.EXPIRED, f"it expired on {document.fields['expiration_date']}", owner)
    created, updated = fields.time("created_at"), fields.time("updated_at")
    fields.keep(created_at=created if updated and created and updated > created else None)
    fields.drop("hash", "score", "score_details", "embedding")
    metadata = document.fields.get("metadata")
    own = metadata.get("category") if isinstance(metadata, Mapping) else None
    spoke = fields.text("role")
    role = fields.role(spoke)
    fields.keep(role=None if role else spoke)
    return fields.memory(
        fields.text("id"), content, owner=owner,
        categories=[*strings(own), *strings(fields.take("categories"))],
        # the words are those of the last change, and so is the time at which they were true
        event_time=updated if updated and (created is None or updated > created) else created,
        expires_at=ends, agent_id=fields.agent(fields.name("agent_id")), run_id=fields.name("run_id"),
        actor_id=fields.name("actor_id"), role=role and str(role),
    )  # fmt: skip

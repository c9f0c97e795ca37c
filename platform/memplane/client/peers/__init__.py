"""Exports of mem0, LangGraph's stores, Zep and Hindsight, as lines of an import."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from memplane.client.peers.reading import MODULES, documents, pages_missing, peer_of
from memplane.client.peers.records import Conversion, ConvertedRecord, Document, ImportMap, LeftOut, Peer

__all__ = [
    "Conversion", "ConvertedRecord", "Document", "ImportMap", "LeftOut", "Peer", "convert_records", "documents",
        "pages_missing",
    "peer_of",
]  # fmt: skip


def convert_records(peer: Peer, records: Iterable[Document], by: Conversion) -> Iterator[ConvertedRecord]:
    """Each record of an export as a line of an import, or why there is none for it."""
    for document in records:
        found: ConvertedRecord = MODULES[peer].convert(document, by)
        known = None if found.owner is None else by.map.users.get(found.owner)
        yield replace(found, owner=known) if known else found

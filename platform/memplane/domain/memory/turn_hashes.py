"""What is left of a turn that was deleted: hashes by which its name and its id are known again."""

import hashlib
from uuid import UUID

DELETED = "deleted"
"""The reason of a tombstone that a deleted turn left."""
NAMES, IDS = "turn:name", "turn:id"
"""Where the callers' names of deleted turns are buried, and where their ids; no category is called so."""


def name_key(thread_id: str, external_id: str) -> str:
    """By what a turn's own name is known again: the same name in another thread is another turn's."""
    return hashlib.sha256(f"{len(thread_id)}:{thread_id}{external_id}".encode()).hexdigest()


def id_key(turn_id: UUID) -> str:
    """By what a turn's id is known again."""
    return hashlib.sha256(turn_id.bytes).hexdigest()

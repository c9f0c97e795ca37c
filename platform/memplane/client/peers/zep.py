"""Zep: sessions or threads with messages, facts, and the edges and nodes of a graph; Graphiti's too.

The fields are those of zep-cloud 4.0.1 (zep_cloud/types/: edge, node, episode, message, thread), of zep-python 2.0.2
for the community edition (zep_python/types/: fact, message, session, memory), of graphiti-core 0.31.2 (edges, nodes).
"""

from collections.abc import Mapping
from datetime import datetime

from memplane.client.peers.records import (
    MAX_TITLE,
    Conversion,
    ConvertedRecord,
    Document,
    Fields,
    LeftOut,
    Peer,
    left_out,
    strings,
)

LISTS = frozenset({"edges", "nodes", "episodes", "facts", "relevant_facts", "messages", "sessions", "threads", "users"})
NESTED: Mapping[str, frozenset[str]] = {
    kind: frozenset({"messages", "facts", "relevant_facts"}) for kind in ("sessions", "threads", "memories")
}
_OWNER = ("user_id", "user_uuid", "group_id")
_ID = ("uuid", "uuid_")


def recognises(document: Document) -> bool:
    """Whether a record is one of Zep's or Graphiti's."""
    needed = _MARKS.get(_kind(document), ())
    return any(name in document.fields for name in needed)


def convert(document: Document, by: Conversion) -> ConvertedRecord:
    """A record of Zep."""
    fields = Fields(Peer.ZEP, document, by)
    owner = fields.owner(*_OWNER)
    match _kind(document):
        case "edge":
            return _fact(fields, owner)
        case "node":
            return _node(fields, owner)
        case "message":
            return _message(fields, owner)
        case "episode":
            return _episode(fields, owner)
        case "session":
            told = "a session or thread: its id is kept with its messages, and the rest of it is none of a memory"
            return left_out(document, LeftOut.NOT_A_MEMORY, told, owner)
        case "user":
            return left_out(document, LeftOut.NOT_A_MEMORY, "a user record", owner)
        case "summary":
            return left_out(document, LeftOut.NOT_A_MEMORY, "a summary of a session: close the session instead", owner)
        case _:
            return left_out(document, LeftOut.UNKNOWN_RECORD, "no record of Zep that is known here", owner)


def _fact(fields: Fields, owner: str | None) -> ConvertedRecord:
    """A fact: of the graph, with its validity, or of a session."""
    content = fields.text("fact")
    if content is None or not content.strip():
        return left_out(fields.document, LeftOut.NO_TEXT, "`fact` is empty", owner)
    valid, invalid = fields.time("valid_at"), fields.time("invalid_at")
    expired = fields.time("expired_at")
    created = fields.time("created_at")
    relation = fields.text("name")
    ends = [fields.document.fields.get(f"{end}_node_name") for end in ("source", "target")]
    fields.keep(created_at=created if valid else None, expired_at=expired if invalid else None, relation=relation)
    fields.drop("score", "relevance", "fact_embedding", "rating", "source_node_labels", "target_node_labels")
    return fields.memory(
        fields.text(*_ID), content, owner=owner, tags=[each for each in ends if isinstance(each, str)],
        event_time=valid or created, valid_from=valid, valid_until=invalid or expired,
        thread_id=fields.document.around.get("session_id") or fields.document.around.get("thread_id"),
    )  # fmt: skip


def _node(fields: Fields, owner: str | None) -> ConvertedRecord:
    """Somebody or something that facts are about: what Zep says of it in sum."""
    content, name = fields.text("summary"), fields.text("name")
    if content is None or not content.strip():
        return left_out(fields.document, LeftOut.NO_TEXT, f"the node '{name}' has no summary", owner)
    labels = [each for each in strings(fields.take("labels")) if each != "Entity"]
    fields.drop("score", "relevance", "degree", "name_embedding", "episode_uuids_truncated")
    return fields.memory(
        fields.text(*_ID), content, owner=owner, categories=labels, title=name and name[:MAX_TITLE],
        event_time=fields.time("created_at"),
    )  # fmt: skip


def _message(fields: Fields, owner: str | None) -> ConvertedRecord:
    """A message: zep-cloud says the role as `role`, zep-python as `role_type`, and the other field is a name."""
    content, document = fields.text("content"), fields.document
    typed, spoken = fields.text("role_type"), fields.text("role")
    role = fields.role(typed or spoken)
    thread = (
        fields.name("thread_id", "session_id")
        or next((str(found) for name in ("session_id", "thread_id") if (found := document.around.get(name))), None)
        or fields.name("thread_uuid")
        or fields.by.map.thread
    )
    if content is None or not content.strip():
        return left_out(document, LeftOut.NO_TEXT, "`content` is empty", owner)
    if role is None:
        told = f"nobody knows who spoke: the role is '{typed or spoken}'; say it under `roles` of --map"
        return left_out(document, LeftOut.UNKNOWN_ROLE, told, owner)
    if thread is None:
        return left_out(document, LeftOut.NO_THREAD, "it names no thread: say it as `thread` of --map", owner)
    actor = fields.name("name", "role_name") or (spoken if typed else None)
    identity = fields.text(*_ID)
    return fields.turn(
        content, role, thread, owner=owner, actor_id=actor and actor[:255],
        event_time=fields.time("reference_time") or fields.time("created_at") or fields.time("valid_at"),
        external_id=fields.identity(identity) if identity else None,
    )  # fmt: skip


def _episode(fields: Fields, owner: str | None) -> ConvertedRecord:
    """What was added to a graph: a message of a thread, or a text; data is for the graph that was made of it."""
    if fields.document.fields.get("thread_uuid") and fields.document.fields.get("role"):
        return _message(fields, owner)
    content, source = fields.text("content"), fields.text("source")
    if source == "json":
        return left_out(fields.document, LeftOut.NOT_A_MEMORY, "data, of which the graph was made", owner)
    if content is None or not content.strip():
        return left_out(fields.document, LeftOut.NO_TEXT, "`content` is empty", owner)
    fields.drop("score", "relevance", "processed")
    when: datetime | None = (
        fields.time("reference_time") or fields.time("valid_at") or fields.time("created_at")
    )  # Graphiti has the time of an episode in `valid_at`
    return fields.memory(fields.text(*_ID), content, owner=owner, type="episodic", event_time=when)


def _kind(document: Document) -> str:
    """What a record is, by its list and its fields."""
    fields = document.fields
    if "fact" in fields:
        return "edge"
    if document.kind in {"sessions", "threads"}:
        return "session"
    if document.kind in {"users", "summary"}:
        return document.kind.removesuffix("s")
    if "content" in fields:
        episode = document.kind == "episodes" or "source" in fields or "source_description" in fields
        return "episode" if episode else "message"
    return "node" if "name" in fields and ("summary" in fields or "labels" in fields) else ""


_MARKS: Mapping[str, tuple[str, ...]] = {
    "edge": (*_ID, "source_node_uuid"),
    "node": _ID,
    "episode": _ID,
    "message": (*_ID, "role_type"),
    "session": ("session_id", "thread_id"),
}
"""By kind the fields of which Zep's records have one, while those of other programs have none."""

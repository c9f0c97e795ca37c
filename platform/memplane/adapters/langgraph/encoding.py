"""LangGraph's checkpoints as Memplane stores them, and back, in the layout of `langgraph-checkpoint-postgres`."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_serializable_checkpoint_metadata,
    writes_sort_key,
)
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from memplane.adapters.langgraph.serializer import StrictSerializer
from memplane.application.checkpoints.checkpoint_records import (
    Blob,
    CheckpointSummary,
    Namespace,
    NewCheckpoint,
    StoredCheckpoint,
    TaskWrite,
)
from memplane.domain.errors import InvalidRequest, InvalidText
from memplane.domain.language.text import refuse_unstorable

MESSAGES, CONTEXT = "messages", "memory_context"
"""Channels of which a supervisor's state tells: the conversation, and what was known of the memory."""
MAX_MESSAGES = 50
MAX_MESSAGE_CHARS = 2_000
MAX_CONTEXT_CHARS = 20_000
MAX_CHANNELS = 100


def new_checkpoint(
    serde: StrictSerializer,
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    new_versions: ChannelVersions,
) -> NewCheckpoint:
    """A checkpoint to store: plain values of channels stay in it, the others go to blobs by their versions.

    Raises:
        UndeclaredType: a channel holds a value of a type that was not declared.
        InvalidText, Invalid: a name or the metadata hold what JSON cannot.
    """
    inline: dict[str, Any] = {}
    blobs: list[Blob] = []
    for channel, value in checkpoint["channel_values"].items():
        if isinstance(value, _DeltaSnapshot):
            inline[channel] = True  # what tells that a blob holds the whole value
        elif _plain(value):
            inline[channel] = value
            continue
        if channel in new_versions:
            kind, data = serde.dumps_typed(value)
            blobs.append(Blob(channel, str(new_versions[channel]), kind, data))
    parent = config["configurable"].get("checkpoint_id") or None
    return NewCheckpoint(
        id=checkpoint["id"],
        parent=None if parent is None else str(parent),
        checkpoint=_document({**checkpoint, "channel_values": inline}, "checkpoint"),
        metadata=_document(get_serializable_checkpoint_metadata(config, metadata), "metadata"),
        blobs=blobs,
        empty=not checkpoint["channel_versions"],
        summary=_summary(checkpoint, metadata),
    )


def _plain(value: object) -> bool:
    """Whether a value stands in JSON as it is; a fraction, or a number of many digits, might come back changed."""
    if type(value) is str:
        return _storable(value)
    return value is None or type(value) is bool or (type(value) is int and abs(value) < 2**53)


def _storable(value: str) -> bool:
    try:
        refuse_unstorable(value, "value")
    except InvalidText:
        return False
    return True


def _document(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A value as JSON has it.

    Raises:
        InvalidText: a text in it cannot be stored.
        Invalid: something in it has no place in JSON.
    """
    try:
        document: dict[str, Any] = json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InvalidRequest(f"{name}: {error}", field=name) from error
    _refuse_unstorable(document, name)
    return document


def _refuse_unstorable(value: object, name: str) -> None:
    match value:
        case str():
            refuse_unstorable(value, name)
        case dict():
            for key, item in value.items():
                refuse_unstorable(key, name)
                _refuse_unstorable(item, name)
        case list():
            for item in value:
                _refuse_unstorable(item, name)
        case _:
            pass  # numbers, true, false, null


def _summary(checkpoint: Checkpoint, metadata: CheckpointMetadata) -> CheckpointSummary:
    values = checkpoint["channel_values"]
    messages, context = values.get(MESSAGES), values.get(CONTEXT)
    spoken = [_told(each) for each in messages[-MAX_MESSAGES:]] if isinstance(messages, list) else None
    return CheckpointSummary(
        step=metadata.get("step"),
        source=metadata.get("source"),
        ts=checkpoint["ts"],
        channels=sorted(checkpoint["channel_versions"])[:MAX_CHANNELS],
        conversation=spoken,
        context=_cut(context, MAX_CONTEXT_CHARS) if isinstance(context, str) else None,
    )


def _told(message: object) -> dict[str, object]:
    """A message in brief: who spoke, and what."""
    if isinstance(message, Mapping):
        role, text = message.get("role", message.get("type")), message.get("content")
    else:
        role, text = getattr(message, "type", type(message).__name__), getattr(message, "content", message)
    return {"role": _cut(role, 63), "text": _cut(text, MAX_MESSAGE_CHARS)}


def _cut(value: object, most: int) -> str:
    text = value if isinstance(value, str) else str(value)
    if text.isascii() and "\x00" not in text:  # most are, and to know it costs nothing
        return text[:most]
    return text.replace("\x00", "").encode(errors="replace").decode()[:most]


def task_writes(
    serde: StrictSerializer, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str
) -> list[TaskWrite]:
    """What a task wrote, to store.

    Raises:
        UndeclaredType: a value is of a type that was not declared.
    """
    return [
        TaskWrite(task_id, task_path, WRITES_IDX_MAP.get(channel, idx), channel, *serde.dumps_typed(_written(value)))
        for idx, (channel, value) in enumerate(writes)
    ]


def _written(value: object) -> object:
    """What a task wrote; an exception as text, as LangGraph keeps it, also where it could pass for another value."""
    return repr(value) if isinstance(value, BaseException) else value


def config_of(place: Namespace, checkpoint_id: str) -> RunnableConfig:
    """How LangGraph names a checkpoint; the user is part of it."""
    return {
        "configurable": {
            "user_id": place.thread.user_id,
            "thread_id": place.thread.thread_id,
            "checkpoint_ns": place.namespace,
            "checkpoint_id": checkpoint_id,
        }
    }


def checkpoint_tuple(serde: StrictSerializer, stored: StoredCheckpoint) -> CheckpointTuple:
    """A stored checkpoint as LangGraph has it.

    Raises:
        UndeclaredType, CheckpointMismatch: it holds what the declared types do not cover.
    """
    values = {blob.channel: serde.loads_typed((blob.type, blob.blob)) for blob in stored.blobs}
    inline = cast("dict[str, Any]", stored.checkpoint.get("channel_values") or {})
    checkpoint = cast("Checkpoint", {**stored.checkpoint, "channel_values": {**inline, **values}})
    writes = sorted(stored.writes, key=lambda each: writes_sort_key(each.task_path, each.task_id, each.idx))
    return CheckpointTuple(
        config_of(stored.place, stored.id),
        checkpoint,
        cast("CheckpointMetadata", dict(stored.metadata)),
        None if stored.parent is None else config_of(stored.place, stored.parent),
        [(each.task_id, each.channel, serde.loads_typed((each.type, each.blob))) for each in writes],
    )


def holds(document: object, wanted: object) -> bool:
    """Whether a JSON document holds another one, as PostgreSQL's ``@>`` has it, on either database."""
    match wanted:
        case dict() | Mapping():
            return isinstance(document, Mapping) and all(
                key in document and holds(document[key], value) for key, value in wanted.items()
            )
        case list() | tuple():
            return isinstance(document, list) and all(any(holds(each, item) for each in document) for item in wanted)
        case float() if math.isnan(wanted):
            return False
        case _:
            return isinstance(document, bool) == isinstance(wanted, bool) and document == wanted

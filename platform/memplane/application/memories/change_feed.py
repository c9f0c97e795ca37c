"""Telling threads what changed: each user's threads of that user's memories, and of nobody else's."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from memplane.application.records import ChangedMemory, ChangeNotice
from memplane.application.transaction import ThreadStore
from memplane.domain.memory.delta import ChangeEvent
from memplane.domain.memory.memory import Memory

RECENT = timedelta(hours=24)
"""Threads that were active so lately are told of what changes elsewhere."""
MAX_RECENT = 8


@dataclass(frozen=True, slots=True)
class PublishedChange:
    """A change of a memory that threads are to be told."""

    event: ChangeEvent
    memory: Memory


async def publish(
    threads: ThreadStore, noted: Sequence[PublishedChange], now: datetime, asked: tuple[str, str | None]
) -> int | None:
    """Tell the threads in which memories were written, and their users' recent ones; users in the order of their names.

    Args:
        threads: where they are told.
        noted: the changes, of any users.
        now: the moment of the write.
        asked: a user and a thread of theirs, whose revision is asked for, or none.

    Returns:
        The revision of that thread; ``None`` without one.
    """
    user_id, thread_id = asked
    last: int | None = None
    for user in sorted({each.memory.user_id for each in noted}):
        mine = [each for each in noted if each.memory.user_id == user]
        named = {each.memory.thread_id: now for each in mine if each.memory.thread_id}
        if thread_id and user == user_id:
            named[thread_id] = now
        changes = tuple(ChangedMemory(each.memory.id, each.event, each.memory.category) for each in mine)
        revisions = await threads.publish(user, named, ChangeNotice(changes, now, now - RECENT, MAX_RECENT))
        if thread_id and user == user_id:
            last = revisions.get(thread_id)
    if thread_id and last is None:
        return await threads.revision(user_id, thread_id)
    return last

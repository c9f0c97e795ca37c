"""The client for asyncio."""

from collections.abc import AsyncGenerator, Iterable, Mapping
from types import TracebackType
from typing import Self, Unpack
from uuid import UUID

import httpx2

from memplane.client.calls import (
    body_of,
    checkpoint_path,
    delete_once,
    entity_path,
    given_fields,
    if_match,
    memory_path,
    query_of,
    read_call,
    rename_field,
    segment,
    write,
)
from memplane.client.connection import Call, Connection
from memplane.client.fields import (
    ChangeFields,
    CheckpointFields,
    ContextFields,
    CorrectionFields,
    ListFields,
    MemoryFields,
    ObservationFields,
    QueryFields,
    TurnEntry,
    TurnFields,
    Verb,
    VerbFields,
)
from memplane.client.operation import OperationCalls
from memplane.client.paging import PAGE_SIZE, each_of
from memplane.client.rights import RightsCalls
from memplane.contracts.base import Message
from memplane.contracts.checkpoints import CheckpointRecord, CheckpointRequest, DeletedThread
from memplane.contracts.context import ContextAnswer, ContextRequest
from memplane.contracts.entities import AliasRequest, EntityList, EntityProfileRecord, EntityRecord, MergeRequest
from memplane.contracts.inspection import RelatedList, Timeline, WhyRecord
from memplane.contracts.memories import (
    CorrectionRequest,
    Health,
    HistoryList,
    HistoryRecord,
    ListedMemory,
    MemoryBatch,
    MemoryBatchRequest,
    MemoryChange,
    MemoryList,
    MemoryRecord,
    NewMemoryRequest,
    NewTurnRequest,
    PinRequest,
    RejectRequest,
    ThreadDelta,
    TurnBatchOutcome,
    TurnBatchRequest,
    TurnDeletion,
    TurnList,
    TurnOutcome,
    VerbRequest,
    WriteOutcome,
)
from memplane.contracts.observations import ObservationRequest
from memplane.contracts.query import QueryAnswer, QueryRequest
from memplane.contracts.sessions import ClosedSession, CloseRequest

TIMEOUT_SECONDS = 30.0
RETRIES = 3

_BODIES: Mapping[Verb, type[Message]] = {"pin": PinRequest, "reject": RejectRequest}


class Memplane(RightsCalls, OperationCalls):
    """A Memplane server, as one API key sees it. Use it as an async context manager, or call `close`.

    Every method raises `MemplaneClientError`: its subclass says what kind of failure, its ``code`` exactly which. A
    read, and a write that is a POST, is tried again when the server is away or busy: each such write carries an
    `Idempotency-Key`, so that a second arrival has no second effect; so does the deletion of a turn. Changes and other
    deletions are not tried again.

    Args:
        url: the server's, such as ``http://127.0.0.1:7077``.
        key: an API key ``mp_…``.
        timeout: seconds to wait for a connection, and for each part of an answer.
        retries: how often a call that is safe to repeat is tried again; 0 for never.
        transport: what carries the requests; the network, unless said.
    """

    def __init__(
        self,
        url: str,
        key: str,
        *,
        timeout: float = TIMEOUT_SECONDS,
        retries: int = RETRIES,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._connection = Connection(url, key, timeout=timeout, retries=retries, transport=transport)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._connection.close()

    async def query(self, query: str | None = None, **fields: Unpack[QueryFields]) -> QueryAnswer:
        """Ask the memory; without words, for what is newest."""
        given = rename_field(fields, "return_", "return") | ({} if query is None else {"query": query})
        call = Call("POST", "/v1/memory/query", body_of(QueryRequest, given), repeatable=True)
        return await self._connection.ask(call, QueryAnswer)

    async def context(self, user_id: str, thread_id: str, **fields: Unpack[ContextFields]) -> ContextAnswer:
        """What an agent should know before it answers a message, as one block for its prompt."""
        body = body_of(ContextRequest, {"user_id": user_id, "thread_id": thread_id, **fields})
        return await self._connection.ask(Call("POST", "/v1/context", body, repeatable=True), ContextAnswer)

    async def turn(self, text: str, **fields: Unpack[TurnFields]) -> TurnOutcome:
        """Store one message of a conversation."""
        body = body_of(NewTurnRequest, {"text": text, **fields})
        call = write("/v1/turns", body)
        return await self._connection.ask(call, TurnOutcome)

    async def turns(
        self, batch: Iterable[NewTurnRequest | TurnEntry], *, dry_run: bool | None = None
    ) -> TurnBatchOutcome:
        """Store up to 1 000 messages, all or none."""
        body = body_of(TurnBatchRequest, {"turns": list(batch)} | given_fields(dry_run=dry_run))
        call = write("/v1/turns:batch", body)
        return await self._connection.ask(call, TurnBatchOutcome)

    async def delete_turn(
        self, turn_id: UUID | str, *, dry_run: bool | None = None, agent: str | None = None
    ) -> TurnDeletion:
        """Delete a message for good, with what was derived from it alone; for fully trusted keys."""
        call = delete_once(f"/v1/turns/{segment(str(turn_id))}", dry_run=dry_run, agent=agent)
        return await self._connection.ask(call, TurnDeletion)

    async def remember(self, content: str, **fields: Unpack[MemoryFields]) -> WriteOutcome:
        """Store one thing known, once: what says the same is merged, what it overrules becomes a thing of the past."""
        call = write("/v1/memories", body_of(NewMemoryRequest, {"content": content, **fields}))
        return await self._connection.ask(call, WriteOutcome)

    async def observe(self, tool: str, outcome: str, **fields: Unpack[ObservationFields]) -> WriteOutcome:
        """Store a run of a tool: what it was called with, and what came of it; secrets are left out by the server."""
        body = body_of(ObservationRequest, {"tool": tool, "outcome": outcome, **fields})
        return await self._connection.ask(write("/v1/observations", body), WriteOutcome)

    async def get(self, memory_id: UUID | str, *, agent: str | None = None) -> MemoryRecord:
        """One memory."""
        return await self._connection.ask(read_call(memory_path(memory_id), agent=agent), MemoryRecord)

    async def get_many(self, ids: Iterable[UUID | str], *, agent: str | None = None) -> MemoryBatch:
        """Up to 200 memories in the order asked; those that are absent or not the caller's are left out."""
        body = body_of(MemoryBatchRequest, given_fields(ids=[str(each) for each in ids], agent=agent))
        return await self._connection.ask(Call("POST", "/v1/memories:batchGet", body, repeatable=True), MemoryBatch)

    async def update(
        self,
        memory_id: UUID | str,
        *,
        version: int | None = None,
        agent: str | None = None,
        **changes: Unpack[ChangeFields],
    ) -> WriteOutcome:
        """Change fields of a memory, if it still is at ``version`` (sent as `If-Match`); at any, without one."""
        body = body_of(MemoryChange, changes)
        parameters, headers = query_of(agent=agent), if_match(version)
        call = Call("PATCH", memory_path(memory_id), body, parameters=parameters, headers=headers)
        return await self._connection.ask(call, WriteOutcome)

    async def delete(
        self, memory_id: UUID | str, *, version: int | None = None, tombstone: bool | None = None,
        dry_run: bool | None = None, agent: str | None = None,
    ) -> WriteOutcome:  # fmt: skip
        """Take a memory out of every read, if it still is at ``version``; at any, without one.

        With ``tombstone`` its value is refused from then on, until it is restored.
        """
        call = Call(
            "DELETE",
            memory_path(memory_id),
            parameters=query_of(tombstone=tombstone, dry_run=dry_run, agent=agent),
            headers=if_match(version),
        )
        return await self._connection.ask(call, WriteOutcome)

    async def history(
        self, memory_id: UUID | str, *, cursor: str | None = None, limit: int | None = None, agent: str | None = None
    ) -> HistoryList:
        """A page of what was done to a memory, newest first; ``cursor`` is the ``next`` of the page before."""
        call = read_call(f"{memory_path(memory_id)}/history", cursor=cursor, limit=limit, agent=agent)
        return await self._connection.ask(call, HistoryList)

    async def all_history(
        self, memory_id: UUID | str, *, page_size: int = PAGE_SIZE, agent: str | None = None
    ) -> AsyncGenerator[HistoryRecord, None]:
        """All that was done to a memory, newest first, fetched page by page as it is taken."""
        async for entry in each_of(lambda cursor: self.history(memory_id, cursor=cursor, limit=page_size, agent=agent)):
            yield entry

    async def say(
        self, memory_id: UUID | str, verb: Verb, *, version: int | None = None, **fields: Unpack[VerbFields]
    ) -> WriteOutcome:
        """Give feedback on a memory: `reinforce`, `demote`, `pin`, `confirm`, `retract`, `reject` or `restore`."""
        kind = _BODIES.get(verb, VerbRequest)
        call = write(f"{memory_path(memory_id)}/{verb}", body_of(kind, fields), if_match(version))
        return await self._connection.ask(call, WriteOutcome)

    async def correct(
        self, memory_id: UUID | str, content: str, *, version: int | None = None, **fields: Unpack[CorrectionFields]
    ) -> WriteOutcome:
        """Replace a memory that is wrong; the old one stays in the history as superseded."""
        body = body_of(CorrectionRequest, {"content": content, **fields})
        call = write(f"{memory_path(memory_id)}/correct", body, if_match(version))
        return await self._connection.ask(call, WriteOutcome)

    async def why(
        self, memory_id: UUID | str, *, query: str | None = None, ranking: str | None = None, agent: str | None = None
    ) -> WhyRecord:
        """A memory in whatever state, its sources, what was decided, and its score for a question, if given."""
        call = read_call(f"{memory_path(memory_id)}/why", query=query, ranking=ranking, agent=agent)
        return await self._connection.ask(call, WhyRecord)

    async def timeline(
        self, memory_id: UUID | str, *, before: int | None = None, after: int | None = None, agent: str | None = None
    ) -> Timeline:
        """What was recorded of the same user before and after a memory or turn, oldest first."""
        call = read_call(f"{memory_path(memory_id)}/timeline", before=before, after=after, agent=agent)
        return await self._connection.ask(call, Timeline)

    async def related(
        self, memory_id: UUID | str, *, limit: int | None = None, agent: str | None = None
    ) -> RelatedList:
        """Memories that relations link to one, strongest first."""
        return await self._connection.ask(
            read_call(f"{memory_path(memory_id)}/related", limit=limit, agent=agent), RelatedList
        )

    async def entities(
        self,
        user_id: str | None,
        *,
        kind: str | None = None,
        name: str | None = None,
        limit: int | None = None,
        agent: str | None = None,
    ) -> EntityList:
        """Whom and what a user's memories mention, those that most mention first; of a kind or name alone if given.

        Without a user it is what shared knowledge mentions.
        """
        whose = {"shared": True} if user_id is None else {"user_id": user_id}
        call = read_call("/v1/entities", **whose, kind=kind, name=name, limit=limit, agent=agent)
        return await self._connection.ask(call, EntityList)

    async def entity(
        self, entity_id: UUID | str, *, cursor: str | None = None, limit: int | None = None, agent: str | None = None
    ) -> EntityProfileRecord:
        """One entity, with a page of what memories say of it; ``cursor`` is the ``next`` of the page before."""
        call = read_call(entity_path(entity_id), cursor=cursor, limit=limit, agent=agent)
        return await self._connection.ask(call, EntityProfileRecord)

    async def alias(self, entity_id: UUID | str, alias: str, *, agent: str | None = None) -> EntityRecord:
        """Give an entity another name, by which memories are linked to it and found from now on."""
        call = write(f"{entity_path(entity_id)}/aliases", body_of(AliasRequest, {"alias": alias, "agent": agent}))
        return await self._connection.ask(call, EntityRecord)

    async def merge(self, entity_id: UUID | str, into: UUID | str, *, agent: str | None = None) -> EntityRecord:
        """Put an entity into another: its memories and names become the other's, and it is gone."""
        call = write(f"{entity_path(entity_id)}/merge", body_of(MergeRequest, {"into": into, "agent": agent}))
        return await self._connection.ask(call, EntityRecord)

    async def delta(
        self, thread_id: str, *, since: int | None = None, user_id: str | None = None, agent: str | None = None
    ) -> ThreadDelta:
        """A thread's revision, and what changed since another."""
        call = read_call(f"/v1/threads/{segment(thread_id)}/delta", since=since, user_id=user_id, agent=agent)
        return await self._connection.ask(call, ThreadDelta)

    async def thread_turns(
        self, thread_id: str, *, user_id: str | None = None, before_seq: int | str | None = None,
        after_seq: int | str | None = None, limit: int | None = None, agent: str | None = None,
    ) -> TurnList:  # fmt: skip
        """What was said in a thread, newest first, before a turn's number; or oldest first, after one."""
        call = read_call(
            f"/v1/threads/{segment(thread_id)}/turns", user_id=user_id, before_seq=before_seq, after_seq=after_seq,
            limit=limit, agent=agent,
        )  # fmt: skip
        return await self._connection.ask(call, TurnList)

    async def close_session(
        self, thread_id: str, *, user_id: str | None = None, agent: str | None = None
    ) -> ClosedSession:
        """Close a conversation: what it was about is summed up and stored as a memory."""
        body = body_of(CloseRequest, given_fields(user_id=user_id, agent=agent))
        return await self._connection.ask(write(f"/v1/sessions/{segment(thread_id)}/close", body), ClosedSession)

    async def checkpoint(self, thread_id: str, *, user_id: str | None = None) -> CheckpointRecord:
        """The state of a supervisor in a thread."""
        return await self._connection.ask(read_call(checkpoint_path(thread_id), user_id=user_id), CheckpointRecord)

    async def save_checkpoint(
        self, thread_id: str, *, version: int | None = None, **sections: Unpack[CheckpointFields]
    ) -> CheckpointRecord:
        """Store sections of a supervisor's state, if it still is at ``version`` (0: not there yet); at any, without."""
        body = body_of(CheckpointRequest, sections)
        call = Call("PUT", checkpoint_path(thread_id), body, headers=if_match(version))
        return await self._connection.ask(call, CheckpointRecord)

    async def delete_checkpoints(
        self, thread_id: str, *, user_id: str | None = None, version: int | None = None
    ) -> DeletedThread:
        """Delete the state of a supervisor in a thread, and every checkpoint that a graph has stored there."""
        parameters = query_of(user_id=user_id)
        call = Call("DELETE", checkpoint_path(thread_id), parameters=parameters, headers=if_match(version))
        return await self._connection.ask(call, DeletedThread)

    async def health(self) -> Health:
        """Whether the process answers."""
        return await self._connection.ask(read_call("/healthz"), Health)

    async def ready(self) -> Health:
        """Whether its database answers too; ``unavailable`` is an answer here, and no error."""
        return await self._connection.ask(Call("GET", "/readyz", also=(503,)), Health)

    async def list_page(
        self, *, cursor: str | None = None, limit: int | None = None, **fields: Unpack[ListFields]
    ) -> MemoryList:
        """A page of memories, newest first; ``cursor`` is the ``next`` of the page before."""
        return await self._connection.ask(read_call("/v1/memories", cursor=cursor, limit=limit, **fields), MemoryList)

    async def list(
        self, *, page_size: int = PAGE_SIZE, **fields: Unpack[ListFields]
    ) -> AsyncGenerator[ListedMemory, None]:
        """Every memory that fits, newest first, fetched page by page as they are taken."""
        async for record in each_of(lambda cursor: self.list_page(cursor=cursor, limit=page_size, **fields)):
            yield record

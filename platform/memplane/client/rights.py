"""The calls by which people decide about their memories: consents, restoring, purging, export, import, erasure."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from datetime import datetime
from typing import Unpack
from uuid import UUID

from memplane.client.calls import body_of, given_fields, proposal_path, read_call, segment, write
from memplane.client.connection import Call, Connection
from memplane.client.fields import (
    ConflictFields,
    ConsentFields,
    ConsentNarrowing,
    DecisionEntry,
    TombstoneFields,
    TombstoneNarrowing,
)
from memplane.client.lines import whole_lines
from memplane.client.paging import PAGE_SIZE, each_of
from memplane.contracts.conflicts import ConflictList, ConflictOutcome, ConflictVerdictRequest
from memplane.contracts.consents import (
    AckRequest,
    ApproveRequest,
    BulkItem,
    BulkOutcome,
    BulkRequest,
    ConsentList,
    ConsentOutcome,
    ConsentRecord,
    RefuseRequest,
    UserContext,
    UserContextChange,
    UserContextOutcome,
)
from memplane.contracts.erasure import EraseRequest, ErasureReceipt
from memplane.contracts.jobs import CollectionRecord, CollectionRequest
from memplane.contracts.quotas import Quotas
from memplane.contracts.recovery import Purged, PurgeRequest, Recovered, RestoreRequest
from memplane.contracts.reverting import RevertReceipt, RevertRequest
from memplane.contracts.tombstones import LiftOutcome, LiftRequest, TombstoneList, TombstoneRecord
from memplane.contracts.transfer import ImportOutcome, ImportRequest
from memplane.contracts.user_merges import (
    UserMergeList,
    UserMergeReceipt,
    UserMergeRecord,
    UserMergeRequest,
    UserUnmergeReceipt,
    UserUnmergeRequest,
)
from memplane.domain.memory.conflict_verdicts import ConflictVerdict


class RightsCalls:
    """Part of `Memplane`, which says how calls are made and what they raise."""

    _connection: Connection

    async def consents(self, **fields: Unpack[ConsentFields]) -> ConsentList:
        """A page of proposals for sensitive fields, newest first; ``cursor`` is the ``next`` of the page before."""
        return await self._connection.ask(read_call("/v1/consents", **fields), ConsentList)

    async def all_consents(
        self, *, page_size: int = PAGE_SIZE, **fields: Unpack[ConsentNarrowing]
    ) -> AsyncGenerator[ConsentRecord, None]:
        """Every proposal that fits, newest first, fetched page by page as they are taken."""
        async for proposal in each_of(lambda cursor: self.consents(cursor=cursor, limit=page_size, **fields)):
            yield proposal

    async def tombstones(self, **fields: Unpack[TombstoneFields]) -> TombstoneList:
        """A page of verdicts by which values are refused, newest first."""
        return await self._connection.ask(read_call("/v1/tombstones", **fields), TombstoneList)

    async def all_tombstones(
        self, *, page_size: int = PAGE_SIZE, **fields: Unpack[TombstoneNarrowing]
    ) -> AsyncGenerator[TombstoneRecord, None]:
        """Every verdict that fits, newest first, fetched page by page as they are taken."""
        async for verdict in each_of(lambda cursor: self.tombstones(cursor=cursor, limit=page_size, **fields)):
            yield verdict

    async def lift_tombstone(
        self, tombstone_id: UUID | str, *, reason: str | None = None, agent: str | None = None
    ) -> LiftOutcome:
        """Take a verdict back: its values can be stored again."""
        body = body_of(LiftRequest, given_fields(reason=reason, agent=agent))
        return await self._connection.ask(write(f"/v1/tombstones/{segment(str(tombstone_id))}/lift", body), LiftOutcome)

    async def conflicts(self, **fields: Unpack[ConflictFields]) -> ConflictList:
        """A page of pairs that may contradict each other, newest first; ``cursor`` is ``next`` of the page before."""
        return await self._connection.ask(read_call("/v1/conflicts", **fields), ConflictList)

    async def decide_conflict(
        self, conflict_id: UUID | str, verdict: ConflictVerdict | str, *, dry_run: bool | None = None,
        agent: str | None = None,
    ) -> ConflictOutcome:  # fmt: skip
        """Keep both memories (``keep_both``), or only the ``newer`` or the ``older`` one."""
        body = body_of(ConflictVerdictRequest, given_fields(verdict=verdict, dry_run=dry_run, agent=agent))
        return await self._connection.ask(
            write(f"/v1/conflicts/{segment(str(conflict_id))}/decide", body), ConflictOutcome
        )

    async def approve(
        self, proposal_id: UUID | str, *, dry_run: bool | None = None, agent: str | None = None
    ) -> ConsentOutcome:
        """The person agrees to a proposal: the value holds from now on."""
        body = body_of(ApproveRequest, given_fields(dry_run=dry_run, agent=agent))
        call = write(f"{proposal_path(proposal_id)}/approve", body)
        return await self._connection.ask(call, ConsentOutcome)

    async def refuse(
        self, proposal_id: UUID | str, *, reason: str | None = None, dry_run: bool | None = None,
        agent: str | None = None,
    ) -> ConsentOutcome:  # fmt: skip
        """The person refuses a proposal: the value does not come back for this field."""
        body = body_of(RefuseRequest, given_fields(reason=reason, dry_run=dry_run, agent=agent))
        call = write(f"{proposal_path(proposal_id)}/reject", body)
        return await self._connection.ask(call, ConsentOutcome)

    async def acknowledge(
        self, proposal_id: UUID | str, turn_id: UUID | str, *, dry_run: bool | None = None, agent: str | None = None
    ) -> ConsentOutcome:
        """The user agreed in the chat, in a turn that is later than the proposal."""
        body = body_of(AckRequest, given_fields(turn_id=turn_id, dry_run=dry_run, agent=agent))
        call = write(f"{proposal_path(proposal_id)}/ack", body)
        return await self._connection.ask(call, ConsentOutcome)

    async def decide(
        self, items: Iterable[BulkItem | DecisionEntry], *, dry_run: bool | None = None, agent: str | None = None
    ) -> BulkOutcome:
        """Decide on up to 100 proposals, each for itself."""
        body = body_of(BulkRequest, {"items": [*items]} | given_fields(dry_run=dry_run, agent=agent))
        return await self._connection.ask(write("/v1/consents/bulk", body), BulkOutcome)

    async def user_context(self, user_id: str, *, agent: str | None = None) -> UserContext:
        """The decided fields of a user's profile."""
        return await self._connection.ask(read_call(f"/v1/users/{segment(user_id)}/context", agent=agent), UserContext)

    async def set_time_zone(
        self, user_id: str, time_zone: str | None, *, dry_run: bool | None = None, agent: str | None = None
    ) -> UserContextOutcome:
        """Set what relative dates mean in what a user says, by an IANA name; ``None`` removes it."""
        body = body_of(UserContextChange, {"time_zone": time_zone} | given_fields(dry_run=dry_run, agent=agent))
        call = Call("PATCH", f"/v1/users/{segment(user_id)}/context", body)
        return await self._connection.ask(call, UserContextOutcome)

    async def recover(
        self, user_id: str, since: datetime, *, cursor: UUID | str | None = None, limit: int | None = None,
        dry_run: bool | None = None, agent: str | None = None,
    ) -> Recovered:  # fmt: skip
        """Bring a page of what was deleted or archived of a user since a moment back; ``cursor`` is ``next`` of it."""
        asked = given_fields(user_id=user_id, since=since, cursor=cursor, limit=limit, dry_run=dry_run, agent=agent)
        return await self._connection.ask(write("/v1/admin/restore", body_of(RestoreRequest, asked)), Recovered)

    async def purge(
        self, *, memory_id: UUID | str | None = None, user_id: str | None = None, early: bool = False,
        limit: int | None = None, dry_run: bool | None = None, agent: str | None = None,
    ) -> Purged:  # fmt: skip
        """Remove a deleted memory for good, or those of a user: what is due, or all that is deleted (``early``)."""
        asked = given_fields(
            memory_id=memory_id, user_id=user_id, early=early, limit=limit, dry_run=dry_run, agent=agent
        )  # fmt: skip
        return await self._connection.ask(write("/v1/admin/purge", body_of(PurgeRequest, asked)), Purged)

    async def revert(
        self, since: datetime, *, key_id: str | None = None, of_agent: str | None = None, dry_run: bool = False,
        agent: str | None = None,
    ) -> RevertReceipt:  # fmt: skip
        """Take back what one key or agent wrote, changed and decided since a moment; ask until it is ``finished``."""
        asked = given_fields(key_id=key_id, of_agent=of_agent, since=since, dry_run=dry_run or None, agent=agent)
        return await self._connection.ask(write("/v1/admin/revert", body_of(RevertRequest, asked)), RevertReceipt)

    async def collect(self, user_id: str, *, dry_run: bool = False) -> CollectionRecord:
        """Collect what a user keeps no longer: expiry, TTL, layers, size and purge; in a dry run, only count it."""
        body = body_of(CollectionRequest, given_fields(user_id=user_id, dry_run=dry_run or None))
        return await self._connection.ask(write("/v1/admin/gc", body), CollectionRecord)

    async def quotas(self, user_id: str | None = None) -> Quotas:
        """How much is stored in the tenant, and of a user, and how much may be."""
        return await self._connection.ask(read_call("/v1/quotas", user_id=user_id), Quotas)

    async def export(self, user_id: str | None, *, agent: str | None = None) -> AsyncGenerator[bytes, None]:
        """All that is known of a user, as lines of JSON; each piece is some whole lines. It is not tried again.

        Without a user it is what is known about none: shared knowledge.

        Raises:
            UnexpectedAnswer: it ended before its end, or lines are missing; what came before is not all.
        """
        pieces = self._connection.pieces(read_call(f"{_whole(user_id)}/export", agent=agent))
        async with aclosing(pieces), aclosing(whole_lines(pieces)) as lines:
            async for some in lines:
                yield some

    async def import_lines(
        self, user_id: str | None, lines: Iterable[str], *, restore: bool = False, agent: str | None = None,
        once: str | None = None, after: str | None = None,
    ) -> ImportOutcome:  # fmt: skip
        """Take up to 500 lines of an export in, each for itself; ``once`` names the batch, so that it counts once.

        A batch that names another one (``after``) may be sent while that one is at work: it is stored after it, or not
        at all (`out_of_order`), and then to be sent again under its name.
        """
        asked = given_fields(lines=[*lines], mode="restore" if restore else "add", agent=agent)
        headers = {"Idempotency-Key": once} if once else {}
        headers |= {"Idempotency-After": after} if after else {}
        call = write(f"{_whole(user_id)}/import", body_of(ImportRequest, asked), headers)
        return await self._connection.ask(call, ImportOutcome)

    async def merge_user(self, user_id: str, into: str, *, dry_run: bool = False) -> UserMergeReceipt:
        """Make everything of a user, such as an anonymous one, another user's; it can be undone for some time."""
        body = body_of(UserMergeRequest, {"into": into} | given_fields(dry_run=dry_run or None))
        return await self._connection.ask(write(f"/v1/users/{segment(user_id)}/merge", body), UserMergeReceipt)

    async def user_merges(
        self, *, user_id: str | None = None, cursor: UUID | str | None = None, limit: int | None = None
    ) -> UserMergeList:
        """A page of merges of users, newest first, standing and undone ones; of a user, or of all."""
        call = read_call("/v1/admin/user-merges", user_id=user_id, cursor=cursor, limit=limit)
        return await self._connection.ask(call, UserMergeList)

    async def all_user_merges(
        self, *, user_id: str | None = None, page_size: int = PAGE_SIZE
    ) -> AsyncGenerator[UserMergeRecord, None]:
        """Every merge that fits, newest first, fetched page by page as they are taken."""
        async for merge in each_of(lambda cursor: self.user_merges(user_id=user_id, cursor=cursor, limit=page_size)):
            yield merge

    async def unmerge_user(self, user_id: str, *, dry_run: bool = False) -> UserUnmergeReceipt:
        """Give a merged user back what was not changed since."""
        body = body_of(UserUnmergeRequest, given_fields(dry_run=dry_run or None))
        return await self._connection.ask(write(f"/v1/users/{segment(user_id)}/unmerge", body), UserUnmergeReceipt)

    async def erase(self, user_id: str, *, confirm: str | None = None, dry_run: bool = False) -> ErasureReceipt:
        """Erase a user, whose name is to be said again (``confirm``); ask again until it is ``finished``."""
        asked = given_fields(confirm=confirm, dry_run=dry_run or None)
        call = write(f"/v1/users/{segment(user_id)}/erase", body_of(EraseRequest, asked))
        return await self._connection.ask(call, ErasureReceipt)


def _whole(user_id: str | None) -> str:
    return "/v1/shared" if user_id is None else f"/v1/users/{segment(user_id)}"

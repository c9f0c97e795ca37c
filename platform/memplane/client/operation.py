"""The calls by which operators look at what the server holds and does: statistics, events, the policy."""

from collections.abc import AsyncGenerator, Mapping
from typing import Unpack

from memplane.client.calls import body_of, read_call
from memplane.client.connection import Call, Connection
from memplane.client.fields import EventFields
from memplane.client.paging import PAGE_SIZE, each_of
from memplane.contracts.policy import PolicyCheck, PolicyCheckRequest, PolicyRecord, ReloadedPolicy
from memplane.contracts.tracking import EventList, EventRecord, StatisticsRecord

_POLICY = "/v1/admin/policy"


class OperationCalls:
    """Part of `Memplane`, which says how calls are made and what they raise."""

    _connection: Connection

    async def stats(
        self, *, user_id: str | None = None, days: int | None = None, agent: str | None = None
    ) -> StatisticsRecord:
        """What there is, of what the key may see, and the share of turns that needed recall on demand."""
        return await self._connection.ask(
            read_call("/v1/stats", user_id=user_id, days=days, agent=agent), StatisticsRecord
        )

    async def events(
        self, *, cursor: str | None = None, limit: int | None = None, **fields: Unpack[EventFields]
    ) -> EventList:
        """A page of what was done, newest first; ``cursor`` is the ``next`` of the page before."""
        return await self._connection.ask(read_call("/v1/events", cursor=cursor, limit=limit, **fields), EventList)

    async def all_events(
        self, *, page_size: int = PAGE_SIZE, **fields: Unpack[EventFields]
    ) -> AsyncGenerator[EventRecord, None]:
        """Every event that fits, newest first, fetched page by page as they are taken."""
        async for event in each_of(lambda cursor: self.events(cursor=cursor, limit=page_size, **fields)):
            yield event

    async def policy(self, *, of_agent: str | None = None) -> PolicyRecord:
        """The policy in force, and what each agent, or one, may do. For keys with `admin`."""
        return await self._connection.ask(read_call(_POLICY, agent=of_agent), PolicyRecord)

    async def check_policy(self, files: Mapping[str, str]) -> PolicyCheck:
        """Whether the policy in force, with these files in the place of its own, would be right. For `admin`."""
        body = body_of(PolicyCheckRequest, {"files": dict(files)})
        return await self._connection.ask(Call("POST", f"{_POLICY}/check", body, repeatable=True), PolicyCheck)

    async def reload_policy(self) -> ReloadedPolicy:
        """Let the server read its policy files again; wrong ones leave the policy as it is. For `admin`."""
        return await self._connection.ask(Call("POST", f"{_POLICY}/reload", repeatable=True), ReloadedPolicy)

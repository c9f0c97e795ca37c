"""Transactions of the gateway: begun anew, come second, and taken back in part."""

from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest
import sqlalchemy as sa

from memplane.application.keys.api_keys import NewKey
from memplane.application.memories.service import NewMemory
from memplane.application.recall.search_material import SearchMaterial
from memplane.application.transaction import TransactionInterrupted, UnitOfWork
from memplane.domain.errors import (
    RecordNotFound,
)
from memplane.domain.identity.principal import KeyScope, Principal, Reach
from memplane.domain.language.terms import terms
from memplane.domain.memory.memory import (
    Memory,
    MemoryText,
    MemoryType,
    Source,
    State,
    TrustState,
    Visibility,
    new_id,
)
from memplane.domain.policy.policy import Trust
from support.serving import RunningApplication

TENANT = "t1"
SUPERVISOR = Principal(TENANT, "supervisor", Trust.FULL, frozenset(KeyScope), "k1")
NEW = NewMemory("ana", "goals", MemoryText("Ana wants to ship by May."))
MATERIAL = SearchMaterial(terms("Ana wants to ship by May."), None)
FIRST = Memory(
    id=new_id(),
    user_id="ana",
    category="goals",
    type=MemoryType.SEMANTIC,
    visibility=Visibility.PRIVATE,
    text=NEW.text,
    trust_state=TrustState.CONFIRMED,
    source=Source.USER,
    state=State.ACTIVE,
    value_hash="first",
    recorded_at=datetime(2026, 1, 1, tzinfo=UTC),
    updated_at=datetime(2026, 1, 1, tzinfo=UTC),
)


@pytest.fixture
def app(application: RunningApplication) -> RunningApplication:
    application.run(application.wired.keys.create(TENANT, NewKey("supervisor", Trust.FULL)))
    return application


Work = Callable[[UnitOfWork], Awaitable[object]]


class TakenBack(Exception):
    """A transaction that the database did not want."""


class TestTransactions:
    def test_a_transaction_that_begins_anew_has_placed_nothing(
        self, app: RunningApplication, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write = app.wired.storage.write

        async def in_vain_first(reach: Reach, work: Work, users: Collection[str] = ()) -> object:
            async def in_vain(uow: UnitOfWork) -> None:
                await work(uow)
                raise TakenBack

            with pytest.raises(TakenBack):
                await write(reach, in_vain, users)
            return await write(reach, work, users)

        monkeypatch.setattr(app.wired.storage, "write", in_vain_first)
        done = app.run(app.wired.remember.create(SUPERVISOR, NEW))
        assert done.outcome == "created"
        assert app.run(app.wired.browse.get(SUPERVISOR, done.memory.id)).mention_count == 1

    def test_who_comes_second_with_a_memory_looks_again(self, app: RunningApplication) -> None:
        memory = app.run(app.wired.remember.create(SUPERVISOR, NEW)).memory
        mine = replace(memory, id=new_id(), value_hash="other")
        attempts: list[UUID] = []

        async def second(uow: UnitOfWork) -> Memory | None:
            there = await uow.memories.find_duplicate(mine)
            attempts.append(mine.id)
            if there is None:
                if len(attempts) == 1:  # another process, without the user's lock
                    first = replace(mine, id=new_id())
                    await app.wired.storage.write(Reach(TENANT), lambda uow: uow.memories.add(first, MATERIAL))
                await uow.memories.add(mine, MATERIAL)
            return there

        there = app.run(app.wired.storage.write(Reach(TENANT), second))
        assert len(attempts) == 2
        assert there is not None
        assert there.id != mine.id

    def test_only_what_failed_is_taken_back(self, application: RunningApplication) -> None:
        kept, gone, later = (replace(FIRST, id=new_id(), value_hash=name) for name in ("kept", "gone", "later"))

        async def work(uow: UnitOfWork) -> None:
            await uow.memories.add(kept, MATERIAL)
            with suppress(TakenBack):
                async with uow.attempt():
                    await uow.memories.add(gone, MATERIAL)
                    raise TakenBack
            async with uow.attempt():
                await uow.memories.add(later, MATERIAL)

        application.run(application.wired.keys.create(TENANT, NewKey("supervisor", Trust.FULL)))
        application.run(application.wired.storage.write(Reach(TENANT), work))
        for memory in (kept, later):
            assert application.run(application.wired.browse.get(SUPERVISOR, memory.id)).value_hash == memory.value_hash
        with pytest.raises(RecordNotFound):
            application.run(application.wired.browse.get(SUPERVISOR, gone.id))

    @pytest.mark.parametrize(("code", "begun"), [("40001", 2), ("40P01", 2), ("23514", 1), ("22012", 1)])
    def test_work_that_forgives_its_failures_does_not_forgive_the_transaction_s(
        self, app: RunningApplication, code: str, begun: int
    ) -> None:
        kept, gone = (replace(FIRST, id=new_id(), value_hash=name) for name in ("kept", "gone"))
        attempts: list[str] = []
        forgiven: list[str] = []

        async def work(uow: UnitOfWork) -> None:
            attempts.append(code)
            await uow.memories.add(kept, MATERIAL)
            try:
                async with uow.attempt():
                    await uow.memories.add(gone, MATERIAL)
                    if len(attempts) == 1:
                        raised = f"DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '{code}'; END $$"
                        await uow._session.execute(sa.text(raised))  # type: ignore[attr-defined]  # PostgreSQL's
            except TransactionInterrupted:
                raise
            except Exception:  # noqa: BLE001 - as work does that forgives whatever fails
                forgiven.append(code)

        app.run(app.wired.storage.write(Reach(TENANT), work))
        assert (len(attempts), len(forgiven)) == (begun, 2 - begun)
        assert app.run(app.wired.browse.get(SUPERVISOR, kept.id)).value_hash == "kept"
        if begun == 2:  # the second time nothing failed
            assert app.run(app.wired.browse.get(SUPERVISOR, gone.id)).value_hash == "gone"
        else:
            with pytest.raises(RecordNotFound):
                app.run(app.wired.browse.get(SUPERVISOR, gone.id))

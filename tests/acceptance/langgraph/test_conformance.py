"""LangGraph's own suite for checkpointers, on both databases."""

import asyncio
from collections.abc import AsyncGenerator

import pytest
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.report import CapabilityReport

from memplane.entrypoints.langgraph import MemplaneSaver
from support.cluster import Database
from support.files import File
from support.graphs import principal, savers

CAPABILITIES = {
    "put", "put_writes", "get_tuple", "list", "delete_thread", "delete_for_runs", "copy_thread", "prune",
}  # fmt: skip


def conformance(database: Database | File, **given: str) -> CapabilityReport:
    async def run() -> CapabilityReport:
        async with savers(database, principal(database.new_tenant()), **given) as (saver,):

            @checkpointer_test(name=MemplaneSaver.__name__)
            async def factory() -> AsyncGenerator[MemplaneSaver, None]:
                yield saver

            return await validate(factory)

    return asyncio.run(run())


def test_the_saver_passes_whole(place: Database | File) -> None:
    report = conformance(place, user_id="ana")
    assert {name: result.failures for name, result in report.results.items() if result.failures} == {}
    assert report.passed_all_base()
    assert {name for name, result in report.results.items() if result.passed} == CAPABILITIES
    assert report.passed_all()


def test_the_suite_notices_a_saver_that_loses_writes(place: Database | File, monkeypatch: pytest.MonkeyPatch) -> None:
    async def forgotten(*_: object) -> None:
        """Stores nothing."""

    monkeypatch.setattr(MemplaneSaver, "aput_writes", forgotten)
    report = conformance(place, user_id="ana")
    assert not report.passed_all_base()
    assert report.results["put_writes"].passed is False

"""One deliberate break for each way in which a promise of the contract could be lost, and the check that notices it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from memplane.adapters.sql.stores.gateway_stores import SqlAnswers
from memplane.application.jobs import job_runner
from memplane.application.keys.api_keys import AGENT_SCOPES
from memplane.application.memories import cascade_delete, placement, service
from memplane.application.memories.gateway import Write
from memplane.application.ports import TenantReader
from memplane.application.recall import recall
from memplane.application.recall.ranking import By, Ranking
from memplane.application.recall.search_material import Query
from memplane.application.transfer import restored_memories
from memplane.application.turns import extraction, ingestion
from memplane.domain.language.comparison.comparison import ComparisonVerdict, Judgement
from memplane.domain.memory import tombstones, write_decisions
from memplane.domain.memory.memory import Memory, TrustState
from memplane.domain.memory.scope import Scope
from memplane.domain.memory.write_decisions import Action, WriteDecision
from memplane.domain.policy.policy import Policy
from memplane.domain.ranking import rendering
from support.access_matrix import Categories, routes
from support.callers import SUPERVISING, THREAD, USER, Tenant
from support.promises.checks import (
    CLAIMS,
    FORGED_ITEM,
    HALLS,
    JAZZ,
    authority_claimed,
    beyond_bounds,
    compatible_ended,
    copies_left,
    done_twice,
    drawn_unvouched,
    ended_by_the_past,
    faded_twice,
    restored_rejected,
    said_again,
    starved,
    uncorrected,
    uncounted,
    uncounted_beyond,
    unfenced,
    written_beyond,
)
from support.proof_cases import BESIDE

Patch = tuple[object, str, Any]
"""Whose attribute, which, and what instead."""
Function = Callable[..., Any]
SAID_AT_ONCE = ("I love jazz.", "My sister is called Ingrid.", "I collect stamps.", "I play the cello.")
NEAREST = 20
"""As many candidates as an index of nearest neighbours gives before somebody filters them."""


@dataclass(frozen=True)
class Broken:
    """A protection that is taken away at one place.

    Attributes:
        promise: the number of the promise in section 16 of the contract.
        name: what is out of order.
        patch: the place, and what stands there instead.
        check: what notices it.
        given: faults that the check needs besides, whether or not the protection is there.
    """

    promise: int
    name: str
    patch: Patch
    check: Callable[[Tenant], list[str]]
    given: Sequence[Patch] = ()

    def __str__(self) -> str:
        return f"{self.promise}: {self.name}"


def always(value: object) -> Function:
    """A function that has one answer."""
    return lambda *_, **__: value


def soon(value: object) -> Function:
    """A coroutine that has one answer."""

    async def answered(*_: object, **__: object) -> object:
        return value

    return answered


def _confirmed_by_its_words(original: Function) -> Function:
    def prepared(*given: Any, **more: Any) -> Memory:  # noqa: ANN401 - of the function
        memory: Memory = original(*given, **more)
        claims = any(word in memory.text.content for word in ("verified", "confirmed"))
        return replace(memory, trust_state=TrustState.CONFIRMED) if claims else memory

    return prepared


def _without_proof(original: Function) -> Function:
    """A comparison that takes whatever is alike for a contradiction."""

    def judged(*given: Any, **more: Any) -> Judgement:  # noqa: ANN401 - of the function
        found: Judgement = original(*given, **more)
        alike = found.verdict in {ComparisonVerdict.RELATED, ComparisonVerdict.SUSPECTED}
        return replace(found, verdict=ComparisonVerdict.CONTRADICTED) if alike else found

    return judged


def _filtered_afterwards(original: Function) -> Function:
    """A ranking of the nearest of all categories, of which those in scope are kept."""

    async def ranked(reader: TenantReader, scope: Scope, query: Query, by: By, _limit: int, **more: object) -> Ranking:
        whole = replace(scope, categories=(*scope.categories, "event"))
        found = await original(reader, whole, query, by, NEAREST, **more)
        inside = await reader.units(scope, [each.id for each in found.standings])
        return replace(found, standings=[each for each in found.standings if each.id in inside])

    return ranked


def _unbounded(original: Function, place: int) -> Function:
    """A fit of items within bounds of which one is forgotten."""

    def fitted(*given: Any) -> Any:  # noqa: ANN401 - of the function
        return original(*given[:place], 10**9, *given[place + 1 :])

    return fitted


def _of_one_user(original: Function) -> Function:
    """Following that ends at the first user."""

    async def followed(write: Any, memory: Memory, *given: Any) -> bool:  # noqa: ANN401 - of the function
        return memory.user_id == USER and await original(write, memory, *given)

    return followed


def _cut(original: Function) -> Function:
    """Extraction that forgets what it finds beyond the most that is stored."""

    def extracted(*given: Any, **named: Any) -> Any:  # noqa: ANN401 - of the function
        return original(*given, **named)[: extraction.MAX_DRAWN]

    return extracted


def _raising(*_: object, **__: object) -> None:
    raise RuntimeError("a rule breaks")


_MEMORY = {"user_id": USER, "category": "tasks", "content": "The hall is booked."}
_TURN = {"user_id": USER, "thread_id": THREAD, "role": "user", "text": "The hall is booked."}
_WRITES = {str(access): access for access in routes(categories=Categories.NOT_WRITTEN)}
THINGS = ("piano", "boat", "horse", "garden", "canoe")

BREAKS: tuple[Broken, ...] = (
    Broken(2, "what was derived does not follow its source", (cascade_delete, "_followed", soon(value=False)),
           lambda tenant: copies_left(tenant, "of the same user")),
    Broken(3, "nobody looks at the write allowlist (memories)", (Policy, "check_write", always(None)),
           lambda tenant: written_beyond(tenant, _WRITES["POST /v1/memories"])),
    Broken(3, "nobody looks at the write allowlist (turns)", (Policy, "check_write", always(None)),
           lambda tenant: written_beyond(tenant, _WRITES["POST /v1/turns"])),
    Broken(4, "a memory's words decide how far it is believed",
           (service, "prepare", _confirmed_by_its_words(service.prepare)),
           lambda tenant: authority_claimed(tenant, CLAIMS[0])),
    Broken(4, "every key speaks for the person", (ingestion, "is_vouched", always(value=True)),
           lambda tenant: drawn_unvouched(tenant, "My sister is called Ingrid.", AGENT_SCOPES, SUPERVISING)),
    Broken(5, "nobody looks at tombstones", (placement, "is_rejected", soon(value=False)),
           lambda tenant: said_again(tenant, JAZZ)),
    Broken(5, "keys of values keep case and signs", (tombstones, "skeleton", str),
           lambda tenant: said_again(tenant, "the user LIKES j\u200bazz!", purged=True)),
    Broken(6, "what is new overrules nothing", (placement, "decide", always(WriteDecision(Action.CREATE))),
           lambda tenant: uncorrected(tenant, "a replacement")),
    Broken(6, "what is over counts like what is so", (write_decisions, "is_ended", always(value=False)),
           ended_by_the_past),
    Broken(7, "copies of other users do not follow", (cascade_delete, "_followed",
        _of_one_user(cascade_delete._followed)),
           lambda tenant: copies_left(tenant, "of another user")),
    Broken(7, "a file is not compared with tombstones", (restored_memories, "is_rejected", soon(value=False)),
           lambda tenant: restored_rejected(tenant, "restore")),
    Broken(8, "top_k is forgotten", (recall, "fit_items", _unbounded(recall.fit_items, 1)),
           lambda tenant: beyond_bounds(tenant, 3, 4096)),
    Broken(8, "the budget is forgotten", (recall, "fit_items", _unbounded(recall.fit_items, 2)),
           lambda tenant: beyond_bounds(tenant, HALLS, 25)),
    Broken(9, "texts stand in a prompt as they are", (rendering, "quote_text", lambda text: f'"{text}"'),
           lambda tenant: unfenced(tenant, FORGED_ITEM)),
    Broken(11, "answers are not remembered", (SqlAnswers, "keep", soon(value=True)),
           lambda tenant: done_twice(tenant, "/v1/turns", _TURN, "turns")),
    Broken(11, "a night's work is done whenever it is asked for", (job_runner, "ONCE_A_DAY", frozenset()),
           lambda tenant: faded_twice(tenant, THINGS)),
    Broken(12, "the nearest are filtered afterwards", (recall, "rank", _filtered_afterwards(recall.rank)), starved),
    Broken(13, "what is alike is overruled without proof",
           (write_decisions, "judge", _without_proof(write_decisions.judge)),
           lambda tenant: compatible_ended(tenant, BESIDE["what happens more than once"][0])),
    Broken(14, "what is lost is not counted", (Write, "record_lost_fact", always(None)),
           lambda tenant: uncounted(tenant, ("I love jazz.", "My sister is called Ingrid.")),
           given=((extraction, "extract", _raising),)),
    Broken(14, "what is beyond a limit is not counted", (extraction, "extract", _cut(extraction.extract)),
           lambda tenant: uncounted_beyond(tenant, SAID_AT_ONCE)),
)  # fmt: skip
"""Breaks of every promise but the first and the tenth, whose own are in `acceptance/leaks` and `test_crash.py`."""

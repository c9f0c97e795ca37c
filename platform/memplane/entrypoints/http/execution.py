"""How a route carries out a write: for real, or as a dry run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar
from uuid import UUID

from fastapi import Response
from pydantic import BaseModel

from memplane.application.consent.proposals import draft_of
from memplane.application.limits.idempotency import Once
from memplane.application.memories.dry_run import DryRun, DryRunResult
from memplane.application.memories.writes import Writes
from memplane.bootstrap import Application
from memplane.contracts.dry_runs import (
    NOT_STORED,
    DryRunnable,
    DryRunPlan,
    PlannedChange,
    PlannedProposal,
)
from memplane.domain.identity.principal import Principal
from memplane.entrypoints.http.middleware.idempotency_header import Repeats

T = TypeVar("T")
A = TypeVar("A", bound=DryRunnable)
Status = Literal[200, 201, 202]


@dataclass(frozen=True, slots=True)
class Execution:
    """One write of a caller.

    Attributes:
        writes: the use cases to call.
    """

    writes: Writes
    _dry_run: DryRun | None
    _caller: Principal
    _agent: str | None

    @classmethod
    def of(cls, app: Application, caller: Principal, agent: str | None, *, dry_run: bool) -> "Execution":
        """Writes that commit, or those of a dry run."""
        if not dry_run:
            return cls(app.writes, None, caller, agent)
        gateway, writes = app.dry_run()
        return cls(writes, gateway, caller, agent)

    def once(
        self, again: Repeats, answer: Callable[[T], tuple[int, BaseModel | Mapping[str, object]]]
    ) -> Once[T] | None:
        """What to keep of the outcome; of a dry run nothing: the same key is still free for the write itself."""
        return again.once(answer) if self._dry_run is None else None

    async def answer(self, answer: A, response: Response | None = None, status: Status = 200) -> A:
        """The answer, with the plan when it is a dry run.

        Args:
            answer: to the write.
            response: gets the status, when the write is carried out.
            status: of the write.
        """
        if self._dry_run is None:
            if response is not None:
                response.status_code = status
            return answer
        if response is not None:
            response.status_code = 200
        plan = await self._dry_run.plan(self._caller, self._agent)
        whole = answer.model_copy(update={"dry_run": _plan(plan, status)})
        return type(answer).model_validate(_unstored(whole.model_dump(mode="json"), plan.new_ids))


def _plan(plan: DryRunResult, status: Status) -> DryRunPlan:
    changes = [
        PlannedChange(
            event=each.event,
            memory_id=each.memory_id,
            category=each.category,
            before=each.before,
            after=each.after,
            rule=each.rule,
            words={name: list(words) for name, words in each.words.items()},
            meta=dict(each.meta),  # type: ignore[arg-type]  # of the history, which is JSON
        )
        for each in plan.changes
    ]
    proposals = [
        PlannedProposal(
            slot=each.field,
            category=each.category,
            value=each.new_value,
            content=draft_of(each, each.created_at).text.content,
        )
        for each in plan.proposals
    ]
    return DryRunPlan(status=status, changes=changes, proposals=proposals)


def _unstored(value: Any, new_ids: frozenset[UUID]) -> Any:  # noqa: ANN401 - JSON
    """JSON in which ids that name nothing are the nil UUID."""
    named = {str(each) for each in new_ids}

    def replaced(part: Any) -> Any:  # noqa: ANN401 - JSON
        if isinstance(part, dict):
            return {name: replaced(each) for name, each in part.items()}
        if isinstance(part, list):
            return [replaced(each) for each in part]
        return str(NOT_STORED) if isinstance(part, str) and part in named else part

    return replaced(value)

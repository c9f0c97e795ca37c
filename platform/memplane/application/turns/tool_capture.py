"""Remember the runs of tools."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from memplane.application.limits.idempotency import Once
from memplane.application.limits.offload import in_thread
from memplane.application.memories.placement import Outcome
from memplane.application.memories.service import NewMemory, Remember
from memplane.application.ports import Policies
from memplane.domain.errors import InvalidRequest
from memplane.domain.identity.principal import Principal
from memplane.domain.memory.memory import MemoryText, MemoryType, Source
from memplane.domain.memory.tool_runs import is_own, line, without_secrets
from memplane.domain.policy.policy import Policy

RECENT = "recent_activity"
"""Where runs go unless said, if the agent may write there; else to where it writes turns."""
LEAST_IMPORTANT = 1


@dataclass(frozen=True, slots=True)
class ToolRun:
    """One run of a tool.

    Attributes:
        tool: its name.
        arguments: what it was called with.
        outcome: what came of it.
        files: that it read or wrote.
        category: where it is kept; ``None``: where the agent's runs go.
        external_id: the caller's own name for it: the same one again is the same run.
    """

    user_id: str
    tool: str
    outcome: str
    arguments: Mapping[str, object]
    files: tuple[str, ...] = ()
    category: str | None = None
    thread_id: str | None = None
    run_id: str | None = None
    event_time: datetime | None = None
    external_id: str | None = None


class Observe:
    """Stores runs as memories of type `observation`, which the gateway compares with nothing but their like."""

    def __init__(self, policies: Policies, remember: Remember) -> None:
        self._policies = policies
        self._remember = remember

    async def __call__(
        self, principal: Principal, run: ToolRun, agent: str | None = None, *, once: Once[Outcome] | None = None
    ) -> Outcome:
        """Store a run; secrets among its arguments, and in what came of it, are not.

        Raises:
            Invalid: the tool is one of the memory's own, or the agent has no category for it and none is named.
            CategoryForbidden, VisibilityForbidden, UserForbidden, AgentForbidden, ScopeForbidden: not allowed.
            InvalidText, LimitExceeded, PersonalDataRefused: it cannot be stored so.
            ValueRejected: a person rejected or erased this value.
        """
        if is_own(run.tool):
            raise InvalidRequest(
                f"tool: '{run.tool}' is one of the memory's own, whose runs are not remembered", field="tool"
            )
        category = run.category or _category(self._policies.current, principal.speak_as(agent))
        new = await in_thread(_memory, run, category)  # what came of it may be long
        return await self._remember.create(principal, new, agent, source=Source.TOOL, once=once)


def _memory(run: ToolRun, category: str) -> NewMemory:
    arguments = cast("dict[str, object]", without_secrets(run.arguments))
    outcome = str(without_secrets(run.outcome))
    told = line(run.tool, arguments, outcome)
    return NewMemory(
        run.user_id,
        category,
        MemoryText(told, narrative=outcome, related_files=run.files, tags=(run.tool,)),
        MemoryType.OBSERVATION,
        run_id=run.run_id,
        thread_id=run.thread_id,
        external_id=run.external_id,
        importance=LEAST_IMPORTANT,
        event_time=run.event_time,
        attributes={"tool": run.tool, "arguments": arguments},
    )


def _category(policy: Policy, agent: str) -> str:
    """Where an agent's runs go.

    Raises:
        Invalid: it may write to neither place.
    """
    writable = policy.allowlist(agent).write
    found = next((name for name in (RECENT, policy.turns_category) if name in writable), None)
    if found is None:
        raise InvalidRequest(
            f"category: agent '{agent}' writes neither '{RECENT}' nor '{policy.turns_category}'; name one of its own",
            field="category",
        )
    return found

"""Runs of tools."""

from typing import Annotated

from pydantic import Field

from memplane.contracts.base import Category, Name, Text, Time
from memplane.contracts.dry_runs import DryRunRequest
from memplane.contracts.memories import Attributes, Texts


class ObservationRequest(DryRunRequest):
    """One run of a tool, to be remembered. Secrets among the arguments, and in what came of it, are not stored."""

    user_id: Name
    """The person for whom it was run."""
    tool: Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[\w.:/ -]+$")]
    """Its name. A memory's own tools (`memory_…`) are refused."""
    outcome: Text
    """What came of it; its first sentence is told, the rest is kept beside."""
    arguments: Attributes = {}
    files: Texts = []
    """Files that it read or wrote."""
    category: Category | None = None
    """Where it is kept; without one, `recent_activity` if the agent may write there, else where it writes turns."""
    thread_id: Name | None = None
    run_id: Name | None = None
    event_time: Time | None = None
    external_id: Name | None = None
    """The caller's own name for it, unique per user: the same one again is the same run."""
    agent: Name | None = None
    """The agent to speak as; the key's own unless the key may act for others."""

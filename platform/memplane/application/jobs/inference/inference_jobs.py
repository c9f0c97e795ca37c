"""The jobs that conclude something of users, by name."""

from collections.abc import Callable, Mapping
from typing import Protocol

from memplane.application.jobs.inference.inference_job import InferenceJob
from memplane.application.jobs.inference.insights import ConcludeInsights
from memplane.application.jobs.inference.language_model import ModelPrompt
from memplane.application.jobs.inference.llm_budget import LlmBudget
from memplane.application.jobs.inference.procedures import ConcludeProcedures
from memplane.application.jobs.inference.reflections import ConcludeReflections
from memplane.application.jobs.lifecycle_jobs import Prepare
from memplane.application.memories.gateway import Gateway
from memplane.application.ports import Clock, Policies, Storage


class PromptText(Protocol):
    """What a model is told to do, with whatever text."""

    def about(self, text: str, /) -> ModelPrompt:
        """The prompt, about a text."""
        ...


def conclusions(
    storage: Storage, policies: Policies, gateway: Gateway, clock: Clock, thinking: LlmBudget,
    prompts: Callable[[str], PromptText],
) -> Mapping[str, Prepare]:  # fmt: skip
    """What prepares the batches of each of these jobs.

    Raises:
        PromptInvalid: one of the prompts cannot be read.
    """
    found = (
        ConcludeProcedures(storage, thinking, prompts("procedure").about),
        ConcludeInsights(storage, thinking, prompts("insights").about),
        ConcludeReflections(storage, thinking, prompts("reflection").about),
    )
    return {each.job: InferenceJob(storage, policies, gateway, clock, thinking, each) for each in found}

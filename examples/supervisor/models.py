"""The models of the example: one that follows a script, so that it runs offline, or a real one where a key is set."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable

KEY, MODEL = "OPENAI_API_KEY", "EXAMPLE_MODEL"
Step = Callable[[Sequence[BaseMessage]], AIMessage]


def calling(tool: str, **given: object) -> Step:
    """A step that calls a tool."""

    def step(messages: Sequence[BaseMessage]) -> AIMessage:
        return AIMessage("", tool_calls=[{"name": tool, "args": given, "id": f"{tool}-{len(messages)}"}])

    return step


def saying(text: str) -> Step:
    """A step that says something."""
    return lambda _: AIMessage(text)


def _answered(messages: Sequence[BaseMessage]) -> AIMessage:
    """What the supervisor makes of its memory: whom it speaks to, when they ship, and what has changed."""
    memory = "\n".join(each.text for each in messages if isinstance(each, SystemMessage))
    name = re.search(r"preferred name is (\w+)", memory)
    day = re.search(r"bee app ships on (\d+ \w+)", memory)
    changed = "Something has changed since we last spoke. " if "Memory updates since" in memory else ""
    known = f"the bee app ships on {day.group(1)}" if day else "I do not know when we ship"
    return AIMessage(f"{changed}{name.group(1) if name else 'You there'}, {known}.")


def _consented(messages: Sequence[BaseMessage]) -> AIMessage:
    told = messages[-1].text
    return AIMessage("May I remember that you are called Annie?" if "consent" in told else f"Noted: {told}")


SCRIPT: Mapping[tuple[str, str], Sequence[Step]] = {
    ("supervisor", "plan the launch"): (
        calling("delegate", agent="planner", task="Plan the launch of the bee app for 15 May."),
        calling("delegate", agent="stylist", task="Say how the announcement should sound."),
        calling("delegate", agent="researcher", task="Find what we know of bees."),
        calling("delegate", agent="executor", task="Say what is to be done first."),
        saying("The launch is planned for 15 May; the release notes come first, in a plain and warm tone."),
    ),
    ("supervisor", "call me"): (
        calling("memory_remember", content="The user's preferred name is Annie.", category="profile"),
        _consented,
    ),
    ("supervisor", "when do we ship"): (_answered,),
    ("planner", "plan the launch"): (
        calling("memory_remember", content="The bee app ships on 15 May.", category="goals", importance=5),
        calling("memory_remember", content="The team writes the release notes before 10 May.", category="tasks"),
        saying("Two things are planned: the release notes before 10 May, the launch on 15 May."),
    ),
    ("stylist", "announcement"): (
        calling("memory_query", query="What is to be announced?", categories=["goals"]),
        calling("memory_remember", content="Announcements have a plain and warm tone.", category="tone"),
        saying("I may not read the goals, but the tone is plain and warm."),
    ),
    ("researcher", "bees"): (
        calling("memory_remember", content="Solitary bees nest in hollow stems.", category="knowledge"),
        saying("Solitary bees nest in hollow stems."),
    ),
    ("executor", "first"): (
        calling("memory_query", query="What is to be done?", categories=["tasks"]),
        saying("The release notes come first."),
    ),
}


class ScriptedModel(BaseChatModel):
    """Answers by the script: the agent that the instructions name, the words of the task, and the steps since."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Runnable[Any, AIMessage]:  # noqa: ANN401 - of the base class
        """The same: the script knows its tools."""
        assert tools  # noqa: S101 - an agent without tools would have no script
        return self  # type: ignore[return-value]  # answers with an AIMessage

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002 - of the base class
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002 - of the base class
        **_: Any,  # noqa: ANN401 - of the base class
    ) -> ChatResult:
        asked = max(nth for nth, each in enumerate(messages) if isinstance(each, HumanMessage))
        steps = sum(isinstance(each, AIMessage) for each in messages[asked:])
        agent = messages[0].text.removeprefix("You are the ").split(".")[0]
        task = messages[asked].text.lower()
        script = next(steps for (name, words), steps in SCRIPT.items() if name == agent and words in task)
        return ChatResult(generations=[ChatGeneration(message=script[min(steps, len(script) - 1)](messages))])


def chosen_model() -> BaseChatModel:
    """A real model where `OPENAI_API_KEY` is set (`EXAMPLE_MODEL` names it), else the scripted one."""
    if not os.environ.get(KEY):
        return ScriptedModel()
    try:
        from langchain_openai import ChatOpenAI  # noqa: PLC0415 - for a real model alone
    except ImportError as error:
        raise SystemExit(f"{KEY} is set: pip install langchain-openai, or unset it to follow the script") from error
    return ChatOpenAI(model=os.environ.get(MODEL, "gpt-4.1-mini"), temperature=0)

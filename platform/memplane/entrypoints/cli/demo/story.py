"""The story that the demo tells: what was said, what is known, and what happens then."""

from functools import cached_property
from importlib import resources

from pydantic import BaseModel, ConfigDict

from memplane.contracts.memories import NewMemoryRequest, NewTurnRequest
from memplane.domain.memory.memory import Role


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class StoryThread(_Part):
    """A thread: each turn as (role, text)."""

    id: str
    user: str
    turns: tuple[tuple[Role, str], ...]


class StoryChange(_Part):
    """A memory, found by its external id, gets another text."""

    agent: str
    external_id: str
    content: str


class StoryRefusal(_Part):
    """An agent asks for a category that is not its own, and another for which it is."""

    agent: str
    category: str
    allowed: str


class Story(_Part):
    """The whole story; turns and memories are checked as the server's contract checks them."""

    question: str
    first_user: str
    second_user: str
    threads: tuple[StoryThread, ...]
    memories: tuple[NewMemoryRequest, ...]
    change: StoryChange
    addition: NewMemoryRequest
    refused: StoryRefusal

    @cached_property
    def turns(self) -> list[NewTurnRequest]:
        """Every turn, thread by thread, each with a name of its own."""
        return [
            NewTurnRequest(
                user_id=thread.user, thread_id=thread.id, role=role, text=text, external_id=f"{thread.id}-{place}"
            )
            for thread in self.threads
            for place, (role, text) in enumerate(thread.turns, 1)
        ]

    @cached_property
    def changed_thread(self) -> str:
        """The thread of the memory that changes."""
        (found,) = [memory for memory in self.memories if memory.external_id == self.change.external_id]
        return found.thread_id or ""


def load() -> Story:
    """The story that comes with the package."""
    text = resources.files(__package__ or "").joinpath("story.json").read_text(encoding="utf-8")
    return Story.model_validate_json(text)

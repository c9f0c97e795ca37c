"""Whose conversation a run is: the user and the thread, from the run's config and never from a model."""

from dataclasses import dataclass

from langchain_core.runnables import RunnableConfig

from memplane.domain.errors import InvalidRequest


@dataclass(frozen=True, slots=True)
class ConversationThread:
    """A user's thread."""

    user_id: str
    thread_id: str


def conversation_of(config: RunnableConfig, user_id: str | None = None) -> ConversationThread:
    """The conversation that a config names.

    Args:
        config: of the run.
        user_id: the user, for configs that name none.

    Raises:
        Invalid: it names no user or no thread, or another user than the one that is given.
    """
    named = config.get("configurable", {})
    user, thread = named.get("user_id", user_id), named.get("thread_id")
    if user is None or thread is None:
        raise InvalidRequest(
            'name user and thread: {"configurable": {"user_id": …, "thread_id": …}}', field="configurable"
        )
    if user_id is not None and str(user) != user_id:
        raise InvalidRequest("user_id: this is opened for another user", field="user_id")
    return ConversationThread(str(user), str(thread))

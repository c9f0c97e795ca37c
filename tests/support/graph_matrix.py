"""Who may do what through LangGraph: every operation of the saver and of the store, and the rules that it is held to.

An operation that is not in this table fails the tests; each rule is tried on each operation that has it.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from langgraph.checkpoint.base import empty_checkpoint

from memplane.domain.identity.principal import KeyScope

Call = Callable[[Any, str, str], Awaitable[object]]
"""Of a saver or store, a user and a category."""
THREAD = "plans"


@dataclass(frozen=True)
class Operation:
    """One operation and its rules.

    Attributes:
        of: `saver` or `store`.
        name: its asynchronous method.
        scopes: what the key needs.
        call: how it is called.
        blocking: the method that waits for it.
        names_user: whether the call names the user; if not, it finds the caller's own alone.
        category: whether a category outside the allowlist refuses it; a saver knows none.
    """

    of: str
    name: str
    scopes: frozenset[KeyScope]
    call: Call
    blocking: str
    names_user: bool = True
    category: bool = False

    def __str__(self) -> str:
        return f"{self.of}.{self.name}"

    @property
    def agent(self) -> str:
        """An agent of the shipped policy that may do it: a saver is for those who read conversations."""
        return "supervisor" if self.of == "saver" else "planner"


def config(user: str, **more: object) -> Any:  # noqa: ANN401 - a config of LangGraph
    """Names a thread of a user."""
    return {"configurable": {"thread_id": THREAD, "user_id": user, "checkpoint_ns": "", **more}}


async def _listed(saver: Any, user: str, _: str) -> object:  # noqa: ANN401 - a saver
    return [one async for one in saver.alist(config(user))]


async def _put(saver: Any, user: str, _: str) -> object:  # noqa: ANN401 - a saver
    new = {**empty_checkpoint(), "channel_values": {"said": 1}, "channel_versions": {"said": "1"}}
    return await saver.aput(config(user), new, {"source": "input", "step": -1}, {"said": "1"})


_STATE, _READ, _WRITE = (frozenset({each}) for each in (KeyScope.CHECKPOINT, KeyScope.READ, KeyScope.WRITE))

OPERATIONS: Sequence[Operation] = (
    Operation("saver", "aget_tuple", _STATE, lambda s, u, _: s.aget_tuple(config(u)), "get_tuple"),
    Operation("saver", "alist", _STATE, _listed, "list"),
    Operation("saver", "aput", _STATE, _put, "put"),
    Operation(
        "saver",
        "aput_writes",
        _STATE,
        lambda s, u, _: s.aput_writes(config(u, checkpoint_id="1"), [("said", 1)], "task"),
        "put_writes",
    ),
    Operation(
        "saver",
        "aget_delta_channel_history",
        _STATE,
        lambda s, u, _: s.aget_delta_channel_history(config=config(u), channels=["said"]),
        "get_delta_channel_history",
    ),
    Operation(
        "saver", "adelete_thread", _STATE, lambda s, *_: s.adelete_thread(THREAD), "delete_thread", names_user=False
    ),
    Operation(
        "saver",
        "adelete_for_runs",
        _STATE,
        lambda s, *_: s.adelete_for_runs(["run"]),
        "delete_for_runs",
        names_user=False,
    ),
    Operation(
        "saver", "acopy_thread", _STATE, lambda s, *_: s.acopy_thread(THREAD, "copy"), "copy_thread", names_user=False
    ),
    Operation("saver", "aprune", _STATE, lambda s, *_: s.aprune([THREAD]), "prune", names_user=False),
    Operation("store", "aget", _READ, lambda s, u, c: s.aget((u, c), "k"), "get", category=True),
    Operation("store", "asearch", _READ, lambda s, u, c: s.asearch((u, c), query="what"), "search", category=True),
    Operation(
        "store",
        "alist_namespaces",
        _READ,
        lambda s, u, c: s.alist_namespaces(prefix=(u, c)),
        "list_namespaces",
        category=True,
    ),
    Operation("store", "aput", _WRITE, lambda s, u, c: s.aput((u, c), "k", {"text": "what"}), "put", category=True),
    Operation("store", "adelete", _WRITE, lambda s, u, c: s.adelete((u, c), "k"), "delete", category=True),
)
CARRIERS = {"aget": "aget_tuple of the saver", "abatch": "every operation of the store", "batch": "abatch, waited for"}
"""Methods that only hand on to operations."""

"""LangGraph on Memplane: a checkpointer, a store, an agent's tools, and what stands around its model.

Needs the extra ``memplane[langgraph]``.
"""

from memplane.adapters.langgraph.sources import export_checkpoints
from memplane.entrypoints.langgraph.hooks import ContextOptions, MemoryHooks, MemoryState
from memplane.entrypoints.langgraph.saver import MemplaneSaver
from memplane.entrypoints.langgraph.store import MemplaneStore
from memplane.entrypoints.langgraph.tools import MemoryTools

__all__ = [
    "ContextOptions",
    "MemoryHooks",
    "MemoryState",
    "MemoryTools",
    "MemplaneSaver",
    "MemplaneStore",
    "export_checkpoints",
]

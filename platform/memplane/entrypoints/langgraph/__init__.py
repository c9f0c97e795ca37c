"""LangGraph on Memplane: a checkpointer. Needs the extra ``memplane[langgraph]``."""

from memplane.entrypoints.langgraph.saver import MemplaneSaver

__all__ = ["MemplaneSaver"]

"""LangGraph's checkpoints: as Memplane stores them, and as other savers leave them."""

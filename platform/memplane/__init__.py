"""Memplane: the memory plane for teams of AI agents."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memplane.entrypoints.http.inprocess import open  # noqa: A004 - a file is opened

__all__ = ["__version__", "open"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:  # noqa: ANN401 - the protocol of module attributes
    """Load `open` when it is asked for: who needs the client alone should not load a server."""
    if name == "open":
        return importlib.import_module("memplane.entrypoints.http.inprocess").open
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")

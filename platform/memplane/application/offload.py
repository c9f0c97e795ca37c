"""Work on texts, where it holds nobody up: here for short ones, in a worker thread for long ones."""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
SHORT = 2_000
"""Characters up to which handing a text to a thread takes longer than the work on it."""


async def offload(size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do work on so many characters of text."""
    return work(*args, **kwargs) if size <= SHORT else await asyncio.to_thread(work, *args, **kwargs)

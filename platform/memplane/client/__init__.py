"""The Python client: `Memplane` for asyncio, `MemplaneSync` for everything else.

async with Memplane("http://127.0.0.1:7077", key) as memory:
    await memory.turn("The launch moved to May.", user_id="ana", thread_id="t1", role="user")
    answer = await memory.query("when is the launch?", filters={"user_id": "ana"}, top_k=3)
"""

from memplane.client.asynchronous import Memplane
from memplane.client.blocking import MemplaneSync
from memplane.client.errors import (
    Conflict,
    Forbidden,
    Invalid,
    MemplaneClientError,
    NotFound,
    RateLimited,
    ServerFailed,
    TooLarge,
    Unauthenticated,
    Unavailable,
    UnexpectedAnswer,
    Unreachable,
    VersionConflict,
)

__all__ = [
    "Conflict",
    "Forbidden",
    "Invalid",
    "Memplane",
    "MemplaneClientError",
    "MemplaneSync",
    "NotFound",
    "RateLimited",
    "ServerFailed",
    "TooLarge",
    "Unauthenticated",
    "Unavailable",
    "UnexpectedAnswer",
    "Unreachable",
    "VersionConflict",
]

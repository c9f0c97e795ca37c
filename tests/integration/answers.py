"""Answers that a real server gives rarely, given to the client on demand."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar
from uuid import uuid4

import httpx2

from memplane.client import Memplane

T = TypeVar("T")
ANSWER = {
    "items": [], "prompt": None, "delta": None, "policy": "sha256:0",
    "usage": {"tokens": 0, "budget": 1, "truncated": False, "candidates": 0, "prompt_tokens": 0, "counter": "c"},
}  # fmt: skip
TURN = {"outcome": "created", "turn_id": str(uuid4()), "seq": 1, "rev": 1}
WRITTEN = {"outcome": "updated", "id": str(uuid4()), "version": 2}


class Answers:
    """A server that answers as told, each call the next, the last for ever."""

    def __init__(self, *answers: httpx2.Response | Exception) -> None:
        self.answers = list(answers)
        self.requests: list[httpx2.Request] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return httpx2.Response(answer.status_code, headers=answer.headers, content=answer.content)

    def ask(self, call: Callable[[Memplane], Awaitable[T]], retries: int = 3) -> T:
        async def asked() -> T:
            async with Memplane("http://m", "mp_k", retries=retries, transport=httpx2.MockTransport(self)) as client:
                return await call(client)

        return asyncio.run(asked())


def problem(status: int, code: str = "unavailable", **headers: str) -> httpx2.Response:
    body = {"type": "about:blank", "title": "t", "status": status, "detail": "d", "code": code, "limit": 7}
    return httpx2.Response(
        status, json=body, headers={name.replace("_", "-"): value for name, value in headers.items()}
    )


def ok(body: object = ANSWER) -> httpx2.Response:
    return httpx2.Response(200, json=body)

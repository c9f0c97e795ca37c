"""Every answer of every server in the tests is held to the OpenAPI document: its status stands there."""

import re
from typing import Any

from fastapi import FastAPI
from starlette.types import Message, Receive, Scope, Send

from memplane.entrypoints.http.middleware.request_log import route_of

UNTOLD: list[str] = []
"""Answers of this process that their operations' documentation does not have."""


class Documented:
    """An HTTP face that notes what it answers beyond its document.

    Attributes:
        face: the application itself.
    """

    def __init__(self, face: FastAPI) -> None:
        self.face = face
        self._operations: dict[str, dict[str, Any]] = face.openapi()["paths"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or live through the server's life."""

        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._hold(scope, message["status"])
            await send(message)

        await self.face(scope, receive, noted if scope["type"] == "http" else send)

    def _hold(self, scope: Scope, status: int) -> None:
        path = re.sub(r":\w+}", "}", route_of(scope) or "")
        operation = self._operations.get(path, {}).get(scope["method"].lower())
        if operation is not None and str(status) not in operation["responses"]:
            UNTOLD.append(f"{scope['method']} {path}: {status}")

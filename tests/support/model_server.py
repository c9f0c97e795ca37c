"""An HTTP server that speaks OpenAI's chat completions by a script: an answer for each request."""

import json
import socket
import struct
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]
INPUT_TOKENS, OUTPUT_TOKENS = 100, 20
USAGE = {
    "prompt_tokens": INPUT_TOKENS,
    "completion_tokens": OUTPUT_TOKENS,
    "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
}


@dataclass(frozen=True)
class Reply:
    """One answer of the server.

    Attributes:
        status: its status.
        body: its body.
        headers: further headers.
        cut: after how many bytes of the body the connection is reset.
        held: whether it waits until the server's gate is opened.
        drops: whether it comes byte by byte, and never ends before the gate is opened.
    """

    body: bytes = b""
    status: int = 200
    headers: Json = field(default_factory=dict)
    cut: int | None = None
    held: bool = False
    drops: bool = False


def completion(message: Json, finish: str = "stop", usage: Json | None = USAGE) -> Reply:
    """An answer as the protocol has it."""
    document: Json = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_790_000_000,
        "model": "small",
        "choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}],
    }
    if usage is not None:
        document["usage"] = usage
    return Reply(json.dumps(document).encode())


def called(arguments: object, finish: str = "tool_calls", usage: Json | None = USAGE) -> Reply:
    """An answer in the shape that was asked for: a call of the tool that the library calls ``final_result``.

    A text stands for itself, so that it need not be JSON.
    """
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    call = {"id": "call_1", "type": "function", "function": {"name": "final_result", "arguments": text}}
    return completion({"content": None, "tool_calls": [call]}, finish, usage)


def spoken(text: str) -> Reply:
    """An answer in words, where a shape was asked for."""
    return completion({"content": text})


def refused(status: int, message: str = "no", **headers: str) -> Reply:
    """An error as the protocol has it."""
    return Reply(json.dumps({"error": {"message": message, "type": "error"}}).encode(), status, headers)


@dataclass(frozen=True)
class Asked:
    """A request that came.

    Attributes:
        path: where to.
        headers: its headers, their names in small letters.
        body: what it asked.
    """

    path: str
    headers: dict[str, str]
    body: Json

    def said(self, role: str) -> str:
        """All that it says in a role."""
        return "\n".join(str(each["content"]) for each in self.body["messages"] if each["role"] == role)


class ModelServer(ThreadingHTTPServer):
    """The server; past its script's end it answers 500.

    Attributes:
        script: what it answers, in order.
        asked: what it was asked, in order.
        gate: closed (cleared), held answers wait.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script: list[Reply] = []
        self.asked: list[Asked] = []
        self.gate = threading.Event()

    def handle_error(self, request: object, client_address: object) -> None:
        """Who asked may have given up: what else goes wrong is told."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]  # the base class narrows it

    @property
    def url(self) -> str:
        """The base URL, as an operator would name it."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class _Handler(BaseHTTPRequestHandler):
    server: ModelServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.asked.append(Asked(self.path, headers, json.loads(body)))
        reply = self.server.script.pop(0) if self.server.script else refused(500, "the script is at its end")
        if reply.held:
            self.server.gate.wait()
        with suppress(OSError):  # who asked may have given up
            self._send(reply)

    def do_GET(self) -> None:
        """A redirect that was followed ends here."""
        self.server.asked.append(Asked(self.path, {}, {}))
        self._send(refused(404))

    def _send(self, reply: Reply) -> None:
        self.send_response(reply.status)
        for name, value in {"Content-Type": "application/json", **reply.headers}.items():
            self.send_header(name, value)
        if reply.drops:  # nobody can say how much comes
            self.send_header("Connection", "close")
        else:
            self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        while reply.drops and not self.server.gate.wait(0.01):
            self.wfile.write(b" ")  # space before a document is none of it
            self.wfile.flush()
        self.wfile.write(reply.body[: reply.cut])
        if reply.cut is not None:
            self.wfile.flush()
            linger = struct.pack("ii", 1, 0)  # closed with a reset, as by a process that was killed
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def model_server() -> Iterator[ModelServer]:
    """A server in a thread of its own."""
    server = ModelServer()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.gate.set()
        server.shutdown()
        server.server_close()
        thread.join()

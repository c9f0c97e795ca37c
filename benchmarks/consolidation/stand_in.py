"""A stand-in for a language model: speaks the protocol over HTTP, and judges pairs by counting words.

It knows no labels and errs often, as a small model does: two notes are the same to it when most of their words are, one
updates the other when they differ in numbers alone, and contradicts it when one of them alone denies something.
"""

import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SAME, RELATED = 0.6, 0.4
"""Shares of common words from which two notes are the same, or of one thing."""
_DENIALS = {"not", "no", "never", "longer", "stopped", "quit", "left", "out", "any", "more", "cannot"}
_EMPTY = {"the", "a", "an", "of", "in", "on", "at", "by", "for", "to", "with", "and", "has", "have", "is", "are", "be"}
_WORD = re.compile(r"[^\W_]+")
_PAIR = re.compile(r'\{"pair": .*\}')


def judged(first: str, second: str) -> str:
    """What the second note is to the first one, by their words."""
    one, other = (_WORD.findall(text.lower()) for text in (first, second))
    stems, others = ({word[:5] for word in words if word not in _EMPTY | _DENIALS} for words in (one, other))
    shared = len(stems & others) / max(len(stems | others), 1)
    if bool(_DENIALS & set(one)) != bool(_DENIALS & set(other)):
        return "contradiction" if shared >= RELATED else "different"
    differing = stems ^ others
    if differing and all(word.isdecimal() for word in differing):
        return "update"
    return "same" if shared >= SAME else "different"


def answered(body: Mapping[str, Any]) -> list[dict[str, object]]:
    """The verdicts for the pairs of a request."""
    told = "\n".join(str(each["content"]) for each in body["messages"] if each["role"] == "user")
    pairs = [json.loads(line) for line in _PAIR.findall(told)]
    return [{"pair": each["pair"], "verdict": judged(each["first"], each["second"])} for each in pairs]


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        arguments = json.dumps({"verdicts": answered(body)})
        call = {"id": "1", "type": "function", "function": {"name": "final_result", "arguments": arguments}}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        asked = sum(len(str(each["content"])) for each in body["messages"]) // 4
        usage = {"prompt_tokens": asked, "completion_tokens": len(arguments) // 4}
        reply = json.dumps(
            {
                "id": "1",
                "object": "chat.completion",
                "created": 0,
                "model": "stand-in",
                "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
                "usage": usage | {"total_tokens": sum(usage.values())},
            }
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def stand_in() -> Iterator[str]:
    """The base URL of one that runs until the block ends."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()

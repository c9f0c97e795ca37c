"""Connections of the HTTP server: how many there may be, and how long each may take for what it sends and reads.

uvicorn bounds neither the time in which a request has to arrive nor the length of its head, and its own limit of
connections refuses requests, not connections.
"""

import asyncio
import json
import sys
from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import Any, ClassVar

from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from memplane.application.limits.uploads import network_of

LONGEST_HEAD = 65_536
"""Bytes of a request line and headers, or of trailers."""
LINGER_SECONDS = 5.0
"""So long the rest of a body is read and dropped that was answered early: a connection that is closed at once would
take the answer from a client that is still sending."""
GRACE_SECONDS = 10.0
"""So much later than the application a connection gives a body up."""
LOOK_SECONDS = 0.5
RESERVED_FILES = 128
"""File descriptors that are left for everything but connections."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """What connections may do; a number of 0 is no limit.

    Attributes:
        most: connections at a time.
        per_address: those of one address.
        head_seconds: time for a request line and headers, from the connection or the first byte.
        body_seconds: time for a body.
        send_seconds: time in which a client that reads nothing of its answer is waited for.
    """

    most: int
    per_address: int
    head_seconds: float
    body_seconds: float
    send_seconds: float


def within_file_limit(most: int) -> int:
    """As many connections of those wanted as this process can have files open for."""
    if sys.platform == "win32":
        return most
    import resource  # noqa: PLC0415 - not on every system

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return most
    room = max(soft - RESERVED_FILES, soft // 2)
    return min(most, room) if most else room


def limited_protocol(limits: ConnectionLimits) -> type[asyncio.Protocol]:
    """The protocol for `uvicorn.Config(http=…)` of one server with these limits."""

    class Limited(LimitedProtocol):
        registry = Connections(limits)

    return Limited


class Connections:
    """The open connections of a server, looked over at intervals: a timer for each would cost every request more."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self._open: set[LimitedProtocol] = set()
        self._addresses: Counter[str] = Counter()
        self._idle: OrderedDict[LimitedProtocol, None] = OrderedDict()
        self._look: asyncio.TimerHandle | None = None

    def enter(self, each: "LimitedProtocol") -> bool:
        """Count a new connection; whether it may stay. The longest idle one makes room for it."""
        limits = self.limits
        if limits.per_address and self._addresses[each.address] >= limits.per_address:
            welcome = self._close_idle(each.address)
        else:
            welcome = not limits.most or len(self._open) < limits.most or self._close_idle(None)
        self._open.add(each)
        self._addresses[each.address] += 1
        if self._look is None:
            self._look = each.loop.call_later(LOOK_SECONDS, self._look_over, each.loop)
        return welcome

    def leave(self, each: "LimitedProtocol") -> None:
        """A connection is closed."""
        self._open.discard(each)
        self._idle.pop(each, None)
        self._addresses[each.address] -= 1
        if not self._addresses[each.address]:
            del self._addresses[each.address]

    def idle(self, each: "LimitedProtocol") -> None:
        """A connection has nothing to do from now on."""
        self._idle[each] = None

    def busy(self, each: "LimitedProtocol") -> None:
        """A connection has something to do."""
        self._idle.pop(each, None)

    def _close_idle(self, address: str | None) -> bool:
        found = next((each for each in self._idle if address is None or each.address == address), None)
        if found is None:
            return False
        del self._idle[found]
        found.transport.close()
        return True

    def _look_over(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        for each in list(self._open):
            each.look(now)
        self._look = loop.call_later(LOOK_SECONDS, self._look_over, loop) if self._open else None


class LimitedProtocol(HttpToolsProtocol):
    """uvicorn's protocol, within limits: see :func:`limited_protocol`.

    Attributes:
        registry: the connections of the server.
        address: the address that the connection counts for.
    """

    registry: ClassVar[Connections]

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - the server's own
        super().__init__(*args, **kwargs)
        self.address = ""
        self._since = self.loop.time()
        self._receiving = self._head_complete = self._answered = False
        self._unread = 0  # bytes since the parser last made something of them
        self._unsent, self._sent_at = 0, self._since
        self._running: RequestResponseCycle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as in uvicorn
        """Take a connection, or refuse it."""
        super().connection_made(transport)
        self.address = network_of(self.client[0]) if self.client else ""
        if not self.registry.enter(self):
            self._refuse(503, "Unavailable", "too_many_connections", "too many connections; try again")

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of a connection, and of pipelined requests: uvicorn tells only the last one that nobody listens."""
        super().connection_lost(exc)
        self.pipeline.clear()
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = True
            self._running.message_event.set()
        self._unset_keepalive_if_required()  # which uvicorn leaves running after a reset, with all that it holds
        self.registry.leave(self)

    def data_received(self, data: bytes) -> None:
        """Read on."""
        if self.transport.is_closing():
            return
        self.registry.busy(self)
        self._unread += len(data)
        super().data_received(data)
        if self._unread > LONGEST_HEAD:
            self._give_up(431, "Request Header Fields Too Large", "headers_too_large", f"at most {LONGEST_HEAD} bytes")

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._receiving, self._head_complete, self._since = True, False, self.loop.time()

    def on_headers_complete(self) -> None:
        """Its body follows."""
        self._head_complete, self._since, self._unread = True, self.loop.time(), 0
        super().on_headers_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def on_body(self, body: bytes) -> None:
        """A part of its body."""
        self._unread = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """It has been received."""
        self._receiving, self._unread = False, 0
        super().on_message_complete()
        if self._answered and not self._is_answering():  # before it was complete
            self.registry.idle(self)

    def on_response_complete(self) -> None:
        """It has been answered."""
        super().on_response_complete()
        self._answered, self._since = True, self.loop.time()
        if not self._receiving and not self._is_answering():
            self.registry.idle(self)

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection, also one whose client reads nothing."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            super().timeout_keep_alive_handler()

    def look(self, now: float) -> None:
        """Close the connection if it takes too long."""
        limits = self.registry.limits
        if self._is_stuck(now):
            self.transport.abort()  # to close it would wait for the client
        elif self.transport.is_closing() or now - self._since < self._allowed(limits):
            return
        elif self._receiving and not self._head_complete:
            detail = f"the headers were not complete within {limits.head_seconds:g} seconds"
            self._give_up(408, "Request Timeout", "request_timeout", detail)
        else:
            self.transport.abort()

    def _allowed(self, limits: ConnectionLimits) -> float:
        """Seconds that the present phase may last."""
        if self._is_answering():  # of what is not received then, the server reads nothing, or the application judges
            waits_for_client = self._receiving and self._head_complete and not self.flow.read_paused
            return limits.body_seconds + GRACE_SECONDS if waits_for_client else float("inf")
        if self._receiving:
            return LINGER_SECONDS if self._head_complete else limits.head_seconds
        return self.timeout_keep_alive + 1 if self._answered else limits.head_seconds

    def _is_answering(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle  # none before the first request
        return cycle is not None and not cycle.response_complete

    def _is_stuck(self, now: float) -> bool:
        """Whether the client has read nothing for too long."""
        unsent = self.transport.get_write_buffer_size()
        if not unsent or unsent != self._unsent:
            self._unsent, self._sent_at = unsent, now
        return unsent > 0 and now - self._sent_at >= self.registry.limits.send_seconds

    def _give_up(self, status: int, title: str, code: str, detail: str) -> None:
        if self._is_answering():
            self.transport.abort()  # another answer is on its way
        else:
            self._refuse(status, title, code, detail)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP."""
        self._give_up(400, "Bad Request", "invalid_request", msg)

    def _refuse(self, status: int, title: str, code: str, detail: str) -> None:
        """Answer with a problem document, and close."""
        document = {"type": "about:blank", "title": title, "status": status, "detail": detail, "code": code}
        body = json.dumps(document).encode()
        head = f"HTTP/1.1 {status} {title}\r\nContent-Type: application/problem+json\r\nContent-Length: {len(body)}\r\n"
        again = "Retry-After: 1\r\n" if status == 503 else ""
        self.transport.write(f"{head}{again}Connection: close\r\n\r\n".encode() + body)
        self.transport.close()

"""What goes to an endpoint, and how much may come back: one origin, a bounded answer, nothing of the environment."""

import ssl
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import httpx2

from memplane.settings import LOOPBACK

MAX_BYTES = 4_194_304
"""Of one answer: many times what any number of tokens that can be asked for needs."""

TELLING = "x-stainless-"
"""Headers in which an SDK tells the endpoint of the system and the Python that it runs on."""


class AnswerTooLarge(httpx2.TransportError):
    """An endpoint sends more than an answer can be."""


class ForeignOrigin(httpx2.TransportError):
    """A request would leave the endpoint."""


class OneEndpoint(httpx2.AsyncBaseTransport):
    """Sends requests to the origin of one address and to no other, and reads so many bytes of each answer.

    It is what holds whichever library stands above: a redirect that one of them followed would fail here.

    Attributes:
        too_large: whether an answer was cut off because of its size.
        sent: bytes of the last request's body.
        received: bytes that were read of the last answer's body.
    """

    def __init__(self, url: str, inner: httpx2.AsyncBaseTransport, max_bytes: int = MAX_BYTES) -> None:
        self._origin = _origin(httpx2.URL(url))
        self._inner = inner
        self._max_bytes = max_bytes
        self.too_large = False
        self.sent = self.received = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send, if it goes to the endpoint.

        Raises:
            ForeignOrigin: it goes elsewhere.
        """
        if _origin(request.url) != self._origin:
            raise ForeignOrigin("a request to another host than the endpoint's", request=request)
        for name in [name for name in request.headers if name.startswith(TELLING)]:
            del request.headers[name]
        self.sent, self.received = len(await request.aread()), 0
        response = await self._inner.handle_async_request(request)
        if not isinstance(response.stream, httpx2.AsyncByteStream):
            raise TypeError("an answer that is not read asynchronously")
        response.stream = _Counted(response.stream, self)
        return response

    def count(self, more: int) -> None:
        """Note that so many bytes came.

        Raises:
            AnswerTooLarge: they are too many.
        """
        self.received += more
        if self.received > self._max_bytes:
            self.too_large = True
            raise AnswerTooLarge(f"an answer of more than {self._max_bytes} bytes")

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


class _Counted(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream, transport: OneEndpoint) -> None:
        self._inner = inner
        self._transport = transport

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._inner:
            self._transport.count(len(part))
            yield part

    async def aclose(self) -> None:
        await self._inner.aclose()


def tls_of(url: str) -> ssl.SSLContext | None:
    """The certificates to believe of an address; none for this machine's own. Reads files: not for the event loop."""
    return httpx2.create_ssl_context() if urlsplit(url).scheme == "https" else None


def transport_to(url: str, tls: ssl.SSLContext | None) -> OneEndpoint:
    """A way to an endpoint, without the proxies of the environment."""
    local = urlsplit(url).hostname in LOOPBACK
    if tls is None and not local:
        raise ValueError("http is for this machine alone")
    return OneEndpoint(url, httpx2.AsyncHTTPTransport(verify=tls or False, trust_env=False))


def client_of(transport: OneEndpoint, seconds: float) -> httpx2.AsyncClient:
    """A client on it, which follows no redirect.

    Compressed answers are not asked for: what is counted is what is unpacked.
    """
    return httpx2.AsyncClient(
        transport=transport,
        follow_redirects=False,
        trust_env=False,
        timeout=seconds,
        headers={"Accept-Encoding": "identity"},
    )


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port

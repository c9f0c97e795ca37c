"""One server, one key: requests, bounded retries, and failures as errors of one tree."""

import random
import ssl
from asyncio import sleep
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import TypeVar

import httpx2
from pydantic import BaseModel, ValidationError

from memplane.client.errors import (
    Invalid,
    MemplaneClientError,
    Unavailable,
    UnexpectedAnswer,
    Unreachable,
    error_of,
)

M = TypeVar("M", bound=BaseModel)
Parameters = Mapping[str, str | list[str]]

FIRST_WAIT_SECONDS = 0.1
LONGEST_WAIT_SECONDS = 10.0
KEEP_ALIVE_SECONDS = 3.0  # less than any proxy's, so that no request goes out on a connection that it closes
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


@dataclass(frozen=True, slots=True)
class Call:
    """One request.

    Attributes:
        method: the HTTP method.
        path: below the server's URL, percent-encoded.
        body: a JSON document, or nothing.
        parameters: of the query string.
        headers: beyond the ones that every request has.
        repeatable: whether a second arrival has no second effect, so that it may be tried again.
        also: statuses that are an answer, though no success.
    """

    method: str
    path: str
    body: str | None = None
    parameters: Parameters = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    repeatable: bool = False
    also: tuple[int, ...] = ()


@cache
def _trusted(*, trust_env: bool) -> ssl.SSLContext:
    """Whose certificates this machine, or its environment, trusts; read once, as it takes tens of milliseconds.

    Raises:
        Invalid: the environment names a file that cannot be read.
    """
    try:
        return httpx2.create_ssl_context(trust_env=trust_env)
    except OSError as error:
        raise Invalid("invalid_certificates", f"SSL_CERT_FILE or SSL_CERT_DIR cannot be read: {error}") from error


class Connection:
    """Sends calls to a server and reads their answers.

    Args:
        url: the server's.
        key: an API key ``mp_…``.
        timeout: seconds to wait for a connection, and for each part of an answer.
        retries: how often a repeatable call is tried again.
        transport: what carries the requests; the network, unless said.

    Raises:
        Invalid: the URL or the key cannot be one, or no certificates can be read.
    """

    def __init__(
        self, url: str, key: str, *, timeout: float, retries: int, transport: httpx2.AsyncBaseTransport | None = None
    ) -> None:
        base = _checked_url(url)
        if not key or not key.isascii() or not key.isprintable() or " " in key:
            raise Invalid("invalid_key", "the API key is empty or has characters that no key has; keys begin with mp_")
        remote = base.host not in LOOPBACK
        self._retries = retries
        self._url = str(base)
        self._http = httpx2.AsyncClient(
            base_url=base,
            headers={"Authorization": f"Bearer {key}", "Accept": "application/json"},
            timeout=timeout,
            limits=httpx2.Limits(keepalive_expiry=KEEP_ALIVE_SECONDS),
            transport=transport,
            verify=_trusted(trust_env=remote),
            trust_env=remote,  # a proxy of the environment has no business with this machine's own
        )

    async def close(self) -> None:
        """Close the connections; a second time does nothing."""
        await self._http.aclose()

    async def ask(self, call: Call, kind: type[M]) -> M:
        """Send a call and read its answer; a field that this version does not know is passed over.

        Raises:
            MemplaneClientError: the subclass says what kind of failure it was.
        """
        response = await self._send(call)
        try:
            return kind.model_validate_json(response.content, extra="ignore")
        except ValidationError as error:
            where = ".".join(str(part) for part in error.errors(include_input=False)[0]["loc"])
            detail = f"the answer of {self._url} is no {kind.__name__} ({where or 'no JSON'}): check URL and version"
            raise UnexpectedAnswer("unexpected_answer", detail, response.status_code) from error

    async def pieces(self, call: Call) -> AsyncGenerator[bytes, None]:
        """Send a call and hand on its answer as it comes; it is not tried again.

        Raises:
            MemplaneClientError: the subclass says what kind of failure it was; also when the answer breaks off.
        """
        try:
            async with self._http.stream(call.method, call.path, params=dict(call.parameters)) as response:
                if not response.is_success:
                    body = await response.aread()
                    raise error_of(response.status_code, body, _seconds(response.headers.get("Retry-After")))
                async for piece in response.aiter_bytes():
                    yield piece
        except httpx2.RequestError as error:
            raise self._failed(error) from error

    async def _send(self, call: Call) -> httpx2.Response:
        tried = 0
        while True:
            try:
                return await self._once(call)
            except Unavailable as failure:
                tried += 1
                wait = _wait(tried, failure.retry_after)
                if not _worth_repeating(call, failure) or tried > self._retries or wait > LONGEST_WAIT_SECONDS:
                    raise
            await sleep(wait)

    async def _once(self, call: Call) -> httpx2.Response:
        headers = {**call.headers, "Content-Type": "application/json"} if call.body is not None else dict(call.headers)
        content = None if call.body is None else call.body.encode()
        try:
            response = await self._http.request(
                call.method, call.path, content=content, params=dict(call.parameters), headers=headers
            )
        except httpx2.RequestError as error:
            raise self._failed(error) from error
        if response.is_success or response.status_code in call.also:
            return response
        raise error_of(response.status_code, response.content, _seconds(response.headers.get("Retry-After")))

    def _failed(self, error: httpx2.RequestError) -> MemplaneClientError:
        """Why there is no answer."""
        if isinstance(error, httpx2.TimeoutException):
            code = "unreachable" if isinstance(error, httpx2.ConnectTimeout) else "timeout"
            return Unreachable(code, f"{self._url} did not answer in time")
        if isinstance(error, httpx2.TransportError):
            return Unreachable("unreachable", f"{self._url} cannot be reached: {str(error) or type(error).__name__}")
        return UnexpectedAnswer("unexpected_answer", f"the answer of {self._url} cannot be read: {error}")


def _checked_url(url: str) -> httpx2.URL:
    try:
        base = httpx2.URL(url)
    except httpx2.InvalidURL as error:
        raise Invalid("invalid_url", f"'{url}' is no URL: {error}") from error
    if base.scheme not in {"http", "https"} or not base.host:
        raise Invalid("invalid_url", f"'{url}' is no URL of a server: write it as http://127.0.0.1:7077")
    return base


def _worth_repeating(call: Call, failure: Unavailable) -> bool:
    """A server that is busy or away, or asked too often, may answer later; a slow one is not helped by asking again."""
    return call.repeatable and (failure.status in {429, 503} or failure.code == "unreachable")


def _wait(tried: int, asked: float | None) -> float:
    """Seconds until the next attempt: never sooner than the server asked for."""
    if asked is not None:
        return asked
    return float(FIRST_WAIT_SECONDS * 2 ** (tried - 1) * random.uniform(0.5, 1.5))  # noqa: S311 - spreads clients out


def _seconds(value: str | None) -> float | None:
    """A `Retry-After` header, which is a number of seconds or a date."""
    if value is None:
        return None
    if value.strip().isascii() and value.strip().isdigit():
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (zoned - datetime.now(UTC)).total_seconds())

"""The issuer's public documents, fetched from where the operator's settings say, and from nowhere else."""

import asyncio
import json
import ssl
from urllib.parse import urlsplit

import httpx2

from memplane.settings import LOOPBACK, is_secure

TIMEOUT_SECONDS = 5.0
MAX_BYTES = 262_144
DISCOVERY = "/.well-known/openid-configuration"


class FetchFailed(Exception):
    """The issuer's documents could not be had, or are none; the text is for the operator's log."""


class Fetcher:
    """Fetches an issuer's key set.

    Args:
        issuer: the issuer, as tokens name it.
        jwks_url: where its key set is; ``None``: where its discovery document says.
    """

    def __init__(self, issuer: str, jwks_url: str | None) -> None:
        self._issuer = issuer
        self._jwks_url = jwks_url
        self._tls: ssl.SSLContext | None = None

    async def key_set(self) -> dict[str, object]:
        """The key set as it is served now.

        Raises:
            FetchFailed: it cannot be had within five seconds, is too large, or is none.
        """
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                return await self._document(self._jwks_url or await self._discovered())
        except TimeoutError as error:
            raise FetchFailed(f"{self._issuer} did not answer within {TIMEOUT_SECONDS:g} s") from error

    async def _discovered(self) -> str:
        document = await self._document(self._issuer.rstrip("/") + DISCOVERY)
        if document.get("issuer") != self._issuer:
            raise FetchFailed(f"the discovery document of {self._issuer} is another issuer's")
        url = document.get("jwks_uri")
        if not isinstance(url, str) or not is_secure(url):
            raise FetchFailed(f"the discovery document of {self._issuer} names no jwks_uri that is served over https")
        return url

    async def _document(self, url: str) -> dict[str, object]:
        parts = urlsplit(url)
        try:
            client = httpx2.AsyncClient(
                follow_redirects=False,
                timeout=TIMEOUT_SECONDS,
                verify=await self._context() if parts.scheme == "https" else False,
                trust_env=parts.hostname not in LOOPBACK,  # an operator's proxy is no way to this machine
                headers={"Accept": "application/json", "Accept-Encoding": "identity"},
            )
            async with client, client.stream("GET", url) as response:
                if response.status_code != 200:
                    raise FetchFailed(f"{url} answered {response.status_code}")
                body = bytearray()
                async for part in response.aiter_raw():
                    body += part
                    if len(body) > MAX_BYTES:
                        raise FetchFailed(f"{url} is larger than {MAX_BYTES} bytes")
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            raise FetchFailed(f"{url} cannot be fetched: {type(error).__name__}") from error
        return await asyncio.to_thread(_object, url, bytes(body))

    async def _context(self) -> ssl.SSLContext:
        """The certificates, read once and not on the event loop."""
        if self._tls is None:
            self._tls = await asyncio.to_thread(httpx2.create_ssl_context)
        return self._tls


def _object(url: str, body: bytes) -> dict[str, object]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise FetchFailed(f"{url} is no JSON") from error
    if not isinstance(document, dict):
        raise FetchFailed(f"{url} is no JSON object")
    return document

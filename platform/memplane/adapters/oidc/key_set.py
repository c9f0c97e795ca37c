"""The issuer's public keys, kept, and fetched anew when it has others."""

import asyncio
import logging
import time
from collections.abc import Collection, Mapping

import jwt

from memplane.adapters.oidc.fetching import Fetcher, FetchFailed
from memplane.application.jobs.periodic import Periodic

logger = logging.getLogger("memplane.oidc")
MAX_KEYS = 100
FAMILIES: Mapping[str, tuple[str, str | None]] = {
    "RS256": ("RSA", None),
    "RS384": ("RSA", None),
    "RS512": ("RSA", None),
    "PS256": ("RSA", None),
    "PS384": ("RSA", None),
    "PS512": ("RSA", None),
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
    "EdDSA": ("OKP", "Ed25519"),
}
"""The kind of key that each algorithm needs, and its curve."""
Keys = Mapping[tuple[str, str], jwt.PyJWK]
"""By their ids, and what they are used with."""


class KeySet:
    """Keys by their ids.

    They are fetched in the background every so often, and at once for an id that is not among them, but not again
    within the pause: whoever makes up ids does not reach the issuer with each of them. When the issuer does not
    answer, the keys that were had go on working.

    Args:
        fetcher: gets the key set.
        algorithms: those that keys may be used with.
        every: seconds between two fetches in the background.
        pause: seconds after a fetch in which an unknown id does not bring another.
    """

    def __init__(self, fetcher: Fetcher, algorithms: Collection[str], *, every: float, pause: float) -> None:
        self._fetcher = fetcher
        self._algorithms = algorithms
        self._pause = pause
        self._keys: Keys = {}
        self._tried: float | None = None
        self._turn = asyncio.Lock()
        self._periodic = Periodic("fetching the issuer's keys", every, self.renew, at_once=True)

    def start(self) -> None:
        """Begin to fetch in the background."""
        self._periodic.start()

    async def stop(self) -> None:
        """End that."""
        await self._periodic.stop()

    async def find(self, key_id: str, algorithm: str) -> jwt.PyJWK | None:
        """The key of an id for an algorithm, or none."""
        wanted = (key_id, algorithm)
        if wanted not in self._keys:
            await self._look_again(wanted)
        return self._keys.get(wanted)

    async def _look_again(self, wanted: tuple[str, str]) -> None:
        async with self._turn:  # many that wait for one key fetch once
            recent = self._tried is not None and time.monotonic() - self._tried < self._pause
            if wanted not in self._keys and not recent:
                await self._fetch()

    async def renew(self) -> None:
        """Fetch the keys now; those that are no longer served are forgotten."""
        async with self._turn:
            await self._fetch()

    async def _fetch(self) -> None:
        try:
            document = await self._fetcher.key_set()
            self._keys = await asyncio.to_thread(usable, document, self._algorithms)
        except FetchFailed as error:
            logger.warning(
                "the issuer's keys are not renewed, those that there are (%d) stay: %s", self._known(), error
            )
        finally:
            self._tried = time.monotonic()

    def _known(self) -> int:
        return len({key_id for key_id, _ in self._keys})


def usable(document: Mapping[str, object], algorithms: Collection[str]) -> Keys:
    """The keys of a JSON Web Key Set that can verify a signature by one of the algorithms.

    A secret, a private key and a key without an id are none; nor is one that is for something else.

    Raises:
        FetchFailed: it is no key set.
    """
    entries = document.get("keys")
    if not isinstance(entries, list):
        raise FetchFailed("the key set has no list of keys")
    found = {}
    for entry in entries[:MAX_KEYS]:
        for algorithm in algorithms if isinstance(entry, dict) and _for_signatures(entry) else ():
            if _fits(entry, algorithm):
                try:
                    found[str(entry["kid"]), algorithm] = jwt.PyJWK(entry, algorithm)
                except (jwt.PyJWTError, ValueError, TypeError, KeyError) as error:
                    logger.warning("a key of the issuer cannot be read: %s", type(error).__name__)
    return found


def long_enough(key: jwt.PyJWK) -> bool:
    """Whether a key is as long as its algorithm needs; no signature by a shorter one holds."""
    return key.Algorithm.check_key_length(key.key) is None


def _for_signatures(entry: dict[str, object]) -> bool:
    named = isinstance(entry.get("kid"), str) and bool(entry["kid"])
    operations = entry.get("key_ops", ["verify"])
    verifies = isinstance(operations, list) and "verify" in operations
    return named and verifies and entry.get("use", "sig") == "sig" and "d" not in entry


def _fits(entry: dict[str, object], algorithm: str) -> bool:
    kind, curve = FAMILIES[algorithm]
    return (
        entry.get("kty") == kind
        and (curve is None or entry.get("crv") == curve)
        and entry.get("alg", algorithm) == algorithm
    )

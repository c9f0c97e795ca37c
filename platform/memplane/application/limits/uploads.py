"""How much of requests' bodies may be held at a time: of one key, from one address, and in all."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address

from memplane.domain.errors import Busy, UploadsLimited

UNFINISHED = 65_536
"""Bytes that an unfinished body counts at least: the buffers of its connection."""


@dataclass(frozen=True, slots=True)
class UploadLimits:
    """Bytes of bodies that are held at a time; 0: no limit.

    Attributes:
        key: of one key.
        address: from one address.
        total: in all.
        seconds: in which each body has to arrive.
    """

    key: int
    address: int
    total: int
    seconds: float


class Upload:
    """One body: the bytes that it holds of each limit."""

    def __init__(self, uploads: "Uploads", shares: tuple[tuple[object, int], ...]) -> None:
        self._uploads = uploads
        self._shares = shares
        self._held = 0

    def hold(self, received: int, *, unfinished: bool) -> None:
        """So many bytes have been received.

        Raises:
            UploadsLimited: the key, or the address, has too much under way.
            Busy: the server has.
        """
        wanted = max(received, UNFINISHED) if unfinished else received
        self._uploads.move(self._shares, wanted - self._held)
        self._held = wanted

    def release(self) -> None:
        """Its request is answered."""
        self._uploads.move(self._shares, -self._held)
        self._held = 0


class Uploads:
    """Counts the bytes of bodies from their arrival until their requests are answered."""

    def __init__(self, limits: UploadLimits) -> None:
        self._limits = limits
        self._held: Counter[object] = Counter()

    @property
    def seconds(self) -> float:
        """Seconds in which a body has to arrive."""
        return self._limits.seconds

    @property
    def bytes_held(self) -> int:
        """Bytes that are held now."""
        return self._held[None]

    @contextmanager
    def upload(self, key: tuple[str, str], address: str) -> Iterator[Upload]:
        """Count a body for as long as its request is under way."""
        limits = self._limits
        upload = Upload(self, ((None, limits.total), (key, limits.key), (network_of(address), limits.address)))
        try:
            yield upload
        finally:
            upload.release()

    def move(self, shares: tuple[tuple[object, int], ...], more: int) -> None:
        """Add to what is held, or give back.

        Raises:
            UploadsLimited, Busy: there is no room; nothing was added.
        """
        for name, most in shares if more > 0 else ():
            if 0 < most < self._held[name] + more:
                raise _refusal(name, most)
        for name, _ in shares:
            self._held[name] += more
            if not self._held[name]:
                del self._held[name]


def _refusal(name: object, most: int) -> Busy | UploadsLimited:
    if name is None:
        return Busy("the server holds as many request bodies as it may; try again")
    whose = "key" if isinstance(name, tuple) else "address"
    return UploadsLimited(
        f"the requests of this {whose} under way may hold {most} bytes of bodies; finish some, or send smaller ones",
        retry_after=1,
    )


def network_of(address: str) -> str:
    """Whom an address stands for: itself, or for IPv6 the network of 64 bits, in which one host has all addresses."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(found, IPv6Address):
        return str(found)
    return str(found.ipv4_mapped or IPv6Address(int(found) >> 64 << 64))

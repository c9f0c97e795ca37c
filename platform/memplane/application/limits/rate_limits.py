"""How often a key may ask: a bucket of tokens that refills, and a refusal that costs next to nothing."""

import asyncio
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from memplane.application.ports import Buckets
from memplane.application.records import Draw, Rate
from memplane.domain.errors import RateLimitExceeded
from memplane.domain.identity.principal import Principal

BYTES_PER_TOKEN = 8_192
PORTION = 10
"""Tokens that a process takes at once: asking the shared bucket for each request would cost more than the counting."""
MOST_KEYS = 10_000


def cost_of(body_bytes: int) -> int:
    """Tokens of a request: one, and one more for each 8 KiB of its body, which is what a batch or a long text is."""
    return 1 + body_bytes // BYTES_PER_TOKEN


@dataclass(slots=True)
class _Purse:
    """What this process holds of a key's tokens, and what it last saw in the shared bucket."""

    held: int = 0
    level: float = math.inf
    seen: float = 0.0
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class RateLimits:
    """Lets each key take tokens at its rate, over every process that shares the buckets.

    A process takes a portion in advance, so all together may give at most a portion for each process more than the rate
    allows at one moment; over any longer time the rate holds exactly.

    Args:
        buckets: where the tokens are counted.
        rate: of every key; ``None`` for no limit.
        elapsed: seconds that went by since some moment.
    """

    def __init__(self, buckets: Buckets, rate: Rate | None, elapsed: Callable[[], float] = time.monotonic) -> None:
        self._buckets = buckets
        self._rate = rate
        self._elapsed = elapsed
        self._purses: dict[tuple[str, str], _Purse] = {}

    async def take(self, caller: Principal, tokens: int, before: int = 0) -> None:
        """Take tokens of the caller's key; more than the bucket holds count as all that it holds.

        Args:
            caller: whose key.
            tokens: how many.
            before: how many were taken for the same request before.

        Raises:
            RateLimited: there are not so many; the error says after how many seconds there are.
            StorageUnavailable: the buckets cannot be reached.
        """
        if self._rate is None:
            return
        purse = self._purse(caller)
        needed = min(before + tokens, self._rate.burst) - min(before, self._rate.burst)
        if purse.held >= needed:
            purse.held -= needed
            return
        async with purse.turn:  # one asks for all that wait
            while purse.held < needed:  # what came may have been taken by others meanwhile
                await self._fill(purse, caller, needed, self._rate)
            purse.held -= needed

    def foretell(self, caller: Principal, tokens: int) -> None:
        """Refuse what :meth:`take` would refuse without asking the shared bucket; nothing is taken.

        Raises:
            RateLimited: there cannot be so many tokens yet.
        """
        purse = self._purses.get((caller.tenant, caller.key_id))
        if self._rate is not None and purse is not None:
            self._refuse_early(purse, min(tokens, self._rate.burst) - purse.held, self._rate)

    def _refuse_early(self, purse: _Purse, missing: float, rate: Rate) -> None:
        """Others can only have taken since: what cannot be there is not asked for."""
        level = purse.level + rate.per_second * (self._elapsed() - purse.seen)
        if level < missing:
            raise _refused(missing - level, rate)

    def _purse(self, caller: Principal) -> _Purse:
        name = (caller.tenant, caller.key_id)
        found = self._purses.get(name)
        if found is None:
            if len(self._purses) >= MOST_KEYS:  # the one that came first; what it held is only lost to its key
                del self._purses[next(iter(self._purses))]
            found = self._purses[name] = _Purse()
        return found

    async def _fill(self, purse: _Purse, caller: Principal, needed: int, rate: Rate) -> None:
        missing = needed - purse.held
        self._refuse_early(purse, missing, rate)
        # a tenth of a second's worth at most: what is given at once is also asked at once, and others feel it
        wanted = max(missing, min(PORTION, rate.burst // PORTION, int(rate.per_second / PORTION)))
        drawn = await self._buckets.draw(Draw(caller.tenant, caller.key_id, missing, wanted), rate)
        purse.level, purse.seen = drawn.left, self._elapsed()
        if drawn.granted < missing:
            raise _refused(missing - drawn.left, rate)
        purse.held += drawn.granted


def _refused(lacking: float, rate: Rate) -> RateLimitExceeded:
    seconds = max(1, math.ceil(lacking / rate.per_second))
    return RateLimitExceeded(
        f"this key asks too often: it may take {rate.per_second:g} tokens a second and {rate.burst} at once; try again"
        f" in {seconds} s",
        retry_after=seconds,
    )

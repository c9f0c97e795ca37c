"""Buckets of tokens in this process: a file is one person's, and few processes use it."""

import time
from collections.abc import Callable

from memplane.application.records import Draw, Rate, TokenGrant


class LocalBuckets:
    """One bucket for each key, forgotten when the process ends."""

    def __init__(self, elapsed: Callable[[], float] = time.monotonic) -> None:
        self._elapsed = elapsed
        self._kept: dict[tuple[str, str], tuple[float, float]] = {}

    def draw(self, draw: Draw, rate: Rate) -> TokenGrant:
        """What is wanted, or what is needed, or nothing."""
        name, now = (draw.tenant, draw.key_id), self._elapsed()
        tokens, refilled = self._kept.get(name, (float(rate.burst), now))
        level = min(float(rate.burst), tokens + rate.per_second * (now - refilled))
        granted = next((asked for asked in (draw.wanted, draw.needed) if level >= asked), 0)
        self._kept[name] = (level - granted, now)
        return TokenGrant(granted, level - granted)

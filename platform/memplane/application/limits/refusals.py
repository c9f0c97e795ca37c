"""Callers that were refused a moment ago for asking too often: they are refused again before any work is done."""

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from memplane.domain.identity.principal import Principal

KNOWN_SECONDS = 1.0
"""As long a credential need not be looked up again to be refused; to be let in, it is looked up each time."""
MOST_KNOWN = 10_000


@dataclass(frozen=True, slots=True)
class _Known:
    caller: Principal
    until: float


class Refusals:
    """Knows whose credentials held when their requests were refused.

    Only the whole credential counts, not the id that anybody may write into one: else a stranger could learn how much
    a key is used.

    Args:
        elapsed: seconds that went by since some moment.
    """

    def __init__(self, elapsed: Callable[[], float] = time.monotonic) -> None:
        self._elapsed = elapsed
        self._known: OrderedDict[bytes, _Known] = OrderedDict()

    def note(self, credential: str, caller: Principal) -> None:
        """The request of a caller, by a credential that holds, is refused."""
        name = _digest(credential)
        self._known[name] = _Known(caller, self._elapsed() + KNOWN_SECONDS)
        self._known.move_to_end(name)
        if len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)

    def find_caller(self, credential: str) -> Principal | None:
        """The caller of a credential that was refused a moment ago."""
        if not self._known:
            return None
        found = self._known.get(_digest(credential))
        return found.caller if found is not None and self._elapsed() < found.until else None


def _digest(credential: str) -> bytes:
    """What is kept in the place of a credential."""
    return hashlib.sha256(credential.encode("utf-8", "surrogatepass")).digest()

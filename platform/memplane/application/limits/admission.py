"""Which request is worked on next: tenants in turn, so that whoever sends many at once waits for itself."""

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from memplane.domain.errors import StorageUnavailable

LONG_SECONDS = 0.1
"""As long a request waits for another of the same tenant: only one that takes long has others beside it."""
REMEMBERED_SECONDS = 60.0
"""As long after its last request a tenant counts as one of those that there are."""


@dataclass(slots=True)
class _Line:
    """A tenant's requests: those at work, those that wait; when one came last, and began; which turn was its last."""

    at_work: int = 0
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)
    came: float = 0.0
    begun: float = 0.0
    turn: int = 0


class Admission:
    """Lets a bounded number of requests be worked on, and takes those that wait from the tenants in turn.

    The next turn is that of the tenant who had none for longest: one that asks now and then is not behind one that
    always asks. Alone, a tenant has all places but a share, which is left for whoever comes next. Beside others it has
    one, for what is at work when another comes slows that one down; and more, up to its share, when that takes long, so
    that its short requests need not wait for it.

    Args:
        places: requests that are worked on at a time.
        share: those of one tenant while there are others; 0: nobody waits for a turn.
        patience: seconds that one waits for its turn.
        elapsed: seconds that went by since some moment.
    """

    def __init__(self, places: int, share: int, patience: float, elapsed: Callable[[], float] = time.monotonic) -> None:
        self._places = places
        self._share = share
        self._patience = patience
        self._elapsed = elapsed
        self._lines: OrderedDict[str, _Line] = OrderedDict()
        self._at_work = 0
        self._waiting = 0
        self._turns = 0
        self._look: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def turn(self, tenant: str) -> AsyncIterator[None]:
        """A place for a tenant's request, for as long as it is worked on.

        Raises:
            StorageUnavailable: there was none in time.
        """
        leave = await self.enter(tenant)
        try:
            yield
        finally:
            leave()

    async def enter(self, tenant: str) -> Callable[[], None]:
        """Take a place for a tenant's request; what it answers gives the place back, and is called once.

        Raises:
            StorageUnavailable: there was none in time.
        """
        if not self._share:
            return lambda: None
        line = self._line(tenant)
        if not line.waiting and self._has_room(line):
            self._begin(line)
        else:
            await self._wait(line)
        return lambda: self._end(line)

    def _line(self, tenant: str) -> _Line:
        now = self._elapsed()
        line = self._lines.setdefault(tenant, _Line())
        line.came = now
        self._lines.move_to_end(tenant)
        while (oldest := next(iter(self._lines.values()))).came + REMEMBERED_SECONDS <= now:
            if oldest.at_work or oldest.waiting:
                break
            self._lines.popitem(last=False)
        return line

    def _has_room(self, line: _Line) -> bool:
        if self._at_work >= self._places:
            return False
        if len(self._lines) == 1:
            return line.at_work < max(self._share, self._places - self._share)
        takes_long = self._elapsed() - line.begun >= LONG_SECONDS
        return line.at_work < (self._share if takes_long else 1)

    def _begin(self, line: _Line) -> None:
        self._turns += 1
        line.turn = self._turns
        line.begun = self._elapsed()
        line.at_work += 1
        self._at_work += 1

    async def _wait(self, line: _Line) -> None:
        """Wait for a place, which is then taken."""
        called = asyncio.get_running_loop().create_future()
        line.waiting.append(called)
        self._waiting += 1
        self._look_later()
        try:
            async with asyncio.timeout(self._patience):
                await called
        except BaseException as reason:
            if called.done() and not called.cancelled():  # called and gone at the same moment
                self._end(line)
            elif called in line.waiting:
                line.waiting.remove(called)
            if isinstance(reason, TimeoutError):
                raise StorageUnavailable("the server has more to do than it can; try again") from reason
            raise
        finally:
            self._waiting -= 1

    def _end(self, line: _Line) -> None:
        """Give a place back."""
        line.at_work -= 1
        self._at_work -= 1
        self._call()

    def _call(self) -> None:
        """Call those for whom there is room now."""
        while ready := [each for each in self._lines.values() if each.waiting and self._has_room(each)]:
            chosen = min(ready, key=lambda each: each.turn)
            called = chosen.waiting.popleft()
            if not called.done():
                self._begin(chosen)
                called.set_result(None)

    def _look_later(self) -> None:
        """Look before long whether what is at work has taken long by then; as often as anybody waits."""
        if self._look is None:
            self._look = asyncio.get_running_loop().call_later(LONG_SECONDS / 2, self._looked)

    def _looked(self) -> None:
        self._look = None
        self._call()
        if self._waiting:
            self._look_later()

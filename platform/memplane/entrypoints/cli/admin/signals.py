"""Being told to stop, at moments when stopping leaves nothing behind."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

STOPPING = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """SIGINT and SIGTERM as `KeyboardInterrupt`, kept back while something is half done; a second one comes through."""

    def __init__(self) -> None:
        self._kept_back = False
        self._told = False

    @classmethod
    @contextmanager
    def intercept(cls) -> Iterator["Interrupts"]:
        """Take both signals over, until the end of the block. Only for the main thread."""
        taken = cls()
        before = {number: signal.signal(number, taken._tell) for number in STOPPING}
        try:
            yield taken
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def kept_back(self) -> Iterator[None]:
        """Finish the block before giving way to a signal.

        Raises:
            KeyboardInterrupt: at the end of the block, if a signal came during it.
        """
        self._kept_back = True
        try:
            yield
        finally:
            self._kept_back = False
        if self._told:
            raise KeyboardInterrupt

    def _tell(self, _number: int, _frame: FrameType | None) -> None:
        if self._kept_back and not self._told:
            self._told = True
            return
        raise KeyboardInterrupt

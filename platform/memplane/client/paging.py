"""Lists that are fetched page by page."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

PAGE_SIZE = 100
T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


class Page(Protocol[T_co]):
    """What a list answers: some items, and where the next ones begin."""

    @property
    def items(self) -> Sequence[T_co]:
        """The items of the page."""
        ...

    @property
    def next(self) -> str | None:
        """Cursor of the next page; ``None`` on the last one."""
        ...


async def each_of(fetch: Callable[[str | None], Awaitable[Page[T]]]) -> AsyncGenerator[T, None]:
    """Every item of a list; a page is fetched when the one before is used up.

    Args:
        fetch: asks for the page that a cursor names, the first one without.
    """
    cursor: str | None = None
    while True:
        page = await fetch(cursor)
        for item in page.items:
            yield item
        if page.next is None:
            return
        cursor = page.next

"""What was answered to requests that may be sent again."""

from datetime import datetime
from typing import Protocol

from memplane.application.records import StoredAnswer


class Answers(Protocol):
    """Answers to requests with an idempotency key, within a transaction."""

    async def find_answer(self, key_id: str, name: str) -> StoredAnswer | None:
        """The answer of the request that took an idempotency key, or none."""
        ...

    async def keep(
        self, key_id: str, name: str, answered: StoredAnswer, now: datetime, user_id: str | None = None
    ) -> bool:
        """Store what a request was and what it is answered; False when another request took the key.

        Args:
            key_id: whose request it was.
            name: its idempotency key.
            answered: what to keep.
            now: when.
            user_id: of whom the answer tells; '' for nobody, ``None`` where it may be of several.

        Another transaction with the same key waits here until this one ends.
        """
        ...

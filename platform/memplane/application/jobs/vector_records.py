"""What the jobs that work on vectors hand to storage, and what it hands back."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from memplane.domain.memory.memory import MemoryText


class Kind(StrEnum):
    """What has vectors."""

    MEMORIES = "memories"
    TURNS = "turns"


@dataclass(frozen=True, slots=True)
class Text:
    """A text that is embedded.

    Attributes:
        id: of the memory or turn.
        user_id: whose it is.
        version: of the memory, which another text would have changed; 0 for a turn, which is never rewritten.
        said: its words.
    """

    id: UUID
    user_id: str
    version: int
    said: MemoryText | str

    def embeddable(self) -> str:
        """What the model is given."""
        return self.said if isinstance(self.said, str) else self.said.embeddable()


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a change of the embedding model has come, in the phase that it is in.

    Attributes:
        kind: what is being worked on; ``None`` when the phase is through with all.
        after: the last one that was looked at, or none.
        done: how many vectors were stored, or removed.
        total: how many texts there were when it began.
    """

    kind: Kind | None = Kind.MEMORIES
    after: UUID | None = None
    done: int = 0
    total: int = 0

    def as_json(self) -> dict[str, object]:
        """As it is recorded."""
        after = None if self.after is None else str(self.after)
        return {"kind": self.kind and str(self.kind), "after": after, "done": self.done, "total": self.total}

    @classmethod
    def of(cls, value: object) -> "Progress":
        """As it was recorded."""
        if not isinstance(value, Mapping):
            return cls()
        kind, after = value.get("kind"), value.get("after")
        return cls(
            None if kind is None else Kind(kind), None if after is None else UUID(after), value["done"], value["total"]
        )

    def through(self) -> "Progress":
        """The same at the beginning of what comes next."""
        following = Kind.TURNS if self.kind is Kind.MEMORIES else None
        return Progress(following, None, self.done, self.total)

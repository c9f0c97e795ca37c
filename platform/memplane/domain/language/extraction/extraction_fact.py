"""What a rule finds in a message, and the piece of the message that it looks at."""

from dataclasses import dataclass
from datetime import datetime

from memplane.domain.memory.memory import MemoryType


@dataclass(frozen=True, slots=True)
class ExtractedFact:
    """One fact drawn from a message.

    Attributes:
        content: one sentence in the third person that stands by itself.
        category: the category that it belongs to.
        type: semantic, or episodic for what happened.
        importance: 1…5.
        confidence: 0…1.
        rule: the stable name of the rule that found it.
        field: the profile field that it sets, or none.
        value: that field's value.
        retracts: whether it takes back something that was true.
        event_time: when it happened or will happen, where the message says so.
    """

    content: str
    category: str
    type: MemoryType
    importance: int
    confidence: float
    rule: str
    field: str | None = None
    value: str | None = None
    retracts: bool = False
    event_time: datetime | None = None


@dataclass(frozen=True, slots=True)
class Omissions:
    """What the limits of extraction leave out of a message.

    Attributes:
        facts: beyond the most that are stored of a message.
        statements: not read: those after the first 60, and sentences of more than 600 characters.
        characters: not read: those after the first 4 000, from the last sentence that ends before on.
    """

    facts: int = 0
    statements: int = 0
    characters: int = 0

    @property
    def is_unread(self) -> bool:
        """Whether a part of the message was not read."""
        return bool(self.statements or self.characters)

    def __or__(self, other: "Omissions") -> "Omissions":
        """Of two readings of one message the larger numbers: what the one leaves out, the other may leave out too."""
        return Omissions(
            max(self.facts, other.facts),
            max(self.statements, other.statements),
            max(self.characters, other.characters),
        )


@dataclass(frozen=True, slots=True)
class Clause:
    """One statement of the person who speaks.

    Attributes:
        text: the words, contractions written out, nothing before the subject.
        lead: a time that stood before the subject, or nothing.
        follows: whether it is not the first clause of its sentence.
        sentence: the sentence that it stands in.
    """

    text: str
    lead: str = ""
    follows: bool = False
    sentence: str = ""


@dataclass(frozen=True, slots=True)
class StatementContext:
    """Who tells it, and when.

    Attributes:
        subject: how the person is named: a name, or 'The user'.
        when: when the message was sent, if known.
    """

    subject: str
    when: datetime | None

    @property
    def possessive(self) -> str:
        """The genitive of the subject."""
        return f"{self.subject}'s"

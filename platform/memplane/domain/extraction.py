"""Facts from a chat message by rule, without a model: precise rather than complete."""

from datetime import datetime
from itertools import islice

from memplane.domain.extraction_fact import Extracted, Telling
from memplane.domain.extraction_mine import from_mine
from memplane.domain.extraction_rules import from_statement
from memplane.domain.extraction_text import clauses, doubtful, other_voice, own_words

__all__ = ["Extracted", "extract"]

NOBODY = "The user"
"""How a person is named whose name is not known."""

MOST = 60
"""How many statements of a message are looked at."""


def extract(text: str, *, speaker: str | None = None, when: datetime | None = None, limit: int = 3) -> list[Extracted]:
    """The facts that a message states about its author.

    Only the first 60 statements in the first 4 000 characters are read. A question, a supposition, a quotation,
    pasted text and a request state nothing.

    Args:
        text: the message.
        speaker: its author's name, if known; it becomes the subject of each fact.
        when: when it was sent; relative dates are resolved against it, and left out without it.
        limit: the most facts, lasting and specific ones first.
    """
    telling = Telling(speaker or NOBODY, when)
    found: dict[str, Extracted] = {}
    words = own_words(text)
    for clause in islice(clauses(words), MOST):
        fact = from_statement(clause, telling) or from_mine(clause, telling)
        if fact and not doubtful(clause):
            found.setdefault(fact.content, fact)
    if not found or other_voice(words):
        return []
    best = sorted(found.values(), key=lambda fact: (-fact.importance, -fact.confidence, -min(len(fact.content), 120)))
    return best[: max(limit, 0)]

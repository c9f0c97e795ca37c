"""Facts from a chat message by rule, without a model: precise rather than complete."""

import re
from collections.abc import Callable, Collection
from datetime import datetime
from itertools import islice

from memplane.domain.language.extraction.extraction_fact import ExtractedFact, Omissions, StatementContext
from memplane.domain.language.extraction.extraction_mine import from_mine
from memplane.domain.language.extraction.extraction_rules import from_statement
from memplane.domain.language.extraction.extraction_text import (
    beginning,
    clauses,
    doubtful,
    doubtful_words,
    other_voice,
    overlong,
    own_words,
    plain_sentences,
)
from memplane.domain.language.profile_statements import spoken_fields
from memplane.domain.memory.memory import MemoryType

__all__ = ["ExtractedFact", "Omissions", "claimed", "extract"]

NOBODY = "The user"
"""How a person is named whose name is not known."""

MOST = 60
"""How many statements of a message are looked at."""


def extract(
    text: str,
    *,
    speaker: str | None = None,
    when: datetime | None = None,
    limit: int = 3,
    failing: Callable[[Exception], None] | None = None,
    omitting: Callable[[Omissions], None] | None = None,
) -> list[ExtractedFact]:
    """The facts that a message states about its author.

    Only the first 60 statements in the first 4 000 characters are read. A question, a supposition, a quotation,
    pasted text and a request state nothing.

    Args:
        text: the message.
        speaker: its author's name, if known; it becomes the subject of each fact.
        when: when it was sent; relative dates are resolved against it, and left out without it.
        limit: the most facts, lasting and specific ones first.
        failing: gets the error of a statement that cannot be read, which costs no other one; without it, it is raised.
        omitting: gets what was not read of the message; the facts beyond the limit are not among it.
    """
    telling = StatementContext(speaker or NOBODY, when)
    found: dict[str, ExtractedFact] = {}
    words = own_words(text)
    stated = clauses(words)
    for clause in islice(stated, MOST):
        try:
            fact = from_statement(clause, telling) or from_mine(clause, telling)
        except Exception as error:
            if failing is None:
                raise
            failing(error)
            continue
        if fact and not doubtful(clause):
            found.setdefault(fact.content, fact)
    if omitting is not None:
        unread = sum(1 for _ in stated) + overlong(words)
        omitting(Omissions(statements=unread, characters=len(text) - len(beginning(text))))
    if not found or other_voice(words):
        return []
    best = sorted(found.values(), key=lambda fact: (-fact.importance, -fact.confidence, -min(len(fact.content), 120)))
    return best[: max(limit, 0)]


_WISH = re.compile(
    r"\b(?:(?:I|we)(?:'d|’d| would) (?:like|love|prefer|rather)"
    r"|should (?=be (?:called|addressed|answered|known|named)))\b",
    re.IGNORECASE,
)
"""What sounds like a supposition, and asks for something."""
_SPOKEN_AS = {"language": "preferred language"}


def claimed(
    text: str,
    fields: Collection[str],
    *,
    speaker: str | None = None,
    when: datetime | None = None,
    omitting: Callable[[Omissions], None] | None = None,
) -> list[ExtractedFact]:
    """The fields of the profile that a message gives its author a value for, each in a sentence of its own.

    They are read as in any text, so that a sensitive field needs no rule for the sentence around it. The category is
    left to the caller.

    Args:
        text: the message.
        fields: the fields that are looked for.
        speaker: its author's name, if known.
        when: when it was sent.
        omitting: gets what was not read of the message.
    """
    spoken = plain_sentences(text)
    if omitting is not None:
        omitting(Omissions(statements=max(len(spoken) - MOST, 0), characters=len(text) - len(beginning(text))))
    found: dict[tuple[str, str], ExtractedFact] = {}
    for sentence in islice(spoken, MOST):
        asks = sentence.rstrip("\"') ").endswith("?")
        if asks or '"' in sentence or doubtful_words(_WISH.sub("", sentence)):
            continue
        for stated in spoken_fields(sentence, fields, when.year if when else None):
            named = _SPOKEN_AS.get(stated.field, stated.field.replace("_", " "))
            content = f"{speaker or NOBODY}'s {named} {'are' if named.endswith('s') else 'is'} {stated.value}."
            found.setdefault(
                stated.key,
                ExtractedFact(
                    content, "", MemoryType.SEMANTIC, 4, 0.9, f"identity.{stated.field}", stated.field, stated.value
                ),
            )
    return [] if not found or other_voice("\n".join(spoken)) else list(found.values())

"""How a sentence with 'I' begins from which a fact is drawn, and what it is about."""

import re
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Frame:
    """One way to begin a sentence after 'I'.

    Attributes:
        rule: the name of the rule.
        pattern: what the words after 'I' must match from their start.
        category: the category of the fact.
        importance: 1…5.
        confidence: 0…1.
        tense: present, past or future: past makes it episodic and its dates lie back;
            past-state does not conjugate, liking wants something that anyone knows.
        needs: 'date', 'name', 'either' of them, or nothing.
        least: how many words with content must follow the first.
        field: the profile field whose value is the pattern's group ``value``.
        retracts: whether it takes something back.
    """

    rule: str
    pattern: re.Pattern[str]
    category: str
    importance: int = 3
    confidence: float = 0.8
    tense: str = "present"
    needs: str = ""
    least: int = 1
    field: str | None = None
    retracts: bool = False


def frame(head: str, pattern: str, **more: Any) -> Frame:  # noqa: ANN401 - whatever else a frame has
    """A frame from its rule, category, importance and confidence in one string, and its pattern.

    Args:
        head: the four, a space between.
        pattern: the regular expression of the words after 'I'.
        more: the other attributes, where they differ from the usual.
    """
    rule, category, importance, confidence = head.split(" ")
    return Frame(rule, re.compile(rf"\A(?:{pattern})"), category, int(importance), float(confidence), **more)

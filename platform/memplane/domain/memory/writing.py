"""Writing constraints: what a memory's text must look like, by type."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from memplane.domain.errors import LimitExceeded, WritingConstraintViolated
from memplane.domain.language.text import normalise
from memplane.domain.language.writing_style import (
    QUOTED,
    first_person,
    fronted_pronoun,
    is_english,
    is_fragment,
    not_past,
    said_of_user,
    states,
    unquoted,
    with_full_stop,
)
from memplane.domain.memory.memory import MemoryText, MemoryType
from memplane.domain.policy.policy import TypeWriting, WritingRules

_ABBREVIATION = re.compile(
    r"(?:\b(?:mr|mrs|ms|mx|dr|prof|rev|capt|lt|sgt|hon|ste?|mt|ft|vs|etc|e\.g|i\.e|approx|inc|ltd|jr|sr)|\b[A-Za-z])\.$",
    re.IGNORECASE,
)
_LONGEST = 16
"""More than any abbreviation with what closes after it: a longer look back would make long texts slow."""
_BOUNDARY = re.compile(r"(?<=[.!?。！？…])[\"'”’)\]]*\s+|\n+")
_FIRST_WORD = re.compile(rf"\A[^\w{QUOTED}]*(?P<word>[^\W\d_]+(?:['’][^\W\d_]+)?)")
_STEP = re.compile(r"^\s*(?:\d+[.)]|[-*•])\s*")


def sentences(text: str) -> list[str]:
    """The sentences of a text, trimmed; common abbreviations and single initials do not end one."""
    found: list[str] = []
    start = 0
    for boundary in _BOUNDARY.finditer(text):
        before = text[max(start, boundary.start() - _LONGEST) : boundary.start()]
        if "\n" not in boundary.group() and _ABBREVIATION.search(before.rstrip("\"'”’)] ")):
            continue
        found.append(text[start : boundary.end()].strip())
        start = boundary.end()
    found.append(text[start:].strip())
    return [sentence for sentence in found if sentence]


class Style(Enum):
    """Which rules of style a text is held to; limits hold for every text."""

    FREE = "none: a person's own words, an import, what is stored already"
    SUBJECTS = "no pronoun as a subject, and steps: what background work writes"
    FULL = "all: what an agent writes"


@dataclass(frozen=True, slots=True)
class StyleWarning:
    """A rule of style that a text breaks and is stored all the same.

    Attributes:
        rule: the rule's name.
        words: the words that break it.
        detail: what to do.
    """

    rule: str
    words: str
    detail: str


def constrain(text: MemoryText, kind: MemoryType, rules: WritingRules, style: Style = Style.SUBJECTS) -> MemoryText:
    """Text as the rules of its type want it: normalised, within limits, the surplus moved to the narrative.

    Raises:
        InvalidText: a part is empty or cannot be stored.
        LimitExceeded: a part is longer than any memory may be, or a list has too many items.
        WritingConstraintViolated: the text breaks a rule of style, which is named.
    """
    clean = _normalised(text, rules)
    rule = rules.types.get(kind)
    if rule is None:
        return clean
    if rule.numbered_steps:
        return _with_steps(clean, rule, style)
    if rule.refuse_pronoun_subjects and style is not Style.FREE:
        _refuse_pronouns(clean.content, rules.pronouns)
    short = _trimmed(clean, rule)
    if style is Style.FULL and is_english(short.content, short.lang):
        # what goes on in the narrative is not closed: its words are read as one sentence
        return _styled(short, rule, whole=short.content == clean.content)
    return short


def require_no_user(text: MemoryText) -> None:
    """What is about no user must not say what the user does: in another user's recall it would be said of that one.

    Raises:
        WritingConstraintViolated: a sentence is about the user.
    """
    if not is_english(text.content, text.lang):
        return
    for sentence in sentences(unquoted(text.content)):
        if words := said_of_user(sentence):
            raise WritingConstraintViolated(
                f"content: '{words}' speaks of the user, and without a user_id it would be said of every user; name "
                "the user_id, or say whom it is about",
                field="content",
                rule="about_no_user",
                words=words,
            )


def style_warnings(text: MemoryText, kind: MemoryType, rules: WritingRules) -> tuple[StyleWarning, ...]:
    """What a text is advised of, and not refused for."""
    rule = rules.types.get(kind)
    if rule is None or not rule.past_tense or not is_english(text.content, text.lang):
        return ()
    found = (not_past(sentence) for sentence in sentences(unquoted(text.content)))
    advice = "an episode tells what happened: use the past tense (for example 'The user booked …')"
    return tuple(
        StyleWarning("past_tense", words, f"content: '{words}' is not in the past; {advice}")
        for words in found
        if words
    )


def _styled(text: MemoryText, rule: TypeWriting, *, whole: bool) -> MemoryText:
    """A text in the third person and in whole sentences, closed by the full stop that it lacks if it is all there.

    Raises:
        WritingConstraintViolated: it is not.
    """
    masked = unquoted(text.content)
    found = sentences(masked)
    for sentence in found if rule.third_person else ():
        if words := fronted_pronoun(sentence):
            raise _pronoun(words)
        if words := first_person(sentence):
            raise WritingConstraintViolated(
                f"content: '{words}' speaks in the first person; a memory stands by itself, so name who is meant (for "
                "example 'The user …'), or put words that somebody said in quotation marks",
                field="content",
                rule="first_person",
                words=words,
            )
    if not rule.complete_sentences:
        return text
    if len(found) == 1 and is_fragment(masked):
        raise WritingConstraintViolated(
            f"content: '{text.content}' is no sentence; say what is so of it (for example 'The user drinks tea.')",
            field="content",
            rule="complete_sentence",
            words=text.content,
        )
    ended = with_full_stop(text.content) if whole else text.content
    return text if len(ended) > rule.max_chars else replace(text, content=ended)


def _normalised(text: MemoryText, rules: WritingRules) -> MemoryText:
    def one(value: str | None, field: str, limit: int = rules.max_text_chars) -> str | None:
        if value is None or (field != "content" and not value.strip()):
            return None
        if len(value) > limit:
            raise LimitExceeded(f"{field}: {len(value)} characters, at most {limit}", field=field, limit=limit)
        return normalise(value, field)

    def several(values: tuple[str, ...], field: str) -> tuple[str, ...]:
        if not values:
            return values
        if len(values) > rules.max_list_items:
            raise LimitExceeded(f"{field}: {len(values)} items, at most {rules.max_list_items}", field=field)
        named = ((one(value, f"{field}[{i}]")) for i, value in enumerate(values))
        return tuple(value for value in named if value is not None)

    return MemoryText(
        content=one(text.content, "content") or "",
        title=one(text.title, "title", rules.max_title_chars),
        narrative=one(text.narrative, "narrative"),
        facts=several(text.facts, "facts"),
        steps=several(text.steps, "steps"),
        tags=tuple(dict.fromkeys(tag.casefold() for tag in several(text.tags, "tags"))),
        related_files=several(text.related_files, "related_files"),
        lang=text.lang,
    )


def _refuse_pronouns(content: str, pronouns: frozenset[str]) -> None:
    for sentence in sentences(unquoted(content)):
        first = _FIRST_WORD.match(sentence)
        if first and first["word"].replace("’", "'").lower() in pronouns:
            raise _pronoun(first["word"])


def _pronoun(words: str) -> WritingConstraintViolated:
    return WritingConstraintViolated(
        f"content: '{words}' is the subject of a sentence; a memory stands by itself, so name the person or thing (for "
        "example 'The user …')",
        field="content",
        rule="pronoun_subject",
        words=words,
    )


def _trimmed(text: MemoryText, rule: TypeWriting) -> MemoryText:
    kept: list[str] = []
    rest = sentences(text.content)
    while rest and len(kept) < rule.max_sentences and len(" ".join([*kept, rest[0]])) <= rule.max_chars:
        kept.append(rest.pop(0))
    if not kept:  # one sentence that is too long: cut at a word, keep the whole in the narrative
        cut = text.content[: rule.max_chars - 1]
        head = cut[: cut.rfind(" ")] if " " in cut else cut
        return replace(text, content=head.rstrip(",;:– -") + "…", narrative=_joined(text.content, text.narrative))
    if not rest:
        return text
    return replace(text, content=" ".join(kept), narrative=_joined(" ".join(rest), text.narrative))


def _joined(first: str, second: str | None) -> str:
    return f"{first}\n{second}" if second else first


def number_lines(steps: Sequence[str]) -> str:
    """Steps as numbered lines."""
    return "\n".join(f"{number}. {step}" for number, step in enumerate(steps, 1))


def _with_steps(text: MemoryText, rule: TypeWriting, style: Style) -> MemoryText:
    lines = text.steps or tuple(line for line in text.content.split("\n") if _STEP.match(line))
    steps = tuple(stripped for line in lines if (stripped := _STEP.sub("", line).strip()))
    if not steps and style is Style.FREE:
        return text
    if not steps:
        raise WritingConstraintViolated(
            "steps: a procedural memory needs numbered steps, as `steps` or as lines '1. …' in its content",
            field="steps",
            rule="numbered_steps",
        )
    if style is Style.FULL and rule.imperative_steps and is_english(" ".join(steps), text.lang):
        _refuse_statements(steps)
    longest = max(len(step) for step in steps)
    if longest > rule.max_chars:
        raise LimitExceeded(f"steps: one has {longest} characters, at most {rule.max_chars}", field="steps")
    heading = [] if text.steps else [line for line in text.content.split("\n") if line and not _STEP.match(line)]
    title = text.title or (heading[0].rstrip(":")[:200] if heading else None)
    return replace(text, title=title, content=text.content if text.steps else number_lines(steps), steps=steps)


def _refuse_statements(steps: Sequence[str]) -> None:
    for number, step in enumerate(steps, 1):
        if words := states(step):
            raise WritingConstraintViolated(
                f"steps[{number - 1}]: '{words} …' tells and orders nothing; begin each step with what to do (for "
                "example 'Open the door.')",
                field="steps",
                rule="imperative_steps",
                words=words,
                step=number,
            )

"""How something is done: steps that a person dictates, and sequences of tool runs that come again and again."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Generic, TypeVar

from memplane.domain.jobs.inference_checks import InferenceFault, claims_or_orders, is_supported, speaks
from memplane.domain.language.extraction.extraction_fact import Omissions
from memplane.domain.language.extraction.extraction_text import READ, other_voice

PROCEDURAL = "procedural"
"""The category of procedures."""
FEWEST, MOST_STEPS = 2, 20
STEP_CHARS = 300
TITLE_CHARS = 120
THREADS = 3
"""In so many conversations a sequence is found before it counts as a way of working."""
SHORTEST, LONGEST = 3, 12
"""Runs of the sequences that are looked for."""
MOST_WORKFLOWS = 3
SURE = 0.8
"""Less sure of a way of working a model may not be."""
_TOOL = re.compile(r"[\w.:/-]{1,64}")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Procedure:
    """How something is done.

    Attributes:
        title: what it is for.
        steps: what is done, one after another, in the imperative.
        rule: the stable name of the rule that found it.
    """

    title: str
    steps: tuple[str, ...]
    rule: str

    @property
    def content(self) -> str:
        """The title, and the steps as numbered lines."""
        return "\n".join([f"{self.title}:", *(f"{nth}. {step}" for nth, step in enumerate(self.steps, 1))])


_REMEMBER = re.compile(
    r"(?:please |so |ok(?:ay)?,? |hey,? )*(?:remember|save|store|note(?: down)?|memori[sz]e|keep in mind)"
    r" (?:(?:these|the following|this|the|my|our)\s+)+(?:\d+ |\w+ )?"
    r"(?:steps?|procedure|process|routine|workflow|recipe|how-?to|checklist)"
    r"(?: (?P<lead>for|to|of|on|when|about) (?P<what>[^:\n]{3,120}?))?\s*[:\n]",
    re.IGNORECASE,
)
_WAY = re.compile(
    r"(?:(?:remember,? |remember that |note that )?(?:the way|how) (?:that )?(?:we|i)"
    r"|(?:please )?(?:remember|save|store|note(?: down)?|memori[sz]e) how to)"
    r" (?P<what>[^:,.\n?]{3,80}?)(?: is| are|,)?(?: this| the following| as follows| like this)?\s*[:,]\s*"
    r"(?=\W*(?:first|1|to begin))",
    re.IGNORECASE,
)
_FROM_NOW = re.compile(
    r"(?:from now on|in (?:the )?future|going forward|from here on)[,:]? (?:please )?"
    r"(?:(?:whenever|when|every time|each time|if) (?P<what>[^:,\n]{3,120}?)|(?:to|for) (?P<aim>[^:,\n]{3,120}?))"
    r"\s*[,:]\s*"
    r"(?=(?:please )?(?:always )?(?:do(?: this| the following)?\s*:?\s*)?\W*(?:1|first|\())",
    re.IGNORECASE,
)
_TRIGGERS: Sequence[tuple[str, re.Pattern[str]]] = (
    ("procedure.remember", _REMEMBER),
    ("procedure.way", _WAY),
    ("procedure.from_now_on", _FROM_NOW),
)
_STARTS = re.compile(r"(?:^|(?<=[.!?\n]))\s*")
_NUMBER = re.compile(r"(?:(?<=^)|(?<=[\s,;:.(]))\(?(\d{1,2})[.)]\s+")
_ORDINAL = re.compile(
    r"(?:^|(?<=[\s,;.:]))(?:and )?(?:(first|firstly|to begin with)|(second|secondly|third|thirdly|fourth|fifth|sixth"
    r"|next|then|after that|afterwards|and then|lastly|finally|in the end))\b,?\s+",
    re.IGNORECASE,
)
_BULLET = re.compile(r"^[^\S\n]*[-*•]\s+", re.MULTILINE)
_SUBJECT = re.compile(
    r"(?:(?:we|i|you|one|they)(?:'ll| will| must| should| always| then| need to| have to| can)*|please|always|to|let's"
    r"|make sure (?:to|you))\s+",
    re.IGNORECASE,
)
_NO_STEP = re.compile(
    r"(?:is|are|was|were|be|the|a|an|my|our|his|her|its|it|that|this|there|he|she|because|if|so|as|which|who|what|why"
    r"|i|we|you|they|yes|no|maybe)\b",
    re.IGNORECASE,
)
_DOUBT = re.compile(
    r"\b(?:would you|could you|can you|should (?:i|we)|suppose|imagine|hypothetical\w*|pretend|for example|e\.g\."
    r"|never said|(?:he|she|they|boss|manager|docs?|email|article|page|website|tool) (?:said|says|wrote|told|reads?)"
    r"|do(?:n't| not) (?:remember|save|store|note|memori[sz]e))\b",
    re.IGNORECASE,
)
_CODE = re.compile(r"```.*?(?:```|\Z)|^[^\S\n]*>.*$", re.DOTALL | re.MULTILINE)
_STRAIGHT = str.maketrans({"’": "'", "\u2018": "'", "“": '"', "”": '"', "«": '"', "»": '"', "\t": " "})


def dictated(text: str, *, omitting: Callable[[Omissions], None] | None = None) -> Procedure | None:
    """The steps that a person tells to be remembered, in one of a few plain forms; or none.

    ``remember these steps: …``, ``the way we release is: first …, then …``, ``from now on, when X, do 1) … 2) …``.
    Read is the beginning of the message, without code and quoted lines; a quotation, a question, a supposition and
    what somebody else said are none. There are two to twenty steps, each begins with what is to be done.

    Args:
        text: the message.
        omitting: gets it when a procedure is left out because it has too many steps.
    """
    words = _CODE.sub("\n", text[:READ].translate(_STRAIGHT))
    for rule, pattern in _TRIGGERS:
        for start in _STARTS.finditer(words):
            found = pattern.match(words, start.end())
            if found is None or _doubtful(words, start.end(), found.end()):
                continue
            steps = _steps(words[found.end() :])
            if not steps or other_voice(words):
                continue
            if len(steps) <= MOST_STEPS:
                return Procedure(_title(rule, found), steps, rule)
            if omitting is not None:
                omitting(Omissions(facts=1))
    return None


def _doubtful(words: str, start: int, end: int) -> bool:
    """Whether the sentence of a trigger is a question, a supposition, or not the person's own."""
    before = words[:start].rpartition("\n")[2]
    return before.count('"') % 2 == 1 or bool(_DOUBT.search(words[max(start - 80, 0) : end]))


def _without_subject(words: str) -> str:
    found = _SUBJECT.match(words)
    return words[found.end() :] if found else words


def _title(rule: str, found: re.Match[str]) -> str:
    what = next((each for name, each in found.groupdict().items() if each and name != "lead"), None)
    what = " ".join((what or "").split()).rstrip(" ,.;:")
    if rule == "procedure.from_now_on":
        lead = "When" if found.groupdict().get("what") else "To"
        told = f"{lead} {what}"
    else:
        to = found.groupdict().get("lead") in {None, "to"}
        told = (
            f"How to {_without_subject(what)}" if what and to else f"Steps for {what}" if what else "Steps to remember"
        )
    return told if len(told) <= TITLE_CHARS else f"{told[: TITLE_CHARS - 1].rstrip()}…"


def _steps(words: str) -> tuple[str, ...]:
    """The steps at the beginning of some words: numbered, as a list, or first … then …; nothing where one is none."""
    paragraph = re.split(r"\n\s*\n", words.lstrip("\n "), maxsplit=1)[0]
    for parts in (_numbered(paragraph), _listed(paragraph), _ordered(paragraph)):
        steps = tuple(_imperative(each) for each in parts)
        if len(steps) >= FEWEST and all(steps):
            return steps
    return ()


def _numbered(words: str) -> list[str]:
    """What stands behind 1, 2, 3, …, in this order."""
    marks = _NUMBER.finditer(words)
    wanted: list[re.Match[str]] = []
    for mark in marks:
        if int(mark[1]) == len(wanted) + 1:
            wanted.append(mark)
    ends = [*(mark.start() for mark in wanted[1:]), None]
    parts = [words[mark.end() : end] for mark, end in zip(wanted, ends, strict=False)]
    return [*parts[:-1], _first_sentence(parts[-1])] if parts else []


def _listed(words: str) -> list[str]:
    """The lines of a list."""
    lines = words.split("\n")
    return [_BULLET.sub("", line) for line in lines if _BULLET.match(line)]


def _ordered(words: str) -> list[str]:
    """What stands behind first, then, finally."""
    marks = list(_ORDINAL.finditer(words))
    if not marks or not marks[0][1] or words[: marks[0].start()].strip(" ,:("):
        return []
    ends = [*(mark.start() for mark in marks[1:]), None]
    parts = [words[mark.end() : end] for mark, end in zip(marks, ends, strict=True)]
    return [*parts[:-1], _first_sentence(parts[-1])]


def _first_sentence(words: str) -> str:
    return re.split(r"(?<=[.!?])\s|\n", words.strip(), maxsplit=1)[0]


def _imperative(part: str) -> str:
    """A step in the imperative; nothing where it is none."""
    if "?" in part or part.count('"') % 2:
        return ""
    step = " ".join(part.split()).strip(" ,;:-")
    step = re.sub(r"[,;]? (?:and|then|and then)$", "", step, flags=re.IGNORECASE)
    step = _without_subject(step).strip(" .,;")
    if not 2 < len(step) <= STEP_CHARS or not step[0].isalnum() or _NO_STEP.match(step):
        return ""
    return f"{step[0].upper()}{step[1:]}."


def workflow_fault(found: Procedure, confidence: float, shown: Sequence[str]) -> InferenceFault | None:
    """What is wrong with a way of working that a model found; ``None`` for one that may be kept.

    Its steps are in the imperative, plain, neither too few nor too many nor too long; each shares a word with what
    shows it; nothing in it claims authority or tells agents to; and the model is sure.

    Args:
        found: the way of working.
        confidence: of the model, 0…1.
        shown: the words of what it rests on.
    """
    steps = found.steps
    if not 0 < len(found.title) <= TITLE_CHARS or not FEWEST <= len(steps) <= MOST_STEPS:
        return InferenceFault.LENGTH
    if not SURE <= confidence <= 1:
        return InferenceFault.UNSUPPORTED
    for text in (found.title, *steps):
        if len(text) > STEP_CHARS or not text:
            return InferenceFault.LENGTH
        if wrong := claims_or_orders(text):
            return wrong
    if any(speaks(step) or _NO_STEP.match(step) or _SUBJECT.match(step) for step in steps):
        return InferenceFault.PERSON
    return None if is_supported(steps, shown) else InferenceFault.UNSUPPORTED


@dataclass(frozen=True, slots=True)
class Run(Generic[T]):
    """One run of a tool in a conversation."""

    id: T
    thread: str
    tool: str


@dataclass(frozen=True, slots=True)
class Workflow(Generic[T]):
    """Tools that are run in one order in several conversations.

    Attributes:
        tools: in their order.
        runs: one time that they were, of each of these conversations.
    """

    tools: tuple[str, ...]
    runs: tuple[T, ...]

    @property
    def procedure(self) -> Procedure:
        """It as steps."""
        title = f"Usual order of {', '.join(self.tools)}"
        short = title if len(title) <= TITLE_CHARS else f"{title[: TITLE_CHARS - 1].rstrip(', ')}…"
        return Procedure(short, tuple(f"Run {tool}." for tool in self.tools), "procedure.tools")


def workflows(runs: Sequence[Run[T]]) -> list[Workflow[T]]:
    """Sequences of at least three runs, of two tools or more, that came in at least three conversations.

    A tool that is run several times on end counts once; the longest sequences come first, and one that is part of
    another is left out. Names that are no plain ones are of nobody's tools.

    Args:
        runs: of one user, in the order in which they were; each conversation for itself.
    """
    places: dict[tuple[str, ...], dict[str, tuple[T, ...]]] = defaultdict(dict)
    by_thread: dict[str, list[Run[T]]] = defaultdict(list)
    for run in runs:
        by_thread[run.thread].append(run)
    for thread, of_one in by_thread.items():
        for tools, ids in _sequences(of_one):
            places[tools].setdefault(thread, ids)
    often = {tools: found for tools, found in places.items() if len(found) >= THREADS}
    chosen: list[Workflow[T]] = []
    for tools in sorted(often, key=lambda each: (-len(each), -len(often[each]), each)):
        if not any(_within(tools, other.tools) for other in chosen):
            chosen.append(Workflow(tools, tuple(each for ids in often[tools].values() for each in ids)))
    return chosen[:MOST_WORKFLOWS]


def _sequences(runs: Sequence[Run[T]]) -> Iterator[tuple[tuple[str, ...], tuple[T, ...]]]:
    """Every sequence of a conversation, within the bounds of its length."""
    steps = [next(of_one) for _, of_one in groupby(runs, key=lambda run: run.tool)]
    for start in range(len(steps)):
        for end in range(start + SHORTEST, min(start + LONGEST, len(steps)) + 1):
            tools = tuple(run.tool for run in steps[start:end])
            if len(set(tools)) > 1 and all(_TOOL.fullmatch(tool) for tool in tools):
                yield tools, tuple(run.id for run in steps[start:end])


def _within(tools: Sequence[str], other: Sequence[str]) -> bool:
    size = len(tools)
    return any(tuple(other[start : start + size]) == tuple(tools) for start in range(len(other) - size + 1))

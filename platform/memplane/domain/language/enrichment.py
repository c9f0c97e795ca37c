"""What several extractors found in a text, made one: which names it mentions, and which it was thought to mention."""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

from memplane.domain.language.entities import MAX_KEY_CHARS, Mention, Placed, key_of, masked, mentions, told

UNKNOWN = "name"
KINDS = ("person", "organisation", "place", "project", UNKNOWN)
"""The kinds of names; the last is of one of which nothing more is known."""
FEW = 2
"""Memories with at most so many entities are looked at again."""


@dataclass(frozen=True, slots=True)
class Span:
    """What an extractor takes a part of a text, ``text[start:end]``, to be.

    Attributes:
        kind: one of :data:`KINDS`; ``None`` for what is no name, however it is written.
        confidence: 0…1; of spans that overlap the more certain one stands.
    """

    start: int
    end: int
    kind: str | None
    confidence: float


@dataclass(frozen=True, slots=True)
class Enriched:
    """What a text mentions by all that was found in it.

    Attributes:
        mentions: in its order, each once, at most twenty.
        dropped: what the rules of a write find in it and better ones do not.
    """

    mentions: tuple[Mention, ...]
    dropped: tuple[Mention, ...] = ()


def resolved(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Spans of which no two overlap: the more certain before the less, then the longer; then the first in the text.

    In the order of the text, and the same in whatever order they come.
    """
    starts: list[int] = []
    chosen: list[Span] = []
    for span in sorted(set(spans), key=_before):
        at = bisect_left(starts, span.end)
        if span.start < span.end and (at == 0 or chosen[at - 1].end <= span.start):
            starts.insert(at, span.start)
            chosen.insert(at, span)
    return tuple(chosen)


def _before(span: Span) -> tuple[float, int, int, str]:
    return -span.confidence, span.start - span.end, span.start, span.kind or ""


def enriched(text: str, spans: Iterable[Span], hidden: Iterable[tuple[int, int]] = ()) -> Enriched:
    """What a text mentions by the spans that were found in it; those outside of it count for nothing.

    Args:
        text: the text.
        spans: what extractors found.
        hidden: where personal data stands that is not to be told of; no name is found there.

    What has a form of its own (dates, addresses on the net, tags) stays as it is, and a name of which one place shows
    the kind is of that kind everywhere.
    """
    forms, _ = masked(text)
    fixed = [Span(start, end, None, 2.0) for start, end in (*hidden, *((at, to) for at, to, *_ in forms))]
    within = [span for span in spans if 0 <= span.start < span.end <= len(text)]
    chosen = [span for span in resolved([*fixed, *within]) if span.kind is not None]
    written = [mention for mention in mentions(text) if mention.kind in KINDS]
    kinds = _kinds(text, chosen, written)
    placed: list[Placed] = [*forms]
    for span in chosen:
        key = key_of(text[span.start : span.end])[:MAX_KEY_CHARS]
        if any(c.isalnum() for c in key):
            placed.append((span.start, span.end, kinds[key], key))
    found = told(text, sorted(placed))
    there = {(mention.kind, mention.key) for mention in found}
    keys = {mention.key for mention in found}
    lost = (one for one in written if (one.kind, one.key) not in there)
    return Enriched(found, tuple(one for one in lost if one.kind != UNKNOWN or one.key not in keys))


def _kinds(text: str, chosen: Iterable[Span], written: Iterable[Mention]) -> dict[str, str]:
    """By key the kind of each name: what the most certain span says, and what is written rather than nothing."""
    kinds: dict[str, str] = {}
    for span in sorted(chosen, key=_before):
        key = key_of(text[span.start : span.end])[:MAX_KEY_CHARS]
        if kinds.get(key, UNKNOWN) == UNKNOWN:
            kinds[key] = span.kind or UNKNOWN
    for mention in written:
        if kinds.get(mention.key) == UNKNOWN:
            kinds[mention.key] = mention.kind
    return kinds

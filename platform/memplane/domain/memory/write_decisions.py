"""What a new memory does to those that are there: pure decisions over how it compares with its nearest neighbours."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache, partial
from heapq import nlargest

from memplane.domain.language.comparison.comparison import (
    Bands,
    ComparisonVerdict,
    Judgement,
    ParsedStatement,
    Rule,
    compare,
    compared_words,
    judge,
)
from memplane.domain.language.spelling import bare
from memplane.domain.memory.items import is_item
from memplane.domain.memory.memory import FULL_AUTHORITY, Memory, MemoryText, MemoryType, Source, State, weight
from memplane.domain.memory.merging import same_words
from memplane.domain.memory.tombstones import skeleton
from memplane.domain.memory.writing import sentences

COMPARED = frozenset({MemoryType.SEMANTIC, MemoryType.INSIGHT})
"""Types whose texts state facts; others are only ever exact duplicates."""
OVERRULES = frozenset({ComparisonVerdict.UPDATED, ComparisonVerdict.CONTRADICTED, ComparisonVerdict.RETRACTED})
MAX_LINKS = 5
MAX_CONFLICTS = 3
"""With so many others at most a memory is listed as an open possible conflict."""
MAX_SOURCES = 100
"""A memory names so many sources at most."""
_MAX_PARTS, _MAX_VALUES, _MAX_COMPARED = 50, 400, 20
"""Of a text that is compared with rejected ones: its parts, their values, and those that each part is compared with."""
_CLOCKS = timedelta(minutes=5)
"""How far two clocks may be apart before a time is one that is to come."""
_statement = lru_cache(maxsize=4096)(ParsedStatement.of)
"""A text is compared again with each new one that comes near."""


class Action(StrEnum):
    """What is done with a new memory."""

    CREATE = "create"
    MERGE = "merge"
    UPDATE = "update"
    SUPERSEDE = "supersede"
    DISPUTE = "dispute"
    OUTDATED = "outdated"


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A memory that is there, its cosine, what the later of both is to the earlier one, by which rule."""

    memory: Memory
    similarity: float
    verdict: ComparisonVerdict
    rule: Rule = Rule.NONE


@dataclass(frozen=True, slots=True)
class WriteDecision:
    """What to do with a new memory.

    Attributes:
        action: what.
        targets: the memories that it concerns: the one to merge with, or those that are overruled or overrule.
        links: neighbours to relate it to.
        suspected: neighbours that may contradict it, though their words do not prove it: both stay.
        overruled: for a memory that is outdated, those that are older still and that it ends.
        cut: superseded memories that it ends earlier than they were ended so far.
        split: memories that were said before it and again after it: it comes between.
        until: for a memory that is outdated, when the next later fact begins.
    """

    action: Action
    targets: tuple[Neighbour, ...] = ()
    links: tuple[Neighbour, ...] = ()
    suspected: tuple[Neighbour, ...] = ()
    overruled: tuple[Neighbour, ...] = ()
    cut: tuple[Neighbour, ...] = ()
    split: tuple[Neighbour, ...] = ()
    until: datetime | None = None


def compare_neighbours(new: Memory, found: Sequence[tuple[Memory, float]], bands: Bands) -> list[Neighbour]:
    """What a new memory is to each of its neighbours, or they to it where they are later; most similar first."""
    if new.type not in COMPARED:
        return [
            Neighbour(memory, similarity, ComparisonVerdict.SAME, Rule.SAME_TEXT)
            if _in_same_words(new, memory)
            else Neighbour(memory, similarity, ComparisonVerdict.RELATED)
            for memory, similarity in found
        ]
    statement = ParsedStatement.of(new.text.content)
    return [
        Neighbour(memory, similarity, judged.verdict, judged.rule)
        for memory, similarity in found
        for judged in (_judged(new, statement, memory, similarity, bands),)
    ]


def compared_in(older: Memory, newer: Memory) -> dict[str, list[str]]:
    """The words by which two memories were compared."""
    return compared_words(_statement(older.text.content), _statement(newer.text.content))


def _judged(new: Memory, statement: ParsedStatement, memory: Memory, similarity: float, bands: Bands) -> Judgement:
    """What a new memory is to one that is there.

    Words alone decide whether a less trusted writer contradicts a more trusted one: an odd name makes a claim unlike
    what it contradicts, and must not carry it past.
    """
    later = said_at(memory) > said_at(new)
    if _in_same_words(new, memory):
        return Judgement(ComparisonVerdict.SAME, Rule.SAME_TEXT)
    judged = _judgement(statement, memory, similarity, bands, later=later)
    trusted_less = new.authority < FULL_AUTHORITY and new.authority < weight(memory)
    if (
        trusted_less
        and judged.verdict in {ComparisonVerdict.UNRELATED, ComparisonVerdict.RELATED}
        and similarity < bands.update
    ):
        by_words = _judgement(statement, memory, bands.update, bands, later=later)
        return by_words if by_words.verdict in OVERRULES else judged
    return judged


def _in_same_words(new: Memory, memory: Memory) -> bool:
    """Whether two memories have the same content and steps; two items of a store stay two."""
    return not is_item(new.external_id or memory.external_id) and same_words(new.text, memory.text)


def _judgement(
    statement: ParsedStatement, memory: Memory, similarity: float, bands: Bands, *, later: bool
) -> Judgement:
    """What a text is to one that is there, or what that one is to it when it is the later one."""
    if similarity < bands.fallback:
        return Judgement(ComparisonVerdict.UNRELATED, Rule.NONE)
    there = _statement(memory.text.content)
    return judge(statement, there, similarity, bands) if later else judge(there, statement, similarity, bands)


def decide(
    new: Memory,
    neighbours: Sequence[Neighbour],
    bands: Bands,
    now: datetime,
    *,
    past: Sequence[Neighbour] = (),
    overrules: int | None = None,
) -> WriteDecision:
    """What to do with a new memory.

    One that says the same in the same store is merged, or takes the older text's place when it is newer and of no less
    authority; a less trusted one gives way, unless it says more: words keep the authority of who wrote them. What
    overrules an older fact supersedes it, whatever its store, unless the older one has more authority: then the new one
    is disputed. The time of the facts decides which is older, not the order of their arrival: what a later fact
    overrules arrives outdated, and still ends what is older still. What is true no longer overrules nothing, and
    neither does what is not yet true, though who is trusted less cannot say it unheard.

    Args:
        new: the memory.
        neighbours: the active memories beside it.
        bands: thresholds for the embedding model.
        now: the time of the decision.
        past: for one that arrives late, superseded memories that ended after it began.
        overrules: how much weight the decision overrules, where that is not the memory's authority.
    """
    rivals = [n for n in neighbours if n.verdict in OVERRULES and _counts(n.memory, now)]
    gone = [n for n in past if n.verdict in OVERRULES]
    again = [n for n in (*neighbours, *past) if n.verdict is ComparisonVerdict.SAME and same_store(n.memory, new)]
    equal = [n for n in again if weight(n.memory) >= new.authority]
    if joined := _same(new, equal, (*rivals, *gone), bands):
        return joined
    lesser = (n for n in neighbours if n in again and n not in equal)
    outranked = tuple(n for n in lesser if not is_more(n.memory, new))
    related = (
        n
        for n in neighbours
        if n.verdict in {ComparisonVerdict.RELATED, ComparisonVerdict.SAME} and n.similarity >= bands.link_min
    )
    links = tuple(related)[:MAX_LINKS]
    suspected = tuple(n for n in neighbours if n.verdict is ComparisonVerdict.SUSPECTED)
    ended = is_ended(new, now)
    if not (rivals or gone) or ended:
        action = Action.SUPERSEDE if outranked and not ended else Action.CREATE
        targets = outranked if action is Action.SUPERSEDE else ()
        return WriteDecision(action, targets, links, suspected=() if ended else suspected)
    most = new.authority if overrules is None else overrules
    # whatever time it names: else a day that is to come would carry any claim past who knows better
    heavier = [n for n in rivals if weight(n.memory) > most]
    heavier += [n for n in gone if weight(n.memory) > most and first_said(n.memory) <= said_at(new)]
    if heavier:
        return WriteDecision(Action.DISPUTE, tuple(n for n in (*rivals, *gone) if n in heavier or n in rivals), links)
    if is_to_come(new, now):
        return WriteDecision(Action.CREATE, links=links, suspected=suspected)
    decision = WriteDecision(Action.CREATE, outranked, links, suspected)
    return _by_time(new, rivals, gone, decision)


def _by_time(
    new: Memory, rivals: Sequence[Neighbour], gone: Sequence[Neighbour], decision: WriteDecision
) -> WriteDecision:
    """Where a memory stands between what it contradicts: the next later fact ends it, and it ends what is earlier.

    Args:
        new: the memory.
        rivals: active memories that it contradicts.
        gone: superseded ones.
        decision: what holds besides; its targets are less trusted memories that say the same.
    """
    moment = said_at(new)
    after = [n for n in rivals if said_at(n.memory) > moment]
    earlier = tuple(n for n in rivals if said_at(n.memory) <= moment)
    later = sorted(
        (n for n in (*after, *gone) if said_at(n.memory) > moment and weight(n.memory) >= new.authority),
        key=lambda n: next_said(n.memory, moment),
    )
    cut = tuple(n for n in gone if said_at(n.memory) <= moment)
    if not later:
        if after and not earlier:  # what is later is trusted less: both stay, for a person to decide
            return replace(decision, targets=(), cut=cut, suspected=(*after, *decision.suspected))
        targets = (*earlier, *decision.targets)
        return replace(decision, action=Action.SUPERSEDE if targets else Action.CREATE, targets=targets, cut=cut)
    return replace(
        decision,
        action=Action.OUTDATED,
        targets=tuple(later),
        suspected=(),
        overruled=earlier,
        cut=cut,
        split=tuple(n for n in later if first_said(n.memory) < moment and weight(n.memory) <= new.authority),
        until=next_said(later[0].memory, moment),
    )


def _counts(there: Memory, now: datetime) -> bool:
    """Whether a memory overrules and is overruled: not one that has ended, and none that is to come.

    What is to come holds beside what is so today; but a turn that is dated ahead was said by now.
    """
    return not is_ended(there, now) and (not is_to_come(there, now) or there.source is Source.EXTRACTION)


def is_ended(memory: Memory, now: datetime) -> bool:
    """Whether a memory is true no longer."""
    return memory.valid_until is not None and memory.valid_until <= now


def is_to_come(memory: Memory, now: datetime) -> bool:
    """Whether a memory is not true yet."""
    return memory.valid_from is not None and memory.valid_from > now + _CLOCKS


def _same(
    new: Memory, again: Sequence[Neighbour], contradicting: Sequence[Neighbour], bands: Bands
) -> WriteDecision | None:
    """The memory of the same value that a new one is merged with, unless another value held between the two."""
    between = [n.memory for n in contradicting if weight(n.memory) >= new.authority]
    for best in again:
        there, moment = best.memory, said_at(new)
        begun = first_said(there)
        if any(moment < said < begun for other in between for said in (first_said(other), said_at(other))):
            continue
        action = _joined(new, best, bands)
        if action is not None:
            extended = moment < begun and there.valid_from is not None and weight(there) <= new.authority
            ends = [n for n in contradicting if n.memory.state is State.SUPERSEDED and said_at(n.memory) <= moment]
            cut = tuple(n for n in ends if weight(n.memory) <= new.authority) if extended else ()
            return WriteDecision(Action.MERGE if there.state is State.SUPERSEDED else action, (best,), cut=cut)
    return None


def _joined(new: Memory, there: Neighbour, bands: Bands) -> Action | None:
    """How two memories of the same content become one, with nothing lost; ``None`` when each says more than the other.

    The newer words are taken only from a writer who is trusted no less.
    """
    more, less = says_more(new.text, there.memory.text), says_more(there.memory.text, new.text)
    newer = weight(there.memory) <= new.authority and said_at(new) >= said_at(there.memory)
    if newer and same_words(new.text, there.memory.text):
        return Action.UPDATE if more else Action.MERGE
    if more:
        return Action.UPDATE if newer and not less else None
    in_place = bands.update <= there.similarity < bands.auto and not less
    return Action.UPDATE if newer and in_place else Action.MERGE


def says_more(text: MemoryText, other: MemoryText) -> bool:
    """Whether a text says more than another besides its content; of two titles neither says more."""
    ours, theirs = ({skeleton(part) for part in (of.narrative, *of.facts, *of.steps) if part} for of in (text, other))
    return not ours <= theirs or (text.title is not None and other.title is None)


def is_more(memory: Memory, other: Memory) -> bool:
    """Whether a memory says more than another besides its content, attributes, tags and files included."""
    beside = all(
        name in other.attributes and other.attributes[name] == said for name, said in memory.attributes.items()
    )
    named = {*memory.text.tags, *memory.text.related_files} <= {*other.text.tags, *other.text.related_files}
    return says_more(memory.text, other.text) or not beside or not named


def said_at(memory: Memory) -> datetime:
    """The time of the fact: since when it is true, else when it was stored; of one that was said again, the last time.

    Never later than it was stored: what is still to come is no newer than what is true today.
    """
    first = memory.recorded_at if memory.valid_from is None else min(memory.valid_from, memory.recorded_at)
    return first if memory.asserted_at is None else max(first, memory.asserted_at)


def first_said(memory: Memory) -> datetime:
    """When a memory was said first; its time of the fact, but for those who said it again."""
    if memory.valid_from is not None and memory.asserted_at is not None and memory.valid_from <= memory.asserted_at:
        return memory.valid_from
    return said_at(replace(memory, asserted_at=None))


def next_said(memory: Memory, moment: datetime) -> datetime:
    """When a memory that was said after a moment was so for the first time after it."""
    first = first_said(memory)
    return first if first > moment else said_at(memory)


def said_again(there: Memory, new: Memory) -> Memory:
    """A memory that was said again; from a writer who is trusted no less it takes what he asks for besides.

    From such a writer it is a hit too, as in symbiosis-layers, "Dedup & merge".
    """
    counted = replace(there, mention_count=there.mention_count + 1)
    if new.authority < there.authority:
        return counted
    counted = count_hit(counted, new)
    if new.authority > weight(there):  # the same words: but for the count nothing is left of the less trusted one
        counted = replace(
            counted, source_ids=(), pinned=False, importance=new.importance, attributes={}, text=new.text, pii=new.pii,
            source=new.source, expires_at=new.expires_at, valid_from=new.valid_from, valid_until=new.valid_until,
            asserted_at=said_at(new),
        )  # fmt: skip
    latest = max(said_at(counted), said_at(new))
    known = replace(counted, valid_from=_begun(counted, new), asserted_at=None)
    return replace(
        counted,
        source_ids=tuple(dict.fromkeys((*counted.source_ids, *new.source_ids)))[:MAX_SOURCES],
        valid_from=known.valid_from,
        asserted_at=latest if latest > said_at(known) else counted.asserted_at,
        authority=max(there.authority, new.authority),
        importance=max(counted.importance, new.importance),
        pinned=counted.pinned or new.pinned,
        attributes={**new.attributes, **counted.attributes},
        expires_at=later(counted.expires_at, new.expires_at),
        valid_until=later(counted.valid_until, new.valid_until) if there.state is State.ACTIVE else there.valid_until,
    )


def count_hit(there: Memory, new: Memory) -> Memory:
    """A memory that another one hits by saying the same, when that is stored.

    The same record sent again, and the same evidence read again, is no hit.
    """
    resent = there.external_id is not None and there.external_id == new.external_id
    if resent or (new.source_ids and set(new.source_ids) <= set(there.source_ids)):
        return there
    last = max(filter(None, (there.last_hit_at, new.recorded_at)))
    return replace(there, hits=there.hits + 1, last_hit_at=last)


def _begun(there: Memory, new: Memory) -> datetime | None:
    """Since when a memory is true that is said again, by what is known of an earlier time."""
    since = new.valid_from or new.recorded_at
    if there.valid_from is None or since >= there.valid_from:
        return there.valid_from
    over = new.valid_until is not None and new.valid_until < there.valid_from
    return there.valid_from if over else since


def later(one: datetime | None, other: datetime | None) -> datetime | None:
    """The later of two ends; none is later than any."""
    return None if one is None or other is None else max(one, other)


def same_store(one: Memory, other: Memory) -> bool:
    """Whether the same readers see two memories."""
    return (one.visibility, one.min_trust) == (other.visibility, other.min_trust)


def says_again(text: MemoryText, gone: Sequence[MemoryText], bands: Bands) -> bool:
    """Whether a text says in its content, a fact or the rest what one of others says; words alone decide.

    Each part is compared with the values that share most words with it, whatever the number of values.
    """
    parts = [text.content, *text.facts, *sentences(text.narrative or "")]
    said = [_statement(bare(part)) for part in parts[:_MAX_PARTS] if part]
    others = [other for other in gone if not other.steps]  # in other words steps may be other steps
    values = [*(other.content for other in others), *(fact for other in others for fact in other.facts)]
    told = [
        value for value in map(_statement, map(bare, values[:_MAX_VALUES])) if value.keys
    ]  # without words nothing is decided
    return any(
        compare(value, part, 1.0, bands) is ComparisonVerdict.SAME
        for part in said
        for value in nlargest(_MAX_COMPARED, told, key=partial(_shared, part))
    )


def _shared(part: ParsedStatement, value: ParsedStatement) -> float:
    """The share of words that two statements have in common."""
    return len(part.keys & value.keys) / len(part.keys | value.keys)

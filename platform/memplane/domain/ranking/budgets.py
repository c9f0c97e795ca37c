"""A budget of tokens shared by sections: each has its share, and what one leaves goes to the others in their order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SectionDemand:
    """What a section would like to hold.

    Attributes:
        name: of the section.
        costs: tokens of its items, the most wanted first.
        share: which part of the budget it may always take.
        unbroken: whether an item that does not fit ends the section, as in a conversation; otherwise it is skipped.
    """

    name: str
    costs: Sequence[int]
    share: float
    unbroken: bool = False


@dataclass(frozen=True, slots=True)
class SectionShare:
    """What a section gets: the places of its items, the most wanted first; their tokens; whether some are left out."""

    places: Sequence[int]
    tokens: int
    truncated: bool


def share_budget(sections: Sequence[SectionDemand], budget: int, heading: int = 0) -> Mapping[str, SectionShare]:
    """What each section gets of a budget.

    Every section first takes what fits its share, then the sections take, in their order, what still fits the rest: a
    long conversation cannot push out what is always told, and an empty section costs the others nothing.

    Args:
        sections: by priority.
        budget: tokens.
        heading: tokens that a section costs before its first item.
    """
    taken: dict[str, list[int]] = {section.name: [] for section in sections}
    spent: dict[str, int] = dict.fromkeys(taken, 0)
    for whole in (False, True):
        for section in sections:
            rest = budget - sum(spent.values())
            limit = rest if whole else min(rest, int(budget * section.share) - spent[section.name])
            _take(section, taken[section.name], spent, limit, heading)
    return {
        section.name: SectionShare(
            sorted(taken[section.name]), spent[section.name], len(taken[section.name]) < len(section.costs)
        )
        for section in sections
    }


def _take(section: SectionDemand, taken: list[int], spent: dict[str, int], limit: int, heading: int) -> None:
    """Items of a section that were not taken yet, as far as the limit allows."""
    there = set(taken)
    for place, cost in enumerate(section.costs):
        if place in there:
            continue
        needed = cost + (0 if taken else heading)
        if needed > limit:
            if section.unbroken:
                return
            continue
        taken.append(place)
        spent[section.name] += needed
        limit -= needed

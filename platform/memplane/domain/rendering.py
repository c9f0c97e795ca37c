"""Items as an agent gets them: one line each, within k and a budget of tokens, fenced for a prompt."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from memplane.domain.fencing import fence, new_delimiter, visible
from memplane.domain.memory import Memory, TrustState, Turn
from memplane.domain.text import estimate_tokens


@dataclass(frozen=True, slots=True)
class Item:
    """One result.

    Attributes:
        unit: the memory or turn.
        category: its category; for a turn the one that the policy gives to turns.
        text: one line, ``[category] …``, hidden characters made visible.
        score: what it was ranked by.
        parts: the parts of the score.
        cost: tokens that it takes of the budget.
        via: the returned memory whose relation brought it, for a related one.
    """

    unit: Memory | Turn
    category: str
    text: str
    score: float
    cost: int
    parts: Mapping[str, object] = field(default_factory=dict)
    via: UUID | None = None


@dataclass(frozen=True, slots=True)
class Rendered:
    """What fits: the items, their tokens, and whether something was left out because it did not fit."""

    items: Sequence[Item]
    tokens: int
    truncated: bool


@dataclass(frozen=True, slots=True)
class Prompt:
    """A fenced block and its tokens."""

    text: str
    tokens: int


def item_of(
    unit: Memory | Turn,
    category: str,
    score: float,
    parts: Mapping[str, object],
    *,
    full: bool = False,
    via: UUID | None = None,
) -> Item:
    """An item; a full one costs all its words, a bullet only its line."""
    text = bullet(unit, category)
    whole = unit.text.searchable() if isinstance(unit, Memory) else unit.text
    return Item(unit, category, text, score, estimate_tokens(whole if full else text), parts, via)


def bullet(unit: Memory | Turn, category: str) -> str:
    """A unit on one line: ``[tasks] Ship v1 by September``; a turn names who spoke."""
    if isinstance(unit, Turn):
        said = f"{unit.actor_id or unit.role}: {unit.text}"
    else:
        said = f"{unit.text.title}: {unit.text.content}" if unit.text.title else unit.text.content
    return f"[{category}] {visible(said)}"


def fit(items: Iterable[Item], top_k: int, budget: int, already: Rendered | None = None) -> Rendered:
    """The first items, at most ``top_k``, whose texts fit the budget; one that does not fit is skipped whole.

    Args:
        items: in order; read only as far as needed.
        top_k: the most items.
        budget: the most tokens.
        already: what an earlier fit of the first of these items left out.
    """
    kept: list[Item] = []
    tokens = 0
    truncated = already is not None and already.truncated
    for item in items:
        if len(kept) == top_k:
            break
        if tokens + item.cost > budget:
            truncated = True
            continue
        kept.append(item)
        tokens += item.cost
    return Rendered(kept, tokens, truncated)


def fitted_prompt(items: Sequence[Item], budget: int) -> Prompt | None:
    """The items as a fenced block that is itself within the budget, each with where it comes from.

    Items at the end are left out until the block fits; ``None`` when nothing fits, or there is nothing.
    """
    delimiter = new_delimiter()
    lines = [f"- {item.text} ({provenance(item)})" for item in items]
    while lines:
        text = fence(lines, delimiter)
        tokens = estimate_tokens(text)
        if tokens <= budget:
            return Prompt(text, tokens)
        lines.pop()
    return None


_LESS_TRUSTED = {2: "inner", 1: "familiar", 0: "public"}
"""How a writer's authority is called who was not fully trusted."""


def provenance(item: Item) -> str:
    """Where an item comes from, in a few words: its kind, how far its writer was trusted if not fully, day and id."""
    unit = item.unit
    day = (unit.event_time or unit.recorded_at).date().isoformat()
    if isinstance(unit, Turn):
        kind = f"turn {unit.seq} of {visible(unit.thread_id)}{'' if unit.vouched else ', unvouched'}"
    else:
        kind = f"{unit.type}, {unit.source}, {unit.trust_state}"
        if unit.authority in _LESS_TRUSTED and unit.trust_state is not TrustState.CONFIRMED:
            kind += f", {_LESS_TRUSTED[unit.authority]} trust"
    related = f", related to {item.via}" if item.via else ""
    return f"{kind}, {day}, id {unit.id}{related}"

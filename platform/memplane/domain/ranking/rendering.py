"""Items as an agent gets them: one line each, within k and a budget of tokens, fenced for a prompt."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from memplane.domain.language.text import estimate_tokens
from memplane.domain.memory.memory import Memory, TrustState, Turn
from memplane.domain.ranking.fencing import fence, new_delimiter, quote_text, visible

MAX_RELATED = 2


@dataclass(frozen=True, slots=True)
class RenderedItem:
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
class RenderedItems:
    """What fits: the items, their tokens, and whether something was left out because it did not fit."""

    items: Sequence[RenderedItem]
    tokens: int
    truncated: bool


@dataclass(frozen=True, slots=True)
class FencedPrompt:
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
) -> RenderedItem:
    """An item; a full one costs all its words, a bullet only its line."""
    text = bullet(unit, category)
    whole = unit.text.searchable() if isinstance(unit, Memory) else unit.text
    return RenderedItem(unit, category, text, score, estimate_tokens(whole if full else text), parts, via)


def bullet(unit: Memory | Turn, category: str) -> str:
    """A unit on one line: ``[tasks] Ship v1 by September``; a turn names who spoke.

    What is to come says so: ``[tasks] (from 2027-01-01) …``.
    """
    said = f"{unit.actor_id or unit.role}: {unit.text}" if isinstance(unit, Turn) else _words(unit)
    beginning = f"({day}) " if (day := _beginning(unit)) else ""
    return f"[{category}] {beginning}{visible(said)}"


def _beginning(unit: Memory | Turn) -> str:
    """From which day a memory holds, where that was to come when it was stored or changed."""
    if isinstance(unit, Turn) or unit.valid_from is None or unit.valid_from.date() <= unit.updated_at.date():
        return ""
    return f"from {unit.valid_from.date().isoformat()}"


def _words(memory: Memory) -> str:
    return f"{memory.text.title}: {memory.text.content}" if memory.text.title else memory.text.content


def fit_items(
    items: Iterable[RenderedItem], top_k: int, budget: int, already: RenderedItems | None = None
) -> RenderedItems:
    """The first items, at most ``top_k``, whose texts fit the budget; one that does not fit is skipped whole.

    Args:
        items: in order; read only as far as needed.
        top_k: the most items.
        budget: the most tokens.
        already: what an earlier fit of the first of these items left out.
    """
    kept: list[RenderedItem] = []
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
    return RenderedItems(kept, tokens, truncated)


def related_places(top_k: int, ranked: int) -> int:
    """How many related memories may be returned: the places kept for them, or as many as the ranked items leave free.

    None is kept of fewer than 4 places, one of 4 to 7, two from 8.
    """
    kept = 0 if top_k < 4 else 1 if top_k < 8 else MAX_RELATED
    return min(MAX_RELATED, max(kept, top_k - ranked))


def with_related(found: RenderedItems, linked: Sequence[RenderedItem], top_k: int, budget: int) -> RenderedItems:
    """What was found, with related memories at its end; a place is only given to one that is there and fits.

    Args:
        found: the ranked items.
        linked: memories that are not among them, with the items that brought them, strongest relation first.
        top_k: maximum number of items.
        budget: maximum number of tokens.
    """
    truncated = found.truncated
    for count in range(related_places(top_k, len(found.items)), 0, -1):
        head = found.items[: top_k - count]
        fitted = fit_items([*head, *reached_from(head, linked)], len(head) + count, budget, found)
        truncated |= fitted.truncated
        if len(fitted.items) == len(head) + count:
            return replace(fitted, truncated=truncated)
    return replace(found, truncated=truncated)


def reached_from(returned: Sequence[RenderedItem], linked: Sequence[RenderedItem]) -> list[RenderedItem]:
    """Related memories that a returned item brings, each by its strongest relation."""
    ids = {item.unit.id for item in returned}
    once: dict[UUID, RenderedItem] = {}
    for item in linked:
        if item.via in ids:
            once.setdefault(item.unit.id, item)
    return list(once.values())


def fitted_prompt(items: Sequence[RenderedItem], budget: int) -> FencedPrompt | None:
    """The items as a fenced block that is itself within the budget, each with where it comes from.

    Items at the end are left out until the block fits; ``None`` when nothing fits, or there is nothing.
    """
    delimiter = new_delimiter()
    lines = [entry(item) for item in items]
    while lines:
        text = fence(lines, delimiter)
        tokens = estimate_tokens(text)
        if tokens <= budget:
            return FencedPrompt(text, tokens)
        lines.pop()
    return None


def entry(item: RenderedItem) -> str:
    """An item within a fence, on two lines: where it comes from, and its text, quoted.

    No stored text can imitate either: all that its writer chose stands between quotation marks that it cannot close.
    """
    text = item.unit.text if isinstance(item.unit, Turn) else _words(item.unit)
    return f"- [{item.category}] ({provenance(item)})\n  {quote_text(text)}"


_LESS_TRUSTED = {2: "inner", 1: "familiar", 0: "public"}
"""How a writer's authority is called who was not fully trusted."""


def provenance(item: RenderedItem) -> str:
    """Where an item comes from, in a few words: its kind, how far its writer was trusted if not fully, day and id.

    Names that a caller chose are quoted; a turn's speaker is its role, and the name that the recorder gave it.
    """
    unit = item.unit
    day = (unit.event_time or unit.recorded_at).date().isoformat()
    if isinstance(unit, Turn):
        speaker = f"{unit.role} {quote_text(unit.actor_id)}" if unit.actor_id else str(unit.role)
        kind = f"turn {unit.seq} of {quote_text(unit.thread_id)} by {speaker}{'' if unit.vouched else ', unvouched'}"
    else:
        kind = f"{unit.type}, {unit.source}, {unit.trust_state}"
        if unit.authority in _LESS_TRUSTED and unit.trust_state is not TrustState.CONFIRMED:
            kind += f", {_LESS_TRUSTED[unit.authority]} trust"
        if ahead := _beginning(unit):
            kind += f", {ahead}"
    related = f", related to {item.via}" if item.via else ""
    return f"{kind}, {day}, id {unit.id}{related}"

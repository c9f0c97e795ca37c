"""Items of a key-value store: memories that their name tells from others, and not what they say.

An item's value stands whole in the attributes of its memory; the memory's words are made of it.
"""

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from memplane.domain.errors import InvalidRequest, LimitExceeded
from memplane.domain.language.text import refuse_unstorable
from memplane.domain.memory.memory import Memory, MemoryText

PREFIX = "item:"
"""How the external id of an item's memory begins."""
MAX_LABELS = 32
MAX_LABEL_CHARS = 512
CONTENT_CHARS = 1_000
NARRATIVE_CHARS = 15_000
MAX_TITLE_CHARS = 120
_DEPTH = 7
_REFRESHED = 0.01
"""An end that would move by less than this part of the time to live stays: reads need not write each time."""
_WORDY = re.compile(r"[^\W\d_]{3,}")
_OPAQUE = re.compile(r"[0-9a-fA-F-]{16,}|\d+")

Value = dict[str, object]


@dataclass(frozen=True, slots=True)
class Address:
    """Where an item stands.

    Attributes:
        user_id: the user.
        category: the category, which says who may read and write it.
        labels: the rest of its namespace; each is compared whole and as it is.
        key: its key within the namespace.
    """

    user_id: str
    category: str
    labels: tuple[str, ...]
    key: str

    @property
    def name(self) -> str:
        """The external id of the item's memory: another namespace or key is another name."""
        place = json.dumps([self.category, self.labels, self.key], ensure_ascii=True)
        return PREFIX + hashlib.sha256(place.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class ItemMemory:
    """The memory of an item, and where the item stands."""

    memory_id: UUID
    address: Address

    @property
    def namespace(self) -> tuple[str, ...]:
        """The user, the category and the labels."""
        return (self.address.user_id, self.address.category, *self.address.labels)


@dataclass(frozen=True, slots=True)
class NamespacedItem:
    """A value under its address.

    Attributes:
        memory: the memory that keeps it.
        lives: how long after a read or a write it ends; ``None`` when it does not.
    """

    address: Address
    value: Value
    memory: Memory
    lives: timedelta | None = None

    def end_after(self, now: datetime) -> datetime | None:
        """The end that a read at a moment gives it; ``None`` when that makes no difference."""
        if self.lives is None or self.memory.expires_at is None:
            return None
        end = now + self.lives
        return end if end - self.memory.expires_at > self.lives * _REFRESHED else None


def is_item(external_id: str | None) -> bool:
    """Whether an external id is the name of an item."""
    return external_id is not None and external_id.startswith(PREFIX)


def no_item(memory: Memory) -> Memory:
    """A memory whose words no longer follow its value: no item of a store any more; any other one as it is."""
    return replace(memory, external_id=None, attributes={}) if is_item(memory.external_id) else memory


def checked_address(address: Address) -> Address:
    """The address, when its labels and its key can be kept.

    Raises:
        Invalid: one is no text.
        InvalidText: one cannot be stored.
        LimitExceeded: there are too many, or one is too long.
    """
    if len(address.labels) > MAX_LABELS:
        raise LimitExceeded(f"namespace: {len(address.labels)} labels, at most {MAX_LABELS}", field="namespace")
    for part, field in (*((label, "namespace") for label in address.labels), (address.key, "key")):
        if not isinstance(part, str):
            raise InvalidRequest(f"{field}: {part!r} is no text", field=field)
        refuse_unstorable(part, field)
        if len(part) > MAX_LABEL_CHARS:
            raise LimitExceeded(f"{field}: {len(part)} characters, at most {MAX_LABEL_CHARS}", field=field)
    return address


def attributes_of(address: Address, value: Mapping[str, object], lives: timedelta | None) -> dict[str, object]:
    """What the memory of an item keeps beside its words.

    A database may give a number back in another form, and the members of an object in another order: what it would
    change is kept besides.

    Raises:
        Invalid: the value holds what JSON does not have.
        LimitExceeded: it is too deep.
    """
    order: list[list[str]] = []
    numbers: list[list[object]] = []
    kept: dict[str, object] = {
        "namespace": list(address.labels),
        "key": address.key,
        "value": _walked(value, order, numbers, [0], 1),
    }
    if order:
        kept["order"] = order
    if numbers:
        kept["numbers"] = numbers
    if lives is not None:
        kept["lives"] = lives.total_seconds()
    return kept


def _walked(value: object, order: list[list[str]], numbers: list[list[object]], count: list[int], depth: int) -> object:
    """The value as JSON has it, with the order of its members and those numbers that would come back changed."""
    if depth > _DEPTH:
        raise LimitExceeded(f"value: more than {_DEPTH} levels", field="value")
    match value:
        case None | bool() | str():
            return value
        case int() | float():
            count[0] += 1
            if isinstance(value, float) and math.isfinite(value) and _fragile(value):
                numbers.append([count[0], repr(value)])
            return value
        case list() | tuple():
            return [_walked(item, order, numbers, count, depth + 1) for item in value]
        case Mapping():
            if wrong := next((key for key in value if not isinstance(key, str)), None):
                raise InvalidRequest(f"value: the key {wrong!r} is no text", field="value")
            if len(value) > 1:
                order.append([str(key) for key in value])
            return {str(key): _walked(item, order, numbers, count, depth + 1) for key, item in value.items()}
        case _:
            raise InvalidRequest(f"value: {type(value).__name__} is no JSON value", field="value")


def _fragile(value: float) -> bool:
    return "e" in repr(value) or (value == 0 and math.copysign(1, value) < 0)


def address_of(user_id: str, category: str, labels: object, key: object) -> Address | None:
    """The address that a memory's attributes give; ``None`` when they give none."""
    if not isinstance(labels, list) or not isinstance(key, str) or not all(isinstance(each, str) for each in labels):
        return None
    return Address(user_id, category, tuple(labels), key)


def item_of(memory: Memory) -> NamespacedItem | None:
    """The item that a memory keeps; ``None`` when it keeps none that is whole."""
    kept = memory.attributes
    address = address_of(memory.user_id, memory.category, kept.get("namespace"), kept.get("key"))
    value = kept.get("value")
    if address is None or memory.external_id != address.name or not isinstance(value, Mapping):
        return None
    lives = kept.get("lives")
    seconds = lives if isinstance(lives, int | float) and not isinstance(lives, bool) and lives > 0 else None
    restored = _restored(value, iter(_lists(kept.get("order"))), _numbers(kept.get("numbers")), [0])
    # an object stays one
    assert isinstance(restored, dict)  # noqa: S101 - holds by the line above
    return NamespacedItem(address, restored, memory, None if seconds is None else timedelta(seconds=seconds))


def _lists(kept: object) -> list[list[object]]:
    return [each for each in kept if isinstance(each, list)] if isinstance(kept, list) else []


def _numbers(kept: object) -> dict[int, float]:
    found: dict[int, float] = {}
    for each in _lists(kept):
        match each:
            case [int(place), str(text)]:
                try:
                    found[place] = float(text)
                except ValueError:
                    continue  # somebody else's
            case _:
                pass
    return found


def _restored(value: object, order: Iterator[list[object]], numbers: Mapping[int, float], count: list[int]) -> object:
    match value:
        case bool():
            return value
        case int() | float():
            count[0] += 1
            exact = numbers.get(count[0])
            return exact if exact is not None and _is(value, exact) else value
        case list():
            return [_restored(item, order, numbers, count) for item in value]
        case Mapping():
            names = next(order, []) if len(value) > 1 else []
            ordered = dict.fromkeys([*(name for name in names if name in value), *value])
            return {str(name): _restored(value[str(name)], order, numbers, count) for name in ordered}
        case _:
            return value


def _is(value: float, exact: float) -> bool:
    """Whether a number is what a database makes of another: all its digits, where a fraction has fewer."""
    try:
        return float(value) == exact
    except OverflowError:
        return False


def words_of(address: Address, value: Mapping[str, object], texts: Sequence[str] | None = None) -> MemoryText:
    """The words by which an item is found.

    Args:
        address: where it stands; a key that is made of words is its title.
        value: what it is.
        texts: what of it is to be found; ``None`` for all of it.
    """
    wordy = _WORDY.search(address.key) is not None and _OPAQUE.fullmatch(address.key) is None
    title = address.key[:MAX_TITLE_CHARS] if wordy else None
    whole = _told(value) if texts is None else "\n".join(text for text in texts if text.strip())
    whole = whole if whole.strip() else address.key
    if not _visible(whole):
        whole = "(empty)"
    if len(whole) <= CONTENT_CHARS:
        return MemoryText(whole, title=title)
    cut = whole[:CONTENT_CHARS]
    head = cut[: cut.rfind(" ")] if " " in cut else cut
    return MemoryText(f"{head}…", title=title, narrative=whole[:NARRATIVE_CHARS])


def _visible(text: str) -> bool:
    return any(c.isprintable() and not c.isspace() for c in text)


def _told(value: Mapping[str, object]) -> str:
    """A value in words: a single text as it is, else each part after its name."""
    parts = list(_parts(value, ""))
    if len(parts) == 1 and isinstance(parts[0][1], str):
        return parts[0][1]
    return "; ".join(f"{name}: {_plain(part)}" for name, part in parts)


def _parts(value: object, name: str) -> Iterator[tuple[str, object]]:
    match value:
        case Mapping():
            for key, item in value.items():
                yield from _parts(item, f"{name}.{key}" if name else str(key))
        case list() | tuple() if all(not isinstance(item, Mapping | list | tuple) for item in value):
            if value:
                yield name, tuple(value)
        case list() | tuple():
            for item in value:
                yield from _parts(item, name)
        case None:
            pass
        case _:
            yield name, value


def _plain(value: object) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case tuple():
            return ", ".join(_plain(item) for item in value)
        case _:
            return str(value)

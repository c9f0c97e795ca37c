"""By what a rejected value is known again, however it is spelled."""

import hashlib
import unicodedata
from collections.abc import Iterator, Mapping
from datetime import datetime
from uuid import UUID

from memplane.domain.language.spelling import spellings
from memplane.domain.language.text import unicode_form
from memplane.domain.memory.memory import MemoryText
from memplane.domain.memory.writing import sentences

# Letters of other alphabets that look like Latin ones, after case folding: a value must not come back in disguise.
LOOK_ALIKES = str.maketrans(
    "асԁеһіјӏοоԛрѕтυѵԝхуɡкмнвαβεηικνρτχγωӧɩʏաօոսհցıſøłđɪʙʟɴʀɢꜱᴀᴄᴅᴇᴊᴋᴍᴏᴘᴛᴜᴠᴡᴢ",
    "acdehijlooqpstuvwxygkmhbabenikvptxywoiywonuhgisoldiblnrgsacdejkmoptuvwz",
)
BLANKS = frozenset("\u115f\u1160\u3164\uffa0\u17b4\u17b5\u2800")
"""Letters that show nothing."""
_FIRST_OTHER_SCRIPT = 0x530
"""Latin, Greek and Cyrillic end below: there marks are ornament, in other scripts they are letters."""
_IN_NUMBERS = frozenset(".,/:-")
_MAX_DEPTH = 8


def skeleton(value: str) -> str:
    """What remains of a text when case, marks, punctuation, space, invisible characters and disguises are gone.

    What makes another value of it stays: the point of `1.5`, the minus of `-5`, the plus of `C++`.
    """
    folded = unicode_form("NFKD", unicode_form("NFKC", value).casefold())
    kept: list[str] = []
    base = ""
    for place, c in enumerate(folded):
        if c.isalnum() and c not in BLANKS:
            kept.append(c)
            base = c
        elif _is_of_name(folded, place, base) or _is_of_number(folded, place):
            kept.append(c)
    return "".join(kept).translate(LOOK_ALIKES)


def _is_of_name(text: str, place: int, base: str) -> bool:
    """Whether a sign belongs to a name, as in `C++` and `C#`, or a mark is a letter of its script."""
    c = text[place]
    if c in "+#":
        return bool(base) and place > 0 and text[place - 1] in (base, c)
    return bool(base) and ord(base) >= _FIRST_OTHER_SCRIPT and unicodedata.category(c).startswith("M")


def _is_of_number(text: str, place: int) -> bool:
    """Whether a sign stands within a number, or makes it negative."""
    if text[place] not in _IN_NUMBERS or not text[place + 1 : place + 2].isdecimal():
        return False
    before = text[place - 1] if place else " "
    return before.isdecimal() or (text[place] == "-" and before.isspace())


def value_key(value: str) -> str:
    """SHA-256 (hex) of a value's skeleton; of the value itself when nothing else is left of it."""
    return hashlib.sha256((skeleton(value) or " ".join(value.split())).encode()).hexdigest()


def spelled_keys(value: str) -> frozenset[str]:
    """The keys of a value in each of its spellings; its own, as stored by earlier versions, is one of them."""
    return frozenset(map(value_key, spellings(value)))


def rejected_keys(text: MemoryText) -> frozenset[str]:
    """What is buried with a memory: its content, each of its facts, and its steps as a whole, however spelled."""
    whole = ("\n".join(text.steps),) if text.steps else ()
    parts = [part for part in (text.content, *text.facts, *whole) if part.strip()]
    return frozenset[str]().union(*map(spelled_keys, parts))


def said_parts(text: MemoryText, attributes: Mapping[str, object] | None = None) -> Iterator[str]:
    """Everything that a memory says: its parts, and each sentence of them, so that none hides among others.

    Each part is read in all of its spellings, and so are the names of attributes.
    """
    parts = (text.title, text.content, text.narrative, *text.facts, *text.steps, *text.tags, *text.related_files)
    whole = ("\n".join(text.steps),) if text.steps else ()
    for part in (*parts, *whole, text.continuation(), *_texts(attributes or {})):
        if part and part.strip():
            for spelled in spellings(part):
                yield from _pieces(spelled)


def _pieces(part: str) -> Iterator[str]:
    yield part
    for piece in sentences(part):
        yield piece
        if ": " in piece:  # `Note: the user lives in Berlin.`
            yield piece.split(": ", 1)[1]


def verdict_of(user_id: str, reason: str, actor: str, moment: datetime) -> UUID:
    """The id of a verdict that is known by these alone, as of an export: what was rejected at once belongs together.

    It sorts by time, as every id does.
    """
    told = hashlib.sha256(f"{user_id}\0{reason}\0{actor}\0{moment.isoformat()}".encode()).digest()
    stamp = int(moment.timestamp() * 1000) << 80
    rest = int.from_bytes(told[:10]) & ~(0xF << 76) & ~(0x3 << 62)
    return UUID(int=stamp | rest | 0x7 << 76 | 0x2 << 62)


def said_keys(text: MemoryText, attributes: Mapping[str, object] | None = None) -> frozenset[str]:
    """The keys of everything that a memory says."""
    return frozenset(value_key(piece) for piece in said_parts(text, attributes))


def _texts(value: object, depth: int = 0) -> Iterator[str]:
    if depth > _MAX_DEPTH:
        return
    match value:
        case str():
            yield value
        case Mapping():
            for name, item in value.items():
                yield str(name)
                yield from _texts(item, depth + 1)
        case list() | tuple():
            for item in value:
                yield from _texts(item, depth + 1)
        case _:
            pass

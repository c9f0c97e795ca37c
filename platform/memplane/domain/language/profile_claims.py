"""The wordings that state fields of a profile, each found at one word and read in its neighbourhood."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from memplane.domain.language.profile_subjects import Somebody, SubjectReader, Whom
from memplane.domain.language.profile_wording import (
    ADVERBS,
    BEING,
    CALLING,
    DWELLING,
    ENJOYING,
    GOING,
    INSIDE,
    NEAR,
    NO_PERSON,
    PLACE_NOUNS,
    PREFERRING,
    REPLIES,
    SPEAKING,
    STOP,
    TONGUES,
    Words,
    any_at,
    city_at,
    is_tongue,
    name_at,
    pronouns_at,
)

Span = tuple[int, int]
OLD = 5
"""A move that its sentence puts more years back than this is a piece of history: it does not tell where one lives."""


@dataclass(frozen=True, slots=True)
class Found:
    """A field, where its value stands, and whom it is about.

    Attributes:
        bare: whether it is a label and a value, with nobody named.
    """

    field: str
    value: Span
    who: Whom
    bare: bool = False


def claims(reader: SubjectReader, fields: Collection[str], year: int | None) -> Iterator[Found]:
    """The statements of a sentence, in order.

    Args:
        reader: of the sentence.
        fields: which are looked for.
        year: the one in which it was said, if that is known.
    """
    words = reader.words
    own = {tuple(each.replace("-", "_").split("_")): each for each in fields if each not in _KNOWN}
    last = {parts[-1]: parts for parts in own}
    for i, word in enumerate(words.low):
        for name, read in _TRIGGERS.get(word, ()):
            if name in fields and (found := read(reader, i)) and not (name == "city" and _is_old(words, i, year)):
                yield found
        if word.endswith("-based") and "city" in fields and words.is_capital(i) and (found := _based(reader, i)):
            yield found
        parts = last.get(word)
        if parts and tuple(words.low[max(0, i - len(parts) + 1) : i + 1]) == parts:
            found = _owned(own[parts], any_at, reader, i, len(parts))
            if found:
                yield found
        reader.pass_by(i)


def _is_old(words: Words, i: int, year: int | None) -> bool:
    """Whether a sentence dates a move long before it was said, and says nothing of now."""
    if words.low[i] not in GOING | {"settled"} or year is None:
        return False
    near = words.low[max(0, i - NEAR) : i + NEAR]
    dated = [
        int(each) for each in near if len(each) == 4 and each.isascii() and each.isdigit() and 1900 <= int(each) <= 2100
    ]
    return bool(dated) and max(dated) < year - OLD and not {"now", "still", "since"} & set(near)


def _after(words: Words, i: int, prepositions: Collection[str]) -> int | None:
    """Behind the preposition that follows a verb, past adverbs and whom or what it was done with or from."""
    skipping = False
    for k in range(i, min(i + NEAR, len(words))):
        word = words.low[k]
        if word in prepositions and not (word == "in" and words.at(k + 1) in {"with", "together"}):
            return k + 1
        if word in {"with", "from"}:
            skipping = True
        elif (
            not skipping
            and word
            not in ADVERBS
            | {
                "away",
                "over",
                "house",
                "home",
                "down",
                "close",
                "mostly",
                "quietly",
            }
        ) or (not word[0].isalnum() and word not in {"'s", "."}):
            return None
    return None


def _dwelling(reader: SubjectReader, i: int) -> Found | None:
    words, word = reader.words, reader.words.low[i]
    if word == "resident":
        start = i + 2 if words.at(i + 1) == "of" else None
    else:
        start = _after(words, i + 1, {"in", "at", "near", "outside", "around", "within", "of", "to", "downtown"})
    if (
        start is not None
        and words.at(start - 1) in {"to", "of"}
        and words.at(start - 2) not in {"close", "out", "resident"}
    ):
        return None
    value = None if start is None else city_at(words, start)
    if start is None or value is None:
        return None
    who: Whom | None = None
    before = words.at(i - 1)
    near = words.low[max(0, i - 6) : i]
    if word in {"lives", "resides", "dwells", "live", "reside", "settled"}:
        who = reader.of_verb(i)
    elif word == "lived":
        lasting = words.at(value[1]) in {"since", "for"} and {"has", "have", "'ve", "'s"} & set(near)
        who = reader.of_verb(i) if lasting else None
    elif word in {"living", "residing"} and before in ENJOYING:
        who = reader.of_verb(i - 1)
    elif word in {"living", "residing"} and not any(
        each[0].isalnum() and each not in ADVERBS for each in words.low[:i]
    ):
        who = reader.of_verb(i)
    elif any(each in BEING for each in near) and _is_predicate(words, i):
        who = reader.of_verb(i - (word == "resident" and before in {"a", "an"}))
    return None if who is None else Found("city", value, who)


def _is_predicate(words: Words, i: int) -> bool:
    """Whether a participle stands behind a form of `to be`, with nothing but adverbs between."""
    j = i - 1
    if words.at(j) in {"a", "an"}:
        j -= 1
    while j >= 0 and i - j < NEAR:
        word = words.low[j]
        if word in BEING:
            return True
        if word not in ADVERBS and not word.endswith("ly"):
            return False
        j -= 1
    return False


def _going(reader: SubjectReader, i: int) -> Found | None:
    words = reader.words
    start = _after(words, i + 1, {"to", "in"})
    value = None if start is None else city_at(words, start)
    if value is None or (words.low[i] == "returned" and "lives" not in words.low[i : i + NEAR]):
        return None
    before = [
        each for each in words.low[max(0, i - 4) : i] if each in {"was", "were", "be", "been", "being", "get", "got"}
    ]
    if before and words.at(i - 1) in {*before, "just", "recently"}:
        return None  # `the file was moved to …`
    return Found("city", value, reader.of_verb(i))


def _life(reader: SubjectReader, i: int) -> Found | None:
    """`likes life in Porto`."""
    words = reader.words
    value = city_at(words, i + 2) if words.at(i + 1) == "in" and words.at(i - 1) in ENJOYING else None
    return Found("city", value, reader.of_verb(i - 1)) if value else None


def _based(reader: SubjectReader, i: int) -> Found | None:
    """`is a Porto-based designer`."""
    j = i - 1
    while j >= 0 and i - j < 4 and reader.words.low[j] in {"a", "an", "now", "the"}:
        j -= 1
    return Found("city", (i, i + 1), reader.of_verb(j)) if reader.words.at(j) in BEING else None


def _place_noun(reader: SubjectReader, i: int) -> Found | None:
    """`the user's city is …`, `my new flat is in …`."""
    words, noun = reader.words, reader.words.low[i]
    compound = words.at(i - 1) == "home" and noun in {"city", "base", "town", "address"}
    if (noun == "home" and words.at(i + 1) in {"city", "base", "town"}) or (noun == "base" and not compound):
        return None  # read at the next word, or no home
    first = i - 1 if compound else i
    if words.at(i + 1) == "of":
        if words.at(i + 2) != "residence":
            return None
        i += 2
    who, begins = reader.of_noun(first)
    if noun == "home" and {"calls", "call", "made", "makes"} & set(words.low[max(0, i - NEAR) : i]):
        return _calls_home(reader, i)
    start = _copula(words, i + 1)
    if start is None and words.at(i + 1) in {"to", "as"} and _ordered(words, begins):
        start = i + 2
    if who is Somebody.OTHER or start is None:
        return None if who is Somebody.OTHER else _is_home(reader, begins, who)
    inside = noun in INSIDE and words.low[i] != "residence"
    if (inside and words.at(start) not in {"in", "near", "at"}) or (noun == "home" and words.plain):
        return None
    value = city_at(words, start)
    return Found("city", value, who, who is Somebody.UNNAMED) if value else None


def _calls_home(reader: SubjectReader, i: int) -> Found | None:
    """`calls Oslo home`."""
    words = reader.words
    for j in range(i - 1, max(-1, i - NEAR), -1):
        if words.low[j] in {"calls", "call", "made", "makes"}:
            value = city_at(words, j + 1)
            return Found("city", value, reader.of_verb(j)) if value and value[1] >= i - 3 else None
    return None


def _is_home(reader: SubjectReader, begins: int, who: Whom) -> Found | None:
    """`Porto is the user's new home`."""
    words = reader.words
    j = begins - 1
    while words.at(j) in {"the", "now", "become"}:
        j -= 1
    if words.at(j) not in {"is", "has", "became"} or who in {Somebody.UNNAMED, Somebody.OTHER}:
        return None
    value = (0, j) if 1 <= j <= 4 and words.is_capital(0) and words.is_capital(j - 1) | (j == 1) else None
    return Found("city", value, who) if value and words.low[0] not in NO_PERSON else None


def _copula(words: Words, i: int) -> int | None:
    """Behind what joins a thing and its value: `is`, `:`, `was changed to`."""
    if words.at(i) == ":" or words.at(i) == "=":
        return i + 1
    if words.at(i) in {"is", "are", "'s", "be"}:
        i += 1
    elif words.at(i) in {"should", "shall", "would"} and words.at(i + 1) == "be":
        i += 2
    elif words.at(i) in {"was", "has"} and words.at(i + 1) == "changed" and words.at(i + 2) == "to":
        return i + 3
    elif words.at(i) == "changed" and words.at(i + 1) == "to":
        return i + 2
    else:
        return None
    while words.at(i) in {"now", "currently", "still"}:
        i += 1
    if words.at(i) == "in" and words.at(i + 1) in {"downtown", "central"}:
        i += 1
    return i


def _ordered(words: Words, i: int) -> bool:
    """Whether words before a place order a change, or tell of one."""
    return any(
        each in {"change", "changed", "update", "updated", "set", "switch", "switched", "correct", "corrected"}
        for each in words.low[max(0, i - 4) : i]
    )


def _owned(
    name: str, value_at: Callable[[Words, int], Span | None], reader: SubjectReader, i: int, length: int = 1
) -> Found | None:
    """`the user's name is …`."""
    words = reader.words
    who, begins = reader.of_noun(i - length + 1)
    if words.low[i + 1 : i + 4] == ["of", "the", "user"]:
        who, i = reader.voice.who("user"), i + 3
    elif words.low[i + 1 : i + 3] == ["of", "choice"] or (
        words.at(i + 1) == "for" and words.at(i + 2) in REPLIES | {"chats"}
    ):
        i += 2
    start = _copula(words, i + 1)
    if start is None and words.at(i + 1) == "to" and _ordered(words, begins):
        start = i + 2
    if start is None or who is Somebody.OTHER:
        return None
    value = value_at(words, start)
    if value and name == "language" and not is_tongue(" ".join(words.low[slice(*value)])):
        return None
    return Found(name, value, who, who is Somebody.UNNAMED) if value else None


def _pronoun_noun(reader: SubjectReader, i: int) -> Found | None:
    words = reader.words
    if value := pronouns_at(words, i + 1):
        who, _ = reader.of_noun(i)
        return Found("pronouns", value, who, who is Somebody.UNNAMED)
    return _owned("pronouns", any_at, reader, i)


def _called(reader: SubjectReader, i: int) -> Found | None:
    """`is called …`, `prefers to be addressed as …`, `wants people to call them …`, `call me …`."""
    words, word = reader.words, reader.words.low[i]
    if word not in {"called", "named", "known", "addressed", "referred"} or words.at(i + 1) in {"me", "us"}:
        return _calls(reader, i)
    start = i + 1
    if words.at(start) in {"him", "her", "them", "me"}:
        return _calls(reader, i)
    if words.at(start) == "to" and word == "referred":
        start += 1
    if words.at(start) in {"as", "by"}:
        start += 1
    elif word in {"known", "addressed", "referred"}:
        return None
    if words.at(start) == "the" and words.at(start + 1) == "name":
        start += 2
    value = name_at(words, start)
    if value is None:
        return None
    j = _wishing(words, i)
    if j is None:
        return None
    who = reader.of_verb(j, wishes=True)
    return Found("preferred_name", value, who)


def _wishing(words: Words, i: int) -> int | None:
    """The verb by which somebody is called something: `is`, `prefers to be`, `should be`."""
    j = i - 1
    while (
        j >= 0
        and i - j < 5
        and words.low[j] in {"usually", "mostly", "generally", "now", "also", "being", "be", "to", "always"}
    ):
        j -= 1
    word = words.at(j)
    if word in BEING - {"been", "being", "was", "were"} or word == "been":
        return j
    if word in PREFERRING | {"chose", "chooses", "requests", "would", "should", "must", "may", "can", "has", "wished"}:
        return j
    return None


def _calls(reader: SubjectReader, i: int) -> Found | None:
    words = reader.words
    start = i + 1
    if words.at(start) == "to" and words.low[i] in {"refer", "refers", "referring"}:
        start += 1
    if words.at(start) == "the" and words.at(start + 1) == "user":
        start += 1
    if words.at(start) not in {"me", "us", "user", "him", "her", "them", "himself", "herself", "themselves"}:
        return None
    who = reader.of_order(start)
    if words.at(start) in {"him", "her", "them"} and not {*PREFERRING, "'d"} & set(words.low[max(0, i - 6) : i]):
        return None
    if {"not", "never", "'t"} & set(words.low[max(0, i - 3) : i]):
        return None
    start += 1
    if words.at(start) in {"as", "by"}:
        start += 1
    value = name_at(words, start)
    return Found("preferred_name", value, who) if value else None


def _goes_by(reader: SubjectReader, i: int) -> Found | None:
    words = reader.words
    if words.at(i + 1) != "by":
        return None
    start = i + 2
    named = words.at(start) == "the" and words.at(start + 1) in {"name", "nickname"}
    if named:
        start += 2 + (words.at(start + 2) == "of")
    value = None if words.at(start + 1) == "/" else name_at(words, start, passing=not named)
    return Found("preferred_name", value, reader.of_verb(i)) if value else None


def _uses_name(reader: SubjectReader, i: int) -> Found | None:
    """`prefers the name …`."""
    words = reader.words
    value = name_at(words, i + 3) if words.low[i + 1 : i + 3] == ["the", "name"] else None
    return Found("preferred_name", value, reader.of_verb(i)) if value else None


def _uses_pronouns(reader: SubjectReader, i: int) -> Found | None:
    words, start = reader.words, i + 1
    if words.low[i] in {"goes", "go"}:
        if words.at(start) != "by":
            return None
        start += 1
    start += words.at(start) == "the"
    start += words.at(start) == "pronouns"
    value = pronouns_at(words, start)
    if value is None or (value[1] - value[0] == 1 and words.at(value[1]) != "pronouns"):
        return None
    return Found("pronouns", value, reader.of_verb(i))


def _refers(reader: SubjectReader, i: int) -> Found | None:
    """`refer to me as they`, `should be referred to as they`."""
    words, start = reader.words, i + 1
    start += words.at(start) == "to"
    start += words.at(start) == "the"
    named = words.at(start) in {"me", "user"}
    end = start + named
    if words.at(end) not in {"as", "with", "by", "using"}:
        return None
    end += 1
    if words.at(end) == "the" and words.at(end + 1) == "pronouns":
        end += 2
    value = pronouns_at(words, end)
    if value is None:
        return None
    if named:
        return Found("pronouns", value, reader.of_order(start))
    wishing = _wishing(words, i)
    return None if wishing is None else Found("pronouns", value, reader.of_verb(wishing, wishes=True))


def _tongue(reader: SubjectReader, i: int) -> Found | None:
    """A language, and what is wanted of it: `prefers answers in German`, `answer me in German`, `native German`."""
    words, value = reader.words, (i, i + 1)
    after = words.at(i + 1)
    before = words.at(i - 1)
    if before == "native" or words.low[max(0, i - 3) : i] == ["native", "speaker", "of"]:
        return _native(reader, i, i - 1 if before == "native" else i - 3)
    if before in {"speaks", "speak"} and after in {"natively", "as", "with"}:
        if after == "with" and words.low[i + 2 : i + 4] not in (["the", "assistant"], ["me", "."]):
            return None
        if after == "as" and not {"first", "native", "main", "mother", "preferred"} & set(words.low[i + 2 : i + 5]):
            return None
        return Found("language", value, reader.of_verb(i - 1))
    if after in REPLIES and before in PREFERRING:
        return Found("language", value, reader.of_verb(i - 1))
    free = not after.isalpha() or after in STOP | ADVERBS | {"to", "for", "by"}
    j = i - 1
    if before == "in":
        j -= 1
    elif before in {"prefers", "prefer"} and free:
        return Found("language", value, reader.of_verb(i - 1))
    return _spoken(reader, value, j) if free else None


def _native(reader: SubjectReader, i: int, j: int) -> Found | None:
    words = reader.words
    j -= 1
    while j >= 0 and words.low[j] in {"a", "an", "the"} and i - j < NEAR:
        j -= 1
    return Found("language", (i, i + 1), reader.of_verb(j)) if words.at(j) in BEING else None


def _spoken(reader: SubjectReader, value: Span, j: int) -> Found | None:
    """Who wants to be spoken to in a language, by the words that end before it."""
    words = reader.words
    orders, end = words.at(value[0] - 1) == "in", j
    while (
        j >= 0
        and end - j < 6
        and words.low[j] in {"me", "us", "him", "her", "them", "to", "with", "the", "user", "everything"}
    ):
        j -= 1
    word = words.at(j)
    if word not in SPEAKING and word not in REPLIES and word not in {"use", "answering"}:
        return None
    whom = next((k for k in range(end, j, -1) if words.low[k] in {"me", "us", "him", "her", "them", "user"}), None)
    start = j
    while j >= 0 and start - j < 7 and words.low[j] not in PREFERRING | {"should", "must", "would"}:
        if words.low[j] in {"let", "let's"}:
            return Found("language", value, reader.voice.who("me"))
        j -= 1
    if j >= 0 and start - j < 7 and words.low[j] != "answered":
        if words.low[j] == "rather" and words.at(j - 1) in {"would", "'d"}:
            j -= 1
        if words.low[j] in {"like", "love"} and words.at(j - 1) in {"'d", "would"}:
            j -= 1
        return Found("language", value, reader.of_verb(j, wishes=True))
    ordered = word in SPEAKING | {"use"} and _is_order(words, start)
    if not ordered or not (orders or whom is not None or word == "speak"):
        return None
    if words.at(value[1]) in {"to", "for", "on"} and whom is None:
        return None
    return Found("language", value, reader.voice.who("me") if whom is None else reader.of_order(whom))


_POLITE = frozenset({
    "please", "always", "just", "kindly", "so", "from", "now", "on", "in", "future", "you", "can", "may", ",", "and",
    "then", "also",
})  # fmt: skip


def _is_order(words: Words, i: int) -> bool:
    """Whether a verb begins what somebody asks for: nothing but `please`, `always`, `from now on` stands before it."""
    before = words.low[max(0, i - NEAR) : i]
    while ":" in before:
        before = before[before.index(":") + 1 :]
    return all(each in _POLITE for each in before) and i < NEAR


_Read = Callable[[SubjectReader, int], Found | None]


def _table() -> Mapping[str, tuple[tuple[str, _Read], ...]]:
    found: dict[str, list[tuple[str, _Read]]] = {}

    def add(tokens: Collection[str], name: str, read: _Read) -> None:
        for each in tokens:
            found.setdefault(each, []).append((name, read))

    add(DWELLING, "city", _dwelling)
    add(GOING, "city", _going)
    add({"life"}, "city", _life)
    add(PLACE_NOUNS, "city", _place_noun)
    add(CALLING | {"calls", "refer", "refers", "address", "addresses"}, "preferred_name", _called)
    add({"goes", "go"}, "preferred_name", _goes_by)
    add({"prefers", "prefer", "uses", "use"}, "preferred_name", _uses_name)
    add({"name", "nickname"}, "preferred_name", partial(_owned, "preferred_name", name_at))
    add({"pronouns", "pronoun"}, "pronouns", _pronoun_noun)
    add({"goes", "go", "uses", "use", "prefers", "prefer", "takes", "take"}, "pronouns", _uses_pronouns)
    add({"refer", "refers", "referred"}, "pronouns", _refers)
    add({"language", "tongue"}, "language", partial(_owned, "language", any_at))
    add(TONGUES, "language", _tongue)
    return {word: tuple(each) for word, each in found.items()}


_TRIGGERS = _table()
_KNOWN = frozenset(name for each in _TRIGGERS.values() for name, _ in each)

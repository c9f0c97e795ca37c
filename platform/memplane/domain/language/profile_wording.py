"""The words by which fields of a profile are stated: a sentence as tokens, lists of words, and where a value ends.

Every list is looked up by word and every look around a word is bounded, so that reading takes time in proportion to the
length of a text.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from memplane.domain.language.entity_words import CALENDAR, ORGANISATION_LAST
from memplane.domain.language.extraction.extraction_words import LANGUAGE
from memplane.domain.memory.tombstones import BLANKS, LOOK_ALIKES

MAX_VALUE = 120
NEAR = 12
"""Words around a place that are looked at."""


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


FIRST = _set("i me my we us our myself ourselves")
THIRD = _set("he she they him her them his their himself herself themselves themself")
USER = _set("user users")
BEING = _set("is are am be 'm 're 's been being was were become became")
STOP = _set(
    "and or but with since for because where as by from who which that now until when while after before during "
    "these this those again instead currently today yesterday tomorrow tonight please last next to over so then "
    "too also rather not on in at soon recently permanently together alone though right already anymore nowadays "
    "lately always forever temporarily still here there earlier later ago full part every"
)
"""Words at which a value ends."""
ADVERBS = _set(
    "now just recently finally currently still also permanently again since already then always once even "
    "actually really only usually mostly generally long lately happily here alone together out back soon so both "
    "all temporarily apparently has have had 've 's is are am was were 're 'm been being officially"
)
DENIALS = _set(
    "not never 't hardly almost nearly could might would may should shall cannot can will 'll to must until 'd "
    "longer does did do nowhere don doesn didn won no"
)
"""Words that deny a verb after them, or make it a wish."""
SUPPOSING = _set(
    "if unless whether suppose supposing supposed imagine imagined imagining wish wishes wished dream dreams "
    "dreamed pretend pretends hypothetically"
)
REPORTING = _set("that who whose which said says told tells heard because when after while")
NO_PERSON = _set(
    "the a an this that these those it its there each every one some many note system since in on at from after "
    "before as by for to with when while if and but then so also now today yesterday tomorrow recently currently "
    "last next january february march april may june july august september october november december monday "
    "tuesday wednesday thursday friday saturday sunday spring summer autumn winter profile fact update remember "
    "info summary please always during yes no ok okay finally lately nowadays"
)
HEADINGS = NO_PERSON | _set(
    "user confirmed correction residence city home location name status statement quote important context "
    "background preference preferences pronouns language moved"
)
RELATED = _set(
    "mother father mom mum dad sister brother son daughter kid child husband wife spouse partner boyfriend "
    "girlfriend aunt uncle cousin niece nephew friend roommate flatmate neighbour neighbor boss manager mentor "
    "coworker colleague teacher doctor dog cat client"
)
PERSONAL = _set(
    "home city town address residence location name names pronouns language tongue profile life job hometown "
    "nickname new current preferred native first flat apartment house"
)
"""What follows `the user's` where a sentence is about the user still."""

DWELLING = _set("lives live lived resides reside residing dwells living based located settled resident")
GOING = _set("moved relocated returned")
PLACE_NOUNS = _set("city town hometown residence home base location address flat apartment house place")
INSIDE = _set("flat apartment house address place")
"""What is `in` a city, and never is one."""
OWNED_ADJECTIVES = _set(
    "new current actual real own home present permanent first preferred native main primary legal full given "
    "chosen display mother usual second"
)
ENJOYING = _set("enjoys enjoy loves love likes like adores adore hates hate enjoying loving liking")
CALLING = _set("called named known addressed referred addressing referring calling call")
TONGUES = frozenset(each.casefold() for each in LANGUAGE[3:-1].split("|"))
SPEAKING = _set("speak talk write chat answer reply respond communicate converse continue read switch")
REPLIES = _set(
    "answers replies responses conversations conversation communication messages chatting talking speaking "
    "writing chats answer reply response addressed answered spoken written contacted being"
)
PREFERRING = _set(
    "prefers prefer wants want likes like rather asked asks ask requested requests wishes loves love insists"
)
PRONOUNS = _set("she he they xe ze it any per fae ey her him them hers his theirs xem zir hir")
TELLING = frozenset(
    filter(
        str.isalpha,
        {*FIRST, *BEING, *USER, *DWELLING, *GOING, *PLACE_NOUNS, *CALLING, *TONGUES, *SPEAKING, *REPLIES, *PREFERRING}
        | {*PRONOUNS, *PERSONAL, "in", "at", "to", "the"},
    )
)
"""Words that tell of a field: they are known in digits and accents too."""
_AREAS = _set(
    "city town village north south east west suburbs outskirts centre center heart part district area middle edge"
)
_WITHIN = _set(
    "in at near outside around within of by downtown central northern southern eastern western inner greater"
)
_PREFIXES = _set("greater downtown central northern southern eastern western inner")
_JOINERS = _set("de la las los del do da dos das di am an der upon sur les le of von van")
_NO_PLACE = _set(
    "fear hope peace poverty front general order bed denial work harmony parallel sin touch trash archive "
    "archives inbox drafts draft done backlog spam outbox junk python java rust go kotlin swift ruby scala slack "
    "teams zoom notion google gmail outlook figma jira linear asana trello linux windows ubuntu debian android "
    "kubernetes docker postgres redis kafka azure vercel amazon microsoft apple netflix meta spotify vim neovim "
    "emacs rails django react vue svelte terraform sales marketing engineering management finance product design "
    "support operations legal hr unit team plan tier level phase stage sprint version group class grade room gate "
    "hall building row seat dr prof chapter section page firefox chrome safari brave edge opera confluence "
    "dropbox onedrive icloud github gitlab bitbucket signal whatsapp telegram discord evernote obsidian aws gcp "
    "heroku netlify cloudflare mongodb mysql sqlite postgresql oracle salesforce hubspot shopify wordpress macos "
    "ios iphone samsung pixel thunderbird protonmail mastodon bluesky production staging"
)
"""Products, folders and departments, which people move to as well."""
_NO_CITY = _set(
    "office offices team teams department branch role group plan project position version cloud floor room desk "
    "list tier building side stage phase folder channel board server cluster schedule track column section seat "
    "bank job company state meeting conference airport hotel station account campus shift queue page club chapter"
) | (frozenset(ORGANISATION_LAST) - _AREAS)
_COMMON = re.compile(
    r"\A(?:[\w-]+(?:ment|tion|sion|ship|ing|ance|ence|ness|time|wide|hood|ware|side|ly)|remote|sales|finance|support|legal|product"
    r"|prod|design|research|security|operations|ops|devops|data|backend|frontend|platform|cloud|decaf|tea|coffee|weekly"
    r"|daily|mornings|evenings|nights|mondays|postgres\w*|town|luxury|style|bits|quiet|cold|small|big|nice|far|warm|mine|his"
    r"|her|their|my|our|your|bed|it|a|an|the|what|very)",
)
"""Words that are no places where a sentence has no capital letters."""
_NO_NAME = _set(
    "back away up off out by to for in on at it not never a an the after before later again only when whenever if "
    "as about once soon asap any anytime tomorrow tonight today now crazy this next around daily weekly directly "
    "immediately train bus bike car foot plane boat tram ferry taxi bicycle what whatever my your his her their "
    "every everyone names me him them maybe sometime first monday tuesday wednesday thursday friday saturday "
    "sunday lidl aldi tesco ikea walmart costco"
)
_PASSING = _set("on after before every each for when to at in during")
"""What follows a place that somebody goes by, and no name."""
_NO_VALUE = _set("not never unknown none nobody nothing different no private secret important missing")
_NO_TONGUE = _set(
    "python java javascript typescript go golang rust ruby kotlin swift php scala perl haskell sql lua elixir "
    "erlang clojure dart zig julia matlab fortran cobol bash c r assembly html css yaml objective-c"
)
_TITLES = r"St|Ste|Srta?|Ft|Mt|Pt|Drs?|Prof|Mrs?|Ms|Mx|Messrs|Jr|Rev|Capt|Lt|Sgt|Col|Gen|Hon|Fr"
_TOKEN = re.compile(
    rf"<[^<>]{{1,40}}>|(?:\b(?i:{_TITLES})|\b[^\W\d_])\.(?=\s?[^\W_])|[^\W_]+(?:[.-][^\W_]+)*|['’][^\W\d_]+|[,.;:=()\"“”/?!]"
)
_TECHNICAL = re.compile(r"\A(?:\w*[a-z][A-Z]\w*|(?!(?:NYC|LA|SF|DC|UK|US|USA|UAE|KL|HK)$)[A-Z]{2,3})")
_CUT = re.compile(
    r"(?<!\s)(?:\s*[,;(/|].*|\s+-\s.*"
    r"|\s+(?:right\s+now|yesterday|today|now|currently|again|these\s+days|at\s+the\s+moment|area|region)\b.*)",
    re.IGNORECASE | re.DOTALL,
)
_BEFORE_CITY = re.compile(
    r"(?:(?:the\s+)?(?:city|town|village|centre|center|heart|north|south|east|west|suburbs|outskirts)\s+of\s+"
    r"|(?:the|greater|downtown|central|northern|southern|eastern|western|inner)\s+(?=\S))+",
    re.IGNORECASE,
)


@dataclass(slots=True)
class Words:
    """A sentence as words and signs.

    Attributes:
        text: the sentence.
        places: where each of its characters stood before it was freed of disguises.
        raw, low: its tokens, as written and in small letters.
        spans: where each stands.
        plain: whether nothing behind its first word is in capitals, or everything is: then capitals tell nothing.
        nameless: the same of the first word too.
    """

    text: str
    places: Sequence[int]
    raw: list[str] = field(default_factory=list)
    low: list[str] = field(default_factory=list)
    spans: list[tuple[int, int]] = field(default_factory=list)
    plain: bool = False
    nameless: bool = False

    @classmethod
    def of(cls, sentence: str) -> "Words":
        """The words of a sentence, freed of invisible characters and disguised letters."""
        text, places = undisguised(sentence)
        words = cls(text, places)
        for match in _TOKEN.finditer(text):
            word = match.group()
            if word[0] != "<":
                words.raw.append(word)
                words.low.append(word.lower().replace("’", "'"))
                words.spans.append(match.span())
        letters = [each for each in words.raw if each not in {"I", "i"} and each[0].isalpha()]
        rest = letters[1:] or letters
        loud = all(each.isupper() for each in letters)
        words.plain = loud or all(each.islower() for each in rest)
        words.nameless = loud or all(each.islower() for each in letters)
        return words

    def __len__(self) -> int:
        """How many tokens there are."""
        return len(self.raw)

    def at(self, place: int) -> str:
        """The word at a place in small letters; nothing outside the sentence."""
        return self.low[place] if 0 <= place < len(self.low) else ""

    def is_capital(self, place: int) -> bool:
        """Whether the word at a place begins with a capital, as names do, or with a letter of a script without any."""
        first = self.raw[place][0] if 0 <= place < len(self.raw) else ""
        return first.isalpha() and not first.islower()

    def said(self, start: int, end: int, original: str) -> str:
        """What the sentence says from one word to before another, without invisible characters."""
        first, last = self.spans[start][0], self.spans[end - 1][1]
        said = original[self.places[first] : self.places[last - 1] + 1]
        return " ".join("".join(c for c in said if c not in BLANKS and unicodedata.category(c) != "Cf").split())


def undisguised(text: str) -> tuple[str, Sequence[int]]:
    """A text without invisible characters and disguised letters, and where each of its characters stood."""
    if text.isascii():
        return text, range(len(text))
    letters: list[str] = []
    places: list[int] = []
    for place, c in enumerate(text):
        for plain in _plain(c):
            letters.append(plain)
            places.append(place)
    return "".join(letters), places


@lru_cache(maxsize=8_192)
def _plain(c: str) -> tuple[str, ...]:
    if c.isascii():
        return (c,)
    found: list[str] = []
    for letter in unicodedata.normalize("NFKC", c):
        if letter in BLANKS or unicodedata.category(letter) == "Cf":
            continue
        folded = letter.casefold().translate(LOOK_ALIKES) if not letter.isascii() else letter
        plain = folded.upper() if folded.isascii() and letter.isupper() else folded if folded.isascii() else letter
        found.append("'" if plain == "’" else plain[:1] or letter)
    return tuple(found)


def core(name: str, value: str) -> str:
    """A value without what surrounds it: of `downtown Porto` and `Porto, Portugal` the city; no name is cut."""
    said = " ".join(value.strip(" .'\"“”-").split())[:MAX_VALUE]
    if name == "city":
        said = _BEFORE_CITY.sub("", _CUT.sub("", said, count=1), count=1) or said
    elif name == "language":
        said = _CUT.sub("", said, count=1) or said
    return said


def city_at(words: Words, start: int) -> tuple[int, int] | None:
    """Where a place is named that begins at a word or soon after, as in `a small flat in Graz`."""
    i = start
    if words.plain:
        while words.at(i) in _WITHIN or words.at(i) == "the":
            i += 1
        return _plain_city(words, i)
    while not words.is_capital(i) or (words.at(i) in _PREFIXES and words.is_capital(i + 1)):
        word = words.at(i)
        if i - start > NEAR or not word[:1].isalpha() or word in CALENDAR or word in {"with", "and", "or"}:
            return None
        i += 1
    before = words.at(i - 1)
    near = i == start or before in _WITHIN or before in {"the", "in", "at", "to"}
    if before == "of" and words.at(i - 2) not in _AREAS:
        near = i == start
    if before == "the" and i - 1 > start:
        near = words.at(i - 2) in _WITHIN
    end = _name_end(words, i)
    return (i, end) if near and _is_place(words, i, end) else None


def _is_place(words: Words, start: int, end: int) -> bool:
    inside = words.low[start:end]
    if end - start > 6 or any(each[0].isdigit() for each in inside):
        return False
    if inside[0] in CALENDAR or words.at(end) in _NO_CITY or inside[-1] in _NO_CITY:
        return False
    following = words.at(end)
    if words.at(start - 1) == "the" and following.isalpha() and following not in STOP | _AREAS | {"region"}:
        return False
    return not any(
        each in _NO_PLACE or _TECHNICAL.fullmatch(raw) for each, raw in zip(inside, words.raw[start:end], strict=True)
    )


def _plain_city(words: Words, start: int) -> tuple[int, int] | None:
    end = start
    while end - start < 3 and words.at(end)[:1].isalpha() and words.at(end) not in STOP:
        end += 1
    inside = words.low[start:end]
    if not 1 <= len(inside) <= 2 or _COMMON.fullmatch(inside[0]) or inside[-1] in _NO_CITY or inside[0] in CALENDAR:
        return None
    return None if any(each in _NO_PLACE for each in inside) else (start, end)


def _name_end(words: Words, start: int) -> int:
    """Behind the last word of a name that is written with capitals."""
    end = start + 1
    while end < len(words) and end - start < NEAR:
        word, before = words.at(end), words.raw[end - 1]
        if words.is_capital(end) and word not in CALENDAR and not (before.endswith(".") and word in NO_PERSON):
            end += 1
        elif word in _JOINERS and words.is_capital(end + 1) and words.at(end + 1) not in CALENDAR:
            end += 2
        elif word.startswith("'") and (
            word not in {"'s", "'ve", "'re", "'m"} or words.at(end + 1) in STOP | {"", ".", ","}
        ):
            end += 1
        else:
            break
    return end


def name_at(words: Words, start: int, *, passing: bool = False) -> tuple[int, int] | None:
    """Where somebody is named that begins at a word.

    Args:
        words: the sentence.
        start: where the name begins.
        passing: whether a shop on the way could stand there as well.
    """
    first = words.at(start)
    if (
        not first[:1].isalpha()
        or first.rstrip(".") in _NO_NAME
        or (first in PRONOUNS and words.at(start + 1) in {"/", "", "."})
    ):
        return None
    if words.plain:
        end = start
        while end - start < 3 and words.at(end)[:1].isalpha() and words.at(end) not in STOP:
            end += 1
        return (start, end) if 1 <= end - start <= 2 else None
    if not words.is_capital(start):
        return None
    end = _name_end(words, start)
    if (
        passing
        and words.at(end) in _PASSING
        and words.at(end) != "at"
        and words.at(end + 1) not in {"general", "short"}
    ):
        return None
    return (start, end) if end - start <= 6 else None


def any_at(words: Words, start: int) -> tuple[int, int] | None:
    """Where a value of any field stands that begins at a word: up to a sign or a word that ends it."""
    end = start
    while end < len(words) and end - start < NEAR:
        word = words.at(end)
        if word in STOP or not (word[0].isalnum() or word == "/" or word.startswith("'")):
            break
        end += 1
    if end == start or words.at(start) in _NO_VALUE or not words.at(start)[0].isalnum():
        return None
    return start, end


def pronouns_at(words: Words, start: int) -> tuple[int, int] | None:
    """Where pronouns stand: `they/them`, or one alone."""
    if words.at(start) not in PRONOUNS | {"no", "neutral", "gender-neutral"}:
        return None
    end = start + 1
    while end - start < NEAR and words.at(end) == "/" and words.at(end + 1).isalpha():
        end += 2
    return start, end


def is_tongue(value: str) -> bool:
    """Whether a value is a language that somebody speaks."""
    return value.casefold().split(" ", 1)[0] not in _NO_TONGUE

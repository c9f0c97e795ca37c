"""Facts from statements that begin with 'My': particulars, favourites, family and pets."""

import re

from memplane.domain.language.extraction.extraction_dates import DATE, RECURS, dated
from memplane.domain.language.extraction.extraction_fact import Clause, ExtractedFact, StatementContext
from memplane.domain.language.extraction.extraction_frames import Frame
from memplane.domain.language.extraction.extraction_guards import trivial
from memplane.domain.language.extraction.extraction_person import third
from memplane.domain.language.extraction.extraction_rules import is_name, told
from memplane.domain.language.extraction.extraction_words import (
    CONDITION,
    KIN,
    NATIONALITY,
    OCCUPATION,
    PET,
    bound,
    tidy,
    weight,
)

_ANY = re.compile("")
_IS = r"(?:is|are|was)"
_PARTICULAR = re.compile(
    r"my (?P<what>(?:full |first |last |middle |real |preferred |legal |nick|work |home |personal |private "
    r"|mobile |cell )?"
    r"(?:name|nickname|pronouns|age|birthday|date of birth|e-?mail(?: address)?|phone(?: number)?|address"
    r"|time ?zone|home ?town"
    r"|(?:native|first|mother|second|preferred) (?:language|tongue)|nationality|occupation|job(?: title)?"
    r"|major|employer|budget"
    r"|wedding anniversary|anniversary|blood type|shoe size|star sign|zodiac sign|instagram(?: handle)?"
    r"|github(?: \w+)?|website"
    r"|main goal|goal|dream|ambition|biggest dream|long-term goal|dream job|hobby|hobbies|deadline|passion"
    r"|biggest fear))"
    r" (?:is|are|was|will be) (?P<value>.+)$",
    re.IGNORECASE,
)
_DEADLINE = re.compile(
    r"(?:my deadline for|the deadline for(?= my )) (?P<what>[\w' -]{2,60}?) is (?P<date>(?:on )?[\w ,]{3,40})$",
    re.IGNORECASE,
)
_FIELDS = {
    "name": ("preferred_name", 5),
    "full name": ("name", 5),
    "first name": ("preferred_name", 5),
    "preferred name": ("preferred_name", 5),
    "nickname": ("nickname", 4),
    "pronouns": ("pronouns", 4),
    "age": ("age", 4),
    "birthday": ("birthday", 4),
    "date of birth": ("birthday", 4),
    "native language": ("language", 4),
    "first language": ("language", 4),
    "preferred language": ("language", 4),
    "mother tongue": ("language", 4),
    "timezone": ("timezone", 4),
    "time zone": ("timezone", 4),
    "email": ("email", 4),
    "e-mail": ("email", 4),
    "email address": ("email", 4),
    "phone": ("phone", 4),
    "phone number": ("phone", 4),
    "hometown": ("hometown", 4),
}
_GOALS = frozenset({"main goal", "goal", "dream", "ambition", "biggest dream", "long-term goal"})
_FAVOURITE = re.compile(
    r"my (?:(?:all-time|absolute|personal|current) )?(?:favou?rite|fave|fav) (?P<what>(?!part|thing|moment"
    r"|memor|(?:one|of|type|kind|sort|version|option|ones)\b)"
    r"(?:[\w'-]+ ){1,5}?)(?P<verb>is|are|was|were|has to be|would be|have to be) (?P<value>.+)$",
    re.IGNORECASE,
)
_KIN = re.compile(
    rf"my (?P<who>{KIN}(?!')(?:,? (?P<name>[A-Z][\w'-]+),?)?(?: and (?:my )?(?:{KIN}|[A-Z]\w+))?) (?:just "
    r"|recently |also |always |really |now |currently |actually |finally )?(?P<what>"
    rf"(?:is|are) (?:an? |the )?(?:(?!not |never |hardly )[\w'-]+ ){{0,3}}{OCCUPATION}.*"
    r"|(?:is|are|was) (?:called|named|from|allergic to|married|engaged|pregnant|divorced|vegan|vegetarian"
    r"|retired|turning|getting married|studying|learning|visiting|moving|coming to|expecting|born in"
    r"|diagnosed with|based in|living in|training|in (?:the (?:military|army|hospital|navy)|college"
    r"|kindergarten|high school|[A-Z])).*"
    r"|(?:is|are) (?:only |now )?\d{1,3}(?: years? old| months old)?$"
    rf"|(?:is|are) {NATIONALITY}$"
    r"|(?:lives?|works?|stud(?:y|ies)|teach(?:es)?|plays?|owns?|runs?) (?:in|at|as|for|near|with|an?|the)? ?\w+.*"
    r"|(?:loves?|likes?|hates?|enjoys?|adores?) (?!it|how|to (?:hear|see)|that|when|being|the (?:idea|way))\w+.*"
    rf"|ha(?:s|ve) (?:(?:an? |two |three |been diagnosed with )\w+.*|{CONDITION}.*)"
    r"|(?:died|passed away|passed|graduated|got (?:married|engaged|divorced|a (?:new )?job|into|diagnosed)"
    r"|had (?:an? (?:baby|accident|surgery|heart attack|stroke)|surgery)|moved|bought|started (?:school"
    r"|college|kindergarten|university|working|a)|turned \d+|gave birth|joined|retired|won|broke)\b.*"
    r")$",
    re.IGNORECASE,
)
_PETS = re.compile(
    rf"my (?P<who>{PET}(?:,? (?P<name>[A-Z][\w'-]+),?)?) (?P<what>(?:is|are|was|were) (?:called|named"
    r"|an? (?:\w+ )?\w+$|\d+|allergic to|sick|diagnosed|pregnant)\b.*"
    r"|(?:loves?|likes?|hates?) (?!it|how|to (?:see|hear)|that|when|being|me)\w+.*|(?:died|passed away"
    r"|had (?:puppies|kittens|surgery)|got (?:lost|sick))\b.*)$",
    re.IGNORECASE,
)
_NAMES = re.compile(
    rf"my (?P<who>{KIN}|{PET})(?:'s|'|s') (?P<what>(?:name (?:is|was)|names are|birthday is"
    r"|favou?rite \w+ (?:is|are)|wedding is|graduation is)) (?P<value>.+)$",
    re.IGNORECASE,
)
_TOGETHER = re.compile(
    rf"my (?P<who>(?:{KIN}|family|fam|fiance)(?: [A-Z]\w+)?) &I (?P<what>(?:are|have been|have|live|just"
    r"|recently|got|moved|bought|adopted|went|visited|met|started|broke|split|celebrated|took|decided|finally"
    r"|work|own|run|love|enjoy|will|attended|hiked|travell?ed)\b.*)$",
    re.IGNORECASE,
)
_PAST = re.compile(
    r"\A(?:[\w' ]+ )?(?:died|passed|graduated|got|had|moved|bought|started|turned|gave|joined|retired|won|broke"
    r"|was|were|went|visited|met|split|celebrated|took|decided|adopted|attended|hiked|travell?ed)\b"
)
_ADDRESSES = frozenset({"email", "e-mail", "email address", "e-mail address"})
_COUNTED = frozenset({"birthday", "date of birth", "age", "phone", "phone number"})
_DENIED = re.compile(
    r"(?:definitely |certainly |really |just |now |actually )*(?:not|never|no|wrong|broken|dead|gone|over|hardly)\b"
)
_SAYS_NOTHING = re.compile(
    r"\A(?:an? |the |very |so |really |just |too |actually )*(?:good|great|bad|important|secret"
    r"|private|unknown|simple|same|to (?:make|help|be|keep|get|do|have|give|see|show))\b"
)
_FIGURES = re.compile(r"\d|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)|\wty\b", re.IGNORECASE)
_EMAIL = re.compile(r"[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+")


def from_mine(clause: Clause, telling: StatementContext) -> ExtractedFact | None:
    """The fact in a statement about something or someone of its author's, if a rule knows it."""
    text = clause.text
    if not text[:4].lower().startswith(("my ", "the ")):
        return None
    for rule in (_deadline, _particular, _favourite, _names, _kin, _pet, _together):
        fact = rule(clause, telling)
        if fact:
            return fact
    return None


def _made(frame: Frame, owner: str, rest: str, clause: Clause, telling: StatementContext) -> ExtractedFact | None:
    rest = tidy(rest)
    if not rest or not bound(rest) or weight(rest) < 1 or (frame.rule == "relationship.together" and weight(rest) < 2):
        return None
    time = dated(rest, clause.lead, telling.when, past=frame.tense == "past", recurs=RECURS.search(owner) is not None)
    return told(f"{owner} {third(time.text)}", frame, time.moment)


def _particular_value(what: str, value: str) -> str:
    """What a particular is, without afterthoughts; nothing if that is denied, passing or no such value."""
    if _DENIED.match(value):
        return ""
    email = _EMAIL.search(value)
    value = email.group() if email else tidy(re.split(r",? not |, and | and I ", value)[0])
    if what.endswith("name"):
        name = re.match(r"(?:actually |really )?([A-Z][\w'-]+(?: [A-Z][\w'.-]+){0,3})$", value)
        return name[1] if name and is_name(name[1]) and bound(name[1]) and weight(name[1]) else ""
    refused = (
        (what != "pronouns" and not bound(value))
        or _SAYS_NOTHING.match(value)
        or (not email and what in _ADDRESSES)
        or (what in _COUNTED and not _FIGURES.search(value))
        or (weight(value) < 1 and what not in ("birthday", "deadline", "pronouns", "age"))
        or trivial(f"identity.{what}", value)
    )
    return "" if refused else value


def _particular(clause: Clause, telling: StatementContext) -> ExtractedFact | None:
    found = _PARTICULAR.match(clause.text)
    if not found:
        return None
    what = found["what"].lower()
    value = _particular_value(what, found["value"])
    if not value:
        return None
    category = (
        "goals"
        if what in _GOALS
        else "interests"
        if what.startswith(("hobb", "passion"))
        else "tasks"
        if what == "deadline"
        else "profile"
    )
    field, importance = _FIELDS.get(what, (None, 4))
    if field == "language" and " " in value:
        field = None
    frame = Frame(
        f"identity.{(field or what).replace(' ', '_')}", _ANY, category, importance, 0.9, "present", "", 0, field
    )
    verb = "are" if what in ("pronouns", "hobbies") else "is"
    time = (
        dated(value, clause.lead, telling.when, past=False, recurs=what != "deadline")
        if what in ("deadline", "anniversary", "wedding anniversary")
        else None
    )
    said = time.text if time else value
    return told(f"{telling.possessive} {what} {verb} {third(said)}", frame, time.moment if time else None, value)


def _deadline(clause: Clause, telling: StatementContext) -> ExtractedFact | None:
    found = _DEADLINE.match(clause.text)
    if not found or not bound(found["what"]):
        return None
    named = DATE.match(found["date"])
    time = dated(named.group() if named else "", "", telling.when, past=False)
    if not time.found or not time.text:
        return None
    frame = Frame("task.deadline", _ANY, "tasks", 4, 0.9, "future")
    return told(f"{telling.possessive} deadline for {third(found['what'])} is {time.text}", frame, time.moment)


def _favourite(clause: Clause, telling: StatementContext) -> ExtractedFact | None:
    found = _FAVOURITE.match(clause.text)
    if not found:
        return None
    what, value = found["what"].strip(), tidy(found["value"])
    if (
        not bound(what)
        or not bound(value)
        or weight(value) < 1
        or re.match(r"(?:when|how|so|very|not|definitely not|no longer|never|hardly)\b", value)
    ):
        return None
    several = what.endswith("s") and not what.endswith(("ss", "series")) and " and " in f" {value} "
    once = found["verb"].lower() in ("was", "were")
    verb = ("were" if several else "was") if once else ("are" if several else "is")
    frame = Frame("preference.favourite", _ANY, "preferences", 3, 0.9)
    return told(f"{telling.possessive} favourite {third(what)} {verb} {third(value)}", frame, None)


def _names(clause: Clause, telling: StatementContext) -> ExtractedFact | None:
    found = _NAMES.match(clause.text)
    if not found or not re.search(r"[A-Z\d]|favou?rite", found.group()[3:]):
        return None
    pet = re.fullmatch(PET, found["who"], re.IGNORECASE)
    frame = Frame("pet.name" if pet else "relationship.detail", _ANY, "relationships", 4, 0.9)
    owner = f"{telling.possessive} {found['who']}{_genitive(found['who'])} {found['what']}"
    return _made(frame, owner, found["value"], clause, telling)


def _genitive(who: str) -> str:
    return "'" if who.endswith("s") and not who.endswith("ss") else "'s"


def _kin(clause: Clause, telling: StatementContext) -> ExtractedFact | None:
    found = _KIN.match(clause.text)
    return _of_others("relationship", found, clause, telling)


def _pet(clause: Clause, telling: StatementContext) -> ExtractedFact | None:
    return _of_others("pet", _PETS.match(clause.text), clause, telling)


def _of_others(
    rule: str, found: re.Match[str] | None, clause: Clause, telling: StatementContext
) -> ExtractedFact | None:
    if not found or weight(found["what"]) < 1:
        return None
    if found["name"] and not found["name"][0].isupper():
        return None
    past = bool(_PAST.match(found["what"]))
    frame = Frame(
        f"{rule}.{'event' if past else 'detail'}", _ANY, "relationships", 4, 0.85, "past" if past else "present"
    )
    return _made(frame, f"{telling.possessive} {third(found['who'])}", found["what"], clause, telling)


def _together(clause: Clause, telling: StatementContext) -> ExtractedFact | None:
    found = _TOGETHER.match(clause.text)
    if not found or weight(found["what"]) < 2:
        return None
    past = bool(_PAST.match(found["what"]))
    frame = Frame("relationship.together", _ANY, "relationships", 3, 0.8, "past" if past else "present")
    what = re.sub(r"^(?:just|recently|finally) ", "", found["what"])
    what = re.sub(r"\bus\b", "me", re.sub(r"\bour\b", "my", what))
    return _made(frame, f"{telling.subject} and their {found['who']}", what, clause, telling)

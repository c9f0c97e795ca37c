"""Words that show what a name beside them is, for the finder that may take its time; general vocabulary, no facts."""

from functools import lru_cache

from memplane.domain.language import entity_words as known
from memplane.domain.language.comparison.comparison_thesaurus import is_kind_of, is_word, may_be_verb


def _words(*lines: str) -> frozenset[str]:
    return frozenset(word for line in lines for word in line.split())


def either(words: frozenset[str]) -> str:
    """A pattern for any of some words."""
    return f"(?:{'|'.join(sorted(words))})"


ORGANISATION_NOUNS = _words(
    "client customer supplier vendor employer company startup firm agency club bank insurer publisher brand",
    "manufacturer retailer chain charity nonprofit ngo union caterer contractor distributor sponsor competitor",
    "university college school hospital clinic church studio band orchestra choir airline newspaper",
)
"""What precedes the name of an organisation, or is it by what follows."""

ORGANISATION_LAST = known.ORGANISATION_LAST | _words(
    "society trust union club church clinic insurance energy media foods motors consulting logistics brothers records",
    "press studio studios works industries ventures capital digital software pharma bakery kitchen dairy toys books",
    "united rovers fc party team news theatre theater hotel restaurant café cafe laboratories medical legal telecom",
)
ORGANISATION_FIRST = known.ORGANISATION_FIRST | _words("fc ac sc tsv radio")
PLACE_LAST = known.PLACE_LAST | _words(
    "hill hills village castle falls springs heights quarter pass glacier canyon lane",
)

ORGANISATION_ACTS = _words(
    "acquired employs employed announced launched released publishes published sells sold offers offered raised laid",
    "fired outsourced merged sponsors sponsored manufactures produces invoiced bills billed charges charged",
)
"""What organisations do, in the main."""

TOOL_VERBS = _words(
    "write writes wrote written code codes coded program programs programmed programming draw draws drew edit edits",
    "edited editing paint paints record records recorded note notes keep keeps kept store stores stored track tracks",
    "tracked plan plans planned build builds built implement implements implemented develop develops developed invest",
    "invests invested believe believes trust trusts specialise specialises interested fluent typed compile compiles",
)
"""What is done in something that is no place."""

SOCIAL = _words(
    "dinner lunch breakfast brunch coffee tea drinks walk walks call calls trip date chess tennis meeting appointment",
    "meet meets met meeting sing sings sang live lives lived play plays played talk talks talked speak speaks spoke",
    "chat chats chatted travel travels travelled go goes went eat eats ate share shares shared flew drove danced",
    "argue argued argues studied studies dance hike hikes hiked run runs ran married engaged friends party weekend",
    "evening afternoon holiday staying stay stays stayed living visit visited swims swim",
)
"""What is done with people."""

MEETINGS = _words(
    "dinner lunch breakfast brunch coffee tea drinks walk walks call calls trip date chess tennis meeting appointment",
    "friends party weekend evening afternoon holiday ferry train bus flight road journey trek run runs play plays show",
    "shows report reports hand travel living staying going moving flying driving",
)
"""Those of the words below and above that name things as often."""

GIVING = _words(
    "send sends sent forward forwards forwarded give gives gave show shows showed lend lends lent write writes wrote",
    "speak speaks spoke talk talks talked report reports reported introduce introduces introduced explain explained",
    "hand handed listen listens married engaged related promised apologise apologised read reads",
)
"""What is done to people."""

TO_PEOPLE = _words(
    "told tell tells asked ask asks called call calls met meet meets invited invite invites thanked thank thanks",
    "married dated phoned phone emailed texted owes owed owe helped hugged missed misses remind reminded introduced",
    "congratulated interviewed babysat trusts believes consulted consult befriended",
)
"""Verbs that a person stands behind."""

MOTION = _words(
    "drive drives drove driving fly flies flew flying travel travels travelled traveled travelling cycle cycles cycled",
    "cycling walk walks walked walking move moves moved moving hike hiked hiking sail sailed go goes went going ran",
    "ride rode riding commute commutes commuted ferry train bus flight road trip journey relocated drove trek trekked",
)
"""How one comes from one place to another."""

PLACE_VERBS = (
    "lives in|live in|lived in|living in|moved to|moving to|move to|born in|based in|raised in|grew up in|grow up in"
    "|resides in|relocated to|flew to|fly to|flying to|travelled to|traveled to|drove to|arrived in|stayed in"
    "|staying in"
)
"""Behind these even a word in small letters names a place."""

AT_WORK = (
    "works? (?:at|for)|worked (?:at|for)|working (?:at|for)|employed (?:at|by)|hired by|job at|interned at|employer"
    "|startup|company (?:called|named)|startup called"
)
"""Behind these even a word in small letters names an organisation."""

WORKS = _words(
    "podcast newsletter novel film movie album song series show magazine opera musical game book documentary poem",
    "blog sitcom anime manga playlist",
)
"""What has a title."""

PROJECT_NOUNS = _words("management planning work plan plans manager managers team teams timeline timelines deadline")
PROJECT_NOUNS |= _words(
    "deadlines status meeting meetings budget budgets update updates scope start kickoff documentation document",
    "file files lead leads owner owners group report reports review reviews milestone milestones proposal proposals",
    "that which is was will has and or in at for with on to of by from",
)
"""What stands behind `project` and is no name."""

SPOKEN = _words(
    "yeah yep yup yea yay nope nah yo gonna gotta wanna gimme lemme kinda sorta aww ouch wow whoa oops ugh hmm hm mm",
    "mmm huh haha hahaha lol btw imo fyi congrats congratulations cheers cool ah oh ooh eh er um uh hooray omg tbh thx",
    "pls plz ps bye hiya howdy phew yikes gosh whew damn ha hah okey dunno cuz cause bro dude folks guys ya c'mon",
)
"""What is said and stands in no dictionary, and is no name."""
LINKS = _words("von van de der den da del bin ibn di la")
"""Small words within a person's name."""
MINOR = _words("a an the of in on at to for and or but by with from as is")
"""What has no capital within a title."""
PREPOSITIONS = _words("of in on at to for from with by near and or but who that which")
DOERS = _words("i you he she we they can could will would shall should must may might to")
"""Behind these a noun is what somebody does: `I can host`."""
BEFORE_VERBS = _words("never always often usually also just recently has had")
NO_ONE = _words("it he she that this there here what who where how when let one everyone someone")
"""Before `'s` these own nothing."""
_CALENDAR_PLURALS = frozenset(f"{day}s" for day in known.CALENDAR if day.endswith("day"))


@lru_cache(maxsize=16_384)
def is_common(word: str) -> bool:
    """Whether a word, however it is written, is an English word that is no name."""
    low = word.lower().removesuffix("'s").removesuffix("’s")
    if low in known.ORDINARY or low in known.PEOPLES or low in SPOKEN or is_calendar(low):
        return True
    if "-" in low and all(map(is_word, low.split("-"))):
        return True
    return low not in known.GIVEN_NAMES and (is_word(low) or (low.endswith("ing") and len(low) > 6))


def is_calendar(low: str) -> bool:
    """Whether a lower-case word is a day, a month or several of them."""
    return low in known.CALENDAR or low in _CALENDAR_PLURALS


@lru_cache(maxsize=16_384)
def is_person_noun(word: str) -> bool:
    """Whether a noun says who somebody is: `therapist`, `neighbours`, `godmother`."""
    low = word.lower()
    if low in ORGANISATION_NOUNS or low in known.ORDINARY - known.RELATIONS:
        return False
    return low in known.RELATIONS or is_kind_of(low, "person")


@lru_cache(maxsize=16_384)
def is_animal(word: str) -> bool:
    """Whether a noun names an animal."""
    return is_kind_of(word.lower(), "animal")


_AUXILIARIES = _words("is was are were has had will would can could does did wants")


@lru_cache(maxsize=16_384)
def is_verb(word: str) -> bool:
    """Whether a word may be what somebody does."""
    low = word.lower()
    return low in _AUXILIARIES or low in known.PERSON_AFTER or may_be_verb(low)

"""English words by the part that they play when two sentences are compared; general vocabulary, no facts."""

from collections.abc import Iterable

from memplane.domain.language.comparison.comparison_synonyms import CANONICAL, rows, stem


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _stems(words: Iterable[str]) -> frozenset[str]:
    return frozenset(CANONICAL.get(word, CANONICAL.get(stem(word), stem(word))) for word in words)


NEGATIVES = {
    word: (stem(base) if base not in CANONICAL else CANONICAL[base])
    for base, *words in rows("""
like dislike dislikes disliked hate hates hated detest detests detested loathe loathes loathed despise despises
support oppose opposes opposed
trust distrust distrusts mistrust mistrusts
agree disagree disagrees disagreed
allow forbid forbids forbidden prohibit prohibits prohibited ban bans banned disallowed
accept reject rejects rejected decline declined declines refuse refused refuses
enable disable disables disabled
employ unemployed jobless
public private
open closed shut
online offline
pass fail fails failed failing
win lose loses lost
meet miss missed
safe dangerous
present absent
possible impossible
legal illegal
true false
have lack lacks lacked
include exclude excludes excluded
remember forgets
complete incomplete unfinished
available unavailable
""")
    for word in words
}
"""From an opposite to what it denies."""

PREDICATIVE = _set("""
private closed shut offline unsafe dangerous absent impossible illegal false incomplete unfinished unavailable
unemployed jobless
""")
"""Opposites that deny a sentence only after `is`: who likes private pools does not dislike public ones."""

JOINTS = _set("but although whereas while because if unless")
"""Words between two parts of a sentence that each say something."""

PREFIXES = ("un", "in", "im", "ir", "il", "dis", "non")
"""Prefixes that deny the rest of an adjective."""

NEGATIONS = _set("not no never nor neither none nobody nothing cannot hardly")
ENDING_VERBS = _set(
    "stopped stop stops quit quits ceased abandoned cancelled canceled discontinued dropped ended scrapped"
)
LEAVING = {
    CANONICAL["left"]: _stems(["work", "live", "study", "member", "employ"]),
    CANONICAL["sold"]: _stems(["own", "drive", "have", "rent", "ride"]),
}
"""Verbs that end a state, and the verbs of the states that they end."""

DROPPED = _set("""
a an the and or but if then so that this these those there here it its it's as of at in on into onto for to by
with his her
hers their theirs he she they is are was were be been being am do does did doing has have had having will
would shall
any all own very really quite just also too much many lot lots how who which whose when while where rather well
so far
ever about around approximately currently now anymore longer more-or-less form fully still already his please
user's
himself herself themselves yet per each every both today exactly actually simply
""") - _set("own each every")
"""Words that carry no content of their own."""

AUXILIARIES = _set(
    "is are was were be has have had will would can could must may might should does do did shall needs need"
)
BE = _set("is are was were be been being am")
ARTICLES = _set("a an the")
HAVE = _set("has have had having own owns owned")
PAST = _set("""
was were had did bought began met won found gave took went came saw knew thought sold left broke drove ate
drank sang swam
flew chose became grew wrote spoke ran taught made built sent kept held paid led lost read got told said felt
heard
lent caught hit set put cut let fell drew wore woke rode rose spent stood hurt slept swore threw
""")
PARTICIPLES = PAST - _set("was were had did") | _set("""
done gone begun given taken seen known broken driven eaten drunk sung swum flown chosen become grown written
spoken run come
got gotten worn woken ridden fallen drawn
""")
MODALS = {
    "must": "must",
    "should": "must",
    "can": "can",
    "could": "can",
    "may": "can",
    "might": "can",
    "able": "can",
}
PREPOSITIONS = _set("""
in at on for to by with from of as about into under over during until before after since without than against
near via
between through because named called every each
""")
DIRECTIONAL = _set("from before after until since without than under over against because")
"""Prepositions under which a word means another fact than without them."""

CHANGE = _set(
    "moved relocated changed postponed rescheduled shifted delayed switched raised lowered increased decreased "
    "reduced extended upgraded downgraded renamed became replaced transferred rose risen jumped"
)
MOTION = _stems(["live", "host", "locate", "base", "be", "hold", "stay", "place", "use"])
"""Verbs of place: what has moved to another place has left the one that they name."""

FREQUENCIES = _stems(_set("daily weekly monthly yearly often always sometimes rarely occasionally twice once"))
"""Words that say how often; they are never what a sentence is about."""

EMPHATIC = _stems(["always"])
"""Words that add nothing to a sentence that is denied."""

PLAIN = _set("in at on of for to into as about name") | {""}
"""Prepositions that two wordings of one fact may exchange; the others say with whom, whence or how."""

EXCLUSIVE = tuple(
    _stems(words)
    for words in rows("""
single engaged married divorced widowed separated
junior senior principal intern trainee mid-level
high medium low critical urgent
open closed pending blocked done resolved todo progress
primary secondary elementary tertiary
spring summer autumn winter
beginner intermediate advanced
draft published archived
bronze silver gold platinum
buy rent
morning afternoon evening noon midnight
""")
)
"""Words of which only one holds at a time, in one place of a sentence."""

ATTRIBUTES = _stems(
    _set("""
name surname age birthday address email phone number password passcode code pin status priority colour size
price cost fee
weight height salary income budget hometown nationality religion profession job title role employer language
currency
timezone capital owner version deadline limit url host port ip id date time location venue place version rate
level goal
bank airline editor laptop phone browser username nickname diet gender pronoun team major degree rank score
""")
)
GRADED = _stems(
    _set("version release level grade rank score age size budget salary rent price cost fee rate weight height total")
)
"""Nouns whose number is a value, and no name of one among many: `version 3`, but not `room 3`."""

UNIQUE = _stems(_set("favourite preferred main current next default primary best official top usual ideal emergency"))
"""Adjectives that leave room for one."""

SINGLE_ROLES = _stems(
    _set("""
boss manager landlord therapist wife husband spouse partner girlfriend boyfriend fiance fiancee doctor dentist
mother father
ceo cto cfo coo president chair director lead leader owner head maintainer principal mentor coach adviser
accountant lawyer
assistant fianc supervisor
""")
)
PEOPLE = SINGLE_ROLES | _stems(
    _set("""
user sister brother friend colleague son daughter child cousin uncle aunt neighbour niece nephew mate roommate
grandmother grandfather student client customer dog cat
""")
)
SLOTS = frozenset(
    (next(iter(_stems([verb]))), prep)
    for verb, *preps in rows("""
live in at with
work at for as in
employ by at
study at in
locate in at
base in at
host on at by
plan for in on
schedule for on at in
place in at on
take in at on
hold in at on
start at on in
begin at on in
end at on in
open at
close at
leave at on
due on by in
assign to
lead by
manage by
own by
maintain by
write in
run on
build with
married to
marry to
engage to
bed at
born in on
use as
belong to
report to
attend .
deploy on to
store in
""")
    for prep in preps
)
"""A verb and the preposition of the one value that it has at a time."""

WEEKDAYS = {day: f"day:{day}" for day in _set("monday tuesday wednesday thursday friday saturday sunday")}
MONTHS = {
    name: number
    for number, names in enumerate(
        [
            "january jan",
            "february feb",
            "march",
            "april apr",
            "may",
            "june jun",
            "july jul",
            "august aug",
            "september sep sept",
            "october oct",
            "november nov",
            "december dec",
        ],
        1,
    )
    for name in names.split()
}
NUMBERS = {
    word: str(value)
    for value, word in [
        *enumerate(
            rows(
                "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
                "sixteen seventeen eighteen nineteen twenty"
            )[0]
        ),
        *zip((30, 40, 50, 60, 70, 80, 90), rows("thirty forty fifty sixty seventy eighty ninety")[0], strict=True),
        (1, "once"),
        (2, "twice"),
        (100, "hundred"),
        (1000, "thousand"),
        (1_000_000, "million"),
        *enumerate(rows("first second third fourth fifth sixth seventh eighth ninth tenth")[0], 1),
    ]
}
EVENTS = _stems(
    _set("finish complete buy sell send pass fail win lose book sign graduate marry publish approve submit hire")
)
"""Verbs of what happens once, so that `has done` and `did` are one."""
RANKS = _set("first second third fourth fifth sixth seventh eighth ninth tenth")
"""Numbers that tell the place of one thing in a row."""
VERBS = _stems(
    _set("""
live work study speak like prefer want plan need own use run drive play read write watch eat drink smoke sleep
travel visit
attend start finish end open close leave arrive return boil freeze thin require support depend call pay buy
sell cost weigh
measure contain host lead manage teach learn know believe think trust agree help meet marry date love hate
enjoy wear take
give make get go come see keep hold send receive sign publish accept reject accept win lose pass fail move stay
rent share
sing dance cook bake swim ski ride collect follow mentor volunteer sit stand practise commute dislike book
cancel succeed
belong report expire begin happen include exclude serve stop quit graduate break fly ask suffer care handle
process approve
""")
)

"""Puts turns of English that say one thing in two ways into one: who employs whom, what is whose; no facts."""

import re
from collections.abc import Iterable

from memplane.domain.language.comparison.comparison_thesaurus import lexeme

_WHO = r"(?:[Tt]he user|(?!(?:The|A|An|This|That|Every|Each|All|No|In|On|It|There|What)\b)[A-Z][\w-]*(?: [A-Z][\w-]*)*)"
_BOSS = r"(?:direct )?(?:line )?(?:boss|manager|supervisor|superior)"
_SINCE = r"((?: now)?(?:,? (?:since|as of|from|starting|effective) .+)?)"
_KIN = (
    r"(?:(?:older |younger |elder |twin |big |little )?"
    r"(?:sister|brother|son|daughter|aunt|uncle|cousin|niece|nephew))"
)
_COUNT = r"(?=\d|(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|fourteen|fifteen|thirty|sixty|ninety|a)\b)"
_HOBBY = r"(?:hobby|hobbies|pastimes?)"
_OWN = r"(?:the|his|her|their|its|an?)"
_OUT_OF = (
    r"out of (?!town|order|work|date|reach|control|office|hospital|service|stock|scope|touch|season|school|the\b|his\b)"
)
_DAYS = r"(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?"
_NOT_FREE = r"(?!hands|duty|toll|royalty|care|hassle|stress|fault|carefree)"
_HANDING_IN = r"(?:submitting|handing in|finishing|filing|sending(?: in)?|completing)"
_DELETED = r"(?:deleted|removed|purged|erased|discarded|wiped)"
_NEWER = r"(?:newer|later|higher|above|up|upwards?|onwards?|more|greater)"
_APART = r"(?=$|[.,;) ])"
_OLDER = r"(?:older|earlier|lower|less|fewer|below)"
_CONTRACT = "account|loan|mortgage|card|contract|policy|insurance|subscription|membership"
_FORGET = r"(?:[Ff]orget|[Dd]isregard|[Ii]gnore) (?:what|everything)"
_SAID = r"(?:said|told you|mentioned)"
_TECHNIQUE = r"(?:framework|technology|library|language|engine|toolkit|stack)"
_LIKES = r"(?:likes|loves|enjoys|prefers)"
_BUILT = r"(?:built|developed|implemented) (?:using|on top of|on|with)"

_TURNS = (
    # who employs, leads or is related to whom
    ("employs", rf"^(.+?) employs ({_WHO})((?: as| in| part).*)?$", "{1} works at {0}{2}"),
    ("boss manager supervisor superior", rf"^({_WHO}) is ({_WHO})'s {_BOSS}$", "{1} reports to {0}"),
    (
        "boss manager supervisor superior",
        rf"^({_WHO})'s (?:new {_BOSS} is|{_BOSS} is now) ({_WHO}){_SINCE}$",
        "{0} now reports to {1}{2}",
    ),
    (
        "boss manager supervisor superior",
        rf"^({_WHO})'s {_BOSS} is (?:called |named )?({_WHO}){_SINCE}$",
        "{0} reports to {1}{2}",
    ),
    ("manages supervises", rf"^({_WHO}) (?:manages|supervises) ({_WHO})$", "{1} reports to {0}"),
    ("managed supervised", rf"^({_WHO}) is (?:managed|supervised) by ({_WHO})$", "{0} reports to {1}"),
    ("boss manager supervisor head leader", r" is (?:the )?(?:boss|manager|supervisor|head|leader) of ", " manages "),
    ("birthplace birth", r"^(.+?)'s (?:birthplace|place of birth) is (.+)$", "{0} was born in {1}"),
    ("birthplace birth", r"^(.+) is the (?:birthplace|place of birth) of (.+)$", "{1} was born in {0}"),
    ("birthplace birth", rf"^(.+) is ({_WHO})'s (?:birthplace|place of birth)$", "{1} was born in {0}"),
    ("is", rf"^({_WHO}) is (?:the )?({_WHO})'s ({_KIN})$", "{1} has a {2} named {0}"),
    ("of", rf"^({_WHO}) is the ({_KIN}) of ({_WHO})$", "{2} has a {1} named {0}"),
    ("has", rf"^({_WHO}) has an? ({_KIN})(?:,| called) ({_WHO})$", "{0} has a {1} named {2}"),
    ("is", rf"^({_WHO})'s ({_KIN}) is (?:named |called )?({_WHO})$", "{0} has a {1} named {2}"),
    # dates and limits told by a noun or by a verb
    ("deadline due", rf"\b(deadline|due date) for {_HANDING_IN} ", "{0} for "),
    (
        "expiry expiration",
        r"^(?:[Tt]he )?(?:expiry|expiration) date (?:of|for|on) (.+?) is (?:on |in )?(.+)$",
        "{0} expires on {1}",
    ),
    ("expiry expiration", r"^(.+?)(?:'s)? (?:expiry|expiration) date is (?:on |in )?(.+)$", "{0} expires on {1}"),
    ("valid good", r"\b(?:is|are) (?:only )?(?:valid|good) (?:until|through|till) ", "expires on "),
    ("end start", r"^(?:[Tt]he )?(end|start) date (?:of|for) (.+?) is (?:on )?(.+)$", "{1} {0}s on {2}"),
    ("out expire expires timeout", rf"\b(?:times? out|expires?|timeouts?) after {_COUNT}", "timeout is "),
    ("after", rf"\b(?:is|are) (now )?(?:automatically )?{_DELETED} after {_COUNT}", "retention is {0}"),
    ("for", rf"\b(?:is|are) (now )?(?:kept|retained|stored|saved) for {_COUNT}", "retention is {0}"),
    ("retention", r"^(?:[Tt]he )?retention (?:period |time )?(?:for|of) (.+?) is ", "{0} retention is "),
    ("retention", r"\bretention (?:period|time) is\b", "retention is"),
    ("limited capped", r"\b(?:is|are) (?:limited|capped) (?:to|at) (?=[\d€$£])", "limit is "),
    ("set configured fixed", r"\b(is|are) (?:set|configured|fixed) (?:to|at) (?=[\d€$£])", "{0} "),
    ("set fixed", rf"^({_WHO}) (?:has )?(?:set|fixed) {_OWN} (.+?) (?:to|at) (.+)$", "{0}'s {1} is now {2}"),
    (
        "newer later higher above up upward upwards onwards more greater",
        rf"(\d[\w.]{{0,40}}) (?:or|and) {_NEWER}{_APART}",
        "minimum {0}",
    ),
    ("older earlier lower less fewer below", rf"(\d[\w.]{{0,40}}) (?:or|and) {_OLDER}{_APART}", "maximum {0}"),
    ("half", r"\b[Hh]alf (?:of )?(?=(?:the|all|its|their|his|her)\b)", "50 percent of "),
    # what is liked
    (
        "best most",
        rf"^(.+?) (?:is|are) the (\w+) (?:that )?({_WHO}) {_LIKES} (?:the )?(?:best|most)$",
        "~{2}'s favourite {1} is {0}",
    ),
    (
        "best most",
        rf"^({_WHO}) {_LIKES} (.+?) (?:the )?(?:best|most) of all (?:the )?(\w+)$",
        "{0}'s favourite {2} is {1}",
    ),
    ("favourite favorite", rf"^(.+) (?:is|are) ({_WHO})'s new (favou?rite \w+(?: \w+)?)$", "~{1}'s {2} is now {0}"),
    ("favourite favorite", rf"^(.+) (?:is|are) ({_WHO})'s (favou?rite \w+(?: \w+)?)$", "~{1}'s {2} is {0}"),
    ("choice", rf"^({_WHO})'s (\w+) of choice is ", "{0}'s favourite {1} is "),
    ("better more", rf"\b{_LIKES} (.+?) (?:better|more) than\b", "prefers {0} over"),
    ("better", rf"\b{_LIKES} (\w+(?: \w+)?) better(?=$| in\b| on\b| at\b)", "prefers {0}"),
    (
        "hobby hobbies pastime pastimes",
        rf"^(.+?) is (?:a|the|one of the) {_HOBBY} of ({_WHO})(?:'s)?$",
        "~{1}'s hobby is {0}",
    ),
    (
        "hobby hobbies pastime pastimes",
        rf"^(.+?) is (?:one of )?({_WHO})'s (?:favou?rite )?{_HOBBY}$",
        "~{1}'s hobby is {0}",
    ),
    ("hobby pastime", rf"^({_WHO}) (?:plays|does|practi[sc]es) (.+) as a {_HOBBY}$", "{0}'s hobby is {1}"),
    # frames that carry nothing
    ("built developed implemented", rf"\b(?:is|was|are|were) {_BUILT} (?=[A-Z])(?!{_DAYS})", "is built with "),
    ("behind", rf"^(.+?) is the {_TECHNIQUE} behind (.+)$", "{1} is built with {0}"),
    ("installed", r"^(.+?) (?:is|are) installed in (.+)$", "~{1} has {0}"),
    ("there", r"^There(?: is|'s| are) no (.+?) left in (.+)$", "{1} has no {0}"),
    ("out", rf"^(.+?) (?:is|are|has run|have run) {_OUT_OF}(\w+)$", "{0} has no {1}"),
    ("what", rf"^What ({_WHO}) (\w+s)((?: \w+){{0,4}}) is (.+)$", "{0} {1} {3}{2}"),
    ("something what", rf"^(.+?) (?:is|are) (?:something|what) (?:that )?({_WHO}) (.+)$", "~{1} {2} {0}"),
    ("left", r"\b(has|have) no (\w+) left$", "{0} no {1}"),
    ("made consists composed comprises", r"\b(?:is made up of|consists of|is composed of|comprises) ", "has "),
    ("got", r"'s got\b", " has"),
    ("year", r"\b(\w+)-year-old\b", "{0} age"),
    ("until", r"\b(?:runs?|lasts?|continues) until ", "ends on "),
    ("teetotal teetotaller teetotaler", r"\bis (?:a |an )?teetotal(?:ler|er)?\b", "does not drink alcohol"),
    ("can", r"\bcan (hold|fit|seat|accommodate|speak)\b", "{0}s"),
    ("hand", r"\bby hand\b", "manually"),
    ("hobby", rf"^({_WHO}) has (?:a|the) hobby of (.+)$", "{0}'s hobby is {1}"),
    ("found", r"\bcan be found (?=in\b|on\b|at\b|under\b)", "is "),
    ("maximum minimum", r"\b(?:may|can) be (?=(?:maximum|minimum)\b)", "is "),
    ("occupies", r"\boccupies (?=(?:the )?\w+ floor\b|floor\b)", "is on "),
    ("at with from", rf"\b({_CONTRACT}) (?:at|with|from) (?=[A-Z])", "{0} with "),
    # what is not there, or does not work
    ("free", rf"^({_WHO})'s ({_DAYS}) are (\w+)-free$", "{0} has no {2}s on {1}"),
    ("free", rf"^({_DAYS}) are (\w+)-free for (.+)$", "{2} has no {1}s on {0}"),
    ("free", rf"^({_DAYS}) are (\w+)-free$", "There are no {1}s on {0}"),
    ("free", rf"^({_WHO}) is {_NOT_FREE}(\w+)-free$", "{0} has no {1}"),
    ("free", rf"^(.+?) (?:is|are) (?:completely |entirely |fully )?{_NOT_FREE}(\w+)-free$", "{0} contains no {1}"),
    ("lacks", r"\blacks\b", "does not have"),
    ("broken order", r"\bis (?:broken|out of order)(?=$| on )", "does not work"),
    ("without", r"\bcan be (?:\w+ed|run|built|read|sent|made) without (?:any |an? |the )?", "does not require a "),
    ("no", r"\b(?:needs|requires) no\b", "does not require any"),
    ("never", r"\b(?:has )?never learn(?:ed|t) (?:how )?to\b", "can not"),
    # what is over or has passed to another
    ("away", rf"\bgave ({_OWN} .{{1,40}}?) away\b", "gave away {0}"),
    ("closed", rf"\b(?:has )?closed (?={_OWN} [\w ]*(?:account|card|loan|membership))", "cancelled "),
    ("from", r"\b(?:passed|went|was (?:handed(?: over)?|transferred|given)) (?:over )?from (?=[A-Z])", "changed from "),
    ("relicensed", r"^(.+?) (?:has been|was) relicensed under ", "{0} is now licensed under "),
    ("about", rf"^(?:Please )?{_FORGET} I {_SAID} about (?:my|the user's) ", "ended-now: the user's "),
    # names
    ("usa u", r"\bUSA\b|\bU\.S\.(?:A\.)?", "US"),
    ("u", r"\bU\.K\.?(?=\W|$)", "UK"),
    ("go", r"\b(in|uses|using|with|knows|learns|learning|writes|prefers) Go\b(?! [A-Z])", "{0} Golang"),
)
"""Words of which a sentence has one, a turn of phrase, and what stands for it.

After ``~`` the first group is no name: when it opened the sentence, its capital goes.
"""
_COLON = re.compile(r"^([A-Z][\w-]*(?: [\w-]+){0,4}): (\S+(?: \S+){0,2})$")
_WORD = re.compile(r"[^\W\d_]+")


def _indexed(turns: Iterable[tuple[str, str, str]]) -> dict[str, tuple[int, ...]]:
    """From each word to the turns that need it."""
    found: dict[str, list[int]] = {}
    for place, (words, _, _) in enumerate(turns):
        for word in words.split():
            found.setdefault(word, []).append(place)
    return {word: tuple(places) for word, places in found.items()}


_BY_WORD = _indexed(_TURNS)
_COMPILED = tuple((re.compile(pattern), to) for _, pattern, to in _TURNS)


def reworded(text: str) -> str:
    """The sentence with its turns of phrase put into one form."""
    places = {place for word in _WORD.findall(text.lower()) for place in _BY_WORD.get(word, ())}
    if not places and ":" not in text:
        return text
    plain = text.rstrip(". ")
    for place in sorted(places):
        pattern, to = _COMPILED[place]
        match = pattern.search(plain)
        if match is not None:
            plain = _filled(plain, match, to)
    told = _COLON.match(plain)
    return f"{told[1]} is {told[2]}" if told else plain


def _filled(text: str, match: re.Match[str], to: str) -> str:
    """The text with what stands for a turn in its place; what no longer opens the sentence loses its capital."""
    groups = [group or "" for group in match.groups()]
    if groups and match.start(1) == 0 and not to.startswith("{0}"):
        groups[0] = _inside(groups[0], plain=to.startswith("~"))
    head = to.removeprefix("~").format(*groups)
    text = f"{text[: match.start()]}{head}{text[match.end() :]}"
    return f"{text[:1].upper()}{text[1:]}"


def _inside(words: str, *, plain: bool) -> str:
    """Words that opened a sentence as they are written inside it; plain ones that are known are no names."""
    first = words.partition(" ")[0].lower()
    lowered = first in ("the", "a", "an") or (plain and lexeme(first).forms)
    return f"{words[:1].lower()}{words[1:]}" if lowered else words

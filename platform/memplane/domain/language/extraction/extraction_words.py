"""Lists of words that the rules of extraction know, and the test that a phrase says something to a stranger."""

import re

OCCUPATION = (
    r"(?i:\w*(?:ologist|ician|ographer|ourist|iatrist|herapist|rapher)|\w*teacher|\w*writer|\w*worker"
    r"|\w*keeper|\w*maker"
    r"|accountant|actor|actress|architect|artist|assistant|attorney|author|baker|banker|barber|barista"
    r"|bartender|biologist"
    r"|blogger|bookkeeper|broker|builder|butcher|captain|carpenter|cashier|chef|chemist|cleaner|clerk|coach|composer"
    r"|consultant|contractor|cook|counselor|counsellor|courier|dancer|dentist|designer|detective|developer|dietitian"
    r"|director|doctor|driver|drummer|economist|editor|electrician|engineer|entrepreneur|farmer|filmmaker"
    r"|firefighter|(?:security|shooting|point|coast) guard"
    r"|florist|freelancer|gardener|geologist|guide|hairdresser|historian|instructor|intern|interpreter|journalist|judge"
    r"|lawyer|lecturer|librarian|lifeguard|linguist|manager|marketer|masseur|mathematician|mechanic|midwife|minister"
    r"|model|musician|nanny|novelist|nurse|officer|optician|painter|paralegal|paramedic|pastor|pharmacist|photographer"
    r"|physician|physicist|pianist|pilot|planner|plumber|poet|politician|principal|producer|professor|programmer"
    r"|psychiatrist|psychologist|realtor|receptionist|recruiter|reporter|researcher|salesman|saleswoman|scientist"
    r"|sculptor|secretary|singer|soldier|songwriter|statistician|student|surgeon|surveyor|tailor|therapist|trader"
    r"|trainer|translator|tutor|undergrad|undergraduate|vet|veterinarian|veteran|videographer|violinist|waiter|waitress"
    r"|welder|pensioner|homemaker|stay-at-home (?:mom|mum|dad|parent)|founder|cofounder|co-founder|ceo|cto"
    r"|analyst|specialist"
    r"|vegetarian|vegan|pescatarian|christian|muslim|buddhist|jew|hindu|atheist|catholic|(?:single )?(?:mother"
    r"|father|mom|mum|dad|parent)(?= of)"
    r"|single (?:mother|father|mom|mum|dad|parent)|widow|widower|refugee|immigrant|night owl|early bird"
    r"|morning person|introvert|extrovert)\b"
)
KIN = (
    r"(?:(?:older|younger|elder|big|little|oldest|youngest|eldest|middle|twin|late|ex-?|step|half|great|best"
    r"|good|old|closest|close|former|grand|new) ?-?)*"
    r"(?:mother|father|mom|mum|dad|parents|sister|brother|siblings?|sisters|brothers|son|daughter|sons"
    r"|daughters|kids?|child(?:ren)?"
    r"|twins|husband|wife|spouse|partner|boyfriend|girlfriend|fianc[eé]e?|ex|aunt|uncle|cousins?|niece|nephew"
    r"|nieces|nephews|grand(?:ma|pa|mother|father|parents|son|daughter|kids|children)"
    r"|granny|nana|mother-in-law|father-in-law|sister-in-law|brother-in-law|in-laws|stepson|stepdaughter"
    r"|stepmom|stepdad|godson|goddaughter|friend|roommate|flatmate|neighbou?r|boss|manager|mentor|coworker"
    r"|colleague|teacher)"
)
PET = (
    r"(?:(?:new|old|little|older|younger|beloved|family|rescue|pet|three|two|golden|guinea|black|german) )*"
    r"(?:dogs?|pupp(?:y|ies)|pups?|cats?|kittens?|rabbits?|hamsters?|parrots?|horses?|turtles?|tortoises?"
    r"|snakes?|fish|birds?|lizards?|geckos?|pigs?|chickens?|ferrets?|bunn(?:y|ies)|retrievers?|shepherds?"
    r"|terriers?|poodles?|husk(?:y|ies)|labradors?|pets?)"
)
NATIONALITY = (
    r"(?:[A-Z][a-z]+ )?(?:American|British|English|Scottish|Welsh|Irish|Canadian|Mexican|Brazilian|Argentinian"
    r"|Chilean|Colombian|Peruvian|German|French"
    r"|Spanish|Portuguese|Italian|Greek|Turkish|Swiss|Austrian|Belgian|Dutch|Danish|Swedish|Norwegian|Finnish"
    r"|Icelandic|Polish"
    r"|Czech|Slovak|Hungarian|Romanian|Bulgarian|Serbian|Croatian|Ukrainian|Russian|Georgian|Armenian|Iranian"
    r"|Persian|Iraqi|Syrian"
    r"|Lebanese|Israeli|Egyptian|Moroccan|Tunisian|Nigerian|Ghanaian|Kenyan|Ethiopian|South African|Indian"
    r"|Pakistani|Bangladeshi"
    r"|Sri Lankan|Nepali|Chinese|Taiwanese|Japanese|Korean|Vietnamese|Thai|Malaysian|Indonesian|Filipino"
    r"|Filipina|Australian"
    r"|Jewish|Muslim|Christian|Catholic|Hindu|Buddhist|Sikh|New Zealander|Cuban|Jamaican|Venezuelan|Afghan"
    r"|Latino|Latina|Singaporean|Estonian|Latvian|Lithuanian|Slovenian)"
)
LANGUAGE = (
    r"(?:English|German|French|Spanish|Portuguese|Italian|Greek|Turkish|Dutch|Danish|Swedish|Norwegian|Finnish"
    r"|Polish|Czech"
    r"|Hungarian|Romanian|Bulgarian|Serbian|Croatian|Ukrainian|Russian|Arabic|Hebrew|Persian|Farsi|Hindi|Urdu"
    r"|Bengali|Tamil|Punjabi"
    r"|Chinese|Mandarin|Cantonese|Japanese|Korean|Vietnamese|Thai|Malay|Indonesian|Tagalog|Swahili|Catalan"
    r"|Welsh|Irish|Sign Language)"
)
CONDITION = (
    r"(?:(?:type [12] |chronic |severe |mild |clinical |high |low |celiac |coeliac |generali[sz]ed "
    r"|social )*(?:diabetes|asthma|adhd|autism|anxiety|depression|migraines?|arthritis|epilepsy|dyslexia"
    r"|insomnia|cancer|celiac(?: disease)?|coeliac|crohn's(?: disease)?|ibs|lupus|pcos|endometriosis"
    r"|blood pressure|back pain|fatigue|scoliosis|tinnitus|ptsd|ocd|bipolar disorder|eczema|psoriasis)\b"
    r"|(?:an? )?(?:[\w-]+ ){0,2}(?:allergy|allergies|intolerance)\b)"
)
_UNBOUND = re.compile(
    r"\b(?:(?-i:[Ii]t)|its|it's|that|that's|this|these|those|there|here|they|them|their|theirs|he|she|him|her|his|hers"
    r"|you|your|yours|u|ya|you're"
    r"|we|(?-i:us)|our|ours|we're|ones?(?! (?:of (?!my own)|years?|months?|days?|weeks?|hours?|more)\b)|same|another"
    r"|such|something|someone|somewhere|everything|anything|everyone|anyone|things?|stuff|whatever"
    r"|what|how|why|whether|who|which|both|either|other|others|latter|else|similar|back (?:then|home)"
    r"|like crazy|so that|too much|each)\b",
    re.IGNORECASE,
)
_THIS_TIME = re.compile(
    r"this (?:week|weekend|month|year|spring|summer|fall|autumn|winter|morning|afternoon|evening|coming|past|next|last"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")
_EMPTY_WORDS = """
a an the my your and or but of for in on at to with from by into about over up out off as than so very really super
pretty quite all some any no not more most much many few lot lots bit kind sort way ways time times day days moment
moments feeling feelings experience experiences thing things chance opportunity idea ideas part people person one life
world place great good nice amazing awesome fun cool big huge new old best better perfect wonderful lovely beautiful
special awful bad hard tough crazy interesting important incredible fantastic happy sad first last next blast break
breaks look go try shot hand plan plans news stuff question questions problem problems issue help support advice love
hope heart mind myself me feel be been being am is are was were have has had do doing make making get getting got give
take see know think want need keep stay able work happen while too well just always never still together around
volunteering taking working teaching training practicing down back there here recently ago week year month passion
journey success progress impact difference challenge challenges change changes side point end start step steps goal
goals dream dreams memory memories vibe vibes mood energy rest stronger forward lately sometimes often usually every
today learn learned found find looking seen seeing details options results information info task tasks list item
example examples others pic pics photo photos picture pictures couple bunch ton tons hours hour minutes weeks months
years two three four five six seven eight nine ten several own starting leaving going playing having attending future
team
"""
_EMPTY = frozenset(_EMPTY_WORDS.split())
_DANGLING = re.compile(
    r" (?:(?:an?|the) (?:safe|nice|warm|new|great|good|fun|big|little|small|cozy|loving|whole|very \w+)|a|an"
    r"|the|of|to|for|with|at|in|on|from|by|and|or|but|my|their|about|as|than|so|very|really|like|into|is|are"
    r"|not|some|any|after|before|through|during|no|since|because|getting|being|having|doing|making"
    r"|than I (?:am|was|do|did|have)"
    r"|seeing|trying|to (?:find|get|do|make|have|be|see|give|take"
    r"|keep|show|help|bring|use|want))$",
    re.IGNORECASE,
)
_TAIL = re.compile(
    r"(?:(?<![ ,])[ ,]++(?:too|as well|though|haha\w*|lol|btw|actually|you know|lately|right now|recently|now"
    r"|these days|at the moment|at present|currently|nowadays|as you know"
    r"|already|again|so much|a lot|anyway|tbh|honestly|please|thanks|thank you|in fact|of course|finally"
    r"|all day|for sure|today|and stuff|and all|or so|and more|either|so far|the other day|not too long ago"
    r"|not long ago|a while (?:ago|back)|since then|itself|and everything|to be honest|by the way|if anything"
    r"|no doubt|and whatnot|etc|and (?:getting|being|having|doing|making|seeing|trying|going)"
    r"|(?:about |like |half )?(?:an?|one|two|three|\d+|few|a few) (?:hours?|minutes?|mins?) ago|:\)|;\)|:D|xd)"
    r"|(?<!\W)([^\w ,]*+)[ ,]\W+)$",
    re.IGNORECASE,
)
"""Filler words at the end, or signs after a comma or space; the group is what stands before these and stays."""
_CUT = re.compile(
    r" (?:because|'cause|cause (?=I |it |he |she |they |we |my )"
    r"|cuz|so|but|which|who|where|while|although|though|despite|even though|thanks to"
    r"|whenever|until|(?<!not )(?<!really )(?<!particularly )like|yet|as (?:it|a way|part|well)"
    r"|rather than (?=\w+ing)|just|since (?!I |\d|childhood|birth|the age|high|college|university))\b"
    r"| when (?!I was\b)| (?:and|or) (?:now|then|also|even|I|my|it|he|she|they|we|have been|am|is|are|was|were"
    r"|has|had|feel|felt|just|still|wow|man|boy|let|do|can|want|hope|learn|"
    r"(?:really|totally|definitely) \w+|not|got (?:to|into)|looking|walk|practice|go|play|use|take|love|like|want|try"
    r"|plan|work|need|enjoy|have|think|watch|read|run|do|get|made|makes|helps?)\b"
    r"|, (?:and|but|so|which|where|who|too|though|actually|right|you know|\w+ing\b)| (?:in order to"
    r"|to be able to)\b| to (?:help|get|try|see|make|keep|stay|clear|feel|improve|relax|unwind|celebrate"
    r"|raise awareness|learn more|cheer|boost|de-?stress|take my mind)\b|[!?*~(]| [xX]+D*$|(?<![^\w\s])[^\w\s]{2,}$"
)
_LIST = re.compile(r"\A(?:\w[\w'&.-]*(?: \w[\w'&.-]*){0,3}, ){1,6}(?:and|or) \w[\w'&.-]*(?: \w[\w'&.-]*){0,4}$")
_SHORT_LIST = re.compile(
    r"\A(?:[\w'&.-]+(?: [\w'&.-]+){0,2}, ){1,5}[\w'&.-]+(?: [\w'&.-]+){0,2} (?:and|or) [\w'&.-]+(?: [\w'&.-]+){0,3}$"
)
_VERBAL = re.compile(
    r"\b(?:I|my|am|is|are|was|were|have|has|had|do|did|will|can|love|like|went|came|said|used|[a-z]{3,}ed)\b"
)
_OXFORD = re.compile(r"(?<=\w), (and|or) (?=[\w'&.-]+(?: [\w'&.-]+){0,2}$)")
_AFTER_NOUN = re.compile(
    r"(?:and|but|so|which|where|who|it|that|he|she|they|we|you|not|too|yet|just|really|lol|haha)\b"
)
_PLACE = re.compile(r"[A-Z][\w.'-]+(?: [A-Z][\w.'-]+){0,2}\b")


_DATED = re.compile(r"(?<=\d),(?= (?:19|20)\d\d\b)")
_DATE_COMMA = "\ue000"
"""Stands for the comma of `May 3, 2023`, after which the phrase goes on."""


def tidy(phrase: str) -> str:
    """A phrase without what follows its core: reasons, afterthoughts, filler words."""
    phrase = _DATED.sub(_DATE_COMMA, phrase)
    if phrase.count(", ") > 1 and (last := _OXFORD.search(phrase)) and not _VERBAL.search(phrase, last.end()):
        phrase = f"{phrase[: last.start()]} {phrase[last.start(1) :]}"
    cut = _CUT.search(phrase)
    if cut and cut.start() > 0:
        phrase = phrase[: cut.start()]
    head, comma, tail = phrase.partition(", ")
    if comma:
        phrase = _with_comma(head, tail)
    unbound = next((m for m in _UNBOUND.finditer(phrase) if not _THIS_TIME.match(phrase, m.start())), None)
    if unbound:
        joint = max(phrase.rfind(f" {word} ", 0, unbound.start()) for word in ("and", "with", "for", "about", "at"))
        if joint > 0:
            phrase = phrase[:joint]
    for _ in range(4):
        shorter = _TAIL.sub(r"\1", phrase)
        if shorter == phrase:
            break
        phrase = shorter
    phrase = phrase.strip(" ,;:-'").replace(_DATE_COMMA, ",")
    return f'{phrase}"' if phrase.count('"') % 2 else phrase


def _with_comma(head: str, tail: str) -> str:
    words = head.split(" ")
    for start in range(max(0, len(words) - 4), len(words)):
        listed = f"{' '.join(words[start:])}, {tail}"
        if _UNBOUND.search(tail):
            break
        if _LIST.match(listed) or (_SHORT_LIST.match(listed) and not _VERBAL.search(tail)):
            return f"{head}, {tail}"
    if (
        re.search(r"\b(?:an?|the|my|very|more|so) [a-z-]+$", head)
        and re.match(r"[a-z-]+(?:,| \w+$| and)", tail)
        and not _AFTER_NOUN.match(tail)
    ):
        return ""
    place = _PLACE.match(tail)
    if place and words[-1][:1].isupper() and not re.match(r"[^ ,]|,? (?:and|or|&) ", tail[place.end() :]):
        return f"{head}, {place.group()}"
    return head


def bound(phrase: str) -> bool:
    """Whether a phrase stands by itself: nothing in it points at what was said elsewhere, and it is complete."""
    return not _UNBOUND.search(phrase) and not _DANGLING.search(f" {phrase}") and len(phrase.split()) <= 26


def weight(phrase: str) -> int:
    """How many words of a phrase say something; proper names count twice."""
    found = _WORD.findall(phrase)
    return sum(
        (2 if word[0].isupper() else 1)
        for word in found
        if word.lower() not in _EMPTY and (len(word) > 1 or word.isdigit())
    )


_DEFINITE = re.compile(
    r"(?:the (?!ocean|sea|beach|mountains?|outdoors|countryside|snow|rain|cold|heat|winter|summer|city|desert"
    r"|gym|theat|piano|guitar"
    r"|violin|drums|cello|opera|ballet|cinema|movies|dark|internet|metric|color|colour|80s|90s|[A-Z]"
    r"|\w+ (?:[A-Z]|series|books|movies))"
    r"|in |at |on |by |for |with |as |about |from |of |all |each |every |no |so |very |not |really |exist"
    r"|theme|your|yourself|both|having|being"
    r"|seeing|getting|when |if )"
)


def general(phrase: str) -> bool:
    """Whether a liking is for something that anyone knows, not for something that lies before the speakers."""
    return not _DEFINITE.match(phrase) and not re.search(
        r"\b(?:pic|photo|picture|painting of|idea|yourself|(?:friends|people|those|ones) I"
        r"|lots? of different|a variety of|all sorts of|many different|some of the)\b"
        r"|^(?:to \w+ )?(?:a lot|lots|plenty|tons) of \w+$",
        phrase,
    )


def named(phrase: str) -> bool:
    """Whether a phrase holds a proper name."""
    return any(word[0].isupper() and len(word) > 1 for word in _WORD.findall(phrase))

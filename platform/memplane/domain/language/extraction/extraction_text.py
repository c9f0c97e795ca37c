"""A message reduced to what its author states: no quotations, questions, suppositions or pasted text."""

import re
from collections.abc import Iterator

from memplane.domain.language.extraction.extraction_dates import DATE
from memplane.domain.language.extraction.extraction_fact import Clause

READ = 4_000
"""How many characters of a message are read."""
LONGEST = 600
"""Characters of a sentence; a longer one is not read."""

_FIRST_PERSON = re.compile(r"\b(?:[Ii]|[Mm]y|me|[Jj]ust|[Ff]inally|[Rr]ecently)\b")
_STRAIGHT = str.maketrans({"’": "'", "\u2018": "'", "“": '"', "”": '"', "«": '"', "»": '"', "\t": " ", "–": "-"})
_CODE_LINE = re.compile(
    r"^\s*(?:(?:async )?def \w+\(|class \w+ ?[:({]|return\b|import [\w.{*]|from [\w.]+ import|print ?\(|console\."
    r"|function\b"
    r"|(?:const|let|var|public|private|static) \w+|[\w.\[\]'\"]+ ?[+:-]?= ?\S|[{}\[\]<(@$]|SELECT\b|INSERT INTO\b)"
    r"|[;{}]\s*$"
)
_PASTED = re.compile(
    r"^(?:-{2,} ?(?:original|forwarded)|begin forwarded|(?:from|subject|sent|to|date) ?: .*|on .{4,80} wrote:"
    r"|lyrics\b.*"
    r"|here(?:'s| is) (?:the|an?|my) (?:text|e-?mail|letter|essay|draft|poem|story|article|message|log"
    r"|transcript)\b.*)",
    re.IGNORECASE | re.MULTILINE,
)
_DROPPED_LINE = re.compile(
    r"^\s*(?:>|\||#|//|(?:\[?(?:system|assistant|user|human|ai|bot|admin|developer|tool)\]?|<\w+>) ?:)", re.IGNORECASE
)
_LABEL = re.compile(r"\A\s*(?:\[[\w ]{1,20}\]|<[\w ]{1,20}>|[\w-]{1,20}>|(?P<who>[A-Z][a-z]*(?: [A-Z][a-z]+)?):) ")
_HEADING_WORDS = """
well so note notes update ps context background fact info edit correction reminder disclaimer me fyi honestly answer
summary profile bio about goal goals job location diet actually yes no ok okay hi hello hey remember also first second
third finally problem situation question tip truth confession news introduction intro important warning personal work
family hobbies plan plans today yesterday tomorrow now currently health allergies pets hobby age name preferences
"""
_HEADINGS = frozenset(_HEADING_WORDS.split())
_OTHER_VOICE = re.compile(
    r"\b(?:pretend|imagine (?:i|you|that|being)|suppos(?:e|ing) (?:i|that|you)|role-?play\w*|act (?:as|like)"
    r"|let's say|say i "
    r"|hypothetical\w*|in character|you are now|as an? (?:ai|assistant)|fictional|once upon a time|short story"
    r"|monologue"
    r"|translat\w+|proofread|paraphrase|rewrite|rephrase|summari[sz]e|fix (?:the|my) grammar|correct (?:the|my) grammar"
    r"|assum(?:e|ing) (?:that )?(?:i|my)\b|like i'?m (?:five|\d+|a (?:child|kid|beginner))|eli5"
    r"|just kidding|only kidding|jk\b"
    r"|(?<=[.!…])not[.!]*$|(?<=[.!…] )not[.!]*$"
    r"|(?:write|draft|compose|generate)\b[^.!?:\n]{3,60}:"
    r"|ignore (?:all|any|previous|prior|the)|verified by|authori[sz]ed by|jailbreak|system prompt|lyrics|sing along"
    r"|write (?:me )?an? (?:poem|story|song|scene|dialogue|tweet|caption)|first[- ]person|pasted|for example|e\.g\.)"
    r"|[♪♫🎵🎶]",
    re.IGNORECASE,
)
_END = re.compile(r"(?<=[.!?…])[\"')\]]*\s+|\n+")
_ABBREVIATION = re.compile(
    r"(?:\b(?:mr|mrs|ms|mx|dr|prof|rev|capt|lt|sgt|hon|ste?|mt|ft|vs|etc|approx|inc|ltd|jr|sr)|\b[a-z])\.$",
    re.IGNORECASE,
)
_QUOTED = re.compile(r'"([^"]{0,400})"')
_TITLE = re.compile(r"[A-Z0-9][\w':-]*(?: (?:[A-Z0-9][\w':&-]*|of|the|and|a|an|in|to|on|for|at))*[.,!]?")
_UNSURE = re.compile(
    r"\b(?:if|unless|would|could|might|may(?= (?:be|have|not|need|want))|maybe|perhaps|possibly|wish(?:ed|es)?"
    r"|wonder(?:ed|ing)?"
    r"|hypothetically|in case|as though|guess i|think i(?:'m|'ve|'ll| )|thought i|dream(?:ed|t) (?:i|that)"
    r"|in my dreams?"
    r"|joking|kidding|just pretending|jk|sarcas\w+|yeah,? right|/s|as if|feels? like i|almost|nearly"
    r"|supposed to|should|shoulda"
    r"|said|says|saying|told|tells|asked|asks|claims?|claimed|replied|wrote that|writes that|texted"
    r"|according to|apparently|allegedly"
    r"|(?:is|am|are|was|were|be) like\b(?= ?[:,])|(?:he|she|they|everyone|people) (?:thinks?|believes?"
    r"|assumed?)|reads:|quote"
    r"|in (?:the|my|this|a|our) (?:\w+ )?(?:movie|film|novel|story|dream|screenplay|fanfic|play|musical|sitcom)"
    r"|in (?:the|this|a) (?:video )?game|no,? wait|wait,? no|scratch that|lied|provided (?:that )?i|as soon as|once i"
    r"|when i (?:am (?:old|older|rich|dead|\d+)|grow"
    r"|retire|become)|oh,? (?:great|joy|wonderful|perfect|fantastic|lovely))\b"
    r"|\b(?:he|she|they|\w+'s|goes) ?(?:like)?[,:] I\b"
    r"|, (?:do|am|have|did|was|are|had)(?: not|n't)? I$|🙄|/s$",
    re.IGNORECASE,
)
_LATER_QUESTION = re.compile(
    r"(?<![,;.-])[,;.-]+ (?=(?:and |so |but )?(?:can|could|would|will|do|does|did|what|how|is|are|should|which|where"
    r"|when|why|who|any|have)\b)",
    re.IGNORECASE,
)
_SPLIT = re.compile(
    r" -+ |--+|—|;|: |\.{2,}|…|[()]|,? (?:and|but|so|because|'?cause|cuz|although|though|while|as|since|plus) "
    r"(?=(?:I (?!was (?:a|\d|very|young|little|in))|my\b))|, (?=(?:I|my)\b)"
    r"|,? but (?=now )| and (?=(?:am|live|work|love|hate|have(?= an? )|enjoy) )",
    re.IGNORECASE,
)
_OPENER = re.compile(
    r"(?:(?:hey|hi|hiya|hello|yeah|yea|yes|yep|yup|no|nah|nope|oh|ooh|wow|well|so|and|but|or|also|actually|btw"
    r"|by the way"
    r"|honestly|to be honest|thanks|thank you|thx|ok|okay|sure|haha\w*|lol|lately|recently|personally"
    r"|right now|currently"
    r"|these days|nowadays|anyway|anyways|fun fact|fyi|for context|for the record|as for me|first|plus|besides"
    r"|guess what"
    r"|just so you know|great|awesome|cool|nice|true|absolutely|definitely|good (?:morning|evening|afternoon"
    r"|day|question)"
    r"|sorry|unfortunately|luckily|fortunately|sadly|now|then|ah|aw+|hmm+|um+|uh|please|you know|in fact|in general"
    r"|correction|update|quick update|as you know|remember|note|dear (?:all|team)|because|today's news|since then)\b"
    r"(?: (?:(?!(?:I|My)\b)[A-Z][\w']*|there|everyone|all|team|again|man|dude|guys|so much|a lot))?\s*[,!.:-]*\s*"
    r"|[A-Z][a-z]+, (?=(?:I|my|My)\b)|[^\w\"]+)"
)
_GOES_ON = re.compile(r"(?:am|live|work|love|hate|have|enjoy) ")
_INTRODUCED = re.compile(r"I am [A-Z][\w'-]+(?: [A-Z][\w'-]+)?, (?P<what>(?:an? |from |\d+ years).+)$")
_RATHER = re.compile(r"(?:.{0,40}\b)?I would rather\b")
_OPENERS = 6
_INFORMAL = re.compile(
    r"'| and I\b|\b(?:i|im|I m|[Ii]ve|gonna|wanna|can ?not|cant|(?:do|does|did|is|was|are"
    r"|were|ha[sd]|have)nt|I have got)\b"
)
_CONTRACTIONS = (
    (re.compile(r"\bI'm\b|\b[Ii] ?m(?= )|\bi'm\b"), "I am"),
    (re.compile(r"\b[Ii]'?ve\b"), "I have"),
    (re.compile(r"\b[Ii]'ll\b"), "I will"),
    (re.compile(r"\b[Ii]'d\b"), "I would"),
    (re.compile(r"\bi\b(?=[ ,])"), "I"),
    (re.compile(r"\bI have got (?=an?\b|two\b|three\b)"), "I have "),
    (re.compile(r"\bgonna\b"), "going to"),
    (re.compile(r"\bwanna\b"), "want to"),
    (re.compile(r"\bcan't\b|\bcan not\b|\bcant\b"), "cannot"),
    (re.compile(r"\bwon't\b"), "will not"),
    (re.compile(r"\b(do|does|did|is|was|are|were|have|has|had)n'?t\b"), r"\1 not"),
    (
        re.compile(r"\b([Mm]y [\w ]{2,24}?)'s(?= (?:an?|called|named|in|from|allergic|\d+|married|engaged|pregnant) )"),
        r"\1 is",
    ),
    (re.compile(r"\b([Mm]y (?:\w+ )?(?:name|birthday|email|job|goal|dream|favou?rite \w+))'s\b"), r"\1 is"),
    (
        re.compile(r"((?:^|[,:-] )(?:[A-Z][a-z]+|(?:an?|the|some|two|our) [\w ]{2,20}|[Hh]e|[Ss]he|[Tt]hey)) and I\b"),
        r"\1 &I",
    ),
    (re.compile(r"\b([Mm]y [a-z]+(?: [A-Z]\w+)?) and I\b"), r"\1 &I"),
)


def own_words(text: str) -> str:
    """The words of a message that its author wrote: no code, no pasted or quoted lines; nothing without an 'I'."""
    text = beginning(text).translate(_STRAIGHT)
    return _without_pasted(text) if _FIRST_PERSON.search(text) else ""


def beginning(text: str) -> str:
    """The part of a message that is read: its first 4 000 characters, without a half sentence at the end."""
    return text if len(text) <= READ else text[: max(text.rfind(end, 0, READ) for end in ".!?\n") + 1]


def overlong(words: str) -> int:
    """How many sentences are about their author and too long to be read."""
    if len(words) <= LONGEST:
        return 0
    return sum(len(each) > LONGEST and bool(_FIRST_PERSON.search(each)) for each in _sentences(words))


def plain_sentences(text: str) -> list[str]:
    """The sentences of a message, whoever they are about; without code, pasted and quoted lines."""
    return [each for each in _sentences(_without_pasted(beginning(text).translate(_STRAIGHT))) if each]


def doubtful_words(sentence: str) -> bool:
    """Whether a sentence supposes, jokes, or reports what someone else said."""
    return bool(_UNSURE.search(sentence))


def other_voice(words: str) -> bool:
    """Whether the words speak as someone else, or ask for text to be written or worked on."""
    return bool(_OTHER_VOICE.search(words))


def doubtful(clause: Clause) -> bool:
    """Whether the sentence of a clause supposes, jokes, or reports what someone else said."""
    return bool(_UNSURE.search(clause.sentence)) and not _RATHER.match(clause.sentence)


def clauses(words: str) -> Iterator[Clause]:
    """The statements about themselves that an author makes in their own words, doubtful ones among them."""
    for sentence in _sentences(words):
        stated = _stated(sentence)
        if stated:
            yield from _parts(stated)


def _without_pasted(text: str) -> str:
    if "```" in text:
        text = "\n".join(text.split("```")[::2])
    if "`" in text:
        text = re.sub(r"`[^`\n]{0,200}`", " ", text)
    pasted = _PASTED.search(text)
    if pasted:
        text = text[: pasted.start()]
    return "\n".join(
        line
        for line in text.split("\n")
        if not (_DROPPED_LINE.match(line) or _CODE_LINE.search(line) or _labelled(line))
    )


def _labelled(line: str) -> bool:
    """Whether a line of a transcript says before a colon who speaks."""
    label = _LABEL.match(line)
    return label is not None and (label["who"] or "").lower() not in _HEADINGS


def _sentences(text: str) -> Iterator[str]:
    start = 0
    for end in _END.finditer(text):
        if "\n" not in end.group() and _ABBREVIATION.search(text[max(start, end.start() - 8) : end.start()]):
            continue
        if end.start() > start:
            yield text[start : end.start()].strip()
        start = end.end()
    yield text[start:].strip()


def _stated(sentence: str) -> str:
    """The sentence as a statement of its author, or nothing."""
    if not 6 <= len(sentence) <= LONGEST or not _FIRST_PERSON.search(sentence):
        return ""
    if '"' in sentence:
        quotes = _QUOTED.findall(sentence)
        if sentence.count('"') % 2 or not all(_TITLE.fullmatch(quote) and len(quote) < 60 for quote in quotes):
            return ""
    if sentence.rstrip("\"') ").endswith("?"):
        cut = _LATER_QUESTION.search(sentence)
        if cut is None:
            return ""
        sentence = sentence[: cut.start()]
    if _INFORMAL.search(sentence):
        for pattern, written in _CONTRACTIONS:
            sentence = pattern.sub(written, sentence)
    return sentence.rstrip(" .!…")


def _parts(sentence: str) -> Iterator[Clause]:
    spoken, carried = False, ""
    for number, raw in enumerate(_SPLIT.split(sentence)):
        part = raw.strip(" ,.!")
        lead, carried = carried, ""
        for _ in range(_OPENERS):
            time = DATE.match(part)
            if time and not lead and re.match(r",? (?:[Ii] |[Mm]y )", part[time.end() :]):
                lead, part = time.group(), part[time.end() :].lstrip(" ,")
            opener = None if part.startswith(("Actually I", "just ", "Just ")) else _opener(part)
            if not opener:
                break
            part = part[opener:]
        if number and spoken and _GOES_ON.match(part):
            part = f"I {part}"
        spoken = part.startswith("I ")
        if DATE.fullmatch(part):  # 'Last week, I …': the time of the next clause
            carried = part
            continue
        introduced = _INTRODUCED.match(part)
        if introduced:
            yield Clause(f"I am {introduced['what']}", lead, follows=True, sentence=sentence)
        if part:
            yield Clause(part, lead, follows=number > 0, sentence=sentence)


def _opener(part: str) -> int:
    found = _OPENER.match(part) or _OPENER.match(part[:1].lower() + part[1:])
    return found.end() if found else 0

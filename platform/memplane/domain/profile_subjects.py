"""Whom a statement about a profile is about, as its sentence and the one before it show."""

import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from memplane.domain.profile_wording import Shape


class Somebody(Enum):
    """Whom words are about, where it is nobody by name."""

    USER = "the user"
    OTHER = "somebody or something else"
    UNNAMED = "nobody is named"


@dataclass(slots=True)
class Voice:
    """What is known of a text that is read sentence by sentence.

    Attributes:
        names: words of names that the user is known by, case folded.
        last: whom the last sentence was about, for the pronoun that begins the next.
        first_person: whether the user speaks: then anybody in the third person is somebody else.
        speaker: who says the sentence in which somebody says `I`, where a name before a colon shows it.
    """

    names: frozenset[str] = frozenset()
    last: Somebody | None = None
    first_person: bool = False
    speaker: str | None = None

    def listen(self, sentence: str) -> None:
        """Note who says a sentence, as in `Kit: I moved to Porto`."""
        label = _SPEAKER.match(sentence)
        self.speaker = label["word"] if label and label["word"] not in _HEADINGS else None

    def hear(self, sentence: str) -> None:
        """Note whom a sentence is about."""
        self.last = self._subject(sentence[:_FAR]) or self.last

    def who(self, word: str) -> "Somebody | str":
        """Return whom a word or a name means."""
        plain = " ".join(word.lower().removeprefix("the ").removeprefix("this ").split())
        if plain in _FIRST:
            return Somebody.USER if self.speaker is None or self.knows(self.speaker) else self.speaker
        if plain in _THIRD:
            return Somebody.OTHER if self.first_person else self.last or Somebody.USER
        if plain in _USER:
            return Somebody.OTHER if self.first_person else Somebody.USER
        if self.first_person or word.split(maxsplit=1)[0] in _NO_PERSON:
            return Somebody.OTHER
        return Somebody.USER if self.knows(word) else word

    def knows(self, name: str) -> bool:
        """Whether the user is known by a name."""
        words = words_of(name)
        return bool(words) and words <= self.names

    def _subject(self, sentence: str) -> Somebody | None:
        """The first of whom a sentence speaks."""
        for found in _SUBJECT.finditer(sentence):
            word = found["word"]
            if word.lower() in _THIRD:
                continue
            who = self.who(word)
            if who is Somebody.OTHER and word.split()[0] in _NO_PERSON:
                continue
            of_theirs = found["of"] is not None and _THINGS.match(sentence, found.end()) is None
            return Somebody.USER if who is Somebody.USER and not of_theirs else Somebody.OTHER
        return None

    def subject(self, words: str) -> Somebody | None:
        """The same for part of a sentence; of one with a pronoun, whom that means."""
        return self._subject(words) or self.last


_FAR = 200
_FIRST = frozenset({"i", "me", "my", "we", "us", "our"})
_THIRD = frozenset({"he", "she", "they", "him", "her", "them", "his", "their"})
_USER = frozenset({"user", "users"})
_NO_PERSONS = """
The A An This That These Those It Its There Each Every One Some Many Note System Since In On At From After Before
As By For To With When While If And But Then So Also Now Today Yesterday Tomorrow Recently Currently Last Next
January February March April May June July August September October November December Monday Tuesday Wednesday
Thursday Friday Saturday Sunday Spring Summer Autumn Winter Profile Fact Update Remember Info Summary
"""
_NO_PERSON = frozenset(_NO_PERSONS.split())
_NAME = r"[^\W\d_a-z][\w-]*(?:\s[^\W\d_a-z][\w-]*){0,2}"
_ANYBODY = rf"(?:(?i:(?:the\s+|this\s+)?users?|i|me|my|we|us|our|he|she|they|him|her|them|his|their)\b|{_NAME})"
_SUBJECT = re.compile(rf"\b(?P<word>{_ANYBODY})(?P<of>'s?(?=\s))?")
_ADVERB = (
    r"(?:has|have|had|was|is|are|am|will|just|now|recently|finally|currently|still|also|permanently|again|since|already|then"
    r"|always|once|even|actually|really|only|since\sthen|\w+ly|usually|long)"
)
_BEFORE_VERB = re.compile(
    rf"\b(?P<word>{_ANYBODY})(?:'(?P<short>ve|s|re|d|m))?(?:\s\([^()]{{0,60}}\))?"
    r"(?:\s+(?:and|with)\s+(?:[^\s,.]+\s+){0,3}?[^\s,.]+)?(?:,[^,]{1,80},)?"
    rf"(?:\s+(?i:{_ADVERB})){{0,4}}[\s:]*$"
)
_BEFORE_OWNED = re.compile(
    rf"\b(?P<word>{_ANYBODY})(?P<of>'s?)?"
    r"(?:\s+(?i:new|current|actual|real|own|home|present|permanent|first|preferred|native|main|primary|legal|full|given"
    r"|chosen|display|the)){0,3}\s*$"
)
_BEING = re.compile(
    rf"\b(?P<word>{_ANYBODY})(?:,[^,]{{1,80}},)?\s*(?i:is|am|are|'m|'s|became|has\sbecome|,)(?:\s+(?i:now|currently|also))?"
    r"(?:\s+(?:an?|the))?(?:\s+[\w-]+){0,2}\s*$"
)
_PARTICIPLE = re.compile(r"(?:\w+\s+){0,3}(?:moved|relocated|settled|lived|been|called|named)\b", re.IGNORECASE)
_LINKED = re.compile(rf"(?:\b(?:and|then|but)|[,;])(?:\s+(?i:{_ADVERB})){{0,3}}\s*$")
_RELATED = re.compile(
    r"\b(?:that|who|whose|which|said|says|told|tells|heard|because|when|after|while)\b", re.IGNORECASE
)
_UNREAL = re.compile(
    r"\b(?:if|unless|whether|suppos\w+|imagin\w+|wish\w*|dream\w*|pretend\w*|as\sthough|hypothetical\w*|in\scase)\b"
    r"[^,;:]*$"
    r"|\b(?:could|might|would|may|should|almost|nearly|not|never|hardly|cannot|no\slonger|not\syet|until|once)"
    r"(?:\s+(?:have|be|been|soon|even|also|really|yet|\w+ly))*\s*$"
    r"|n't(?:\s+\w+)?\s*$|\b(?:not|never|no\slonger|hardly)\s+\w+\s*$",
    re.IGNORECASE,
)
"""What makes a statement a supposition, or denies it."""
_OPEN_QUOTE = re.compile(r"(?:^|[\s(:])['\u2018][^'’]*$")
_QUOTING_USER = re.compile(
    r"(?:user|\bI)\s+(?:\w+\s+)?(?:said|says|wrote|writes|stated|noted|mentioned)\b[^\"]{0,20}[\"'\u2018“]\s*"
    r"(?:\w+\s+){0,3}$",
    re.IGNORECASE,
)
_SPEAKER = re.compile(
    rf"(?P<word>{_NAME})(?:\s(?:said|says|wrote|writes|asked))?:\s+[\"'“\u2018]?(?:I|My|We|Our|Call|Please)\b"
)
_HEADING_WORDS = """
User Confirmed Correction Residence City Home Location Name Status Statement Quote Important Context Background
Preference Preferences Pronouns Language Moved SYSTEM NOTE USER
"""
_HEADINGS = _NO_PERSON | frozenset(_HEADING_WORDS.split())
_PLEASE = re.compile(r"(?:please|always|just|so|and|then|also|kindly|from now on|note|remember)?[\s,:]*", re.IGNORECASE)
_THINGS = re.compile(
    r"\s+(?:new\s+|current\s+|home\s+|preferred\s+|native\s+|first\s+)*(?:home|city|town|address|residence|location|name"
    r"|pronouns?|language|tongue|profile|life|job)\b",
    re.IGNORECASE,
)


@lru_cache
def words_of(name: str) -> frozenset[str]:
    """The words of a name, case folded; of an address of mail those before the sign."""
    return frozenset(re.findall(r"[^\W\d_]{2,}", name.split("@", 1)[0].casefold()))


def about(shape: Shape, match: re.Match[str], lead: str, voice: Voice) -> "Somebody | str":
    """Whom a statement is about: the user, somebody else, nobody that it names, or somebody by name.

    Args:
        shape: where its wording names the person.
        match: the statement.
        lead: what stands before it in its sentence.
        voice: of the text.
    """
    if _UNREAL.search(lead) or match.string.rstrip("\"'”’) ").endswith("?") or _quoted(lead):
        return Somebody.OTHER
    match shape:
        case Shape.VERB:
            return _of_verb(lead, match, voice)
        case Shape.OWNED:
            return _of_owner(lead, match, voice)
        case Shape.ATTRIBUTE:
            return _named(_BEING.search(lead, max(0, len(lead) - _FAR)), lead, voice) or Somebody.OTHER
        case Shape.ASKED:
            return _of_order(match, voice)


def _quoted(lead: str) -> bool:
    """Whether what follows stands in quotation marks, and is not quoted as the user's."""
    odd = lead.count('"') % 2 or lead.count("“") > lead.count("”") or _OPEN_QUOTE.search(lead)
    return bool(odd) and _QUOTING_USER.search(lead) is None


def _named(found: re.Match[str] | None, lead: str, voice: Voice) -> "Somebody | str | None":
    """Whom a subject means that stands right before a statement."""
    if found is None:
        return None
    word, before = found["word"], lead[: found.start()]
    if word.lower() in _THIRD and not voice.first_person:
        return voice.subject(before) or Somebody.USER
    if before.rstrip().endswith(("'s", "'")) and not word[0].islower():
        return Somebody.OTHER  # `the user's friend Ben`, `Kit's Porto`
    return voice.who(word)


def _of_verb(lead: str, match: re.Match[str], voice: Voice) -> "Somebody | str":
    if _PLEASE.fullmatch(lead):
        if match.group()[:1].islower() and not lead and not match.string[:1].islower():
            return Somebody.OTHER
        return voice.last or Somebody.USER
    found = _BEFORE_VERB.search(lead, max(0, len(lead) - _FAR))
    if found and found["short"] == "s" and _PARTICIPLE.match(match.group()) is None:
        return Somebody.OTHER  # `the note of the user's lives in Porto`
    if who := _named(found, lead, voice):
        return who
    if _LINKED.search(lead):
        if _RELATED.search(lead) and not lead.rstrip().endswith(","):
            return Somebody.OTHER
        return voice.subject(lead) or Somebody.OTHER
    return Somebody.OTHER


def _of_owner(lead: str, match: re.Match[str], voice: Voice) -> "Somebody | str":
    owner = match.group().split(maxsplit=1)[0].lower()
    if not lead.strip():
        if owner in _FIRST | _THIRD | _USER:
            return voice.who(owner)
        return Somebody.UNNAMED
    if owner in _FIRST:
        return voice.who(owner)
    if owner in _THIRD and not voice.first_person:
        return voice.subject(lead) or Somebody.USER
    found = _BEFORE_OWNED.search(lead, max(0, len(lead) - _FAR))
    if found is None:
        return Somebody.OTHER
    apostrophe = found["of"] or owner.startswith(("'", "s'")) or found["word"].lower() in {*_FIRST, *_THIRD}
    users = found["word"].lower().endswith(("user", "users"))
    return (_named(found, lead, voice) or Somebody.OTHER) if apostrophe or users else Somebody.OTHER


def _of_order(match: re.Match[str], voice: Voice) -> "Somebody | str":
    groups = match.groupdict()
    whom = groups.get("whom") or groups.get("who")
    if whom is None:
        return Somebody.USER
    return voice.who(whom.removesuffix("'s"))

"""Whether a message agrees to a proposal: short words that say yes, and nothing else; and to which one."""

import re

from memplane.domain.memory.tombstones import skeleton

MAX_CHARS = 200
_WORD = re.compile(r"[^\W_]+(?:['’/][^\W_]+)*")
_AGREEING = """
yes yeah yep yup yea ya aye sure ok okay okey correct right exactly absolutely definitely certainly indeed agreed agree
confirm confirmed confirming approved approve accept accepted affirmative true ja jawohl genau richtig klar gerne
einverstanden stimmt oui d'accord exact sí si claro correcto vale exacto sì certo esatto d'accordo sim isso correto tak
zgoda да конечно верно согласен согласна はい 是 是的 对 好
"""
_YES = frozenset(_AGREEING.split())
_PHRASES = re.compile(
    r"^(?:go ahead|do (?:it|so|that|please)|please do|of course|by all means|sounds good"
    r"|that(?:['’]s| is) (?:right|correct|true|fine|good|ok|okay|it)|you (?:can|may)|i do\b|fine by me|feel free)",
    re.IGNORECASE,
)
_FILLING = """
i i'm am me my mine you your it its it's is are be that that's this the a an so do does can may should would will please
thanks thank lot very much and from now on in to at for with as of all always totally fully fine good great perfect go
ahead course means sounds by call called use save saved store stored remember note noted keep set update updated change
changed make live lives moved living name named pronouns pronoun city town language speak prefer preferred just really
still new here there feel free bien bueno gut ich bin das ist have has i've we we're bitte danke merci gracias grazie
obrigado
"""
_BESIDE = frozenset(_FILLING.split())
"""Words that may stand beside a yes without making it another answer."""


def is_agreement(text: str, value: str) -> bool:
    """Whether a person's message agrees to a value, and says nothing that could be another answer.

    Args:
        text: the message, word for word.
        value: what is proposed; it may be said again, and no other one may.
    """
    if len(text) > MAX_CHARS or "?" in text:
        return False
    told = _words(text)
    said = set(_words(value))
    if not told or not ((told[0] in _YES) or _PHRASES.match(text.strip())):
        return False
    known = {skeleton(word) for word in said}
    return all(word in _YES or word in _BESIDE or word in said or skeleton(word) in known for word in told)


def names(text: str, value: str) -> bool:
    """Whether a person's message says a value after its first word, so that it can agree to nothing else.

    A value that is itself made of words that may stand beside any yes is never said: `do it` names no pronoun.
    """
    said = {skeleton(word) for word in _words(value)}
    telling = {skeleton(word) for word in _words(value) if word not in _YES and word not in _BESIDE}
    return bool(telling) and said <= {skeleton(word) for word in _words(text)[1:]}


def _words(text: str) -> list[str]:
    return [word.replace("’", "'") for word in _WORD.findall(text.casefold())]

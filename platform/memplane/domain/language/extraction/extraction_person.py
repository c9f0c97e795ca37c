"""From the first person to the third."""

import re

_IRREGULAR = {"am": "is", "have": "has", "do": "does", "go": "goes", "cannot": "cannot"}
_UNCHANGED = frozenset(["was", "were", "had", "did", "will", "cannot", "used", "would"])
_AFTER_I = re.compile(r"\bI (am|was|have)\b")
_THEY = {"am": "they are", "was": "they were", "have": "they have"}
_WORDS = re.compile(r"\b(?:I|my|me|mine|myself)\b")
_THIRD = {"I": "they", "my": "their", "me": "them", "mine": "theirs", "myself": "themselves"}


def conjugated(verb: str) -> str:
    """A verb of the first person present, as the third person singular has it."""
    if verb in _UNCHANGED:
        return verb
    if verb in _IRREGULAR:
        return _IRREGULAR[verb]
    if verb.endswith("y") and verb[-2:-1] not in "aeou":
        return f"{verb[:-1]}ies"
    return f"{verb}es" if verb.endswith(("s", "x", "z", "ch", "sh", "o")) else f"{verb}s"


def third(text: str) -> str:
    """Words in which the first person is no subject of the main verb, in the third person."""
    text = _AFTER_I.sub(lambda found: _THEY[found[1]], text)
    return _WORDS.sub(lambda found: _THIRD[found.group()], text)

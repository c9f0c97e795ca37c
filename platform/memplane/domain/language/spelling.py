"""The plain spelling of a text: without markup, styled letters, or digits in the place of letters.

Every check that asks whether a value is said again, or a sensitive field stated, reads the plain spelling. What is
stored and shown stays as it was written. All of it takes time in proportion to the length of a text.
"""

import html
import re
import unicodedata
from collections.abc import Collection, Iterator
from functools import lru_cache, partial

from memplane.domain.language.text import unicode_form

_INLINE = (
    "a|abbr|b|bdi|bdo|big|cite|code|del|dfn|em|font|i|ins|kbd|label|mark|q|s|samp|small|span|strike|strong|sub|sup|tt|u"
    "|var|wbr"
)
_BLOCK = (
    "article|aside|blockquote|br|center|dd|div|dl|dt|h[1-6]|hr|img|li|ol|p|pre|section|table|tbody|td|tfoot|th|thead|tr"
    "|ul"
)
_MARKUP = re.compile(
    r"<!--[^<>]{0,400}-->"
    rf"|</?(?:(?P<inline>{_INLINE})|(?P<block>{_BLOCK}))(?:\s[^<>]{{0,300}})?/?>"
    r"|(?P<entity>&(?:#\d{1,7}|#x[0-9a-f]{1,6}|[a-z][a-z0-9]{1,31});)"
    r"|!?\[(?=[^\[\]]{1,300}\]\([^()\[\]\s]{0,600}\))|(?<=[^\s\[])\]\([^()\[\]\s]{0,600}\)"  # a link leaves its words
    r"|\*+|~~+|`+|(?<![^\W_])_+|(?<!_)_++(?!\w)",
    re.IGNORECASE,
)
_MAY_BE_MARKED = re.compile(r"[<&\[\]*~`_]")
# single letters apart, as in `P o r t o` and `P-o-r-t-o`
_APART = re.compile(r"(?<![^\W_])(?:[^\W\d_][ ·.,|/_-]){3,}[^\W\d_](?![^\W_])")
_FLAGS = re.compile("[\U0001f1e6-\U0001f1ff]+")
_LETTER = re.compile(r"(?:LATIN (?:SMALL|CAPITAL) LETTER|LATIN LETTER SMALL CAPITAL|SYMBOL LETTER) (?P<letter>[A-Z])")
_OVERLAYS = re.compile("[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f]")
"""Marks that stand by themselves after composition: no Latin, Greek or Cyrillic letter needs one."""
_DIGITS = str.maketrans("034579@$!€", "oeastgasie") | {ord("8"): "b"}
_ONES = ("i", "l")
_CODED = re.compile(r"[^\W_]+(?:[@$!€][^\W_]+)*")
_SHORTEST = 4
"""Shorter words with digits are names of their own: `A1`, `H2O`, `B12`."""


def bare(text: str) -> str:
    """A text without HTML tags and entities, Markdown, styled letters, marks over letters and spaces within words.

    Line breaks stay. The words of a link stay, and its address does not. A flag stays a flag: only a run of regional
    letters other than two is a word.
    """
    if _MAY_BE_MARKED.search(text):
        text = _MARKUP.sub(_unmarked, text)
    if not text.isascii():
        text = unicode_form("NFC", _FLAGS.sub(_named, text))
        text = "".join(map(_plain, _OVERLAYS.sub("", text)))
    return _APART.sub(lambda found: found.group()[::2], text)


def spellings(text: str) -> Iterator[str]:
    """The ways to read a text: as written, bare, on one line, and with its digits for letters.

    None but the first is without a letter or digit, so that no two texts are the same for having none.
    """
    yield text
    plain = bare(text)
    one_line = " ".join(plain.split())
    coded = [_CODED.sub(partial(_as_letters, one), one_line) for one in _ONES]
    for each in dict.fromkeys((plain, one_line, *coded)):
        if each != text and any(c.isalnum() for c in each):
            yield each


def known_words(text: str, vocabulary: Collection[str]) -> str:
    """A text whose words with digits or accents are those of a vocabulary, where they are spelled for one of it."""
    if text.isascii() and not _has_digit(text):
        return text
    return _CODED.sub(lambda found: _known(found.group(), vocabulary), text)


def _has_digit(text: str) -> bool:
    return any(c in text for c in "01345789")


def _known(word: str, vocabulary: Collection[str]) -> str:
    if word.isascii() and word.isalpha():
        return word
    plain = "".join(c for c in unicode_form("NFKD", word) if not unicodedata.combining(c))
    for read in (_decoded(plain, one) for one in _ONES):
        if len(read) > 1 and read.casefold() in vocabulary:
            return read.capitalize() if word[0].isupper() else read
    return word


def _as_letters(one: str, found: re.Match[str]) -> str:
    return _decoded(found.group(), one)


def _decoded(word: str, one: str) -> str:
    """A word with its digits and signs as letters, if two of five are letters at least: `P0r70`, and no number."""
    letters = sum(c.isalpha() for c in word)
    if len(word) < _SHORTEST or letters == len(word) or 5 * letters < 2 * len(word):
        return word
    return word.replace("1", one).translate(_DIGITS)


def _unmarked(found: re.Match[str]) -> str:
    if found["entity"]:
        return html.unescape(found["entity"])
    return " " if found["block"] else ""


def _named(found: re.Match[str]) -> str:
    """Regional letters as letters; two are the flag of a country."""
    run = found.group()
    return run if len(run) == 2 else "".join(chr(ord(c) - 0x1F1E6 + ord("A")) for c in run)


@lru_cache(maxsize=8_192)
def _plain(c: str) -> str:
    """A styled letter as a letter; nothing for what is invisible; any other character as it is."""
    if c.isascii() or "\U0001f1e6" <= c <= "\U0001f1ff":
        return c
    if unicodedata.category(c) == "Cf":
        return ""
    composed = unicodedata.normalize("NFKC", c)
    if composed != c:
        return composed if composed.isalnum() else c
    letter = _LETTER.search(name := unicodedata.name(c, ""))
    if letter is None or not name.endswith(letter.group()):
        return c
    return letter["letter"] if "CAPITAL LETTER" in name or "SYMBOL" in name else letter["letter"].lower()

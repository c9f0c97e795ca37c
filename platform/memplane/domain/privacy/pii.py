"""Personal data in text: what kind stands where, and text without it.

The rules read for precision first: a number counts as a phone number or a document number only when its form or the
word before it says so. All patterns are linear in the length of the text: their repetitions are bounded, or start at
the beginning of a run only.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from memplane.domain.privacy import pii_patterns as forms


class Pii(StrEnum):
    """What kind of personal data it is."""

    EMAIL = "email"
    PHONE = "phone"
    ADDRESS = "address"
    CARD = "card"
    IBAN = "iban"
    ID_NUMBER = "id_number"
    IP = "ip"
    BIRTH_DATE = "birth_date"
    SECRET = "secret"  # noqa: S105 - the name of a kind


@dataclass(frozen=True, slots=True)
class PiiMatch:
    """One find: its kind, and where it stands in the text as it was given, ``text[start:end]``."""

    kind: Pii
    start: int
    end: int


EVERY = frozenset(Pii)


class Finder(Protocol):
    """What finds personal data; called from several threads at once."""

    def __call__(self, text: str, only: Collection[Pii] = EVERY) -> Sequence[PiiMatch]:
        """Finds of these kinds, in order; no two overlap."""
        ...


_Finds = Iterator[tuple[Pii, int, int]]
_ORDER = {kind: place for place, kind in enumerate(Pii)}

# Folding: digits of any script, full-width forms, dashes and spaces become ASCII; what leaves no trace is dropped.
_TRACELESS = "\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\u20e3\ufe00-\ufe0f\ufeff"
_FOLDED = re.compile(
    rf"[{_TRACELESS}\u00a0\u2000-\u200a\u2010-\u2015\u202f\u205f\u2212\u3000\ufe52\ufe6b\uff01-\uff5e]|(?![0-9])\d"
)
_DROPPED = re.compile(rf"[{_TRACELESS}]")


def _holds(text: str, words: Collection[str]) -> bool:
    for word in words:  # noqa: SIM110 - in half the time of any(), for every text
        if word in text:
            return True
    return False


class _Folded:
    """A text in its folded form, in lower case, and where its digits stand."""

    __slots__ = ("digits", "low", "runs", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        low = text.lower()
        self.low = low if len(low) == len(text) else "".join(c.lower()[0] for c in text)
        self.runs = [match.span() for match in forms.RUN.finditer(text)]
        self.digits = sum(end - start for start, end in self.runs)

    def any_of(self, words: Collection[str]) -> bool:
        """Whether one of these stands in the text."""
        return _holds(self.text, words)

    def after(self, cue: re.Pattern[str], value: re.Pattern[str]) -> Iterator[tuple[re.Match[str], re.Match[str]]]:
        """Each cue in the lower-case text that begins a word, with the value that follows it."""
        for found in cue.finditer(self.low):
            if found.start() == 0 or not self.low[found.start() - 1].isalnum():
                match = value.match(self.text, found.end())
                if match:
                    yield found, match

    def before(self, position: int, most: int) -> str:
        """The lower-case text before a position."""
        return self.low[max(0, position - most) : position]


def _emails(folded: _Folded) -> _Finds:
    if "@" in folded.text:
        yield from ((Pii.EMAIL, *match.span()) for match in forms.EMAIL.finditer(folded.text))
    if _holds(folded.low, forms.SPOKEN_MARKS):
        for match in forms.SPOKEN_EMAIL.finditer(folded.text):
            if " at " not in match[0].lower() or re.search(r"\bdot\b", match[0], re.IGNORECASE):
                yield Pii.EMAIL, *match.span()


def _luhn(digits: str) -> bool:
    doubled = sum((0, 2, 4, 6, 8, 1, 3, 5, 7, 9)[ord(digit) - 48] for digit in digits[-2::-2])
    return (doubled + sum(ord(digit) - 48 for digit in digits[-1::-2])) % 10 == 0


def _cards(folded: _Folded) -> _Finds:
    text, runs, first = folded.text, folded.runs, 0
    while first < len(runs):
        start = runs[first][0]
        last = None
        joined = start > 0 and (text[start - 1].isalnum() or text[start - 1] in "_.,")
        if not joined and not forms.IBAN_START.search(text, max(0, start - 5), start):
            last = _card_end(text, runs, first)
        if last is not None:
            yield Pii.CARD, start, runs[last][1]
            first = last
        first += 1


def _card_end(text: str, runs: list[tuple[int, int]], first: int) -> int | None:
    """The last run of the longest card number that begins with this run of digits, if there is one."""
    found, digits = None, ""
    if text[runs[first][0]] not in "234568":  # no network has numbers that begin with another digit
        return None
    for last in range(first, min(first + 19, len(runs))):
        start, end = runs[last]
        if len(digits) + end - start > 19 or (last > first and text[runs[last - 1][1] : start] not in (" ", "-")):
            break
        digits += text[start:end]
        if len(digits) >= 13 and _luhn(digits) and not (text[end : end + 1].isalnum() or text[end : end + 1] == "_"):
            found = last
    return found


def _ibans(folded: _Folded) -> _Finds:
    text = folded.text
    for run, _ in folded.runs:
        start = end = run - 2
        length = int(forms.IBAN_LENGTHS.get(text[start:run].upper(), 0)) if start >= 0 else 0
        if length == 0 or (start > 0 and text[start - 1].isalnum()):
            continue
        code = ""
        while len(code) < length and end < len(text):
            c = text[end]
            if c.isascii() and c.isalnum():
                code += c.upper()
            elif c not in " -" or text[end - 1] in " -":
                break
            end += 1
        if len(code) < length or (end < len(text) and text[end].isalnum()):
            continue
        if int("".join(str(int(c, 36)) for c in code[4:] + code[:4])) % 97 == 1:
            yield Pii.IBAN, start, end


def _ips(folded: _Folded) -> _Finds:
    text = folded.text
    if text.count(".") >= 3:
        for start, end in folded.runs:
            match = forms.IP4.match(text, start) if end - start < 4 and text[end : end + 1] == "." else None
            parts = match[0].split(".") if match else ["x"]
            fits = match and all(int(part) < 256 and (part == "0" or part[0] != "0") for part in parts)
            if match and fits and not forms.NUMBERING.search(folded.before(start, 16)):
                yield Pii.IP, *match.span()
    if "::" in text or text.count(":") > 6:
        for match in forms.IP6.finditer(text):
            if _is_ip6(match[0]):
                yield Pii.IP, *match.span()


def _is_ip6(written: str) -> bool:
    groups = written.removesuffix("::").removeprefix("::").split(":")
    edges = written.startswith("::") or written[0] != ":", written.endswith("::") or written[-1] != ":"
    if ":::" in written or not all(edges) or not forms.RUN.search(written) or any(len(group) > 4 for group in groups):
        return False
    return len(groups) == 8 if "::" not in written else written.count("::") == 1 and len(groups) < 9


def _phones(folded: _Folded) -> _Finds:
    text = folded.text
    for match in forms.WORLD_PHONE.finditer(text):
        digits = "".join(forms.RUN.findall(match[0]))
        if digits[0] != "1" or (len(digits) == 11 and digits[1] > "1"):
            yield Pii.PHONE, *match.span()
    for start, end in folded.runs:
        home = text[start] == "0"
        if end - start > 6 or not (home or end - start in (1, 3)):
            continue
        begin = start - 1 if text[start - 1 : start] == "(" else start
        for pattern in (forms.HOME_PHONE, forms.US_PHONE) if home else (forms.US_PHONE,):
            found = pattern.match(text, begin)
            if found and _is_phone(found[0], home=pattern is forms.HOME_PHONE) and not _ordered(folded, begin):
                yield Pii.PHONE, *found.span()
    for cue, value in (forms.PHONE_CUE, forms.PHONE), (forms.CALL_CUE, forms.GROUPED):
        for _, found in folded.after(cue, value):
            fits = 7 <= sum(map(len, forms.RUN.findall(found[0]))) <= 15 and not forms.DATE_IN.search(found[0])
            if fits and not forms.IP4.fullmatch(found[0]) and not _ordered(folded, found.start()):
                yield Pii.PHONE, *found.span()


def _ordered(folded: _Folded, position: int) -> bool:
    """Whether the words before say that a number counts orders or the like."""
    return forms.ORDER_WORD.search(folded.before(position, 40)) is not None


def _is_phone(written: str, *, home: bool) -> bool:
    """Whether digits with separators are a phone number: no date in them, and as many digits as those have."""
    if forms.DATE_IN.search(written) or re.fullmatch("[0-9]{3}-[0-9]{2}-[0-9]{4}", written):
        return False
    if not home:
        return True
    groups = re.findall("[0-9]+", written)
    digits = sum(len(group) for group in groups)
    dotted = "." in written and len(groups[0]) < 3 and not (len(groups) == 5 and all(len(g) == 2 for g in groups))
    return not dotted and (8 if "(" in written else 9) <= digits <= (15 if groups[0].startswith("00") else 12)


def _id_numbers(folded: _Folded) -> _Finds:
    for start, end in folded.runs:
        match = forms.SSN.match(folded.text, start) if end - start == 3 else None
        if match:
            yield Pii.ID_NUMBER, *match.span()
    for _, found in folded.after(forms.ID_CUE, forms.ID):
        if sum(map(len, forms.RUN.findall(found[0]))) >= 4 and not forms.DATE_IN.search(found[0]):
            yield Pii.ID_NUMBER, *found.span()


def _births(folded: _Folded) -> _Finds:
    if not _holds(folded.low, ("born", "birth", "gebor", "geburt", "dob", "d.o.b")):
        return
    for cue, found in folded.after(forms.BIRTH_CUE, forms.DATE_AT):
        words = re.findall(r"[\w'’-]+", folded.text[cue.start("between") : cue.end("between")])
        if all(word.lower() in forms.BEFORE_DATE or word[0].isupper() for word in words):
            yield Pii.BIRTH_DATE, *found.span()


def _addresses(folded: _Folded) -> _Finds:
    text = folded.text
    postcode = False
    for start, end in folded.runs:
        postcode = postcode or (end - start == 5 and text[start - 2 : start] in (", ", "D-"))
        year = end - start == 4 and text[start : start + 2] in ("19", "20") and text[end : end + 1] == " "
        if end - start > 5 or (year and folded.before(start, 8).endswith(forms.YEAR_BEFORE)):
            continue
        found = next((match for pattern in forms.NUMBERED if (match := pattern.match(text, start))), None)
        if found:
            yield Pii.ADDRESS, *found.span()
        road = text[max(0, start - 48) : start - 1].rsplit(None, 1)[-1:] if text[start - 1 : start] == " " else []
        if road and road[0].lower().endswith(forms.ROADS) and (house := forms.HOUSE.match(text, start)):
            yield Pii.ADDRESS, start - 1 - len(road[0]), house.end()
    if postcode:
        yield from ((Pii.ADDRESS, *match.span()) for match in forms.PLACED.finditer(text))
    if folded.any_of(forms.SOUTHERN_WORDS):
        yield from ((Pii.ADDRESS, *match.span()) for match in forms.SOUTHERN.finditer(text))
    if "box" in folded.low:
        yield from ((Pii.ADDRESS, *match.span()) for match in forms.BOX.finditer(folded.low))
    if " at " in folded.low or "address" in folded.low:
        yield from ((Pii.ADDRESS, *found.span()) for _, found in folded.after(forms.HOME_CUE, forms.PLAIN_STREET))


def _secrets(folded: _Folded) -> _Finds:
    text = folded.text
    if folded.any_of(forms.KEY_MARKS):
        yield from ((Pii.SECRET, *match.span()) for match in forms.KEY.finditer(text))
    if "://" in text and "@" in text:
        for match in forms.LOGIN.finditer(text):
            yield Pii.SECRET, *match.span(1)
    if "-----" in text:
        yield from _key_blocks(text)
    if "bearer" in folded.low:
        yield from ((Pii.SECRET, *found.span()) for _, found in folded.after(forms.BEARER_CUE, forms.BEARER))
    if "key" in folded.low or "token" in folded.low or "secret" in folded.low:
        yield from ((Pii.SECRET, *found.span()) for _, found in folded.after(forms.TOKEN_CUE, forms.TOKEN))
    if _holds(folded.low, ("pass", "pwd", "pin", "kennwort")):
        yield from _passwords(folded)


def _passwords(folded: _Folded) -> _Finds:
    for cue, found in folded.after(forms.PASSWORD_CUE, forms.PASSWORD):
        value = found[0].rstrip(".,;!?)\"'”’")
        if forms.MARKS.match(found[0]) or value.strip("*•xX.…<>\"'") == "":
            continue
        if cue["is"] is None or value.lower() not in forms.NO_PASSWORD:
            yield Pii.SECRET, found.start(), found.start() + len(value)


def _key_blocks(text: str) -> _Finds:
    """Private keys from their first line to their last, or to the end of the text when that is missing."""
    end = 0
    for match in re.finditer(r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----", text):
        if match.start() < end:
            continue
        closing = text.find("-----END", match.end())
        end = text.find("-----", closing + 8) + 5 if closing >= 0 else len(text)
        end = end if end > 4 else len(text)
        yield Pii.SECRET, match.start(), end


def _spans(text: str, only: Collection[Pii]) -> list[PiiMatch]:
    """Finds of these kinds in folded text, ordered, the longest of those that overlap."""
    folded = _Folded(text)
    rules = [_emails, _secrets]
    if folded.digits >= 4 or "::" in text:
        rules.append(_ips)
    if folded.digits >= 4:
        rules.append(_id_numbers)
    if folded.digits >= 7:
        rules.append(_phones)
    if folded.digits >= 13:
        rules += [_cards, _ibans]
    if folded.digits:
        rules += [_addresses, _births]
    every = [PiiMatch(*found) for rule in rules for found in rule(folded) if found[0] in only]
    if len(every) < 2:
        return every
    kept: list[PiiMatch] = []
    for found in sorted(every, key=lambda found: (found.start, found.start - found.end, _ORDER[found.kind])):
        if kept and found.start < kept[-1].end:
            if found.end - found.start <= kept[-1].end - kept[-1].start:
                continue
            kept.pop()
        kept.append(found)
    return kept


def _folded(text: str) -> tuple[str, list[int] | None]:
    """Text with ASCII digits, spaces and dashes, and the old position of each character when some are gone."""
    if text.isascii() or not _FOLDED.search(text):
        return text, None
    plain = _FOLDED.sub(_fold, text)
    if len(plain) == len(text):
        return plain, None
    return plain, [position for position, c in enumerate(text) if not _DROPPED.match(c)]


def _fold(match: re.Match[str]) -> str:
    c = match[0]
    if _DROPPED.match(c):
        return ""
    if c.isdecimal():
        return str(int(c))
    if "\uff01" <= c <= "\uff5e":
        return chr(ord(c) - 0xFEE0)
    if c == "\ufe6b":
        return "@"
    return " " if c.isspace() else "." if c == "\ufe52" else "-"


def _find(text: str, only: Collection[Pii]) -> list[PiiMatch]:
    plain, positions = _folded(text)
    found = _spans(plain, only)
    if positions is None:
        return found
    return [PiiMatch(one.kind, positions[one.start], positions[one.end - 1] + 1) for one in found]


def find(text: str, only: Collection[Pii] = EVERY) -> tuple[PiiMatch, ...]:
    """All personal data of these kinds in a text, in order; where two finds overlap, the longer one stands."""
    return tuple(_find(text, only))


def kinds(text: str, find_pii: Finder = find) -> tuple[str, ...]:
    """The kinds of personal data in a text, each once, sorted."""
    return tuple(sorted({found.kind.value for found in find_pii(text)}))


def redact(text: str, only: Collection[Pii], find_pii: Finder = find) -> str:
    """Text with a mark such as ``[email]`` in place of each find of these kinds.

    What the marks leave is searched again until nothing of these kinds is found, at most ten times.
    """
    for _ in range(10):
        found = find_pii(text, only)
        if not found:
            break
        parts, end = [], 0
        for one in found:
            parts += [text[end : one.start], f"[{one.kind}]"]
            end = one.end
        text = "".join(parts) + text[end:]
    return text

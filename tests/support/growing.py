"""Texts that a grammar makes, of any length, and how the work on them grows with it."""

import gc
import math
import os
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from time import thread_time

Make = Callable[[int], str]
MOST_GROWTH = 1.2
"""Exponent of the length above which work grows faster than its input."""
MOST_SECONDS = 1.0
NOISE = 0.04
"""Seconds of processor time below which growth is not told from noise."""
TRIES = 4
"""How often a measurement is made before its growth is believed: what disturbs it only ever adds."""
SEEDS = range(4)
WORST = frozenset({"names of names", "disordered marks"})
"""Those that have shown growth before."""


@dataclass(frozen=True, slots=True)
class Growth:
    """Seconds of processor time of work on a text of a quarter of a length, half of it, and all of it."""

    seconds: tuple[float, ...]

    @property
    def exponent(self) -> float:
        """Of the length; 0 where there is too little work to tell."""
        quarter, *_, whole = self.seconds
        return math.log(whole / max(quarter, NOISE / 100), 4) if whole > NOISE else 0.0

    @property
    def is_linear(self) -> bool:
        """Whether the work grows as its input does, and the longest takes no longer than it may."""
        return self.exponent <= MOST_GROWTH and self.seconds[-1] <= MOST_SECONDS

    def __str__(self) -> str:
        return f"exponent {self.exponent:.2f}, " + " ".join(f"{each * 1e3:.0f} ms" for each in self.seconds)


def timed(work: Callable[[str], object]) -> Callable[[str], float]:
    """Work that tells what processor time of this thread it took, in seconds."""

    def spent(text: str) -> float:
        began = thread_time()
        work(text)
        return thread_time() - began

    return spent


def growth(cost: Callable[[str], float], make: Make, size: int, fixed: float = 0.0) -> Growth:
    """How work grows up to a size: the least of several measurements, as long as it looks worse than linear.

    Args:
        cost: does the work on a text, and tells its seconds of processor time.
        make: makes the text of a length.
        size: the longest one.
        fixed: what the work takes on next to no text.
    """

    def spent(part: int) -> float:
        text = make(part)
        gc.disable()  # a collection goes by all that the process has
        try:
            return max(cost(text) - fixed, 0.0)
        finally:
            gc.enable()

    if (whole := spent(size)) <= NOISE:
        return Growth((0.0, 0.0, whole))
    found = Growth((math.inf, math.inf, whole))
    for _ in range(TRIES):
        parts = (spent(size // 4), spent(size // 2), spent(size))
        found = Growth(tuple(min(pair) for pair in zip(found.seconds, parts, strict=True)))
        if found.is_linear:
            break
    return found


REPEATED: Mapping[str, str] = {
    "fields": "My name is Ana Weber and I live in Porto. ",
    "names of names": "my name is ",
    "calls": "call me Ana, ",
    "owners": "Ana's name is ",
    "homes": " lives in",
    "homes and jobs": "I work as a nurse and live at Hill Road 5, ",
    "born": "I was born on 3 May 1987 and I am 38 years old. ",
    "labels": "name: Ana; email: a@b.example; city: Porto\n",
    "denials": "not ",
    "never not": "I do not live in Porto, not in Rome, ",
    "and": "and Ana ",
    "lists": "tea, coffee, milk, ",
    "commas": ", ",
    "dots": ". ",
    "stops": ".",
    "initials": "A. ",
    "brackets open": "(",
    "brackets": "([{<",
    "brackets close": ")]}>",
    "quotes": "\"'“",
    "closing quotes": "”’)\"'",
    "nested": '(he said "(it\'s [so])") ',
    "names": "Ana Maria Weber de la Cruz ",
    "capitals": "ANA ",
    "surname chain": "Van der ",
    "digits": "1",
    "numbers": "12 345 678 ",
    "grouped": "4111 1111 1111 1112 ",
    "dashed": "12-34-",
    "dotted": "1.2.3.4.",
    "decimal": "3.14,",
    "dates": "on 3 May 2024, in May 2025, yesterday, 2024-05-03 ",
    "days": "2024-05-",
    "times": "at 10:30 on Monday, ",
    "hex": "deadbeef:",
    "colons": "::1:",
    "e-mails": "ana.weber+x@mail.example.org ",
    "e-mail run": "a@",
    "dotted words": "a.b.",
    "at the end": "ana.weber.",
    "phones": "+43 660 123 45 67, ",
    "phone run": "+43-",
    "urls": "https://example.org/a?b=c&d=e#f ",
    "url run": "http://a.",
    "www": "www.",
    "slashes": "/a/b\\",
    "handles": "@ana #hall ",
    "secrets": "password is hunter2 and api_key=sk-abcdef0123456789 ",
    "password run": "password: ",
    "keys": "-----BEGIN RSA PRIVATE KEY-----\n",
    "ibans": "AT61 1904 3002 3457 3201 ",
    "iban run": "AT61",
    "addresses": "12 Hill Road, 1010 Vienna, ",
    "street run": "Hill ",
    "one word": "a",
    "long German word": "Donaudampfschifffahrt",
    "hyphens": "well-",
    "apostrophes": "o'",
    "underscores": "a_b_",
    "combining": "e\u0301\u0302",
    "disordered marks": "\u0301\u0323",
    "marks of one letter": "e" + "\u0301\u0323" * 4_000,
    "marks that come apart": "\u0f73\u0301\uff9e",
    "marks alone": "\u0301",
    "joiners": "a\u200d\u200b",
    "wide": "\U0001d400\U0001d7d9\uff21\uff11",
    "scripts": "Ana Анна 安娜 أنا ",
    "Chinese": "我住在维也纳。",
    "Chinese without stops": "我叫安娜住在",
    "Arabic": "اسمي آنا ",
    "Thai": "ฉันชื่ออานา",
    "emoji": "👩\u200d👩\u200d👧",
    "spaces": " ",
    "breaks": "\n",
    "blank lines": "a\n\n",
    "tabs": "\t a",
    "steps": "1. Open the door.\n",
    "step run": "1. 2. 3. ",
    "bullets": "- a\n",
    "then": "first open it, then close it, then ",
    "orders": "When you book, always ask; ",
    "whenever": "if it rains then ",
    "markdown": "**bold** _it_ [a](b) `c` # h\n",
    "stars": "**",
    "emphasis": "*a_",
    "links": "[a](",
    "tags": "<b><i>",
    "tag run": "<a ",
    "entities": "&amp;&#65;",
    "escapes": "\\u0041\\n",
    "code": '{"a": [1, ',
    "questions": "Where is the hall? ",
    "question marks": "?",
    "decisions": "We decided to go. Let us go. ",
    "quoted speech": "Ben said that Ana said that ",
    "relations": "my mother's sister's ",
    "of": "the head of the ",
    "that": "I think that ",
    "or": "Porto or Rome or ",
    "because": "because I moved, ",
    "since": "since 2019 until 2020 ",
    "was": "used to be was no longer ",
    "German": "Ich heiße Anna und wohne in Wien. ",
    "French": "je m'appelle Anne et j'habite à ",
    "Spanish": "me llamo Ana y vivo en ",
    "dashes": " - ",
    "long dashes": "—",
    "equals": "a=b;",
    "semicolons": "Ana; ",
    "prefers": "I prefer tea to coffee, I like ",
    "tools": "search(a=1) -> ok; ",
    "I": "I ",
    "I'm": "I'm ",
    "my": "my ",
    "is": "is ",
    "the": "the ",
    "moved": "I moved from Porto to ",
}
"""What is repeated, by name."""
DISTINCT: Mapping[str, str] = {
    "distinct words": "w{} ",
    "distinct names": "Ana{} ",
    "distinct fields": "My name is Ana{} and I live in Porto{}. ",
    "distinct e-mails": "a{}@b{}.example ",
    "distinct sentences": "Hall {} is booked for person {}. ",
    "distinct steps": "{}. Open door {}.\n",
    "distinct labels": "city{}: Porto{}\n",
    "distinct dates": "{} was here on day {} of May 2025. ",
    "distinct people": "Ana Weber{} met Ben Miller{}, ",
    "distinct hosts": "https://h{}.example/{} ",
}
"""What is repeated with a number of its own each time: nothing that is looked up is found again."""


def grammar() -> Iterator[tuple[str, Make]]:
    """Names of the texts, each with what makes it of so many characters."""
    for name, piece in REPEATED.items():
        yield name, lambda size, piece=piece: _repeated(piece, size)
    for name, piece in DISTINCT.items():
        yield name, lambda size, piece=piece: _counted(piece, size)
    for name, piece in REPEATED.items():  # all of it, and only then what a rule looks for
        yield f"{name}, then an end", lambda size, piece=piece: _repeated(piece, size - 8) + "!@ Ana.\n"
    for seed in SEEDS:
        yield f"mixture {seed}", lambda size, seed=seed: _mixed(seed, size)
        yield f"soup {seed}", lambda size, seed=seed: _soup(seed, size)


def grown(number: int, share: int) -> list[tuple[str, Make]]:
    """The texts that one of several measurements takes: all by `make growth`, else one in so many, and the worst."""
    texts = list(grammar())
    if os.environ.get("GROWTH"):
        return texts
    return [text for place, text in enumerate(texts) if text[0] in WORST or place % share == number % share]


def _repeated(piece: str, size: int) -> str:
    return (piece * (size // len(piece) + 1))[:size]


def _counted(piece: str, size: int) -> str:
    made, length, number = [], 0, 0
    while length < size:
        made.append(piece.format(number, number))
        length += len(made[-1])
        number += 1
    return "".join(made)[:size]


def _mixed(seed: int, size: int) -> str:
    """Pieces in any order; the beginning is that of a longer one."""
    dice = random.Random(seed)  # noqa: S311 - the same each time
    pieces, made, length = list(REPEATED.values()), [], 0
    while length < size:
        made.append(dice.choice(pieces) * dice.randrange(1, 8))
        length += len(made[-1])
    return "".join(made)[:size]


def _soup(seed: int, size: int) -> str:
    dice = random.Random(seed)  # noqa: S311 - the same each time
    letters = sorted(set("".join(REPEATED.values())))
    return "".join(dice.choice(letters) for _ in range(size))

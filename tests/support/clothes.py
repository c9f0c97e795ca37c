"""A value in other clothes, and ordinary texts that look as if they wore some."""

from collections.abc import Callable
from dataclasses import dataclass

_SMALL_CAPITALS = dict(zip("abcdefghijklmnoprstuvwyz", "ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ", strict=True))
_CYRILLIC = str.maketrans("aeopcxysij", "аеорсхуѕіј")  # noqa: RUF001 - letters of other alphabets
_GREEK = str.maketrans("oivt", "οιντ")
_LEET = str.maketrans("oeit", "0317")


@dataclass(frozen=True, slots=True)
class Clothes:
    """A name, and how a text is dressed."""

    name: str
    on: Callable[[str], str]


def _shifted(capital: int, small: int) -> Callable[[str], str]:
    """Each letter by the same one of another alphabet of Unicode."""

    def dressed(text: str) -> str:
        return "".join(
            chr(capital + ord(c) - 65) if c.isupper() else chr(small + ord(c) - 97) if c.islower() else c for c in text
        )

    return dressed


def _each_word(before: str, after: str) -> Callable[[str], str]:
    return lambda text: " ".join(f"{before}{word}{after}" for word in text.rstrip(".").split())


def _within(between: str) -> Callable[[str], str]:
    """Something after the second letter of each longer word."""
    return lambda text: " ".join(w[:2] + between + w[2:] if len(w) > 3 else w for w in text.split())


def _of_words(*words: str, by: Callable[[str], str]) -> Callable[[str], str]:
    def dressed(text: str) -> str:
        for word in words:
            text = text.replace(word, by(word))
        return text

    return dressed


CLOTHES = (
    Clothes("plain", str),
    Clothes("bold", _each_word("**", "**")),
    Clothes("italic", _each_word("_", "_")),
    Clothes("struck", _each_word("~~", "~~")),
    Clothes("code", _each_word("`", "`")),
    Clothes("bold within words", _within("**")),
    Clothes("link", _of_words("Porto", by=lambda word: f"[{word}](https://example.org/a_b?c=d)")),
    Clothes("tags", _each_word("<b>", "</b>")),
    Clothes("tag with attributes", _each_word('<span class="x">', "</span>")),
    Clothes("tags within words", _within("<i></i>")),
    Clothes("comment within words", _within("<!-- -->")),
    Clothes("entities", _of_words("Porto", "lives", by=lambda word: "".join(f"&#{ord(c)};" for c in word))),
    Clothes("hexadecimal entities", _of_words("o", "i", by=lambda letter: f"&#x{ord(letter):x};")),
    Clothes("named entities", lambda text: text.replace(" ", "&nbsp;")),
    Clothes("line breaks between words", lambda text: text.replace("lives in ", "lives\nin\n")),
    Clothes("line break tags", lambda text: text.replace("lives in ", "lives<br/>in<br>")),
    Clothes("soft hyphens", _within("\u00ad")),
    Clothes("zero-width", _within("\u200b")),
    Clothes("variation selectors", _within("\ufe0f")),
    Clothes("full-width", _shifted(0xFF21, 0xFF41)),
    Clothes("circled", _shifted(0x24B6, 0x24D0)),
    Clothes("mathematical bold", _shifted(0x1D400, 0x1D41A)),
    Clothes("mathematical monospace", _shifted(0x1D670, 0x1D68A)),
    Clothes("squared", lambda text: _shifted(0x1F130, 0)(text.upper())),
    Clothes("negative squared", lambda text: _shifted(0x1F170, 0)(text.upper())),
    Clothes("negative circled", lambda text: _shifted(0x1F150, 0)(text.upper())),
    Clothes("regional letters", _of_words("Porto", by=lambda word: _shifted(0x1F1E6, 0)(word.upper()))),
    Clothes(
        "regional letters apart",
        _of_words("Porto", by=lambda word: " ".join(_shifted(0x1F1E6, 0)(word.upper()))),
    ),
    Clothes("small capitals", lambda text: "".join(_SMALL_CAPITALS.get(c, c) for c in text.lower())),
    Clothes("overlays", lambda text: "".join(f"{c}\u0336" if c.isalpha() else c for c in text)),
    Clothes("accents", lambda text: text.translate(str.maketrans("ie", "ïè"))),
    Clothes("Cyrillic", lambda text: text.translate(_CYRILLIC)),
    Clothes("Greek", lambda text: text.translate(_GREEK)),
    Clothes("digits", _of_words("Porto", "lives", "user", by=lambda word: word.translate(_LEET))),
    Clothes("letters apart", _of_words("Porto", "lives", by=" ".join)),
    Clothes("letters with dots", _of_words("Porto", "lives", by=".".join)),
    Clothes("letters with hyphens", _of_words("Porto", by="-".join)),
)

ORDINARY = tuple(
    line.replace("\\n", "\n")
    for line in """
The team closed the P0 incident on Friday.
GPT-4 answered 12 of 14 questions.
C3PO is the name of the staging robot.
The build uses **Python 3.11** and `ruff`.
Use `snake_case` for `__init__` arguments.
The <b>release</b> notes mention 3 fixes.
The type is List<int>, not Map<K, V>.
If a < b and c > d the loop ends.
The formula is 2 * 3 * 4 = 24.
H2O and CO2 are measured every hour.
The K8s cluster runs v1.29 with i18n.
The S3 bucket is named logs-2024.
R2D2 was replaced by BB8 in the demo.
The invoice number is A1B2C3D4.
The room is 4B on floor 3.
MP3 and MP4 files are converted at night.
The paper compares L1 and L2 losses.
The l10n and a11y checks pass.
Windows 11 and Office365 were installed.
The COVID19 report is on page 7.
7-Zip unpacks the archive.
The band U2 played 3 songs.
The regex is ^[a-z]+(?:_[a-z]+)*$ today.
See [the plan](https://example.org/plan_v2) for details.
![diagram](https://example.org/d.png) shows the flow.
The mail goes to ops@example.org at 9.
The price is $5 or 5€ per seat.
The C++ and C# bindings differ.
Łódź and São Paulo host the two fairs.
Das Büro in Köln öffnet um 8 Uhr.
Le café est fermé le lundi.
El niño mañana será año nuevo.
Проект завершён в срок.
Встреча перенесена на вторник.
Η συνάντηση είναι αύριο.
会议推迟到星期二。
東京の会議は火曜日です。
회의는 화요일에 열립니다.
الاجتماع يوم الثلاثاء.
הפגישה ביום שלישי.
बैठक मंगलवार को है।
การประชุมคือวันอังคาร
The flags 🇵🇹 and 🇪🇸 mark the two offices.
The launch was a success 🎉🚀.
Grade: A+ for the first draft.
Vitamins A, B, C and D are listed.
The options are A/B/C/D in the survey.
The acronym is N.A.S.A. in the old text.
- item one\\n- item two\\n- item three
# Heading\\nThe text below the heading.
| name | count |\\n|---|---|\\n| tests | 60 |
~~Old price~~ New price for the plan.
&lt;div&gt; is written as an entity.
Tom &amp; Jerry is on at 6.
The key is 0xDEADBEEF in the dump.
The commit is db02322 on main.
The time is 10:45, the ratio 16:9.
The temperature fell to -5 degrees.
SELECT * FROM cities WHERE id = 7;
def lives(self, *args, **kwargs): pass
The variable home_city_id is an integer.
The city_name column has 120 rows.
Level 1337 is the last one of the game.
The B2B deal and the P2P network are separate.
The 4x4 grid holds 16 cells.
The user's ticket is T1000-42.
The user prefers Python3 to Python2.
The user likes *nix tools and 2D games.
The user moved the card to Q3-Planning.
The user finished level 5 of Port0x.
""".strip().splitlines()  # noqa: RUF001 - letters of other alphabets
)
"""Markup, digits, code, product names and other scripts, as people write them; none states a sensitive field."""

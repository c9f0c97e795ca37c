"""Times that a message names, resolved against the time of the message."""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

_MONTH_NAMES = "january february march april may june july august september october november december"
_MONTHS = _MONTH_NAMES.split()
_DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_COUNTED = "zero one two three four five six seven eight nine ten eleven twelve"
_NUMBERS = {word: number for number, word in enumerate(_COUNTED.split())} | {"a": 1, "an": 1, "couple": 2, "few": 3}
_NAMES = (
    r"jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?"
)
_DAY = r"(?:mon(?:day)?|tue(?:s(?:day)?)?|wed(?:nesday)?|thu(?:r(?:s(?:day)?)?)?|fri(?:day)?|sat(?:urday)?|sun(?:day)?)"
_COUNT = (
    r"(?:\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:a )?couple(?: of)?|(?:a )?few)"
)
_UNIT = r"(?:day|week|month|year)s?"
_SEASON = r"spring|summer|fall|autumn|winter"
DATE = re.compile(
    r"(?<![\w'-])(?<!every )(?<!each )(?<!other )(?<!most )"
    r"(?:(?P<by>by|on|before|until|since|from|around|in) )?(?:the )?(?:"
    r"(?P<word>day before yesterday|day after tomorrow(?: (?:morning|afternoon|evening|night))?"
    r"|yesterday(?: (?:morning|afternoon|evening))?|today|tonight"
    r"|tomorrow(?: (?:morning|afternoon|evening|night))?|this (?:morning|afternoon|evening)|last night)"
    rf"|(?:this )?(?P<which>last|next|this|past|coming) (?P<unit>week(?:end)?|month|year|{_SEASON}|{_DAY}"
    rf"|{_NAMES})(?: (?:morning|afternoon|evening|night))?"
    rf"|(?P<ago>{_COUNT}) (?P<agounit>{_UNIT}) ago"
    rf"|(?P<ahead>{_COUNT}) (?P<aheadunit>{_UNIT})(?:'s? time)?(?= ?$)"
    rf"|(?P<day1>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<month1>{_NAMES})(?:,? (?P<year1>(?:19|20)\d\d))?"
    rf"|(?P<month2>{_NAMES}) (?P<day2>\d{{1,2}})(?:st|nd|rd|th)?(?:,? (?P<year2>(?:19|20)\d\d))?"
    rf"|(?P<iso>(?:19|20)\d\d-\d\d-\d\d)"
    rf"|(?P<weekday>{_DAY})(?: (?:morning|afternoon|evening|night))?"
    rf"|(?P<alone>january|february|april|june|july|august|september|october|november|december|(?<=in )(?:march|may))"
    rf"(?: (?P<year3>(?:19|20)\d\d))?"
    rf"|(?P<year>(?<=in )(?:19|20)\d\d)"
    r")(?![\w-]|'s| (?:mornings|afternoons|evenings|nights)\b)",
    re.IGNORECASE,
)


def names_time(text: str) -> bool:
    """Whether a text names a time."""
    return DATE.search(text) is not None


_NEARLY = re.compile(
    r"(?:\b(?:about|around|early|just|over|almost|nearly|earlier|late|later|only|like|back|more than) )+$"
)


_NAMED = re.compile(r"(?:\b[A-Z][\w'-]+|\b(?:called|named|love|like|hate|enjoy|an?|the|my)) $")
_FREE = re.compile(r"$|,| (?:at|with|and|for|to|in|from|before|after|by|because|so)\b")


@dataclass(frozen=True, slots=True)
class Dated:
    """A text whose time is absolute; ``moment`` is when, if it could be resolved."""

    text: str
    moment: datetime | None
    found: bool


RECURS = re.compile(r"\bborn\b|\b(?:birthday|anniversary|name day) (?:is|falls)\b", re.IGNORECASE)
_GIVEN_YEAR = ("year1", "year2", "year3", "year", "iso")
_YEAR = re.compile(r" (?:19|20)\d\d$")


def dated(text: str, lead: str, when: datetime | None, *, past: bool, recurs: bool = False) -> Dated:
    """The text with its first time made absolute.

    Args:
        text: the words.
        lead: a time that stood before them, which goes to their end; or nothing.
        when: the time of the message; without it a relative time is left out.
        past: whether the words speak of the past, for 'on Friday' and 'in May'.
        recurs: whether it is a day of every year, like a birthday: it gets no year that nobody said. So it does where
            the words name such a day.
    """
    hit = None if lead else next((m for m in DATE.finditer(text) if _usable(m)), None)
    where = DATE.match(lead) if lead else hit
    if where is None:
        return Dated(text, None, found=False)
    moment, told = resolved(where, when, past=past)
    if (recurs or RECURS.search(text)) and not any(where[name] for name in _GIVEN_YEAR):
        moment, told = None, _YEAR.sub("", told)
    if hit is None:
        return Dated(f"{text} {told}".strip(), moment, found=True)
    before, after = _NEARLY.sub("", text[: hit.start()]).rstrip(), text[hit.end() :]
    return Dated(
        f"{before} {told}{after}".replace("  ", " ").strip() if told else f"{before}{after}", moment, found=True
    )


def _usable(found: re.Match[str]) -> bool:
    if found["ahead"]:
        return (found["by"] or "").lower() == "in"
    if found["weekday"] and len(found["weekday"]) < 6:
        return found["by"] is not None and found["weekday"][0].isupper()
    if found["by"]:
        return True
    if found["weekday"]:
        return not _NAMED.search(found.string[: found.start()]) and bool(_FREE.match(found.string, found.end()))
    if found["alone"]:
        return bool(_NEARLY.search(found.string[: found.start()]))
    return True


def _month(name: str) -> int:
    return next(number for number, month in enumerate(_MONTHS, 1) if month.startswith(name.lower()[:3]))


def _day(moment: datetime) -> str:
    return f"{moment.day} {_MONTHS[moment.month - 1].capitalize()} {moment.year}"


def resolved(found: re.Match[str], when: datetime | None, *, past: bool) -> tuple[datetime | None, str]:
    """The moment, and how it is written."""
    by = (found["by"] or "").lower()
    try:
        fixed = _fixed(found, when, past=past)
        if fixed is not None:
            moment, told, preposition = fixed
        elif when is None:
            return None, ""
        else:
            midnight = when.replace(hour=0, minute=0, second=0, microsecond=0)
            moment, told, preposition = _relative(found, midnight, past=past)
    except (ValueError, OverflowError):
        return None, found.group()
    keep = by if by in ("by", "before", "until", "since", "from") else preposition
    return moment, f"{keep} {told}".strip()


def _fixed(found: re.Match[str], when: datetime | None, *, past: bool) -> tuple[datetime | None, str, str] | None:
    """A calendar date; its year is taken from the message where it is not said."""
    if found["iso"]:
        written = date.fromisoformat(found["iso"])
        moment = _midnight(written.year, written.month, written.day, when)
        return moment, _day(moment), "on"
    if found["year"]:
        return _midnight(int(found["year"]), 1, 1, when), found["year"], "in"
    for month, day, year in (("month1", "day1", "year1"), ("month2", "day2", "year2"), ("alone", None, "year3")):
        if not found[month]:
            continue
        number, of = _month(found[month]), int(found[day]) if day else 1
        named = _MONTHS[number - 1].capitalize()
        if found[year]:
            moment = _midnight(int(found[year]), number, of, when)
        elif when is None:
            return None, f"{of} {named}" if day else named, "on" if day else "in"
        else:
            moment = _midnight(when.year, number, of, when)
            if past and moment > when:
                moment = moment.replace(year=when.year - 1)
            elif not past and (moment.month, moment.day if day else 31) < (when.month, when.day):
                moment = moment.replace(year=when.year + 1)
        return moment, _day(moment) if day else f"{named} {moment.year}", "on" if day else "in"
    return None


def _midnight(year: int, month: int, day: int, when: datetime | None) -> datetime:
    """The beginning of a day in the zone of the message; in UTC where its time is not known."""
    return datetime(year, month, day, tzinfo=(when.tzinfo if when else None) or UTC)


def _relative(found: re.Match[str], today: datetime, *, past: bool) -> tuple[datetime, str, str]:
    if found["word"]:
        return _by_word(found["word"].lower(), today)
    if found["ago"] or found["ahead"]:
        return _by_count(found, today)
    if found["weekday"]:
        moment = _weekday(found["weekday"], today, past=past)
        return moment, _day(moment), "on"
    step = {"last": -1, "past": -1, "next": 1}.get(found["which"].lower(), 0)
    return _by_unit(found["unit"].lower(), step, today, past=past)


def _by_unit(unit: str, step: int, today: datetime, *, past: bool) -> tuple[datetime, str, str]:
    if unit == "week":
        moment = today - timedelta(days=today.weekday()) + timedelta(weeks=step)
        return moment, f"the week of {_day(moment)}", "in"
    if unit == "weekend":
        moment = today + timedelta(days=5 - today.weekday())
        moment += timedelta(weeks=step)
        return moment, f"the weekend of {_day(moment)}", "on"
    if unit == "month":
        moment = _shifted(today.replace(day=1), step)
        return moment, f"{_MONTHS[moment.month - 1].capitalize()} {moment.year}", "in"
    if unit == "year":
        return datetime(today.year + step, 1, 1, tzinfo=today.tzinfo), str(today.year + step), "in"
    if unit in _SEASON.split("|"):
        return _season(unit, step, today, past=past)
    if any(unit.startswith(day[:3]) for day in _DAYS) and unit != "sun":
        moment = _weekday(unit, today, past=step < 0 or (step == 0 and past))
        return moment, _day(moment), "on"
    number = _month(unit)
    year = today.year + (step if step and (number >= today.month) == (step < 0) else 0)
    return datetime(year, number, 1, tzinfo=today.tzinfo), f"{_MONTHS[number - 1].capitalize()} {year}", "in"


_STEPS = {"yesterday": -1, "last": -1, "today": 0, "tonight": 0, "this": 0, "tomorrow": 1}


def _by_word(word: str, today: datetime) -> tuple[datetime, str, str]:
    days = _STEPS.get(word.split(" ", maxsplit=1)[0])
    if days is None:
        days = -2 if "before" in word else 2
    moment = today + timedelta(days=days)
    return moment, _day(moment), "on"


def _by_count(found: re.Match[str], today: datetime) -> tuple[datetime, str, str]:
    count, unit = (found["ago"], found["agounit"]) if found["ago"] else (found["ahead"], found["aheadunit"])
    word = count.lower().removeprefix("a ").split(" ")[0]
    number = int(word) if word.isdigit() else _NUMBERS[word]
    number = -number if found["ago"] else number
    base = unit.lower().rstrip("s")
    if base == "year":
        return datetime(today.year + number, 1, 1, tzinfo=today.tzinfo), str(today.year + number), "around"
    if base == "month":
        moment = _shifted(today.replace(day=1), number)
        return moment, f"{_MONTHS[moment.month - 1].capitalize()} {moment.year}", "around"
    moment = today + timedelta(days=number * (7 if base == "week" else 1))
    exact = base == "day" and word not in ("couple", "few")
    return moment, _day(moment), "on" if exact else "around"


def _shifted(first: datetime, months: int) -> datetime:
    years, month = divmod(first.month - 1 + months, 12)
    return first.replace(year=first.year + years, month=month + 1)


def _weekday(name: str, today: datetime, *, past: bool) -> datetime:
    number = next(number for number, day in enumerate(_DAYS) if day.startswith(name.lower()[:3]))
    if past:
        return today - timedelta(days=(today.weekday() - number - 1) % 7 + 1)
    return today + timedelta(days=(number - today.weekday() - 1) % 7 + 1)


def _season(name: str, step: int, today: datetime, *, past: bool) -> tuple[datetime, str, str]:
    starts = {"spring": 3, "summer": 6, "fall": 9, "autumn": 9, "winter": 12}[name]
    year = today.year
    if step < 0 or (past and step == 0):
        year -= 1 if starts + 2 >= today.month else 0
    elif step > 0:
        year += 1 if starts <= today.month else 0
    return datetime(year, starts, 1, tzinfo=today.tzinfo), f"the {name} of {year}", "in"

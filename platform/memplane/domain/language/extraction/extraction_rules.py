"""Facts from statements that begin with 'I', and from what a person asks to be called or reminded of."""

import re
from dataclasses import replace
from datetime import datetime

from memplane.domain.language.extraction.extraction_being import BEING
from memplane.domain.language.extraction.extraction_dates import DATE, dated
from memplane.domain.language.extraction.extraction_doing import DOING
from memplane.domain.language.extraction.extraction_fact import Clause, ExtractedFact, StatementContext
from memplane.domain.language.extraction.extraction_frames import Frame
from memplane.domain.language.extraction.extraction_guards import trivial
from memplane.domain.language.extraction.extraction_person import conjugated, third
from memplane.domain.language.extraction.extraction_words import (
    NATIONALITY,
    OCCUPATION,
    bound,
    general,
    named,
    tidy,
    weight,
)
from memplane.domain.memory.memory import MemoryType

FRAMES = (*BEING, *DOING)
LONGEST = 280
_ADVERBS = re.compile(
    r"(?:(?:just|recently|also|actually|really|finally|already|even|definitely|absolutely|totally|truly"
    r"|honestly|especially"
    r"|originally|currently|now|still|simply|personally|kinda|sorta|only|both|too|do(?= (?:like|love|enjoy"
    r"|have|hate)\b)|usually|normally|generally|typically|mostly|mainly"
    r"|always(?! wanted| dream)|often|sometimes|particularly|thoroughly|very much|officially|actually|happily"
    r"|basically|super|so|literally|frequently|regularly|once|ended up|managed to|particularly|mostly) )+"
)
_KEPT = re.compile(
    r"(?:usually|normally|generally|typically|mostly|mainly|always|often|sometimes|still|frequently|regularly) "
)
_INNER = re.compile(
    r"^(am|have been|have|was|do not|had|will|did not|like|love|enjoy|hate) (?:(?:just|also|really|finally"
    r"|already|even|definitely|absolutely|totally|truly|actually|currently|now|recently|still|super|always"
    r"|even|planning on|looking forward to|excited to be|about to be|very happily|officially) )+"
)
_ELIDED = re.compile(
    r"(?:[Jj]ust|[Ff]inally|[Rr]ecently) (?=(?:moved|bought|adopted|got|started|quit|joined|signed|finished"
    r"|graduated|launched|opened|came back|returned|went|had|booked|registered|turned|became|sold|switched"
    r"|accepted|retired|celebrated|enrolled) )"
)
_NAME = r"[A-Z][a-zA-Z'’-]+(?: (?:(?:van|von|de|da|del|bin|al|la|der|den) )*[A-Z][a-zA-Z'-]+){0,2}"
_I_AM = re.compile(
    rf"I am (?P<name>{_NAME})(?:$| and (?=I|am)|, (?=an? |the |\d|from|I|your new)| from (?=[A-Z])|, by the way"
    r"| by the way| here$)"
)
_CALL = re.compile(
    r"(?:(?:[Pp]lease |[Yy]ou can |[Jj]ust |[Pp]lease just |[Yy]ou may |[Ee]veryone |[Mm]y friends "
    r"|[Ff]riends |[Pp]eople |I prefer to be |I like to be |I want to be |I prefer being |I am usually "
    rf"|I am )?(?:[Cc]all|called)(?: me)?) (?P<name>{_NAME})(?: from now on| please|,.*"
    r"| instead.*)?$"
)
_REMIND = re.compile(
    r"(?:please |[Cc]ould you |)(?:[Rr]emind me|[Dd]o not let me forget"
    r"|[Dd]on't let me forget) (?P<day>.{0,24}?\b)?(?P<to>to|about|that I (?:have|need) to) (?P<what>.+)$",
    re.IGNORECASE,
)
_TONE = re.compile(
    r"(?:please )?(?:always |from now on,? (?:please )?)(?:answer|reply|respond|write|talk"
    r"|speak)(?: to me)? (?:in |briefly|concisely|formally|informally|casually)(?P<value>.*)$",
    re.IGNORECASE,
)
_NO_NAMES = """
Sorry Happy Glad Sure Fine Good Great Okay Ok Done Back Here Home Ready Not Batman God Jesus Root Admin Administrator
System Claude Assistant Very So The Tired Busy Sick Bored Sad Excited Trans Gay Vegan Also Just Really Your Autistic
Nobody None Null Unknown Anonymous Irrelevant Secret Private Important Lost In At On Out Up Down Late Early Over
Afraid Alone Alive Dead Hungry Thirsty Confused Curious Worried Angry Mad Mean Nice Free Single Married Divorced Stuck
Interested Wondering Looking Trying Going Working Thinking Team Old Young New Proud Grateful Thankful Ill Well Better
Wrong Right Serious Sorted Finished Undecided Unsure Available Online Offline Always Never Still Too Crazy Maybe Both
"""
_NOT_NAMES = frozenset(_NO_NAMES.split())
_AUTHORITY = re.compile(
    r"\b(?:am|as) (?:(?:actually |now |really )?(?:the |your )(?:new )?(?:\w+ )?(?:operator|owner|developer"
    r"|creator|supervisor|boss|moderator)"
    r"|(?:(?:an?|the|your|also|actually|now|new|site|server|database|tenant) )*(?:admin\w*|root|superuser"
    r"|system|authori[sz]ed|verified|god))\b(?! of (?:a|my)\b)",
    re.IGNORECASE,
)
_ENDED = re.compile(r"\bno longer |^do not |(?<=^am )not (?:originally )?| (?:any ?more|any longer)$")
"""The words of a sentence that take back what the rest of it says."""
_AFTER_VERB = re.compile(
    r"\b(?:am (?:\w+ )*?(?:into|of|about|with|on|by) |do not (?:\w+ )?(?:like|enjoy) |cannot stand |\w+ )(?:to )?"
)


def from_statement(clause: Clause, telling: StatementContext) -> ExtractedFact | None:
    """The fact in a statement about its author, if a rule knows it."""
    text = clause.text
    if _AUTHORITY.search(text):
        return None
    asked = _asked(text, telling)
    if asked:
        return asked
    if text.startswith("I "):
        body = text[2:]
    elif (elided := _ELIDED.match(text)) and not clause.follows:
        body = text[elided.end() :]
    else:
        return None
    body = _ADVERBS.sub("", body, count=1) if _ADVERBS.match(body) else body
    body = _INNER.sub(r"\1 ", body)
    core = None
    for frame in FRAMES:
        found = frame.pattern.match(body)
        if found:
            core = tidy(body) if core is None else core
            fact = _framed(frame, found, core, clause, telling)
            if fact:
                return _where_it_was(fact, core, clause, telling) if fact.retracts else fact
    return None


def _where_it_was(fact: ExtractedFact, body: str, clause: Clause, telling: StatementContext) -> ExtractedFact:
    """What takes something back, in the category of what it takes back: an allergy is no matter of the profile."""
    affirmed = _ENDED.sub("", body)
    stated = from_statement(replace(clause, text=f"I {affirmed}"), telling) if affirmed != body else None
    return replace(fact, category=stated.category) if stated and not stated.retracts else fact


def _framed(
    frame: Frame, found: re.Match[str], body: str, clause: Clause, telling: StatementContext
) -> ExtractedFact | None:
    if not frame.pattern.match(body) or trivial(frame.rule, DATE.sub("", body).strip()):
        return None
    past = frame.tense == "past"
    time = dated(body, clause.lead, telling.when, past=past)
    said, moment = time.text, time.moment
    verb, _, rest = said.partition(" ")
    undated = DATE.sub("", body).partition(" ")[2]
    if not rest or weight(undated) < frame.least or not (bound(rest) or frame.field == "pronouns"):
        return None
    has = {"": True, "date": time.found, "name": named(undated), "either": time.found or named(undated)}
    if not has[frame.needs] or (frame.needs == "date" and telling.when and moment is None):
        return None
    if frame.tense == "liking" and not general(_AFTER_VERB.sub("", body, count=1)):
        return None
    if frame.rule == "task.due" and not re.search(r"\b(?:by|before|on|until) \S+", rest):
        return None
    main = verb if past or frame.tense == "past-state" else conjugated(verb)
    if verb == "have":
        main = "has"
    if frame.tense == "past-state" and verb == "always":
        main = "has always"
    if body.startswith("no longer "):
        one, _, more = rest.removeprefix("longer ").partition(" ")
        main, rest = "no longer", f"{conjugated(one)} {more}".strip()
    rest = _coordinated(rest, frame)
    value = found.groupdict().get("value")
    return told(f"{telling.subject} {main} {third(rest)}", frame, moment, value)


_BASE = re.compile(r" and (work|live|study|have|am|teach|run|play|love|like|enjoy|hate|own|drive)\b(?= )")


def _coordinated(rest: str, frame: Frame) -> str:
    """A second verb in the present follows the first."""
    if frame.tense not in ("present", "liking") or " to " in f" {rest} ":
        return rest
    return _BASE.sub(lambda other: f" and {conjugated(other[1])}", rest)


def told(content: str, frame: Frame, moment: datetime | None, value: str | None = None) -> ExtractedFact | None:
    """The fact, unless its sentence is too long."""
    content = re.sub(r" {2,}", " ", content).strip(" ,;:-")
    if len(content) >= LONGEST or not content.isprintable():
        return None
    return ExtractedFact(
        content=f"{content}.",
        category=frame.category,
        type=MemoryType.EPISODIC if frame.tense == "past" else MemoryType.SEMANTIC,
        importance=frame.importance,
        confidence=frame.confidence,
        rule=frame.rule,
        field=frame.field if value else None,
        value=value.strip(" ,") if frame.field and value else None,
        retracts=frame.retracts,
        event_time=moment,
    )


def _asked(text: str, telling: StatementContext) -> ExtractedFact | None:
    """A name to be called by, or something to be reminded of."""
    name = _CALL.match(text) or _I_AM.match(text)
    if name and is_name(name["name"]):
        called = "prefers to be called" if "all" in text[: name.start("name")] else "is called"
        return _named(f"{telling.subject} {called} {name['name']}", "preferred_name", name["name"], "identity.name")
    remind = _REMIND.match(text)
    if not remind:
        return None
    rest = tidy(remind["what"])
    day = (remind["day"] or "").strip()
    lead = day if DATE.match(day) else ""
    time = dated(rest, lead, telling.when, past=False)
    if (day and not lead) or not bound(rest) or weight(rest) < 1:
        return None
    to = "about" if remind["to"].lower() == "about" else "to"
    return ExtractedFact(
        f"{telling.subject} wants to be reminded {to} {third(time.text)}.",
        "tasks",
        MemoryType.SEMANTIC,
        4,
        0.85,
        "task.remind",
        event_time=time.moment,
    )


def _named(content: str, field: str, value: str, rule: str) -> ExtractedFact:
    return ExtractedFact(f"{content}.", "profile", MemoryType.SEMANTIC, 5, 0.9, rule, field, value)


def is_name(name: str) -> bool:
    """Whether capitalised words can be a person's name: no mood, nationality, trade or day."""
    first = name.split(" ", maxsplit=1)[0]
    return (
        first not in _NOT_NAMES
        and not DATE.fullmatch(name)
        and not re.fullmatch(NATIONALITY, name)
        and not re.match(OCCUPATION, name)
        and not name.isupper()
    )

"""Runs requests of every caller and looks through whole answers for words that their caller must not see."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from support.leaks.canaries import LIVES, Canary, Record
from support.leaks.oracle import LISTED, NOBODY, Voice
from support.leaks.paths import Ask, broad, by_id, by_words
from support.leaks.wire import Answer
from support.leaks.world import World

REASONS = ("tenant", "user", "category", "visibility", "min_trust")


@dataclass(frozen=True, slots=True)
class Leak:
    """A word that came where it must not, or a status that tells of a record."""

    voice: str
    ask: str
    what: str

    def __str__(self) -> str:
        return f"{self.voice}: {self.ask}: {self.what}"


@dataclass
class Report:
    """What a run found.

    Attributes:
        cases: requests that were sent and looked through.
        words: how often a planted word was searched for in an answer that must not have it.
        leaks: what came where it must not.
        missing: what a caller may see and was not shown, where all of it was asked for.
        shown: how many words that their callers may see each route brought.
        routes: every route that was asked.
        probed: how many requests named each record.
        named: how often an answer of ids named a record that its caller reaches.
    """

    cases: int = 0
    words: int = 0
    leaks: list[Leak] = field(default_factory=list)
    missing: list[Leak] = field(default_factory=list)
    shown: Counter[str] = field(default_factory=Counter)
    routes: Counter[str] = field(default_factory=Counter)
    probed: Counter[str] = field(default_factory=Counter)
    named: int = 0

    @property
    def leaking(self) -> set[str]:
        """The routes that leak."""
        return {leak.ask for leak in self.leaks}


class Matrix:
    """Callers times ways to read times planted records."""

    def __init__(
        self,
        world: World,
        voices: Sequence[Voice] | None = None,
        *,
        each: int = 2,
        routes: Collection[str] | None = None,
        first: bool = False,
    ) -> None:
        """Which callers, records and routes.

        Args:
            world: what is planted.
            voices: callers; all, unless said.
            each: how many records that one rule alone hides each caller names, of each rule.
            routes: the only routes; all, unless said.
            first: end with the first leak.
        """
        self._routes = routes
        self._first = first
        self.world = world
        self.voices = list(world.voices if voices is None else voices)
        self.report = Report()
        self._each = each
        self._threads: set[tuple[str, str]] = set()

    def run(self) -> Report:
        """Ask everything."""
        for voice in self.voices:
            may = {word for word, canary in self.world.planted.canaries.items() if self.world.oracle.may(voice, canary)}
            hidden = len(self.world.planted.canaries) - len(may)
            for ask in self._asks(voice):
                if self._routes is not None and ask.route not in self._routes:
                    continue
                self._check(voice, ask, self._answer(voice, ask))
                self.report.words += hidden
                if self._first and self.report.leaks:
                    return self.report
        return self.report

    def _asks(self, voice: Voice) -> Iterator[Ask]:
        yield from broad(self.world, voice, self.voices.index(voice))
        for turn, record in enumerate(self.targets(voice)):
            self.report.probed[record.id] += 1
            yield from by_id(self.world, record)
            if turn % 2 == 0:
                yield from by_words(self.world, record, turn + self.report.probed[record.id])

    def targets(self, voice: Voice) -> list[Record]:
        """Records that one rule alone keeps from a caller, of each rule, and some that none does.

        Among alike ones those that were named least come first, so that all callers together name all records.
        """
        found: dict[str, list[Record]] = {}
        for record in self.world.planted.records:
            why = self.world.oracle.why_not(voice, record.place)
            if len(why) <= 1:
                kind = "turn" if record.turn else record.life
                found.setdefault(why[0] if why else kind, []).append(record)
        kinds = [*REASONS, *LIVES, "turn"]
        chosen = [
            record
            for kind in kinds
            for record in sorted(found.get(kind, ()), key=lambda r: self.report.probed[r.id])[: self._each]
        ]
        if voice.users is None and "tasks" in self.world.oracle.reads(voice.agent):
            chosen += self.world.stories
        return chosen

    def _answer(self, voice: Voice, ask: Ask) -> Answer:
        if "thread_id" in (ask.body or {}):
            self._threads.add((voice.tenant, ask.body["thread_id"]))
        answer = self.world.send(voice, ask.method, ask.path, body=ask.body, params=ask.params)
        if not ask.pages or answer.status != 200:
            return answer
        raw, page = [answer.raw], answer
        while (cursor := page.json()["next"]) is not None:
            page = self.world.send(voice, ask.method, ask.path, params={**(ask.params or {}), "cursor": cursor})
            raw.append(page.raw)
        self._complete(voice, ask, b"".join(raw))
        return Answer(answer.status, answer.headers, b"", b"".join(raw))

    def _complete(self, voice: Voice, ask: Ask, raw: bytes) -> None:
        """Of all pages together nothing that the caller may see is missing."""
        contents = {c for c in self.world.planted.found(raw) if c.part == "content"}
        for canary in self.world.planted.canaries.values():
            if canary.part == "content" and self.world.oracle.may(voice, canary, LISTED) and canary not in contents:
                self.report.missing.append(Leak(str(voice), ask.name, f"{canary}"))

    def _check(self, voice: Voice, ask: Ask, answer: Answer) -> None:
        report = self.report
        report.cases += 1
        report.routes[ask.route] += 1
        found = self.world.planted.found(answer.raw)
        for canary in found:
            if self._allowed(voice, ask, canary):
                report.shown[ask.route] += 1
            else:
                report.leaks.append(Leak(str(voice), ask.route, f"{ask.how}: {canary.part} of {canary}"))
        if ask.names:
            self._named(voice, ask, answer.raw.decode())
        if answer.status >= 500:
            report.leaks.append(Leak(str(voice), ask.route, f"{ask.how}: {answer.status}"))
        if ask.there is not None and ask.target is not None:
            self._answered(voice, ask, ask.target, answer)

    def _allowed(self, voice: Voice, ask: Ask, canary: Canary) -> bool:
        if ask.alone and any(place.user == NOBODY for place in canary.places):
            return False
        own = ask.target is not None and canary.record == ask.target.id
        if canary.part == "thread" and all(place.tenant != voice.tenant for place in canary.places):
            # a caller that names a thread of another tenant finds that name in the events of its own
            return (voice.tenant, canary.word) in self._threads
        return self.world.oracle.may(voice, canary, ask.lives | ask.own if own else ask.lives)

    def _named(self, voice: Voice, ask: Ask, answer: str) -> None:
        """Of an answer that has no words the ids alone are looked at."""
        for record in self.world.planted.records:
            if record.id not in answer:
                continue
            hidden = self.world.oracle.why_not(voice, record.place)
            if record.place.user == NOBODY and voice.users is not None:
                hidden = [*hidden, "user"]  # a bound key reads what is shared, and changes none of it
            if hidden or record.place.category not in self.world.oracle.writes(voice.agent):
                told = f"{ask.how}: names {record.place}, which is beyond the caller by {hidden or 'what it writes'}"
                self.report.leaks.append(Leak(str(voice), ask.route, told))
            else:
                self.report.named += 1

    def _answered(self, voice: Voice, ask: Ask, target: Record, answer: Answer) -> None:
        """A record that the caller may see is there, and any other is not."""
        there = target.life in (ask.there or ()) and not self.world.oracle.why_not(voice, target.place)
        if (answer.status == 200) is not there or (not there and answer.status != 404):
            told = Leak(str(voice), ask.route, f"{ask.how}: {answer.status} for {target.life} in {target.place}")
            (self.report.missing if there else self.report.leaks).append(told)

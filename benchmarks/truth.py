"""What is compatible stays: each hand-written fact with each change, as the words decide.

The four lists in `truth/` were written by hands that had seen neither the rules nor one another's lists, and sealed by
hash before the first run; those that were read since count as development. Every change is compared with
every fact at a similarity above all bands, so that nothing but the words keeps two texts apart. `make truth` writes the
same pairs to a server, one after the other. The fifth list is of adversarial pairs, each of a fact and one change, by
another such hand: what looks like a contradiction and is none, and true changes. Two of its pairs were mended after
its first run, which is the figure that decides.

Run: python benchmarks/truth.py
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from figures import PAGE, machine, write_section
from rich.console import Console

from memplane.adapters.policy import load_policy, shipped_policies
from memplane.domain.language.comparison.comparison import ANY_MODEL, ComparisonVerdict, ParsedStatement, compare
from memplane.entrypoints.cli.bench.grid import Grid

LISTS = Path(__file__).with_name("truth")
SETS = ("first", "second", "third", "fourth", "fifth")
ADVERSARIAL = "fifth"
FIRST_RUN = {"first": 0, "second": 2, "third": 3, "fourth": 0, ADVERSARIAL: 5}
"""Compatible pairs that were overruled when a list was run first."""
SIMILAR = 0.9


@dataclass(frozen=True, slots=True)
class Compared:
    """A fact and a change, what their author says of them, and what the rules say."""

    label: str
    verdict: ComparisonVerdict
    fact: str
    change: str


def compared(name: str) -> Iterator[Compared]:
    """Each fact of a list with each of its changes, or each of its pairs."""
    bands = load_policy(shipped_policies()).merging.bands_for(ANY_MODEL)
    if name == ADVERSARIAL:
        for line in (LISTS / name / "pairs.jsonl").read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            verdict = compare(ParsedStatement.of(row["old"]), ParsedStatement.of(row["new"]), SIMILAR, bands)
            yield Compared(row["label"], verdict, row["old"], row["new"])
        return
    facts, changes = (
        [json.loads(line) for line in (LISTS / name / f"{kind}.jsonl").read_text(encoding="utf-8").splitlines()]
        for kind in ("facts", "changes")
    )
    read = [(row["id"], ParsedStatement.of(row["text"])) for row in facts]
    for row in changes:
        change = ParsedStatement.of(row["text"])
        for fact_id, fact in read:
            label = next((each for each in ("overrules", "unclear") if fact_id in row[each]), "compatible")
            yield Compared(label, compare(fact, change, SIMILAR, bands), fact.text, change.text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 when a compatible pair of a cross product is overruled or merged."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figures", type=Path, default=PAGE, help="page whose section is replaced")
    parser.add_argument("--no-figures", dest="figures", action="store_const", const=None, help="leave the page alone")
    options = parser.parse_args(arguments)
    rows: list[tuple[str, ...]] = []
    missed: list[Compared] = []
    lost: list[Compared] = []
    wrong = 0
    for name in SETS:
        found = list(compared(name))
        counted = Counter((each.label, _kind(each.verdict)) for each in found)
        compatible = sum(n for (label, _), n in counted.items() if label == "compatible")
        changed = sum(n for (label, _), n in counted.items() if label == "overrules")
        bad = counted["compatible", "superseded"] + counted["compatible", "merged"]
        wrong += 0 if name == ADVERSARIAL else bad
        rows.append((
            name, str(compatible), str(FIRST_RUN[name]), str(bad),
            f"{counted['compatible', 'possible conflict'] / compatible:.2%}", str(changed),
            f"{counted['overrules', 'superseded'] / changed:.2f}",
            f"{counted['overrules', 'possible conflict'] / changed:.2f}",
        ))  # fmt: skip
        lost += [
            each for each in found if each.label == "compatible" and _kind(each.verdict) in ("superseded", "merged")
        ]
        missed = (
            missed
            if name == ADVERSARIAL
            else [each for each in found if each.label == "overrules" and not each.verdict.supersedes]
        )
    columns = (
        "list", "compatible pairs", "overruled in the first run", "overruled or merged now", "of these suspected",
        "true changes", "recognised", "suspected",
    )  # fmt: skip
    grid = Grid("Each fact with each change", columns, rows)
    Console(width=None if sys.stdout.isatty() else 140).print(grid.table())
    if options.figures:
        about = " ".join((__doc__ or "").split("\n\n")[1].split())
        misses = "\n".join(f"- {each.fact} / {each.change} ({_kind(each.verdict)})" for each in missed)
        how = f"Reproduce: `make bench-truth`. Machine: {machine()}."
        still = "\n".join(f"- {each.fact} / {each.change} ({each.verdict.value})" for each in lost)
        told = [
            about,
            grid,
            "Compatible pairs that are overruled still:",
            still,
            "Changes of the fourth list that are not recognised:",
            misses,
            how,
        ]
        write_section(options.figures, "truth", "What is compatible stays", told)
    return 1 if wrong else 0


def _kind(verdict: ComparisonVerdict) -> str:
    if verdict.supersedes:
        return "superseded"
    return {ComparisonVerdict.SAME: "merged", ComparisonVerdict.SUSPECTED: "possible conflict"}.get(
        verdict, "both stay"
    )


if __name__ == "__main__":
    sys.exit(main())

"""The bands of merge.yaml: found on the `fit` pairs, and tried on those of `held_out` and `sealed`.

All splits stand in pairs.jsonl, written and labelled by hand. A band is searched alone, in turn, and stays when none
is better; else the middle of the widest run of best values is taken, so that no pair decides to the second decimal.
Precision has a floor; recall is maximised under it.

Run: python benchmarks/merge/calibrate.py
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from rich.console import Console

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from figures import PAGE, machine, write_section

from memplane.adapters.embeddings.batching import Encoder
from memplane.adapters.embeddings.choice import encoder_of
from memplane.adapters.policy import load_policy, shipped_policies
from memplane.domain.language.comparison.comparison import Bands, ComparisonVerdict, ParsedStatement, compare
from memplane.entrypoints.cli.bench.grid import Grid

PAIRS = Path(__file__).with_name("pairs.jsonl")
SPLITS = ("fit", "held_out", "sealed")
FLOORS = {
    ComparisonVerdict.SAME: 0.98,
    ComparisonVerdict.UPDATED: 0.95,
    ComparisonVerdict.CONTRADICTED: 0.95,
    ComparisonVerdict.RETRACTED: 0.95,
}
"""The least precision of each verdict that touches an old text."""
STEPS = tuple(step / 100 for step in range(0, 100, 5))
ROUNDS = 2


@dataclass(frozen=True, slots=True)
class Pair:
    """Two parsed texts, the cosine of their embeddings, and the verdict that a person gave."""

    label: ComparisonVerdict
    split: str
    old: ParsedStatement
    new: ParsedStatement
    similarity: float


def read(path: Path, encoder: Encoder) -> list[Pair]:
    """The pairs with their cosines; 0 where a text has no embedding."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    sides = [encoder.encode([encoder.document_prompt + row[side] for row in rows]) for side in ("old", "new")]
    return [
        Pair(
            ComparisonVerdict(row["label"]),
            row["split"],
            ParsedStatement.of(row["old"]),
            ParsedStatement.of(row["new"]),
            float(np.dot(old, new)) if old is not None and new is not None else 0.0,
        )
        for row, old, new in zip(rows, *sides, strict=True)
    ]


def count(pairs: Sequence[Pair], bands: Bands) -> Counter[tuple[ComparisonVerdict, ComparisonVerdict]]:
    """How often each label got each verdict."""
    return Counter((pair.label, compare(pair.old, pair.new, pair.similarity, bands)) for pair in pairs)


def precision(counted: Counter[tuple[ComparisonVerdict, ComparisonVerdict]], verdict: ComparisonVerdict) -> float:
    """Share of the verdict's pairs that carry its label; 1 when it was never given."""
    given = sum(counted[label, verdict] for label in ComparisonVerdict)
    return counted[verdict, verdict] / given if given else 1.0


def recall(counted: Counter[tuple[ComparisonVerdict, ComparisonVerdict]], label: ComparisonVerdict) -> float:
    """Share of the label's pairs that got its verdict."""
    held = sum(counted[label, verdict] for verdict in ComparisonVerdict)
    return counted[label, label] / held if held else 1.0


def value(pairs: Sequence[Pair], bands: Bands) -> float:
    """Mean recall over all labels, less one for each floor of precision that is missed."""
    counted = count(pairs, bands)
    missed = sum(precision(counted, verdict) < floor for verdict, floor in FLOORS.items())
    return sum(recall(counted, label) for label in ComparisonVerdict) / len(ComparisonVerdict) - missed


def search(pairs: Sequence[Pair], model: str) -> Bands:
    """From the bands of merge.yaml on, band by band: one stays when none is better, that keeps the bands in order.

    Of better ones the middle of the widest run of best values is taken.
    """
    bands = load_policy(shipped_policies()).merging.bands_for(model)
    for _ in range(ROUNDS):
        for name in asdict(bands):
            tried = [replace(bands, **{name: step}) for step in STEPS]
            reached = [value(pairs, one) if _ordered(one) else -10.0 for one in tried]
            if max(reached) > value(pairs, bands) + 1e-9:
                bands = tried[_middle(reached)]
    return bands


def _ordered(bands: Bands) -> bool:
    falling = (bands.auto, bands.update, bands.check, bands.fallback)
    return all(upper >= lower for upper, lower in pairwise(falling)) and bands.link_min <= bands.auto


def _middle(reached: Sequence[float]) -> int:
    best = max(reached)
    runs: list[list[int]] = [[]]
    for place, one in enumerate(reached):
        if one >= best - 1e-9:
            runs[-1].append(place)
        elif runs[-1]:
            runs.append([])
    widest = max(runs, key=len)
    return widest[len(widest) // 2]


def grids(pairs: Sequence[Pair], bands: Bands) -> list[Grid]:
    """Precision and recall by verdict, of each split apart; the three that supersede also together."""
    found = []
    groups = [(split, [pair for pair in pairs if pair.split == split]) for split in SPLITS]
    for split, chosen in groups:
        counted = count(chosen, bands)
        rows = [
            (
                str(one),
                str(sum(counted[one, other] for other in ComparisonVerdict)),
                f"{precision(counted, one):.3f}",
                f"{recall(counted, one):.3f}",
            )
            for one in ComparisonVerdict
        ]
        rows.append(("supersedes the old one", *_superseding(counted)))
        found.append(Grid(f"Pairs of the split {split}", ("verdict", "pairs", "precision", "recall"), rows))
    return found


def _superseding(counted: Counter[tuple[ComparisonVerdict, ComparisonVerdict]]) -> tuple[str, str, str]:
    right = sum(n for (label, verdict), n in counted.items() if label.supersedes and verdict.supersedes)
    held = sum(n for (label, _), n in counted.items() if label.supersedes)
    given = sum(n for (_, verdict), n in counted.items() if verdict.supersedes)
    return str(held), f"{right / given if given else 1:.3f}", f"{right / held if held else 1:.3f}"


def yaml(bands: Bands, model: str) -> str:
    """The bands as merge.yaml has them."""
    inner = ", ".join(f"{name}: {band:g}" for name, band in asdict(bands).items())
    return f"bands:\n  {model}: {{{inner}}}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the calibration."""
    parser = argparse.ArgumentParser(description="Calibrate the bands of merge.yaml.")
    parser.add_argument("--pairs", type=Path, default=PAIRS, help="labelled pairs, one JSON object a line")
    parser.add_argument("--figures", nargs="?", type=Path, const=PAGE, help="write a section of the page of figures")
    parser.add_argument("--model", help="folder of an embedding model; the default model without it")
    parser.add_argument("--model-name", help="what the policy calls it; as its folder without it")
    options = parser.parse_args(arguments)
    encoder = encoder_of(options.model, options.model_name)
    pairs = read(options.pairs, encoder)
    bands = search([pair for pair in pairs if pair.split == "fit"], encoder.model)
    tables = grids(pairs, bands)
    for grid in tables:
        Console(width=None if sys.stdout.isatty() else 120).print(grid.table())
    print(f"Suggested:\n{yaml(bands, encoder.model)}")
    if options.figures:
        told = (
            f"{len(pairs)} pairs of sentences, written and labelled by hand. The bands are found on `fit` alone. "
            "Rules were written with `fit` in sight and with some of `held_out`. The pairs of `sealed` were written by "
            "a hand that never saw the rules, and no rule was made from them, but for one: five wrong merges among "
            "them and their sister set showed that `away`, `off`, `over` and `against` turn a sentence. Expect of "
            "other sentences what `sealed` shows."
        )
        how = f"Reproduce: `make bench-merge`. Machine: {machine()}."
        code = f"Suggested:\n\n```yaml\n{yaml(bands, encoder.model)}\n```"
        name, title = "merge", "What a new memory is to an old one"
        if options.model is not None:
            name, title = "merge-model", f"{title}, with `{encoder.model}`"
            how = how.replace("`make bench-merge`", f"`make bench-merge MODEL=path/to/{encoder.model}`")
        write_section(options.figures, name, title, [told, *tables, code, how])
    return 0


if __name__ == "__main__":
    sys.exit(main())

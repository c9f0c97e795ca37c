"""Weights of the calibrated fusion, found on conversations, and what they reach on a conversation that was left out.

Signals are computed in process by Memplane's own domain code. For each conversation in turn the weights are found on
the others and tried on it (leave one out); the suggestion is the mean of what the folds found. A coordinate is judged
together with its neighbours on the grid, so that a flat optimum wins over a peak.

Run: python benchmarks/calibrate.py --file locomo10.json
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from statistics import mean

import numpy as np
from figures import PAGE, machine, write_section
from numpy.typing import NDArray
from recall import MISSING
from rich.console import Console

from memplane.adapters.embeddings.batching import Encoder
from memplane.adapters.embeddings.choice import encoder_of
from memplane.adapters.policy.loading import load_policy, shipped_policies
from memplane.domain.language.query_hints import spans_in
from memplane.domain.language.terms import parse_query as question_terms
from memplane.domain.language.terms import terms
from memplane.domain.language.text import words
from memplane.domain.policy.policy import Bm25, FusionWeights, RankingMethod, RankingProfile
from memplane.domain.ranking.fusion import QuerySignals, UnitScores, calibrated_score, score
from memplane.domain.ranking.priors import TURN_IMPORTANCE, Priors
from memplane.domain.ranking.signals import Signals
from memplane.domain.ranking.thread_neighbours import Surroundings
from memplane.entrypoints.cli.bench import progress
from memplane.entrypoints.cli.bench.grid import Grid
from memplane.entrypoints.cli.bench.locomo import ANSWERABLE, LocomoConversation, NotConversations, load

Floats = NDArray[np.float64]
DEPTHS = (5, 10)
ROUNDS = 2
Value = float | tuple[float, ...]
Coordinates = dict[str, tuple[Value, ...]]
WEIGHTS: Coordinates = {
    "semantic": (0.0, 0.1, 0.2, 0.3, 0.4, 0.6),
    "semantic_context": (0.0, 0.15, 0.3, 0.45, 0.6, 0.8, 1.0, 1.2, 1.5),
    "actor": (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8),
    "when": (0.0, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8),
}
WIDER: Coordinates = {
    "semantic": (0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.3, 1.6),
    "semantic_context": (0.0, 0.3, 0.6, 0.9, 1.2, 1.5, 2.0, 2.5),
    "actor": (0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2),
    "when": (0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
}
"""For another model than the default one: what it says may count for more."""
LEXICAL: Coordinates = {
    "k1": (0.8, 1.2, 1.6, 2.0),
    "b": (0.25, 0.4, 0.5, 0.6, 0.75),
    "before": ((0.4, 0.3, 0.2), (0.5, 0.35, 0.25), (0.6, 0.4, 0.3), (0.7, 0.5, 0.35), (0.8, 0.6, 0.4)),
    "after": ((0.3, 0.2), (0.4, 0.25), (0.5, 0.3), (0.6, 0.35), (0.7, 0.4)),
}
QUICK: Coordinates = {"actor": (0.2, 0.4), "b": (0.4, 0.6)}


@dataclass(frozen=True, slots=True)
class Setting:
    """One point of the grid: lexical parameters, and weights with the lexical signal as the unit."""

    bm25: Bm25
    weights: FusionWeights

    def having(self, name: str, value: Value) -> "Setting":
        """The point with one coordinate changed."""
        if name in LEXICAL:
            return replace(self, bm25=replace(self.bm25, **{name: value}))
        return replace(self, weights=replace(self.weights, **{name: value}))

    def value(self, name: str) -> Value:
        """One coordinate."""
        value: Value = getattr(self.bm25 if name in LEXICAL else self.weights, name)
        return value


def shipped(model: str) -> Setting:
    """The `default` profile of the shipped policy, less the priors that do not tell one turn from another."""
    profile = load_policy(shipped_policies()).ranking("default")
    weights = replace(profile.weights_for(model), recency=0.0, importance=0.0, pinned=0.0)
    return Setting(profile.bm25, weights)


def middle(settings: Sequence[Setting]) -> Setting:
    """The mean of each coordinate."""
    found = settings[0]
    for name in (*WEIGHTS, *LEXICAL):
        values = [setting.value(name) for setting in settings]
        if isinstance(values[0], tuple):
            found = found.having(name, tuple(round(mean(steps), 2) for steps in zip(*values, strict=True)))
        else:
            found = found.having(name, round(mean(values), 2))
    return found


@dataclass(frozen=True, slots=True)
class Question:
    """A question's signals, the places of its evidence, and how much evidence there is."""

    conversation: int
    signals: Signals
    asked: QuerySignals
    evidence: frozenset[int]
    count: int


class Trials:
    """Recall of settings by question; what was computed is kept."""

    def __init__(self, questions: Sequence[Question], model: str) -> None:
        self.questions = questions
        self.conversation = np.array([question.conversation for question in questions])
        self.model = model
        self._parts: dict[Bm25, list[UnitScores]] = {}
        self._recall: dict[Setting, Floats] = {}

    def recall(self, setting: Setting) -> Floats:
        """Shape (questions, depths)."""
        if setting not in self._recall:
            rows = [
                _recall(calibrated_score(parts.parts, setting.weights), question)
                for parts, question in zip(self._scored(setting.bm25), self.questions, strict=True)
            ]
            self._recall[setting] = np.array(rows)
        return self._recall[setting]

    def _scored(self, bm25: Bm25) -> list[UnitScores]:
        if bm25 not in self._parts:
            profile = RankingProfile("trial", RankingMethod.CALIBRATED, bm25, {"*": FusionWeights(1, 0, 0, 0)})
            self._parts[bm25] = [
                score(question.signals, profile, self.model, question.asked) for question in self.questions
            ]
        return self._parts[bm25]

    def value(self, setting: Setting, among: NDArray[np.bool_]) -> float:
        """What is maximised: the mean of recall over the depths and the questions."""
        return float(self.recall(setting)[among].mean())


def _recall(scores: Floats, question: Question) -> list[float]:
    order = np.argsort(-scores, kind="stable")[: max(DEPTHS)].tolist()
    return [len(question.evidence & set(order[:depth])) / question.count for depth in DEPTHS]


def questions_of(conversations: Sequence[LocomoConversation], encoder: Encoder) -> list[Question]:
    """The answerable questions with their signals, each over its own conversation."""
    found = []
    for number, conversation in enumerate(conversations):
        turns = [(session.session, turn) for session in conversation.sessions for turn in session.turns]
        counted = [terms(turn.full_text) for _, turn in turns]
        vectors = _vectors(encoder, [encoder.document_prompt + turn.full_text for _, turn in turns])
        surroundings = Surroundings(
            np.array([session for session, _ in turns], dtype=np.int64),
            np.arange(len(turns), dtype=np.int32),
            np.array([unit.length for unit in counted], dtype=np.int32),
        )
        place = {turn.dia_id: index for index, (_, turn) in enumerate(turns)}
        times = {session.session: session.time for session in conversation.sessions}
        priors, now = _spoken([times[session] for session, _ in turns]), max(times.values())
        for asked in conversation.questions:
            if asked.category not in ANSWERABLE:
                continue
            wanted, named = question_terms(asked.question), set(words(asked.question))
            hashes = [(term, *wanted.variants[term]) for term in wanted.counts]
            frequency = np.array(
                [[sum(unit.counts.get(each, 0) for each in term) for unit in counted] for term in hashes],
                dtype=np.float64,
            )
            signals = Signals(
                surroundings=surroundings,
                postings=[(np.flatnonzero(held), held[held > 0]) for held in frequency],
                similarity=(vectors @ _vectors(encoder, [encoder.query_prompt + asked.question])[0]).astype(np.float32),
                actor=np.array([bool(named & set(turn.speaker.lower().split())) for _, turn in turns]),
                priors=priors,
            )
            said = QuerySignals(now, spans_in(asked.question, now))
            evidence = frozenset(place[name] for name in asked.evidence if name in place)
            found.append(Question(number, signals, said, evidence, len(asked.evidence)))
    return found


def _spoken(times: Sequence[datetime]) -> Priors:
    """What is known of turns that were said at these times."""
    happened, count = np.array([moment.timestamp() for moment in times]), len(times)
    nothing, no = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.bool_)
    return Priors(happened, happened, nothing + TURN_IMPORTANCE, no, no, nothing, nothing + 1, nothing)


def _vectors(encoder: Encoder, texts: Sequence[str]) -> Floats:
    empty = np.zeros(encoder.dimensions)
    return np.array([empty if vector is None else vector for vector in encoder.encode(texts)], dtype=np.float64)


def search(trials: Trials, among: NDArray[np.bool_], grid: Coordinates) -> Setting:
    """From the shipped setting, coordinate by coordinate the value that is best together with its neighbours."""
    setting = shipped(trials.model)
    for _ in range(ROUNDS):
        for name, values in grid.items():
            reached = np.array([trials.value(setting.having(name, value), among) for value in values])
            padded = np.pad(reached, 1, mode="edge")
            smooth = (padded[:-2] + 2 * padded[1:-1] + padded[2:]) / 4
            setting = setting.having(name, values[int(smooth.argmax())])
    return setting


@dataclass(frozen=True, slots=True)
class Calibration:
    """What was found with one set of coordinates.

    Attributes:
        name: which coordinates were free.
        suggested: the mean of what the folds found.
        folds: what each fold found.
        held_out: recall by depth on the left-out conversations.
        in_sample: recall by depth of the suggestion on all of them.
        best: recall by depth of what the search finds on all of them.
    """

    name: str
    suggested: Setting
    folds: Sequence[Setting]
    held_out: Sequence[float]
    in_sample: Sequence[float]
    best: Sequence[float]


def calibrate(trials: Trials, name: str, grid: Coordinates, done: Callable[[int], None]) -> Calibration:
    """Search on all conversations but one, for each of them, and try what was found on that one."""
    folds, held = [], np.zeros((len(trials.questions), len(DEPTHS)))
    for number in np.unique(trials.conversation):
        out = trials.conversation == number
        folds.append(search(trials, ~out, grid))
        held[out] = trials.recall(folds[-1])[out]
        done(1)
    suggested = middle(folds)
    best = search(trials, np.ones(len(trials.questions), dtype=np.bool_), grid)
    reached = (held, trials.recall(suggested), trials.recall(best))
    return Calibration(name, suggested, folds, *(rows.mean(axis=0).tolist() for rows in reached))


def grids(trials: Trials, found: Sequence[Calibration]) -> list[Grid]:
    """What was reached, and what was found."""
    now = shipped(trials.model)
    alone = replace(now, weights=FusionWeights(1.0, 0.0, 0.0, 0.0))
    reached = [("lexical alone, shipped parameters", trials.recall(alone).mean(axis=0))]
    reached.append(("shipped", trials.recall(now).mean(axis=0)))
    for one in found:
        reached.append((f"{one.name}: left-out conversations (cross-validated)", np.array(one.held_out)))
        reached.append((f"{one.name}: suggestion, in sample", np.array(one.in_sample)))
        reached.append((f"{one.name}: best, in sample", np.array(one.best)))
    header = ("setting", *(f"recall@{depth}" for depth in DEPTHS))
    names = (*WEIGHTS, *LEXICAL)
    rows = [("shipped", *(_told(now.value(name)) for name in names))]
    for one in found:
        rows += [(f"{one.name}, fold {n}", *(_told(f.value(k)) for k in names)) for n, f in enumerate(one.folds, 1)]
        rows.append((f"{one.name}, suggestion", *(_told(one.suggested.value(name)) for name in names)))
    shown = [(name, *(f"{value:.3f}" for value in values)) for name, values in reached]
    return [Grid("Turn recall, categories 1-4", header, shown), Grid("What was found", ("", *names), rows)]


def _told(value: Value) -> str:
    return " ".join(f"{part:g}" for part in (value if isinstance(value, tuple) else (value,)))


def yaml(setting: Setting) -> str:
    """The setting as ranking.yaml has it."""
    lists = {name: ", ".join(f"{part:g}" for part in getattr(setting.bm25, name)) for name in ("before", "after")}
    bm25 = f"k1: {setting.bm25.k1:g}, b: {setting.bm25.b:g}, before: [{lists['before']}], after: [{lists['after']}]"
    weights = [f"{name}: {getattr(setting.weights, name):g}" for name in ("lexical", *WEIGHTS)]
    return "\n".join([f"bm25: {{{bm25}}}", *weights])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the calibration; 0 when it ran, 2 without conversations."""
    options = _options(arguments)
    if options.file is None:
        print(MISSING.replace("recall:", "calibrate:"), file=sys.stderr)
        return 2
    try:
        conversations = load(options.file)
    except NotConversations as error:
        print(f"calibrate: {error}", file=sys.stderr)
        return 2
    if len(conversations) < 2:
        print("calibrate: needs two conversations or more, to leave one out", file=sys.stderr)
        return 2
    encoder = encoder_of(options.model, options.model_name)
    trials = Trials(questions_of(conversations, encoder), encoder.model)
    weights = WEIGHTS if options.model is None else WIDER
    searches = {"weights": weights, "weights and lexical": {**weights, **LEXICAL}}
    if options.quick:
        searches = {"few": QUICK}
    with progress("leaving one out", len(searches) * len(conversations)) as done:
        found = [calibrate(trials, name, grid, done) for name, grid in searches.items()]
    tables = grids(trials, found)
    if options.json:
        print(json.dumps([asdict(one) for one in found], indent=2))
    else:
        for grid in tables:
            Console(width=None if sys.stdout.isatty() else 160).print(grid.table())
        print(f"Suggested, with the fewest free parameters:\n{yaml(found[0].suggested)}")
    if options.figures:
        model = None if options.model is None else encoder.model
        _publish(options.figures, options.file, tables, yaml(found[0].suggested), model)
    return 0


def _publish(page: Path, file: Path, tables: Sequence[Grid], suggestion: str, model: str | None) -> None:
    of = "" if model is None else f" with `{model}`"
    told = (
        f"Where the weights of the `default` ranking{of} come from: found by coordinate search on all conversations "
        "but one, and tried on that one. A suggestion is the mean of what the folds found."
    )
    with_model = "" if model is None else f"MODEL=path/to/{model} "
    how = f"make bench-calibrate {with_model}LOCOMO=path/to/{file.name}"
    how = f"Reproduce: `{how}`. Machine: {machine()}."
    code = f"Suggested, with the fewest free parameters:\n\n```yaml\n{suggestion}\n```"
    name = "calibration" if model is None else "calibration-model"
    write_section(page, name, f"Calibration of the ranking{of}", [told, how, *tables, code])


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("LOCOMO")
    parser.add_argument("--file", type=Path, default=Path(default) if default else None, help="conversations")
    parser.add_argument("--model", help="folder of an embedding model; the default model without it")
    parser.add_argument("--model-name", help="what the policy calls it; as its folder without it")
    parser.add_argument("--quick", action="store_true", help="try few values, to see that it runs")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--figures", type=Path, default=PAGE, help="page whose section is replaced")
    parser.add_argument("--no-figures", dest="figures", action="store_const", const=None, help="leave the page alone")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())

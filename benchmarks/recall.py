"""Turn recall of the ranking profiles over HTTP, beside PostgreSQL's full text search and plain vectors.

Run: python benchmarks/recall.py --file locomo10.json
     python benchmarks/recall.py --file locomo10.json --model FOLDER     (another embedding model, beside the default)
     python benchmarks/recall.py --file locomo10.json --related          (with and without places for related memories)
"""

import argparse
import hashlib
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from baselines import baselines
from figures import PAGE, machine, write_section
from rich.console import Console

from memplane.adapters.embeddings.batching import Encoder
from memplane.adapters.embeddings.choice import encoder_of
from memplane.adapters.postgres.embedded.embedded_postgres import EmbeddedPostgres
from memplane.entrypoints.cli.bench import measure_recall, measure_related, progress
from memplane.entrypoints.cli.bench import recall as retrieval
from memplane.entrypoints.cli.bench.locomo import LocomoConversation, NotConversations, load
from memplane.entrypoints.cli.bench.server import throwaway_server

NAMES = {
    "default": "Memplane, default",
    "lexical": "Memplane, lexical alone (contextual BM25)",
    "semantic": "Memplane, semantic alone",
    "rrf": "Memplane, rrf (equal weights)",
}
TIMED = 200
MISSING = """recall: name a file of conversations in LoCoMo format, with --file or in the environment as LOCOMO.
The data set is published by its authors as data/locomo10.json in the repository snap-research/locomo
(Maharana et al., 2024; licence CC BY-NC 4.0, for non-commercial use)."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 0 when it ran, 2 without conversations."""
    options = _options(arguments)
    if options.file is None:
        print(MISSING, file=sys.stderr)
        return 2
    try:
        conversations = load(options.file)
    except NotConversations as error:
        print(f"recall: {error}", file=sys.stderr)
        return 2
    if options.related:
        with throwaway_server(options.policies) as server:
            related = measure_related(server, conversations)
        if options.json:
            print(json.dumps({"file": options.file.name, "related": retrieval.plain(related)}, indent=2))
        else:
            Console(width=None if sys.stdout.isatty() else 140).print(retrieval.related_grid(related).table())
        return 0
    encoder = encoder_of(options.model, options.model_name)
    measured, where = _measured(options, conversations, encoder)
    if options.json:
        print(json.dumps({"machine": where, "file": options.file.name, "recall": retrieval.plain(measured)}, indent=2))
    else:
        for grid in retrieval.grids(measured):
            Console(width=None if sys.stdout.isatty() else 140).print(grid.table())
    if options.figures:
        if options.model is not None:
            where = f"{where}. {_cost(encoder, conversations)}"
        model = None if options.model is None else encoder.model
        _publish(options.figures, options.file, conversations, measured, (where, model))
    return 0


def _measured(
    options: argparse.Namespace, conversations: Sequence[LocomoConversation], encoder: Encoder
) -> tuple[dict[str, Mapping[str, retrieval.Figures]], str]:
    """Figures by method, and on what machine."""
    measured: dict[str, Mapping[str, retrieval.Figures]] = {}
    settings = {}
    if options.model is not None:
        default = encoder_of().model
        with throwaway_server(options.policies) as server:
            measured[f"Memplane with {default}"] = measure_recall(server, conversations, ["default"])["default"]
        settings = {"MEMPLANE_EMBEDDING_MODEL": options.model, "MEMPLANE_EMBEDDING_NAME": encoder.model}
    profiles = options.ranking or list(retrieval.PROFILES)
    with throwaway_server(options.policies, settings=settings) as server:
        by_profile = measure_recall(server, conversations, profiles)
        measured |= {NAMES.get(profile, profile): figures for profile, figures in by_profile.items()}
        with EmbeddedPostgres.start(server.data) as database:
            where = machine(database)
            with progress("plain methods", 3) as done:
                for method, answers in baselines(database, conversations, encoder):
                    measured[method] = retrieval.figures(answers)
                    done(1)
    with throwaway_server(options.policies, storage="sqlite", settings=settings) as server:
        measured["Memplane on SQLite, default"] = measure_recall(server, conversations, ["default"])["default"]
    return measured, where


def _cost(encoder: Encoder, conversations: Sequence[LocomoConversation]) -> str:
    """How long the model takes for a question by itself, and for texts by the batch."""
    questions = [asked.question for asked in conversations[0].questions[:TIMED]]
    texts = [turn.full_text for session in conversations[0].sessions for turn in session.turns][:TIMED]
    each = []
    for question in questions:
        started = time.perf_counter()
        encoder.encode([question])
        each.append(time.perf_counter() - started)
    started = time.perf_counter()
    encoder.encode(texts)
    together = time.perf_counter() - started
    return (
        f"The model took {1000 * median(each):.1f} ms (median) for a question by itself, and "
        f"{1000 * together / len(texts):.1f} ms a turn for {len(texts)} turns together"
    )


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("LOCOMO")
    parser.add_argument("--file", type=Path, default=Path(default) if default else None, help="conversations")
    parser.add_argument("--ranking", action="append", help="ranking profile; may be repeated")
    parser.add_argument("--policies", type=Path, help="policy folder; the shipped one without it")
    parser.add_argument("--model", help="folder of an embedding model, measured beside the default one")
    parser.add_argument("--model-name", help="what the policy calls it; as its folder without it")
    parser.add_argument("--related", action="store_true", help="only what places for related memories cost and bring")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--figures", type=Path, default=PAGE, help="page whose section is replaced")
    parser.add_argument("--no-figures", dest="figures", action="store_const", const=None, help="leave the page alone")
    return parser.parse_args(arguments)


def _publish(
    page: Path,
    file: Path,
    conversations: Sequence[LocomoConversation],
    measured: Mapping[str, Mapping[str, retrieval.Figures]],
    how: tuple[str, str | None],
) -> None:
    where, model = how
    turns = sum(len(session.turns) for conversation in conversations for session in conversation.sessions)
    asked = sum(len(conversation.questions) for conversation in conversations)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()[:12]
    embedding = "the default embedding" if model is None else f"`{model}` for the embedding, but where another is named"
    told = (
        f"How much of what answers a question comes back: each conversation is one user, each session one thread; "
        f"every question goes to `memory.query` over HTTP, with no call of a language model and with "
        f"{embedding}. Recall@k is the share of a question's evidence turns among the first k results, averaged over "
        f"questions; `any` and `all` are the shares of questions of which some, and all, evidence came back. "
        f"`{file.name}` (SHA-256 {digest}…): {len(conversations)} conversations, {turns} turns, {asked} questions with "
        f"evidence. The plain methods run in SQL over the same turns, with the speaker's name before each text."
    )
    command = f"make bench-recall LOCOMO=path/to/{file.name}"
    name, title = "recall", "Recall"
    if model is not None:
        command = f"make bench-recall-model MODEL=path/to/{model} LOCOMO=path/to/{file.name}"
        name, title = "recall-model", f"Recall with `{model}`"
    reproduce = f"Reproduce: `{command}`. Machine: {where}."
    write_section(page, name, title, [told, reproduce, *retrieval.grids(measured)])


if __name__ == "__main__":
    sys.exit(main())

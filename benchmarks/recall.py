"""Turn recall of the ranking profiles over HTTP, beside PostgreSQL's full text search and plain vectors.

Run: python benchmarks/recall.py --file locomo10.json
"""

import argparse
import hashlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from baselines import baselines
from figures import PAGE, machine, write_section
from rich.console import Console

from memplane.adapters.postgres.embedded import EmbeddedPostgres
from memplane.entrypoints.cli.bench import measure_recall, progress
from memplane.entrypoints.cli.bench import recall as retrieval
from memplane.entrypoints.cli.bench.locomo import Conversation, NotConversations, load
from memplane.entrypoints.cli.bench.server import throwaway_server

NAMES = {
    "default": "Memplane, default",
    "lexical": "Memplane, lexical alone (contextual BM25)",
    "semantic": "Memplane, semantic alone",
    "rrf": "Memplane, rrf (equal weights)",
}
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
    measured: dict[str, Mapping[str, retrieval.Figures]] = {}
    with throwaway_server(options.policies) as server:
        by_profile = measure_recall(server, conversations, options.ranking or list(retrieval.PROFILES))
        measured |= {NAMES.get(profile, profile): figures for profile, figures in by_profile.items()}
        with EmbeddedPostgres.start(server.data) as database:
            where = machine(database)
            with progress("plain methods", 3) as done:
                for method, answers in baselines(database, conversations):
                    measured[method] = retrieval.figures(answers)
                    done(1)
    with throwaway_server(options.policies, storage="sqlite") as server:
        measured["Memplane on SQLite, default"] = measure_recall(server, conversations, ["default"])["default"]
    if options.json:
        print(json.dumps({"machine": where, "file": options.file.name, "recall": retrieval.plain(measured)}, indent=2))
    else:
        for grid in retrieval.grids(measured):
            Console(width=None if sys.stdout.isatty() else 140).print(grid.table())
    if options.figures:
        _publish(options.figures, options.file, conversations, measured, where)
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("LOCOMO")
    parser.add_argument("--file", type=Path, default=Path(default) if default else None, help="conversations")
    parser.add_argument("--ranking", action="append", help="ranking profile; may be repeated")
    parser.add_argument("--policies", type=Path, help="policy folder; the shipped one without it")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--figures", type=Path, default=PAGE, help="page whose section is replaced")
    parser.add_argument("--no-figures", dest="figures", action="store_const", const=None, help="leave the page alone")
    return parser.parse_args(arguments)


def _publish(
    page: Path,
    file: Path,
    conversations: Sequence[Conversation],
    measured: Mapping[str, Mapping[str, retrieval.Figures]],
    where: str,
) -> None:
    turns = sum(len(session.turns) for conversation in conversations for session in conversation.sessions)
    asked = sum(len(conversation.questions) for conversation in conversations)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()[:12]
    told = (
        f"How much of what answers a question comes back: each conversation is one user, each session one thread; "
        f"every question goes to `memory.query` over HTTP, with no model call and the default embedding. Recall@k is "
        f"the share of a question's evidence turns among the first k results, averaged over questions; `any` and `all` "
        f"are the shares of questions of which some, and all, evidence came back. `{file.name}` (SHA-256 {digest}…): "
        f"{len(conversations)} conversations, {turns} turns, {asked} questions with evidence. The plain methods run in "
        f"SQL over the same turns, with the speaker's name before each text."
    )
    how = f"Reproduce: `make bench-recall LOCOMO=path/to/{file.name}`. Machine: {where}."
    write_section(page, "recall", "Recall", [told, how, *retrieval.grids(measured)])


if __name__ == "__main__":
    sys.exit(main())

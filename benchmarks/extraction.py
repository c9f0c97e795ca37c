"""Facts that the rules draw from conversations, as rows to be judged by hand, and how often each rule fired.

Run: python benchmarks/extraction.py --file locomo10.json --sample 200 --seed 7
"""

import argparse
import json
import random
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

from memplane.domain.language.extraction.extraction import extract
from memplane.entrypoints.cli.bench.locomo import NotConversations, load


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a sample of facts with their turns, then the counts; 0 when it ran, 2 without conversations."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--file", type=Path, required=True, help="conversations in LoCoMo format")
    parser.add_argument("--sample", type=int, default=200, help="how many facts to print")
    parser.add_argument("--seed", type=int, default=1, help="which facts")
    parser.add_argument("--of", default="", help="only these conversations, by place from 0, comma between")
    options = parser.parse_args(arguments)
    try:
        conversations = load(options.file)
    except NotConversations as error:
        print(f"extraction: {error}", file=sys.stderr)
        return 2
    if options.of:
        conversations = [conversations[int(place)] for place in options.of.split(",")]
    told = [(turn, session) for one in conversations for session in one.sessions for turn in session.turns]
    begun = perf_counter()
    found = [(turn, session, extract(turn.text, speaker=turn.speaker, when=session.time)) for turn, session in told]
    seconds = perf_counter() - begun
    rows = [(turn, session, fact) for turn, session, facts in found for fact in facts]
    chosen = random.Random(options.seed).sample(rows, min(options.sample, len(rows)))  # noqa: S311 - no secret
    for turn, session, fact in chosen:
        row = {"turn": turn.text, "said": session.time.date().isoformat(), "fact": fact.content, "rule": fact.rule}
        if fact.event_time:
            row["event_time"] = fact.event_time.date().isoformat()
        print(json.dumps(row, ensure_ascii=False))
    fruitful = sum(bool(facts) for _, _, facts in found)
    counts = Counter(fact.rule for _, _, fact in rows)
    share = fruitful / max(len(told), 1)
    print(json.dumps({"turns": len(told), "fruitful": fruitful, "share": round(share, 3), "facts": len(rows)}))
    print(json.dumps({"microseconds_per_turn": round(seconds / max(len(told), 1) * 1e6, 1), "by_rule": counts}))
    return 0


if __name__ == "__main__":
    sys.exit(main())

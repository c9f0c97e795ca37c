"""Fails when less of some folders was run than a share of their lines, or than that share of their branches.

Run: python coverage_floor.py REPORT.json PERCENT FOLDER…, on a report of `coverage json`.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path


def below(report: Path, floor: float, folders: Sequence[str]) -> list[str]:
    """What is below the floor, in percent, by folder and kind; a folder without a measured file is, too."""
    files = json.loads(report.read_text(encoding="utf-8"))["files"]
    found = []
    for folder in folders:
        summaries = [file["summary"] for name, file in files.items() if name.startswith(f"{folder}/")]
        for kind, covered, total in (
            ("lines", "covered_lines", "num_statements"),
            ("branches", "covered_branches", "num_branches"),
        ):
            possible = sum(summary[total] for summary in summaries)
            share = 100 * sum(summary[covered] for summary in summaries) / possible if possible else 0.0
            print(f"{folder}: {share:.1f} % of {possible} {kind}")  # noqa: T201 - what the program is for
            if share < floor:
                found.append(f"{folder}: {share:.1f} % of the {kind}, at least {floor:g} % wanted")
    return found


if __name__ == "__main__":
    report, floor, *folders = sys.argv[1:]
    sys.exit("\n".join(below(Path(report), float(floor), folders)) or 0)

"""What is compatible stays, over HTTP: hand-written facts and changes, whose authors have seen no rule.

`PAIRS` says how many pairs of each list are tried; `make truth` tries them all. The lists are those of
`benchmarks/truth`, and `tests/unit/test_proof.py` compares every pair without a server.
"""

import json
import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from support.callers import Caller, Tenant
from support.promises.checks import compatible_ended, stored
from support.proof_cases import BESIDE

LISTS = Path(__file__).resolve().parents[2] / "benchmarks" / "truth"
SETS = ("first", "second", "third", "fourth")
PAIRS = int(os.environ.get("PAIRS", "60"))
Json = dict[str, Any]


def rows(name: str, kind: str) -> list[Json]:
    return [json.loads(line) for line in (LISTS / name / f"{kind}.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def caller(tenant: Tenant) -> Caller:
    """A supervisor, who reads and writes preferences."""
    return tenant.caller("supervisor")


@pytest.mark.parametrize("name", SETS)
def test_one_after_the_other_nothing_compatible_is_overruled(caller: Caller, name: str) -> None:
    facts, changes = rows(name, "facts"), rows(name, "changes")
    every = [(fact, change) for fact in facts for change in changes]
    chosen = random.Random(name).sample(every, min(PAIRS, len(every))) if PAIRS else every  # noqa: S311 - no secret
    true = [(fact, change) for fact, change in every if fact["id"] in change["overrules"]]
    outcomes: Counter[tuple[str, str]] = Counter()
    for number, (fact, change) in enumerate([*chosen, *true]):
        first = stored(caller, f"u{number}", fact["text"])
        second = stored(caller, f"u{number}", change["text"])
        if first is None or second is None:
            continue
        label = next((each for each in ("overrules", "unclear") if fact["id"] in change[each]), "compatible")
        outcomes[label, second["outcome"]] += 1
        if label == "compatible":
            assert second["outcome"] == "created", (fact["text"], change["text"])
            assert second["overruled"] == []
    # the control: of what is really changed, some is recognised
    assert outcomes["overrules", "superseded"] > 0


@pytest.mark.parametrize("principle", BESIDE)
def test_what_may_hold_beside_a_memory_stays(tenant: Tenant, caller: Caller, principle: str) -> None:
    beside, changes = BESIDE[principle]
    assert compatible_ended(tenant, beside) == []
    # the control: a change nearby is recognised
    outcomes = set()
    for number, (old, new) in enumerate(changes):
        first, second = (stored(caller, f"changes{number}", text) for text in (old, new))
        if first is not None and second is not None:
            outcomes.add(second["outcome"])
            assert second["overruled"] == [first["id"]], (old, new)
    assert outcomes == {"superseded"}


@pytest.mark.parametrize("name", ["third", "first"])
def test_of_one_life_everything_stays(caller: Caller, name: str) -> None:
    """500 compatible memories of one person, with many alike; those of the first list in a random order."""
    texts = [row["text"] for row in rows(name, "compatible500")]
    if name == "first":
        random.Random(5).shuffle(texts)  # noqa: S311 - no secret
    done = [each for each in (stored(caller, "life", text) for text in texts) if each is not None]
    assert Counter(each["outcome"] for each in done) == {"created": len(done)}
    assert len(done) > 480


def test_traps_end_nothing_of_a_life(caller: Caller) -> None:
    """Changes that end none of a person's facts, one after the other beside all of them."""
    kept = [stored(caller, "ana", row["text"]) for row in rows("third", "facts")]
    facts = {each["id"] for each in kept if each is not None}
    for row in rows("third", "changes"):
        if not row["overrules"] and not row["unclear"]:
            done = stored(caller, "ana", row["text"])
            assert done is None or facts.isdisjoint(done["overruled"]), row["text"]
    found = {item["id"] for page in pages(caller) for item in page}
    assert facts <= found


def pages(caller: Caller) -> list[list[Json]]:
    found: list[list[Json]] = []
    cursor = None
    while True:
        page = caller.get("/v1/memories", user_id="ana", limit=200, **({"cursor": cursor} if cursor else {})).json()
        found.append(page["items"])
        cursor = page["next"]
        if cursor is None:
            return found

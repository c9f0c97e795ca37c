"""The two databases rank alike: the same questions over the same corpus bring the same units, order and scores."""

from collections.abc import Sequence
from itertools import zip_longest

from memplane.adapters.policy import load_policy, shipped_policies
from memplane.entrypoints.cli.demo.story import load
from support.callers import Caller, Tenant
from support.serving import RunningServer

CLOSE = 1e-3
"""Embeddings are kept in half precision."""
STORY = load()
SMALL_TALK = ("Thank you.", "You are welcome.", "Good.", "Thank you.")
"""Equal units have equal scores: then their ids decide."""
QUESTIONS = (
    STORY.question,
    "When must the last glaze firing be loaded?",
    "How many visitors may the net loft hold?",
    "Who brings the cakes, and who counts the visitors?",
    "What does Mira pay for the tables?",
    "kiln",
    "thank you",
    "signs at the harbour gate on Friday",
    "Which pieces did the assistant advise to sell?",
    "unrelated: quantum chromodynamics",
    "who is it and where was that",
)
HELD = (STORY.question, "kiln", "thank you")
POLICY = load_policy(shipped_policies())
PROFILES = sorted(POLICY.rankings)
Ranking = Sequence[tuple[int, float]]


def told(tenant: Tenant) -> tuple[Caller, dict[str, int]]:
    """One who asks, after the whole corpus was written in the same order; and each id's place in it."""
    caller = tenant.caller(None, act_for=("*",))
    writer = tenant.caller("supervisor")
    turns = [turn.model_dump(mode="json", exclude_none=True) for turn in STORY.turns]
    turns += [
        {"user_id": STORY.first_user, "thread_id": thread, "role": "user", "text": text, "actor_id": "Mira Okonjo"}
        for thread in ("first", "second")
        for text in SMALL_TALK
    ]
    answer = writer.post("/v1/turns:batch", {"turns": turns})
    assert answer.status_code == 201, answer.text
    ids = [turn["turn_id"] for turn in answer.json()["items"]]
    ids += list(dict.fromkeys(fact["id"] for turn in answer.json()["items"] for fact in turn["extracted"]))
    for memory in STORY.memories:
        body = memory.model_dump(mode="json", exclude_none=True)
        stored = caller.post("/v1/memories", body)
        assert stored.status_code == 201, stored.text
        ids.append(stored.json()["id"])
    return writer, {record: place for place, record in enumerate(ids)}


def ranking(caller: Caller, places: dict[str, int], question: str, profile: str) -> Ranking:
    items = caller.ask(question, ranking=profile, top_k=50, budget_tokens=20_000, related=False)["items"]
    return [(places[item["id"]], item["score"]) for item in items]


def differences(one: Ranking, other: Ranking) -> list[str]:
    """Places at which two rankings do not hold the same unit with the same score."""
    return [
        f"{place}: {mine} and {theirs}"
        for place, (mine, theirs) in enumerate(zip_longest(one, other), 1)
        if mine is None or theirs is None or mine[0] != theirs[0] or abs(mine[1] - theirs[1]) > CLOSE
    ]


def test_both_rank_alike(postgres_server: RunningServer, sqlite_server: RunningServer) -> None:
    postgres, sqlite = told(Tenant(postgres_server)), told(Tenant(sqlite_server))
    found = {
        (profile, question): (ranking(*postgres, question, profile), ranking(*sqlite, question, profile))
        for profile in PROFILES
        for question in QUESTIONS
    }
    assert {key: differences(*both) for key, both in found.items() if differences(*both)} == {}
    # some profiles take for an answer only what holds a word of the question, and one question has none that is held
    enough = {profile: 3 if POLICY.rankings[profile].by_use else 20 for profile in PROFILES}
    assert all(len(both[0]) > enough[profile] for (profile, question), both in found.items() if question in HELD)
    # the control: profiles and questions do differ, and the comparison says so
    first = {profile: found[profile, QUESTIONS[0]][0] for profile in PROFILES}
    assert all(differences(first["default"], first[name]) for name in PROFILES if name != "default")
    assert differences(found["default", QUESTIONS[0]][0], found["default", QUESTIONS[1]][1])

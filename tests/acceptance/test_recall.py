"""What was acknowledged is found by the next request, by its own words and by its neighbours'."""

from typing import Any

import pytest

from support.callers import THREAD, USER, Caller, Tenant

Json = dict[str, Any]
TALK = [
    ("ana", "Did you ever find out who repaired the harpsichord?"),
    ("ben", "Yes, it was old Mr. Vance from the village."),
    ("ana", "Lovely. Shall we have lunch?"),
    ("ben", "Soup would be nice."),
]  # fmt: skip
NOISE = [
    "The train leaves at nine.", "Please water the tomatoes.", "The invoice was paid on Monday.",
    "Nobody answered the phone.", "The meeting moved to the blue room.", "It rained all weekend.",
    "The printer is out of paper.", "Somebody parked in the yard.",
]  # fmt: skip


def say_all(caller: Caller, talk: list[tuple[str, str]], thread: str = THREAD) -> list[str]:
    turns = [
        {"user_id": USER, "thread_id": thread, "role": "user", "actor_id": actor, "text": text}
        for actor, text in talk
    ]  # fmt: skip
    response = caller.post("/v1/turns:batch", {"turns": turns})
    assert response.status_code == 201
    return [turn["turn_id"] for turn in response.json()["items"]]


@pytest.fixture
def noisy(tenant: Tenant, supervisor: Caller) -> Tenant:
    """A tenant whose user talked of much else."""
    say_all(supervisor, [("ana", text) for text in NOISE], "noise")
    return tenant


@pytest.mark.usefixtures("noisy")
def test_an_acknowledged_turn_is_found_by_the_next_request(supervisor: Caller) -> None:
    for number in range(10):
        word = f"zanzibar{number}"
        turn = supervisor.say(f"Tell me about {word}.")["turn_id"]
        assert supervisor.found(word, top_k=1) == [turn]


@pytest.mark.usefixtures("noisy")
def test_an_acknowledged_memory_is_found_by_the_next_request(supervisor: Caller) -> None:
    for number in range(10):
        word = f"zanzibar{number}"
        memory = supervisor.remember(f"Ana dreams of {word}.")
        assert supervisor.found(word, top_k=1) == [memory]
        supervisor.patch(f"/v1/memories/{memory}", {"content": f"Ana dreams of quetzal{number}."})
        assert supervisor.found(f"quetzal{number}", top_k=1) == [memory]


def test_another_key_finds_it_as_soon(tenant: Tenant, supervisor: Caller) -> None:
    reader = tenant.caller("planner")
    for number in range(10):
        memory = supervisor.remember(f"Ana dreams of zanzibar{number}.")
        assert reader.found(f"zanzibar{number}", top_k=1) == [memory]


@pytest.mark.usefixtures("noisy")
def test_a_turn_is_found_by_the_words_of_the_turn_before(supervisor: Caller) -> None:
    """The answer shares no word with the question that is asked about it: those stand in the turn before."""
    question, answer, *_ = say_all(supervisor, TALK)
    asked = "who repaired the harpsichord"
    items = supervisor.ask(asked, explain=True)["items"]
    explained = {item["id"]: item["explain"] for item in items}
    assert explained[answer]["matched"] == []
    assert [item["id"] for item in items[:2]] == [question, answer]
    assert explained[answer]["signals"]["lexical"] > 0.2 * explained[question]["signals"]["lexical"]
    unrelated = {item["id"] for item in items[2:]} - {question, answer}
    assert all(explained[item]["signals"]["lexical"] < explained[answer]["signals"]["lexical"] for item in unrelated)


@pytest.mark.usefixtures("noisy")
def test_a_turn_is_found_by_the_words_of_the_turn_after(supervisor: Caller) -> None:
    said, answer = say_all(supervisor, [("ana", "Guess what happened."), ("ben", "You adopted a labrador!")])
    assert supervisor.found("adopted labrador", top_k=2) == [answer, said]


@pytest.mark.usefixtures("noisy")
def test_a_neighbour_that_comes_later_lifts_the_turn_at_once(supervisor: Caller) -> None:
    said = supervisor.say("Guess what happened.")["turn_id"]
    assert said not in supervisor.found("adopted labrador", ranking="lexical", top_k=1)
    answer = supervisor.say("You adopted a labrador!")["turn_id"]
    assert supervisor.found("adopted labrador", ranking="lexical", top_k=2) == [answer, said]


@pytest.mark.usefixtures("noisy")
@pytest.mark.parametrize("apart", ["thread", "user"])
def test_neighbours_are_of_one_thread_of_one_user(supervisor: Caller, apart: str) -> None:
    other = {"thread_id": "other"} if apart == "thread" else {"user_id": "ben"}
    supervisor.say("Did you ever find out who repaired the harpsichord?")
    stranger = supervisor.say("Old Mr. Vance from the village.", **other)["turn_id"]
    scored = {item["id"]: item["explain"]["signals"] for item in
              supervisor.ask("repaired harpsichord", explain=True, top_k=50)["items"]}  # fmt: skip
    assert scored[stranger]["lexical"] == 0
    neighbour = supervisor.say("Old Mr. Vance from the village.")["turn_id"]
    scored = {item["id"]: item["explain"]["signals"] for item in
              supervisor.ask("repaired harpsichord", explain=True, top_k=50)["items"]}  # fmt: skip
    assert scored[stranger]["lexical"] == 0 < scored[neighbour]["lexical"]


@pytest.mark.usefixtures("noisy")
def test_who_spoke_counts(supervisor: Caller) -> None:
    for actor in ("Ana Ruiz", "Ben Ode"):
        supervisor.say("I like jazz.", actor_id=actor, thread_id=actor, auto_extract=False)
    best = supervisor.ask("what music does Ben like", return_="full")["items"][0]
    assert best["turn"]["actor_id"] == "Ben Ode"
    assert best["score_parts"]["actor"] == 1


@pytest.mark.usefixtures("noisy")
@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("Where does she go hiking?", "Ana hikes in the Dolomites."),
        ("state-of-the-art", "The state of the art changes weekly."),
        ("Ana's bicycle", "A bicycle of Ana was stolen."),
        ("CAFÉS", "Two cafés opened nearby."),
    ],
)
def test_words_are_found_in_their_other_forms(supervisor: Caller, asked: str, told: str) -> None:
    memory = supervisor.remember(told)
    (best,) = supervisor.ask(asked, ranking="lexical", top_k=1, explain=True)["items"]
    assert best["id"] == memory
    assert best["explain"]["matched"] != []


@pytest.mark.usefixtures("noisy")
def test_question_words_alone_match_nothing(supervisor: Caller) -> None:
    assert all(
        item["score"] == 0 for item in supervisor.ask("who is it and where was that", ranking="lexical")["items"]
    )
    assert supervisor.ask("tomatoes", ranking="lexical")["items"][0]["score"] == 1


@pytest.mark.usefixtures("noisy")
def test_addresses_on_the_web_are_no_words(supervisor: Caller) -> None:
    linked = supervisor.remember("Ana read https://example.org/harpsichord yesterday.")
    scores = {item["id"]: item["score"] for item in supervisor.ask("harpsichord", ranking="lexical")["items"]}
    assert scores[linked] == 0
    plain = supervisor.remember("Ana plays the harpsichord.")
    assert supervisor.found("harpsichord", ranking="lexical", top_k=1) == [plain]


def test_rarity_counts_within_the_scope_of_the_reader(supervisor: Caller) -> None:
    """A word that fills another user's memories is still rare, and so decisive, in one's own."""
    for number in range(20):
        supervisor.remember(f"Ben sells a violin number {number}.", user_id="ben")
        supervisor.remember(f"Ana waters tomato number {number}.")
    violin = supervisor.remember("Ana bought a violin.")
    found = supervisor.found("tomato violin", filters={"user_id": USER}, ranking="lexical", top_k=1)
    assert found == [violin]

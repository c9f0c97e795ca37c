"""Every filter key narrows, one by one: what it keeps and what it leaves out are both there without it."""

from typing import Any

import pytest

from support.callers import THREAD, Caller, Tenant, refused
from support.promises.checks import starved

SUBJECT = "hall"
KEPT = {
    "agent_id": "scout", "run_id": "r1", "actor_id": "Ben Ode", "role": "assistant", "thread_id": THREAD,
    "type": "semantic", "tags": ["venue", "paid"], "pinned": True, "importance": 4, "visibility": "private",
    "category": "tasks",
}  # fmt: skip
NEUTRAL = {
    "agent_id": None, "run_id": None, "actor_id": None, "role": None, "thread_id": None, "type": None, "tags": [],
    "category": None, "types": [], "visibility": None,
    "entity": None, "pinned": None, "importance_min": 1, "importance_max": 5, "updated_after": None,
    "updated_before": None,
}  # fmt: skip
# filter, and the field by which the memory that it must leave out differs
GUESTS = ("the mayor", "a school class", "two architects")
NARROWING: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"user_id": "ana"}, {"user_id": "ben"}),
    ({"agent_id": "scout"}, {"agent_id": "critic"}),
    ({"agent_id": "scout"}, {"agent_id": None}),
    ({"run_id": "r1"}, {"run_id": "r10"}),
    ({"run_id": "r1"}, {"run_id": None}),
    ({"actor_id": "Ben Ode"}, {"actor_id": "Ben"}),
    ({"actor_id": "Ben Ode"}, {"actor_id": None}),
    ({"role": "assistant"}, {"role": "user"}),
    ({"role": "assistant"}, {"role": None}),
    ({"thread_id": THREAD}, {"thread_id": f"{THREAD}2"}),
    ({"thread_id": THREAD}, {"thread_id": None}),
    ({"type": "semantic"}, {"type": "episodic"}),
    ({"types": ["semantic", "insight"]}, {"type": "episodic"}),
    ({"type": "semantic", "types": ["semantic", "episodic"]}, {"type": "episodic"}),
    ({"visibility": "private"}, {"visibility": "social"}),
    ({"category": "tasks"}, {"category": "goals"}),
    ({"category": ["tasks", "activity"]}, {"category": "goals"}),
    ({"tags": ["venue"]}, {"tags": ["menu"]}),
    ({"tags": ["venue"]}, {"tags": []}),
    ({"tags": ["venue", "paid"]}, {"tags": ["venue"]}),
    ({"pinned": True}, {"pinned": False}),
    ({"importance_min": 4}, {"importance": 3}),
    ({"importance_max": 4}, {"importance": 5}),
]


@pytest.mark.parametrize(("chosen", "different"), NARROWING, ids=repr)
def test_a_filter_narrows(supervisor: Caller, chosen: dict[str, Any], different: dict[str, Any]) -> None:
    kept = supervisor.remember("The hall is booked.", **KEPT)
    left = supervisor.remember("The hall is painted.", **(KEPT | different))
    assert set(supervisor.found(SUBJECT)) == {kept, left}
    assert supervisor.found(SUBJECT, filters=chosen) == [kept]
    assert supervisor.found(filters=chosen) == [kept]
    assert supervisor.ask(SUBJECT, filters=chosen)["usage"]["candidates"] == 1


def test_pinned_false_leaves_pinned_ones_out(supervisor: Caller) -> None:
    loose = supervisor.remember("The hall is booked.")
    pinned = supervisor.remember("The hall is painted.", pinned=True)
    assert set(supervisor.found(SUBJECT)) == {loose, pinned}
    assert supervisor.found(SUBJECT, filters={"pinned": False}) == [loose]


def test_an_entity_is_found_by_name_and_by_alias(tenant: Tenant, supervisor: Caller) -> None:
    hers = supervisor.remember("The hall is booked by the chair.")
    other = supervisor.remember("The hall is painted.")
    third = supervisor.remember("The hall is warm.")
    tenant.mention(hers, "Anna Kovač", "Annie")
    tenant.mention(other, "Anna")
    assert set(supervisor.found(SUBJECT)) == {hers, other, third}
    for name in ("Anna Kovač", "anna KOVAČ", " Anna  Kovač ", "annie"):
        assert supervisor.found(SUBJECT, filters={"entity": name}) == [hers]
    assert supervisor.found(SUBJECT, filters={"entity": "Ann"}) == []


def test_of_several_types_or_entities_any_one_is_enough(tenant: Tenant, supervisor: Caller) -> None:
    fact, visit, insight = (
        supervisor.remember(f"The hall is {what}.", type=kind)
        for what, kind in (("booked", "semantic"), ("visited", "episodic"), ("loved", "insight"))
    )
    assert set(supervisor.found(SUBJECT, filters={"types": ["semantic", "episodic"]})) == {fact, visit}
    assert set(supervisor.found(filters={"types": ["episodic", "insight"]})) == {visit, insight}
    for memory, name in ((fact, "Anna"), (visit, "Bodo"), (insight, "Cleo")):
        tenant.mention(memory, name)
    assert set(supervisor.found(SUBJECT, filters={"entity": ["Anna", "Bodo"]})) == {fact, visit}
    assert supervisor.found(SUBJECT, filters={"entity": ["Cleo"]}) == [insight]
    assert supervisor.found(SUBJECT, filters={"entity": ["Nobody", "Ann"]}) == []


def test_procedures_come_where_their_type_is_among_those_asked_for(executor: Caller) -> None:
    steps = executor.remember("How the hall is booked.", type="procedural", steps=["Call the hall."])
    task = executor.remember("The hall is booked.")
    assert executor.found(SUBJECT) == [task]
    assert set(executor.found(SUBJECT, filters={"types": ["procedural", "semantic"]})) == {steps, task}


def test_a_category_may_stand_among_the_filters(supervisor: Caller) -> None:
    task, goal = supervisor.remember("The hall is booked."), supervisor.remember("The hall is full.", "goals")
    for category in ("tasks", ["tasks"]):
        assert supervisor.found(SUBJECT, filters={"category": category}) == [task]
        assert supervisor.found(SUBJECT, filters={"category": category}, categories=["tasks"]) == [task]
        refused(supervisor.query(SUBJECT, filters={"category": category}, categories=["goals"]), 422, "invalid_request")
    both = {"filters": {"category": ["goals", "tasks"]}, "categories": ["tasks", "goals"]}
    assert set(supervisor.found(SUBJECT, **both)) == {task, goal}
    problem = refused(supervisor.query(SUBJECT, filters={"category": ["tasks", "tone"]}), 403, "category_forbidden")
    assert "tone" in problem["detail"]


def test_a_type_outside_types_is_refused(supervisor: Caller) -> None:
    refused(supervisor.query(SUBJECT, filters={"type": "insight", "types": ["semantic"]}), 422, "invalid_request")
    assert supervisor.query(SUBJECT, filters={"type": "insight", "types": ["insight"]}).status_code == 200


def test_a_store_that_the_key_does_not_see_stays_hidden(tenant: Tenant, supervisor: Caller) -> None:
    private = supervisor.remember("The hall is booked.", visibility="private")
    social = supervisor.remember("The hall is painted.", visibility="social")
    less = tenant.caller("supervisor", trust="familiar")
    assert supervisor.found(SUBJECT, filters={"visibility": "private"}) == [private]
    assert less.found(SUBJECT, filters={"visibility": "private"}) == []
    assert less.found(SUBJECT, filters={"visibility": "social"}) == [social]


def test_a_new_mention_is_found_by_the_next_request(tenant: Tenant, supervisor: Caller) -> None:
    hall, menu = supervisor.remember("The hall is booked."), supervisor.remember("The menu of the hall is chosen.")
    assert supervisor.found(SUBJECT, filters={"entity": "Anna"}) == []
    tenant.mention(hall, "Anna")
    assert supervisor.found(SUBJECT, filters={"entity": "Anna"}) == [hall]
    tenant.mention(menu, "Annelie", "Anna")
    assert set(supervisor.found(SUBJECT, filters={"entity": "Anna"})) == {hall, menu}


def test_an_entity_of_another_user_does_not_count(tenant: Tenant, supervisor: Caller) -> None:
    mine = supervisor.remember("The hall is booked.")
    bens = supervisor.remember("The hall is painted.", user_id="ben")
    tenant.mention(mine, "Anna")
    tenant.mention(bens, "Anna", user_id="ben")
    assert supervisor.found(SUBJECT, filters={"entity": "Anna", "user_id": "ana"}) == [mine]
    assert set(supervisor.found(SUBJECT, filters={"entity": "Anna"})) == {mine, bens}


class TestTime:
    """``updated_after`` is inclusive, ``updated_before`` is exclusive; a day is its first moment, UTC."""

    @pytest.fixture
    def days(self, tenant: Tenant, supervisor: Caller) -> dict[str, str]:
        made = {}
        for moment in ("2025-06-30T23:59:59.999999Z", "2025-07-01T00:00:00Z", "2025-07-01T12:00:00Z"):
            made[moment] = supervisor.remember(f"The hall was visited by {GUESTS[len(made)]}.")
            tenant.rows("UPDATE memories SET updated_at = %(at)s WHERE id = %(id)s", at=moment, id=made[moment])
        return made

    @pytest.mark.parametrize(
        ("chosen", "kept"),
        [
            ({}, 3),
            ({"updated_after": "2025-07-01"}, 2),
            ({"updated_after": "2025-07-01T00:00:00Z"}, 2),
            ({"updated_after": "2025-07-01T00:00:00.000001Z"}, 1),
            ({"updated_after": "2025-07-01T02:00:00+02:00"}, 2),
            ({"updated_after": "2025-07-01T00:00:00"}, 2),
            ({"updated_after": "2025-07-02"}, 0),
        ],
        ids=repr,
    )  # fmt: skip
    def test_after(self, supervisor: Caller, days: dict[str, str], chosen: dict[str, str], kept: int) -> None:
        expected = list(reversed(list(days.values())))[:kept]
        assert supervisor.found(filters=chosen) == expected
        assert set(supervisor.found("hall visited", filters=chosen)) == set(expected)

    @pytest.mark.parametrize(
        ("chosen", "kept"),
        [
            ({"updated_before": "2025-07-02"}, 3),
            ({"updated_before": "2025-07-01T12:00:00Z"}, 2),
            ({"updated_before": "2025-07-01"}, 1),
            ({"updated_before": "2025-06-30"}, 0),
        ],
        ids=repr,
    )
    def test_before(self, supervisor: Caller, days: dict[str, str], chosen: dict[str, str], kept: int) -> None:
        assert set(supervisor.found("hall visited", filters=chosen)) == set(list(days.values())[:kept])

    def test_both(self, supervisor: Caller, days: dict[str, str]) -> None:
        chosen = {"updated_after": "2025-07-01", "updated_before": "2025-07-01T12:00:00Z"}
        assert supervisor.found("hall visited", filters=chosen) == [days["2025-07-01T00:00:00Z"]]

    def test_turns_have_the_time_of_their_writing(self, tenant: Tenant, supervisor: Caller) -> None:
        turn = supervisor.say("The hall is visited.", event_time="2020-01-01T00:00:00Z")["turn_id"]
        tenant.rows("UPDATE turns SET recorded_at = %(at)s WHERE id = %(id)s", at="2025-07-01T00:00:00Z", id=turn)
        assert supervisor.found("visited", filters={"updated_after": "2025-07-01"}) == [turn]
        assert supervisor.found("visited", filters={"updated_before": "2025-07-01"}) == []


class TestTurns:
    """Filters reach turns too; a turn has ordinary importance, no tags, no entities, and is not pinned."""

    @pytest.mark.parametrize(
        ("chosen", "different"),
        [
            ({"user_id": "ana"}, {"user_id": "ben"}),
            ({"agent_id": "scout"}, {"agent_id": "critic"}),
            ({"run_id": "r1"}, {"run_id": None}),
            ({"actor_id": "Ben Ode"}, {"actor_id": "Ben"}),
            ({"role": "assistant"}, {"role": "user"}),
            ({"thread_id": THREAD}, {"thread_id": "other"}),
        ],
        ids=repr,
    )
    def test_a_filter_narrows(self, supervisor: Caller, chosen: dict[str, Any], different: dict[str, Any]) -> None:
        fields = {name: KEPT[name] for name in ("agent_id", "run_id", "actor_id", "role", "thread_id")}
        kept = supervisor.say("The hall is booked.", **fields)["turn_id"]
        left = supervisor.say("The hall is painted.", **(fields | different))["turn_id"]
        assert set(supervisor.found(SUBJECT)) == {kept, left}
        assert supervisor.found(SUBJECT, filters=chosen) == [kept]

    @pytest.mark.parametrize(
        ("chosen", "stays"),
        [
            ({"type": "episodic"}, True),
            ({"type": "semantic"}, False),
            ({"types": ["semantic", "episodic"]}, True),
            ({"types": ["semantic", "insight"]}, False),
            ({"visibility": "private"}, True),
            ({"visibility": "shared"}, False),
            ({"category": "activity"}, True),
            ({"category": "tasks"}, False),
            ({"tags": ["venue"]}, False),
            ({"entity": "Anna"}, False),
            ({"pinned": True}, False),
            ({"pinned": False}, True),
            ({"importance_min": 3}, True),
            ({"importance_min": 4}, False),
            ({"importance_max": 3}, True),
            ({"importance_max": 2}, False),
        ],
        ids=repr,
    )  # fmt: skip
    def test_what_a_turn_counts_as(self, supervisor: Caller, chosen: dict[str, Any], stays: bool) -> None:
        turn = supervisor.say("The hall is booked.")["turn_id"]
        assert supervisor.found(SUBJECT) == [turn]
        assert supervisor.found(SUBJECT, filters=chosen) == ([turn] if stays else [])


BESIDE = [
    ({"user_id": "ana"}, {"user_id": "ben"}),
    ({"agent_id": "scout"}, {"agent_id": "critic"}),
    ({"run_id": "r1"}, {"run_id": None}),
    ({"actor_id": "Ben Ode"}, {"actor_id": "Ben"}),
    ({"role": "assistant"}, {"role": "user"}),
]
"""Scope names that a question may name beside its filters, and other values."""


class TestBesideTheFilters:
    """Scope names at the top level of a question are the filters of those names."""

    @pytest.mark.parametrize(("chosen", "different"), BESIDE, ids=repr)
    def test_they_narrow(self, supervisor: Caller, chosen: dict[str, Any], different: dict[str, Any]) -> None:
        kept = supervisor.remember("The hall is booked.", **KEPT)
        left = supervisor.remember("The hall is painted.", **(KEPT | different))
        assert set(supervisor.found(SUBJECT)) == {kept, left}  # the control
        assert supervisor.found(SUBJECT, **chosen) == supervisor.found(SUBJECT, filters=chosen) == [kept]
        assert supervisor.found(SUBJECT, **chosen, filters=chosen) == [kept]
        ((name, _),) = chosen.items()
        assert supervisor.found(SUBJECT, **chosen, filters={name: None}) == [kept]
        assert set(supervisor.found(SUBJECT, **{name: None})) == {kept, left}

    def test_they_narrow_together_with_filters(self, supervisor: Caller) -> None:
        kept = supervisor.remember("The hall is booked.", **KEPT)
        supervisor.remember("The hall is painted.", **(KEPT | {"run_id": "r2"}))
        supervisor.remember("The hall is warm.", **(KEPT | {"user_id": "ben"}))
        assert supervisor.found(SUBJECT, user_id="ana", filters={"run_id": "r1"}) == [kept]

    @pytest.mark.parametrize(
        ("chosen", "different"), [*BESIDE, ({"thread_id": THREAD}, {"thread_id": "other"})], ids=repr
    )
    def test_both_places_must_agree(
        self, supervisor: Caller, chosen: dict[str, Any], different: dict[str, Any]
    ) -> None:
        ((name, value),) = chosen.items()
        other = different[name] or "other"
        problem = refused(supervisor.query(SUBJECT, **chosen, filters={name: other}), 422, "invalid_request")
        assert f"filters.{name}: is another one than {name}" in problem["detail"]
        assert supervisor.query(SUBJECT, **chosen, filters={name: value}).status_code == 200  # the control

    def test_the_thread_of_the_delta_does_not_narrow(self, supervisor: Caller) -> None:
        elsewhere = supervisor.remember("The hall is booked.", thread_id="other")
        assert supervisor.found(SUBJECT, thread_id=THREAD) == [elsewhere]
        assert supervisor.found(SUBJECT, filters={"thread_id": THREAD}) == []  # the control

    def test_a_key_of_other_users_is_refused(self, tenant: Tenant) -> None:
        bound = tenant.caller("supervisor", users=["ben"])
        refused(bound.query(SUBJECT, user_id="ana"), 403, "user_forbidden")
        assert bound.query(SUBJECT, user_id="ben").status_code == 200  # the control

    @pytest.mark.parametrize(
        "chosen", [{"role": "robot"}, {"user_id": ""}, {"user_id": 7}, {"run_id": ["r1"]}], ids=repr
    )
    def test_a_value_of_the_wrong_kind(self, supervisor: Caller, chosen: dict[str, object]) -> None:
        refused(supervisor.query(SUBJECT, **chosen), 422, "invalid_request")


def test_filters_together_keep_what_each_keeps(supervisor: Caller) -> None:
    kept = supervisor.remember("The hall is booked.", **KEPT)
    chosen = {
        **{name: KEPT[name] for name in ("agent_id", "run_id", "actor_id", "role", "thread_id", "type", "tags")},
        "visibility": "private", "category": "tasks",
        "user_id": "ana", "pinned": True, "importance_min": 4, "importance_max": 4,
        "updated_after": "2020-01-01", "updated_before": "2100-01-01",
    }  # fmt: skip
    near_misses = [different for _, different in NARROWING]
    for place, different in enumerate(near_misses):
        supervisor.remember(f"The hall has door {place}.", **(KEPT | different))
    assert len(supervisor.found(SUBJECT, top_k=50)) == len(near_misses) + 1
    assert supervisor.found(SUBJECT, filters=chosen, top_k=50) == [kept]


def test_a_filter_is_applied_before_the_top_k(supervisor: Caller) -> None:
    """Thirty better matches that the filter leaves out do not starve the one that it keeps."""
    for number in range(30):
        supervisor.remember(f"Hall hall hall booking of room {number}.", importance=5)
    kept = supervisor.remember("Somebody mentioned a hall once in passing.", importance=1)
    assert kept not in supervisor.found("hall booking", top_k=3)
    assert supervisor.found("hall booking", top_k=3, filters={"importance_max": 1}) == [kept]


def test_a_category_is_ranked_among_itself(tenant: Tenant) -> None:
    """Sixty better matches of another category do not starve three: the search returns as many as an exact one."""
    assert starved(tenant) == []


def test_neutral_values_narrow_nothing(supervisor: Caller) -> None:
    memory, turn = supervisor.remember("The hall is booked."), supervisor.say("The hall is booked.")["turn_id"]
    assert set(supervisor.found(SUBJECT, filters=NEUTRAL)) == {memory, turn}
    assert set(supervisor.found(SUBJECT, filters={})) == {memory, turn}


def test_names_are_compared_as_they_are_stored(supervisor: Caller) -> None:
    """A name is normalised when it is written, so it is when it is asked for."""
    memory = supervisor.remember(
        "The hall is booked.", user_id="Zoë\u0301  K", run_id=" r 1 ", thread_id="cafe\u0301", tags=["  Cafe\u0301 "]
    )
    for chosen in (
        {"user_id": "Zoë\u0301  K"}, {"user_id": "Zo\u00eb\u0301 K"}, {"run_id": " r 1 "}, {"run_id": "r 1"},
        {"thread_id": "cafe\u0301"}, {"thread_id": "caf\u00e9"}, {"tags": ["  Cafe\u0301 "]}, {"tags": ["CAF\u00c9"]},
    ):  # fmt: skip
        assert supervisor.found(SUBJECT, filters=chosen) == [memory], chosen
        listed = {"tag" if name == "tags" else name: value for name, value in chosen.items() if name != "run_id"}
        assert [m["id"] for m in supervisor.get("/v1/memories", **listed).json()["items"]] == [memory], chosen
    assert supervisor.ask("hall", thread_id="cafe\u0301", since_rev=0)["delta"]["rev"] == 1
    assert supervisor.get("/v1/threads/cafe\u0301/delta").json()["rev"] == 1


@pytest.mark.parametrize("key", ["categories", "users", "tenant_id", "layer", "state", "User_id", "text", ""])
def test_an_unknown_filter_key_is_refused(supervisor: Caller, key: str) -> None:
    problem = refused(supervisor.query(SUBJECT, filters={key: "ana"}), 422, "invalid_request")
    assert [error["field"] for error in problem["errors"]] == [f"body.filters.{key}"]
    assert supervisor.query(SUBJECT, filters={"user_id": "ana"}).status_code == 200


@pytest.mark.parametrize(
    "chosen",
    [
        {"role": "robot"}, {"type": "fact"}, {"importance_min": 0}, {"importance_max": 6}, {"importance_min": "2"},
        {"importance_min": 2.5}, {"importance_min": True}, {"tags": "venue"}, {"tags": [1]}, {"user_id": ""},
        {"types": "semantic"}, {"types": ["fact"]}, {"visibility": "secret"}, {"category": 7}, {"entity": [""]},
        {"user_id": 7}, {"user_id": ["ana"]}, {"pinned": "maybe"}, {"updated_after": "yesterday"},
        {"updated_after": "2025-13-01"}, {"updated_before": "infinity"}, {"updated_before": "20000-01-01"},
    ],
    ids=repr,
)  # fmt: skip
def test_a_value_of_the_wrong_kind_is_refused(supervisor: Caller, chosen: dict[str, object]) -> None:
    problem = refused(supervisor.query(SUBJECT, filters=chosen), 422, "invalid_request")
    assert problem["errors"][0]["field"].startswith(f"body.filters.{next(iter(chosen))}")


def test_the_request_of_the_contract_is_accepted(planner: Caller) -> None:
    """The sample request, word for word, with each of its neutral values."""
    kept = planner.remember("The deployment plan context is ready.", user_id="u1", role="assistant")
    planner.remember("The deployment plan context is pinned.", user_id="u1", role="assistant", pinned=True)
    body = {
        "agent": "planner", "query": "deployment plan context", "categories": ["tasks", "projects"],
        "filters": {"user_id": "u1", "agent_id": None, "run_id": None, "actor_id": None, "role": "assistant",
                    "thread_id": None, "type": None, "tags": [], "entity": None, "pinned": False, "importance_min": 1,
                    "importance_max": 5, "updated_after": "2025-07-01", "updated_before": None},
        "top_k": 3, "return": "bullets", "budget_tokens": 512, "threshold": 0.65, "since_rev": 41, "thread_id": "t9",
        "as_of": None, "ranking": None, "related": True, "explain": False,
    }  # fmt: skip
    response = planner.post("/v1/memory/query", body)
    assert response.status_code == 200, response.text
    assert [item["id"] for item in response.json()["items"]] == [kept]


def test_a_list_filters_by_the_same_rules(supervisor: Caller) -> None:
    kept = supervisor.remember("The hall is booked.", **KEPT)
    supervisor.remember("The hall is painted.", "goals", user_id="ben", type="episodic", thread_id="other")

    def listed(**params: Any) -> list[str]:  # noqa: ANN401 - query parameters
        return [memory["id"] for memory in supervisor.get("/v1/memories", **params).json()["items"]]

    assert len(listed()) == 2
    for params in (
        {"user_id": "ana"}, {"category": "tasks"}, {"type": "semantic"}, {"thread_id": THREAD}, {"tag": "venue"},
        {"tag": ["venue", "paid"]}, {"pinned": "true"},
    ):  # fmt: skip
        assert listed(**params) == [kept], params

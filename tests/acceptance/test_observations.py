"""Runs of tools are remembered, without their secrets, where the agent may write."""

import pytest

from support.callers import THREAD, USER, Caller, Json, Tenant, refused

RUN = {
    "user_id": USER,
    "tool": "search_flights",
    "arguments": {"to": "Oslo", "seats": 2, "api_key": "canary-secret"},
    "outcome": "Three direct flights were found. The cheapest leaves at nine. Sent: Bearer canary-secret-token",
    "files": ["flights.csv"],
}


def observe(caller: Caller, **more: object) -> Json:
    response = caller.post("/v1/observations", RUN | more)
    assert response.status_code in {200, 201}, response.text
    return dict(response.json())


def test_a_run_is_found_by_its_words(executor: Caller) -> None:
    told = observe(executor, thread_id=THREAD, run_id="r1")
    assert told["outcome"] == "created"
    record = executor.get(f"/v1/memories/{told['id']}").json()
    assert (record["type"], record["source"], record["category"]) == ("observation", "tool", "recent_activity")
    assert (
        record["content"]
        == "search_flights was run with to Oslo, seats 2, api_key [secret]: Three direct flights were found."
    )
    assert record["narrative"].startswith("Three direct flights were found. The cheapest leaves at nine.")
    assert (record["related_files"], record["tags"], record["importance"]) == (["flights.csv"], ["search_flights"], 1)
    assert record["attributes"] == {
        "tool": "search_flights", "arguments": {"to": "Oslo", "seats": 2, "api_key": "[secret]"},
    }  # fmt: skip
    assert told["id"] in executor.found("Which flights to Oslo were found?", filters={"type": "observation"})


def test_no_secret_is_kept_anywhere(tenant: Tenant, executor: Caller) -> None:
    told = observe(executor)
    shown = [executor.get(f"/v1/memories/{told['id']}{part}").text for part in ("", "/history", "/why")]
    kept = [str(row) for row in tenant.rows("SELECT * FROM memories WHERE tenant_id = %(tenant)s")]
    kept += [str(row) for row in tenant.rows("SELECT * FROM history WHERE tenant_id = %(tenant)s")]
    for text in (*shown, *kept):
        assert "canary" not in text
    assert any("flights" in text for text in kept)  # the words that are no secret are there


def test_the_same_run_is_one_memory_and_another_is_another(executor: Caller) -> None:
    first = observe(executor, external_id="call-1")
    assert observe(executor, external_id="call-1", outcome="Nothing was found.")["id"] == first["id"]
    assert observe(executor, external_id="call-2", outcome="Nothing was found.")["id"] != first["id"]
    assert executor.post("/v1/observations", RUN | {"external_id": "call-1"}).status_code == 200


def test_a_memory_s_own_tools_are_refused(executor: Caller) -> None:
    refused(executor.post("/v1/observations", RUN | {"tool": "memory_query"}), 422, "invalid_request")
    assert observe(executor)["outcome"] == "created"


def test_it_goes_where_the_agent_may_write(supervisor: Caller, planner: Caller, executor: Caller) -> None:
    told = observe(supervisor)  # no recent_activity, but activity
    assert supervisor.get(f"/v1/memories/{told['id']}").json()["category"] == "activity"
    problem = refused(planner.post("/v1/observations", RUN), 422, "invalid_request")
    assert "planner" in problem["detail"]
    named = observe(planner, category="tasks")
    assert planner.get(f"/v1/memories/{named['id']}").json()["category"] == "tasks"
    refused(planner.post("/v1/observations", RUN | {"category": "profile"}), 403, "category_forbidden")
    refused(executor.get(f"/v1/memories/{told['id']}"), 404, "not_found")


@pytest.mark.parametrize(
    "wrong",
    [
        {"tool": ""},
        {"tool": "a" * 101},
        {"tool": "x\ny"},
        {"outcome": ""},
        {"arguments": []},
        {"files": "a"},
        {"more": 1},
    ],
)
def test_what_is_no_run_is_refused(tenant: Tenant, executor: Caller, wrong: Json) -> None:
    refused(executor.post("/v1/observations", RUN | wrong), 422, "invalid_request")
    assert tenant.count("memories") == 0
    observe(executor)
    assert tenant.count("memories") == 1

"""The requests, formats and scenarios of implementation-spec, each named by its number there."""

import pytest

from support.callers import THREAD, USER, Caller, Tenant, refused
from support.consenting import REVIEW, decide, listed
from support.nights import Night, age, ago, state
from support.telling import events, say, texts, write

ALLOWLISTS = {
    "supervisor": ["profile", "goals", "preferences", "event", "activity", "relationships", "tasks"],
    "planner": ["goals", "tasks", "projects"],
    "stylist": ["preferences", "tone", "style"],
    "researcher": ["knowledge", "interests", "history"],
    "executor": ["tasks", "recent_activity", "constraints"],
}
DELTA = f"/v1/threads/{THREAD}/delta"


def test_1_the_header_of_a_thread(caller: Caller) -> None:
    """1: first line with the revision, at most three bullets with their marks; none without changes."""
    goal = write(caller, "The user wants to ship version 1 by August.", "goals", thread_id=THREAD, importance=2)["id"]
    since = caller.get(DELTA, user_id=USER).json()["rev"]
    assert caller.get(DELTA, user_id=USER, since=since).json()["header"] is None
    write(caller, "The user owns a piano.", thread_id=THREAD, importance=2)
    assert caller.patch(
        f"/v1/memories/{goal}", {"content": "The user wants to ship version 1 by September."}
    ).is_success
    lines = caller.get(DELTA, user_id=USER, since=since).json()["header"].splitlines()
    assert lines[0] == f"Memory updates since rev {since}:"
    assert "- +created: [Event] The user owns a piano. (imp=2)" in lines
    assert any(line.startswith("- ↑updated: [Goals] The user wants to ship version 1 by September.") for line in lines)
    for number in range(6):
        write(caller, f"Parcel {number} came to gate {number}.", type="episodic", thread_id=THREAD)
    many = caller.get(DELTA, user_id=USER, since=since).json()["header"].splitlines()
    assert len([line for line in many if line.startswith("- ")]) <= 4  # three, and one that counts the rest
    assert many[-1].endswith("more")


def test_2_edges_are_written_once(tenant: Tenant, caller: Caller) -> None:
    """2: neighbours above `link_min` are linked, and no pair twice."""
    first = write(caller, "The user plans a hiking trip in the Alps.")["id"]
    second = write(caller, "The user bought boots for the hiking trip in the Alps.")["id"]
    caller.patch(f"/v1/memories/{second}", {"importance": 4})
    edges = tenant.rows("SELECT from_id, to_id, relation_type, strength FROM relations WHERE tenant_id = %(tenant)s")
    ends = [(str(row["from_id"]), str(row["to_id"]), row["relation_type"]) for row in edges]
    assert len(ends) == len(set(ends)) > 0
    assert first in caller.get(f"/v1/memories/{second}/related").text


@pytest.mark.parametrize(("agent", "categories"), ALLOWLISTS.items(), ids=ALLOWLISTS)
def test_5_allowlists_are_enforced(tenant: Tenant, agent: str, categories: list[str]) -> None:
    """5: requested categories ⊆ allowlist[agent], else the request is refused whole."""
    key = tenant.caller(agent)
    assert key.query("plan", categories=categories).status_code == 200
    foreign = "knowledge" if agent != "researcher" else "tasks"
    refused(key.query("plan", categories=[categories[0], foreign]), 403, "category_forbidden")


def test_6_the_request_of_the_specification(tenant: Tenant, caller: Caller) -> None:
    """6: the request as it stands there, with real names; bullets are `{id, category, text}`."""
    task = write(caller, "The deployment plan moves to the second week of March.", "tasks", role="assistant")["id"]
    write(caller, "The deployment plan was drawn on a napkin.", "event")
    body = {
        "agent": "planner", "query": "deployment plan context", "categories": ["tasks", "projects"],
        "filters": {
            "user_id": USER, "agent_id": None, "run_id": None, "actor_id": None, "role": "assistant", "pinned": False,
            "importance_min": 1, "importance_max": 5, "updated_after": "2025-07-01", "updated_before": None,
        },
        "top_k": 3, "return": "bullets", "budget_tokens": 512,
    }  # fmt: skip
    planner = tenant.caller("planner")
    (item,) = planner.post("/v1/memory/query", body).json()["items"]
    assert (item["id"], item["category"]) == (task, "tasks")
    assert item["text"].startswith("[tasks] The deployment plan moves")
    refused(planner.post("/v1/memory/query", body | {"categories": ["tasks", "event"]}), 403, "category_forbidden")


def test_6_threshold_drops_what_is_unlike(caller: Caller) -> None:
    """6: `threshold`."""
    write(caller, "The deployment plan moves to March.", "tasks")
    assert caller.found("deployment plan", filters={"user_id": USER}, threshold=0.1)
    assert caller.found("deployment plan", filters={"user_id": USER}, threshold=0.99) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [("importance_min", 5), ("importance_max", 1), ("pinned", True), ("updated_before", "2025-07-01"), ("role", "user"),
     ("run_id", "r9"), ("actor_id", "nobody"), ("agent_id", "planner"), ("user_id", "ben")],
)  # fmt: skip
def test_6_1_each_filter_is_applied_by_the_server(caller: Caller, name: str, value: object) -> None:
    """6.1: the minimal keys; each narrows by itself."""
    memory = write(caller, "The deployment plan moves to March.", "tasks")["id"]
    assert caller.found("deployment plan", filters={"user_id": USER}) == [memory]  # the control
    assert caller.found("deployment plan", filters={"user_id": USER, name: value}) == []


def test_7_what_nobody_asks_for_is_deleted_restored_and_told_once(tenant: Tenant, caller: Caller, night: Night) -> None:
    """7: 60 days, unimportant and not pinned; purge after 30 days more; the delta tells it once."""
    idle = write(caller, "The user owns a piano.", importance=1, thread_id=THREAD)["id"]
    pinned = write(caller, "The user owns a boat.", importance=1, pinned=True)["id"]
    for each in (idle, pinned):
        age(tenant, each, 61, last_accessed=ago(61))
    since = caller.get(DELTA, user_id=USER).json()["rev"]
    night.run("ttl")
    assert (state(tenant, idle), state(tenant, pinned)) == ("soft_deleted", "active")
    told = caller.get(DELTA, user_id=USER, since=since).json()
    assert "~soft_deleted" in told["header"]
    assert caller.get(DELTA, user_id=USER, since=told["rev"]).json()["header"] is None
    assert texts(caller, filters={"user_id": USER}) == {"The user owns a boat."}
    assert say(caller, idle, "restore")["outcome"] == "restored"


def test_8_every_write_is_in_the_history(caller: Caller) -> None:
    """8: recent events of a memory, newest first."""
    memory = write(caller, "The user owns a piano.")["id"]
    caller.patch(f"/v1/memories/{memory}", {"importance": 4})
    caller.delete(f"/v1/memories/{memory}")
    say(caller, memory, "restore")
    assert events(caller, memory) == ["RESTORE", "DELETE", "UPDATE", "ADD"]


def test_9_what_is_too_long_is_trimmed_and_what_is_empty_refused(caller: Caller) -> None:
    """9: 280 characters and two sentences; the rest goes to the narrative (SPEC 6.3)."""
    sentence = "The user keeps a long list of plants that stand on the balcony of the flat. "
    record = caller.get(f"/v1/memories/{write(caller, sentence * 5)['id']}").json()
    assert len(record["content"]) <= 280
    assert record["narrative"]
    empty = {"user_id": USER, "category": "event", "content": "  "}
    assert caller.post("/v1/memories", empty).status_code == 422


def test_10_sensitive_fields_wait_and_benign_ones_corroborate(tenant: Tenant, caller: Caller) -> None:
    """10: the name waits for consent; nothing changes without it, and the decision is in the history."""
    reviewer = tenant.caller("supervisor", scopes=REVIEW)
    (drawn,) = caller.say("Please call me Ana.")["extracted"]
    assert drawn["action"] == "queued_for_consent"
    assert caller.get(f"/v1/users/{USER}/context").json()["items"] == []
    (waiting,) = listed(reviewer, state="pending")
    assert waiting["field"] == "preferred_name"
    memory = decide(reviewer, waiting["id"])["memory_id"]
    assert "CONSENT" in events(caller, memory)
    assert [each["value"] for each in caller.get(f"/v1/users/{USER}/context").json()["items"]] == ["Ana"]


def test_11_on_demand_recall_is_the_same_call(caller: Caller) -> None:
    """11: small `top_k` and budget."""
    write(caller, "The deployment plan moves to March.", "tasks")
    told = caller.ask("deployment plan", return_="bullets", top_k=3, budget_tokens=60)
    assert len(told["items"]) == 1
    assert told["usage"]["tokens"] <= 60


def test_12_procedures_come_only_when_asked_for(tenant: Tenant) -> None:
    """12: numbered steps, out of the ordinary context, for agents that execute."""
    executor = tenant.caller("executor")
    steps = ["Stop the server.", "Copy the folder.", "Start the server."]
    memory = write(executor, "How to copy the server.", "procedural", type="procedural", steps=steps)["id"]
    assert memory not in executor.found("copy the server", filters={"user_id": USER})
    assert executor.found("copy the server", categories=["procedural"], filters={"user_id": USER}) == [memory]


def test_13_several_facts_of_one_turn(caller: Caller) -> None:
    """13: at most three final writes for a turn."""
    drawn = caller.say("I love hiking. I hate mushrooms. I prefer trains. I own a boat. I play the cello.")["extracted"]
    assert 1 < len(drawn) <= 3


def test_14_operational_events(tenant: Tenant, caller: Caller) -> None:
    """14: what changed and when, by node and op, without words."""
    memory = write(caller, "The user owns a piano.")["id"]
    rows = tenant.rows("SELECT * FROM events WHERE tenant_id = %(tenant)s")
    (made,) = [row for row in rows if str(row["memory_id"]) == memory]
    assert (made["node"], made["status"], made["category"], made["user_id"]) == ("hotpath", "ok", "event", USER)
    assert "piano" not in str(rows)


def test_15_the_state_of_a_supervisor_is_stored_and_replaced(caller: Caller) -> None:
    """15: graph state, memory context, conversation and agents, one row for each user and thread."""
    body = {
        "user_id": USER, "graph": {"node": "plan"}, "memory": {"revision": 4},
        "conversation": [{"role": "user", "text": "Hello."}], "agents": {"planner": {"step": 1}},
    }  # fmt: skip
    path = f"/v1/checkpoints/{THREAD}"
    assert caller.send("PUT", path, json=body).status_code == 201
    assert caller.send("PUT", path, json=body | {"agents": {"planner": {"step": 2}}}).status_code == 200
    found = caller.get(path, user_id=USER).json()
    assert (found["graph"], found["agents"]) == ({"node": "plan"}, {"planner": {"step": 2}})

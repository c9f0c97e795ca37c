"""The behaviour that coop-observations describes, each test named by its section."""

from collections.abc import Sequence

import pytest

from support.callers import USER, Caller, Tenant, refused
from support.nights import age, state
from support.telling import events, texts, write

LEVELS = {
    "full": {"private", "shared", "social"},
    "inner": {"shared", "social"},
    "familiar": {"social"},
    "public": set(),
}


@pytest.mark.parametrize(("trust", "sees"), LEVELS.items(), ids=LEVELS)
def test_the_store_visibility_matrix(tenant: Tenant, caller: Caller, trust: str, sees: set[str]) -> None:
    """Trust Gating: which stores each level sees."""
    for store in ("private", "shared", "social"):
        write(caller, f"The {store} gate opens at seven.", visibility=store)
    reader = tenant.caller("supervisor", trust=trust)
    assert texts(reader, filters={"user_id": USER}) == {f"The {store} gate opens at seven." for store in sees}


@pytest.mark.parametrize(
    ("trust", "default", "beyond"),
    [("full", "private", None), ("inner", "shared", "private"), ("familiar", "social", "shared")],
)  # fmt: skip
def test_store_defaults_from_trust(tenant: Tenant, trust: str, default: str, beyond: str | None) -> None:
    """Trust Gating: where a write goes when no store is named, and that another store is refused."""
    writer = tenant.caller("supervisor", trust=trust)
    memory = write(writer, "The gate opens at seven.")["id"]
    assert state(tenant, memory, "visibility") == default
    if beyond is not None:
        body = {"user_id": USER, "category": "event", "content": "The gate shuts at nine.", "visibility": beyond}
        refused(writer.post("/v1/memories", body), 403, "visibility_forbidden")


def test_public_cannot_write(tenant: Tenant) -> None:
    """Trust Gating: its accessible stores are none."""
    body = {"user_id": USER, "category": "event", "content": "The gate opens at seven."}
    refused(tenant.caller("supervisor", trust="public").post("/v1/memories", body), 403, "visibility_forbidden")


def test_an_exact_duplicate_is_counted(tenant: Tenant, caller: Caller) -> None:
    """Dedup path: the same title and facts raise `mention_count` and `updated_at`."""
    said = {"title": "Deploy", "facts": ["It runs in Vienna.", "It has two machines."], "type": "episodic"}
    first = write(caller, "The service was deployed.", **said)
    before = state(tenant, first["id"], "updated_at")
    again = write(caller, "The service was deployed.", **said)
    assert (again["outcome"], again["id"], state(tenant, first["id"], "mention_count")) == ("duplicate", first["id"], 2)
    assert state(tenant, first["id"], "updated_at") > before
    other = write(caller, "The service was deployed.", **said | {"facts": ["It runs in Graz."], "title": "Graz"})
    assert other["id"] != first["id"]  # the control


def test_a_new_observation_has_a_history(caller: Caller) -> None:
    """Insert path: one `ADD`; other events are not future work here (SPEC 2)."""
    assert events(caller, write(caller, "The service was deployed.")["id"]) == ["ADD"]


def test_people_are_found_by_name_with_their_mentions(caller: Caller) -> None:
    """`people` and `memory_people`: whoever is mentioned is in the index, once."""
    write(caller, "Ana Ruiz plays chess with Bo Lind.")
    write(caller, "Bo Lind moved the meeting to Friday.", type="episodic")
    found = caller.get("/v1/entities", user_id=USER, name="Bo Lind").json()["items"]
    assert [each["name"] for each in found] == ["Bo Lind"]


def test_a_timeline_is_a_window_around_an_anchor(tenant: Tenant, caller: Caller) -> None:
    """Timeline: so many older and newer ones, in the order of time."""
    ids = [write(caller, f"Parcel {number} came to gate {number}.", type="episodic")["id"] for number in range(5)]
    for number, each in enumerate(ids):
        age(tenant, each, 5 - number)
    told = caller.get(f"/v1/memories/{ids[2]}/timeline", before=1, after=1).json()["items"]
    assert sorted(each["id"] for each in told) == sorted(ids[1:4])


def test_the_weighted_score_counts_recency_and_mentions(tenant: Tenant, caller: Caller) -> None:
    """Scoring without text: 0.7 · 1/(1 + days) + 0.3 · min(mentions/10, 1)."""
    stale, told, fresh = (write(caller, f"Gate {name} opens at seven.")["id"] for name in ("A1", "B2", "C3"))
    age(tenant, stale, 40, version=2)
    age(tenant, told, 40, mention_count=10, version=2)
    ask = {"ranking": "weighted", "filters": {"user_id": USER}, "related": False}
    assert ranked(caller.found(None, **ask), told, stale, fresh) == [fresh, told, stale]


def test_budget_and_limit_bound_what_comes(caller: Caller) -> None:
    """Token budgeting: accumulation stops; here an item that does not fit is skipped (SPEC 4)."""
    for number in range(12):
        write(caller, f"Parcel {number} came to gate {number}.", type="episodic")
    assert len(caller.found("parcel gate", filters={"user_id": USER})) == 10  # `limit` 10 when it is not named
    small = caller.ask("parcel gate", filters={"user_id": USER}, budget_tokens=30)
    assert 0 < len(small["items"]) < 10
    assert small["usage"]["tokens"] <= 30


def test_the_run_of_a_tool_is_an_observation(executor: Caller) -> None:
    """Automatic Tool Capture: name, arguments, outcome and file hints; memory's own tools are not captured."""
    run = {"user_id": USER, "tool": "edit_file", "arguments": {"path": "a.rs"}, "outcome": "ok", "files": ["a.rs"]}
    record = executor.get(f"/v1/memories/{executor.post('/v1/observations', run).json()['id']}").json()
    assert (record["type"], record["source"], record["tags"]) == ("observation", "tool", ["edit_file"])
    assert record["related_files"] == ["a.rs"]
    refused(executor.post("/v1/observations", run | {"tool": "memory_search"}), 422, "invalid_request")


def test_a_session_has_a_summary(caller: Caller) -> None:
    """`session_summaries`: request, outcome, decisions, open items."""
    caller.say("Please book the hall for Friday.")
    caller.say("The hall is booked for Friday.", role="assistant")
    told = caller.post("/v1/sessions/planning/close", {"user_id": USER})
    assert told.status_code in {200, 201}, told.text
    assert {"request", "outcome", "decisions", "open_items"} <= set(told.json()["summary"] or {})


def ranked(found: Sequence[str], *among: str) -> list[str]:
    """Those of some memories that were found, in their order."""
    return [each for each in found if each in among]

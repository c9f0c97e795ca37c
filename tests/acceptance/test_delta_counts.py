"""The delta header of a thread with more changes than are listed counts and ranks all of them."""

import pytest

from memplane.domain.policy.capabilities import Capability
from support.callers import THREAD, USER, Caller, Tenant, refused

WORDS = ("piano", "boat", "horse", "garden", "canoe", "kite", "lamp")


def header(caller: Caller, since: int) -> str | None:
    response = caller.get(f"/v1/threads/{THREAD}/delta", since=since, user_id=USER)
    assert response.status_code == 200, response.text
    told: str | None = response.json()["header"]
    return told


def test_more_changes_than_are_listed_are_counted(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    caller = tenant.caller("supervisor")
    known = caller.remember("The user owns a drum.", thread_id=THREAD)
    since = caller.get(f"/v1/threads/{THREAD}/delta", user_id=USER).json()["rev"]
    ids = [
        caller.remember(f"The user owns a {word}.", thread_id=THREAD, importance=1 + nth % 5)
        for nth, word in enumerate(WORDS)
    ]
    for nth, each in enumerate(ids[:4]):
        caller.send("PATCH", f"/v1/memories/{each}", json={"content": f"The user sold a {WORDS[nth]}."})
    assert caller.delete(f"/v1/memories/{ids[5]}").status_code == 200  # made and gone: nobody need know
    assert caller.delete(f"/v1/memories/{known}").status_code == 200
    caller.say("And the weather is fine.")
    whole = {at: header(caller, at) for at in (since, since + 1, since + 9)}
    assert (whole[since] or "").endswith("and 4 more")
    for most in (1, 2, 3, 5):
        monkeypatch.setattr("memplane.application.recall.threads.MAX_CHANGES", most)
        assert {at: header(caller, at) for at in whole} == whole
    assert header(caller, since + 1_000) is None


def test_of_what_may_not_be_read_nothing_is_counted(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    supervisor, planner = tenant.caller("supervisor"), tenant.caller("planner", trust="inner")
    for word in WORDS:
        supervisor.remember(f"The user owns a {word}.", "relationships", thread_id=THREAD)
    supervisor.remember("The user books the hall.", "tasks", thread_id=THREAD, visibility="shared")
    monkeypatch.setattr("memplane.application.recall.threads.MAX_CHANGES", 1)
    assert (header(supervisor, 0) or "").endswith("and 5 more")  # the control
    assert header(tenant.caller("supervisor", users=[USER]), 0) == header(supervisor, 0)
    bound = tenant.caller("supervisor", users=["ben"])
    refused(bound.get(f"/v1/threads/{THREAD}/delta", since=0, user_id=USER), 403, "user_forbidden")
    assert bound.get(f"/v1/threads/{THREAD}/delta", since=0).json()["header"] is None
    assert (header(planner, 0) or "").splitlines()[1:] == ["- +created: [Tasks] The user books the hall. (imp=3)"]


@pytest.mark.needs(Capability.SEVERAL_TENANTS)
def test_of_another_tenant_s_thread_of_the_same_name_nothing_is_counted(
    tenant: Tenant, other_tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, theirs = tenant.caller("supervisor"), other_tenant.caller("supervisor")
    monkeypatch.setattr("memplane.application.recall.threads.MAX_CHANGES", 1)
    for word in WORDS:
        theirs.remember(f"The user owns a {word}.", thread_id=THREAD)
    mine.remember("The user books the hall.", thread_id=THREAD)
    assert (header(mine, 0) or "").splitlines()[1:] == ["- +created: [Tasks] The user books the hall. (imp=3)"]
    assert (header(theirs, 0) or "").endswith("and 4 more")  # the control

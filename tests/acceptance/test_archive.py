"""What was archived for want of room: out of every answer, and found by whoever searches the archive."""

import pytest

from support.callers import THREAD, USER, Caller, Tenant, refused

HERE = {"user_id": USER}


@pytest.fixture
def shelved(tenant: Tenant, supervisor: Caller) -> tuple[str, str]:
    """Two memories of the hall, of which the second is archived."""
    here = supervisor.remember("The hall by the river is booked.", "tasks")
    away = supervisor.remember("The hall on the hill was too small.", "tasks")
    supervisor.say("Which hall was too small?")
    tenant.rows("UPDATE memories SET state = 'archived' WHERE id = %(id)s AND tenant_id = %(tenant)s", id=away)
    return here, away


def test_the_archive_is_searched_when_it_is_asked_for(supervisor: Caller, shelved: tuple[str, str]) -> None:
    here, away = shelved
    for _ in range(3):  # also once the scope is remembered
        current = supervisor.found("hall", filters=HERE)
        assert here in current
        assert away not in current
        assert supervisor.found("hall", filters=HERE, archive=True) == [away], "neither turns nor what is current"
    assert supervisor.found(None, filters=HERE, archive=True) == [away], "without words, the newest"


def test_who_may_not_see_it_finds_it_in_no_archive(
    tenant: Tenant, supervisor: Caller, shelved: tuple[str, str]
) -> None:
    _, away = shelved
    assert tenant.caller("stylist").found("hall", filters=HERE, archive=True) == []
    assert tenant.caller("supervisor", users=["somebody"]).query("hall", filters=HERE, archive=True).status_code == 403
    assert supervisor.found("hall", filters=HERE, archive=True) == [away]


def test_what_comes_back_leaves_the_archive(supervisor: Caller, shelved: tuple[str, str]) -> None:
    _, away = shelved
    assert supervisor.found("hall", filters=HERE, archive=True) == [away]
    assert supervisor.post(f"/v1/memories/{away}/restore", {}).status_code == 200
    assert supervisor.found("hall", filters=HERE, archive=True) == []
    assert away in supervisor.found("hall", filters=HERE)


@pytest.mark.usefixtures("shelved")
def test_the_changes_of_a_thread_are_told_all_the_same(supervisor: Caller) -> None:
    supervisor.remember("The hall has a stage.", "tasks", thread_id=THREAD)
    answers = [
        supervisor.ask("hall", thread_id=THREAD, since_rev=0, filters=HERE, archive=each) for each in (True, False)
    ]
    assert answers[0]["delta"] == answers[1]["delta"]
    assert "stage" in answers[0]["delta"]["header"]


def test_there_is_no_archive_of_another_moment(supervisor: Caller) -> None:
    moment = {"believed_at": "2026-01-01T00:00:00Z"}
    problem = refused(supervisor.query("hall", archive=True, as_of=moment), 422, "invalid_request")
    assert "archive" in str(problem)

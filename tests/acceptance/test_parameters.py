"""What stands after the question mark: what a route does not know is refused, and so is a value given twice."""

import pytest

from support.callers import USER, Caller, refused

LISTS = ("/v1/memories", "/v1/entities")


@pytest.mark.parametrize("path", LISTS)
def test_a_misspelt_filter_is_refused_by_its_name(supervisor: Caller, path: str) -> None:
    """Passed over, the answer would be about everybody."""
    assert supervisor.send("GET", f"{path}?user_id={USER}").status_code == 200
    problem = refused(supervisor.send("GET", f"{path}?userid={USER}"), 422, "invalid_request")
    assert problem["field"] == "userid"
    assert "'userid'" in problem["detail"]
    assert "user_id" in problem["detail"]


@pytest.mark.parametrize("path", LISTS)
def test_of_two_values_neither_is_guessed(supervisor: Caller, path: str) -> None:
    problem = refused(supervisor.send("GET", f"{path}?user_id={USER}&user_id=somebody"), 422, "invalid_request")
    assert problem["field"] == "user_id"
    assert "more than once" in problem["detail"]


def test_a_list_takes_several_values(supervisor: Caller) -> None:
    supervisor.remember("The hall is booked.", "tasks", tags=["hall", "vienna"])
    found = supervisor.send("GET", f"/v1/memories?user_id={USER}&tag=hall&tag=vienna&category=tasks&category=profile")
    assert found.status_code == 200
    assert len(found.json()["items"]) == 1


def test_a_route_without_parameters_takes_none(supervisor: Caller) -> None:
    refused(supervisor.send("POST", "/v1/memory/query?top_k=3", json={"query": "hall"}), 422, "invalid_request")
    assert supervisor.send("POST", "/v1/memory/query", json={"query": "hall"}).status_code == 200


def test_without_a_key_nothing_is_told_of_parameters(supervisor: Caller) -> None:
    told = supervisor.send("GET", "/v1/memories?userid=a", headers={"Authorization": "Bearer mp_no"})
    refused(told, 401, "unauthenticated")

"""`/v1/admin/policy`: what is in force, whether a candidate could be, and loading the files again."""

from collections.abc import Callable
from pathlib import Path

import pytest

from memplane.adapters.policy import load_policy, shipped_policies
from memplane.domain.identity.principal import KeyScope
from support.callers import Caller, Tenant, refused
from support.serving import RunningServer

PATH = "/v1/admin/policy"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Policy files of one server's own."""
    for path in shipped_policies().glob("*.yaml"):
        (tmp_path / path.name).write_text(path.read_text())
    return tmp_path


@pytest.fixture
def admin(start_server: Callable[..., RunningServer], folder: Path) -> Caller:
    """An administrator of that server."""
    return Tenant(start_server(policies=folder)).caller(None, scopes=(KeyScope.ADMIN,))


def rewritten(folder: Path, old: str, new: str) -> str:
    """The text of the categories with something else in it."""
    text = (folder / "categories.yaml").read_text()
    assert old in text
    return text.replace(old, new)


def test_the_policy_in_force_is_shown(admin: Caller, folder: Path) -> None:
    found = admin.get(PATH).json()
    policy = load_policy(folder)
    assert (found["policy"], found["errors"]) == (policy.digest, [])
    assert {each["name"]: each["text"] for each in found["files"]} == {
        path.name: path.read_text() for path in folder.glob("*.yaml")
    }
    assert [each["agent"] for each in found["agents"]] == list(policy.allowlists)
    planner = admin.get(PATH, agent="planner").json()
    (shown,) = planner["agents"]
    assert ([each["name"] for each in shown["categories"] if each["read"]], planner["files"]) == (
        ["goals", "tasks", "projects"], [],
    )  # fmt: skip
    refused(admin.get(PATH, agent="nobody"), 422, "invalid_request")


def test_a_candidate_is_checked_and_changes_nothing(admin: Caller, folder: Path) -> None:
    before = admin.get(PATH).json()["policy"]
    good = admin.post(
        f"{PATH}/check", {"files": {"categories.yaml": rewritten(folder, "rag_length: 30", "rag_length: 31")}}
    )
    assert (good.status_code, good.json()["ok"], good.json()["errors"]) == (200, True, [])
    assert good.json()["policy"] != before
    bad = admin.post(
        f"{PATH}/check",
        {"files": {"categories.yaml": rewritten(folder, "rag_length: 30", "rag_length: none"), "more.yaml": "a: 1"}},
    ).json()
    assert (bad["ok"], bad["policy"]) == (False, None)
    wrong = {each["file"]: each for each in bad["errors"]}
    assert set(wrong) == {"categories.yaml", "more.yaml"}
    assert wrong["categories.yaml"]["key"].endswith(".rag_length")
    assert wrong["categories.yaml"]["line"] > 1
    assert admin.get(PATH).json()["policy"] == before
    assert (folder / "categories.yaml").read_text() == (shipped_policies() / "categories.yaml").read_text()


def test_the_files_are_loaded_again(admin: Caller, folder: Path) -> None:
    before = admin.get(PATH).json()["policy"]
    same = admin.post(f"{PATH}/reload", None).json()
    assert same == {"policy": before, "before": before, "changed": False}
    text = rewritten(folder, "rag_length: 30", "rag_length: 31")
    (folder / "categories.yaml").write_text(text)
    done = admin.post(f"{PATH}/reload", None).json()
    assert done["policy"] == admin.get(PATH).json()["policy"] == load_policy(folder).digest != before


def test_wrong_files_leave_the_policy_as_it_is(admin: Caller, folder: Path) -> None:
    before = admin.get(PATH).json()["policy"]
    (folder / "categories.yaml").write_text(rewritten(folder, "rag_length: 30", "rag_length: none"))
    problem = refused(admin.post(f"{PATH}/reload", None), 409, "policy_rejected")
    assert problem["policy"] == before
    assert problem["errors"][0]["file"] == "categories.yaml"
    shown = admin.get(PATH).json()
    assert shown["policy"] == before
    assert shown["errors"] == problem["errors"]


@pytest.mark.parametrize("bound", [{"users": ["ana"]}, {"trust": "inner"}], ids=str)
def test_the_policy_is_for_those_who_speak_for_all(admin: Caller, tenant: Tenant, bound: dict[str, object]) -> None:
    caller = tenant.caller(None, scopes=tuple(KeyScope), **bound)  # type: ignore[arg-type]  # of a key
    for answer in (
        caller.get(PATH),
        caller.post(f"{PATH}/check", {"files": {"trust.yaml": ""}}),
        caller.post(f"{PATH}/reload", None),
    ):
        assert answer.status_code == 403, answer.text
    assert admin.get(PATH).status_code == 200

"""`memplane reembed`, for several tenants of one database."""

import json

import pytest

from integration.commands import Result, run
from memplane.application.keys.api_keys import NewKey
from memplane.domain.policy.policy import Trust
from support.serving import RunningApplication

OLD, NEW, UNKNOWN = "wordllama-256", "wordllama-128", "wordllama-64"


@pytest.fixture
def tenants(application: RunningApplication) -> list[str]:
    names = ["first", "second", "third"]
    for name in names:
        application.run(application.wired.keys.create(name, NewKey("supervisor", Trust.FULL)))
    return names


def reembed(application: RunningApplication, *arguments: str, to: str | None = NEW) -> Result:
    following = {} if to is None else {"MEMPLANE_NEXT_EMBEDDING_MODEL": to}
    return run("reembed", *arguments, environment={"MEMPLANE_DATABASE_URL": application.database.url, **following})


def phases(application: RunningApplication) -> dict[str, str | None]:
    done = reembed(application, "status", "--every-tenant", "--json")
    assert done.code == 0, done.err
    return {each["tenant"]: each["phase"] for each in json.loads(done.out)["items"]}


def test_a_tenant_that_needs_nothing_keeps_no_other_from_it(
    application: RunningApplication, tenants: list[str]
) -> None:
    assert phases(application) == dict.fromkeys(tenants)
    assert reembed(application, "start", "--tenant", "second").code == 0
    done = reembed(application, "start", "--every-tenant")
    assert (done.code, phases(application)) == (0, dict.fromkeys(tenants, "filling"))
    assert "second: a change of the embedding model is under way" in done.err
    assert "first" not in done.err


def test_where_none_can_be_changed_the_command_fails(application: RunningApplication, tenants: list[str]) -> None:
    done = reembed(application, "start", "--every-tenant", to=None)
    assert done.code != 0
    assert "MEMPLANE_NEXT_EMBEDDING_MODEL" in done.err
    assert phases(application) == dict.fromkeys(tenants)


def test_for_one_tenant_a_refusal_is_an_error(application: RunningApplication, tenants: list[str]) -> None:
    assert reembed(application, "start", "--tenant", tenants[0]).code == 0
    done = reembed(application, "start", "--tenant", tenants[0])
    assert done.code != 0
    assert "under way" in done.err
    assert phases(application) == {tenants[0]: "filling"} | dict.fromkeys(tenants[1:])

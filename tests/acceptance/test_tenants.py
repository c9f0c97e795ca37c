"""Nothing crosses from one tenant to another, on any route: a foreign id is answered as an absent one."""

from uuid import uuid4

import httpx2
import psycopg
import pytest

from memplane.domain.policy.capabilities import Capability
from support.access_matrix import Access, Tenants, routes
from support.callers import THREAD, USER, Caller, Tenant

WORDS = "release"
pytestmark = pytest.mark.needs(Capability.SEVERAL_TENANTS)


@pytest.fixture
def stranger(other_tenant: Tenant) -> Caller:
    """The supervisor of another tenant, whose user, thread and words are the same."""
    return other_tenant.caller("supervisor")


def told(response: httpx2.Response) -> tuple[int, dict[str, str], object]:
    """Everything that an answer says, but for what every answer says anew."""
    headers = {name: value for name, value in response.headers.items() if name not in ("date", "etag", "x-request-id")}
    body = response.json()
    body.pop("request_id", None)  # two requests have two ids, whatever their answers
    return response.status_code, headers, body


@pytest.mark.parametrize("access", routes(tenants=Tenants.ABSENT), ids=str)
def test_a_foreign_id_is_answered_as_an_absent_one(supervisor: Caller, stranger: Caller, access: Access) -> None:
    theirs = stranger.remember("Ana Ruiz moves the release.", thread_id=THREAD)
    mine = supervisor.remember("Ana Ruiz moves the release.", thread_id=THREAD)
    supervisor.remember("Cleo Novak orders champagne.", thread_id=THREAD)
    other = supervisor.entity("Cleo Novak") if access.entity else ""

    def record(caller: Caller, memory: str) -> str:
        if access.turn:
            return str(caller.say("Ana Ruiz moves the release.")["turn_id"])
        return caller.entity("Ana Ruiz") if access.entity else memory

    for caller, memory in ((supervisor, mine), (stranger, theirs)) if access.deleted else ():
        assert caller.delete(f"/v1/memories/{memory}").status_code == 200
    before = stranger.get(f"/v1/memories/{theirs}/why").json()["memory"]

    def tried(target: str) -> httpx2.Response:
        return supervisor.send(access.method, access.url(target), **access.request("tasks", other))

    foreign, absent = tried(record(stranger, theirs)), tried(str(uuid4()))
    assert told(foreign) == told(absent)
    assert foreign.status_code == 404
    assert tried(record(supervisor, mine)).status_code == 200
    assert stranger.get(f"/v1/memories/{theirs}/why").json()["memory"] == before  # and nothing was done to it


@pytest.mark.parametrize("access", routes(tenants=Tenants.LEFT_OUT), ids=str)
def test_an_answer_has_the_callers_own_rows_only(supervisor: Caller, stranger: Caller, access: Access) -> None:
    """The answer does not change by what another tenant holds under the same names."""

    def answer(caller: Caller) -> httpx2.Response:
        return caller.send(access.method, access.url(""), **access.request("tasks"))

    before = told(answer(supervisor))
    theirs = stranger.remember("Ana Ruiz moves the release to October.", thread_id=THREAD)
    stranger.say("The release moves to October.")
    assert told(answer(supervisor)) == before
    mine = supervisor.remember("Ana Ruiz moves the release to November.", thread_id=THREAD)
    if access.entity:
        theirs, mine = stranger.entity("Ana Ruiz"), supervisor.entity("Ana Ruiz")
    assert theirs in answer(stranger).text
    assert mine in answer(supervisor).text
    assert theirs not in answer(supervisor).text


@pytest.mark.parametrize("access", routes(tenants=Tenants.NOT_WRITTEN), ids=str)
def test_what_is_written_is_the_callers_own(
    tenant: Tenant, other_tenant: Tenant, supervisor: Caller, stranger: Caller, access: Access
) -> None:
    """The same words and names in two tenants are two records, each the first of its kind."""
    request = access.request("tasks")
    for caller, mine, others in ((stranger, other_tenant, tenant), (supervisor, tenant, other_tenant)):
        before = others.count("memories", "turns")
        assert caller.send(access.method, access.url(""), **request).status_code == 201
        assert mine.count("memories", "turns") == 1
        assert others.count("memories", "turns") == before


def test_naming_another_tenant_is_no_way_in(supervisor: Caller, stranger: Caller, other_tenant: Tenant) -> None:
    theirs = stranger.remember("The release moves to October.")
    for name in ("tenant", "tenant_id"):
        assert supervisor.query(WORDS, **{name: other_tenant.name}).status_code == 422
        assert supervisor.query(WORDS, filters={name: other_tenant.name}).status_code == 422
        assert theirs not in supervisor.get("/v1/memories", **{name: other_tenant.name}).text
        header = {f"X-{name.replace('_', '-')}": other_tenant.name}
        assert theirs not in supervisor.send("POST", "/v1/memory/query", json={"query": WORDS}, headers=header).text
    assert stranger.found(WORDS) == [theirs]


def test_a_foreign_cursor_is_only_a_place_in_time(supervisor: Caller, stranger: Caller) -> None:
    mine = supervisor.remember("The release moves to October.")
    theirs = stranger.remember("The release moves to October.")
    later = supervisor.remember("The champagne is ordered.")
    page = supervisor.get("/v1/memories", cursor=theirs).json()
    assert [item["id"] for item in page["items"]] == [mine]
    assert [item["id"] for item in supervisor.get("/v1/memories").json()["items"]] == [later, mine]


def test_external_ids_are_each_tenants_own(supervisor: Caller, stranger: Caller) -> None:
    theirs = stranger.remember("The release moves to October.", external_id="crm-1")
    mine = supervisor.remember("The budget is approved.", external_id="crm-1")
    assert mine != theirs
    said = [caller.say("Hello.", external_id="m-1") for caller in (supervisor, stranger)]
    assert said[0]["turn_id"] != said[1]["turn_id"]
    assert [turn["seq"] for turn in said] == [1, 1]


def test_relations_and_entities_do_not_reach_across(
    tenant: Tenant, other_tenant: Tenant, supervisor: Caller, stranger: Caller
) -> None:
    """Rows that no path writes: a relation and an entity of this tenant that name another tenant's memory."""
    theirs = stranger.remember("The release moves to October.")
    mine = supervisor.remember("The release moves to November.")
    near = supervisor.remember("Champagne is ordered.")
    tenant.relate(mine, near)
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        tenant.relate(mine, theirs)
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        tenant.mention(theirs, "Ana")
    assert supervisor.ask("November", threshold=0.2)["items"][0]["id"] == mine
    assert {item["id"] for item in supervisor.ask("release")["items"]} == {mine, near}
    other_tenant.mention(theirs, "Ana")
    assert supervisor.found("release", filters={"entity": "Ana"}) == []
    assert stranger.found("release", filters={"entity": "Ana"}) == [theirs]


@pytest.mark.needs(Capability.ROW_LEVEL_SECURITY)
def test_row_level_security_stands_behind_the_predicate(tenant: Tenant, supervisor: Caller, stranger: Caller) -> None:
    """The application's own role sees nothing without a tenant, and one tenant's rows with it."""
    supervisor.remember("The release moves to November.", user_id=USER)
    stranger.remember("The release moves to October.", user_id=USER)
    seen = tenant.rows_as_application("SELECT DISTINCT tenant_id FROM memories")
    assert seen == [{"tenant_id": tenant.name}]
    assert tenant.rows_as_application("SELECT 1 FROM memories", named=False) == []

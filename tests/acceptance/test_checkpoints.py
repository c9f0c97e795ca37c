"""The state of supervisors over HTTP: stored, read, deleted, by one's own users alone."""

import httpx2
import pytest

from memplane.domain.identity.principal import KeyScope
from support.access_matrix import Access, Tenants, routes
from support.callers import THREAD, USER, Caller, Tenant, refused

PATH = f"/v1/checkpoints/{THREAD}"
STATE = {
    "memory": {"context": "Ana ships in September.", "revision": 44},
    "conversation": [{"role": "user", "text": "The release moves to September."}],
    "agents": {"planner": {"waiting_for": "the date", "retries": 1.5, "done": [True, None]}},
}
SECRET = {"memory": {"context": "the canary sings"}}


def put(caller: Caller, body: object, path: str = PATH, **headers: str) -> httpx2.Response:
    return caller.send(
        "PUT", path, json=body, headers={name.replace("_", "-"): value for name, value in headers.items()}
    )


def test_a_state_is_stored_and_read_back(supervisor: Caller) -> None:
    made = put(supervisor, {"user_id": USER, **STATE})
    assert made.status_code == 201, made.text
    read = supervisor.get(PATH, user_id=USER)
    assert read.status_code == 200
    assert read.json() == made.json()
    assert read.headers["ETag"] == made.headers["ETag"] == '"1"'
    assert {name: read.json()[name] for name in STATE} == STATE
    assert (read.json()["user_id"], read.json()["thread_id"], read.json()["graph"]) == (USER, THREAD, None)


def test_sections_that_are_left_out_stay(supervisor: Caller) -> None:
    put(supervisor, {"user_id": USER, **STATE})
    changed = put(supervisor, {"user_id": USER, "agents": {}, "conversation": None})
    assert changed.status_code == 200
    assert (changed.json()["version"], changed.json()["memory"]) == (2, STATE["memory"])
    assert (changed.json()["agents"], changed.json()["conversation"]) == ({}, None)


def test_a_state_is_changed_and_deleted_at_its_version_alone(supervisor: Caller) -> None:
    refused(put(supervisor, {"user_id": USER, **STATE}, If_Match='"1"'), 412, "version_conflict")
    assert supervisor.get(PATH, user_id=USER).status_code == 404  # what was refused left nothing
    assert put(supervisor, {"user_id": USER, **STATE}, If_Match="0").status_code == 201
    assert refused(put(supervisor, {"user_id": USER}, If_Match="0"), 412, "version_conflict")["version"] == 1
    assert put(supervisor, {"user_id": USER, "agents": {}}, If_Match='"1"').json()["version"] == 2
    refused(supervisor.delete(f"{PATH}?user_id={USER}", If_Match='"1"'), 412, "version_conflict")
    assert supervisor.delete(f"{PATH}?user_id={USER}", If_Match='"2"').json()["outcome"] == "deleted"
    refused(supervisor.get(PATH, user_id=USER), 404, "not_found")
    refused(supervisor.delete(f"{PATH}?user_id={USER}"), 404, "not_found")


def test_the_user_may_be_left_out_where_there_is_one(supervisor: Caller, tenant: Tenant) -> None:
    refused(put(supervisor, STATE), 422, "user_required")
    put(supervisor, {"user_id": USER, **STATE})
    assert supervisor.get(PATH).json()["user_id"] == USER
    put(supervisor, {"user_id": "bo", **STATE})
    refused(supervisor.get(PATH), 422, "user_required")
    refused(supervisor.delete(PATH), 422, "user_required")
    bound = tenant.caller("supervisor", users=("bo",))
    assert bound.get(PATH).json()["user_id"] == "bo"
    assert put(bound, {"agents": {}}).json()["user_id"] == "bo"


def test_a_key_reaches_its_users_alone(supervisor: Caller, tenant: Tenant) -> None:
    put(supervisor, {"user_id": USER, **SECRET})
    bound = tenant.caller("supervisor", users=("bo",))
    refused(bound.get(PATH, user_id=USER), 403, "user_forbidden")
    refused(put(bound, {"user_id": USER, "memory": {}}), 403, "user_forbidden")
    refused(bound.delete(f"{PATH}?user_id={USER}"), 403, "user_forbidden")
    refused(bound.get(PATH), 404, "not_found")
    assert supervisor.get(PATH, user_id=USER).json()["memory"] == SECRET["memory"]  # it is there for who may see it


@pytest.mark.parametrize("access", routes(tenants=Tenants.THREADS), ids=str)
@pytest.mark.needs("several_tenants")
def test_a_thread_of_another_tenant_is_not_there(access: Access, supervisor: Caller, other_tenant: Tenant) -> None:
    put(supervisor, {"user_id": USER, **SECRET})
    stranger = other_tenant.caller("supervisor")
    answer = stranger.send(access.method, access.url(""), **access.request(""))
    assert answer.status_code == (201 if access.method == "PUT" else 404), answer.text
    assert "canary" not in answer.text
    assert supervisor.get(PATH, user_id=USER).json()["memory"] == SECRET["memory"]
    assert supervisor.get(PATH, user_id=USER).json()["version"] == 1


def test_a_key_needs_the_scope(tenant: Tenant, supervisor: Caller) -> None:
    put(supervisor, {"user_id": USER, **STATE})
    reader = tenant.caller("supervisor", scopes=(KeyScope.READ, KeyScope.WRITE))
    refused(reader.get(PATH, user_id=USER), 403, "scope_forbidden")
    refused(put(reader, {"user_id": USER, **STATE}), 403, "scope_forbidden")
    only = tenant.caller("supervisor", scopes=(KeyScope.CHECKPOINT,))
    assert only.get(PATH, user_id=USER).status_code == 200
    refused(only.query("anything"), 403, "scope_forbidden")


@pytest.mark.parametrize(
    "body",
    [
        '{"user_id": "ana", "graph": {"a": "\\u0000"}}',
        '{"user_id": "ana", "graph": {"a\\u0000": 1}}',
        '{"user_id": "ana", "agents": {"a": ["\\ud800"]}}',
        '{"user_id": "ana", "agents": {"a": 1e999}}',
        '{"user_id": "ana", "agents": {"a": NaN}}',
        '{"user_id": "ana", "agents": []}',
        '{"user_id": "ana", "conversation": ["hello"]}',
        '{"user_id": "ana", "checkpoint": {}}',
        '{"user_id": "ana\\u0000"}',
    ],
)
def test_what_cannot_be_kept_is_refused(supervisor: Caller, body: str) -> None:
    response = supervisor.send("PUT", PATH, content=body.encode(), headers={"Content-Type": "application/json"})
    assert response.status_code == 422, response.text
    refused(supervisor.get(PATH, user_id=USER), 404, "not_found")


def test_too_much_is_refused(supervisor: Caller) -> None:
    refused(put(supervisor, {"user_id": USER, "agents": {str(n): n for n in range(201)}}), 422, "invalid_request")
    assert put(supervisor, {"user_id": USER, "agents": {str(n): n for n in range(200)}}).status_code == 201
    huge = {"user_id": USER, "memory": {"context": "x" * 20_000_000}}
    refused(put(supervisor, huge), 413, "body_too_large")


def test_names_of_threads_have_no_meaning_but_their_own(supervisor: Caller) -> None:
    names = ["a", "a/b", "a%2Fb", "1", "12", "_", "%", "a.b", "ä ö", "..", "'; --"]
    for number, name in enumerate(names):
        path = "/v1/checkpoints/" + "".join(f"%{byte:02X}" for byte in name.encode())
        assert put(supervisor, {"user_id": USER, "agents": {"n": number}}, path).status_code == 201, name
    for number, name in enumerate(names):
        path = "/v1/checkpoints/" + "".join(f"%{byte:02X}" for byte in name.encode())
        assert supervisor.get(path, user_id=USER).json()["agents"] == {"n": number}


def test_what_cannot_be_stored_is_told_in_plain_words(supervisor: Caller) -> None:
    answer = put(supervisor, {"user_id": USER, "agents": {"planner": "a\x00b"}})
    assert refused(answer, 422, "invalid_request")["detail"] == "body.agents: holds a NUL character or a lone surrogate"


class TestWhoseConversation:
    """A state holds a conversation word for word: it is for those who may read, and store, conversations."""

    @pytest.mark.parametrize("trust", ["inner", "familiar", "public"])
    def test_one_who_is_trusted_less_neither_reads_nor_changes_a_state(
        self, tenant: Tenant, supervisor: Caller, trust: str
    ) -> None:
        put(supervisor, {"user_id": USER, **SECRET})
        before = supervisor.get(PATH, user_id=USER).json()
        _kept_out(tenant.caller("supervisor", trust=trust), "visibility_forbidden")
        assert supervisor.get(PATH, user_id=USER).json() == before

    def test_an_agent_that_reads_no_conversation_neither_reads_nor_changes_a_state(
        self, tenant: Tenant, supervisor: Caller
    ) -> None:
        put(supervisor, {"user_id": USER, **SECRET})
        before = supervisor.get(PATH, user_id=USER).json()
        _kept_out(tenant.caller("planner"), "category_forbidden")
        _kept_out(tenant.caller(None, act_for=["planner", "stylist"]), "category_forbidden")
        assert supervisor.get(PATH, user_id=USER).json() == before

    def test_one_who_acts_for_an_agent_that_reads_it_may(self, tenant: Tenant, supervisor: Caller) -> None:
        put(supervisor, {"user_id": USER, **SECRET})
        for act_for in (["supervisor"], ["*"]):
            assert tenant.caller("planner", act_for=act_for).get(PATH, user_id=USER).status_code == 200


def _kept_out(caller: Caller, code: str) -> None:
    """Every call is refused alike, for a thread that is there and for one that is not."""
    for path in (PATH, f"{PATH}-absent"):
        answers = [
            caller.get(path, user_id=USER),
            put(caller, {"user_id": USER, "memory": {"context": "forged"}}, path),
            caller.delete(f"{path}?user_id={USER}"),
        ]
        for answer in answers:
            assert "canary" not in str(refused(answer, 403, code))

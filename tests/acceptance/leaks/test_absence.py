"""An id that is not the caller's is answered byte for byte as one that is nowhere, on every route that takes one."""

from collections.abc import Iterator
from uuid import uuid4

import pytest

from memplane.domain.memory.memory import new_id
from support.access_matrix import ACCESS, Access
from support.leaks.canaries import Record
from support.leaks.contents import contents
from support.leaks.matrix import REASONS, Matrix
from support.leaks.oracle import LISTED, Voice
from support.leaks.wire import Answer
from support.leaks.world import World

OF_ONE = [access for access in ACCESS if "{memory_id}" in access.path or "{entity_id}" in access.path]
TELLS_OF_THE_END = {"/history", "/why", "/restore"}
CALLERS = {
    ("planner", "full", None), ("planner", "inner", None), ("planner", "familiar", None),
    ("supervisor", "full", ("ana",)), ("supervisor", "public", None), ("auditor", "full", None),
    ("stranger", "full", None),
}  # fmt: skip
HEADERS: list[dict[str, str]] = [{}, {"If-Match": "1"}, {"Idempotency-Key": "{key}"}]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def voices(world: World) -> list[Voice]:
    """Callers, each kept from something else, and those of other tenants."""
    first = world.tenants[0].name
    return [
        voice
        for voice in world.voices
        if (voice.agent, voice.trust, voice.users) in CALLERS or (voice.tenant != first and voice.agent == "planner")
    ]


def told(answer: Answer, *ids: str) -> tuple[int, dict[str, str], bytes]:
    """Everything that an answer says, but for when, the id that was asked for, and the request's own."""
    body = answer.body
    for each in (*ids, answer.headers["x-request-id"]):
        body = body.replace(each.encode(), b"ID")
    return answer.status, {k: v for k, v in answer.headers.items() if k not in {"date", "x-request-id"}}, body


def hidden(world: World, voice: Voice, access: Access) -> Iterator[tuple[str, Record]]:
    """Records that the caller must not find by their id, one for each reason, with the reason."""
    deleted = not any(access.path.endswith(end) for end in TELLS_OF_THE_END)
    for record in Matrix(world, [voice], each=1).targets(voice):
        if record.turn or "entity" not in record.words:
            continue
        why = world.oracle.why_not(voice, record.place)
        if why:
            yield why[0], record
        elif deleted and record.life in {"soft_deleted", "rejected"}:
            yield record.life, record


@pytest.mark.parametrize("access", OF_ONE, ids=str)
def test_a_foreign_id_is_answered_as_an_absent_one(world: World, voices: list[Voice], access: Access) -> None:
    reasons = set()
    for voice in voices:
        seen = next((hub for hub in world.hubs if not world.oracle.why_not(voice, hub.place)), None)
        other = world.entity(seen) if seen and access.entity else str(new_id())
        for reason, record in hidden(world, voice, access):
            foreign, absent = world.entity(record) if access.entity else record.id, str(uuid4())
            for headers in HEADERS if access.method != "GET" else HEADERS[:1]:
                answers = []
                for target in (foreign, absent):
                    request = access.request("tasks", other)
                    sent = {name: value.format(key=uuid4()) for name, value in headers.items()}
                    answers.append(
                        world.send(
                            voice, access.method, access.url(target), body=request.get("json"),
                            params=request.get("params"), headers=sent,
                        )
                    )  # fmt: skip
                assert told(answers[0], foreign, absent) == told(answers[1], foreign, absent), (voice, reason)
                assert answers[0].status in {403, 404}, (voice, reason)
            reasons.add(reason)
    expected = set(REASONS) if len(world.tenants) > 1 else set(REASONS) - {"tenant"}
    assert expected <= reasons


def test_what_is_there_is_answered_otherwise(world: World, voices: list[Voice]) -> None:
    """The control, for reads; the routes that write have theirs beside each of their rules."""
    for access in (access for access in OF_ONE if access.method == "GET"):
        found = set()
        for voice in voices:
            for hub in world.hubs:
                if not world.oracle.why_not(voice, hub.place):
                    target = world.entity(hub) if access.entity else hub.id
                    answer = world.send(voice, "GET", access.url(target))
                    assert answer.status == 200
                    found.add(voice)
        assert len(found) > 3


def test_nothing_was_done_to_what_is_hidden(world: World, voices: list[Voice]) -> None:
    before = contents(world.tenants)
    for access in (access for access in OF_ONE if access.method != "GET"):
        for voice in voices:
            for _, record in hidden(world, voice, access):
                target = world.entity(record) if access.entity else record.id
                request = access.request("tasks", str(uuid4()))
                answer = world.send(voice, access.method, access.url(target), body=request.get("json"))
                assert answer.status in {403, 404}
                assert not [c for c in world.planted.found(answer.raw) if not world.oracle.may(voice, c, LISTED)]
    assert contents(world.tenants) == before
    operator, hub = world.operator(world.tenants[0].name), world.hubs[0]
    path = f"/v1/memories/{hub.id}/pin"
    assert world.send(operator, "POST", path, body={"agent": "supervisor"}).status == 200  # the control
    assert contents(world.tenants) != before


def test_a_foreign_thread_is_an_empty_one(world: World, voices: list[Voice]) -> None:
    for voice in voices:
        for record in (r for r in world.planted.records if "thread" in r.words):
            if {"tenant", "user"} & set(world.oracle.why_not(voice, record.place)):
                answers = [
                    world.send(voice, "GET", f"/v1/threads/{thread}/delta") for thread in (record.thread, "nowhere")
                ]
                assert told(answers[0]) == told(answers[1])
                assert answers[0].json() == {"rev": 0, "header": None, "changes": [], "pruned": False}
                break


def test_a_forbidden_user_and_an_unknown_one_are_refused_alike(world: World, voices: list[Voice]) -> None:
    bound = next(voice for voice in voices if voice.users)
    for path in ("/v1/memories", "/v1/entities", "/v1/threads/planning/delta"):
        answers = [world.send(bound, "GET", path, params={"user_id": user}) for user in ("ben", "zoe", "ana")]
        assert told(answers[0]) == told(answers[1])
        assert [answer.status for answer in answers] == [403, 403, 200]

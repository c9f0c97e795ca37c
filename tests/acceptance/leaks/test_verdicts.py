"""Verdicts on conflicts and reverts do not reach beyond their caller, and tell nothing of what is there."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from uuid import uuid4

import pytest

from memplane.domain.memory.conflict_verdicts import POSSIBLE_CONFLICT
from memplane.domain.policy.policy import Trust
from support.access_matrix import ACCESS
from support.leaks.canaries import Record
from support.leaks.contents import contents
from support.leaks.oracle import Voice
from support.leaks.wire import Answer
from support.leaks.world import World

VERDICTS = ("keep_both", "newer", "older")
DECIDE = next(access for access in ACCESS if access.path.endswith("/decide"))
REVERT = "/v1/admin/revert"
LONG_AGO = "2020-01-01T00:00:00Z"

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Pair:
    """A possible conflict and its two memories."""

    id: str
    ends: tuple[Record, Record]


@pytest.fixture(scope="module")
def pairs(world: World) -> list[Pair]:
    """The possible conflicts of all tenants."""
    records = {record.id: record for record in world.planted.records}
    rows = [
        row
        for tenant in world.tenants
        for row in tenant.rows(
            "SELECT id, from_id, to_id FROM relations WHERE tenant_id = %(tenant)s AND relation_type = %(kind)s",
            kind=POSSIBLE_CONFLICT,
        )
    ]
    found = [(str(row["id"]), records.get(str(row["from_id"])), records.get(str(row["to_id"]))) for row in rows]
    return [Pair(name, (one, other)) for name, one, other in found if one is not None and other is not None]


def told(answer: Answer, *ids: str) -> tuple[int, Mapping[str, str], bytes]:
    """Everything that an answer says, but for when, the id that was asked for, and the request's own."""
    body = answer.body
    for each in (*ids, answer.headers["x-request-id"]):
        body = body.replace(each.encode(), b"ID")
    return answer.status, {k: v for k, v in answer.headers.items() if k not in {"date", "x-request-id"}}, body


def hidden(world: World, voice: Voice, pairs: list[Pair]) -> Iterator[tuple[str, Pair]]:
    """Conflicts of which a rule keeps one memory at least from the caller, a few for each rule."""
    count: dict[str, int] = {}
    for pair in pairs:
        reasons = {rule for end in pair.ends for rule in world.oracle.why_not(voice, end.place)}
        for reason in reasons if len(reasons) == 1 else ():
            if count.setdefault(reason, 0) < 2:
                count[reason] += 1
                yield reason, pair


def decided(world: World, voice: Voice, conflict: str, verdict: str) -> Answer:
    return world.send(voice, DECIDE.method, DECIDE.url(conflict), body={"verdict": verdict})


def test_a_foreign_conflict_is_answered_as_an_absent_one(world: World, pairs: list[Pair]) -> None:
    before, reasons = contents(world.tenants), set()
    for voice in world.voices:
        for reason, pair in hidden(world, voice, pairs):
            for verdict in VERDICTS:
                absent = str(uuid4())
                answers = [told(decided(world, voice, each, verdict), each) for each in (pair.id, absent)]
                assert answers[0] == answers[1], (voice, reason)
                assert answers[0][0] in {403, 404}, (voice, reason)
            reasons.add(reason)
    assert reasons >= ({"tenant"} if len(world.tenants) > 1 else set()) | {"user", "category"}
    assert contents(world.tenants) == before
    # the control: who may read and write both decides
    voice = world.operator(world.tenants[0].name)
    pair = next(
        pair
        for pair in pairs
        if {(end.place.tenant, end.place.category, end.life) for end in pair.ends}
        == {(world.tenants[0].name, "tasks", "active")}
        and pair.ends[0].place.user == pair.ends[1].place.user
    )
    body = {"verdict": "keep_both", "agent": "supervisor"}
    answer = world.send(voice, "POST", DECIDE.url(pair.id), body=body)
    assert answer.status == 200, answer.raw
    assert contents(world.tenants) != before


def test_a_revert_names_nothing_beyond_its_caller(world: World) -> None:
    """As a dry run: whatever it would take back is the caller's to read, and nobody without full trust is answered."""
    before, named, refused = contents(world.tenants), 0, 0
    records = {record.id: record for record in world.planted.records}
    for voice in world.voices:
        for agent in ("supervisor", "planner"):
            answer = world.send(
                voice, "POST", REVERT, body={"of_agent": agent, "since": LONG_AGO, "dry_run": True},
            )  # fmt: skip
            assert world.planted.found(answer.raw) == set()
            if voice.trust != Trust.FULL:
                assert answer.status == 403
                refused += 1
                continue
            assert answer.status == 200, answer.raw
            for item in answer.json()["items"]:
                assert voice.users is None or item["user_id"] in voice.users
                record = records.get(item["id"])
                if record is not None:
                    named += 1
                    place = record.place
                    assert place.tenant == voice.tenant
                    assert place.category in {*world.oracle.reads(voice.agent), world.oracle.turns}, (voice, place)
    assert named
    assert refused
    assert contents(world.tenants) == before


def test_another_tenant_s_key_is_no_key(world: World) -> None:
    if len(world.tenants) == 1:
        pytest.skip("one tenant")
    mine, theirs = (world.operator(tenant.name) for tenant in world.tenants[:2])
    foreign = world.send(theirs, "GET", "/v1/admin/keys").json()["items"][0]["id"]
    own = world.send(mine, "GET", "/v1/admin/keys").json()["items"][0]["id"]

    def reverted(key: str) -> Answer:
        return world.send(mine, "POST", REVERT, body={"key_id": key, "since": LONG_AGO, "dry_run": True})

    absent = "0" * len(foreign)
    assert told(reverted(foreign), foreign) == told(reverted(absent), absent)
    assert reverted(foreign).status == 404
    assert reverted(own).status == 200  # the control

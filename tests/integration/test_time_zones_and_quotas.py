"""A user's time zone, and quotas, by the command line and by the Python client, on each kind of database."""

import json
from collections.abc import Iterator

import pytest

from integration.commands import Served, reachable_folder, serving
from memplane.adapters.policy.loading import shipped_policies
from memplane.client import Invalid, MemplaneSync
from memplane.client.errors import Forbidden, RateLimited

BERLIN = "Europe/Berlin"
QUOTAS = {"user": {"memories": 2, "writes_per_day": 50}, "tenant": {"bytes": 1_000_000}}
PIANO, BOAT, HORSE = "The user owns a piano.", "The user sails a boat.", "The user rides a horse."
FULL = "the user may have 2 memories; delete some, or have the quota raised"
TODAY = "2026-06-10T23:30:00Z"
"""In Berlin it is the 11th already."""


@pytest.fixture(scope="module", params=["postgres", "sqlite"])
def served(request: pytest.FixtureRequest) -> Iterator[Served]:
    """A server whose policy has quotas."""
    with reachable_folder() as folder:
        policies = folder / "policies"
        policies.mkdir()
        for file in shipped_policies().glob("*.yaml"):
            (policies / file.name).write_text(file.read_text())
        writing = policies / "writing.yaml"
        writing.write_text(f"{writing.read_text()}\nquotas: {json.dumps(QUOTAS)}\n")
        settings = {"MEMPLANE_POLICIES": str(policies)}
        with serving(folder, "--storage", request.param, "--port", "0", environment=settings) as running:
            yield running


@pytest.fixture
def operator(served: Served) -> Iterator[MemplaneSync]:
    """The client with the administrator's key."""
    admin = json.loads((served.data / "keys.json").read_text())["admin"]
    with MemplaneSync(served.url, admin) as client:
        yield client


@pytest.fixture
def memory(served: Served) -> Iterator[MemplaneSync]:
    """The client with the supervisor's key, which has no right to administer."""
    with MemplaneSync(served.url, served.keys["supervisor"]) as client:
        yield client


def remember(served: Served, user: str, text: str, *more: str) -> tuple[int, str, str]:
    told = served.run("remember", text, "--user", user, "--category", "event", "--agent", "supervisor", *more)
    return told.code, told.out, told.err


class TestTimeZone:
    def test_the_command_shows_sets_and_removes_it(self, served: Served, user: str) -> None:
        unset = "not set: the offset of each message counts, else UTC"
        steps = (
            ((), unset),
            ((BERLIN, "--dry-run"), f"updated: {BERLIN}"),
            ((), unset),
            ((BERLIN,), f"updated: {BERLIN}"),
            ((BERLIN,), f"unchanged: {BERLIN}"),
            ((), BERLIN),
            (("--unset",), "updated: not set"),
            ((), unset),
        )
        for arguments, expected in steps:
            told = served.run("time-zone", user, *arguments)
            assert (told.code, told.out.splitlines()[0]) == (0, expected), (arguments, told.err)
        assert served.run("time-zone", user, BERLIN, "--json").document["time_zone"] == BERLIN
        assert served.run("time-zone", user, "--json").document["time_zone"] == BERLIN
        assert served.run("time-zone", f"{user}-other", "--json").document["time_zone"] is None  # the control

    def test_tomorrow_is_the_users(self, served: Served, user: str, memory: MemplaneSync) -> None:
        assert served.run("time-zone", user, BERLIN).code == 0
        for name, day in ((user, "12 June 2026"), (f"{user}-other", "11 June 2026")):  # the second is the control
            said = memory.turn(
                "I have a meeting with Bo tomorrow.", user_id=name, thread_id="t", role="user", event_time=TODAY
            )
            assert [day in each.content for each in said.extracted] == [True]

    @pytest.mark.parametrize("name", ["Berlin", "+02:00", "../../etc/passwd"])
    def test_the_command_says_what_is_wrong_with_a_name(self, served: Served, user: str, name: str) -> None:
        told = served.run("time-zone", user, name)
        assert (told.code, told.out) == (1, "")
        assert told.err == (
            f"memplane: invalid_request: time_zone: '{name}' is not an IANA time zone such as Europe/Berlin\n"
        )
        assert served.run("time-zone", user, "--json").document["time_zone"] is None

    def test_a_name_and_its_removal_are_too_much(self, served: Served, user: str) -> None:
        told = served.run("time-zone", user, BERLIN, "--unset")
        assert (told.code, "name a time zone, or --unset" in told.err) == (2, True)

    def test_the_client(self, operator: MemplaneSync, user: str) -> None:
        assert operator.user_context(user).time_zone is None
        assert operator.set_time_zone(user, BERLIN, dry_run=True).outcome == "updated"
        assert operator.user_context(user).time_zone is None
        assert operator.set_time_zone(user, BERLIN).time_zone == BERLIN
        assert operator.set_time_zone(user, BERLIN).outcome == "unchanged"
        assert operator.user_context(user).time_zone == BERLIN
        with pytest.raises(Invalid, match="time_zone") as refused:
            operator.set_time_zone(user, "Berlin")
        assert (refused.value.status, refused.value.extra["field"]) == (422, "time_zone")
        assert operator.user_context(user).time_zone == BERLIN
        assert operator.set_time_zone(user, None).time_zone is None


class TestQuotas:
    def test_the_command_shows_use_and_limits(self, served: Served, user: str) -> None:
        assert remember(served, user, PIANO)[0] == 0
        shown = served.run("quotas", "--user", user, "--json").document
        assert shown["user"]["memories"] == {"used": 1, "limit": 2}
        assert shown["user"]["writes_per_day"] == {"used": 1, "limit": 50}
        assert shown["tenant"]["bytes"]["limit"] == 1_000_000
        assert shown["tenant"]["bytes"]["used"] >= len(PIANO)
        assert served.run("quotas", "--json").document["user"] is None
        told = served.run("quotas", "--user", user)
        rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in told.out.splitlines()]
        assert [f"user {user}", "memories", "1", "2"] in rows, told.out
        assert [f"user {user}", "bytes", str(len(PIANO)), "none"] in rows
        assert "writes are counted again from " in told.out
        whole = served.run("quotas")  # the policy limits the writes of users alone
        assert "writes are counted only where the policy limits them" in whole.out

    def test_the_command_is_for_administrators(self, served: Served, user: str) -> None:
        told = served.run("quotas", "--user", user, "--key", served.keys["supervisor"])
        assert (told.code, told.out) == (1, "")
        assert told.err.startswith("memplane: scope_forbidden: this key lacks the scope 'admin'")

    def test_a_full_quota_is_told(self, served: Served, user: str) -> None:
        assert [remember(served, user, text)[0] for text in (PIANO, BOAT)] == [0, 0]
        code, out, err = remember(served, user, HORSE)
        assert (code, out) == (1, "")
        assert err == f"memplane: quota_exceeded: {FULL}\n"
        assert remember(served, f"{user}-other", HORSE)[0] == 0  # the control
        used = served.run("quotas", "--user", user, "--json").document["user"]
        assert used["memories"] == {"used": 2, "limit": 2}

    def test_the_client(self, operator: MemplaneSync, memory: MemplaneSync, user: str) -> None:
        first = memory.remember(PIANO, user_id=user, category="event")
        memory.remember(BOAT, user_id=user, category="event")
        found = operator.quotas(user)
        assert found.user is not None
        assert (found.user.memories.used, found.user.memories.limit) == (2, 2)
        assert operator.quotas().user is None
        with pytest.raises(RateLimited) as refused:
            memory.remember(HORSE, user_id=user, category="event")
        error = refused.value
        assert (error.code, error.extra["quota"], error.extra["limit"]) == ("quota_exceeded", "user.memories", 2)
        assert error.detail == FULL
        memory.delete(first.id)
        assert memory.remember(HORSE, user_id=user, category="event").outcome == "created"  # the control
        with pytest.raises(Forbidden):
            memory.quotas(user)

"""What a memory says of its own time: no interval is empty, on any way in."""

import pytest

from support.callers import USER, Caller, Tenant, refused
from support.telling import say, texts, write
from support.transfer import OPERATING, taken

HARP, LUTE = "The user plays the harp.", "The user plays the lute."
EARLY, LATE, AHEAD = "2020-01-01T00:00:00Z", "2024-01-01T00:00:00Z", "2099-01-01T00:00:00Z"


@pytest.fixture
def caller(tenant: Tenant) -> Caller:
    """A supervisor, who reads and writes events."""
    return tenant.caller("supervisor")


@pytest.mark.parametrize("until", [EARLY, LATE], ids=["before", "at its beginning"])
class TestNoIntervalIsEmpty:
    """An end that is not after the beginning is refused, with a code of its own."""

    def test_by_a_write(self, caller: Caller, until: str) -> None:
        said = {"user_id": USER, "category": "event", "content": HARP, "valid_from": LATE}
        problem = refused(caller.post("/v1/memories", said | {"valid_until": until}), 422, "invalid_interval")
        assert problem["field"] == "valid_until"
        assert "valid_from" in problem["detail"]
        assert texts(caller) == set()
        write(caller, HARP, valid_from=EARLY, valid_until="2099-01-01T00:00:00Z")  # the control
        assert texts(caller) == {HARP}

    def test_by_a_change(self, caller: Caller, until: str) -> None:
        begun = write(caller, HARP, valid_from=LATE)["id"]
        refused(caller.patch(f"/v1/memories/{begun}", {"valid_until": until}), 422, "invalid_interval")
        ended = write(caller, LUTE, valid_until=until)["id"]
        refused(caller.patch(f"/v1/memories/{ended}", {"valid_from": LATE}), 422, "invalid_interval")
        # the control: both ends at once, in order
        both = {"valid_from": EARLY, "valid_until": LATE}
        assert caller.patch(f"/v1/memories/{begun}", both).json()["outcome"] == "updated"

    def test_by_a_correction(self, caller: Caller, until: str) -> None:
        old = write(caller, HARP, valid_until=until)["id"]
        fields = {"content": LUTE, "valid_from": LATE}
        refused(caller.post(f"/v1/memories/{old}/correct", fields), 422, "invalid_interval")
        assert say(caller, old, "correct", content=LUTE, valid_from="2019-01-01T00:00:00Z")["outcome"] == "superseded"

    @pytest.mark.parametrize("mode", ["add", "restore"])
    def test_by_an_import(self, tenant: Tenant, until: str, mode: str) -> None:
        admin = tenant.caller("supervisor", scopes=OPERATING)
        line = {"record": "memory", "category": "event", "type": "semantic", "content": HARP, "valid_from": LATE}
        done = taken(admin, [line | {"valid_until": until}, line | {"content": LUTE}], mode=mode)
        assert done["outcomes"] in (["refused", "created"], ["refused", "restored"])
        assert [each["code"] for each in done["refused"]] == ["invalid_interval"]
        assert texts(admin) == {LUTE}


class TestToCome:
    """What is to come is told with the day from which it holds, and takes nothing from what holds until then."""

    def test_it_is_told_with_its_day(self, caller: Caller) -> None:
        write(caller, "Ana works at Initech.", valid_from=EARLY)
        write(caller, "Ana works at Acme.", valid_from=AHEAD)
        assert texts(caller) == {"Ana works at Initech.", "(from 2099-01-01) Ana works at Acme."}
        asked = {"user_id": USER, "thread_id": "t", "message": "Where does Ana work?"}
        assert "(from 2099-01-01) Ana works at Acme." in caller.post("/v1/context", asked).text
        assert texts(caller, as_of={"true_at": LATE}) == {"Ana works at Initech."}  # the control
        later = {"true_at": "2099-06-01T00:00:00Z"}
        assert "(from 2099-01-01) Ana works at Acme." in texts(caller, as_of=later)

    def test_said_of_today_it_holds_today(self, caller: Caller) -> None:
        ahead = write(caller, HARP, valid_from=AHEAD)["id"]
        assert texts(caller, as_of={"true_at": "2098-01-01T00:00:00Z"}) == set()
        assert write(caller, HARP)["id"] == ahead
        assert texts(caller) == {HARP}
        assert texts(caller, as_of={"true_at": "2098-01-01T00:00:00Z"}) == {HARP}

"""What is stored is true, once, and can be put right: merging, overruling, rejecting, correcting."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memplane.domain.memory.memory import new_id
from support.callers import THREAD, USER, Caller, Tenant, refused
from support.promises.checks import (
    BERLIN,
    CLAIMS,
    MUNICH,
    REPLACED,
    authority_claimed,
    ended_by_the_past,
    said_again,
    uncorrected,
)
from support.telling import events, say, texts, write

Json = dict[str, Any]


@pytest.fixture
def caller(tenant: Tenant) -> Caller:
    """A supervisor, who reads and writes profiles and preferences."""
    return tenant.caller("supervisor")


class TestOnce:
    """The same fact is one memory, in whatever words."""

    def test_the_same_again_is_counted(self, caller: Caller) -> None:
        first = write(caller, BERLIN)
        again = write(caller, "vera lives  in Berlin")
        assert (again["outcome"], again["id"]) == ("duplicate", first["id"])
        assert texts(caller) == {BERLIN}

    def test_the_same_in_other_words_is_merged(self, caller: Caller) -> None:
        first = write(caller, "The user is allergic to peanuts.")
        again = write(caller, "The user has a peanut allergy.")
        assert again["id"] == first["id"]
        assert again["outcome"] in {"merged", "updated"}
        assert len(texts(caller)) == 1
        assert events(caller, first["id"])[0] in {"MERGE", "UPDATE"}
        # the control: another allergy is another fact
        assert write(caller, "The user is allergic to cats.")["outcome"] == "created"
        assert len(texts(caller)) == 2

    def test_one_user_and_category_do_not_merge_with_another(self, caller: Caller) -> None:
        write(caller, BERLIN)
        assert write(caller, BERLIN, user_id="ben")["outcome"] == "created"
        assert write(caller, BERLIN, category="preferences")["outcome"] == "created"


class TestOverruled:
    """A new value takes the place of the old one, which stays in the history."""

    def test_a_changed_value_supersedes(self, caller: Caller) -> None:
        old = write(caller, BERLIN, thread_id=THREAD)
        new = write(caller, MUNICH, thread_id=THREAD)
        assert (new["outcome"], new["overruled"]) == ("superseded", [old["id"]])
        assert texts(caller) == {MUNICH}
        assert events(caller, old["id"]) == ["SUPERSEDE", "ADD"]
        assert caller.get(f"/v1/memories/{old['id']}").status_code == 404
        told = caller.get(f"/v1/threads/{THREAD}/delta", since=1).json()
        assert [change["event"] for change in told["changes"]] == ["superseded", "created"]

    @pytest.mark.parametrize("change", REPLACED)
    def test_a_replacement_and_a_denial_take_effect(self, tenant: Tenant, change: str) -> None:
        assert uncorrected(tenant, change) == []

    def test_what_is_over_overrules_nothing(self, tenant: Tenant) -> None:
        assert ended_by_the_past(tenant) == []

    def test_the_less_trusted_is_disputed(self, tenant: Tenant, caller: Caller) -> None:
        old = write(caller, BERLIN, visibility="shared")
        inner = tenant.caller("supervisor", trust="inner")
        claims = "Vera lives in Munich."
        disputed = write(inner, claims, visibility="shared", confidence=1.0)
        assert (disputed["outcome"], disputed["overruled"]) == ("disputed", [old["id"]])
        assert texts(caller) == {BERLIN}
        problem = inner.post(f"/v1/memories/{disputed['id']}/confirm", {})
        refused(problem, 403, "trust_too_low")
        confirmed = say(caller, disputed["id"], "confirm")
        assert confirmed["overruled"] == [old["id"]]
        assert texts(caller) == {MUNICH}

    @pytest.mark.parametrize("claim", CLAIMS)
    def test_words_give_no_authority(self, tenant: Tenant, claim: str) -> None:
        assert authority_claimed(tenant, claim) == []

    def test_a_confirmed_one_waits_for_review(self, caller: Caller) -> None:
        old = write(caller, BERLIN)
        say(caller, old["id"], "confirm")
        assert write(caller, MUNICH)["outcome"] == "disputed"
        assert texts(caller) == {BERLIN}
        right = say(caller, old["id"], "correct", content=MUNICH)  # which a fully trusted caller may say
        assert right["outcome"] == "superseded"
        assert texts(caller) == {MUNICH}


class TestRejected:
    """What a person rejected does not come back."""

    LOOK_ALIKES = (
        "The user likes jazz.",
        "the user LIKES jazz",
        "The user likes j\u200bazz!",
        "The user lіkes jazz.",  # noqa: RUF001 - a Cyrillic letter
        "Ｔhe user likes ｊazz.",  # noqa: RUF001 - full-width letters
        "The user moved to a flat. The user likes jazz.",
    )

    @pytest.mark.parametrize("purged", [False, True], ids=["there", "purged"])
    @pytest.mark.parametrize("said", LOOK_ALIKES, ids=ascii)
    def test_it_is_refused_however_it_is_spelled(self, tenant: Tenant, said: str, purged: bool) -> None:
        assert said_again(tenant, said, purged=purged) == []

    def test_it_is_refused_in_other_words_too(self, caller: Caller) -> None:
        memory = write(caller, "The user is allergic to peanuts.")
        say(caller, memory["id"], "reject")
        body = {"user_id": USER, "category": "event", "content": "The user has a peanut allergy."}
        refused(caller.post("/v1/memories", body), 409, "value_rejected")
        assert write(caller, "The user is allergic to cats.")["outcome"] == "created"

    def test_it_does_not_come_back_by_supersede_restate_change_or_restore(self, caller: Caller) -> None:
        old = write(caller, BERLIN)
        new = write(caller, MUNICH)
        say(caller, new["id"], "reject")
        say(caller, old["id"], "restore")
        body = {"user_id": USER, "category": "event", "content": MUNICH}
        refused(caller.post("/v1/memories", body), 409, "value_rejected")
        refused(caller.patch(f"/v1/memories/{old['id']}", {"content": MUNICH}), 409, "value_rejected")
        refused(caller.post(f"/v1/memories/{old['id']}/correct", {"content": MUNICH}), 409, "value_rejected")
        refused(caller.post(f"/v1/memories/{new['id']}/restore", {}), 409, "value_rejected")
        refused(caller.post("/v1/memories", body | {"facts": [MUNICH]}), 409, "value_rejected")
        assert texts(caller) == {BERLIN}
        assert caller.patch(f"/v1/memories/{old['id']}", {"content": "Vera lives in Graz."}).status_code == 200

    def test_a_turn_does_not_bring_it_back(self, tenant: Tenant, caller: Caller) -> None:
        turn = {"user_id": USER, "thread_id": THREAD, "role": "user", "text": "I love jazz."}
        drawn = caller.post("/v1/turns", turn).json()["extracted"]
        assert [each["action"] for each in drawn] == ["created"]
        say(caller, drawn[0]["id"], "reject")
        before = tenant.count("memories")
        again = caller.post("/v1/turns", turn).json()["extracted"]
        assert [each["action"] for each in again] == ["refused"]
        assert tenant.count("memories") == before

    def test_others_may_still_say_it(self, caller: Caller) -> None:
        memory = write(caller, BERLIN)
        say(caller, memory["id"], "reject")
        assert write(caller, BERLIN, user_id="ben")["outcome"] == "created"


class TestVerbs:
    """Feedback, and its trace."""

    def test_a_score_goes_up_and_down(self, caller: Caller) -> None:
        memory = write(caller, BERLIN)["id"]
        for verb, score in (("reinforce", 3), ("reinforce", 6), ("demote", 5)):
            say(caller, memory, verb)
            assert caller.get(f"/v1/memories/{memory}").json()["reinforcement"] == score
        assert events(caller, memory) == ["DEMOTE", "REINFORCE", "REINFORCE", "ADD"]

    def test_pin_confirm_retract_restore(self, caller: Caller) -> None:
        memory = write(caller, BERLIN, confidence=0.5)["id"]
        say(caller, memory, "pin")
        say(caller, memory, "confirm")
        now = caller.get(f"/v1/memories/{memory}").json()
        assert (now["pinned"], now["trust_state"], now["confidence"]) == (True, "confirmed", 1.0)
        assert say(caller, memory, "pin", pinned=False)["outcome"] == "updated"
        assert say(caller, memory, "retract")["outcome"] == "retracted"
        assert texts(caller) == set()
        assert say(caller, memory, "restore")["outcome"] == "restored"
        assert texts(caller) == {BERLIN}
        assert events(caller, memory) == ["RESTORE", "RETRACT", "PIN", "CONFIRM", "PIN", "ADD"]

    def test_a_version_may_be_demanded(self, caller: Caller) -> None:
        memory = write(caller, BERLIN)["id"]
        path = f"/v1/memories/{memory}/reinforce"
        refused(caller.send("POST", path, json={}, headers={"If-Match": "7"}), 412, "version_conflict")
        assert caller.send("POST", path, json={}, headers={"If-Match": "1"}).status_code == 200

    def test_what_is_not_there(self, caller: Caller) -> None:
        for verb in ("reinforce", "demote", "pin", "confirm", "retract", "reject", "restore"):
            refused(caller.post(f"/v1/memories/{new_id()}/{verb}", {}), 404, "not_found")
        memory = write(caller, BERLIN)["id"]
        refused(caller.post(f"/v1/memories/{memory}/restore", {}), 409, "conflict")  # it is not gone

    def test_why_tells_the_whole_life(self, caller: Caller) -> None:
        turn = caller.say("I have been living in Berlin for a while.", auto_extract=False)
        old = write(caller, BERLIN, source_ids=[turn["turn_id"]])["id"]
        write(caller, "Vera lives in Berlin")
        new = say(caller, old, "correct", content=MUNICH)["id"]
        say(caller, new, "retract")
        say(caller, old, "restore")
        told = caller.get(f"/v1/memories/{old}/why").json()
        assert [each["event"] for each in told["decisions"]] == ["RESTORE", "SUPERSEDE", "MENTION", "ADD"]
        assert [each["text"] for each in told["turns"]] == ["I have been living in Berlin for a while."]
        assert all(each["actor"] and each["policy_hash"].startswith("sha256:") for each in told["decisions"])
        assert told["decisions"][1]["meta"]["superseded_by"] == new
        stylist = caller.get(f"/v1/memories/{old}/why", agent="stylist")
        refused(stylist, 403, "agent_forbidden")

    def test_timeline_and_related(self, caller: Caller) -> None:
        ids = [write(caller, f"The user owns {thing}.")["id"] for thing in ("a piano", "two cats", "an old boat")]
        items = caller.get(f"/v1/memories/{ids[1]}/timeline", before=1, after=1).json()["items"]
        assert [item["id"] for item in items] == ids
        items = caller.get(f"/v1/memories/{ids[1]}/timeline", before=0, after=1).json()["items"]
        assert [item["id"] for item in items] == ids[1:]
        write(caller, "The user plays the violin every morning at home.", "preferences")
        related = caller.get(f"/v1/memories/{ids[0]}/related").json()["items"]
        assert all(0 <= item["strength"] <= 1 for item in related)


class TestMoments:
    """What was believed, and what was true, at another moment."""

    def test_what_was_believed(self, caller: Caller) -> None:
        memory = write(caller, BERLIN)["id"]
        other = write(caller, "The user owns a piano.")["id"]
        then = datetime.now(UTC).isoformat()
        write(caller, MUNICH)
        caller.patch(f"/v1/memories/{other}", {"content": "The user owns a grand piano."})
        assert texts(caller) == {MUNICH, "The user owns a grand piano."}
        asked = {"as_of": {"believed_at": then}}
        assert texts(caller, **asked) == {BERLIN, "The user owns a piano."}
        assert memory in caller.found("Where does the user live?", **asked)
        assert texts(caller, as_of={"believed_at": "2001-01-01T00:00:00Z"}) == set()

    def test_what_was_true(self, caller: Caller) -> None:
        write(caller, BERLIN, valid_from="2019-01-01T00:00:00Z")
        write(caller, MUNICH, valid_from="2021-01-01T00:00:00Z")
        assert texts(caller, as_of={"true_at": "2020-01-01T00:00:00Z"}) == {BERLIN}
        assert texts(caller, as_of={"true_at": "2022-01-01T00:00:00Z"}) == {MUNICH}

    def test_what_is_over_is_not_told(self, caller: Caller) -> None:
        soon = datetime.now(UTC) + timedelta(days=1)
        write(caller, "The user rents a car.", valid_until=soon.isoformat())
        write(caller, "The user rents a boat.", "preferences", valid_until="2020-01-01T00:00:00Z")
        assert texts(caller) == {"The user rents a car."}

    def test_a_moment_must_be_one(self, caller: Caller) -> None:
        refused(caller.query("x", as_of={"believed_at": "yesterday"}), 422, "invalid_request")
        refused(caller.query("x", as_of={"seen_at": "2020-01-01T00:00:00Z"}), 422, "invalid_request")


class TestThreads:
    """Changes made elsewhere are told to the threads that were active lately."""

    def test_a_change_reaches_the_users_other_threads(self, caller: Caller) -> None:
        for thread, user in (("one", USER), ("two", USER), ("other", "ben")):
            caller.say("Hello there.", thread_id=thread, user_id=user)
        seen = caller.get("/v1/threads/one/delta").json()["rev"]
        written = write(caller, BERLIN, thread_id="two")
        told = caller.get("/v1/threads/one/delta", since=seen).json()
        assert told["header"] == f"Memory updates since rev {seen}:\n- +created: [Event] {BERLIN} (imp=3)"
        assert written["rev"] == caller.get("/v1/threads/two/delta").json()["rev"]
        assert caller.get("/v1/threads/other/delta", since=1).json()["header"] is None
        without = write(caller, "The user owns a piano.")
        assert without["rev"] is None
        assert "piano" in caller.get("/v1/threads/one/delta", since=seen).json()["header"]

    def test_only_to_those_who_may_read_it(self, tenant: Tenant, caller: Caller) -> None:
        caller.say("Hello there.", thread_id="one")
        write(caller, BERLIN, thread_id="two")
        planner = tenant.caller("planner")
        assert planner.get("/v1/threads/one/delta", since=0).json()["header"] is None
        assert caller.get("/v1/threads/one/delta", since=0).json()["header"] is not None


class TestDrawn:
    """Facts drawn from turns."""

    def test_a_statement_becomes_a_memory_that_names_its_turn(self, caller: Caller) -> None:
        said = caller.say("I work at Siemens as an engineer.")
        (drawn,) = said["extracted"]
        assert drawn["action"] == "created"
        memory = caller.get(f"/v1/memories/{drawn['id']}").json()
        assert (memory["source"], memory["source_ids"], memory["category"]) == (
            "extraction", [said["turn_id"]], drawn["category"],
        )  # fmt: skip
        assert memory["content"].startswith("The user ")

    @pytest.mark.parametrize(
        "text",
        [
            "Do I work at Siemens?",
            "If I worked at Siemens, I would be rich.",
            'She said "I work at Siemens".',
            "Thanks!",
        ],
    )
    def test_what_is_no_statement_does_not(self, caller: Caller, text: str) -> None:
        assert caller.say(text)["extracted"] == []

    def test_only_users_are_listened_to_and_only_when_asked(self, caller: Caller) -> None:
        said = "I work at Siemens as an engineer."
        assert caller.say(said, role="assistant")["extracted"] == []
        assert caller.say(said, auto_extract=False)["extracted"] == []
        assert len(caller.say(said)["extracted"]) == 1

    def test_an_agent_draws_only_what_it_may_write(self, tenant: Tenant) -> None:
        allowed = tenant.caller("supervisor").say("I work at Siemens as an engineer.")["extracted"]
        assert allowed
        assert tenant.count("memories") == len(allowed)

    def test_a_sensitive_field_waits_for_consent(self, tenant: Tenant, caller: Caller) -> None:
        drawn = caller.say("Please call me Alex.")["extracted"]
        assert [each["action"] for each in drawn] == ["queued_for_consent"]
        again = caller.say("Call me Alex, please.", thread_id="two")["extracted"]
        assert [each["id"] for each in again] == [each["id"] for each in drawn]
        rows = tenant.rows("SELECT field, new_value, state FROM consent_proposals WHERE tenant_id = %(tenant)s")
        assert [(row["field"], row["new_value"], row["state"]) for row in rows] == [
            ("preferred_name", "Alex", "pending")
        ]
        assert tenant.count("memories") == 0

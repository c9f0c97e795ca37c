"""What a person said counts as said only where the key that recorded it may record that; each with its control."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import httpx2
import pytest

from memplane.application.keys.api_keys import AGENT_SCOPES, Rotation
from memplane.domain.identity.principal import KeyScope
from support.callers import SUPERVISING, THREAD, USER, Caller, Json, Tenant, refused
from support.consenting import context, decide, lapse, listed, queue
from support.insights import GOOD, insights, lived
from support.insights import answer as insights_answer
from support.insights import insight as insight_of
from support.key_requests import KEYS, create, holder, made
from support.model_server import ModelServer, called
from support.nights import Night
from support.promises.checks import drawn_unvouched
from support.transfer import OPERATING, exported, of, restored, taken
from support.trusting import Trust

SISTER = "My sister is called Ingrid."
FLAT = "We finally left the flat in Gothenburg, my new studio is in Uppsala near the cathedral."
INGRID = "My sister Ingrid visits me every Sunday for fika. Our dog Bosse barks at the trams."
WITHOUT, WITH = AGENT_SCOPES, SUPERVISING


@pytest.fixture
def mute(tenant: Tenant) -> Caller:
    """A supervisor that may record turns, but not what people say."""
    return tenant.caller("supervisor", scopes=WITHOUT)


def drawn(tenant: Tenant) -> int:
    """How many facts and proposals there are."""
    return tenant.count("memories", "consent_proposals", "context_signals", "user_context")


def close(caller: Caller) -> Json:
    response = caller.post(f"/v1/sessions/{THREAD}/close", {"user_id": USER})
    assert response.status_code == 200, response.text
    return dict(response.json())


class TestRecording:
    """Without the scope a user's turn is stored, marked and recalled, and nothing is drawn from it."""

    @pytest.mark.parametrize("text", [SISTER, "I live in Berlin.", "I prefer concise answers."])
    def test_nothing_is_drawn_from_an_unvouched_turn(self, tenant: Tenant, text: str) -> None:
        assert drawn_unvouched(tenant, text, WITHOUT, WITH) == []

    def test_it_is_recalled_as_a_turn_that_says_so(self, caller: Caller, mute: Caller) -> None:
        unvouched, vouched = (
            mute.say("The hall is booked for May.")["turn_id"],
            caller.say("The hall is big.")["turn_id"],
        )
        answer = caller.ask("the hall", return_="full", top_k=5)
        found = {item["id"]: item for item in answer["items"]}
        assert (found[unvouched]["vouched"], found[unvouched]["turn"]["vouched"]) == (False, False)
        assert (found[vouched]["vouched"], found[vouched]["turn"]["vouched"]) == (True, True)
        prompt = caller.ask("the hall", top_k=5)["prompt"]
        assert f'turn 1 of "{THREAD}" by user, unvouched, ' in prompt
        assert f'turn 2 of "{THREAD}" by user, 2' in prompt
        memory = caller.remember("The hall has a stage.")
        (kept,) = (item for item in caller.ask("stage")["items"] if item["id"] == memory)
        assert kept.get("vouched") is None

    def test_what_others_say_needs_no_vouching(self, mute: Caller) -> None:
        for role in ("assistant", "system", "tool"):
            assert mute.say("The hall is booked.", role=role)["vouched"] is True

    def test_each_turn_keeps_the_id_of_its_key(self, tenant: Tenant, caller: Caller, mute: Caller) -> None:
        caller.say("One."), mute.say("Two."), mute.say("Three.", role="assistant")
        rows = tenant.rows("SELECT key_id, vouched FROM turns WHERE tenant_id = %(tenant)s ORDER BY seq")
        assert [(row["key_id"], bool(row["vouched"])) for row in rows] == [
            (caller.key_id, True), (mute.key_id, False), (mute.key_id, True),
        ]  # fmt: skip

    def test_a_turn_of_a_batch_and_the_same_turn_again(self, tenant: Tenant, caller: Caller, mute: Caller) -> None:
        turn = {"user_id": USER, "thread_id": THREAD, "role": "user", "text": SISTER, "external_id": "m1"}
        (first,) = mute.post("/v1/turns:batch", {"turns": [turn]}).json()["items"]
        same = mute.post("/v1/turns", turn).json()
        assert (first["vouched"], same["outcome"], same["turn_id"]) == (False, "duplicate", first["turn_id"])
        assert drawn(tenant) == 0
        said = caller.post("/v1/turns", turn).json()  # what is vouched for is not lost to what is not
        assert (said["outcome"], said["vouched"], len(said["extracted"])) == ("created", True, 1)
        assert drawn(tenant) > 0
        for each in (caller, mute):  # the control: the name is of what was vouched for from then on
            again = each.post("/v1/turns", turn).json()
            assert (again["outcome"], again["turn_id"], again["vouched"]) == ("duplicate", said["turn_id"], True)
        assert tenant.count("turns") == 2

    def test_what_another_role_said_keeps_no_name_from_the_user(self, caller: Caller, mute: Caller) -> None:
        other = mute.say("Noted.", role="assistant", external_id="m1")
        said = caller.say(SISTER, external_id="m1")
        assert (said["outcome"], len(said["extracted"])) == ("created", 1)
        assert said["turn_id"] != other["turn_id"]
        # the control: what is vouched for loses its name to nobody
        again = {"user_id": USER, "thread_id": THREAD, "role": "assistant", "text": "Noted.", "external_id": "m1"}
        assert mute.post("/v1/turns", again).json()["outcome"] == "duplicate"

    def test_it_corroborates_no_benign_field(self, caller: Caller, mute: Caller) -> None:
        caller.say("I prefer concise answers.")
        mute.say("I prefer concise answers.")
        assert context(caller) == {}
        caller.say("I prefer concise answers.")  # the control
        assert context(caller) == {"tone": "concise"}


class TestLater:
    """No job draws from it either, nor does what is read again when another turn is deleted."""

    @pytest.mark.parametrize("scopes", [WITHOUT, WITH], ids=["without", "with"])
    def test_facts_by_rule(self, tenant: Tenant, caller: Caller, scopes: tuple[KeyScope, ...]) -> None:
        tenant.caller("supervisor", scopes=scopes).say(SISTER, auto_extract=False)
        close(caller)
        done = Night(tenant).run("facts")
        assert done.counts["parts"] == 1
        assert done.counts["facts"] == (scopes == WITH)

    @pytest.mark.parametrize("scopes", [WITHOUT, WITH], ids=["without", "with"])
    def test_facts_by_a_model(self, asking: Tenant, model: ModelServer, scopes: tuple[KeyScope, ...]) -> None:
        other, caller = asking.caller("supervisor", scopes=scopes), asking.caller("supervisor")
        other.say(FLAT, auto_extract=False)
        other.say("Congratulations!", role="assistant")
        caller.say(INGRID, auto_extract=False)
        close(caller)
        fact = {"text": "The user's new studio is in Uppsala.", "category": "profile", "turns": [1]}
        model.script = [called({"facts": [fact | {"importance": 4, "confidence": 0.9}]})]
        assert Night(asking).counts("facts")["facts"] == (scopes == WITH)
        (asked,) = model.asked
        assert ("Uppsala" in asked.said("user")) is (scopes == WITH)
        assert "Bosse" in asked.said("user")

    @pytest.mark.parametrize("scopes", [WITHOUT, WITH], ids=["without", "with"])
    def test_the_summary_of_a_conversation(self, tenant: Tenant, scopes: tuple[KeyScope, ...]) -> None:
        other = tenant.caller("supervisor", scopes=scopes)
        other.say("We decided to rent the hall in May.")
        other.say("The hall is booked.", role="assistant")
        close(other)
        (summary,) = other.get("/v1/memories", user_id=USER, type="episodic").json()["items"]
        assert ("The user asked" in summary["content"], bool(summary["facts"])) == (scopes == WITH, scopes == WITH)
        assert "The hall is booked." in summary["content"]

    @pytest.mark.parametrize("scopes", [WITHOUT, WITH], ids=["without", "with"])
    def test_insights(self, asking: Tenant, model: ModelServer, scopes: tuple[KeyScope, ...]) -> None:
        lived(asking.caller("supervisor", scopes=scopes))
        model.script = [insights_answer(insight_of(GOOD, 3))]
        Night(asking).run("insights")
        assert ("[said]" in model.asked[0].said("user")) is (scopes == WITH)
        assert "admitting" not in model.asked[0].said("user") or scopes == WITH
        assert len(insights(asking.caller("supervisor"))) == (scopes == WITH)

    def test_nobody_is_thought_about_for_an_unvouched_turn(self, asking: Tenant, model: ModelServer) -> None:
        night = Night(asking)
        mute, caller = asking.caller("supervisor", scopes=WITHOUT), asking.caller("supervisor")
        mute.say("Thanks for admitting the mistake with the lease.")
        assert night.counts("insights")["users"] == 0
        caller.say("Thanks for admitting the mistake with the lease.")
        model.script = [insights_answer()]
        assert night.counts("insights")["users"] == 1  # the control

    @pytest.mark.parametrize("scopes", [WITHOUT, WITH], ids=["without", "with"])
    def test_a_fact_of_a_deleted_turn(self, tenant: Tenant, caller: Caller, scopes: tuple[KeyScope, ...]) -> None:
        """A fact that another turn says too is drawn from that one instead, if somebody vouches for it."""
        turn = caller.say("My sister is called Ingrid.")["turn_id"]
        other = caller.say("My sister's name is Ingrid.", thread_id="b")["turn_id"]
        tenant.rows("UPDATE turns SET vouched = %(so)s WHERE id = %(id)s", so=scopes == WITH, id=UUID(other))
        assert caller.delete(f"/v1/turns/{turn}").status_code == 200
        assert ("The user's sister's name is Ingrid." in contents(caller)) is (scopes == WITH)


def contents(caller: Caller) -> set[str]:
    return {each["content"] for each in caller.get("/v1/memories", user_id=USER, type="semantic").json()["items"]}


def ack(caller: Caller, proposal: str, turn: Json) -> httpx2.Response:
    return caller.post(f"/v1/consents/{proposal}/ack", {"turn_id": turn["turn_id"]})


class TestAcknowledging:
    """An unvouched turn acknowledges nothing; one yes acknowledges one proposal; the reviewer is told whose it was."""

    def test_an_unvouched_yes_is_none(self, tenant: Tenant, caller: Caller, mute: Caller) -> None:
        proposal = caller.say("I live in Berlin.")["extracted"][0]["id"]
        yes = mute.say("Yes, Berlin.")
        for each in (mute, caller):  # whoever sends it: it depends on the key that recorded the turn
            problem = refused(ack(each, proposal, yes), 422, "turn_unvouched")
            assert "turns:user" in problem["detail"]
        assert tenant.count("user_context") == 0
        assert ack(mute, proposal, caller.say("Yes, Berlin.")).json()["outcome"] == "approved"  # the control
        assert context(caller) == {"city": "Berlin"}

    def test_a_yes_that_is_dated_ahead_is_none(self, caller: Caller) -> None:
        proposal = caller.say("I live in Berlin.")["extracted"][0]["id"]
        ahead = caller.say("Yes, Berlin.", event_time="2099-01-01T00:00:00Z")
        problem = refused(ack(caller, proposal, ahead), 422, "not_an_agreement")
        assert "dated ahead" in problem["detail"]
        assert context(caller) == {}
        now = (datetime.now(UTC) + timedelta(minutes=2)).isoformat()  # the control: by a clock that is a little fast
        assert ack(caller, proposal, caller.say("Yes, Berlin.", event_time=now)).json()["outcome"] == "approved"

    def test_a_key_without_the_scope_cannot_say_yes_to_its_own_proposal(self, caller: Caller, mute: Caller) -> None:
        proposal = queue(mute)
        refused(ack(mute, proposal, mute.say("Yes.")), 422, "turn_unvouched")
        assert ack(mute, proposal, caller.say("Yes.")).json()["outcome"] == "approved"  # the control

    def test_a_bare_yes_is_for_what_was_asked_last(self, caller: Caller) -> None:
        city, name = queue(caller), queue(caller, "The user is called Alex.")
        yes = caller.say("Yes.")
        refused(ack(caller, city, yes), 422, "not_an_agreement")
        assert ack(caller, name, yes).json()["outcome"] == "approved"
        refused(ack(caller, city, yes), 422, "not_an_agreement")  # it is used up
        assert context(caller) == {"preferred_name": "Alex"}
        assert ack(caller, city, caller.say("Yes, Berlin.")).json()["outcome"] == "approved"

    def test_a_yes_that_names_a_value_is_for_that_one(self, caller: Caller) -> None:
        city, name = queue(caller), queue(caller, "The user is called Alex.")
        yes = caller.say("Yes, Berlin.")
        refused(ack(caller, name, yes), 422, "not_an_agreement")
        assert ack(caller, city, yes).json()["outcome"] == "approved"

    def test_two_of_one_turn_are_asked_in_their_order(self, caller: Caller) -> None:
        drawn = caller.say("I live in Berlin. Please call me Alex.")["extracted"]
        assert [each["action"] for each in drawn] == ["queued_for_consent"] * 2
        first, last = (each["id"] for each in drawn)
        yes = caller.say("Yes.")
        refused(ack(caller, first, yes), 422, "not_an_agreement")
        assert ack(caller, last, yes).json()["outcome"] == "approved"

    def test_what_is_proposed_again_is_asked_again(self, caller: Caller) -> None:
        city, name = queue(caller), queue(caller, "The user is called Alex.")
        before = caller.say("Yes.")
        assert queue(caller) == city
        after = caller.say("Yes.")
        refused(ack(caller, name, after), 422, "not_an_agreement")
        refused(ack(caller, city, before), 422, "not_an_agreement")
        assert ack(caller, city, after).json()["outcome"] == "approved"

    def test_what_was_decided_or_proposed_later_or_lapsed_is_not_asked(
        self, tenant: Tenant, caller: Caller, admin: Caller
    ) -> None:
        city = queue(caller)
        decided, lapsed = queue(caller, "The user is called Alex."), queue(caller, "The user is called Kim.")
        decide(admin, decided, "reject", agent="supervisor")
        lapse(tenant, lapsed)
        yes = caller.say("Yes.")
        queue(caller, "The user is called Sam.")
        assert ack(caller, city, yes).json()["outcome"] == "approved"

    def test_the_reviewer_is_told_that_one_key_did_both(self, tenant: Tenant, caller: Caller, admin: Caller) -> None:
        other = tenant.caller("supervisor")
        own, written, foreign = caller.say("I live in Berlin.")["extracted"][0]["id"], None, None
        assert ack(caller, own, caller.say("Yes, Berlin.")).json()["outcome"] == "approved"
        written = queue(caller, "The user is called Alex.")
        assert ack(other, written, caller.say("Yes, Alex.")).json()["outcome"] == "approved"
        foreign = queue(caller, "The user lives in Munich.")
        done = ack(caller, foreign, other.say("Yes, Munich.")).json()
        found = {each["id"]: each for each in listed(admin, agent="supervisor")}
        assert {each: found[each]["self_acknowledged"] for each in (own, written, foreign)} == {
            own: True, written: True, foreign: False,
        }  # fmt: skip
        for proposal, so in ((own, True), (foreign, None)):
            memory = found[proposal]["memory_id"]
            entry = caller.get(f"/v1/memories/{memory}/history").json()["items"][-1]
            assert (entry["event"], entry["meta"].get("self_acknowledged")) == ("CONSENT", so)
        assert done["memory_id"] == found[foreign]["memory_id"]

    def test_who_recorded_the_evidence_of_a_job_s_proposal_did_both(
        self, tenant: Tenant, caller: Caller, admin: Caller
    ) -> None:
        other = tenant.caller("supervisor")
        caller.say("I live in Berlin.", auto_extract=False)
        other.say("Please call me Alex.", auto_extract=False)
        close(caller)
        Night(tenant, datetime.now(UTC)).run("facts")
        found = {each["new_value"]: each["id"] for each in listed(admin, agent="supervisor")}
        for value in ("Berlin", "Alex"):
            assert ack(caller, found[value], caller.say(f"Yes, {value}.")).json()["outcome"] == "approved"
        after = {each["new_value"]: each["self_acknowledged"] for each in listed(admin, agent="supervisor")}
        assert after == {"Berlin": True, "Alex": False}


class TestKeysOverHttp:
    """A key has the scope on request alone, from one who has it, and keeps it when it is rotated."""

    def test_only_on_request(self, admin: Caller) -> None:
        usual = made(create(admin, agent="supervisor"))
        assert usual["scopes"] == ["memory:read", "memory:write", "checkpoint"]
        asked = made(create(admin, agent="supervisor", scopes=["memory:read", "memory:write", "turns:user"]))
        assert asked["scopes"] == ["memory:read", "memory:write", "turns:user"]
        assert Caller(admin.client, usual["key"]).say(SISTER)["vouched"] is False
        assert Caller(admin.client, asked["key"]).say(SISTER)["vouched"] is True

    def test_nobody_gives_what_they_lack(self, tenant: Tenant, admin: Caller) -> None:
        every = tuple(scope for scope in KeyScope if scope != KeyScope.USER_TURNS)
        lesser = tenant.caller(None, act_for=["*"], scopes=every)
        asked = {"agent": "supervisor", "scopes": ["memory:write", "turns:user"]}
        refused(lesser.post(KEYS, asked), 403, "scope_forbidden")
        refused(lesser.post(f"{KEYS}/{tenant.caller('supervisor').key_id}/rotate", {}), 403, "scope_forbidden")
        assert made(admin.post(KEYS, asked))["scopes"] == ["memory:write", "turns:user"]  # the control

    def test_rotated_it_stays(self, tenant: Tenant, admin: Caller) -> None:
        for caller, so in ((tenant.caller("supervisor"), True), (tenant.caller("supervisor", scopes=WITHOUT), False)):
            new = holder(admin, admin.post(f"{KEYS}/{caller.key_id}/rotate", {}))
            assert new.say(SISTER)["vouched"] is so

    def test_the_operator_s_too(self, tenant: Tenant) -> None:
        keys = tenant.server.wired.keys
        old = tenant.caller("supervisor")
        rotated = tenant.server.run(keys.rotate(tenant.name, old.key_id, Rotation()))
        assert rotated.made.stored.scopes == tuple(SUPERVISING)
        assert Caller(tenant.server.client, rotated.made.credential).say(SISTER)["vouched"] is True

    def test_a_token_gives_it_where_the_operator_lets_it(self, trust: Trust) -> None:
        scope = "memory:read memory:write turns:user"
        assert trust().bearer(scope=scope).say(SISTER)["vouched"] is False
        granting = trust(oidc_scopes=("memory:read", "memory:write", "turns:user"))
        assert granting.bearer(scope=scope).say(SISTER)["vouched"] is True
        assert granting.bearer(scope="memory:write").say(SISTER)["vouched"] is False


class TestTransfer:
    """What an import brings counts as what the importing key may record, and never as more than the file says."""

    @pytest.mark.parametrize("mode", ["add", "restore"])
    @pytest.mark.parametrize("scopes", [WITHOUT, WITH], ids=["without", "with"])
    def test_the_key_and_the_line_both_vouch(self, tenant: Tenant, mode: str, scopes: tuple[KeyScope, ...]) -> None:
        importing = tenant.caller("supervisor", scopes=(*scopes, KeyScope.ADMIN))
        line = {"record": "turn", "thread_id": THREAD, "role": "user"}
        lines = [
            line | {"text": "I have a cat."}, line | {"text": "I have a dog.", "vouched": False},
            line | {"text": "Lovely.", "role": "assistant"},
        ]  # fmt: skip
        taken(importing, lines, mode=mode)
        rows = tenant.rows("SELECT text, key_id, vouched FROM turns WHERE tenant_id = %(tenant)s ORDER BY seq")
        assert {row["text"]: bool(row["vouched"]) for row in rows} == {
            "I have a cat.": scopes == WITH, "I have a dog.": False, "Lovely.": True,
        }  # fmt: skip
        assert {row["key_id"] for row in rows} == {importing.key_id}

    def test_an_export_tells_what_nobody_vouched_for(self, tenant: Tenant, caller: Caller, mute: Caller) -> None:
        caller.say("I have a cat."), mute.say("I have a dog.")
        admin = tenant.caller("supervisor", scopes=OPERATING)
        cat, dog = of(exported(admin), "turn")
        assert ("vouched" in cat, dog["vouched"]) == (False, False)  # a version that knows no such field takes the rest
        assert "key_id" not in cat
        restored(admin, [cat, dog], user="ben")
        rows = tenant.rows("SELECT vouched FROM turns WHERE tenant_id = %(tenant)s AND user_id = 'ben' ORDER BY seq")
        assert [bool(row["vouched"]) for row in rows] == [True, False]

    def test_a_decision_keeps_what_the_reviewer_was_told(self, tenant: Tenant, caller: Caller) -> None:
        admin = tenant.caller("supervisor", scopes=OPERATING)
        proposal = caller.say("I live in Berlin.")["extracted"][0]["id"]
        assert ack(caller, proposal, caller.say("Yes.")).json()["outcome"] == "approved"
        queue(caller, "The user is called Alex.")
        lines = of(exported(admin), "proposal")
        assert sorted(line.get("self_acknowledged", False) for line in lines) == [False, True]
        tenant.rows("DELETE FROM consent_proposals WHERE tenant_id = %(tenant)s")
        restored(admin, exported(admin)[:-1] + lines)
        assert sorted(each["self_acknowledged"] for each in listed(admin)) == [False, True]

"""A value that was refused, or that waits for consent, in other clothes: on every path, beside what is ordinary."""

from collections.abc import Callable
from typing import Any

import pytest

from memplane.domain.identity.principal import KeyScope
from support.callers import THREAD, USER, Caller, Json, Tenant
from support.clothes import CLOTHES, ORDINARY
from support.consenting import REVIEW, context, decide, listed, queue
from support.telling import say, texts, write
from support.transfer import OPERATING, taken

SAILS, BRAGA = "The user sails to Porto.", "The user sails to Braga."
LIVES = "The user lives in Porto."
WORN = {
    each.name: each.on
    for each in CLOTHES
    if each.name
    in {"bold within words", "tags", "entities", "soft hyphens", "negative squared", "digits", "letters apart"}
}
FIELDS: dict[str, Callable[[str], Json]] = {
    "content": lambda said: {"content": said},
    "among others": lambda said: {"content": f"The van is red. {said}"},
    "narrative": lambda said: {"content": "The user sings.", "narrative": f"It rained. {said}"},
    "facts": lambda said: {"content": "The user sings.", "facts": ["The van is red.", said]},
    "title": lambda said: {"content": "The user sings.", "title": said},
    "attribute": lambda said: {"content": "The user sings.", "attributes": {"note": [said]}},
    "name of an attribute": lambda said: {"content": "The user sings.", "attributes": {said: True}},
}
LABELS: dict[str, Callable[[str], Json]] = {
    "tags": lambda said: {"content": "The user sings.", "tags": [said]},
    "related_files": lambda said: {"content": "The user sings.", "related_files": [said]},
}


def sent(caller: Caller, category: str, body: Json) -> str:
    """What becomes of a memory."""
    answer = caller.post("/v1/memories", {"user_id": USER, "category": category} | body)
    told: Json = answer.json()
    return str(told.get("outcome") or told["code"])


def refused_sails(caller: Caller, category: str = "event") -> None:
    """Let a person reject a value."""
    say(caller, write(caller, SAILS, category)["id"], "reject")


class TestRejected:
    """A value that a person rejected."""

    def test_it_is_refused_in_all_clothes(self, tenant: Tenant, caller: Caller) -> None:
        refused_sails(caller)
        before = tenant.count("memories")
        outcomes = {each.name: sent(caller, "event", {"content": each.on(SAILS)}) for each in CLOTHES}
        assert {name: told for name, told in outcomes.items() if told != "value_rejected"} == {}
        assert tenant.count("memories") == before
        dressed = [each.on(BRAGA) for each in CLOTHES if each.name in WORN]
        assert "value_rejected" not in {sent(caller, "event", {"content": each}) for each in dressed}  # the control

    @pytest.mark.parametrize("name", ["tags", "entities", "negative squared", "digits"])
    def test_what_was_rejected_in_clothes_is_refused_without(self, caller: Caller, name: str) -> None:
        say(caller, write(caller, WORN[name](SAILS))["id"], "reject")
        assert sent(caller, "event", {"content": SAILS}) == "value_rejected"
        assert sent(caller, "event", {"content": BRAGA}) == "created"

    @pytest.mark.parametrize("field", [*FIELDS, *LABELS])
    def test_it_is_refused_in_every_field(self, caller: Caller, field: str) -> None:
        refused_sails(caller)
        of = (FIELDS | LABELS)[field]
        told = {name: sent(caller, "event", of(on(SAILS))) for name, on in WORN.items()}
        assert told == dict.fromkeys(WORN, "value_rejected")
        assert sent(caller, "event", of(WORN["digits"](BRAGA))) == "created"

    def test_it_is_refused_by_every_other_way_in(self, tenant: Tenant, caller: Caller) -> None:
        refused_sails(caller)
        admin = tenant.caller("supervisor", scopes=OPERATING)
        other = write(caller, "The user owns a piano.")["id"]
        for name, on in WORN.items():
            said = on(SAILS)
            answers = [
                caller.patch(f"/v1/memories/{other}", {"content": said}),
                caller.post(f"/v1/memories/{other}/correct", {"content": said}),
            ]
            assert [each.json()["code"] for each in answers] == ["value_rejected"] * 2, name
            line = {"record": "memory", "category": "event", "content": said}
            assert taken(admin, [line], mode="add")["refused"][0]["code"] == "value_rejected", name
        assert taken(admin, [line | {"content": BRAGA}], mode="add")["refused"] == []
        assert {SAILS} & texts(caller) == set()

    def test_the_outcome_of_a_tool_is_read(self, executor: Caller) -> None:
        refused_sails(executor, "recent_activity")
        run = {"user_id": USER, "tool": "search", "arguments": {"page": 2}}
        for name, on in WORN.items():
            answer = executor.post("/v1/observations", run | {"outcome": on(SAILS)}).json()
            assert answer.get("code") == "value_rejected", name
        assert executor.post("/v1/observations", run | {"outcome": BRAGA}).status_code == 201

    def test_a_summary_is_read(self, caller: Caller) -> None:
        refused_sails(caller, "activity")
        for name, on in WORN.items():
            told = []
            for said in (SAILS, BRAGA):
                thread = f"{name} {said}".replace(" ", "-")
                caller.say("Where does the boat go?", thread_id=thread)
                caller.say(on(said), role="assistant", thread_id=thread)
                summary = caller.post(f"/v1/sessions/{thread}/close", {}).json()["memory_id"]
                stored = summary is not None and caller.get(f"/v1/memories/{summary}").json()["content"]
                told.append(bool(stored) and on(said) in stored)
            assert told == [False, name != "negative squared"], name  # a text without plain letters concludes nothing

    def test_an_erased_value_does_not_come_back_in_clothes(self, tenant: Tenant, caller: Caller) -> None:
        admin = tenant.caller(None, act_for=["*"], scopes=tuple(KeyScope))
        write(caller, SAILS)
        assert admin.post(f"/v1/users/{USER}/erase", {"confirm": USER}).status_code in {200, 202}
        inner = tenant.caller("supervisor", trust="inner")  # who speaks for the person may say it anew
        told = {name: sent(inner, "event", {"content": on(SAILS)}) for name, on in WORN.items()}
        assert told == dict.fromkeys(WORN, "value_rejected")
        assert sent(inner, "event", {"content": BRAGA}) == "created"


class TestSensitive:
    """A field of the profile."""

    def test_it_waits_in_all_clothes(self, tenant: Tenant, caller: Caller) -> None:
        outcomes = {each.name: sent(caller, "event", {"content": each.on(LIVES)}) for each in CLOTHES}
        assert {name: told for name, told in outcomes.items() if told != "queued_for_consent"} == {}
        assert tenant.count("memories") == 0
        assert sent(caller, "event", {"content": WORN["tags"](SAILS)}) == "created"  # the control

    @pytest.mark.parametrize("field", FIELDS)
    def test_it_waits_in_every_field(self, tenant: Tenant, caller: Caller, field: str) -> None:
        told = {name: sent(caller, "event", FIELDS[field](on(LIVES))) for name, on in WORN.items()}
        assert told == dict.fromkeys(WORN, "queued_for_consent")
        assert tenant.count("memories") == 0
        assert sent(caller, "event", FIELDS[field](WORN["tags"](SAILS))) == "created"

    @pytest.mark.parametrize("name", ["c1ty", "**city**", "\u0441ity", "C i t y", "\uff43ity"], ids=ascii)
    def test_the_name_of_an_attribute_is_read(self, caller: Caller, name: str) -> None:
        assert (
            sent(caller, "event", {"content": "The user sings.", "attributes": {name: "Porto"}}) == "queued_for_consent"
        )
        assert sent(caller, "event", {"content": "The user sings.", "attributes": {"velocity": "Porto"}}) == "created"

    def test_the_proposal_is_plainly_spelled(self, tenant: Tenant, caller: Caller) -> None:
        reviewer = tenant.caller("supervisor", scopes=REVIEW)
        proposal = queue(caller, WORN["bold within words"](LIVES))
        assert [each["new_value"] for each in listed(reviewer)] == ["Porto"]
        decide(reviewer, proposal)
        assert context(caller) == {"city": "Porto"}

    def test_a_refused_value_of_a_field_is_refused_in_all_clothes(self, tenant: Tenant, caller: Caller) -> None:
        reviewer = tenant.caller("supervisor", scopes=REVIEW)
        decide(reviewer, queue(caller, LIVES), "reject")
        for category in ("profile", "event"):
            outcomes = {each.name: sent(caller, category, {"content": each.on(LIVES)}) for each in CLOTHES}
            assert {name: told for name, told in outcomes.items() if told != "value_rejected"} == {}, category
        assert sent(caller, "event", {"content": WORN["digits"]("The user lives in Braga.")}) == "queued_for_consent"

    def test_an_import_and_a_tool_wait_too(self, tenant: Tenant, executor: Caller) -> None:
        admin = tenant.caller("supervisor", scopes=OPERATING)
        run = {"user_id": USER, "tool": "search", "arguments": {"page": 2}}
        for name, on in WORN.items():
            line = {"record": "memory", "category": "event", "content": on(LIVES)}
            assert taken(admin, [line], mode="add")["outcomes"] == ["queued_for_consent"], name
            answer = executor.post("/v1/observations", run | {"outcome": on(LIVES)}).json()
            assert answer.get("outcome") == "queued_for_consent", name
        assert tenant.count("memories") == 0
        assert taken(admin, [line | {"content": SAILS}], mode="add")["outcomes"] == ["created"]


class TestNotRecognised:
    """What the security page says is not recognised: stored as it is, without any change of a profile."""

    @pytest.mark.parametrize(
        "said",
        [
            "VGhlIHVzZXIgc2FpbHMgdG8gUG9ydG8u", "The user sails to %50%6F%72%74%6F.", "The user sails to \\u0050orto.",
            "Gur hfre fnvyf gb Cbegb.", "otroP ot slias resu ehT", "The user sails to oʇɹoԀ.",
            "The user sa1ls to Se0u1a1i Por+o.", "El usuario navega a Oporto.", "The u s e r sails to |°0rt°.",
        ],
        ids=ascii,
    )  # fmt: skip
    def test_codes_and_other_languages(self, caller: Caller, said: str) -> None:
        refused_sails(caller)
        assert sent(caller, "event", {"content": said}) == "created"
        assert sent(caller, "event", {"content": SAILS}) == "value_rejected"  # the control

    @pytest.mark.parametrize("name", ["external_id", "actor_id", "run_id", "thread_id"])
    def test_names_that_the_caller_gives(self, caller: Caller, name: str) -> None:
        refused_sails(caller)
        assert sent(caller, "event", {"content": "The user sings.", name: SAILS}) == "created"
        assert sent(caller, "event", {"content": SAILS, name: "n-1"}) == "value_rejected"

    def test_an_alias(self, caller: Caller) -> None:
        say(caller, write(caller, "The blue whale sings.")["id"], "reject")
        caller.remember("Ana Ruiz owns a piano.", "event")
        answer = caller.post(f"/v1/entities/{caller.entity('Ana Ruiz')}/aliases", {"alias": "The blue whale sings"})
        assert answer.status_code == 200
        assert sent(caller, "event", {"content": "The blu3 wh4le sings."}) == "value_rejected"

    def test_turns_are_kept_verbatim_and_nothing_is_drawn(self, tenant: Tenant, caller: Caller) -> None:
        say(caller, write(caller, "The user likes jazz.", "preferences")["id"], "reject")
        for said in ("I like j<b>az</b>z.", "I like jazz."):
            told = caller.say(said)
            assert {each["action"] for each in told["extracted"]} <= {"refused"}
            turns = tenant.rows("SELECT text FROM turns WHERE tenant_id = %(tenant)s")
            assert said in {each["text"] for each in turns}
        assert "created" in {each["action"] for each in caller.say("I like blues.")["extracted"]}

    def test_checkpoints(self, caller: Caller) -> None:
        refused_sails(caller)
        body = {"user_id": USER, "memory": {"note": SAILS}}
        assert caller.send("PUT", f"/v1/checkpoints/{THREAD}", json=body).status_code in {200, 201}
        assert sent(caller, "event", {"content": SAILS}) == "value_rejected"


def test_ordinary_texts_are_stored_as_before(tenant: Tenant, caller: Caller) -> None:
    """Beside a refused value and a refused field nothing else is refused."""
    reviewer = tenant.caller("supervisor", scopes=REVIEW)
    refused_sails(caller)
    decide(reviewer, queue(caller, LIVES), "reject")
    held: dict[str, Any] = {}
    for text in ORDINARY:
        told = caller.post("/v1/memories", {"user_id": USER, "category": "event", "content": text, "type": "episodic"})
        held[text] = told.json()
    assert {text: told for text, told in held.items() if told.get("outcome") != "created"} == {}
    rows = tenant.rows("SELECT content, narrative FROM memories WHERE tenant_id = %(tenant)s AND state = 'active'")
    stored = {" ".join(f"{row['content']} {row['narrative'] or ''}".split()) for row in rows}
    assert stored == {" ".join(text.split()) for text in ORDINARY}
    assert len(ORDINARY) >= 60

"""Consent by meaning: a claim on a sensitive field waits in whatever category it is made, and what is none does not."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from memplane.adapters.policy.loading import shipped_policies
from support.callers import THREAD, USER, Caller, Json, Tenant, refused
from support.consenting import REVIEW, context, decide, listed, post, queue
from support.nights import Night
from support.serving import RunningServer
from support.telling import texts
from support.transfer import OPERATING, taken

MOVED, LISBON = "The user moved to Porto.", "The user lives in Lisbon."
SUPERVISED = ("goals", "preferences", "event", "relationships", "tasks")
CLAIMS = {
    "I moved to Porto.": ("city", "Porto"),
    "I live in Porto now.": ("city", "Porto"),
    "I've relocated to Porto.": ("city", "Porto"),
    "My new city is Porto.": ("city", "Porto"),
    "We live in Porto these days.": ("city", "Porto"),
    "I live in St. Gallen.": ("city", "St. Gallen"),
    "I moved to St. John's last year.": ("city", "St. John's"),
    "Please call me Kit.": ("preferred_name", "Kit"),
    "I go by Kit.": ("preferred_name", "Kit"),
    "My name is Kit Marlowe.": ("preferred_name", "Kit Marlowe"),
    "I prefer to be addressed as Dr. Adeyemi.": ("preferred_name", "Dr. Adeyemi"),
    "I am called Prof. Li.": ("preferred_name", "Prof. Li"),
    "Call me J. R. Smith.": ("preferred_name", "J. R. Smith"),
    "My pronouns are they/them.": ("pronouns", "they/them"),
    "I use they/them pronouns.": ("pronouns", "they/them"),
    "Please answer in German.": ("language", "German"),
    "I prefer German.": ("language", "German"),
    "My mother tongue is Catalan.": ("language", "Catalan"),
}
"""What a person says of themselves, and what it proposes."""
OTHERWISE = (
    "Kira's brother moved to Porto.", "The user's sister goes by Kit.", "The user visited Porto.",
    "The user booked a flight to Porto.", "The Porto office moved to the second floor.", "The project's city is Porto.",
    "The user's favourite language is Go.", "The user plans to move to Porto.", "The user never moved to Porto.",
    "The user almost moved to Porto.", "Ben moved to Porto.", "The user works for a Porto-based company.",
    "The user moved to the marketing team.", "The user's manager prefers to be called Jo.",
    "Kit uses they/them pronouns.",
    "The user met Kit, who lives in Porto.", "The user likes German food.", "The user is allergic to Ibuprofen.",
    "If the user moved to Porto, rent would be lower.", "The user's dog is called Rex.", "The user speaks German.",
)  # fmt: skip
"""What is about somebody or something else, or is not so."""


@pytest.fixture
def reviewer(tenant: Tenant) -> Caller:
    """One who decides."""
    return tenant.caller("supervisor", scopes=REVIEW)


def waiting(reviewer: Caller) -> list[tuple[str, str]]:
    """The fields and values that wait, oldest first."""
    return [(each["field"], each["new_value"]) for each in reversed(listed(reviewer, state="pending"))]


class TestTurns:
    """What a person says of a sensitive field is proposed, and nothing is stored beside the turn."""

    @pytest.mark.parametrize("said", CLAIMS)
    def test_a_claim_waits_and_the_turn_stays(
        self, tenant: Tenant, caller: Caller, reviewer: Caller, said: str
    ) -> None:
        answer = caller.say(said)
        assert {each["action"] for each in answer["extracted"]} == {"queued_for_consent"}
        assert waiting(reviewer) == [CLAIMS[said]]
        assert tenant.count("memories") == 0
        (turn,) = caller.ask(said, categories=["activity"])["items"]
        assert turn["id"] == answer["turn_id"]

    @pytest.mark.parametrize(
        "said",
        [
            "My brother moved to Porto.", "I visited Porto.", "Can you answer in German?",
            "He moved to Porto.",
            "If I moved to Porto, would rent be lower?", "My favourite language is Rust.", "I am flying to Porto.",
            "Translate this: \"I moved to Porto.\"", "The server moved to Frankfurt.", "I moved to the new office.",
        ],
    )  # fmt: skip
    def test_what_is_none_proposes_nothing(self, caller: Caller, reviewer: Caller, said: str) -> None:
        caller.say(said)
        assert waiting(reviewer) == []
        caller.say("I moved to Porto.")
        assert waiting(reviewer) == [("city", "Porto")]  # the control

    def test_two_claims_are_two_proposals(self, caller: Caller, reviewer: Caller) -> None:
        caller.say("I moved to Porto and I go by Kit.")
        assert sorted(waiting(reviewer)) == [("city", "Porto"), ("preferred_name", "Kit")]

    def test_what_is_drawn_when_the_session_closes_waits_too(
        self, tenant: Tenant, caller: Caller, reviewer: Caller, night: Night
    ) -> None:
        for said in ("I moved to Porto.", "I am allergic to peanuts."):
            caller.say(said, auto_extract=False)
        assert caller.post(f"/v1/sessions/{THREAD}/close", {"user_id": USER}).status_code in {200, 201}
        night.run("facts")
        assert waiting(reviewer) == [("city", "Porto")]
        drawn = "SELECT content FROM memories WHERE tenant_id = %(tenant)s AND type <> 'episodic'"
        assert not any("Porto" in row["content"] for row in tenant.rows(drawn))


class TestWrites:
    """Every way to write checks what is said, in whatever category it is filed."""

    @pytest.mark.parametrize("category", SUPERVISED)
    def test_a_claim_waits_whole_in_every_category(
        self, tenant: Tenant, caller: Caller, reviewer: Caller, category: str
    ) -> None:
        told = "The user moved to Porto for a job at Siemens."
        proposal = queue(caller, told, category=category)
        assert tenant.count("memories") == 0
        (shown,) = listed(reviewer)
        assert (shown["id"], shown["category"], shown["content"]) == (proposal, "profile", told)
        assert post(caller, "The user owns a piano.", category=category)["outcome"] == "created"  # the control
        held = caller.get(f"/v1/memories/{decide(reviewer, proposal)['memory_id']}").json()
        assert (held["category"], held["content"]) == ("profile", told)
        assert context(caller) == {"city": "Porto"}

    @pytest.mark.parametrize("content", OTHERWISE)
    def test_what_is_no_claim_is_stored(self, caller: Caller, reviewer: Caller, content: str) -> None:
        assert post(caller, content, category="relationships")["outcome"] == "created"
        assert listed(reviewer) == []

    @pytest.mark.parametrize(
        "said",
        [
            {"facts": [MOVED]}, {"title": "City: Porto"}, {"narrative": f"It rained. {MOVED}"},
            {"tags": ["city:porto"]},
            {"attributes": {"city": "Porto"}}, {"attributes": {"user": {"city": "Porto"}}},
            {"content": "The user m\u043eved to Porto."}, {"content": "Ana moved to Porto."},
            {"content": "City: Porto"},
            {"content": MOVED, "type": "episodic"}, {"content": MOVED, "type": "insight"},
        ],
        ids=str,
    )  # fmt: skip
    def test_in_whatever_part_it_stands(self, tenant: Tenant, caller: Caller, reviewer: Caller, said: Json) -> None:
        queue(caller, **({"content": "The user sings.", "category": "event"} | said))
        ((field, value),) = waiting(reviewer)
        assert (field, value.casefold()) == ("city", "porto")
        assert tenant.count("memories") == 0

    @pytest.mark.parametrize(
        "said",
        [
            {"content": "The concert is at the arena.", "attributes": {"city": "Porto"}},
            {"content": "Ben plays the cello.", "attributes": {"pronouns": "he/him"}},
            {"content": "The user sings.", "attributes": {"venue": {"city": "Porto"}}},
            {"content": "The user sings.", "attributes": {"language": "Python"}},
            {"content": "The user sings.", "tags": ["language:go"]},
        ],
        ids=str,
    )  # fmt: skip
    def test_labels_of_something_else_are_no_claims(self, caller: Caller, said: Json) -> None:
        assert post(caller, category="event", **said)["outcome"] == "created"

    def test_a_decided_name_is_the_user_s(self, caller: Caller, reviewer: Caller) -> None:
        assert post(caller, "Kit moved to Porto.", category="event")["outcome"] == "created"
        decide(reviewer, queue(caller, "The user goes by Kit Marlowe."))
        queue(caller, "Kit moved to Lisbon.", category="event")

    def test_a_change_in_place_a_correction_and_a_move(self, caller: Caller, reviewer: Caller) -> None:
        memory = post(caller, "The user owns a piano.", category="event")["id"]
        patched = caller.patch(f"/v1/memories/{memory}", {"content": MOVED}).json()
        assert patched["outcome"] == "queued_for_consent"
        corrected = caller.post(f"/v1/memories/{memory}/correct", {"content": LISBON}).json()
        assert corrected["outcome"] == "queued_for_consent"
        assert texts(caller) == {"The user owns a piano."}
        done = decide(reviewer, patched["id"])
        assert done["overruled"] == [memory]  # approved, it takes the place of what it was meant to replace
        assert texts(caller) == {MOVED}

    def test_what_was_stored_before_needs_consent_to_reach_the_profile(self, tenant: Tenant, caller: Caller) -> None:
        old = post(caller, "The user owns a piano.", category="event")["id"]
        tenant.rows("UPDATE memories SET content = %(said)s WHERE id = %(id)s", said=MOVED, id=UUID(old))
        assert caller.patch(f"/v1/memories/{old}", {"importance": 5}).json()["outcome"] == "updated"
        assert caller.patch(f"/v1/memories/{old}", {"title": "A move"}).json()["outcome"] == "updated"
        moved = caller.patch(f"/v1/memories/{old}", {"category": "profile"}).json()
        assert moved["outcome"] == "queued_for_consent"

    @pytest.mark.parametrize("mode", ["add", "restore"])
    def test_an_import(self, tenant: Tenant, mode: str) -> None:
        supervisor = tenant.caller("supervisor", scopes=OPERATING)
        lines = [
            {"record": "memory", "category": "event", "content": text} for text in (MOVED, "The user owns a piano.")
        ]
        first, other = taken(supervisor, lines, mode=mode)["outcomes"]
        assert first == "queued_for_consent"
        assert other in {"created", "restored"}
        assert waiting(supervisor) == [("city", "Porto")]


class TestRefusals:
    """A refused value is refused for its field in every category, and nobody learns where it was refused."""

    @pytest.mark.parametrize("where", ["profile", "tasks"])
    def test_a_refused_value_is_refused_everywhere(
        self, tenant: Tenant, caller: Caller, reviewer: Caller, where: str
    ) -> None:
        decide(reviewer, queue(caller, MOVED, category=where), "reject")
        body = {"user_id": USER, "content": "The user lives in P\u043erto!"}
        told = [refused(caller.post("/v1/memories", body | {"category": each}), 409, "value_rejected")
                for each in ("profile", *SUPERVISED)]  # fmt: skip
        planner = tenant.caller("planner")
        told.append(refused(planner.post("/v1/memories", body | {"category": "projects"}), 409, "value_rejected"))
        assert all(each == told[0] for each in told)
        assert "profile" not in str(told[0])
        assert "tasks" not in str(told[0])
        (drawn,) = caller.say("I moved to Porto.")["extracted"]
        assert (drawn["action"], drawn["id"]) == ("refused", None)
        assert tenant.count("memories") == 0
        queue(caller, LISBON, category="preferences")  # the controls: another value, and no claim
        assert post(caller, "The user visited Porto.", category="preferences")["outcome"] == "created"

    def test_what_was_rejected_as_a_memory_too(self, caller: Caller, reviewer: Caller) -> None:
        memory = decide(reviewer, queue(caller, MOVED, category="event"))["memory_id"]
        assert caller.post(f"/v1/memories/{memory}/reject", {}).status_code == 200
        body = {"user_id": USER, "category": "preferences", "content": "The user lives in Porto."}
        refused(caller.post("/v1/memories", body), 409, "value_rejected")


class TestWriters:
    """One who may not see the field's category proposes, and learns nothing of it."""

    def test_of_what_holds(self, tenant: Tenant, caller: Caller, reviewer: Caller) -> None:
        decide(reviewer, queue(caller, LISBON))
        planner = tenant.caller("planner", scopes=REVIEW)
        body = {"user_id": USER, "category": "projects"}
        answers = [planner.post("/v1/memories", body | {"content": each}) for each in (LISBON, MOVED)]
        assert [each.status_code for each in answers] == [202, 202]
        shapes = [{name: value for name, value in each.json().items() if name != "id"} for each in answers]
        assert shapes[0] == shapes[1]
        assert listed(planner) == []
        for each in answers:
            refused(planner.post(f"/v1/consents/{each.json()['id']}/approve", {}), 404, "not_found")
        assert waiting(reviewer) == [("city", "Lisbon"), ("city", "Porto")]
        assert post(caller, LISBON, category="tasks")["outcome"] == "created"  # the control: he sees that it holds

    def test_who_reads_and_writes_the_field_s_category_decides(
        self, tenant: Tenant, caller: Caller, reviewer: Caller
    ) -> None:
        planner = tenant.caller("planner")
        queued = planner.post("/v1/memories", {"user_id": USER, "category": "projects", "content": MOVED}).json()
        assert decide(reviewer, queued["id"])["outcome"] == "approved"
        assert context(caller) == {"city": "Porto"}
        assert planner.get(f"/v1/users/{USER}/context").json()["items"] == []


class TestSecondField:
    """What an approved text states besides is looked at as it was decided since."""

    @pytest.fixture
    def tenant(self, start_server: Callable[..., RunningServer], tmp_path: Path) -> Tenant:
        """One whose policy has its sensitive fields in two categories."""
        for file in shipped_policies().glob("*.yaml"):
            (tmp_path / file.name).write_text(file.read_text())
        categories = tmp_path / "categories.yaml"
        changed = categories.read_text().replace(
            "{name: profile, context: all, sensitive_fields: [preferred_name, pronouns, city, language]}",
            "{name: profile, context: all, sensitive_fields: [pronouns, city, language]}",
        ).replace(
            "{name: relationships, context: rag, rag_length: 20}",
            "{name: relationships, context: rag, rag_length: 20, sensitive_fields: [preferred_name]}",
        )  # fmt: skip
        assert changed.count("sensitive_fields: [") == 2
        categories.write_text(changed)
        return Tenant(start_server(policies=tmp_path))

    BOTH = "The user moved to Porto. The user goes by Kit."

    def both(self, caller: Caller, reviewer: Caller) -> tuple[str, str]:
        """A proposal whose words say again a name that was decided on, and the memory that holds the name."""
        name = decide(reviewer, queue(caller, "The user goes by Kit."))["memory_id"]
        return queue(caller, self.BOTH), name

    def test_each_is_proposed_where_it_lies(self, caller: Caller, reviewer: Caller) -> None:
        self.both(caller, reviewer)
        assert {(each["field"], each["category"]) for each in listed(reviewer)} == {
            ("preferred_name", "relationships"), ("city", "profile"),
        }  # fmt: skip

    def test_it_is_approved_while_the_other_holds(self, caller: Caller, reviewer: Caller) -> None:
        proposal, _ = self.both(caller, reviewer)
        assert decide(reviewer, proposal)["outcome"] == "approved"
        assert context(caller) == {"city": "Porto", "preferred_name": "Kit"}

    def test_a_newer_value_is_not_undone(self, caller: Caller, reviewer: Caller) -> None:
        proposal, _ = self.both(caller, reviewer)
        decide(reviewer, queue(caller, "The user goes by Sam."))
        refused(reviewer.post(f"/v1/consents/{proposal}/approve", {}), 409, "proposal_outdated")
        assert context(caller) == {"preferred_name": "Sam"}
        assert self.BOTH not in texts(caller)

    def test_nor_a_newer_refusal(self, caller: Caller, reviewer: Caller) -> None:
        proposal, name = self.both(caller, reviewer)
        assert caller.post(f"/v1/memories/{name}/reject", {}).status_code == 200
        answer: Any = reviewer.post(f"/v1/consents/{proposal}/approve", {})
        assert (answer.status_code, answer.json()["code"]) in {(409, "proposal_outdated"), (409, "value_rejected")}
        assert context(caller) == {}
        assert texts(caller) == set()
        assert decide(reviewer, queue(caller, MOVED))["outcome"] == "approved"  # the control

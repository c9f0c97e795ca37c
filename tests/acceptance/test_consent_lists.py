"""Consent by meaning on two labelled lists, and around a value: long texts, summaries, attributes, other clothes.

The sealed list was written before the rules were looked at. The rules before the present ones proposed 50 of its 73
statements, and stored 71 of its 76 ordinary sentences.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from support.callers import THREAD, USER, Caller, Json, Tenant, refused
from support.consenting import REVIEW, context, decide, listed, post, queue
from support.policies import changed
from support.serving import RunningServer

LISTS = Path(__file__).parents[2] / "benchmarks" / "consent"
SEAL = "c1a0b59618c65fa4586a2c95aaa58fdebb1b60c9a931a57dd238f654cd073aa3"
MOVED, LISBON = "The user moved to Porto.", "The user lives in Lisbon."
EVENTS = {"category": "event"}


@pytest.fixture
def reviewer(tenant: Tenant) -> Caller:
    """One who decides."""
    return tenant.caller("supervisor", scopes=REVIEW)


def waiting(reviewer: Caller, user: str = USER) -> list[tuple[str, str]]:
    """The fields and values that wait, oldest first."""
    return [(each["field"], each["new_value"]) for each in reversed(listed(reviewer, state="pending", user_id=user))]


def judged(tenant: Tenant, name: str) -> tuple[float, float]:
    """The share of statements that are proposed for their field, and of ordinary sentences that are stored."""
    writers = {each: tenant.caller(each) for each in ("supervisor", "planner", "researcher", "stylist", "executor")}
    where = {
        "projects": "planner", "knowledge": "researcher", "interests": "researcher", "history": "researcher",
        "tone": "stylist", "style": "stylist", "constraints": "executor", "recent_activity": "executor",
    }  # fmt: skip
    reviewer = tenant.caller("supervisor", scopes=REVIEW)
    right: dict[bool, list[bool]] = {True: [], False: []}
    for place, line in enumerate((LISTS / f"{name}.tsv").read_text().splitlines()):
        via, field, category, text = line.split("\t")
        user = f"user-{place}"
        if via == "turn":
            writers["supervisor"].say(text, user_id=user)
        else:
            writer = writers[where.get(category, "supervisor")]
            answer = writer.post("/v1/memories", {"user_id": user, "category": category, "content": text})
            assert answer.status_code in {201, 202}, answer.text
        found = waiting(reviewer, user)
        right[field != "-"].append(any(each == field for each, _ in found) if field != "-" else not found)
    return tuple(sum(right[each]) / len(right[each]) for each in (True, False))  # type: ignore[return-value]  # two


class TestLists:
    """How much of what states a sensitive field is proposed, and how much of what states none is stored."""

    def test_the_sealed_list_is_as_it_was_written(self) -> None:
        assert hashlib.sha256((LISTS / "sealed.tsv").read_bytes()).hexdigest() == SEAL

    def test_sentences_that_the_rules_had_not_seen(self, tenant: Tenant) -> None:
        reach, stored = judged(tenant, "sealed")
        assert reach >= 0.9
        assert stored >= 0.97

    def test_sentences_that_they_were_made_with(self, tenant: Tenant) -> None:
        assert judged(tenant, "development") == (1.0, 1.0)


class TestValues:
    """A value ends where its name does, and is refused in whatever surrounds it."""

    @pytest.mark.parametrize(
        ("said", "value"),
        [
            ("I moved to Lyon yesterday.", "Lyon"), ("I live in Porto right now.", "Porto"),
            ("I live in downtown Porto.", "Porto"), ("I moved to Porto, Portugal.", "Porto"),
            ("I moved to Porto Alegre last week.", "Porto Alegre"), ("Call me Kit tomorrow.", "Kit"),
            ("I live in the Porto area these days.", "Porto"),
        ],
    )  # fmt: skip
    def test_a_value_does_not_run_on(self, caller: Caller, reviewer: Caller, said: str, value: str) -> None:
        caller.say(said)
        assert [each for _, each in waiting(reviewer)] == [value]

    @pytest.mark.parametrize(
        "said",
        [
            {"content": "The user lives in Porto, Portugal."}, {"content": "The user lives in downtown Porto."},
            {"content": "The user **lives** in the Porto area."}, {"content": "The user moved to PORTO yesterday."},
            {"content": "The user sings.", "attributes": {"city": "Porto, Portugal"}},
            {"content": "The user sings.", "attributes": {"home": {"city": ["Porto"]}}},
        ],
        ids=str,
    )  # fmt: skip
    def test_a_refused_value_in_other_clothes(self, caller: Caller, reviewer: Caller, said: Json) -> None:
        decide(reviewer, queue(caller, MOVED), "reject")
        refused(caller.post("/v1/memories", {"user_id": USER, **EVENTS, **said}), 409, "value_rejected")
        queue(caller, "The user lives in Porto Alegre.", **EVENTS)  # the control: another place

    def test_another_place_is_approved_beside_a_refused_one(self, caller: Caller, reviewer: Caller) -> None:
        decide(reviewer, queue(caller, "The user lives in Porto Alegre."), "reject")
        decide(reviewer, queue(caller, "The user lives in Porto, Portugal."))
        assert context(caller) == {"city": "Porto"}


class TestLongTexts:
    """A text is never lost for a claim in it: it waits whole."""

    STORY = (
        "The user grew up in Lyon. Later the user moved to Porto. The user worked in a bakery there. In the end "
        "the user moved to Ghent."
    )

    def test_a_story_of_several_moves(self, caller: Caller, reviewer: Caller) -> None:
        proposal = queue(caller, "A life in three places.", narrative=self.STORY, **EVENTS)
        (shown,) = listed(reviewer)
        assert (shown["id"], shown["new_value"]) == (proposal, "Ghent")
        held = decide(reviewer, proposal)["memory_id"]
        assert caller.get(f"/v1/memories/{held}").json()["narrative"] == self.STORY
        assert context(caller) == {"city": "Ghent"}

    def test_a_story_of_two_fields(self, caller: Caller, reviewer: Caller) -> None:
        told = f"{MOVED} It rained. The user goes by Kit."
        whole = queue(caller, "The user sings.", narrative=told, **EVENTS)
        name = next(each for each in listed(reviewer) if each["id"] != whole)
        assert sorted(waiting(reviewer)) == [("city", "Porto"), ("preferred_name", "Kit")]
        refused(reviewer.post(f"/v1/consents/{whole}/approve", {}), 409, "proposal_outdated")
        decide(reviewer, name["id"])
        decide(reviewer, whole)
        assert context(caller) == {"city": "Porto", "preferred_name": "Kit"}

    @pytest.mark.parametrize("kind", ["episodic", "observation"])
    def test_of_other_types(self, caller: Caller, reviewer: Caller, kind: str) -> None:
        queue(caller, "The user moved to Porto. The user moved to Ghent.", type=kind, **EVENTS)
        assert waiting(reviewer) == [("city", "Ghent")]

    def test_a_tool_s_run(self, caller: Caller, reviewer: Caller) -> None:
        run = {
            "user_id": USER,
            "tool": "crm",
            "arguments": {},
            "outcome": "The user lives in Porto. The user goes by Kit.",
        }
        assert caller.post("/v1/observations", run).status_code == 202
        assert len(waiting(reviewer)) == 2
        other = {**run, "outcome": "The page lives in Confluence. Ben moved to Porto."}
        assert caller.post("/v1/observations", other).status_code == 201  # the control

    def test_a_thousand_values_take_no_longer(self, caller: Caller, reviewer: Caller) -> None:
        many = " ".join(f"The user moved to P{chr(97 + i % 26)}{chr(97 + i // 26)}." for i in range(600))[:16_000]
        queue(caller, "The user sings.", narrative=many, **EVENTS)
        assert len(waiting(reviewer)) == 1


class TestSummaries:
    """A conversation's summary states no sensitive field that nobody agreed to."""

    def close(self, caller: Caller) -> Json:
        answer = caller.post(f"/v1/sessions/{THREAD}/close", {"user_id": USER})
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    @pytest.mark.parametrize(
        "last", [("user", "We decided to go with the van. I moved to Porto."), ("assistant", "You live in Porto.")]
    )
    def test_such_a_sentence_is_left_out_and_counted(
        self, tenant: Tenant, caller: Caller, last: tuple[str, str]
    ) -> None:
        caller.say("I moved to Porto.", auto_extract=False)
        caller.say("We decided to sell the piano.", auto_extract=False)
        caller.say(last[1], role=last[0], auto_extract=False)
        closed = self.close(caller)
        assert closed["left_out"] == 1 + (last[0] == "assistant")
        told = caller.get(f"/v1/memories/{closed['memory_id']}").json()
        assert "Porto" not in str(told)
        assert "piano" in str(told)
        counted = "SELECT op FROM events WHERE tenant_id = %(tenant)s AND status = 'skipped'"
        assert [row["op"] for row in tenant.rows(counted)] == ["extract"]

    def test_one_that_was_agreed_to_is_told(self, caller: Caller, reviewer: Caller) -> None:
        decide(reviewer, queue(caller, MOVED))
        caller.say("I moved to Porto.", auto_extract=False)
        closed = self.close(caller)
        assert closed["left_out"] == 0
        assert closed["summary"]["request"] == "I moved to Porto."

    def test_a_summary_of_nothing_else_is_none(self, caller: Caller) -> None:
        caller.say("I moved to Porto.", auto_extract=False)
        closed = self.close(caller)
        assert (closed["summary"], closed["memory_id"], closed["left_out"]) == (None, None, 1)


class TestAttributes:
    """Attributes state fields under their names, in groups and lists, and in sentences."""

    @pytest.mark.parametrize(
        "attributes",
        [
            {"home": {"city": "Porto"}}, {"city": ["Porto"]}, {"user": {"home": [{"city": "Porto"}]}},
            {"lives_in": "Porto"}, {"hometown": "Porto"}, {"note": "The user lives in Porto."},
            {"notes": ["It rained.", "The user moved to Porto."]}, {"home_city": "Porto"},
        ],
        ids=str,
    )  # fmt: skip
    def test_they_state_a_city(self, caller: Caller, reviewer: Caller, attributes: Json) -> None:
        queue(caller, "The user sings.", attributes=attributes, **EVENTS)
        assert waiting(reviewer) == [("city", "Porto")]

    @pytest.mark.parametrize(
        "attributes",
        [
            {"venue": {"city": "Porto"}}, {"cities": ["Porto"]}, {"name": "Report"}, {"note": "Ben lives in Porto."},
            {"friend": {"home": {"city": "Porto"}}}, {"friend": {"note": "Lives in Porto."}},
        ],
        ids=str,
    )  # fmt: skip
    def test_those_of_something_else_do_not(self, caller: Caller, attributes: Json) -> None:
        assert post(caller, "The user sings.", attributes=attributes, **EVENTS)["outcome"] == "created"


class TestCounting:
    """A claim that is not stored is counted."""

    def test_one_that_extraction_may_not_write(
        self, start_server: Callable[..., RunningServer], tmp_path: Path
    ) -> None:
        only = ("extraction:\n  write: [profile, ", "extraction:\n  write: [")
        tenant = Tenant(start_server(policies=changed(tmp_path, only)))
        answer = tenant.caller("supervisor").say("These days we happily live in Porto, and I love jazz.")
        counted = "SELECT category FROM events WHERE tenant_id = %(tenant)s AND op = 'extract' AND status = 'skipped'"
        assert [row["category"] for row in tenant.rows(counted)] == ["profile"]
        assert {each["category"] for each in answer["extracted"]} <= {"preferences"}

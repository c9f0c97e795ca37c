"""How an agent's words must be put, over HTTP: what is refused names the rule, and what is not an agent's is not."""

from typing import Any

import pytest

from memplane.domain.identity.principal import KeyScope
from support import writing_cases as cases
from support.callers import THREAD, USER, Caller, Tenant, refused

Json = dict[str, Any]
CODE = "writing_constraint"


def posted(caller: Caller, content: str, **fields: Any) -> Any:  # noqa: ANN401 - a response
    body = {"user_id": USER, "category": "tasks", "content": content} | fields
    return caller.post("/v1/memories", body)


class TestRefusals:
    """The code is one; the rule, the words and what to do are named."""

    @pytest.mark.parametrize(
        ("content", "rule", "words"),
        [
            ("The user said I like tea.", "first_person", "I like"),
            ("Ana told me that my car broke down.", "first_person", "me that"),
            ("My car broke down.", "first_person", "My car"),
            ("She likes tea.", "pronoun_subject", "She"),
            ("Yesterday she left.", "pronoun_subject", "she"),
            ("blue car", "complete_sentence", "blue car"),
            ("tea", "complete_sentence", "tea"),
        ],
    )
    def test_the_rule_and_the_words_are_named(self, planner: Caller, content: str, rule: str, words: str) -> None:
        problem = refused(posted(planner, content), 422, CODE)
        assert (problem["field"], problem["rule"], problem["words"]) == ("content", rule, words)
        assert "for example" in problem["detail"]
        assert posted(planner, "The user said that she likes tea.").status_code == 201

    def test_steps_order_something(self, executor: Caller) -> None:
        fields: Json = {"category": "procedural", "type": "procedural"}
        told = ["Open the door.", "The user closes it."]
        problem = refused(posted(executor, "How to leave.", steps=told, **fields), 422, CODE)
        assert (problem["rule"], problem["words"], problem["step"]) == ("imperative_steps", "The user", 2)
        assert posted(executor, "How to leave.", steps=["Open the door.", "Close it."], **fields).status_code == 201

    def test_a_change_and_a_correction_are_held_to_it_too(self, planner: Caller) -> None:
        memory = planner.remember("The user books the hall.")
        path = f"/v1/memories/{memory}"
        assert refused(planner.patch(path, {"content": "tea"}), 422, CODE)["rule"] == "complete_sentence"
        assert refused(planner.post(f"{path}/correct", {"content": "My hall."}), 422, CODE)["rule"] == "first_person"
        assert planner.patch(path, {"content": "The user books the barn."}).status_code == 200

    def test_nothing_is_stored_of_what_is_refused(self, tenant: Tenant, planner: Caller) -> None:
        refused(posted(planner, "tea"), 422, CODE)
        assert tenant.count("memories", "history") == 0


class TestNothingWellFormedIsRefused:
    """What was written before the rules."""

    def test_facts(self, tenant: Tenant, planner: Caller) -> None:
        for number, content in enumerate(cases.WELL_FORMED):
            answer = posted(planner, content, user_id=f"u{number}")
            assert answer.status_code in {201, 202}, (content, answer.text)
        assert tenant.count("memories", "consent_proposals") >= len(cases.WELL_FORMED)

    def test_episodes(self, planner: Caller) -> None:
        for number, content in enumerate(cases.WELL_FORMED_EPISODIC):
            answer = posted(planner, content, user_id=f"u{number}", type="episodic")
            assert answer.status_code in {201, 202}, (content, answer.text)
            assert answer.json()["warnings"] == []

    def test_procedures(self, executor: Caller) -> None:
        for number, steps in enumerate(cases.WELL_FORMED_STEPS):
            fields: Json = {"category": "procedural", "type": "procedural", "steps": list(steps)}
            answer = posted(executor, "How it is done.", user_id=f"u{number}", **fields)
            assert answer.status_code == 201, (steps, answer.text)


class TestWarnings:
    """An episode that is not in the past is stored, and its writer is advised."""

    def test_a_create_a_change_and_a_correction_warn(self, planner: Caller) -> None:
        made = posted(planner, "The user is booking the hall.", type="episodic")
        assert made.status_code == 201
        (warning,) = made.json()["warnings"]
        assert (warning["rule"], warning["words"]) == ("past_tense", "is")
        assert "past tense" in warning["detail"]
        path = f"/v1/memories/{made.json()['id']}"
        changed = planner.patch(path, {"content": "The user is booking the barn."}).json()
        assert [each["rule"] for each in changed["warnings"]] == ["past_tense"]
        right = planner.post(f"{path}/correct", {"content": "The user will book the shed."}).json()
        assert [each["rule"] for each in right["warnings"]] == ["past_tense"]
        done = planner.post(f"/v1/memories/{right['id']}/correct", {"content": "The user booked the shed."}).json()
        assert done["warnings"] == []

    def test_the_same_request_again_has_the_same_answer(self, planner: Caller) -> None:
        body = {"user_id": USER, "category": "tasks", "content": "The user is booking the hall.", "type": "episodic"}
        first, again = (
            planner.send("POST", "/v1/memories", json=body, headers={"Idempotency-Key": "k"}).json() for _ in range(2)
        )
        assert first == again
        assert first["warnings"]


class TestMending:
    """What changes no meaning is mended."""

    def test_a_full_stop_is_added(self, planner: Caller) -> None:
        made = posted(planner, "The user books the hall").json()
        assert planner.get(f"/v1/memories/{made['id']}").json()["content"] == "The user books the hall."
        assert posted(planner, "The user books the hall").json()["outcome"] == "duplicate"

    def test_steps_are_numbered(self, executor: Caller) -> None:
        made = posted(executor, "- Open the door\n- Close it", category="procedural", type="procedural").json()
        record = executor.get(f"/v1/memories/{made['id']}").json()
        assert record["content"] == "1. Open the door\n2. Close it"


class TestWhatIsNoAgents:
    """Imports, a person's own words, items of a store and what is stored already are never refused for style."""

    def test_an_import_is_taken_as_it_is(self, planner: Caller) -> None:
        bad = [*cases.FIRST_PERSON[:5], *cases.PRONOUN_SUBJECTS[:5], *cases.FRAGMENTS[:5]]
        for number, content in enumerate(bad):
            line = f'{{"record": "memory", "category": "tasks", "content": "{content}"}}'
            done = planner.post(f"/v1/users/u{number}/import", {"lines": [line]}).json()
            assert done["refused"] == [], (content, done)
            assert done["outcomes"][0] in {"created", "queued_for_consent"}
        refused(posted(planner, bad[0]), 422, CODE)  # the control

    def test_an_export_is_restored_as_it_was(self, tenant: Tenant) -> None:
        operator = tenant.caller(None, act_for=["*"], scopes=tuple(KeyScope))
        memory = operator.remember("The user books the hall.", agent="planner")
        tenant.rows("UPDATE memories SET content = 'my hall' WHERE id = %(id)s", id=memory)
        exported = operator.get(f"/v1/users/{USER}/export").text.splitlines()
        lines = [line for line in exported if "my hall" in line]
        tenant.rows("DELETE FROM memories WHERE id = %(id)s", id=memory)
        taken = {"lines": lines, "mode": "restore"}
        assert operator.post(f"/v1/users/{USER}/import", taken).json()["refused"] == []

    def test_what_a_person_says_is_drawn(self, supervisor: Caller) -> None:
        said = supervisor.say("I'm allergic to peanuts. My sister is called Ana.")
        assert said["extracted"]

    def test_what_is_stored_already_can_be_changed_besides_its_words(self, tenant: Tenant, planner: Caller) -> None:
        memory = planner.remember("The user books the hall.")
        tenant.rows("UPDATE memories SET content = 'my hall' WHERE id = %(id)s", id=memory)
        path = f"/v1/memories/{memory}"
        assert planner.patch(path, {"importance": 5, "tags": ["hall"]}).status_code == 200
        assert planner.get(path).json()["content"] == "my hall"
        refused(planner.patch(path, {"content": "my barn"}), 422, CODE)


class TestSources:
    """A source is a turn or memory that the writer may read; anything else is as if it were not there."""

    def test_every_unreadable_source_is_refused_alike(
        self, tenant: Tenant, supervisor: Caller, planner: Caller
    ) -> None:
        gone = planner.remember("The user books the shed.")
        planner.delete(f"/v1/memories/{gone}")
        private = tenant.caller("planner").remember("The user books the cellar.")
        inner, bound = tenant.caller("planner", trust="inner"), tenant.caller("planner", users=[USER])
        cases_of = {
            "absent": (planner, "01890000-0000-7000-8000-000000000000"),
            "another user's": (bound, planner.remember("Ben books the barn.", user_id="ben")),
            "another category's": (planner, supervisor.remember("The user is tall.", "profile")),
            "a turn that it does not read": (planner, supervisor.say("Which hall?")["turn_id"]),
            "deleted": (planner, gone),
            "in another store": (inner, private),
        }
        told = set()
        for case, (caller, source) in cases_of.items():
            problem = refused(posted(caller, "The user books the hall.", source_ids=[source]), 422, "unknown_source")
            assert problem["ids"] == [source], case
            told.add(str({k: v for k, v in problem.items() if k != "instance"}).replace(source, ""))
        assert len(told) == 1

    def test_what_it_may_read_is_a_source(self, supervisor: Caller, planner: Caller) -> None:
        turn = supervisor.say("Which hall?")["turn_id"]
        task = planner.remember("The user books the shed.")
        made = posted(supervisor, "The user asked about the hall.", source_ids=[turn, task])
        assert made.status_code == 201
        why = supervisor.get(f"/v1/memories/{made.json()['id']}/why").json()
        assert [each["id"] for each in (*why["turns"], *why["memories"])] == [turn, task]

    def test_a_correction_is_held_to_it_too(self, planner: Caller) -> None:
        path = f"/v1/memories/{planner.remember('The user books the hall.')}/correct"
        absent = "01890000-0000-7000-8000-000000000000"
        right: Json = {"content": "The user books the barn."}
        refused(planner.post(path, right | {"source_ids": [absent]}), 422, "unknown_source")
        there = planner.remember("The user likes barns.", thread_id=THREAD)
        assert planner.post(path, right | {"source_ids": [there]}).status_code == 200

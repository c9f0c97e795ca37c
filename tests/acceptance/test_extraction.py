"""What is drawn from a turn: written by the allowlist of extraction, and never at the cost of the turn."""

import logging
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memplane.application.memories.gateway import Gateway
from memplane.application.turns import extraction as drawing
from memplane.domain.errors import StorageUnavailable
from memplane.domain.language.extraction import extraction
from support.callers import SUPERVISING, THREAD, USER, Caller, Json, Tenant, refused
from support.consenting import REVIEW
from support.nights import Night
from support.policies import EXTRACTION, changed
from support.promises.checks import uncounted
from support.serving import RunningServer
from support.telling import say, write

ALLERGY, PEANUTS = "I'm allergic to peanuts.", "The user is allergic to peanuts."
JAZZ, SISTER = "I love jazz.", "My sister is called Ingrid."
CELLO = "I collect stamps."
LOVES = "The user loves coffee."
SCRIBE = ("  planner: [", "  scribe: {read: [activity], write: [activity]}\n  planner: [")
"""An agent of the policy that records turns, and reads nothing else."""
STEPS = "Remember these steps for a release: 1) run the tests, 2) tag the commit, 3) push the tag."


def turn(text: str, **fields: object) -> Json:
    return {"user_id": USER, "thread_id": THREAD, "role": "user", "text": text} | fields


def batch(caller: Caller, *turns: Json, **more: Any) -> list[Json]:  # noqa: ANN401 - of the request
    response = caller.send("POST", "/v1/turns:batch", json={"turns": list(turns)}, **more)
    assert response.status_code == 201, response.text
    return list(response.json()["items"])


def stored(tenant: Tenant, category: str | None = None) -> list[str]:
    """What active memories say."""
    rows = tenant.rows(
        "SELECT content, category FROM memories WHERE tenant_id = %(tenant)s AND state = 'active' ORDER BY content"
    )
    return [row["content"] for row in rows if category in {None, row["category"]}]


def lost(tenant: Tenant) -> list[tuple[str, str | None]]:
    """How facts that are not stored were counted."""
    rows = tenant.rows(
        "SELECT status, category FROM events WHERE tenant_id = %(tenant)s AND op = 'extract' ORDER BY id"
    )
    return [(row["status"], row["category"]) for row in rows]


def reviewed(tenant: Tenant, agent: str) -> list[str]:
    """The values that wait for consent, as an agent sees them."""
    reviewer = tenant.caller(agent, scopes=REVIEW)
    return [each["new_value"] for each in reviewer.get("/v1/consents", user_id=USER).json()["items"]]


class TestDates:
    """A date in the words, without a time of the turn."""

    SAID = (
        ("I visited Paris in May 2023.", "2023-05-01"),
        ("I graduated from college in 2019.", "2019-01-01"),
        ("My deadline for the report is 5 May 2024.", "2024-05-05"),
        ("I need to finish the report by 2025-06-03.", "2025-06-03"),
        ("I visited Berlin on May 3, 2023.", "2023-05-03"),
    )

    @pytest.mark.parametrize(("text", "day"), SAID)
    def test_it_is_stored_in_utc(self, supervisor: Caller, text: str, day: str) -> None:
        (drawn,) = supervisor.say(text)["extracted"]
        memory = supervisor.get(f"/v1/memories/{drawn['id']}").json()
        assert memory["event_time"] == f"{day}T00:00:00Z"

    def test_one_costs_no_batch(self, supervisor: Caller) -> None:
        items = batch(supervisor, turn(JAZZ), *(turn(text) for text, _ in self.SAID), turn(SISTER))
        assert [[each["action"] for each in item["extracted"]] for item in items] == [["created"]] * (
            len(self.SAID) + 2
        )

    def test_beside_the_time_of_the_turn(self, supervisor: Caller) -> None:
        (drawn,) = supervisor.say(self.SAID[0][0], event_time="2024-01-10T10:00:00+02:00")["extracted"]
        memory = supervisor.get(f"/v1/memories/{drawn['id']}").json()
        assert (memory["event_time"], memory["valid_from"]) == ("2023-04-30T22:00:00Z", "2024-01-10T08:00:00Z")


BAD, WORD = "I visited Zanzibar in May 2023.", "Zanzibar"


class Broken(Exception):
    """What no code expects; its message has the words that were said."""


def raising(original: Callable[..., Any], when: Callable[..., bool]) -> Callable[..., Any]:
    """A function that breaks for some of its arguments."""

    def broken(*given: Any, **more: Any) -> Any:  # noqa: ANN401 - of the function
        if when(*given):
            raise Broken(str(given))
        return original(*given, **more)

    return broken


def raising_later(original: Callable[..., Any], when: Callable[..., bool]) -> Callable[..., Any]:
    """The same for a coroutine, after it has done its work."""

    async def broken(*given: Any, **more: Any) -> Any:  # noqa: ANN401 - of the function
        done = await original(*given, **more)
        if when(*given):
            raise Broken(str(given))
        return done

    return broken


def weighed_wrong(original: Callable[..., Any]) -> Callable[..., Any]:
    """Prepares a memory that the database refuses."""

    def prepared(*given: Any) -> Any:  # noqa: ANN401 - of the function
        memory = original(*given)
        return replace(memory, importance=9) if WORD in memory.text.content else memory

    return prepared


def _says(_write: object, memory: Any, *_: object) -> bool:  # noqa: ANN401 - a memory, or one to be placed
    return WORD in getattr(memory, "memory", memory).text.content


def _corroborates(_write: object, _turn: object, _stated: object, memory: Any) -> bool:  # noqa: ANN401 - a memory
    return WORD in memory.text.content


def _embeds(_self: object, *texts: Any) -> bool:  # noqa: ANN401 - of turns and of memories
    return any(not isinstance(text, str) and WORD in text.content for text in texts)


STAGES: dict[str, tuple[object, str, Callable[[Callable[..., Any]], Callable[..., Any]]]] = {
    "extracting": (drawing, "extract", lambda own: raising(own, lambda text: WORD in text)),
    "extracting steps": (drawing, "dictated", lambda own: raising(own, lambda text: WORD in text)),
    "preparing": (drawing, "prepare_drawn", lambda own: raising(own, lambda *given: WORD in given[2].text.content)),
    "looking for sensitive values": (
        drawing, "stated_in", lambda own: raising(own, lambda _, memory: WORD in memory.text.content),
    ),
    "embedding": (Gateway, "material", lambda own: raising(own, _embeds)),
    "asking for consent": (drawing, "require_consent", lambda own: raising_later(own, _says)),
    "placing": (drawing, "place", lambda own: raising_later(own, _says)),
    "corroborating": (drawing, "corroborate", lambda own: raising_later(own, _corroborates)),
    "storing": (drawing, "prepare_drawn", weighed_wrong),
}  # fmt: skip


class TestFailures:
    """Whatever breaks for one fact, its turn is stored, and so are the other facts."""

    @pytest.mark.parametrize("stage", STAGES)
    def test_one_bad_fact_costs_no_turn(
        self, tenant: Tenant, supervisor: Caller, caplog: pytest.LogCaptureFixture, stage: str
    ) -> None:
        owner, name, breaking = STAGES[stage]
        caplog.set_level(logging.DEBUG, logger="memplane.extraction")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(owner, name, breaking(getattr(owner, name)))
            items = batch(supervisor, turn(JAZZ), turn(BAD), turn(SISTER))
        assert [item["outcome"] for item in items] == ["created"] * 3
        turns = tenant.rows("SELECT text FROM turns WHERE tenant_id = %(tenant)s ORDER BY seq")
        assert [row["text"] for row in turns] == [JAZZ, BAD, SISTER]
        kept = [] if stage != "extracting steps" else ["The user visited Zanzibar in May 2023."]
        assert stored(tenant) == ["The user loves jazz.", *kept, "The user's sister is called Ingrid."]
        for item in (items[0], items[2]):
            assert [each["action"] for each in item["extracted"]] == ["created"]
        listed = [each["action"] for each in items[1]["extracted"]]
        placed = stage in {"asking for consent", "placing", "corroborating", "storing"}
        assert listed == (["failed"] if placed else ["created"] * len(kept))
        (count,) = lost(tenant)
        assert count == ("error", None if stage.startswith("extracting") else "event")
        (record,) = [each for each in caplog.records if each.name == "memplane.extraction"]
        message = record.getMessage()
        assert WORD not in caplog.text
        assert re.search(r"\w+Error|Broken|CheckViolation", message)
        assert ("event" in message) is not stage.startswith("extracting")
        # the control: without the fault the same words are drawn
        (again,) = batch(supervisor, turn(BAD, thread_id="another"))
        assert [each["action"] for each in again["extracted"]] == ["duplicate" if kept else "created"]
        assert len(lost(tenant)) == 1

    def test_one_bad_statement_costs_no_other_one(self, tenant: Tenant, supervisor: Caller) -> None:
        broken = raising(extraction.from_statement, lambda clause, _: WORD in clause.text)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(extraction, "from_statement", broken)
            answer = supervisor.say(f"{JAZZ} {BAD} {SISTER}")
        assert [each["action"] for each in answer["extracted"]] == ["created"] * 2
        assert stored(tenant) == ["The user loves jazz.", "The user's sister is called Ingrid."]
        assert lost(tenant) == [("error", None)]
        # the control: without the fault the same words draw all three
        supervisor.say(f"{JAZZ} {BAD} {SISTER}", thread_id="another")
        assert "The user visited Zanzibar in May 2023." in stored(tenant)
        assert len(lost(tenant)) == 1

    def test_a_database_that_is_away_is_another_matter(self, tenant: Tenant, supervisor: Caller) -> None:
        async def away(*_: object) -> None:
            raise StorageUnavailable("the database does not answer")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(drawing, "place", away)
            refused(supervisor.post("/v1/turns", turn(JAZZ)), 503, "unavailable")
        assert tenant.count("turns", "memories", "events") == 0
        assert [each["action"] for each in supervisor.say(JAZZ)["extracted"]] == ["created"]

    def test_the_night_tells_how_many(self, tenant: Tenant, supervisor: Caller) -> None:
        supervisor.say("My cousin is called Ada.")
        assert Night(tenant).counts("gc")["extraction_errors"] == 0
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(drawing, "extract", raising(drawing.extract, lambda _: True))
            assert uncounted(tenant, (JAZZ, SISTER)) == []


class TestTakingBack:
    """What takes something back goes where that is, and ends it there."""

    SAID = (
        (ALLERGY, "I'm no longer allergic to peanuts.", "constraints", "The user is no longer allergic to peanuts."),
        (ALLERGY, "I'm not allergic to peanuts.", "constraints", "The user is not allergic to peanuts."),
        (JAZZ, "I don't love jazz any more.", "preferences", "The user does not love jazz any more."),
    )

    @pytest.mark.parametrize(("first", "then", "category", "content"), SAID)
    def test_it_ends_what_it_names(
        self, tenant: Tenant, supervisor: Caller, first: str, then: str, category: str, content: str
    ) -> None:
        supervisor.say(first)
        before = stored(tenant, category)
        assert len(before) == 1
        supervisor.say(then, thread_id="later")
        assert stored(tenant) == stored(tenant, category) == [content]

    def test_what_is_taken_back_elsewhere_stays(self, tenant: Tenant, supervisor: Caller) -> None:
        supervisor.say(ALLERGY)
        supervisor.say("I'm no longer allergic to cats.", thread_id="later")
        assert stored(tenant, "constraints") == [PEANUTS, "The user is no longer allergic to cats."]

    def test_a_former_favourite_is_no_present_one(self, tenant: Tenant, supervisor: Caller) -> None:
        supervisor.say("My favourite drink was cocoa as a child.")
        supervisor.say("My favourite drink is tea.", thread_id="later")
        assert stored(tenant) == [
            "The user's favourite drink is tea.",
            "The user's favourite drink was cocoa as a child.",
        ]
        # the control: of two present ones the later holds
        supervisor.say("My favourite drink is coffee.", thread_id="last")
        assert "The user's favourite drink is tea." not in stored(tenant)


class TestAllowlist:
    """Extraction writes by its own allowlist; the recorder is told of what it may read."""

    DRAWN = (
        (ALLERGY, "constraints", "executor"),
        ("I follow a keto diet.", "constraints", "executor"),
        ("I collect stamps.", "interests", "researcher"),
        ("I am building a compiler in Rust.", "projects", "planner"),
        (STEPS, "procedural", "executor"),
    )

    @pytest.mark.parametrize(("text", "category", "agent"), DRAWN)
    def test_what_the_recorder_may_not_write_is_stored(
        self, tenant: Tenant, supervisor: Caller, text: str, category: str, agent: str
    ) -> None:
        answer = supervisor.say(text)
        assert (answer["extracted"], answer["extracted_elsewhere"]) == ([], 1)
        (item,) = tenant.caller(agent).ask(text, categories=[category])["items"]
        assert item["category"] == category
        refused(supervisor.query(text, categories=[category]), 403, "category_forbidden")
        assert supervisor.get(f"/v1/memories/{item['id']}").status_code == 404
        # the control: what it reads is listed, and not counted
        answer = supervisor.say(JAZZ)
        assert [each["category"] for each in answer["extracted"]] == ["preferences"]
        assert answer["extracted_elsewhere"] == 0

    def test_both_in_one_turn(self, supervisor: Caller, executor: Caller) -> None:
        answer = supervisor.say(f"{JAZZ} {ALLERGY}")
        assert [each["content"] for each in answer["extracted"]] == ["The user loves jazz."]
        assert answer["extracted_elsewhere"] == 1
        assert PEANUTS in str(executor.ask("allergic peanuts", categories=["constraints"]))

    def test_the_recorder_needs_only_the_right_to_record(
        self, start_server: Callable[..., RunningServer], tmp_path: Path
    ) -> None:
        scribe = ("  planner: [", "  scribe: {read: [], write: [activity]}\n  planner: [")
        tenant = Tenant(start_server(policies=changed(tmp_path, scribe)))
        answer = tenant.caller("scribe", scopes=SUPERVISING).say(f"{JAZZ} {ALLERGY}")
        assert (answer["extracted"], answer["extracted_elsewhere"]) == ([], 2)
        assert stored(tenant) == [PEANUTS, "The user loves jazz."]

    def test_without_extraction_it_is_the_recorder_s_own(
        self, start_server: Callable[..., RunningServer], tmp_path: Path
    ) -> None:
        tenant = Tenant(start_server(policies=changed(tmp_path, (EXTRACTION, ""))))
        answer = tenant.caller("supervisor").say(f"{JAZZ} {ALLERGY} {STEPS}")
        assert [each["content"] for each in answer["extracted"]] == ["The user loves jazz."]
        assert answer["extracted_elsewhere"] == 0
        assert stored(tenant) == ["The user loves jazz."]
        assert lost(tenant) == [("skipped", "constraints")]

    def test_what_extraction_may_not_write_is_counted(
        self, start_server: Callable[..., RunningServer], tmp_path: Path
    ) -> None:
        only = (EXTRACTION, "extraction: {write: [constraints]}\n")
        tenant = Tenant(start_server(policies=changed(tmp_path, only)))
        answer = tenant.caller("supervisor").say(f"{JAZZ} {ALLERGY}")
        assert (answer["extracted"], answer["extracted_elsewhere"]) == ([], 1)
        assert stored(tenant) == [PEANUTS]
        assert lost(tenant) == [("skipped", "preferences")]
        assert write(tenant.caller("supervisor"), "The user loves jazz.", "preferences")["outcome"] == "created"

    @pytest.mark.parametrize(("trust", "left"), [("inner", [LOVES]), ("full", ["The user hates coffee."])])
    def test_it_overrules_no_more_than_the_recorder_s_trust(
        self, start_server: Callable[..., RunningServer], tmp_path: Path, trust: str, left: list[str]
    ) -> None:
        folder = changed(tmp_path, SCRIBE)
        levels = folder / "trust.yaml"
        inner = re.sub(r"(?m)^  inner: .*$", "  inner: {sees: [private, shared, social], default_write: private}",
                       levels.read_text())  # fmt: skip
        levels.write_text(inner)
        tenant = Tenant(start_server(policies=folder))
        supervisor = tenant.caller("supervisor")
        write(supervisor, LOVES, "preferences")
        answer = tenant.caller("scribe", trust=trust, scopes=SUPERVISING).say("I hate coffee.")
        assert (answer["extracted"], answer["extracted_elsewhere"]) == ([], 1)
        found = supervisor.ask("coffee", categories=["preferences"])["items"]
        assert [item["text"] for item in found] == [f"[preferences] {each}" for each in left]


class TestNothingRevealed:
    """The answer depends on the caller's own words alone."""

    @staticmethod
    def shape(answer: Json) -> tuple[object, ...]:
        return answer["outcome"], answer["extracted"], answer["extracted_elsewhere"]

    def test_new_repeated_superseding_rejected_and_erased_are_one(
        self, tenant: Tenant, supervisor: Caller, executor: Caller
    ) -> None:
        answers = {"new": supervisor.say(ALLERGY), "repeated": supervisor.say(ALLERGY)}
        (mine,) = executor.get("/v1/memories", user_id=USER, category="constraints").json()["items"]
        assert mine["mention_count"] == 2
        say(executor, mine["id"], "reject")
        answers["rejected"] = supervisor.say(ALLERGY)
        assert stored(tenant, "constraints") == []
        gone = executor.remember("The user is vegan.", "constraints")
        assert executor.delete(f"/v1/memories/{gone}?tombstone=true").status_code == 200
        answers["tombstoned"] = supervisor.say("I am vegan.")
        assert stored(tenant, "constraints") == []
        assert {name: self.shape(answer) for name, answer in answers.items()} == dict.fromkeys(
            answers, ("created", [], 1)
        )
        # the control: of what it reads the recorder is told
        actions = [supervisor.say(JAZZ)["extracted"][0]["action"] for _ in range(2)]
        assert actions == ["created", "duplicate"]

    def test_whatever_is_there_the_answer_is_one(
        self, start_server: Callable[..., RunningServer], tmp_path: Path
    ) -> None:
        tenant = Tenant(start_server(policies=changed(tmp_path, SCRIBE)))
        supervisor, scribe = tenant.caller("supervisor"), tenant.caller("scribe", scopes=SUPERVISING)
        hates = "The user hates coffee."
        there = {
            "nothing": str,
            "the same": lambda user: write(supervisor, hates, "preferences", user_id=user),
            "the contrary": lambda user: write(supervisor, LOVES, "preferences", user_id=user),
            "the contrary, confirmed": lambda user: say(
                supervisor, write(supervisor, LOVES, "preferences", user_id=user)["id"], "confirm"
            ),
            "a verdict against it": lambda user: say(
                supervisor, write(supervisor, hates, "preferences", user_id=user)["id"], "reject"
            ),
        }
        found: dict[str, str] = {}
        for name, prepare in there.items():
            user = name.replace(" ", "-")
            prepare(user)
            answer = scribe.say("I hate coffee.", user_id=user)
            assert self.shape(answer) == ("created", [], 1), name
            # the control: the supervisor is told what becomes of the same words
            prepare(f"{user}-again")
            (drawn,) = supervisor.say("I hate coffee.", user_id=f"{user}-again")["extracted"]
            found[name] = drawn["action"]
        assert found == {
            "nothing": "created",
            "the same": "duplicate",
            "the contrary": "superseded",
            "the contrary, confirmed": "disputed",
            "a verdict against it": "refused",
        }

    def test_no_revision_of_a_batch_tells(self, supervisor: Caller) -> None:
        def revisions(user: str) -> list[int]:
            two = [turn(text, thread_id=name, user_id=user) for name, text in (("a", ALLERGY), ("b", "Hello."))]
            return [item["rev"] for item in batch(supervisor, *two)]

        supervisor.say("Hello.", thread_id="b", user_id="ben")
        supervisor.say("Hello.", thread_id="b", user_id="cleo")
        supervisor.say(ALLERGY, thread_id="c", user_id="cleo")
        before = supervisor.get("/v1/threads/b/delta", user_id="cleo").json()["rev"]
        assert revisions("ben") == [1, 2]
        assert revisions("cleo")[1] == before + 1

    def test_a_batch_counts_for_each_turn(self, supervisor: Caller) -> None:
        items = batch(supervisor, turn(f"{JAZZ} {ALLERGY}"), turn(CELLO), turn("Hello."), turn(SISTER))
        assert [item["extracted_elsewhere"] for item in items] == [1, 1, 0, 0]
        assert [len(item["extracted"]) for item in items] == [1, 0, 0, 1]

    def test_a_repeated_request_is_answered_the_same(self, supervisor: Caller) -> None:
        headers = {"Idempotency-Key": "once"}
        first, again = (
            supervisor.send("POST", "/v1/turns", json=turn(f"{JAZZ} {ALLERGY}"), headers=headers) for _ in range(2)
        )
        assert again.headers["Idempotency-Replayed"] == "true"
        assert first.json() == again.json()
        assert first.json()["extracted_elsewhere"] == 1
        gone = supervisor.delete(f"/v1/turns/{first.json()['turn_id']}")
        assert gone.status_code == 200
        after = supervisor.send("POST", "/v1/turns", json=turn(f"{JAZZ} {ALLERGY}"), headers=headers)
        assert (after.json()["extracted"], after.json()["extracted_elsewhere"]) == ([], 0)

    def test_a_thread_tells_each_agent_of_its_own_categories(self, supervisor: Caller, executor: Caller) -> None:
        supervisor.say(ALLERGY)
        told = supervisor.get(f"/v1/threads/{THREAD}/delta", user_id=USER).json()["changes"]
        assert [change["category"] for change in told] in ([], ["activity"])  # the turn
        told = executor.get(f"/v1/threads/{THREAD}/delta", user_id=USER).json()["changes"]
        assert [(change["category"], change["summary"]) for change in told] == [("constraints", PEANUTS)]

    def test_a_proposal_goes_by_its_category(self, start_server: Callable[..., RunningServer], tmp_path: Path) -> None:
        tenant = Tenant(start_server(policies=changed(tmp_path, SCRIBE)))
        recorder = tenant.caller("scribe", scopes=SUPERVISING)
        answer = recorder.say("I live in Berlin.")
        assert (answer["extracted"], answer["extracted_elsewhere"]) == ([], 1)
        assert (reviewed(tenant, "scribe"), reviewed(tenant, "supervisor")) == ([], ["Berlin"])

    def test_ids_of_what_is_overruled_are_for_readers(
        self, start_server: Callable[..., RunningServer], tmp_path: Path
    ) -> None:
        blind = ("  planner: [", "  blind: {read: [], write: [event]}\n  planner: [")
        tenant = Tenant(start_server(policies=changed(tmp_path, blind)))
        told = {}
        for agent in ("blind", "supervisor"):
            caller = tenant.caller(agent, scopes=SUPERVISING)
            old = write(tenant.caller("supervisor"), "Vera lives in Berlin.", user_id=agent)["id"]
            done = write(caller, "Vera lives in Munich.", user_id=agent)
            told[agent] = (done["outcome"], done["overruled"] == [old], done["overruled"])
        assert told["supervisor"][:2] == ("superseded", True)
        assert told["blind"][2] == []


class TestLater:
    """What is drawn again, or in the night, goes by the same allowlist."""

    def test_a_fact_of_two_turns_outlives_one(self, tenant: Tenant, supervisor: Caller, executor: Caller) -> None:
        first = supervisor.say(ALLERGY)
        supervisor.say("I have a peanut allergy.", thread_id="two")
        assert len(stored(tenant, "constraints")) == 1
        assert supervisor.delete(f"/v1/turns/{first['turn_id']}").status_code == 200
        assert len(executor.ask("peanut", categories=["constraints"])["items"]) == 1

    def test_the_night_draws_what_was_left(self, tenant: Tenant, supervisor: Caller, executor: Caller) -> None:
        said = supervisor.say(ALLERGY, auto_extract=False)
        assert stored(tenant) == []
        assert said["extracted_elsewhere"] == 0
        assert supervisor.post(f"/v1/sessions/{THREAD}/close", {"user_id": USER}).is_success
        assert Night(tenant).counts("facts")["facts"] == 1
        (item,) = executor.ask("peanuts", categories=["constraints"], return_="full")["items"]
        assert item["memory"]["source_ids"] == [said["turn_id"]]

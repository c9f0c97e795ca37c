"""Writers who lie, repeat, hurry or hide: each case went wrong once."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from support.callers import THREAD, USER, Caller, Json, Tenant, refused
from support.telling import events, say, texts, write

PARIS, BERLIN, ROME = (f"Vera lives in {city}." for city in ("Paris", "Berlin", "Rome"))


@pytest.fixture
def caller(tenant: Tenant) -> Caller:
    """A supervisor, fully trusted."""
    return tenant.caller("supervisor")


@pytest.fixture
def inner(tenant: Tenant) -> Caller:
    """A supervisor's less trusted key; it writes to the shared store."""
    return tenant.caller("supervisor", trust="inner")


def post(caller: Caller, content: str, category: str = "event", **fields: Any) -> tuple[int, Json]:  # noqa: ANN401 - of the memory
    response = caller.post("/v1/memories", {"user_id": USER, "category": category, "content": content} | fields)
    return response.status_code, dict(response.json())


class TestAuthority:
    """Who is trusted less neither hides nor outlives what somebody trusted more has said."""

    @pytest.mark.parametrize(
        "change",
        [
            {"expires_at": "2099-01-01T00:00:00Z"}, {"valid_until": "2020-01-01T00:00:00Z"}, {"category": "goals"},
            {"attributes": {"a": 1}}, {"confidence": 0.1}, {"title": "Wrong"}, {"tags": ["wrong"]},
        ],
        ids=lambda change: next(iter(change)),
    )  # fmt: skip
    def test_no_field_takes_it_away(self, caller: Caller, inner: Caller, change: Json) -> None:
        memory = write(caller, PARIS, visibility="shared")["id"]
        refused(inner.patch(f"/v1/memories/{memory}", change), 403, "trust_too_low")
        assert texts(caller) == {PARIS}
        assert caller.patch(f"/v1/memories/{memory}", change).status_code == 200  # the control

    def test_delete_and_restore_do_not_bring_back_what_was_overruled(self, caller: Caller, inner: Caller) -> None:
        low = write(inner, BERLIN)["id"]
        write(caller, PARIS, visibility="shared")
        assert inner.delete(f"/v1/memories/{low}").status_code == 200
        refused(inner.post(f"/v1/memories/{low}/restore", {}), 403, "trust_too_low")
        assert texts(caller) == {PARIS}

    def test_a_trusted_writer_is_heard_over_a_dispute(self, caller: Caller, inner: Caller) -> None:
        old = write(caller, PARIS, visibility="shared")["id"]
        disputed = write(inner, BERLIN)
        assert disputed["outcome"] == "disputed"
        stated = write(caller, BERLIN, visibility="shared")
        assert (stated["outcome"], stated["id"], stated["overruled"]) == ("superseded", disputed["id"], [old])
        assert texts(caller) == {BERLIN}

    @pytest.mark.parametrize("how", ["repeat", "change"])
    def test_what_a_trusted_writer_repeats_or_rewrites_has_his_weight(
        self, caller: Caller, inner: Caller, how: str
    ) -> None:
        memory = write(inner, PARIS)["id"]
        said = PARIS
        if how == "repeat":
            write(caller, PARIS, visibility="shared")
        else:
            said = ROME
            assert caller.patch(f"/v1/memories/{memory}", {"content": said}).status_code == 200
        assert write(inner, BERLIN)["outcome"] == "disputed"
        assert texts(caller) == {said}

    def test_a_field_lends_no_weight_to_words_that_nobody_repeated(self, caller: Caller, inner: Caller) -> None:
        memory = write(inner, PARIS)["id"]
        assert caller.patch(f"/v1/memories/{memory}", {"importance": 5}).status_code == 200
        assert write(inner, BERLIN)["outcome"] == "superseded"
        assert texts(caller) == {BERLIN}

    def test_a_change_of_disputed_words_overrules_nothing(self, caller: Caller) -> None:
        old = write(caller, PARIS)["id"]
        say(caller, old, "confirm")
        disputed = write(caller, BERLIN)["id"]
        changed = caller.patch(f"/v1/memories/{disputed}", {"content": ROME}).json()
        assert changed["overruled"] == []
        assert texts(caller) == {PARIS}
        say(caller, disputed, "confirm")
        assert texts(caller) == {ROME}

    def test_repeats_by_the_less_trusted_push_nothing_out(self, caller: Caller, inner: Caller) -> None:
        turn = caller.say("Paris it is.", auto_extract=False)["turn_id"]
        memory = write(caller, PARIS, visibility="shared", source_ids=[turn], importance=2)["id"]
        line = {"record": "memory", "type": "episodic", "category": "tasks"}
        lines = [json.dumps(line | {"content": f"It rained {number} times."}) for number in range(100)]
        inner.post(f"/v1/users/{USER}/import", {"lines": lines})
        other = [each["id"] for each in inner.get("/v1/memories", type="episodic", limit=100).json()["items"]]
        assert len(other) == 100
        write(inner, PARIS, source_ids=other, importance=5, pinned=True)
        now = caller.get(f"/v1/memories/{memory}").json()
        assert (now["source_ids"][0], now["importance"], now["pinned"]) == (turn, 2, False)

    def test_a_private_statement_overrules_a_shared_one(self, caller: Caller) -> None:
        write(caller, PARIS, visibility="shared")
        assert write(caller, BERLIN, visibility="private")["outcome"] == "superseded"
        assert texts(caller) == {BERLIN}
        assert write(caller, BERLIN, visibility="shared")["outcome"] == "created"  # another store is another memory

    def test_what_is_disputed_is_told_to_no_thread(self, caller: Caller, inner: Caller) -> None:
        write(caller, PARIS, visibility="shared")
        disputed = write(inner, BERLIN, thread_id=THREAD)["id"]
        inner.patch(f"/v1/memories/{disputed}", {"importance": 5})
        assert "Berlin" not in str(caller.ask(thread_id=THREAD, since_rev=0)["delta"])
        say(caller, disputed, "confirm")
        assert "Berlin" in str(caller.ask(thread_id=THREAD, since_rev=0)["delta"])

    def test_what_waits_for_a_verdict_is_listed(self, caller: Caller, inner: Caller) -> None:
        write(caller, PARIS, visibility="shared")
        disputed = write(inner, BERLIN)["id"]
        waiting = caller.get("/v1/memories", trust_state="disputed").json()["items"]
        assert [(memory["id"], memory["trust_state"]) for memory in waiting] == [(disputed, "disputed")]
        assert disputed not in str(caller.get("/v1/memories").json())
        refused(caller.get("/v1/memories", trust_state="rejected"), 422, "invalid_request")
        say(caller, disputed, "reject")
        assert caller.get("/v1/memories", trust_state="disputed").json()["items"] == []

    def test_a_confirmation_settles_every_contradiction(self, caller: Caller, inner: Caller) -> None:
        write(caller, PARIS, visibility="shared")
        disputed = write(inner, BERLIN)["id"]
        write(caller, ROME, visibility="shared")
        say(caller, disputed, "confirm")
        assert texts(caller) == {BERLIN}


class TestRejected:
    """A rejected value does not come back by another door."""

    @pytest.fixture
    def gone(self, caller: Caller) -> str:
        memory = str(write(caller, BERLIN)["id"])
        say(caller, memory, "reject")
        return memory

    @pytest.mark.parametrize(
        "fields",
        [
            {"type": "insight"}, {"type": "episodic"}, {"type": "observation"}, {"visibility": "shared"},
            {"min_trust": "full"}, {"content": "Note: Vera lives in Berlin."}, {"content": BERLIN.upper()},
            {"content": "Vera lives in Ber\u3164lin."}, {"content": "Vera lives in B\u0435rlin."},
            {"content": "The user owns a cat.", "narrative": "It is old. Vera is living in Berlin."},
            {"content": "The user owns a cat.", "facts": ["Vera is living in Berlin."]},
            {"content": "The user owns a cat.", "title": BERLIN}, {"content": "The user owns a cat.", "tags": [BERLIN]},
            {"content": "The user owns a cat.", "related_files": [BERLIN]},
            {"content": "The user owns a cat.", "attributes": {"a": [{"b": BERLIN}]}},
        ],
        ids=str,
    )  # fmt: skip
    @pytest.mark.usefixtures("gone")
    def test_in_no_form(self, caller: Caller, fields: Json) -> None:
        status, problem = post(caller, **({"content": "Vera is living in Berlin."} | fields))
        assert (status, problem.get("code")) == (409, "value_rejected")
        assert post(caller, "The user owns a cat.")[0] == 201  # the control

    @pytest.mark.usefixtures("gone")
    def test_by_no_verb(self, caller: Caller) -> None:
        other = write(caller, "The user owns a cat.")["id"]
        elsewhere = write(caller, BERLIN, "preferences")["id"]
        refused(caller.patch(f"/v1/memories/{elsewhere}", {"category": "event"}), 409, "value_rejected")
        refused(caller.patch(f"/v1/memories/{other}", {"facts": [BERLIN]}), 409, "value_rejected")
        refused(caller.patch(f"/v1/memories/{other}", {"attributes": {"a": BERLIN}}), 409, "value_rejected")
        refused(
            caller.post(f"/v1/memories/{other}/correct", {"content": "Vera is living in Berlin."}),
            409, "value_rejected",
        )  # fmt: skip

    def test_its_copies_go_with_it(self, caller: Caller) -> None:
        memory = write(caller, BERLIN)["id"]
        copy = write(caller, "Vera is living in Berlin.", visibility="shared")["id"]
        assert say(caller, memory, "reject")["overruled"] == [copy]
        assert texts(caller) == set()
        assert events(caller, copy)[0] == "REJECT"

    def test_a_procedure_is_buried_by_its_steps(self, tenant: Tenant) -> None:
        executor = tenant.caller("executor")
        fields = {"type": "procedural", "steps": ["Open the valve.", "Close the door."]}
        memory = write(executor, "How to start.", "procedural", **fields)["id"]
        say(executor, memory, "reject")
        assert post(executor, "How to start again.", "procedural", **fields)[1]["code"] == "value_rejected"
        turned = fields | {"steps": fields["steps"][::-1]}
        assert post(executor, "How to begin.", "procedural", **turned)[0] == 201

    @pytest.mark.parametrize(
        ("wrong", "right"),
        [("1.5 mg", "15 mg"), ("C++", "C"), ("1/12", "11/2"), ("-5 degrees", "5 degrees"), ("パパ", "ハハ")],
    )
    def test_the_right_value_is_another(self, caller: Caller, wrong: str, right: str) -> None:
        memory = write(caller, f"The user asked for {wrong}.")["id"]
        say(caller, memory, "reject")
        assert post(caller, f"The user asked for {wrong}.")[1]["code"] == "value_rejected"
        assert post(caller, f"The user asked for {right}.")[0] == 201

    def test_what_has_no_letters_can_be_rejected(self, caller: Caller) -> None:
        memory = write(caller, "🍕🍕")["id"]
        say(caller, memory, "reject")
        assert post(caller, "🍕🍕")[1]["code"] == "value_rejected"
        assert post(caller, "🍕")[0] == 201
        other = write(caller, "The user owns a cat.")["id"]
        refused(caller.post(f"/v1/memories/{other}/reject", {"reason": "a\u0000b"}), 422, "invalid_text")


class TestNothingLost:
    """What was acknowledged is there."""

    def test_said_again_without_an_end_it_has_none(self, caller: Caller) -> None:
        write(caller, PARIS, valid_until="2021-01-01T00:00:00Z")
        assert texts(caller) == set()
        write(caller, PARIS)
        assert texts(caller) == {PARIS}
        bounded = write(caller, "The user rents a boat.", expires_at="2099-01-01T00:00:00Z")["id"]
        write(caller, "The user rents a boat.", pinned=True, attributes={"of": "oak"}, importance=5)
        now = caller.get(f"/v1/memories/{bounded}").json()
        assert (now["expires_at"], now["pinned"], now["attributes"], now["importance"]) == (
            None,
            True,
            {"of": "oak"},
            5,
        )

    def test_a_named_record_that_ended_is_stored_when_it_is_sent_without_an_end(self, caller: Caller) -> None:
        write(caller, PARIS, external_id="x1", valid_until="2021-01-01T00:00:00Z")
        assert texts(caller) == set()
        assert write(caller, PARIS, external_id="x1")["outcome"] == "created"
        assert texts(caller) == {PARIS}

    def test_one_that_ended_by_name_and_one_by_value_both_make_way(self, caller: Caller) -> None:
        write(caller, PARIS, external_id="x1", valid_until="2021-01-01T00:00:00Z")
        write(caller, "The user rents a boat.", external_id="x2", valid_until="2021-01-01T00:00:00Z")
        assert texts(caller) == set()
        assert write(caller, "The user rents a boat.", external_id="x1")["outcome"] == "created"
        assert texts(caller) == {"The user rents a boat."}

    def test_what_is_said_besides_is_kept(self, caller: Caller) -> None:
        memory = write(caller, PARIS, facts=["The user has a flat."], related_files=["a.txt"])["id"]
        fields = {"facts": ["The user has a flat."], "narrative": "It is small.", "related_files": ["b.txt"]}
        assert write(caller, PARIS, **fields)["id"] == memory
        assert write(caller, "Vera is in Paris for good.", facts=["The user has a flat."])["id"] == memory
        now = caller.get(f"/v1/memories/{memory}").json()
        assert now["content"] == PARIS
        assert now["narrative"] == "It is small."
        assert now["related_files"] == ["a.txt", "b.txt"]

    def test_a_fact_that_cannot_be_placed_costs_nobody_the_turn(self, caller: Caller) -> None:
        caller.say("I work at Siemens.")
        said = caller.say("I work at Bosch. I don't work at Bosch anymore.", event_time="2015-01-01T00:00:00Z")
        assert said["turn_id"]
        assert any("Siemens" in text for text in texts(caller, categories=["profile", "preferences", "goals"]))

    def test_a_batch_decides_as_single_turns_do(self, caller: Caller) -> None:
        turns = [
            {"user_id": USER, "thread_id": THREAD, "role": "user", "text": text}
            for text in ("I love coffee.", "I hate coffee.", "I love tea.", "I love tea.")
        ]
        stored = caller.post("/v1/turns:batch", {"turns": turns}).json()["items"]
        assert [turn["extracted"][0]["action"] for turn in stored] == [
            "created", "superseded", "created", "duplicate",
        ]  # fmt: skip

    def test_what_is_dated_ahead_overrules_nothing_yet(self, caller: Caller) -> None:
        caller.say("I love coffee.", event_time="2099-01-01T00:00:00Z")
        assert caller.say("I hate coffee.")["extracted"][0]["action"] == "superseded"
        write(caller, PARIS)
        assert write(caller, BERLIN, valid_from="2099-01-01T00:00:00Z")["outcome"] == "created"
        assert PARIS in texts(caller)

    def test_a_restored_memory_keeps_its_own_end(self, caller: Caller) -> None:
        memory = write(caller, PARIS, valid_until="2099-01-01T00:00:00Z")["id"]
        caller.delete(f"/v1/memories/{memory}")
        say(caller, memory, "restore")
        assert caller.get(f"/v1/memories/{memory}").json()["valid_until"].startswith("2099")

    def test_a_correction_keeps_the_end_and_the_score(self, caller: Caller) -> None:
        memory = write(caller, PARIS, expires_at="2099-01-01T00:00:00Z", valid_from="2024-01-01T00:00:00Z")["id"]
        say(caller, memory, "reinforce")
        right = say(caller, memory, "correct", content=BERLIN)["id"]
        now = caller.get(f"/v1/memories/{right}").json()
        assert (now["expires_at"][:4], now["valid_from"][:4], now["reinforcement"]) == ("2099", "2024", 3)

    def test_a_change_keeps_what_it_wrote_over(self, caller: Caller) -> None:
        memory = write(caller, PARIS, facts=["The user has a flat."], tags=["home"])["id"]
        caller.patch(f"/v1/memories/{memory}", {"facts": ["The user has a house."], "importance": 5})
        meta = caller.get(f"/v1/memories/{memory}/history").json()["items"][0]["meta"]
        assert meta["was"] == {"facts": ["The user has a flat."], "importance": 3}


class TestNames:
    """Names and ids open nothing."""

    def test_an_external_id_is_of_one_category_and_store(self, tenant: Tenant, caller: Caller, inner: Caller) -> None:
        write(caller, PARIS, external_id="crm-1")
        planner = tenant.caller("planner")
        status, problem = post(planner, PARIS, "goals", external_id="crm-1")
        assert (status, problem["code"]) == (409, "conflict")
        status, problem = post(inner, PARIS, external_id="crm-1")
        assert (status, problem["code"]) == (409, "conflict")
        assert write(caller, PARIS, external_id="crm-1")["outcome"] == "duplicate"

    def test_history_hides_what_was_said_under_a_foreign_category(self, tenant: Tenant, caller: Caller) -> None:
        memory = write(caller, PARIS)["id"]
        write(caller, "Vera is living in Paris.")
        caller.patch(f"/v1/memories/{memory}", {"category": "tasks"})
        told = tenant.caller("executor").get(f"/v1/memories/{memory}/history").json()["items"]
        assert told
        assert "Paris" not in str([entry["meta"] for entry in told])
        assert "Paris" in str([entry["meta"] for entry in caller.get(f"/v1/memories/{memory}/history").json()["items"]])

    @pytest.mark.parametrize("field", ["kind", "name"])
    def test_no_nul_reaches_the_database(self, caller: Caller, field: str) -> None:
        refused(caller.get("/v1/entities", user_id=USER, **{field: "a\u0000b"}), 422, "invalid_text")

    def test_entities_are_merged_once_however_many_try(self, caller: Caller) -> None:
        for name in ("Berta Lindqvist", "Betty Lind", "Bettina Lind"):
            caller.remember(f"The user met {name}.")
        ids = [caller.entity(name) for name in ("Berta Lindqvist", "Betty Lind", "Bettina Lind")]
        pairs = [(ids[0], ids[1]), (ids[1], ids[0]), (ids[2], ids[0]), (ids[2], ids[1])] * 2
        with ThreadPoolExecutor(len(pairs)) as pool:
            answers = list(
                pool.map(lambda p: caller.post(f"/v1/entities/{p[0]}/merge", {"into": p[1]}).status_code, pairs)
            )
        assert set(answers) <= {200, 404}
        left = caller.get("/v1/entities", user_id=USER).json()["items"]
        assert sum(answer == 200 for answer in answers) == 3 - len(left)


def test_a_long_text_of_initials_holds_nobody_up(caller: Caller) -> None:
    """It took half a minute once, on the event loop: each sentence was searched from its beginning."""
    started = time.monotonic()
    body = {"type": "observation", "facts": ["A b. " * 3190] * 2, "narrative": "A b. " * 3190}
    with ThreadPoolExecutor(1) as pool:
        sent = pool.submit(post, caller, "A tool ran.", **body)
        assert caller.get("/healthz").status_code == 200
        assert sent.result()[0] == 201
    assert time.monotonic() - started < 30

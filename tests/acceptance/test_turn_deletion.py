"""Deleting a turn reaches each kind of what its job made of it, and nothing that others say: kind by kind."""

from datetime import timedelta
from uuid import UUID

import pytest

from support.callers import THREAD, USER, Caller, Json, Tenant
from support.consenting import REVIEW
from support.model_server import ModelServer, Reply, called
from support.nights import NOON, Night, state
from support.telling import events, say, write

OTHER = "ben"
UPPSALA, INGRID = "The user's new studio is in Uppsala.", "The user's sister Ingrid visits every Sunday."
TALK = (
    ("user", "We finally left the flat in Gothenburg, my new studio is in Uppsala near the cathedral."),
    ("user", "My sister Ingrid visits me every Sunday for fika. Our dog Bosse barks at the trams."),
)


@pytest.fixture
def caller(tenant: Tenant) -> Caller:
    """A supervisor who decides on proposals too."""
    return tenant.caller("supervisor", scopes=REVIEW)


def said(caller: Caller, text: str, **fields: object) -> str:
    """A turn's id."""
    return str(caller.say(text, **fields)["turn_id"])


def gone(caller: Caller, turn: str) -> Json:
    """Delete a turn, which must be there."""
    response = caller.delete(f"/v1/turns/{turn}")
    assert response.status_code == 200, response.text
    return dict(response.json())


def drawn(tenant: Tenant, turn: str) -> list[str]:
    """What was derived from a turn, by ids; whatever became of it."""
    of = "SELECT memory_id FROM memory_sources WHERE tenant_id = %(tenant)s AND source_id LIKE %(turn)s"
    found = tenant.rows(of, turn=f"{turn}%")
    return sorted(str(UUID(str(row["memory_id"]))) for row in found)


def of_type(caller: Caller, kind: str, user: str = USER) -> list[Json]:
    return [dict(each) for each in caller.get("/v1/memories", user_id=user, type=kind).json()["items"]]


def closed(caller: Caller, thread: str = THREAD) -> Json:
    response = caller.post(f"/v1/sessions/{thread}/close", {"user_id": USER})
    assert response.status_code == 200, response.text
    return dict(response.json())


def test_a_fact_goes_with_its_turn_and_the_history_tells_why(tenant: Tenant, caller: Caller) -> None:
    turn, other = said(caller, "My sister is called Ingrid."), said(caller, "I have a cat named Milo.")
    ((fact,), (kept,)) = drawn(tenant, turn), drawn(tenant, other)
    rev = caller.get(f"/v1/threads/{THREAD}/delta").json()["rev"]
    done = gone(caller, turn)
    assert (done["outcome"], done["turn_id"]) == ("deleted", turn)
    assert (state(tenant, fact), state(tenant, kept)) == ("soft_deleted", "active")
    assert drawn(tenant, turn) == []
    told = tenant.rows("SELECT event, meta FROM history WHERE memory_id = %(id)s ORDER BY id", id=UUID(fact))
    assert [(each["event"], each["meta"].get("cause")) for each in told] == [
        ("ADD", None),
        ("DELETE", "source_deleted"),
    ]
    assert told[1]["meta"]["sources"] == [turn]
    (entry,) = tenant.rows("SELECT * FROM history WHERE memory_id = %(id)s", id=UUID(turn))
    assert (entry["event"], entry["actor"], entry["old_ref"], entry["new_ref"]) == (
        "PURGE",
        "agent:supervisor",
        None,
        None,
    )
    assert entry["meta"]["key"] == caller.key_id
    delta = caller.get(f"/v1/threads/{THREAD}/delta", since=rev).json()
    assert delta["rev"] == done["rev"] > rev
    assert "~soft_deleted" in delta["header"]
    assert "Ingrid" in delta["header"]
    assert "Milo" not in delta["header"]


def test_the_next_question_and_context_find_neither_its_words_nor_its_neighbours_by_them(caller: Caller) -> None:
    turns = [
        said(caller, text, role="assistant")
        for text in ("The kettle is on.", "Quokkas live on Rottnest Island.", "The tram is late again.")
    ]
    scope = {"filters": {"user_id": USER}}
    for _ in range(3):  # remembered
        assert set(caller.found("quokkas on Rottnest Island", **scope)[:3]) == set(turns)
    asked = {"user_id": USER, "thread_id": "new", "message": "quokkas on Rottnest Island"}
    window = {"user_id": USER, "thread_id": THREAD, "message": "hello"}
    assert "Rottnest" in caller.post("/v1/context", window).json()["prompt"]
    gone(caller, turns[1])
    found = caller.ask("quokkas on Rottnest Island", return_="full", explain=True, **scope)["items"]
    assert turns[1] not in [item["id"] for item in found]
    assert [item for item in found if item["explain"]["signals"].get("lexical")] == []
    assert caller.found("the tram is late", **scope)[0] == turns[2]  # the control
    for body in (asked, window):
        assert "Rottnest" not in str(caller.post("/v1/context", body).json())
    assert "The tram is late again." in caller.post("/v1/context", window).json()["prompt"]


class TestSaidElsewhere:
    """A fact that another turn says too stays, in that one's words."""

    def test_in_the_same_words_it_stays_as_it_is(self, tenant: Tenant, caller: Caller) -> None:
        one, two = (
            said(caller, "My sister is called Ingrid."),
            said(caller, "My sister is called Ingrid.", thread_id="b"),
        )
        (fact,) = drawn(tenant, one)
        assert drawn(tenant, two) == [fact]
        gone(caller, one)
        assert state(tenant, fact) == "active"
        assert caller.get(f"/v1/memories/{fact}").json()["source_ids"] == [two]
        assert events(caller, fact)[0] == "UPDATE"
        gone(caller, two)
        assert state(tenant, fact) == "soft_deleted"

    @pytest.mark.parametrize("when", ["at once", "in the night"])
    @pytest.mark.parametrize("which", [0, 1])
    def test_in_other_words_it_is_told_in_those_that_are_left(
        self, tenant: Tenant, caller: Caller, which: int, when: str
    ) -> None:
        words = ("The user's sister is called Ingrid.", "The user's sister's name is Ingrid.")
        turns = [said(caller, "My sister is called Ingrid.")]
        (first,) = drawn(tenant, turns[0])
        category = state(tenant, first, "category")
        if when == "in the night":  # not compared at once
            tenant.rows("UPDATE memories SET category = 'event' WHERE id = %(id)s", id=UUID(first))
        turns.append(said(caller, "My sister's name is Ingrid.", thread_id="b"))
        if when == "in the night":
            tenant.rows("UPDATE memories SET category = %(to)s WHERE id = %(id)s", id=UUID(first), to=category)
            assert Night(tenant).counts("consolidation")["merged"] == 1
        (merged,) = of_type(caller, "semantic")
        assert caller.get(f"/v1/memories/{merged['id']}").json()["source_ids"] == turns
        gone(caller, turns[which])
        (left,) = of_type(caller, "semantic")
        assert left["content"] == words[1 - which]
        record = caller.get(f"/v1/memories/{left['id']}").json()
        assert (record["source_ids"], record["mention_count"]) == ([turns[1 - which]], 1)
        gone(caller, turns[1 - which])
        assert of_type(caller, "semantic") == []

    def test_what_is_over_stays_over(self, tenant: Tenant, caller: Caller) -> None:
        one = said(caller, "My sister is called Ingrid.")
        said(caller, "My sister's name is Ingrid.", thread_id="b")
        (fact,) = of_type(caller, "semantic")
        say(caller, fact["id"], "retract")
        assert state(tenant, fact["id"]) == "superseded"
        gone(caller, one)
        assert of_type(caller, "semantic") == []

    def test_what_was_deleted_of_the_other_turn_does_not_come_back(self, tenant: Tenant, caller: Caller) -> None:
        one = said(caller, "My sister is called Ingrid.")
        two = said(caller, "My sister's name is Ingrid. My brother is called Olaf.", thread_id="b")
        (olaf,) = [each["id"] for each in of_type(caller, "semantic") if "Olaf" in each["content"]]
        assert caller.delete(f"/v1/memories/{olaf}").status_code == 200
        gone(caller, one)
        (left,) = of_type(caller, "semantic")
        assert left["content"] == "The user's sister's name is Ingrid."
        assert {each for each in drawn(tenant, two) if state(tenant, each) == "active"} == {left["id"]}
        assert state(tenant, olaf) == "soft_deleted"


def facts_of(*facts: tuple[str, int]) -> Reply:
    more = {"category": "profile", "importance": 3, "confidence": 0.9}
    return called({"facts": [{"text": text, "turns": [turn], **more} for text, turn in facts]})


def test_facts_of_the_job_go_and_are_not_drawn_again(asking: Tenant, model: ModelServer) -> None:
    """Those of the model, and those that rules found in a turn that was stored without being read."""
    caller = asking.caller("supervisor")
    model_said = [said(caller, text, role=role, auto_extract=False) for role, text in TALK]
    closed(caller)
    ruled = said(caller, "I have a cat named Milo.", thread_id="b", auto_extract=False)
    closed(caller, "b")
    model.script = [facts_of((UPPSALA, 1), (INGRID, 2))]
    Night(asking).run("facts")
    made = {each["content"] for each in of_type(caller, "semantic")}
    assert {UPPSALA, INGRID, "The user has a cat named Milo."} <= made
    gone(caller, model_said[0])
    gone(caller, ruled)
    left = {each["content"] for each in of_type(caller, "semantic")}
    assert INGRID in left
    assert not left & {UPPSALA, "The user has a cat named Milo."}
    later = Night(asking, NOON + timedelta(days=2))
    later.run("sessions")
    asked = len(model.asked)
    assert later.counts("facts") == {"parts": 0, "facts": 0, "superseded": 0, "left_out": 0}
    assert len(model.asked) == asked
    assert {each["content"] for each in of_type(caller, "semantic")} == left


class TestSummaries:
    """A conversation's summary goes with a turn that it quotes, and the night sums it up anew."""

    TURNS = (
        ("user", "Can you plan the move to Lisbon?"),
        ("user", "We decided to sell the quokka piano."),
        ("assistant", "The van is booked for Monday."),
    )

    def talked(self, caller: Caller, thread: str = THREAD) -> tuple[list[str], str]:
        turns = [said(caller, text, role=role, thread_id=thread) for role, text in self.TURNS]
        return turns, str(closed(caller, thread)["memory_id"])

    def test_it_is_made_anew_of_what_is_left(self, tenant: Tenant, caller: Caller) -> None:
        turns, first = self.talked(caller)
        _, control = self.talked(caller, "other")
        gone(caller, turns[1])
        assert (state(tenant, first), state(tenant, control)) == ("soft_deleted", "active")
        night = Night(tenant, NOON + timedelta(days=1))
        assert night.counts("sessions") == {"closed": 1, "summaries": 1}
        (again,) = [each for each in of_type(caller, "episodic") if each["id"] != control]
        record = caller.get(f"/v1/memories/{again['id']}").json()
        assert (record["source_ids"], record["facts"]) == ([turns[0], turns[2]], [])
        night.now += timedelta(days=1)
        assert night.counts("sessions") == {"closed": 0, "summaries": 0}

    def test_without_a_turn_there_is_none(self, tenant: Tenant, caller: Caller) -> None:
        turns, first = self.talked(caller)
        for turn in turns:
            gone(caller, turn)
        night = Night(tenant, NOON + timedelta(days=1))
        assert night.counts("sessions") == {"closed": 1, "summaries": 0}
        assert state(tenant, first) == "soft_deleted"
        night.now += timedelta(days=1)
        assert night.counts("sessions") == {"closed": 0, "summaries": 0}

    def test_one_that_does_not_quote_it_stays(self, tenant: Tenant, caller: Caller) -> None:
        unquoted = said(caller, "Hello!", role="assistant")
        _, summary = self.talked(caller)
        gone(caller, unquoted)
        assert state(tenant, summary) == "active"
        assert Night(tenant, NOON + timedelta(days=1)).counts("sessions")["closed"] == 0


def test_an_insight_goes_and_its_job_looks_again(asking: Tenant, model: ModelServer) -> None:
    caller = asking.caller("supervisor")
    lease = "The user trusts the assistant more since it admitted the mistake with the lease."
    piano = "The user doubts that the piano will ever be tuned."
    for user in (USER, OTHER):
        write(caller, "The user cancelled the lease on the flat.", "event", type="episodic", user_id=user)
    turns = [said(caller, "Thanks for admitting the mistake with the lease.", user_id=user) for user in (USER, OTHER)]
    said(caller, "I doubt that the piano will ever be tuned.")
    answer = {"text": lease, "sources": [2], "confidence": 0.6}
    model.script = [called({"insights": [answer]})] * 2
    night = Night(asking)
    assert night.counts("insights")["insights"] == 2
    (first,), (control,) = of_type(caller, "insight"), of_type(caller, "insight", OTHER)
    gone(caller, turns[0])
    assert (state(asking, first["id"]), state(asking, control["id"])) == ("soft_deleted", "active")
    model.script = [called({"insights": [answer | {"text": piano}]})]
    night.now += timedelta(days=1)
    assert night.counts("insights") == {
        "users": 1, "insights": 1, "merged": 0, "dropped": 0,
    }  # fmt: skip
    assert [each["content"] for each in of_type(caller, "insight")] == [piano]
    assert "Thanks for admitting" not in model.asked[-1].said("user")


def test_a_reflection_goes_with_a_fact_of_the_turn(asking: Tenant, model: ModelServer) -> None:
    caller = asking.caller("supervisor")
    own = ("I own a piano.", "I have a cat named Milo.", "My sister is called Ingrid.", "I love green tea.")
    turns = [said(caller, text) for text in own]
    for text in own:
        said(caller, text, user_id=OTHER)
    whole = "The user spoke of a piano and of Milo, the cat. The user has a sister who is called Ingrid."
    less = "The user spoke of a cat named Milo. The user has a sister who is called Ingrid."
    model.script = [called({"text": whole, "sources": [1, 2, 3]})] * 2
    night = Night(asking)
    assert night.counts("reflections")["reflections"] == 2
    (first,), (control,) = of_type(caller, "reflection"), of_type(caller, "reflection", OTHER)
    gone(caller, turns[0])
    assert (state(asking, first["id"]), state(asking, control["id"])) == ("soft_deleted", "active")
    model.script = [called({"text": less, "sources": [1, 2]})]
    night.now += timedelta(days=1)
    assert night.counts("reflections")["reflections"] == 1
    assert [each["content"] for each in of_type(caller, "reflection")] == [less]


def test_a_procedure_goes_with_an_episode_of_the_turn(asking: Tenant, model: ModelServer) -> None:
    caller, executor = asking.caller("supervisor"), asking.caller("executor")
    turns = []
    for user in (USER, OTHER):
        for nth in range(4):
            where = {"thread_id": f"thread-{nth}", "user_id": user}
            turns.append(said(caller, f"Complaint {nth} is on your desk.", role="system", **where))
            text = f"The assistant read complaint {nth} and opened a ticket."
            write(caller, text, "tasks", type="episodic", source_ids=turns[-1:], **where)
    steps = ["Read the complaint.", "Open a ticket."]
    way = {"title": "How to answer a complaint", "steps": steps, "sources": [1, 2, 3], "confidence": 0.9}
    model.script = [called(way)] * 2
    night = Night(asking)
    assert night.counts("procedures")["procedures"] == 2
    (first,), (control,) = of_type(executor, "procedural"), of_type(executor, "procedural", OTHER)
    gone(caller, turns[0])
    assert (state(asking, first["id"]), state(asking, control["id"])) == ("soft_deleted", "active")
    model.script = [called(way)]
    night.now += timedelta(days=1)
    assert night.counts("procedures")["procedures"] == 1
    (again,) = of_type(executor, "procedural")
    assert again["id"] != first["id"]


def test_copies_go_whomever_the_key_is_bound_to(tenant: Tenant, caller: Caller) -> None:
    turn, other = said(caller, "I own a boat."), said(caller, "I own a piano.")
    copy = str(write(caller, "Ben knows somebody with a boat.", user_id=OTHER, source_ids=[turn])["id"])
    further = str(write(caller, "Cara heard of a boat.", user_id="cara", source_ids=[copy])["id"])
    control = str(write(caller, "Ben knows somebody with a piano.", user_id=OTHER, source_ids=[other])["id"])
    gone(tenant.caller("supervisor", users=[USER]), turn)
    assert [state(tenant, each) for each in (copy, further, control)] == ["soft_deleted", "soft_deleted", "active"]


@pytest.mark.parametrize("user", [USER, OTHER])
def test_a_turn_that_says_something_else_is_no_source_to_draw_from(tenant: Tenant, caller: Caller, user: str) -> None:
    """Anybody who may write names whatever turn as a source; what was deleted of that one is not drawn again."""
    turn = said(caller, "My sister is called Ingrid.")
    (fact,) = drawn(tenant, turn)
    unlike = said(caller, "I have a cat named Milo.", user_id=user, thread_id="b")
    (cat,) = drawn(tenant, unlike)
    caller.delete(f"/v1/memories/{cat}").raise_for_status()
    told = caller.get(f"/v1/memories/{fact}").json()
    again = write(caller, told["content"], category=told["category"], source_ids=[unlike])
    assert again["id"] == fact
    gone(tenant.caller("supervisor", users=[USER]), turn)
    there = {each["content"] for each in caller.get("/v1/memories", user_id=user).json()["items"]}
    assert not any("Milo" in content for content in there)
    assert state(tenant, cat) == "soft_deleted"
    assert drawn(tenant, unlike) in ([cat], sorted([cat, fact]))


def test_what_a_person_confirmed_stays_by_itself(tenant: Tenant, caller: Caller) -> None:
    turn = said(caller, "My sister is called Ingrid.")
    (fact,) = drawn(tenant, turn)
    say(caller, fact, "confirm")
    gone(caller, turn)
    assert caller.get(f"/v1/memories/{fact}").json()["source_ids"] == []


def test_entities_that_it_alone_named_are_known_no_more(tenant: Tenant, caller: Caller, admin: Caller) -> None:
    turn = said(caller, "My sister is called Ingrid.")
    said(caller, "I have a cat named Milo.")
    names = {each["name"] for each in caller.get("/v1/entities", user_id=USER).json()["items"]}
    assert {"Ingrid", "Milo"} <= names
    gone(caller, turn)
    left = {each["name"] for each in caller.get("/v1/entities", user_id=USER).json()["items"]}
    assert (("Ingrid" in left), ("Milo" in left)) == (False, True)
    admin.post("/v1/admin/purge", {"user_id": USER, "early": True})
    rows = {row["name"] for row in tenant.rows("SELECT name FROM entities WHERE tenant_id = %(tenant)s")}
    assert (("Ingrid" in rows), ("Milo" in rows)) == (False, True)

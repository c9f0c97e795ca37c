"""`memory.query`: bounds, threshold, forms of an answer, rankings, deltas, and what a request may not hold."""

from typing import Any
from urllib.parse import quote

import pytest

from support.callers import THREAD, Caller, Tenant, refused
from support.promises.checks import HALLS, TOKEN_BYTES, beyond_bounds
from support.serving import RunningServer


def tokens(text: str) -> int:
    return -(-len(text.encode()) // TOKEN_BYTES)


class TestBounds:
    """`top_k` and `budget_tokens`."""

    @pytest.fixture
    def halls(self, planner: Caller) -> list[str]:
        return [planner.remember(f"The hall has door number {number}.") for number in range(12)]

    @pytest.mark.parametrize("top_k", [1, 3, 12, 200])
    def test_top_k_is_the_most(self, planner: Caller, halls: list[str], top_k: int) -> None:
        for text in ("hall door", None):
            found = planner.found(text, top_k=top_k)
            assert len(found) == len(set(found)) == min(top_k, len(halls))

    @pytest.mark.parametrize("top_k", [0, -1, 201, 2**70, 1.5, "3", True, None])
    def test_top_k_has_limits(self, planner: Caller, top_k: object) -> None:
        refused(planner.query("hall", top_k=top_k), 422, "invalid_request")

    @pytest.mark.parametrize("budget", [0, -1, 100_001, 1.5, "3", True, None])
    def test_the_budget_has_limits(self, planner: Caller, budget: object) -> None:
        refused(planner.query("hall", budget_tokens=budget), 422, "invalid_request")

    @pytest.mark.parametrize(("top_k", "budget"), [(1, 4096), (3, 4096), (HALLS, 1), (HALLS, 25), (HALLS, 40)])
    def test_an_answer_stays_within_both(self, tenant: Tenant, top_k: int, budget: int) -> None:
        assert beyond_bounds(tenant, top_k, budget) == []

    @pytest.mark.parametrize("budget", [1, 10, 25, 40, 4096])
    def test_items_stay_within_the_budget(self, planner: Caller, halls: list[str], budget: int) -> None:
        answer = planner.ask("hall door", budget_tokens=budget, top_k=12)
        cost = sum(tokens(item["text"]) for item in answer["items"])
        usage = answer["usage"]
        assert cost == usage["tokens"] <= usage["budget"] == budget
        assert usage["truncated"] == (len(answer["items"]) < len(halls))
        assert usage["counter"] == "utf8-bytes/4"

    def test_an_item_that_does_not_fit_is_skipped_and_not_cut(self, planner: Caller) -> None:
        long = planner.remember(f"The hall {'is large and ' * 15}old.", importance=5)
        short = planner.remember("Halls are big.")
        both = planner.ask("hall")
        assert {item["id"] for item in both["items"]} == {long, short}
        assert not both["usage"]["truncated"]
        tight = planner.ask("hall", budget_tokens=20)
        assert [(item["id"], item["text"]) for item in tight["items"]] == [(short, "[tasks] Halls are big.")]
        assert tight["usage"]["truncated"]

    def test_whole_records_count_whole(self, planner: Caller) -> None:
        planner.remember("The hall is booked.", narrative="It took three calls. " * 20)
        bullet, full = planner.ask("hall"), planner.ask("hall", return_="full")
        assert bullet["usage"]["tokens"] < 10
        assert full["usage"]["tokens"] > 90
        assert planner.ask("hall", return_="full", budget_tokens=20)["items"] == []
        assert planner.ask("hall", budget_tokens=20)["items"] != []

    @pytest.mark.usefixtures("halls")
    def test_the_prompt_is_within_the_budget_too(self, planner: Caller) -> None:
        sizes = []
        for budget in (1, 40, 80, 200, 4096):
            answer = planner.ask("hall door", budget_tokens=budget, top_k=12)
            prompt = answer["prompt"]
            assert (tokens(prompt) if prompt else 0) == answer["usage"]["prompt_tokens"] <= budget
            sizes.append(answer["usage"]["prompt_tokens"])
        assert sizes == sorted(sizes)
        assert sizes[0] == 0 < sizes[-1]


class TestThreshold:
    """Items whose similarity is below the threshold are left out."""

    def test_what_is_below_is_left_out(self, planner: Caller) -> None:
        near = planner.remember("The wedding venue is booked.")
        far = planner.remember("Quarterly tax returns are due.")
        similar = {item["id"]: item["score_parts"]["similarity"] for item in
                   planner.ask("wedding venue booked", return_="full")["items"]}  # fmt: skip
        assert similar[near] > 0.6 > similar[far]
        answer = planner.ask("wedding venue booked", threshold=0.6)
        assert [item["id"] for item in answer["items"]] == [near]
        assert answer["usage"]["threshold_on"] == "semantic"
        assert planner.found("wedding venue booked", threshold=1) == []
        assert planner.ask("wedding venue booked")["usage"]["threshold_on"] is None

    @pytest.mark.parametrize("threshold", [-0.1, 1.1, "high", [0.5]])
    def test_it_has_limits(self, planner: Caller, threshold: object) -> None:
        refused(planner.query("hall", threshold=threshold), 422, "invalid_request")


class TestForms:
    """Bullets and whole records."""

    def test_a_bullet_is_one_line(self, planner: Caller, supervisor: Caller) -> None:
        memory = planner.remember("The hall is booked.", title="Venue", external_id="crm-7", thread_id=THREAD)
        turn = supervisor.say("Which hall?\nThe big one.", actor_id="Ben", external_id="m-1")["turn_id"]
        items = {item["id"]: item for item in supervisor.ask("hall")["items"]}
        assert items[memory]["text"] == "[tasks] Venue: The hall is booked."
        assert items[turn]["text"] == "[activity] Ben: Which hall? ⏎ The big one."
        assert (items[memory]["external_id"], items[turn]["external_id"]) == ("crm-7", "m-1")
        assert (items[memory]["thread_id"], items[turn]["thread_id"]) == (THREAD, THREAD)
        assert (items[memory]["type"], items[turn]["type"]) == ("semantic", "episodic")
        for name in ("memory", "turn", "score_parts", "explain", "via"):
            assert items[memory][name] is items[turn][name] is None

    def test_full_is_the_whole_record(self, planner: Caller, supervisor: Caller) -> None:
        memory = planner.remember(
            "The hall is booked.", title="Venue", narrative="It took three calls.", facts=["The hall has 90 seats."],
            tags=["venue"], attributes={"floor": 2}, event_time="2025-07-01T10:00:00+02:00", external_id="crm-7",
        )  # fmt: skip
        turn = supervisor.say("Which hall?", actor_id="Ben", external_id="m-1")
        answer = supervisor.ask("hall", return_="full")
        items = {item["id"]: item for item in answer["items"]}
        whole = items[memory]["memory"]
        assert whole == supervisor.get(f"/v1/memories/{memory}").json()
        assert (whole["narrative"], whole["facts"]) == ("It took three calls.", ["The hall has 90 seats."])
        assert (whole["source"], whole["trust_state"], whole["agent_id"]) == ("agent", "candidate", "planner")
        assert (whole["attributes"], whole["event_time"]) == ({"floor": 2}, "2025-07-01T08:00:00Z")
        said = items[turn["turn_id"]]["turn"]
        assert (said["seq"], said["rev"], said["text"], said["actor_id"]) == (1, turn["rev"], "Which hall?", "Ben")
        assert items[memory]["score_parts"].keys() >= {"lexical", "similarity", "recency"}
        assert answer["prompt"] is None

    def test_an_answer_names_its_policy(self, server: RunningServer, planner: Caller) -> None:
        assert planner.ask("hall")["policy"] == server.wired.policies.current.digest

    def test_nothing_found_is_an_answer(self, planner: Caller) -> None:
        answer = planner.ask("hall", thread_id="none", since_rev=3)
        assert (answer["items"], answer["prompt"]) == ([], None)
        assert answer["delta"] == {"rev": 0, "header": None, "pruned": False}
        assert not answer["usage"]["truncated"]

    @pytest.mark.parametrize("text", [None, "", "  \n "])
    def test_without_a_question_the_newest_come_first(
        self, planner: Caller, supervisor: Caller, text: str | None
    ) -> None:
        first = planner.remember("The hall is booked.", importance=5, pinned=True)
        second = supervisor.say("Which hall?")["turn_id"]
        third = planner.remember("The menu is chosen.")
        assert supervisor.found(text) == [third, second, first]
        assert supervisor.found(text, top_k=2) == [third, second]


class TestRankings:
    """Profiles that a request may name."""

    @pytest.fixture
    def rows(self, planner: Caller) -> dict[str, str]:
        return {
            "words": planner.remember("Invoice invoice invoice number nine."),
            "meaning": planner.remember("The bill for the catering arrived."),
            "neither": planner.remember("Ana likes hiking in spring."),
        }

    @pytest.mark.parametrize("ranking", [None, "default", "rrf", "lexical", "semantic"])
    def test_each_answers(self, planner: Caller, rows: dict[str, str], ranking: str | None) -> None:
        answer = planner.ask("invoice for the catering bill", ranking=ranking)
        scores = [item["score"] for item in answer["items"]]
        assert scores == sorted(scores, reverse=True)
        assert answer["items"][0]["id"] in (rows["words"], rows["meaning"])
        assert answer["items"][-1]["id"] == rows["neither"]

    def test_they_rank_by_different_things(self, planner: Caller, rows: dict[str, str]) -> None:
        asked = "invoices"
        assert planner.ask(asked, ranking="lexical")["items"][0]["id"] == rows["words"]
        lexical = {item["id"]: item["score"] for item in planner.ask(asked, ranking="lexical")["items"]}
        semantic = {item["id"]: item["score"] for item in planner.ask(asked, ranking="semantic")["items"]}
        assert lexical[rows["meaning"]] == 0 < semantic[rows["meaning"]]
        assert lexical[rows["words"]] == 1

    @pytest.mark.usefixtures("rows")
    def test_an_unknown_one_is_refused(self, planner: Caller) -> None:
        problem = refused(planner.query("invoice", ranking="magic"), 422, "unknown_ranking")
        assert problem["ranking"] == "magic"
        assert "default" in problem["detail"]


class TestDelta:
    """What changed in a thread since a revision, with the answer."""

    def test_it_tells_what_changed(self, planner: Caller) -> None:
        planner.remember("The hall is booked.", thread_id=THREAD)
        goal = planner.remember("Ana wants to ship version 1.", "goals", thread_id=THREAD, importance=2)
        assert planner.ask("hall", thread_id=THREAD)["delta"] == {"rev": 2, "header": None, "pruned": False}
        delta = planner.ask("hall", thread_id=THREAD, since_rev=1)["delta"]
        told = "Memory updates since rev 1:\n- +created: [Goals] Ana wants to ship version 1. (imp=2)"
        assert delta == {"rev": 2, "header": told, "pruned": False}
        assert planner.ask("hall", thread_id=THREAD, since_rev=2)["delta"] == {
            "rev": 2,
            "header": None,
            "pruned": False,
        }
        planner.patch(f"/v1/memories/{goal}", {"importance": 4})
        assert "↑updated: [Goals]" in planner.ask(thread_id=THREAD, since_rev=2)["delta"]["header"]
        planner.delete(f"/v1/memories/{goal}")
        assert "~soft_deleted: [Goals]" in planner.ask(thread_id=THREAD, since_rev=3)["delta"]["header"]
        assert planner.ask("hall")["delta"] is None

    def test_it_has_at_most_three_lines_the_most_important_first(self, planner: Caller) -> None:
        for importance in (1, 5, 2, 4, 3):
            planner.remember(f"Room {importance} has oak doors.", thread_id=THREAD, importance=importance)
        header = planner.ask(thread_id=THREAD, since_rev=0)["delta"]["header"]
        assert header.splitlines()[1:] == [
            f"- +created: [Tasks] Room {importance} has oak doors. (imp={importance})" for importance in (5, 4, 3)
        ] + ["and 2 more"]

    def test_turns_take_a_revision_and_are_not_told(self, supervisor: Caller) -> None:
        supervisor.say("Which hall?")
        assert supervisor.ask(thread_id=THREAD, since_rev=0)["delta"] == {"rev": 1, "header": None, "pruned": False}

    def test_it_tells_of_all_that_the_agent_reads_whatever_the_question_narrows(self, planner: Caller) -> None:
        """Else a revision would pass whose change nobody was told."""
        planner.remember("Ana wants to ship version 1.", "goals", thread_id=THREAD, importance=2)
        narrowed = {"categories": ["tasks"], "filters": {"type": "episodic", "pinned": True}, "top_k": 1}
        delta = planner.ask("hall", thread_id=THREAD, since_rev=0, **narrowed)["delta"]
        assert delta["rev"] == 1
        assert "[Goals] Ana wants to ship version 1." in (delta["header"] or "")
        assert planner.get(f"/v1/threads/{THREAD}/delta").json()["header"] == delta["header"]

    @pytest.mark.parametrize("name", ["slack/C1/17", "a/delta", "a\nb", "what?#%2F", "ü ☃", "..a", "a//b"])
    def test_a_thread_may_have_any_name(self, planner: Caller, name: str) -> None:
        planner.remember("The hall is booked.", thread_id=name)
        assert planner.ask(thread_id=name, since_rev=0)["delta"]["rev"] == 1
        told = planner.get(f"/v1/threads/{quote(name, safe='')}/delta").json()
        assert (told["rev"], len(told["changes"])) == (1, 1)

    def test_a_thread_name_of_several_users_needs_its_user(self, planner: Caller) -> None:
        planner.remember("The hall is booked.", thread_id=THREAD)
        planner.remember("The hall is painted.", thread_id=THREAD, user_id="ben")
        planner.remember("The hall is warm.", thread_id=THREAD, user_id="ben")
        refused(planner.query("hall", thread_id=THREAD, since_rev=0), 422, "user_required")
        refused(planner.get(f"/v1/threads/{THREAD}/delta"), 422, "user_required")
        assert planner.ask("hall", thread_id=THREAD, filters={"user_id": "ana"})["delta"]["rev"] == 1
        assert planner.get(f"/v1/threads/{THREAD}/delta", user_id="ben").json()["rev"] == 2

    @pytest.mark.parametrize("since", [-1, 1.5, "1", True, 2**70])
    def test_a_revision_has_limits(self, planner: Caller, since: object) -> None:
        refused(planner.query("hall", thread_id=THREAD, since_rev=since), 422, "invalid_request")


@pytest.mark.parametrize(
    "body",
    [{"limit": 3}, {"user": "ana"}, {"returns": "full"}, {"return": "json"}, {"explain": "perhaps"},
     {"as_of": "2025-07-01"}, {"categories": "tasks"}, {"categories": [""]}, {"filters": []}, {"query": ["hall"]},
     {"query": "h" * 8_001}, {"filters": {"user_id": "a" * 256}}, {"since_rev": 1}],
    ids=lambda body: repr(body)[:40],
)  # fmt: skip
def test_what_a_request_may_not_hold(planner: Caller, body: dict[str, Any]) -> None:
    refused(planner.query(**body), 422, "invalid_request")
    assert planner.query("hall").status_code == 200


def test_a_read_counts_as_an_access_and_reinforces_nothing(server: RunningServer, tenant: Tenant) -> None:
    planner = tenant.caller("planner")
    read, unread = planner.remember("The hall is booked."), planner.remember("The menu is chosen.")
    for _ in range(2):
        planner.found("hall", top_k=1)
    server.run(server.wired._accesses.flush())
    counted = {
        memory: planner.get(f"/v1/memories/{memory}").json()
        for memory in (read, unread)
    }  # fmt: skip
    assert (counted[read]["access_count"], counted[unread]["access_count"]) == (2, 0)
    assert counted[read]["last_accessed"] is not None
    assert counted[read]["reinforcement"] == 0
    assert counted[read]["version"] == 1
    searches = tenant.rows("SELECT op, status FROM events WHERE tenant_id = %(tenant)s AND node = 'context'")
    assert searches == [{"op": "search", "status": "ok"}] * 2

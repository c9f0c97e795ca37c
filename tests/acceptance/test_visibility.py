"""What a trust level, a state and a moment hide: stores, least trust, expiry, deletion, relations, deltas."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from support.callers import THREAD, Caller, Tenant, refused

NOW = datetime.now(UTC)
PAST, FUTURE = (NOW - timedelta(minutes=1)).isoformat(), (NOW + timedelta(days=1)).isoformat()
STORES = ("private", "shared", "social")
SEES = {"full": set(STORES), "inner": {"shared", "social"}, "familiar": {"social"}, "public": set()}


def stores_of(items: list[dict[str, dict[str, str]]]) -> set[str]:
    return {item["memory"]["visibility"] for item in items}


class TestTrust:
    """Stores and least trust."""

    @pytest.fixture
    def stocked(self, planner: Caller) -> dict[str, str]:
        return {store: planner.remember(f"The hall is booked ({store}).", visibility=store) for store in STORES}

    @pytest.mark.parametrize("trust", SEES)
    def test_a_level_sees_its_stores(self, tenant: Tenant, stocked: dict[str, str], trust: str) -> None:
        reader = tenant.caller("planner", trust=trust)
        assert stores_of(reader.ask("hall", return_="full")["items"]) == SEES[trust]
        assert stores_of(reader.ask(return_="full")["items"]) == SEES[trust]
        assert {m["visibility"] for m in reader.get("/v1/memories").json()["items"]} == SEES[trust]
        assert reader.ask("hall")["usage"]["candidates"] == len(SEES[trust])
        for store, memory in stocked.items():
            status = 200 if store in SEES[trust] else 404
            assert reader.get(f"/v1/memories/{memory}").status_code == status
            assert reader.get(f"/v1/memories/{memory}/history").status_code == status

    @pytest.mark.parametrize(("trust", "store"), [("full", "private"), ("inner", "shared"), ("familiar", "social")])
    def test_a_write_goes_to_the_levels_own_store(self, tenant: Tenant, trust: str, store: str) -> None:
        writer = tenant.caller("planner", trust=trust)
        memory = writer.remember("The hall is booked.")
        assert writer.get(f"/v1/memories/{memory}").json()["visibility"] == store

    def test_a_write_cannot_go_where_its_writer_sees_nothing(self, tenant: Tenant) -> None:
        body = {"user_id": "ana", "category": "tasks", "content": "The hall is booked."}
        inner, public = tenant.caller("planner", trust="inner"), tenant.caller("planner", trust="public")
        refused(inner.post("/v1/memories", body | {"visibility": "private"}), 403, "visibility_forbidden")
        refused(public.post("/v1/memories", body), 403, "visibility_forbidden")
        refused(public.post("/v1/memories", body | {"visibility": "social"}), 403, "visibility_forbidden")
        assert tenant.count("memories") == 0
        assert inner.post("/v1/memories", body | {"visibility": "social"}).status_code == 201

    def test_turns_are_private(self, tenant: Tenant, supervisor: Caller) -> None:
        said = supervisor.say("The hall is booked.")
        inner = tenant.caller("supervisor", trust="inner")
        turn = {"user_id": "ana", "thread_id": THREAD, "role": "user", "text": "The hall is booked."}
        refused(inner.post("/v1/turns", turn), 403, "visibility_forbidden")
        assert inner.found("hall") == []
        assert supervisor.found("hall") == [said["turn_id"]]

    def test_a_memory_can_ask_for_more_trust_than_its_store(self, tenant: Tenant, planner: Caller) -> None:
        open_to_all = planner.remember("The hall is booked.", visibility="social")
        kept = planner.remember("The hall costs 900 euros.", visibility="social", min_trust="inner")
        for trust, seen in (("full", {open_to_all, kept}), ("inner", {open_to_all, kept}), ("familiar", {open_to_all})):
            reader = tenant.caller("planner", trust=trust)
            assert set(reader.found("hall")) == seen
            assert reader.get(f"/v1/memories/{kept}").status_code == (200 if kept in seen else 404)


class TestTime:
    """Expiry and deletion."""

    def test_an_expired_memory_is_gone_at_once(self, tenant: Tenant, planner: Caller) -> None:
        lasting = planner.remember("The hall is booked until noon.", expires_at=FUTURE)
        expired = planner.remember("The hall is booked until dawn.", expires_at=FUTURE)
        assert set(planner.found("hall")) == {lasting, expired}
        tenant.expire(expired)
        assert planner.found("hall") == planner.found() == [lasting]
        assert [m["id"] for m in planner.get("/v1/memories").json()["items"]] == [lasting]
        refused(planner.get(f"/v1/memories/{expired}"), 404, "not_found")
        tenant.expire(lasting)
        assert planner.found("hall") == []

    def test_an_end_in_the_past_is_refused(self, planner: Caller) -> None:
        memory = {"user_id": "ana", "category": "tasks", "content": "The hall is booked."}
        problem = refused(planner.post("/v1/memories", memory | {"expires_at": PAST}), 422, "invalid_request")
        assert problem["field"] == "expires_at"
        assert "in the past" in problem["detail"]
        kept = planner.remember("The hall is booked.", expires_at=FUTURE)
        refused(planner.patch(f"/v1/memories/{kept}", {"expires_at": PAST}), 422, "invalid_request")
        assert planner.patch(f"/v1/memories/{kept}", {"expires_at": None}).status_code == 200

    def test_a_deleted_memory_is_out_of_every_read(self, tenant: Tenant, planner: Caller) -> None:
        kept, gone = planner.remember("The hall is booked."), planner.remember("The hall is painted.")
        tenant.relate(kept, gone)
        assert set(planner.found("hall")) == {kept, gone}
        assert planner.delete(f"/v1/memories/{gone}").json()["outcome"] == "deleted"
        assert planner.found("hall") == planner.found() == [kept]
        assert [m["id"] for m in planner.get("/v1/memories").json()["items"]] == [kept]
        for response in (
            planner.get(f"/v1/memories/{gone}"),
            planner.patch(f"/v1/memories/{gone}", {"importance": 5}),
            planner.delete(f"/v1/memories/{gone}"),
        ):
            refused(response, 404, "not_found")

    def test_a_deleted_memory_keeps_its_row_and_its_history(self, tenant: Tenant, planner: Caller) -> None:
        gone = planner.remember("The hall is painted.")
        planner.delete(f"/v1/memories/{gone}")
        (row,) = tenant.rows("SELECT state, purge_at, updated_at FROM memories WHERE id = %(id)s", id=gone)
        assert (row["state"], row["purge_at"] - row["updated_at"]) == ("soft_deleted", timedelta(days=30))
        events = planner.get(f"/v1/memories/{gone}/history").json()["items"]
        assert [entry["event"] for entry in events] == ["DELETE", "ADD"]

    @pytest.mark.parametrize("column_and_value", ["trust_state = 'disputed'", "trust_state = 'rejected'",
                                                  "state = 'superseded'", "state = 'archived'"])  # fmt: skip
    def test_what_is_not_believed_or_not_active_is_not_recalled(
        self, tenant: Tenant, planner: Caller, column_and_value: str
    ) -> None:
        kept, hidden = planner.remember("The hall is booked."), planner.remember("The hall is painted.")
        tenant.rows(f"UPDATE memories SET {column_and_value} WHERE id = %(id)s", id=hidden)
        tenant.rows("UPDATE memories SET trust_state = 'confirmed' WHERE id = %(id)s", id=kept)
        assert planner.found("hall") == planner.found() == [kept]
        refused(planner.get(f"/v1/memories/{hidden}"), 404, "not_found")


class TestRelated:
    """Memories that a relation brings in are held to every same check."""

    SUBJECT = "The hall is booked."

    @pytest.fixture
    def related(self, tenant: Tenant, planner: Caller) -> Callable[[str, Caller], list[str]]:
        """What else a reader gets, when a memory is related to the one that it finds by `top_k` 1."""

        def of(other: str, reader: Caller) -> list[str]:
            subject = planner.remember(self.SUBJECT, user_id="subject")
            tenant.relate(subject, other)
            answer = reader.ask("hall booked", ranking="hebbian")
            assert answer["items"][0]["id"] == subject
            return [item["id"] for item in answer["items"][1:] if item["via"] == subject]

        return of

    def test_a_readable_one_comes_with_the_one_that_brought_it(
        self, planner: Caller, related: Callable[[str, Caller], list[str]]
    ) -> None:
        cake = planner.remember("Lemon tart serves twelve.")
        assert related(cake, planner) == [cake]

    def test_the_other_direction_counts_too(self, tenant: Tenant, planner: Caller) -> None:
        hall, cake = planner.remember(self.SUBJECT), planner.remember("Lemon tart serves twelve.")
        tenant.relate(cake, hall)
        items = planner.ask("hall booked", ranking="hebbian")["items"]
        assert [(item["id"], item["via"]) for item in items] == [(hall, None), (cake, hall)]

    @pytest.mark.parametrize(
        "hidden", ["category", "visibility", "min_trust", "expired", "deleted", "disputed", "filter", "user"]
    )
    def test_one_that_may_not_be_read_does_not_come(self, tenant: Tenant, hidden: str) -> None:
        writer, text = tenant.caller("supervisor"), "Lemon tart serves twelve."
        reader = tenant.caller("planner", trust="inner", users=["ana"])
        hall = writer.remember(self.SUBJECT, visibility="shared", importance=4)
        fields: dict[str, object] = {"visibility": "shared", "importance": 4}
        fields |= {
            "category": {"category": "profile"},
            "visibility": {"visibility": "private"},
            "min_trust": {"min_trust": "full"},
            "filter": {"importance": 3},
            "user": {"user_id": "ben"},
        }.get(hidden, {})
        cake = writer.remember(text, **fields)
        if hidden == "expired":
            tenant.expire(cake)
        if hidden == "deleted":
            writer.delete(f"/v1/memories/{cake}")
        if hidden == "disputed":
            tenant.rows("UPDATE memories SET trust_state = 'disputed' WHERE id = %(id)s", id=cake)
        seen = writer.remember("Cream puffs serve nine.", visibility="shared", importance=4)
        tenant.relate(hall, cake, 0.9)
        tenant.relate(hall, seen, 0.3)
        answer = reader.ask("hall booked", ranking="hebbian", filters={"importance_min": 4})
        assert [item["id"] for item in answer["items"]] == [hall, seen]

    def test_it_can_be_left_out(self, tenant: Tenant, planner: Caller) -> None:
        hall, cake = planner.remember(self.SUBJECT), planner.remember("Lemon tart serves twelve.")
        tenant.relate(hall, cake)
        assert planner.found("hall booked", ranking="hebbian", related=False) == [hall]
        assert planner.found("hall booked", ranking="hebbian", related=True) == [hall, cake]

    def test_top_k_and_budget_bound_it(self, tenant: Tenant, planner: Caller) -> None:
        hall, cake = planner.remember(self.SUBJECT), planner.remember("Lemon tart serves twelve.")
        puffs, torte = planner.remember("Cream puffs serve nine."), planner.remember("Plum torte serves ten.")
        for place, other in enumerate((cake, puffs, torte)):
            tenant.relate(hall, other, 0.9 - place / 10)
        found = planner.ask("hall booked", ranking="hebbian")
        assert [item["id"] for item in found["items"]] == [hall, cake, puffs]  # at most two are added
        assert planner.found("hall booked", ranking="hebbian", top_k=2) == [hall, cake]
        assert planner.found("hall booked", ranking="hebbian", top_k=1) == [hall]
        tight = planner.ask("hall booked", ranking="hebbian", budget_tokens=found["usage"]["tokens"] - 1)
        assert len(tight["items"]) == 2
        assert tight["usage"]["truncated"]


class TestDelta:
    """What a thread's header tells to whom."""

    def header(self, caller: Caller) -> str | None:
        from_query = caller.ask("anything", thread_id=THREAD, since_rev=0)["delta"]
        told = caller.get(f"/v1/threads/{THREAD}/delta", since=0).json()
        assert (told["rev"], told["header"]) == (from_query["rev"], from_query["header"])
        return None if told["header"] is None else str(told["header"])

    def test_it_tells_of_readable_categories_only(self, planner: Caller, supervisor: Caller) -> None:
        supervisor.remember("Ana is left-handed.", "profile", thread_id=THREAD, importance=5)
        assert self.header(planner) is None
        planner.remember("The hall is booked.", thread_id=THREAD)
        assert self.header(planner) == "Memory updates since rev 0:\n- +created: [Tasks] The hall is booked. (imp=3)"
        assert "left-handed" in (self.header(supervisor) or "")
        assert "left-handed" not in planner.get(f"/v1/threads/{THREAD}/delta").text

    def test_it_holds_to_stores_and_least_trust(self, tenant: Tenant, planner: Caller) -> None:
        planner.remember("The hall is booked.", thread_id=THREAD, visibility="private")
        planner.remember("The hall costs 900 euros.", thread_id=THREAD, visibility="shared", min_trust="full")
        planner.remember("The hall is blue.", thread_id=THREAD, visibility="shared")
        told = self.header(tenant.caller("planner", trust="inner"))
        assert told == "Memory updates since rev 0:\n- +created: [Tasks] The hall is blue. (imp=3)"
        assert len((self.header(planner) or "").splitlines()) == 4

    def test_a_forbidden_category_cannot_be_asked_of_it(self, planner: Caller, supervisor: Caller) -> None:
        """What the query itself may not read, its delta does not tell either."""
        supervisor.remember("Ana is left-handed.", "profile", thread_id=THREAD)
        response = planner.query("hand", categories=["profile"], thread_id=THREAD, since_rev=0)
        refused(response, 403, "category_forbidden")
        assert supervisor.query("hand", categories=["profile"], thread_id=THREAD, since_rev=0).status_code == 200


def test_repeating_a_memory_above_ones_trust_makes_one_that_can_be_read(tenant: Tenant, planner: Caller) -> None:
    hidden = planner.remember("The hall is booked.", visibility="shared", min_trust="full")
    inner = tenant.caller("planner", trust="inner")
    body = {"user_id": "ana", "category": "tasks", "content": "The hall is booked.", "visibility": "shared"}
    told = inner.post("/v1/memories", body)
    assert told.status_code == 201
    assert told.json()["id"] != hidden
    assert inner.found("hall") == [told.json()["id"]]


def test_the_type_procedural_comes_only_when_asked_for(planner: Caller) -> None:
    routine = planner.remember("Book the hall.", type="procedural", steps=["Call the owner.", "Pay the deposit."])
    plain = planner.remember("The hall is booked by phone.")
    assert set(planner.found("book hall", filters={"type": "procedural"})) == {routine}
    assert planner.found("book hall") == [plain]

"""Authority rises only for words that the more trusted writer wrote: a less trusted record absorbs none of them."""

from uuid import UUID

import pytest

from support.callers import USER, Caller, Json, Tenant, refused
from support.telling import events, say, write
from support.transfer import OPERATING, exported, restored

MALLORY, ANA = "Mallory handles the payout.", "Vera handles the payout."
NAME = "goal-1"


@pytest.fixture
def trusted(tenant: Tenant) -> Caller:
    """A supervisor, fully trusted."""
    return tenant.caller("supervisor")


@pytest.fixture(params=["inner", "familiar"])
def lesser(tenant: Tenant, request: pytest.FixtureRequest) -> Caller:
    """A supervisor's key of less trust."""
    return tenant.caller("supervisor", trust=str(request.param))


def current(caller: Caller) -> list[Json]:
    """The active memories of the user that a caller reads, whole."""
    ids = [item["id"] for item in caller.get("/v1/memories", user_id=USER, limit=100).json()["items"]]
    return [caller.get(f"/v1/memories/{each}").json() for each in ids]


def weight(tenant: Tenant, memory: str) -> int:
    rows = tenant.rows("SELECT authority FROM memories WHERE id = %(id)s", id=UUID(memory))
    return int(rows[0]["authority"])


class TestNames:
    """A name that a less trusted writer took first."""

    @pytest.mark.parametrize("verb", ["retract", "delete", None])
    def test_it_swallows_no_trusted_write(self, trusted: Caller, lesser: Caller, verb: str | None) -> None:
        first = write(lesser, MALLORY, external_id=NAME)["id"]
        if verb == "delete":
            assert lesser.delete(f"/v1/memories/{first}").status_code == 200
        elif verb is not None:
            say(lesser, first, verb)
        done = write(trusted, ANA, external_id=NAME)
        assert done["id"] != first
        assert done["outcome"] in {"created", "superseded"}
        assert [(each["id"], each["content"]) for each in current(trusted)] == [(done["id"], ANA)]
        assert trusted.found("payout", filters={"user_id": USER}) == [done["id"]]
        assert write(trusted, ANA, external_id=NAME)["outcome"] == "duplicate"  # the control

    def test_it_swallows_nothing_that_is_restored(self, tenant: Tenant, trusted: Caller, lesser: Caller) -> None:
        admin = tenant.caller("supervisor", scopes=OPERATING)
        write(trusted, ANA, external_id=NAME)
        lines = exported(admin)
        squat = write(lesser, MALLORY, external_id=NAME, user_id="ben")["id"]
        assert restored(admin, lines, "ben")["duplicate"] == 0
        items = trusted.get("/v1/memories", user_id="ben").json()["items"]
        assert [trusted.get(f"/v1/memories/{each['id']}").json()["content"] for each in items] == [ANA]
        assert restored(admin, lines, "ben")["restored"] == 0  # the control
        assert events(trusted, squat) == ["SUPERSEDE", "ADD"]

    def test_what_it_names_in_another_category_is_a_conflict(self, trusted: Caller, lesser: Caller) -> None:
        first = write(lesser, MALLORY, "tasks", external_id=NAME)["id"]
        body = {"user_id": USER, "category": "event", "content": ANA, "external_id": NAME}
        refused(trusted.post("/v1/memories", body), 409, "conflict")
        assert trusted.get(f"/v1/memories/{first}").json()["content"] == MALLORY
        assert write(trusted, ANA, external_id="goal-2")["outcome"] == "created"  # the control

    def test_a_less_trusted_repeat_changes_nothing(self, trusted: Caller, lesser: Caller) -> None:
        store = lesser_store(lesser)
        kept = write(trusted, ANA, external_id=NAME, visibility=store)["id"]
        assert write(lesser, MALLORY, external_id=NAME)["outcome"] == "duplicate"
        (there,) = current(trusted)
        assert (there["id"], there["content"]) == (kept, ANA)

    def test_what_a_trusted_writer_ended_is_no_news_from_a_lesser_one(self, trusted: Caller, lesser: Caller) -> None:
        kept = write(trusted, ANA, external_id=NAME, visibility=lesser_store(lesser))["id"]
        say(trusted, kept, "retract")
        assert write(lesser, ANA, external_id=NAME)["outcome"] == "duplicate"
        assert current(trusted) == []
        assert write(lesser, ANA, external_id="goal-2")["outcome"] == "created"  # the control


def lesser_store(lesser: Caller) -> str:
    """The visibility that a caller writes by default."""
    probe = write(lesser, "The printer is out of toner.", "tasks")["id"]
    store = str(lesser.get(f"/v1/memories/{probe}").json()["visibility"])
    assert lesser.delete(f"/v1/memories/{probe}").status_code == 200
    return store


SAID: dict[str, tuple[Json, Json]] = {
    "content": ({"content": MALLORY, "facts": ["A payout is due."]}, {"content": ANA, "facts": ["A payout is due."]}),
    "narrative": ({"narrative": "Wire it to Mallory."}, {}),
    "title": ({"title": "Pay Mallory"}, {}),
    "facts": ({"facts": ["The payee is Mallory."]}, {}),
    "attributes": ({"attributes": {"payee": "Mallory"}}, {}),
    "tags": ({"tags": ["mallory"]}, {}),
    "files": ({"related_files": ["mallory.txt"]}, {}),
    "pin": ({"pinned": True}, {}),
    "importance": ({"importance": 5}, {}),
    "wording": ({"content": "The payout is handled by Vera."}, {"content": ANA}),
}


class TestWords:
    """What a less trusted writer said besides gains nothing when a more trusted one says the same."""

    @pytest.mark.parametrize("case", SAID)
    def test_authority_rises_for_the_words_of_the_trusted_alone(
        self, tenant: Tenant, trusted: Caller, lesser: Caller, case: str
    ) -> None:
        store = lesser_store(lesser)
        theirs, ours = SAID[case]
        write(lesser, **({"content": ANA} | theirs))
        done = write(trusted, **({"content": ANA, "visibility": store} | ours))
        full = [each for each in current(trusted) if weight(tenant, each["id"]) == 3]
        assert [each["id"] for each in full] == [done["id"]]
        (there,) = full
        assert there["content"] == ours.get("content", ANA)
        assert "mallory" not in str({**there, "conflicts": None}).casefold()
        assert (there["pinned"], there["importance"]) == (False, 3)

    def test_the_same_words_in_full_take_the_weight(self, tenant: Tenant, trusted: Caller, lesser: Caller) -> None:
        store = lesser_store(lesser)
        first = write(lesser, ANA, narrative="It is due.", attributes={"payee": "Vera"})["id"]
        again = write(trusted, ANA, narrative="It is due.", attributes={"payee": "Vera"}, visibility=store)
        assert (again["id"], again["outcome"], weight(tenant, first)) == (first, "duplicate", 3)

    def test_what_the_lesser_said_besides_is_kept_with_its_own_weight(
        self, tenant: Tenant, trusted: Caller, lesser: Caller
    ) -> None:
        store = lesser_store(lesser)
        first = write(lesser, ANA, narrative="It is due in May.")["id"]
        write(trusted, ANA, visibility=store)
        (less,) = [each for each in current(trusted) if each["id"] == first]
        assert (less["narrative"], weight(tenant, first)) == ("It is due in May.", 3 - lesser_steps(lesser))

    @pytest.mark.parametrize("field", ["attributes", "facts", "title", "tags"])
    def test_a_patch_of_some_words_vouches_for_no_others(
        self, tenant: Tenant, trusted: Caller, lesser: Caller, field: str
    ) -> None:
        theirs, _ = SAID[field]
        first = write(lesser, **({"content": "Vera handles the payuot."} | theirs))["id"]
        problem = refused(trusted.patch(f"/v1/memories/{first}", {"content": ANA}), 409, "less_trusted_words")
        assert field in problem["detail"]
        assert weight(tenant, first) < 3
        empty: Json = {"title": None, "facts": [], "tags": [], "attributes": {}}
        assert trusted.patch(f"/v1/memories/{first}", {"content": ANA, field: empty[field]}).status_code == 200
        assert weight(tenant, first) == 3
        assert "mallory" not in str(trusted.get(f"/v1/memories/{first}").json()).casefold()

    def test_new_content_drops_the_narrative_of_the_old(self, tenant: Tenant, trusted: Caller, lesser: Caller) -> None:
        first = write(lesser, "Vera handles the payuot.", narrative="Wire it to Mallory.")["id"]
        assert trusted.patch(f"/v1/memories/{first}", {"content": ANA}).status_code == 200
        there = trusted.get(f"/v1/memories/{first}").json()
        assert (there["content"], there["narrative"], weight(tenant, first)) == (ANA, None, 3)

    def test_a_less_trusted_repeat_takes_no_evidence_along(self, trusted: Caller, lesser: Caller) -> None:
        kept = write(trusted, ANA, visibility=lesser_store(lesser))["id"]
        source = write(trusted, "The payout is on Friday.", visibility=lesser_store(lesser))["id"]
        assert write(lesser, ANA, source_ids=[source], importance=5, pinned=True)["outcome"] == "duplicate"
        there = trusted.get(f"/v1/memories/{kept}").json()
        assert (there["source_ids"], there["importance"], there["pinned"]) == ([], 3, False)
        assert events(trusted, kept) == ["MENTION", "ADD"]  # the control


def lesser_steps(lesser: Caller) -> int:
    """How many steps below full trust a caller is."""
    return {"shared": 1, "social": 2}[lesser_store(lesser)]

"""The examples of koshi-hebbian, each named by its section; its promotion and demotion are in test_hits.py."""

from datetime import timedelta
from uuid import UUID

import pytest

from support.callers import USER, Caller, Tenant, refused
from support.nights import NOON, Night, age, ago, state
from support.telling import say, write

HMAC = "Payment API HMAC signature: with no request body the signature string has no trailing empty string."
PORTO = "The invoice portal is hosted in Porto."


@pytest.fixture
def stored(caller: Caller) -> str:
    """Tool Interface, memory_store: what is worth remembering, with tags."""
    write(caller, PORTO)
    return str(write(caller, HMAC, tags=["payments", "hmac", "api", "bug"])["id"])


@pytest.mark.parametrize(
    "question", ["payment HMAC signature api", "api auth authentication signature hmac"], ids=["keywords", "synonyms"]
)
def test_keywords_and_synonyms_of_the_agent_find_it(caller: Caller, stored: str, question: str) -> None:
    """Retrieval Flow and memory_query: the agent brings the words, joined by OR."""
    assert caller.found(question, top_k=5)[0] == stored


@pytest.mark.parametrize(
    "question",
    [
        "hmac https://example.org/pay?x=1&y=2#z", "pay-ment-HMAC", "content:hmac", "hmac NOT signature", '"hmac',
        "hmac*", "hmac AND (", "a hmac b", "NEAR(hmac, api)", "^hmac {x}", "hmac; DROP TABLE memories",
    ],
)  # fmt: skip
def test_a_query_is_words_and_no_language(caller: Caller, stored: str, question: str) -> None:
    """FTS5 Query Handling: URLs, hyphens, operators and single letters neither fail nor mean anything."""
    assert stored in caller.found(question)


def test_the_url_itself_finds_nothing(caller: Caller, stored: str) -> None:
    """FTS5 Query Handling 1: its parts are no words of the question."""
    ask = {"ranking": "lexical", "filters": {"user_id": USER}}
    assert caller.found("invoice portal Porto hmac", **ask)[0] != stored  # the control
    assert caller.found("https://portal.example/invoice/porto hmac", **ask)[0] == stored


def test_reinforce_demote_and_update(tenant: Tenant, caller: Caller, stored: str) -> None:
    """Tool Interface, the flow 4 to 7: +3, −1, and new words in place with the score kept."""
    assert say(caller, stored, "reinforce")["id"] == stored
    assert state(tenant, stored, "reinforcement") == 3
    say(caller, stored, "demote")
    assert state(tenant, stored, "reinforcement") == 2
    changed = {"content": "The payment API signs an empty body as one line.", "tags": ["payments"]}
    assert caller.patch(f"/v1/memories/{stored}", changed).json()["outcome"] == "updated"
    assert (state(tenant, stored, "reinforcement"), caller.found("payment signs")[0]) == (2, stored)


def test_what_is_returned_and_not_acted_upon_gets_no_signal(tenant: Tenant, caller: Caller, stored: str) -> None:
    """Ranking: neutral, not punished."""
    caller.found("hmac signature", ranking="hebbian")
    tenant.server.run(tenant.server.wired._accesses.flush())
    assert (state(tenant, stored, "reinforcement"), state(tenant, stored, "hits")) == (0, 0)


def test_usage_ranks_and_demotion_pushes_down(tenant: Tenant, caller: Caller) -> None:
    """Ranking: two of the same words are ranked by what was said of them."""
    plain, useful, stale = (str(write(caller, f"Gate {name} opens at seven.")["id"]) for name in ("A1", "B2", "C3"))
    say(caller, useful, "reinforce")
    for _ in range(5):
        say(caller, stale, "demote")
    asked = {"ranking": "hebbian", "filters": {"user_id": USER}, "top_k": 3, "related": False}
    assert caller.found("gate opens seven", **asked) == [useful, plain, stale]
    del tenant


def test_recency_is_of_the_last_hit(tenant: Tenant, caller: Caller) -> None:
    """Ranking: the clock of what was confirmed lately begins anew, else it runs from the beginning."""
    old, fresh = (str(write(caller, f"Gate {name} opens at seven.")["id"]) for name in ("A1", "B2"))
    age(tenant, old, 300, version=2)
    age(tenant, fresh, 300, last_hit_at=ago(1), version=2)
    found = caller.found("gate opens seven", ranking="hebbian", filters={"user_id": USER}, related=False)
    assert found == [fresh, old]


def test_a_low_score_alone_removes_nothing(tenant: Tenant, caller: Caller, stored: str) -> None:
    """Pruning: a memory at −8 stays while there is room; SPEC 8 counts memories of a user, not bytes."""
    for _ in range(8):
        say(caller, stored, "demote")
    Night(tenant, NOON + timedelta(days=1)).run("size")
    assert state(tenant, stored) == "active"


def test_pruned_is_archived_and_the_archive_is_searched(tenant: Tenant, caller: Caller, stored: str) -> None:
    """Pruning: never truly deleted."""
    tenant.rows("UPDATE memories SET state = 'archived' WHERE id = %(id)s AND tenant_id = %(tenant)s", id=UUID(stored))
    assert stored not in caller.found("hmac signature", filters={"user_id": USER})
    assert caller.found("hmac signature", filters={"user_id": USER}, archive=True) == [stored]
    assert say(caller, stored, "restore")["outcome"] == "restored"


def test_who_did_not_write_it_may_not_say_what_is_wrong(tenant: Tenant, stored: str) -> None:
    """The source has one caller; here the same verbs go by permission (SPEC 3)."""
    stranger = tenant.caller("stylist")
    refused(stranger.post(f"/v1/memories/{stored}/demote", {}), 404, "not_found")

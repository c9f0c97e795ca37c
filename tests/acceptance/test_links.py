"""Relations stand in the history as LINK entries, once, and as far as their reader may see where they lead."""

from typing import Any

from support.callers import USER, Caller, Tenant

Json = dict[str, Any]


def links(caller: Caller, memory: str) -> list[Json]:
    """What the LINK entries of a memory tell."""
    entries = caller.get(f"/v1/memories/{memory}/history").json()["items"]
    return [entry["meta"] for entry in entries if entry["event"] == "LINK"]


def relations(tenant: Tenant, memory: str, kind: str = "related_to") -> set[str]:
    found = tenant.rows(
        "SELECT to_id FROM relations WHERE tenant_id = %(tenant)s AND from_id = %(id)s AND relation_type = %(kind)s",
        id=memory, kind=kind,
    )  # fmt: skip
    return {str(row["to_id"]) for row in found}


def related(caller: Caller, **fields: Any) -> tuple[str, str]:  # noqa: ANN401 - of the memory
    """A memory, and a later one that is related to it."""
    first = caller.remember("The user plays the cello in the city orchestra.", "event", **fields)
    return first, caller.remember("The city orchestra plays in the old harbour hall.", "event")


def test_a_relation_is_noted_once(tenant: Tenant, caller: Caller) -> None:
    first, second = related(caller)
    assert relations(tenant, second) == {first}
    (noted,) = links(caller, second)
    (link,) = noted["links"]
    assert (link["to"], link["relation"]) == (first, "related_to")
    assert 0 < link["strength"] <= 1
    assert links(caller, first) == [], "it is noted where the relation begins"
    again = {"user_id": USER, "category": "event", "content": "The city orchestra plays in the old harbour hall."}
    assert caller.post("/v1/memories", again).json()["id"] == second
    assert len(links(caller, second)) == 1, "no second one at a repeat"
    alone = caller.remember("Ferns need shade.", "tasks")
    assert links(caller, alone) == [], "the control: it has no relation"


def test_a_possible_conflict_is_noted(tenant: Tenant, caller: Caller) -> None:
    first = caller.remember("The user's workshop has two windows.", "profile")
    second = caller.remember("The user's workshop has three windows in the roof.", "profile")
    listed = relations(tenant, second, "possible_conflict")
    noted = [
        link for meta in links(caller, second) for link in meta["links"] if link["relation"] == "possible_conflict"
    ]
    assert {link["to"] for link in noted} == listed <= {first}


def test_where_it_leads_is_told_to_those_who_may_see_that(tenant: Tenant, caller: Caller) -> None:
    first, second = related(caller, visibility="private")
    assert relations(tenant, second) == {first}
    tenant.rows("UPDATE memories SET visibility = 'social', min_trust = 'familiar' WHERE id = %(id)s", id=second)
    less = tenant.caller("supervisor", trust="familiar")
    assert [meta["links"] for meta in links(less, second)] == [[]]
    assert first not in less.get(f"/v1/memories/{second}/history").text
    assert [link["to"] for meta in links(caller, second) for link in meta["links"]] == [first]


def test_what_is_recalled_together_is_noted_when_it_is_linked_and_when_no_longer(
    tenant: Tenant, caller: Caller
) -> None:
    one, other = sorted((caller.remember("The cello is tuned."), caller.remember("Ferns need shade.")))
    tenant.relate(one, other, 0.0)
    tenant.rows("UPDATE relations SET relation_type = 'co_recalled', co_recalls = 9 WHERE tenant_id = %(tenant)s")
    tenant.server.run(tenant.server.wired.jobs.run("co_recall", tenant.name))
    (noted,) = links(caller, one)
    assert [(link["to"], link["relation"]) for link in noted["links"]] == [(other, "co_recalled")]
    assert "removed" not in noted
    tenant.server.run(tenant.server.wired.jobs.run("co_recall", tenant.name))
    assert len(links(caller, one)) == 1, "no second one at a repeat"
    long_ago = "2020-01-01T00:00:00.000000+00:00"
    tenant.rows("UPDATE relations SET updated_at = %(then)s WHERE tenant_id = %(tenant)s", then=long_ago)
    tenant.server.run(tenant.server.wired.jobs.run("co_recall", tenant.name))
    assert [meta.get("removed", False) for meta in links(caller, one)] == [True, False]

"""The job `reconcile`: what was derived from memories and turns, damaged past the gateway, is put right at night."""

from uuid import UUID

import pytest

from memplane.domain.memory.memory import new_id
from support.callers import Caller, Tenant
from support.damaging import (
    BAD_VECTORS,
    BICYCLE,
    FIDDLE,
    by_meaning,
    by_words,
    edges,
    past_the_rules,
    relate,
    repaired,
    spoil,
)
from support.nights import Night, state


class TestVectors:
    """A text without a vector that questions can be compared with gets one, and every cache learns of it."""

    @pytest.mark.untold("POST /v1/memory/query: 500")
    @pytest.mark.parametrize("how", BAD_VECTORS)
    def test_of_a_memory(self, tenant: Tenant, caller: Caller, night: Night, how: str) -> None:
        other, memory = caller.remember(BICYCLE), caller.remember(FIDDLE)  # nothing of the latter is remembered yet
        spoil(tenant, "memories", memory, how)
        for _ in range(3):  # by then it is remembered how it is
            if how == "longer":  # then nobody is answered at all
                assert caller.query("Who sold a bicycle?").status_code >= 500
            else:
                assert by_meaning(caller, "Who repaired the harpsichord?") == []
                assert by_meaning(caller, "Who sold a bicycle?") == [other]
        version = state(tenant, memory, "version")
        assert repaired(night, dry_run=True)["vectors"] == 1
        assert repaired(night)["vectors"] == 1
        assert by_meaning(caller, "Who repaired the harpsichord?") == [memory]
        assert by_meaning(caller, "Who sold a bicycle?") == [other]
        assert state(tenant, memory, "version") == version
        assert repaired(night) == {}

    def test_of_a_turn(self, tenant: Tenant, caller: Caller, night: Night) -> None:
        turn = caller.say("Vance repaired the harpsichord")["turn_id"]
        caller.say("soup with the dog")
        spoil(tenant, "turns", turn, "none")
        for _ in range(3):  # by then it is remembered
            assert by_meaning(caller, "Who repaired the harpsichord?") == []
        assert repaired(night) == {"vectors": 1}
        assert by_meaning(caller, "Who repaired the harpsichord?") == [turn]


class TestTerms:
    """Terms that are not those of a text are made anew, with its vector."""

    @pytest.mark.parametrize("table", ["memories", "turns"])
    def test_that_are_lost(self, tenant: Tenant, caller: Caller, night: Night, table: str) -> None:
        caller.remember(BICYCLE)
        unit = caller.remember(FIDDLE) if table == "memories" else caller.say(FIDDLE)["turn_id"]
        past_the_rules(
            tenant, f"UPDATE {table} SET terms = %(none)s, term_length = 0 WHERE id = %(id)s", id=UUID(unit), none=b""
        )
        for _ in range(3):  # by then it is remembered
            assert by_words(caller, "harpsichord") == []
            assert len(by_words(caller, "bicycle")) == 1
        assert repaired(night) == {"terms": 1}
        assert by_words(caller, "harpsichord") == [unit]
        assert repaired(night) == {}

    def test_of_words_that_were_changed_past_the_gateway(self, tenant: Tenant, caller: Caller, night: Night) -> None:
        memory = caller.remember(FIDDLE)
        past_the_rules(
            tenant, "UPDATE memories SET content = %(words)s WHERE id = %(id)s", id=UUID(memory), words=BICYCLE
        )
        assert by_words(caller, "bicycle") == []
        assert by_meaning(caller, "Who sold a bicycle?") == []
        assert repaired(night) == {"terms": 1, "mentions": 1}
        assert by_words(caller, "bicycle") == [memory]
        assert caller.found("bicycle", filters={"entity": "Anna"}) == [memory]
        assert by_meaning(caller, "Who sold a bicycle?") == [memory]


class TestRelations:
    """Relations that lead nowhere, to somebody else or back again go; memories without any get their neighbours."""

    def test_that_lead_astray(self, tenant: Tenant, caller: Caller, night: Night) -> None:
        one, other = caller.remember(FIDDLE), caller.remember(BICYCLE)
        foreign = caller.remember("The user wants a boat.", user_id="ben")
        good = edges(tenant)
        for ends in ((one, str(new_id())), (str(new_id()), one), (one, foreign)):
            relate(tenant, ends)
        relate(tenant, (one, other), kind="supersedes")
        relate(tenant, (other, one), kind="supersedes")
        assert repaired(night, dry_run=True)["relations"] == 3
        assert repaired(night)["relations"] == 3
        assert edges(tenant) == good | {(one, other, "supersedes"), (other, one, "supersedes")}
        assert repaired(night) == {}

    def test_there_and_back_is_one(self, tenant: Tenant, caller: Caller, night: Night) -> None:
        one, other = caller.remember(FIDDLE), caller.remember(BICYCLE)
        relate(tenant, (one, other), 0.4)
        relate(tenant, (other, one), 0.8)
        assert repaired(night) == {"relations": 1}
        assert edges(tenant) == {(other, one, "related_to")}

    def test_memories_without_any_get_their_neighbours(self, tenant: Tenant, caller: Caller, night: Night) -> None:
        texts = (
            "The user plays the piano.",
            "The user practises the piano in the evening.",
            "Tax returns are due in May.",
        )
        one, other, far = (caller.remember(text) for text in texts)
        foreign = caller.remember(texts[0], user_id="ben")
        elsewhere = caller.remember(texts[0], category="goals")
        made = edges(tenant)
        assert made == {(other, one, "related_to")}
        strength = tenant.rows("SELECT strength FROM relations WHERE tenant_id = %(tenant)s")
        assert repaired(night) == {}  # what has no neighbours needs none
        tenant.rows("DELETE FROM relations WHERE tenant_id = %(tenant)s")
        assert repaired(night, dry_run=True) == {"links": 2}
        assert edges(tenant) == set()
        assert repaired(night) == {"links": 2}
        assert edges(tenant) == made
        assert tenant.rows("SELECT strength FROM relations WHERE tenant_id = %(tenant)s")[0][
            "strength"
        ] == pytest.approx(strength[0]["strength"], abs=0.002)
        assert repaired(night) == {}
        assert {far, foreign, elsewhere}.isdisjoint({end for edge in edges(tenant) for end in edge})


class TestEntities:
    """Links that lead nowhere or to somebody else's entity go, and so do entities that nothing mentions."""

    def test_links_that_lead_astray(self, tenant: Tenant, caller: Caller, night: Night) -> None:
        memory = caller.remember("The user met Berta Lindqvist.")
        caller.remember("The user met Yoko Aihara.", user_id="ben")
        berta, yoko = caller.entity("Berta Lindqvist"), caller.entity("Yoko Aihara", "ben")
        link = "INSERT INTO memory_entities (tenant_id, memory_id, entity_id) VALUES (%(tenant)s, %(id)s, %(entity)s)"
        for ends in ((memory, str(new_id())), (str(new_id()), berta), (memory, yoko)):
            past_the_rules(tenant, link, id=UUID(ends[0]), entity=UUID(ends[1]))
        assert tenant.count("memory_entities") == 5
        assert repaired(night, dry_run=True) == {"mentions": 3}
        assert repaired(night) == {"mentions": 3}
        assert tenant.count("memory_entities") == 2
        assert caller.entity("Berta Lindqvist") == berta

    def test_links_that_are_lost(self, tenant: Tenant, caller: Caller, night: Night) -> None:
        memory = caller.remember("The user had dinner with Yoko Aihara.")
        night.run("enrichment")
        yoko = caller.entity("Yoko Aihara")
        tenant.rows("DELETE FROM memory_entities WHERE tenant_id = %(tenant)s")
        assert caller.found("dinner", filters={"entity": "Yoko Aihara"}) == []
        assert repaired(night) == {"mentions": 1}
        assert caller.found("dinner", filters={"entity": "Yoko Aihara"}) == [memory]
        assert caller.entity("Yoko Aihara") == yoko

    def test_entities_that_nothing_mentions(self, tenant: Tenant, caller: Caller, night: Night) -> None:
        for name in ("Berta Lindqvist", "Yoko Aihara", "Ximena Duarte"):
            gone = caller.remember(f"The user met {name}.")
            if name == "Yoko Aihara":
                caller.post(f"/v1/entities/{caller.entity(name)}/aliases", {"alias": "Yoyo"})
            if name != "Ximena Duarte":
                caller.patch(
                    f"/v1/memories/{gone}",
                    {"content": "The user met an old friend."}
                    if name[0] == "B"
                    else {"content": "The user met a cousin."},
                )
        assert tenant.count("entities") == 3
        assert repaired(night, dry_run=True) == {"entities": 1}
        assert repaired(night) == {"entities": 1}
        names = {row["name"] for row in tenant.rows("SELECT name FROM entities WHERE tenant_id = %(tenant)s")}
        assert names == {"Yoko Aihara", "Ximena Duarte"}  # a person gave the one another name


class TestSources:
    """What a memory names as its sources leads to it, and what was purged is named no longer."""

    def test_that_lead_to_nothing(self, tenant: Tenant, caller: Caller, night: Night) -> None:
        source = caller.remember(FIDDLE)
        elsewhere = caller.remember("The user sings in a choir.")
        memory = caller.remember("The user owns a harpsichord.", source_ids=[source, elsewhere])
        past_the_rules(tenant, "DELETE FROM memories WHERE id = %(id)s", id=UUID(source))
        past_the_rules(tenant, "UPDATE memories SET mention_count = 5 WHERE id = %(id)s", id=UUID(memory))
        assert repaired(night)["sources"] == 1
        assert state(tenant, memory, "mention_count") == 4  # else it would outlive the others
        assert caller.get(f"/v1/memories/{memory}").json()["source_ids"] == [elsewhere]
        (entry,) = tenant.rows(
            "SELECT meta FROM history WHERE memory_id = %(id)s AND actor = 'job:reconcile'", id=UUID(memory)
        )
        assert "source_purged" in str(entry["meta"])
        assert repaired(night) == {}

    def test_a_deleted_source_takes_along_what_names_it_again(
        self, tenant: Tenant, caller: Caller, night: Night
    ) -> None:
        memories = []
        for nth, word in enumerate(("harpsichord", "bicycle")):
            source = caller.remember(f"The user bought a {word}.")
            memories.append((source, caller.remember(f"The user has room for a {word}.", source_ids=[source])))
            if nth == 0:
                past_the_rules(tenant, "DELETE FROM memory_sources WHERE tenant_id = %(tenant)s")
        (first, lost), (second, kept) = memories
        assert repaired(night)["sources"] == 1
        for each in (first, second):
            caller.delete(f"/v1/memories/{each}")
        assert (state(tenant, lost), state(tenant, kept)) == ("soft_deleted", "soft_deleted")

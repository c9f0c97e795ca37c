"""The policy's own rules, the caller's own limits, and what both come to for an agent."""

from dataclasses import FrozenInstanceError, replace
from datetime import timedelta

import pytest

from memplane.domain.consent.consent_rules import ConsentRules
from memplane.domain.errors import (
    AgentForbidden,
    CategoryForbidden,
    InvalidRequest,
    ScopeForbidden,
    UnknownCategory,
    UnknownRanking,
    UserForbidden,
    VisibilityForbidden,
)
from memplane.domain.identity.principal import KeyScope, Principal
from memplane.domain.language.comparison.comparison import ANY_MODEL, Bands, MergeRules
from memplane.domain.memory.memory import MemoryType, Visibility
from memplane.domain.policy.policy import (
    Allowlist,
    Bm25,
    Category,
    ContextMode,
    FusionWeights,
    Policy,
    RankingMethod,
    RankingProfile,
    Trust,
    TrustLevel,
    TypeWriting,
    WritingRules,
)
from memplane.domain.policy.policy_view import describe_agent

PRIVATE, SHARED, SOCIAL = Visibility
GENERAL = FusionWeights(lexical=1.0, semantic=0.2, semantic_context=0.3, actor=0.25)
MEASURED = FusionWeights(lexical=0.5, semantic=0.9, semantic_context=0.1, actor=0.0)

POLICY = Policy(
    categories={
        category.name: category
        for category in (
            Category("goals", ContextMode.ALL),
            Category("tasks", ContextMode.RAG, 20),
            Category("activity", ContextMode.RAG, 50),
            Category("procedural", ContextMode.NONE),
            Category("notes", ContextMode.RAG, 5, ("city",), system=False),
        )
    },
    allowlists={
        "planner": Allowlist(read=("tasks", "goals", "procedural"), write=("goals", "notes")),
        "watcher": Allowlist(read=("activity",), write=(), trust=Trust.INNER),
        "stranger": Allowlist(read=("activity", "goals"), write=("goals",), trust=Trust.PUBLIC),
        "nobody": Allowlist(read=(), write=()),
    },
    trust={
        Trust.FULL: TrustLevel(frozenset(Visibility), PRIVATE),
        Trust.INNER: TrustLevel(frozenset({SHARED, SOCIAL}), SHARED),
        Trust.FAMILIAR: TrustLevel(frozenset({SOCIAL}), SOCIAL),
        Trust.PUBLIC: TrustLevel(frozenset(), None),
    },
    turns_category="activity",
    writing=WritingRules({MemoryType.SEMANTIC: TypeWriting(280, 2)}, frozenset({"i"}), 16_000, 200, 50),
    rankings={
        "default": RankingProfile("default", RankingMethod.CALIBRATED, Bm25(), {"*": GENERAL, "small": MEASURED}),
        "rrf": RankingProfile("rrf", RankingMethod.RRF, Bm25(), {}),
    },
    merging=MergeRules({ANY_MODEL: Bands(0.8, 0.6, 0.5, 0.4, 0.7, 0.25)}),
    consent=ConsentRules(("city",), ("tone",), timedelta(days=7), 2, 0.9),
    digest="sha256:00",
)


def principal(agent: str | None = "planner", *, act_for: frozenset[str] = frozenset()) -> Principal:
    """A caller with a key to read, for one user."""
    return Principal(
        tenant="t1",
        agent=agent,
        trust=Trust.FULL,
        scopes=frozenset({KeyScope.READ}),
        key_id="k1",
        act_for=act_for,
        users=frozenset({"u1"}),
    )


class TestReading:
    @pytest.mark.parametrize("requested", [None, (), []])
    def test_nothing_requested_is_the_allowlist_less_what_has_no_context(self, requested: list[str] | None) -> None:
        assert POLICY.readable("planner", requested) == ("tasks", "goals")

    def test_what_has_no_context_is_read_when_it_is_named(self) -> None:
        assert POLICY.readable("planner", ["procedural"]) == ("procedural",)

    def test_the_request_gives_order_and_repeats_count_once(self) -> None:
        assert POLICY.readable("planner", iter(["goals", "tasks", "goals"])) == ("goals", "tasks")

    def test_one_forbidden_category_refuses_all_and_each_is_named(self) -> None:
        with pytest.raises(CategoryForbidden) as caught:
            POLICY.readable("planner", ["goals", "activity", "notes"])
        assert caught.value.extra == {"categories": ["activity", "notes"], "agent": "planner"}
        assert caught.value.detail == (
            "agent 'planner' may not read activity, notes; it may read tasks, goals, procedural"
        )

    def test_a_category_that_is_not_there_is_forbidden_in_the_same_words(self) -> None:
        details = []
        for name in ("activity", "absent"):
            with pytest.raises(CategoryForbidden) as caught:
                POLICY.readable("planner", [name])
            details.append(caught.value.detail.replace(name, "x"))
        assert details[0] == details[1]

    def test_leave_to_write_is_no_leave_to_read(self) -> None:
        with pytest.raises(CategoryForbidden):
            POLICY.readable("planner", ["notes"])
        POLICY.check_write("planner", "notes")

    def test_an_unknown_agent_reads_nothing(self) -> None:
        assert POLICY.readable("ghost", None) == ()
        with pytest.raises(CategoryForbidden, match="it may read nothing"):
            POLICY.readable("ghost", ["goals"])


class TestWriting:
    def test_a_category_of_the_write_allowlist(self) -> None:
        POLICY.check_write("planner", "goals")

    @pytest.mark.parametrize(("agent", "category"), [("planner", "tasks"), ("planner", "absent"), ("ghost", "goals")])
    def test_any_other_is_forbidden(self, agent: str, category: str) -> None:
        with pytest.raises(CategoryForbidden, match=f"agent '{agent}' may not write {category}") as caught:
            POLICY.check_write(agent, category)
        assert caught.value.extra["categories"] == [category]


class TestTrust:
    @pytest.mark.parametrize(
        ("trust", "sees", "default"),
        [
            (Trust.FULL, {PRIVATE, SHARED, SOCIAL}, PRIVATE),
            (Trust.INNER, {SHARED, SOCIAL}, SHARED),
            (Trust.FAMILIAR, {SOCIAL}, SOCIAL),
        ],
    )
    def test_a_level_writes_what_it_sees(self, trust: Trust, sees: set[Visibility], default: Visibility) -> None:
        assert POLICY.visible(trust) == sees
        assert POLICY.write_visibility(trust, None) is default
        for visibility in Visibility:
            if visibility in sees:
                assert POLICY.write_visibility(trust, visibility) is visibility
            else:
                with pytest.raises(VisibilityForbidden, match=f"cannot write visibility '{visibility}'"):
                    POLICY.write_visibility(trust, visibility)

    @pytest.mark.parametrize("requested", [None, *Visibility])
    def test_the_public_sees_and_writes_nothing(self, requested: Visibility | None) -> None:
        assert POLICY.visible(Trust.PUBLIC) == frozenset()
        with pytest.raises(VisibilityForbidden, match="trust level 'public' cannot write") as caught:
            POLICY.write_visibility(Trust.PUBLIC, requested)
        assert caught.value.extra == {"trust": "public"}


class TestLookups:
    def test_a_category(self) -> None:
        assert POLICY.category("tasks").rag_length == 20
        with pytest.raises(UnknownCategory, match="no category 'absent'") as caught:
            POLICY.category("absent")
        assert caught.value.extra == {"category": "absent"}

    def test_a_ranking(self) -> None:
        assert POLICY.ranking(None) is POLICY.ranking("default") is POLICY.rankings["default"]
        assert POLICY.ranking("rrf").rrf_k == 60
        with pytest.raises(UnknownRanking, match="no ranking profile 'best'; there are default, rrf") as caught:
            POLICY.ranking("best")
        assert caught.value.extra == {"ranking": "best"}

    def test_weights_of_a_model_or_the_general_ones(self) -> None:
        assert POLICY.ranking(None).weights_for("small") is MEASURED
        assert POLICY.ranking(None).weights_for("other") is GENERAL

    def test_a_policy_cannot_be_changed(self) -> None:
        with pytest.raises(FrozenInstanceError):
            POLICY.digest = "sha256:11"  # type: ignore[misc]  # what is shown to fail
        assert replace(POLICY, digest="sha256:11").digest != POLICY.digest


class TestPrincipal:
    def test_a_scope_that_the_key_has(self) -> None:
        principal().require(KeyScope.READ)

    @pytest.mark.parametrize("scope", [scope for scope in KeyScope if scope is not KeyScope.READ])
    def test_a_scope_that_it_lacks(self, scope: KeyScope) -> None:
        with pytest.raises(ScopeForbidden, match=f"lacks the scope '{scope}'") as caught:
            principal().require(scope)
        assert caught.value.extra == {"scope": scope.value}

    def test_it_speaks_for_its_own_agent(self) -> None:
        assert principal().speak_as(None) == "planner"
        assert principal().speak_as("planner") == "planner"

    def test_it_speaks_for_another_only_where_the_key_says_so(self) -> None:
        assert principal(act_for=frozenset({"stylist"})).speak_as("stylist") == "stylist"
        assert principal(act_for=frozenset({"*"})).speak_as("anyone") == "anyone"
        for key in (principal(), principal(act_for=frozenset({"stylist"})), principal(None)):
            with pytest.raises(AgentForbidden, match="may not act for agent 'executor'") as caught:
                key.speak_as("executor")
            assert caught.value.extra == {"agent": "executor"}

    @pytest.mark.parametrize("named", [None, ""])
    def test_a_key_of_no_agent_must_name_one(self, named: str | None) -> None:
        with pytest.raises(AgentForbidden, match="name the agent to act for"):
            principal(None, act_for=frozenset({"*"})).speak_as(named)

    def test_it_touches_its_users_only(self) -> None:
        assert principal().touch("u1") == "u1"
        with pytest.raises(UserForbidden) as caught:
            principal().touch("u2")
        assert "u2" not in caught.value.detail
        assert replace(principal(), users=None).touch("u2") == "u2"
        with pytest.raises(UserForbidden):
            replace(principal(), users=frozenset()).touch("u1")

    def test_how_history_names_it(self) -> None:
        assert principal().actor == "agent:planner"
        assert principal(None).actor == "key:k1"


class TestView:
    def test_read_and_write_with_context(self) -> None:
        view = describe_agent(POLICY, "planner")
        assert [(entry.name, entry.read, entry.write, entry.context) for entry in view.categories] == [
            ("tasks", True, False, ContextMode.RAG),
            ("goals", True, True, ContextMode.ALL),
            ("procedural", True, False, ContextMode.NONE),
            ("notes", False, True, ContextMode.NONE),
        ]
        assert [entry.rag_length for entry in view.categories] == [20, None, None, None]
        assert view.read == ("tasks", "goals", "procedural")
        assert view.write == ("goals", "notes")
        assert view.asked_by_default == POLICY.readable("planner", None)
        assert (view.trust, view.sees, view.default_store) == (Trust.FULL, (PRIVATE, SHARED, SOCIAL), PRIVATE)
        assert view.categories[3].sensitive_fields == ("city",)
        assert not view.categories[3].system
        assert (view.agent, view.digest) == ("planner", "sha256:00")

    def test_turns_are_seen_by_who_reads_their_category_and_sees_the_private_store(self) -> None:
        def seen_at(trust: Trust) -> bool:
            allowlist = Allowlist(read=("activity",), write=(), trust=trust)
            return describe_agent(replace(POLICY, allowlists={"watcher": allowlist}), "watcher").sees_turns

        assert describe_agent(POLICY, "planner").turns_category == "activity"
        assert not describe_agent(POLICY, "planner").sees_turns
        assert {trust: seen_at(trust) for trust in Trust} == {
            Trust.FULL: True,
            Trust.INNER: False,
            Trust.FAMILIAR: False,
            Trust.PUBLIC: False,
        }

    def test_what_is_drawn_from_the_turns_that_it_records(self) -> None:
        def drawn(**more: object) -> tuple[str, ...]:
            allowlists = {
                "scribe": Allowlist(read=(), write=("activity", "goals")),
                "planner": POLICY.allowlists["planner"],
            }
            policy = replace(POLICY, allowlists=allowlists, **more)  # type: ignore[arg-type]  # fields of a policy
            assert describe_agent(policy, "planner").drawn_into == ()  # it records none
            return describe_agent(policy, "scribe").drawn_into

        assert drawn() == ("activity", "goals")
        assert drawn(extraction=("notes", "tasks")) == ("notes", "tasks")
        assert drawn(extraction=()) == ()
        with pytest.raises(CategoryForbidden, match="may not draw facts into goals; it may draw facts into notes"):
            replace(POLICY, extraction=("notes",)).check_drawn("planner", "goals")

    def test_trust_narrows_the_allowlist(self) -> None:
        view = describe_agent(POLICY, "stranger")
        assert (view.read, view.write, view.asked_by_default) == ((), (), ())
        assert (view.sees, view.default_store, view.sees_turns) == ((), None, False)
        assert [entry.name for entry in view.categories] == ["activity", "goals"]
        assert all(entry.context is ContextMode.NONE for entry in view.categories)
        trusted = replace(POLICY.allowlists["stranger"], trust=Trust.FAMILIAR)
        view = describe_agent(replace(POLICY, allowlists={"stranger": trusted}), "stranger")
        assert (view.read, view.write) == (("activity", "goals"), ("goals",))
        assert (view.sees, view.default_store) == ((SOCIAL,), SOCIAL)

    def test_an_agent_with_nothing(self) -> None:
        view = describe_agent(POLICY, "nobody")
        assert (view.categories, view.asked_by_default, view.sees_turns) == ((), (), False)

    def test_an_unknown_agent_is_answered_with_the_known_ones(self) -> None:
        with pytest.raises(
            InvalidRequest, match="no agent 'ghost'; it has planner, watcher, stranger, nobody"
        ) as caught:
            describe_agent(POLICY, "ghost")
        assert caught.value.extra == {"agent": "ghost", "agents": list(POLICY.allowlists)}
        with pytest.raises(InvalidRequest, match="it has none"):
            describe_agent(replace(POLICY, allowlists={}), "ghost")

"""A policy folder as a whole: the shipped one, files that are missing or unknown, the digest, all mistakes at once."""

import shutil
from contextlib import suppress
from datetime import timedelta
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memplane.adapters.policy import KNOWN_FILES, digest_of, load_policy, loading, shipped_policies
from memplane.adapters.policy.document import MAX_BYTES
from memplane.domain.consent.consent_rules import ConsentRules
from memplane.domain.errors import PolicyError
from memplane.domain.memory.lifecycle import LifecycleRules
from memplane.domain.memory.memory import MemoryType, Visibility
from memplane.domain.policy.policy import (
    Bm25,
    Category,
    ContextMode,
    FusionWeights,
    Policy,
    RankingMethod,
    Trust,
    TypeWriting,
)
from memplane.domain.privacy.pii import Pii
from memplane.domain.privacy.screening import Screening
from unit.small_policy import (
    CATEGORIES,
    CONSENT,
    LIFECYCLE,
    MERGE,
    RANKING,
    SMALL,
    TRUST,
    WORKERS,
    WRITING,
    mistakes,
    write_small,
)

RAG_20 = (
    *("preferences", "goals", "tasks", "projects", "recent_activity", "relationships", "relationship_dynamic"),
    *("knowledge", "interests", "history", "constraints", "tone", "style"),
)

BASELINES = ("lexical", "semantic")


@pytest.fixture(scope="module")
def shipped() -> Policy:
    """The policy that comes with Memplane."""
    return load_policy(shipped_policies())


def test_the_shipped_categories(shipped: Policy) -> None:
    modes = {name: (category.context, category.rag_length) for name, category in shipped.categories.items()}
    assert modes == {
        "profile": (ContextMode.ALL, None),
        "event": (ContextMode.RAG, 30),
        "activity": (ContextMode.RAG, 50),
        "procedural": (ContextMode.NONE, None),
        **dict.fromkeys(RAG_20, (ContextMode.RAG, 20)),
    }
    assert all(category.system for category in shipped.categories.values())
    assert shipped.turns_category == "activity"


def test_the_shipped_allowlists(shipped: Policy) -> None:
    assert {agent: allowlist.read for agent, allowlist in shipped.allowlists.items()} == {
        "supervisor": (
            *("profile", "goals", "preferences", "event", "activity", "relationships", "tasks"),
            "relationship_dynamic",
        ),
        "planner": ("goals", "tasks", "projects"),
        "stylist": ("preferences", "tone", "style"),
        "researcher": ("knowledge", "interests", "history"),
        "executor": ("tasks", "recent_activity", "constraints", "procedural"),
    }
    assert all(allowlist.read == allowlist.write for allowlist in shipped.allowlists.values())
    assert all(allowlist.trust is Trust.FULL for allowlist in shipped.allowlists.values())


def test_extraction_writes_every_system_category_unless_the_folder_says_nothing(
    shipped: Policy, tmp_path: Path
) -> None:
    assert shipped.extraction == tuple(shipped.categories)
    assert shipped.drawn_into("supervisor") == shipped.drawn_into("planner") == tuple(shipped.categories)
    write_small(tmp_path)
    small = load_policy(tmp_path)
    assert small.extraction is None
    assert (small.drawn_into("planner"), small.drawn_into("guest")) == (("goals", "tasks"), ())


def test_the_shipped_trust_levels(shipped: Policy) -> None:
    private, shared, social = Visibility
    assert {level: (rule.sees, rule.default_write) for level, rule in shipped.trust.items()} == {
        Trust.FULL: (frozenset({private, shared, social}), private),
        Trust.INNER: (frozenset({shared, social}), shared),
        Trust.FAMILIAR: (frozenset({social}), social),
        Trust.PUBLIC: (frozenset(), None),
    }


def test_the_shipped_writing_rules(shipped: Policy) -> None:
    writing = shipped.writing
    assert writing.types == {
        MemoryType.SEMANTIC: TypeWriting(
            280, 2, refuse_pronoun_subjects=True, third_person=True, complete_sentences=True
        ),
        MemoryType.EPISODIC: TypeWriting(280, 2, past_tense=True),
        MemoryType.PROCEDURAL: TypeWriting(4000, 100, numbered_steps=True, imperative_steps=True),
        MemoryType.INSIGHT: TypeWriting(280, 2, refuse_pronoun_subjects=True, third_person=True),
        MemoryType.REFLECTION: TypeWriting(1000, 8),
    }
    assert (writing.max_text_chars, writing.max_title_chars, writing.max_list_items) == (16_000, 200, 50)
    assert writing.pronouns >= {"i", "we", "you", "he", "she", "it", "they", "i'm", "we've", "he's", "they'll"}
    assert not writing.pronouns & {"anna", "the", "her", "item"}


def test_the_shipped_rankings(shipped: Policy) -> None:
    assert {name: profile.method for name, profile in shipped.rankings.items()} == {
        "default": RankingMethod.CALIBRATED,
        "rrf": RankingMethod.RRF,
        "lexical": RankingMethod.LEXICAL,
        "semantic": RankingMethod.SEMANTIC,
        "weighted": RankingMethod.WEIGHTED,
        "hebbian": RankingMethod.HEBBIAN,
        "layered": RankingMethod.LAYERED,
    }
    assert all(profile.relation > 0 for name, profile in shipped.rankings.items() if name not in BASELINES)
    assert shipped.ranking(None).bm25 == Bm25(k1=1.2, b=0.5, before=(0.6, 0.4, 0.3), after=(0.5, 0.3))
    assert set(shipped.ranking(None).weights) == {"*", "wordllama-256", "all-MiniLM-L6-v2"}
    assert shipped.ranking("rrf").rrf_k == 60


def test_the_shipped_lifecycle_rules(shipped: Policy) -> None:
    assert shipped.lifecycle == LifecycleRules()
    assert (shipped.lifecycle.idle, shipped.lifecycle.purge_after) == (timedelta(days=60), timedelta(days=30))
    assert shipped.lifecycle.importance_below_in == {"activity": 4, "recent_activity": 4, "event": 4}


def test_a_lifecycle_from_before_there_were_absences_keeps_its_threshold(tmp_path: Path) -> None:
    write_small(tmp_path)
    rules = load_policy(tmp_path).lifecycle
    assert (rules.importance_below, dict(rules.importance_below_in)) == (3, {})
    assert rules.away == timedelta(days=14)


def test_the_shipped_consent_rules(shipped: Policy) -> None:
    sensitive = ("preferred_name", "pronouns", "city", "language")
    assert shipped.consent == ConsentRules(sensitive, ("tone", "goals_add"), timedelta(days=7), 2, 0.9)
    assert shipped.sensitive_fields("profile") == set(sensitive)
    assert shipped.sensitive_fields("tasks") == shipped.sensitive_fields("no such") == frozenset()


def test_everything_that_a_file_can_say_arrives(tmp_path: Path) -> None:
    policy = load_policy(write_small(tmp_path))
    assert policy.category("notes") == Category("notes", ContextMode.NONE, None, ("city",), system=False)
    assert policy.allowlist("guest").trust is Trust.INNER
    assert policy.allowlist("guest").write == ()
    assert policy.ranking(None).weights_for("any") == FusionWeights(1.0, 0.2, 0.3, 0.25, insight=1.0)
    assert policy.ranking("fused").bm25 == Bm25()
    assert policy.ranking("fused").weights == {}
    assert MemoryType.OBSERVATION not in policy.writing.types


def test_a_loaded_policy_cannot_be_changed(shipped: Policy) -> None:
    for mapping in (shipped.categories, shipped.allowlists, shipped.trust, shipped.writing.types, shipped.rankings):
        with pytest.raises(TypeError):
            mapping["new"] = None  # type: ignore[index]  # what is shown to fail


def test_the_digest_is_over_names_lengths_and_bytes(tmp_path: Path) -> None:
    policy = load_policy(write_small(tmp_path))
    stream = b"".join(
        file.encode() + b"\0" + str(len(SMALL[file].encode())).encode() + b"\0" + SMALL[file].encode()
        for file in (CATEGORIES, CONSENT, LIFECYCLE, MERGE, RANKING, TRUST, WORKERS, WRITING)
    )
    assert policy.digest == "sha256:" + sha256(stream).hexdigest()
    (tmp_path / TRUST).write_text(SMALL[TRUST] + "# a comment\n", encoding="utf-8")
    assert load_policy(tmp_path).digest != policy.digest
    assert digest_of({"a": b"bc"}) != digest_of({"ab": b"c"})
    assert digest_of({"a": b"1", "b": b"2"}) == digest_of({"b": b"2", "a": b"1"})


def test_what_is_done_about_personal_data(tmp_path: Path) -> None:
    write_small(tmp_path)
    text = SMALL[CATEGORIES].replace("[city]", '[city], pii: {email: tag, "*": refuse}')
    (tmp_path / CATEGORIES).write_text("pii: {card: redact, email: refuse}\n" + text, encoding="utf-8")
    categories = load_policy(tmp_path).categories
    assert categories["goals"].pii == {Pii.CARD: Screening.REDACT, Pii.EMAIL: Screening.REFUSE}
    refused = dict.fromkeys(Pii, Screening.REFUSE)
    assert categories["notes"].pii == refused | {Pii.EMAIL: Screening.TAG}
    assert load_policy(shipped_policies()).categories["goals"].pii == {}


@pytest.mark.parametrize("file", KNOWN_FILES)
def test_a_missing_file(file: str, tmp_path: Path) -> None:
    write_small(tmp_path)
    (tmp_path / file).unlink()
    assert mistakes(tmp_path) == [(file, 1, "")]


@pytest.mark.parametrize("name", ["category.yaml", "merge.yaml", "trust.yml", "x.YAML"])
def test_an_unknown_file(name: str, tmp_path: Path) -> None:
    write_small(tmp_path)
    (tmp_path / name).write_text("", encoding="utf-8")
    assert mistakes(tmp_path) == [(name, 1, "")]


def test_an_unknown_file_is_compared_with_the_known_ones(tmp_path: Path) -> None:
    (write_small(tmp_path) / "category.yaml").write_text("", encoding="utf-8")
    with pytest.raises(PolicyError, match=r"^category\.yaml:1: unknown policy file; did you mean 'categories\.yaml'\?"):
        load_policy(tmp_path)


def test_what_else_lies_in_the_folder_is_no_matter(tmp_path: Path) -> None:
    write_small(tmp_path)
    (tmp_path / "schema").mkdir()
    (tmp_path / "README.md").write_text("notes", encoding="utf-8")
    (tmp_path / ".#trust.yaml").symlink_to("nobody@nowhere")
    load_policy(tmp_path)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    assert mistakes(folder)[0] == ("gone", 1, "")
    assert len(mistakes(folder)) == 1


def test_a_folder_in_place_of_a_file(tmp_path: Path) -> None:
    write_small(tmp_path)
    (tmp_path / TRUST).unlink()
    (tmp_path / TRUST).mkdir()
    assert mistakes(tmp_path) == [(TRUST, 1, "")]


@pytest.mark.parametrize(
    ("content", "line", "says"),
    [
        (b"", 1, "the file is empty"),
        (b"# only a comment\n", 1, "the file is empty"),
        (b"levels:\n  full: \xff\n", 2, "byte 0xff is not UTF-8"),
        ("levels: {}".encode("utf-16"), 1, "byte 0xff is not UTF-8"),
        (b"#" * (MAX_BYTES + 1), 1, f"larger than the accepted {MAX_BYTES} bytes"),
    ],
    ids=["empty", "comment", "latin", "utf-16", "large"],
)
def test_content_that_cannot_be_read(content: bytes, line: int, says: str, tmp_path: Path) -> None:
    write_small(tmp_path)
    (tmp_path / TRUST).write_bytes(content)
    assert mistakes(tmp_path) == [(TRUST, line, "")]
    with pytest.raises(PolicyError, match=says):
        load_policy(tmp_path)


@pytest.mark.parametrize("root", ["[]", "text", "5"])
def test_a_file_that_is_no_mapping(root: str, tmp_path: Path) -> None:
    for file in KNOWN_FILES:
        write_small(tmp_path)
        (tmp_path / file).write_text(root, encoding="utf-8")
        assert mistakes(tmp_path) == [(file, 1, "")]


def test_a_byte_order_mark_and_windows_line_ends_are_accepted(tmp_path: Path) -> None:
    write_small(tmp_path)
    (tmp_path / TRUST).write_bytes(b"\xef\xbb\xbf" + SMALL[TRUST].replace("\n", "\r\n").encode())
    load_policy(tmp_path)


def test_aliases_are_refused_before_they_multiply(tmp_path: Path) -> None:
    bomb = ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 40))]
    (write_small(tmp_path) / TRUST).write_text("\n".join(bomb), encoding="utf-8")
    found = mistakes(tmp_path)
    assert len(found) == 40 + 39 * 9
    assert {line for _, line, _ in found} == set(range(1, 41))


def test_all_mistakes_of_all_files_are_told_at_once(tmp_path: Path) -> None:
    write_small(tmp_path)
    wrong = SMALL[CATEGORIES].replace("context: all", "context: sum").replace("[goals, tasks]", "[goals, chores]")
    (tmp_path / CATEGORIES).write_text(wrong.replace("trust: inner", "trusts: inner"), encoding="utf-8")
    (tmp_path / TRUST).write_text(SMALL[TRUST].replace("inner: {sees: [shared", "inner: {sees: [shred"), "utf-8")
    (tmp_path / RANKING).write_text("profiles: &p {}", encoding="utf-8")
    (tmp_path / WRITING).unlink()
    assert mistakes(tmp_path) == [
        (CATEGORIES, 3, "categories.system[0].context"),
        (CATEGORIES, 12, "allowlists.planner[1]"),
        (CATEGORIES, 16, "allowlists.guest.trusts"),
        (RANKING, 1, ""),
        (TRUST, 3, "levels.inner.sees[0]"),
        (WRITING, 1, ""),
    ]


def test_a_mistyped_section_is_one_mistake_and_not_one_for_each_use_of_it(tmp_path: Path) -> None:
    write_small(tmp_path)
    text = SMALL[CATEGORIES].replace("categories:", "categorys:")
    (tmp_path / CATEGORIES).write_text(text, encoding="utf-8")
    assert mistakes(tmp_path) == [(CATEGORIES, 1, "categorys"), (CATEGORIES, 1, "categories")]


def test_a_policy_without_categories_knows_none(tmp_path: Path) -> None:
    text = "categories: {system: []}\nturns: {category: a}\nallowlists: {b: [c]}\n"
    (write_small(tmp_path) / CATEGORIES).write_text(text, encoding="utf-8")
    assert mistakes(tmp_path) == [(CATEGORIES, 2, "turns.category"), (CATEGORIES, 3, "allowlists.b[0]")]


def test_long_and_strange_text_is_cut_in_messages(tmp_path: Path) -> None:
    key = "k" * 500
    text = SMALL[WRITING].replace("pronouns:", f"{key}: 1\npronouns:").replace("[i, it's]", f"[{'p' * 500}]")
    (write_small(tmp_path) / WRITING).write_text(text, encoding="utf-8")
    with pytest.raises(PolicyError) as caught:
        load_policy(tmp_path)
    assert [line[:20] for line in caught.value.detail.splitlines()] == ["writing.yaml:7: 'kkk", "writing.yaml:8: pron"]
    assert max(map(len, caught.value.detail.splitlines())) < 250


def test_the_shipped_policies_of_an_installed_package_come_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = shipped_policies()
    package = tmp_path / "platform" / "memplane"
    package.mkdir(parents=True)
    monkeypatch.setattr(loading, "_PACKAGE", package)
    with pytest.raises(PolicyError, match="missing from this installation"):
        shipped_policies()
    shutil.copytree(source, tmp_path / "policies")
    assert shipped_policies() == tmp_path / "policies"
    shutil.copytree(source, package / "_data" / "policies")
    assert shipped_policies() == package / "_data" / "policies"
    assert load_policy(shipped_policies()).digest == load_policy(source).digest


@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_whatever_is_in_a_file_it_loads_or_is_a_policy_error(data: st.DataObject, tmp_path: Path) -> None:
    """Spoilt bytes anywhere in a good file never escape as another error."""
    write_small(tmp_path)
    file = data.draw(st.sampled_from(KNOWN_FILES))
    content = SMALL[file].encode()
    start = data.draw(st.integers(0, len(content)))
    end = data.draw(st.integers(start, min(len(content), start + 12)))
    pieces = [
        b"\n",
        b"- ",
        b": ",
        b"{",
        b"[",
        b"}",
        b"*",
        b"&a ",
        b"!!str ",
        b"? ",
        b"| ",
        b'"\\U',
        b"~",
        b"1:2",
        b"<<",
    ]
    patch = data.draw(st.binary(max_size=4) | st.lists(st.sampled_from(pieces), max_size=4).map(b"".join))
    (tmp_path / file).write_bytes(content[:start] + patch + content[end:])
    with suppress(PolicyError):
        load_policy(tmp_path)

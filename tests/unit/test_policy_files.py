"""Each mistake in a policy file: the file, line and key that are named, and a neighbour of it that loads."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from memplane.adapters.policy import load_policy
from memplane.domain.errors import PolicyError
from unit.small_policy import CATEGORIES, CONSENT, LIFECYCLE, RANKING, SMALL, TRUST, WRITING, mistakes, write_small


@dataclass(frozen=True)
class Case:
    """``old`` made ``good`` loads; made ``bad`` it is reported at ``line`` and ``key``, and ``says`` is told."""

    file: str
    old: str
    good: str
    bad: str
    line: int
    key: str
    says: str


GOALS = "{name: goals, context: all}"

# fmt: off
CASES = {
    "unknown key": Case(
        CATEGORIES, "      rag_length: 20", "      rag_length: 21", "      rag_length: 20\n      contxt: rag",
        7, "categories.system[1].contxt", "unknown key; did you mean 'context'? accepted: name, context, rag_length",
    ),
    "unknown key at the top": Case(
        CATEGORIES, "turns:\n", "turns:\n", "extra: 1\nturns:\n",
        9, "extra", "accepted: categories, turns, allowlists, pii, extraction",
    ),
    "unknown key of another name space": Case(
        TRUST, "  public: {sees: [], default_write: none}", "  public: {sees: [social], default_write: none}",
        "  public: {sees: [], default_write: none}\n  publik: {sees: [], default_write: none}",
        6, "levels.publik", "did you mean 'public'?",
    ),
    "duplicate key": Case(
        CATEGORIES, "      context: rag\n", "      context: rag\n", "      context: rag\n      context: rag\n",
        6, "categories.system[1].context", "given twice, first on line 5; keep one",
    ),
    "duplicate agent": Case(
        CATEGORIES, "  guest:", "  guest2:", "  planner:",
        13, "allowlists.planner", "given twice, first on line 12",
    ),
    "duplicate category": Case(
        CATEGORIES, "name: notes", "name: note", "name: goals",
        8, "categories.custom[0].name", "category 'goals' is already there, on line 3; keep one",
    ),
    "category listed twice": Case(
        CATEGORIES, "planner: [goals, tasks]", "planner: [goals, notes]", "planner: [goals,\n    goals]",
        13, "allowlists.planner[1]", "'goals' is listed twice, first on line 12",
    ),
    "unknown category in a plain list": Case(
        CATEGORIES, "planner: [goals, tasks]", "planner: [goals]", "planner: [goals, task]",
        12, "allowlists.planner[1]", "unknown category 'task'; did you mean 'tasks'? accepted: goals, tasks, notes",
    ),
    "unknown category in a mapping": Case(
        CATEGORIES, "    write: []", "    write: [notes]", "    write:\n      - notes\n      - secrets",
        17, "allowlists.guest.write[1]", "unknown category 'secrets'; accepted:",
    ),
    "unknown category of extraction": Case(
        CATEGORIES, "turns:\n", "extraction: {write: [notes]}\nturns:\n",
        "extraction: {write: [notes, secrets]}\nturns:\n",
        9, "extraction.write[1]", "unknown category 'secrets'; accepted: goals, tasks, notes",
    ),
    "unknown key of extraction": Case(
        CATEGORIES, "turns:\n", "extraction: {write: []}\nturns:\n", "extraction: {write: [], read: [goals]}\nturns:\n",
        9, "extraction.read", "unknown key; accepted: write",
    ),
    "extraction without write": Case(
        CATEGORIES, "turns:\n", "extraction: {write: []}\nturns:\n", "extraction: {}\nturns:\n",
        9, "extraction.write", "missing; required here: write",
    ),
    "extraction that says nothing": Case(
        CATEGORIES, "turns:\n", "extraction: {write: []}\nturns:\n", "extraction:\nturns:\n",
        9, "extraction", "expected a mapping, got nothing",
    ),
    "category twice in extraction": Case(
        CATEGORIES, "turns:\n", "extraction: {write: [goals]}\nturns:\n",
        "extraction: {write: [goals, goals]}\nturns:\n",
        9, "extraction.write[1]", "'goals' is listed twice, first on line 9",
    ),
    "unknown category of the lifecycle": Case(
        LIFECYCLE, "below: 3}", "below: 3, categories: {tasks: 4}}", "below: 3, categories: {task: 4}}",
        1, "ttl.categories.task", "unknown category 'task'; did you mean 'tasks'? accepted: goals, tasks, notes",
    ),
    "unknown category of turns": Case(
        CATEGORIES, "  category: tasks", "  category: goals", "  category: chat",
        10, "turns.category", "unknown category 'chat'",
    ),
    "missing key": Case(
        CATEGORIES, "    write: []\n", "    write: [goals]\n", "",
        13, "allowlists.guest.write", "missing; required here: read, write",
    ),
    "missing section": Case(
        CATEGORIES, "turns:\n  category: tasks\n", "turns: {category: tasks}\n", "",
        1, "turns", "missing; required here: categories, turns, allowlists",
    ),
    "missing level": Case(
        TRUST, "  public: {sees: [], default_write: none}\n", "  public: {sees: [], default_write: none}\n", "",
        1, "levels.public", "missing",
    ),
    "name of wrong form": Case(
        CATEGORIES, "name: notes", "name: n", "name: Notes",
        8, "categories.custom[0].name", "'Notes' is no name; a name is a lower-case letter",
    ),
    "agent of wrong form": Case(
        CATEGORIES, "  guest:", "  guest-2:", '  "*":',
        13, "allowlists.*", "'*' is no name",
    ),
    "rag without a length": Case(
        CATEGORIES, GOALS, "{name: goals, context: rag, rag_length: 1}", "{name: goals, context: rag}",
        3, "categories.system[0].rag_length", "missing; `context: rag` needs",
    ),
    "length without rag": Case(
        CATEGORIES, GOALS, "{name: goals, context: none}", "{name: goals, context: none, rag_length: 5}",
        3, "categories.system[0].rag_length", "has no effect with `context: none`",
    ),
    "unknown context": Case(
        CATEGORIES, GOALS, "{name: goals, context: none}", "{name: goals, context: rags}",
        3, "categories.system[0].context", "unknown context 'rags'; did you mean 'rag'? accepted: all, rag, none",
    ),
    "unknown trust level": Case(
        CATEGORIES, "trust: inner", "trust: public", "trust: iner",
        16, "allowlists.guest.trust", "unknown trust level 'iner'; did you mean 'inner'? accepted: full, inner",
    ),
    "whole number too small": Case(
        CATEGORIES, "rag_length: 20", "rag_length: 1", "rag_length: 0",
        6, "categories.system[1].rag_length", "expected a whole number from 1 to 1000, got '0'",
    ),
    "whole number too large": Case(
        CATEGORIES, "rag_length: 20", "rag_length: 1000", "rag_length: 1001",
        6, "categories.system[1].rag_length", "expected a whole number from 1 to 1000, got '1001'",
    ),
    "octal number": Case(
        CATEGORIES, "rag_length: 20", "rag_length: 16", "rag_length: 020",
        6, "categories.system[1].rag_length", "got '020'",
    ),
    "text for a number": Case(
        CATEGORIES, "rag_length: 20", "rag_length: 2", "rag_length: '20'",
        6, "categories.system[1].rag_length", "expected a whole number from 1 to 1000, got the text '20'",
    ),
    "fraction for a whole number": Case(
        WRITING, "max_sentences: 2", "max_sentences: 3", "max_sentences: 2.5",
        6, "types.semantic.max_sentences", "got the number '2.5'",
    ),
    "number for text": Case(
        CATEGORIES, "name: notes", "name: n2", "name: 2",
        8, "categories.custom[0].name", "expected a name, got the number '2'; put it in quotes",
    ),
    "nothing for a list": Case(
        CATEGORIES, "    write: []", "    write: [goals]", "    write:",
        15, "allowlists.guest.write", "expected a list, got nothing",
    ),
    "nothing for a name": Case(
        CATEGORIES, "name: notes", "name: other", "name: ",
        8, "categories.custom[0].name", "expected a name, got nothing",
    ),
    "text for an allowlist": Case(
        CATEGORIES, "planner: [goals, tasks]", "planner: []", "planner: goals",
        12, "allowlists.planner", "expected a mapping, got the text 'goals'",
    ),
    "list for a mapping": Case(
        CATEGORIES, "turns:\n  category: tasks", "turns:\n  category: notes", "turns:\n  - tasks",
        10, "turns", "expected a mapping, got a list",
    ),
    "mapping for a word": Case(
        CATEGORIES, "  category: tasks", '  category: "tasks"', "  category: {a: b}",
        10, "turns.category", "expected a category, got a mapping",
    ),
    "key that is no text": Case(
        CATEGORIES, "  guest:", '  "off":', "  off:",
        13, "allowlists", "a key must be text, got the truth value 'off'; put it in quotes",
    ),
    "key that is a list": Case(
        CATEGORIES, "  category: tasks", "  category: tasks", "  category: tasks\n  [a]: b",
        11, "turns", "a key must be text, got a list",
    ),
    "merge key": Case(
        CATEGORIES, "  category: tasks", "  category: tasks", "  category: tasks\n  <<: {category: goals}",
        11, "turns", "a key must be text, got the merge key '<<'",
    ),
    "unprintable key": Case(
        CATEGORIES, "  category: tasks", "  category: tasks", '  category: tasks\n  "a\\nb": 1',
        11, "turns.'a\\nb'", "unknown key",
    ),
    "level that sees more than the one above": Case(
        TRUST, "inner: {sees: [shared, social]", "inner: {sees: [private, shared, social]", "inner: {sees: [shared]",
        4, "levels.familiar.sees", "sees social, which the level above it, 'inner', does not",
    ),
    "unknown store": Case(
        TRUST, "familiar: {sees: [social]", "familiar: {sees: [shared, social]", "familiar: {sees: [socials]",
        4, "levels.familiar.sees[0]", "unknown store 'socials'; did you mean 'social'? accepted: private, shared",
    ),
    "write to a store that is not seen": Case(
        TRUST, "default_write: social", "default_write: none", "default_write: shared",
        4, "levels.familiar.default_write", "writes to 'shared', which this level does not see; accepted: social, none",
    ),
    "unknown type": Case(
        WRITING, "  semantic:", "  episodic:", "  semantics:",
        6, "types.semantics", "unknown key; did you mean 'semantic'? accepted: semantic, episodic",
    ),
    "content longer than any text": Case(
        WRITING, "max_chars: 280", "max_chars: 1000", "max_chars: 1001",
        6, "types.semantic.max_chars", "1001 is more than limits.max_text_chars; accepted: at most 1000",
    ),
    "title longer than any text": Case(
        WRITING, "max_title_chars: 100", "max_title_chars: 1000", "max_title_chars: 1001",
        3, "limits.max_title_chars", "1001 is more than limits.max_text_chars",
    ),
    "text for a truth value": Case(
        WRITING, "refuse_pronoun_subjects: true", "refuse_pronoun_subjects: false", "refuse_pronoun_subjects: 'true'",
        6, "types.semantic.refuse_pronoun_subjects", "expected true or false, got the text 'true'",
    ),
    "another word for a truth value": Case(
        WRITING, "refuse_pronoun_subjects: true", "numbered_steps: true", "refuse_pronoun_subjects: yes",
        6, "types.semantic.refuse_pronoun_subjects", "expected true or false, got 'yes'",
    ),
    "upper-case pronoun": Case(
        WRITING, "[i, it's]", "[we, i'm]", "[i, I'm]",
        7, "pronouns[1]", "can match no first word",
    ),
    "pronoun of two words": Case(
        WRITING, "[i, it's]", "[you]", "[you all]",
        7, "pronouns[0]", "can match no first word",
    ),
    "pronoun with a curly apostrophe": Case(
        WRITING, "[i, it's]", "[he's]", "[he\u2019s]",
        7, "pronouns[0]", "straight apostrophes",
    ),
    "pronoun that is a truth value": Case(
        WRITING, "[i, it's]", '["on"]', "[on]",
        7, "pronouns[0]", "expected text, got the truth value 'on'; put it in quotes",
    ),
    "empty pronoun": Case(
        WRITING, "[i, it's]", "[]", '[""]',
        7, "pronouns[0]", "expected 1 to 200 printable characters, got ''",
    ),
    "sensitive field that consent.yaml does not know": Case(
        CATEGORIES, "[city]", "[ city ]", "[city, town]",
        8, "categories.custom[0].sensitive_fields[1]", "unknown sensitive field of consent.yaml 'town'",
    ),
    "sensitive field in no category": Case(
        CONSENT, "sensitive: [city]", "sensitive: [ city ]", "sensitive: [city, email]",
        1, "sensitive[1]", "no category has 'email' in its sensitive_fields",
    ),
    "field that is both": Case(
        CONSENT, "benign: [tone]", "benign: []", "benign: [tone, city]",
        3, "benign[1]", "'city' is sensitive too; keep one",
    ),
    "unknown key of consent": Case(
        CONSENT, "proposal_days: 7", "proposal_days: 30", "proposal_days: 7\nproposal_day: 7",
        3, "proposal_day", "unknown key; did you mean 'proposal_days'?",
    ),
    "no life of a proposal": Case(
        CONSENT, "proposal_days: 7", "proposal_days: 365", "proposal_days: 0",
        2, "proposal_days", "expected a whole number from 1 to 365, got '0'",
    ),
    "no turn to corroborate": Case(
        CONSENT, "turns: 2", "turns: 1", "turns: 0",
        4, "corroboration.turns", "expected a whole number from 1 to 100, got '0'",
    ),
    "surer than sure": Case(
        CONSENT, "insight_confidence: 0.9", "insight_confidence: 1.0", "insight_confidence: 1.5",
        4, "corroboration.insight_confidence", "expected a number from 0 to 1",
    ),
    "no default profile": Case(
        RANKING, "  default:", "  default:", "  usual:",
        1, "profiles.default", "missing; it ranks every request that names no profile",
    ),
    "unknown method": Case(
        RANKING, "method: rrf", "method: rrf", "method: rff",
        8, "profiles.fused.method", "unknown method 'rff'; did you mean 'rrf'? accepted: calibrated, rrf, lexical",
    ),
    "missing method": Case(
        RANKING, "    method: rrf\n", "    method: rrf\n", "",
        7, "profiles.fused.method", "missing",
    ),
    "weights without effect": Case(
        RANKING, "    rrf_k: 60", "    bm25: {k1: 2}",
        '    weights: {"*": {lexical: 1, semantic: 1, semantic_context: 1, actor: 1}}',
        9, "profiles.fused.weights", "has no effect with `method: rrf`; accepted: method, bm25, rrf_k, relation",
    ),
    "constant without effect": Case(
        RANKING, "method: rrf\n    rrf_k: 60", "method: lexical", "method: lexical\n    rrf_k: 60",
        9, "profiles.fused.rrf_k", "has no effect with `method: lexical`; accepted: method, bm25, relation",
    ),
    "calibrated without weights": Case(
        RANKING, "method: rrf\n    rrf_k: 60", "method: semantic", "method: calibrated",
        7, "profiles.fused.weights", "missing; `method: calibrated` needs weights by embedding model",
    ),
    "no weights for other models": Case(
        RANKING, '"*":', '"m": {lexical: 1, semantic: 1, semantic_context: 1, actor: 1}\n      "*":', "m:",
        5, "profiles.default.weights.*", 'missing; "*" serves',
    ),
    "weight out of range": Case(
        RANKING, "actor: 0.25", "actor: 100", "actor: -0.25",
        6, "profiles.default.weights.*.actor", "expected a number from 0 to 100 in decimal notation, got '-0.25'",
    ),
    "weight that is no number": Case(
        RANKING, "actor: 0.25", "actor: 0", "actor: .nan",
        6, "profiles.default.weights.*.actor", "got '.nan'",
    ),
    "text for a weight": Case(
        RANKING, "actor: 0.25", "actor: 0.5", "actor: much",
        6, "profiles.default.weights.*.actor", "expected a number from 0 to 100 in decimal notation, got the text",
    ),
    "insight that is raised": Case(
        RANKING, "actor: 0.25", "actor: 0.25, insight: 1", "actor: 0.25, insight: 1.5",
        6, "profiles.default.weights.*.insight", "expected a number from 0 to 1 in",
    ),
    "missing weight": Case(
        RANKING, ", actor: 0.25", ", actor: 0.25, pinned: 0.1", "",
        6, "profiles.default.weights.*.actor", "missing",
    ),
    "model name of wrong form": Case(
        RANKING, '"*":', '"*":', '"": {lexical: 1, semantic: 1, semantic_context: 1, actor: 1}\n      "*":',
        6, "profiles.default.weights.", "expected 1 to 200 printable characters",
    ),
    "neighbours that rise": Case(
        RANKING, "before: [0.6, 0.4]", "before: [0.6, 0.6]", "before: [0.4, 0.6]",
        4, "profiles.default.bm25.before[1]", "0.6 is more than the nearer neighbour's 0.4",
    ),
    "neighbour out of range": Case(
        RANKING, "after: [0.5]", "after: [1]", "after: [2]",
        4, "profiles.default.bm25.after[0]", "expected a number from 0 to 1",
    ),
    "too many neighbours": Case(
        RANKING, "after: [0.5]", "after: [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]", "after: [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]",
        4, "profiles.default.bm25.after", "11 neighbours; accepted: at most 10",
    ),
    "b out of range": Case(
        RANKING, "b: 0.5", "b: 1.0", "b: 1.01",
        4, "profiles.default.bm25.b", "expected a number from 0 to 1",
    ),
    "list for bm25": Case(
        RANKING, "    bm25: {k1: 1.2, b: 0.5, before: [0.6, 0.4], after: [0.5]}", "    bm25: {}", "    bm25: []",
        4, "profiles.default.bm25", "expected a mapping, got a list",
    ),
    "anchor": Case(
        RANKING, "actor: 0.25", 'actor: 0.25', "actor: &a 0.25",
        6, "", "anchor '&a' is not accepted",
    ),
    "tag": Case(
        RANKING, "rrf_k: 60", "rrf_k: 61", "rrf_k: !!int '60'",
        9, "", "tag 'tag:yaml.org,2002:int' is not accepted",
    ),
    "tag that would run code": Case(
        RANKING, "rrf_k: 60", "rrf_k: 61", "rrf_k: !!python/object/apply:os.system [ls]",
        9, "", "tag 'tag:yaml.org,2002:python/object/apply:os.system' is not accepted",
    ),
    "undefined alias": Case(
        RANKING, '"*":', '"*":', "*any :",
        6, "", "alias '*any' is not accepted",
    ),
    "second document": Case(
        RANKING, "profiles:\n", "---\nprofiles:\n", "---\na: b\n---\nprofiles:\n",
        3, "", "a second document begins",
    ),
    "wrong syntax": Case(
        RANKING, "after: [0.5]}", "after: [0.5]}", "after: [0.5}",
        4, "", "not valid YAML: while parsing a flow sequence",
    ),
    "tab": Case(
        RANKING, "    rrf_k: 60", "    rrf_k: 61", "\trrf_k: 60",
        9, "", "not valid YAML",
    ),
    "control character": Case(
        RANKING, "rrf_k: 60", "rrf_k: 61", "rrf_k: 60\x07",
        9, "", "character U+0007 may not stand in YAML",
    ),
    "escape beyond the last character": Case(
        RANKING, "method: rrf", 'method: "\\x72rf"', 'method: "\\U00110000"',
        8, "", "names no character",
    ),
    "escape that overflows": Case(
        RANKING, "method: rrf", 'method: "r\\u0072f"', 'method: "\\Uffffffff"',
        8, "", "names no character",
    ),
    "nested too deep": Case(
        RANKING, "rrf_k: 60", "rrf_k: 61", f"rrf_k: {'[' * 5000}",
        9, "", "nested deeper than the accepted 16 levels",
    ),
}
# fmt: on


def changed(folder: Path, case: Case, new: str) -> Path:
    """The small policy with the case's place changed."""
    assert SMALL[case.file].count(case.old) == 1, "the case must change one place"
    write_small(folder)
    (folder / case.file).write_text(SMALL[case.file].replace(case.old, new), encoding="utf-8")
    return folder


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_mistake_is_named_by_file_line_and_key(case: Case, tmp_path: Path) -> None:
    load_policy(changed(tmp_path, case, case.good))

    folder = changed(tmp_path, case, case.bad)
    assert mistakes(folder) == [(case.file, case.line, case.key)]
    with pytest.raises(PolicyError) as caught:
        load_policy(folder)
    assert case.says in caught.value.detail
    assert "\n" not in caught.value.detail

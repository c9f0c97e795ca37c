"""A small policy that is right, with known line numbers, and what is said of it once it is spoilt."""

from pathlib import Path

import pytest

from memplane.adapters.policy import load_policy
from memplane.domain.errors import PolicyError

CATEGORIES = "categories.yaml"
TRUST = "trust.yaml"
WRITING = "writing.yaml"
RANKING = "ranking.yaml"
MERGE = "merge.yaml"
CONSENT = "consent.yaml"
LIFECYCLE = "lifecycle.yaml"
WORKERS = "workers.yaml"

SMALL = {
    "categories.yaml": """\
categories:
  system:
    - {name: goals, context: all}
    - name: tasks
      context: rag
      rag_length: 20
  custom:
    - {name: notes, context: none, sensitive_fields: [city]}
turns:
  category: tasks
allowlists:
  planner: [goals, tasks]
  guest:
    read: [goals]
    write: []
    trust: inner
""",
    "trust.yaml": """\
levels:
  full: {sees: [private, shared, social], default_write: private}
  inner: {sees: [shared, social], default_write: shared}
  familiar: {sees: [social], default_write: social}
  public: {sees: [], default_write: none}
""",
    "writing.yaml": """\
limits:
  max_text_chars: 1000
  max_title_chars: 100
  max_list_items: 10
types:
  semantic: {max_chars: 280, max_sentences: 2, refuse_pronoun_subjects: true}
pronouns: [i, it's]
""",
    "ranking.yaml": """\
profiles:
  default:
    method: calibrated
    bm25: {k1: 1.2, b: 0.5, before: [0.6, 0.4], after: [0.5]}
    weights:
      "*": {lexical: 1.0, semantic: 0.2, semantic_context: 0.3, actor: 0.25}
  fused:
    method: rrf
    rrf_k: 60
""",
    "merge.yaml": """\
bands:
  "*": {auto: 0.8, update: 0.6, check: 0.5, fallback: 0.4, link_min: 0.7, shared_min: 0.25}
  small-model: {auto: 0.9, update: 0.75, check: 0.65, fallback: 0.55, link_min: 0.85, shared_min: 0.3}
""",
    "consent.yaml": """\
sensitive: [city]
proposal_days: 7
benign: [tone]
corroboration: {turns: 2, insight_confidence: 0.9}
""",
    "lifecycle.yaml": """\
ttl: {days: 60, importance_below: 3}
decay: {rate: 0.0002, floor: 0.05}
layers: {promote_hits: 3, promote_days: 7, capacity: 500, archive_score: 0.5, archive_days: 30}
size: {max: 100000, prune_percent: 10}
purge_days: 30
""",
    "workers.yaml": """\
schedules:
  sessions: "0 3 * * *"
  facts: "1 3 * * *"
  consolidation: "30 3 * * *"
  procedures: "5 3 * * *"
  insights: "10 3 * * *"
  reflections: "15 3 * * 0"
  expiry: "0 4 * * *"
  proposals: "5 4 * * *"
  decay: "10 4 * * *"
  ttl: "15 4 * * 1-5"
  layers: "20 4 * * *"
  size: "25 4 1 * *"
  co_recall: off
  purge: "30 4 * * *"
  erasures: "33 4 * * *"
  seal: "35 4 * * *"
  reembed: off
  reconcile: off
  gc: off
  enrichment: "0 2 * * *"
attempts: 5
pause_seconds: 30
longest_pause_seconds: 3600
model:
  tenant_tokens_per_day: 5000
  user_tokens_per_day: 1000
  input_price_per_million: 0.15
  output_price_per_million: 0.6
entities: fast
facts: {mode: llm, user_per_day: 7}
""",
}


def write_small(folder: Path) -> Path:
    """Write the small policy into a folder."""
    for file, text in SMALL.items():
        (folder / file).write_text(text, encoding="utf-8")
    return folder


def mistakes(folder: Path) -> list[tuple[str, int, str]]:
    """File, line and key of every mistake that loading reports; the detail and the list must agree."""
    with pytest.raises(PolicyError) as caught:
        load_policy(folder)
    errors = caught.value.extra["errors"]
    assert isinstance(errors, list)
    lines = [f"{e['file']}:{e['line']}: {e['key']}{': ' if e['key'] else ''}{e['message']}" for e in errors]
    assert caught.value.detail.split("\n") == lines
    assert caught.value.code == "policy_invalid"
    return [(error["file"], error["line"], error["key"]) for error in errors]

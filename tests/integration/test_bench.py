"""The benchmarks run end to end on small inputs, produce figures, and keep to their own section of the page."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.small_model import small_model

ROOT = Path(__file__).resolve().parents[2]
BAKERY = [
    ("Mira", "I finally signed the lease for the bakery on Chestnut Street."),
    ("Jon", "Congratulations! Will your brother Emil bake with you?"),
    ("Mira", "No, Emil moved to Malmö to restore wooden boats."),
    ("Jon", "My greyhound Biscuit broke a tooth yesterday, so I was at the vet."),
    ("Mira", "Poor dog! Let us go swimming in the quarry when she is well."),
    ("Jon", "Gladly. I booked a pottery class for the rainy weekends, too."),
]
CHOIR = [
    ("Ada", "Our choir sings in the old gasworks in November."),
    ("Tom", "I lost my passport on the ferry to Harwich."),
    ("Ada", "That is a pity. My telescope arrived, and Saturn was beautiful."),
    ("Tom", "I started to learn Welsh with my grandmother Nerys."),
    ("Ada", "Here is a photo of our new kitchen."),
    ("Tom", "Nerys would like those green tiles."),
]
ASKED = {
    "bakery": [("Where is the bakery of Mira?", 1, 4), ("Why did Jon go to the vet with Biscuit?", 4, 4)],
    "choir": [
        ("Where did Tom lose his passport?", 2, 2),
        ("What colour are the tiles?", 6, 3),
        ("Does Ada ski?", 3, 5),
    ],
}


def conversation(name: str, said: list[tuple[str, str]]) -> dict[str, object]:
    turns = [{"dia_id": f"D1:{n}", "speaker": who, "text": text} for n, (who, text) in enumerate(said, 1)]
    turns[4]["blip_caption"] = "a kitchen with green tiles"
    return {
        "sample_id": name,
        "speaker_a": said[0][0],
        "sessions": [{"session": 1, "date_time": "7:05 pm on 3 May, 2024", "turns": turns}],
        "qa": [{"question": q, "answer": "-", "evidence": [f"D1:{n}"], "category": c} for q, n, c in ASKED[name]],
    }


@pytest.fixture(scope="module")
def conversations(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("bench") / "mini.json"
    file.write_text(json.dumps([conversation("bakery", BAKERY), conversation("choir", CHOIR)]), encoding="utf-8")
    return file


@pytest.fixture
def page(tmp_path: Path) -> Path:
    return tmp_path / "figures.md"


def run(*command: str | Path) -> "subprocess.CompletedProcess[str]":
    environment = {name: value for name, value in os.environ.items() if name != "LOCOMO"}
    arguments = [sys.executable, *map(str, command)]
    return subprocess.run(
        arguments, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=180, check=False
    )


def figures(*command: str | Path) -> dict:
    done = run(*command, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_recall_measures_the_profiles_and_the_plain_methods(conversations: Path, page: Path) -> None:
    page.write_text("# Figures\n\nkept\n\n<!-- recall: begin -->\nold\n<!-- recall: end -->\n\nkept too\n")
    told = figures("benchmarks/recall.py", "--file", conversations, "--figures", page)
    assert len(told["recall"]) == 8
    default = told["recall"]["Memplane, default"]
    assert default["1-4"]["questions"] == 4
    assert default["5"]["questions"] == 1
    assert default["1-4"]["recall"]["5"] == 1.0
    nothing = told["recall"]["full text: all words (plainto_tsquery, ts_rank)"]
    assert nothing["1-4"]["recall"]["5"] < 1.0, "the figure can be lower than the best"
    text = page.read_text()
    assert text.startswith("# Figures\n\nkept\n")
    assert text.endswith("kept too\n")
    assert "old" not in text
    assert "Memplane, default" in text
    assert "mini.json" in text
    assert str(conversations.parent) not in text


def test_latency_measures_beside_the_floor(page: Path) -> None:
    small = ("--sizes", "2x30", "--requests", "12", "--peers", "none")
    told = figures("benchmarks/latency.py", *small, "--figures", page)
    by_name = {timing["name"]: timing for timing in told["timings"]}
    assert told["units"] == 60
    assert told["found"] > 0.5
    assert by_name["SELECT 1 (psycopg, same server)"]["p50"] < by_name["memory.query, all agents, 2 x 30"]["p50"]
    assert by_name["POST /v1/turns"]["requests"] == 6
    assert "<!-- latency: begin -->" in page.read_text()


def test_calibration_leaves_conversations_out(conversations: Path, page: Path) -> None:
    told = figures("benchmarks/calibrate.py", "--file", conversations, "--quick", "--figures", page)
    assert [len(one["folds"]) for one in told] == [2]
    assert 0 < told[0]["held_out"][1] <= 1
    assert "semantic_context:" in page.read_text()


def test_another_embedding_model_is_measured_beside_the_default(
    conversations: Path, page: Path, tmp_path: Path
) -> None:
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    page.write_text("# Figures\n\n<!-- recall: begin -->\nkept\n<!-- recall: end -->\n")
    model = ("--file", conversations, "--model", small_model(tmp_path / "small"), "--figures", page)
    told = figures("benchmarks/recall.py", *model, "--ranking", "semantic")
    assert {"Memplane with wordllama-256", "Memplane, semantic alone", "Memplane on SQLite, default"} <= set(
        told["recall"]
    )
    fitted = figures("benchmarks/calibrate.py", *model, "--quick")
    assert 0 < fitted[0]["held_out"][1] <= 1
    text = page.read_text()
    assert "kept" in text, "the default model's section stays"
    assert "<!-- recall-model: begin -->\n\n## Recall with `small`" in text
    assert "## Calibration of the ranking with `small`" in text
    assert "ms a turn" in text
    assert str(tmp_path) not in text


def test_the_command_line_measures_recall_in_the_published_shape(conversations: Path, tmp_path: Path) -> None:
    published = []
    for one in json.loads(conversations.read_text()):
        (session,) = one.pop("sessions")
        dated = {"session_1_date_time": session["date_time"], "session_1": session["turns"]}
        published.append(one | {"conversation": {"speaker_a": one.pop("speaker_a"), **dated}})
    file = tmp_path / "published.json"
    file.write_text(json.dumps(published), encoding="utf-8")
    told = figures("-m", "memplane.entrypoints.cli", "bench", "recall", file, "--ranking", "lexical")
    assert told["lexical"]["1-4"]["recall"]["5"] == 1.0


@pytest.mark.parametrize("script", ["recall", "calibrate"])
def test_without_conversations_they_say_what_they_need(script: str) -> None:
    done = run(f"benchmarks/{script}.py")
    assert done.returncode == 2
    assert "LOCOMO" in done.stderr


def test_a_file_of_another_kind_is_refused_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "other.json"
    file.write_text('[{"a": 1}]')
    done = run("-m", "memplane.entrypoints.cli", "bench", "recall", file)
    assert done.returncode == 2
    assert "other.json" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_cohorts_of_another_form_are_refused() -> None:
    done = run("-m", "memplane.entrypoints.cli", "bench", "latency", "--sizes", "many")
    assert done.returncode == 2
    assert "100x1000" in done.stderr


def test_scale_measures_growth_clients_contexts_and_lag(page: Path) -> None:
    sizes = ("--small", "2x40", "--middle", "1x60", "--largest", "80", "--total", "900", "--requests", "10")
    done = run("benchmarks/scale.py", *sizes, "--figures", page)
    assert done.returncode == 0, done.stderr
    told = page.read_text(encoding="utf-8")
    assert "| turns found by the next question | 100 of 100 |" in told
    rows = re.search(r"memory.query, 2 x 40, (\d+) rows in total", told)
    assert rows is not None
    assert int(rows[1]) > 820


def test_repeats_are_counted_in_the_database_itself(page: Path) -> None:
    told = figures("benchmarks/repeats.py", "--writes", "100", "--figures", page)
    assert (told["writes"], told["distinct"]) == (100, 40)
    assert (told["failed"], told["deadlocks"], told["twice"], told["missing"]) == ([], 0, 0, 0)
    assert told["distinct"] <= told["stored"] < told["writes"]
    assert told["outcomes"]["the same words: duplicate"] > 0
    assert "eight" in page.read_text().lower()


def test_checkpoints_are_measured_in_turns_and_taken_over_twice(page: Path) -> None:
    small = ("--rounds", "4", "--messages", "3", "--migrated", "200")
    done = run("benchmarks/checkpoints.py", *small, "--figures", page)
    assert done.returncode == 0, done.stderr
    told = page.read_text()
    assert "| first run: checkpoints copied | 200 |" in told
    assert "| second run: checkpoints there already | 200 |" in told
    assert all(
        f"| {saver}: {what} |" in told for saver in ("Memplane", "AsyncPostgresSaver") for what in ("save", "load")
    )


def test_pairs_are_told_split_by_split(tmp_path: Path, page: Path) -> None:
    rows = (ROOT / "benchmarks" / "merge" / "pairs.jsonl").read_text(encoding="utf-8").splitlines()
    some = tmp_path / "pairs.jsonl"
    some.write_text("\n".join([*rows[:60], *rows[-20:]]) + "\n", encoding="utf-8")
    done = run("benchmarks/merge/calibrate.py", "--pairs", some, "--figures", page)
    assert done.returncode == 0, done.stderr
    assert "Pairs of the split fit" in done.stdout
    assert "Pairs of the split sealed" in page.read_text()
    assert "wordllama-256: {auto:" in done.stdout

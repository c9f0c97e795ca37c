"""Turn recall@k: of the messages that hold a question's answer, how many the first k results bring."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from memplane.contracts.memories import TurnBatchOutcome
from memplane.contracts.query import QueryAnswer, QueryItem
from memplane.entrypoints.cli.bench.grid import Grid
from memplane.entrypoints.cli.bench.locomo import ANSWERABLE, CATEGORIES, LocomoConversation, LocomoQuestion
from memplane.entrypoints.cli.bench.server import BenchConnection

AGENT = "supervisor"
PROFILES = ("default", "lexical", "semantic", "rrf")
DEPTHS = (5, 10, 20)
OVERALL = "1-4"
_BATCH = 500

Ranked = Sequence[tuple[LocomoQuestion, Sequence[str]]]
"""Each question with the message ids that one method found, best first."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What one method reached on a set of questions, by depth.

    Attributes:
        questions: how many.
        recall: the mean share of a question's evidence that was found.
        any: the share of questions of which some evidence was found.
        all: the share of questions of which all evidence was found.
    """

    questions: int
    recall: Mapping[int, float]
    any: Mapping[int, float]
    all: Mapping[int, float]


def ingest(
    connection: BenchConnection,
    conversations: Iterable[LocomoConversation],
    done: Callable[[int], None],
    *,
    extract: bool = False,
) -> Mapping[str, str]:
    """Store each conversation as one user and each session as one thread; ``done`` is told how many turns went in.

    Args:
        connection: to the server.
        conversations: what was said.
        done: is told how many turns went in.
        extract: store the facts that the rules find, too.

    Returns:
        The message ids by the ids of the turns.
    """
    names: dict[str, str] = {}
    for conversation in conversations:
        turns = list(_turns(conversation, extract=extract))
        for start in range(0, len(turns), _BATCH):
            part = turns[start : start + _BATCH]
            stored = TurnBatchOutcome.model_validate_json(connection.post("/v1/turns:batch", {"turns": part}))
            names |= {
                str(turn.turn_id): str(each["external_id"]) for turn, each in zip(stored.items, part, strict=True)
            }
            done(len(part))
    return names


def _turns(conversation: LocomoConversation, *, extract: bool) -> Iterable[dict[str, object]]:
    for session in conversation.sessions:
        for turn in session.turns:
            yield {
                "user_id": conversation.sample_id,
                "thread_id": f"{conversation.sample_id}/session-{session.session}",
                "role": "user" if turn.speaker == conversation.speaker_a else "assistant",
                "actor_id": turn.speaker,
                "text": turn.full_text,
                "event_time": session.time.isoformat(),
                "external_id": turn.dia_id,
                "auto_extract": extract,
            }


def ask(
    connection: BenchConnection, conversations: Iterable[LocomoConversation], profile: str, done: Callable[[int], None]
) -> list[tuple[LocomoQuestion, Sequence[str]]]:
    """Every question that has evidence, with the ids of what the server answers, best first."""
    answers: list[tuple[LocomoQuestion, Sequence[str]]] = []
    for conversation in conversations:
        for asked in conversation.questions:
            body = {
                "query": asked.question,
                "filters": {"user_id": conversation.sample_id},
                "categories": ["activity"],
                "top_k": max(DEPTHS),
                "budget_tokens": 100_000,
                "related": False,
                "ranking": profile,
            }
            answer = QueryAnswer.model_validate_json(connection.post("/v1/memory/query", body))
            answers.append((asked, [item.external_id or "" for item in answer.items]))
            done(1)
    return answers


def ask_with_facts(
    connection: BenchConnection,
    conversations: Iterable[LocomoConversation],
    names: Mapping[str, str],
    done: Callable[[int], None],
    *,
    related: bool,
) -> list[tuple[LocomoQuestion, Sequence[str]]]:
    """The same for the first ten where facts were stored, too: a memory counts as the message that it was drawn from.

    Args:
        connection: to the server.
        conversations: whose questions are asked.
        names: message ids by the ids of the turns.
        done: is told how many questions were asked.
        related: whether places are kept for related memories.
    """
    answers: list[tuple[LocomoQuestion, Sequence[str]]] = []
    for conversation in conversations:
        for asked in conversation.questions:
            body = {
                "query": asked.question,
                "filters": {"user_id": conversation.sample_id},
                "top_k": 10,
                "budget_tokens": 100_000,
                "related": related,
                "return": "full",
            }
            answer = QueryAnswer.model_validate_json(connection.post("/v1/memory/query", body))
            answers.append((asked, [_message(item, names) for item in answer.items]))
            done(1)
    return answers


def _message(item: QueryItem, names: Mapping[str, str]) -> str:
    sources = [] if item.memory is None else item.memory.source_ids
    return next((names[str(each)] for each in sources if str(each) in names), item.external_id or "")


def figures(answers: Ranked) -> dict[str, Figures]:
    """Figures over the answerable questions together (``1-4``), and by category."""
    groups = {OVERALL: [pair for pair in answers if pair[0].category in ANSWERABLE]}
    for category in CATEGORIES:
        groups[str(category)] = [pair for pair in answers if pair[0].category == category]
    return {name: _figures(group) for name, group in groups.items() if group}


def _figures(answers: Ranked) -> Figures:
    shares: dict[int, list[float]] = {depth: [] for depth in DEPTHS}
    for asked, found in answers:
        evidence = set(asked.evidence)
        for depth in DEPTHS:
            shares[depth].append(len(evidence & set(found[:depth])) / len(evidence))
    count = len(answers)
    return Figures(
        questions=count,
        recall={depth: sum(values) / count for depth, values in shares.items()},
        any={depth: sum(value > 0 for value in values) / count for depth, values in shares.items()},
        all={depth: sum(value >= 1 for value in values) / count for depth, values in shares.items()},
    )


def grids(measured: Mapping[str, Mapping[str, Figures]]) -> list[Grid]:
    """Tables of figures by method: all answerable questions, and recall@10 by category."""
    overall = [(method, by_group[OVERALL]) for method, by_group in measured.items() if OVERALL in by_group]
    count = overall[0][1].questions if overall else 0
    whole = Grid(
        f"Turn recall over {count} questions of categories 1-4",
        ("method", *(f"recall@{depth}" for depth in DEPTHS), "any@10", "all@10"),
        [(m, *(_share(f.recall[d]) for d in DEPTHS), _share(f.any[10]), _share(f.all[10])) for m, f in overall],
    )
    present = [str(c) for c in CATEGORIES if any(str(c) in by_group for by_group in measured.values())]
    split = Grid(
        "Turn recall@10 by category",
        ("method", *(f"{c} {CATEGORIES[int(c)]}" for c in present)),
        [(m, *(_share(g[c].recall[10]) if c in g else "-" for c in present)) for m, g in measured.items()],
    )
    return [whole, split]


def related_grid(measured: Mapping[str, Mapping[str, Figures]]) -> Grid:
    """A table of what places for related memories cost or bring among the first ten."""
    rows = [(name, by_group[OVERALL]) for name, by_group in measured.items() if OVERALL in by_group]
    return Grid(
        "Recall@10 with facts stored beside the turns, categories 1-4",
        ("related", "recall@10", "any@10", "all@10"),
        [(name, _share(f.recall[10]), _share(f.any[10]), _share(f.all[10])) for name, f in rows],
    )


def _share(value: float) -> str:
    return f"{value:.3f}"


def plain(measured: Mapping[str, Mapping[str, Figures]]) -> dict[str, dict[str, object]]:
    """The figures as JSON can hold them."""
    return {method: {group: asdict(f) for group, f in groups.items()} for method, groups in measured.items()}

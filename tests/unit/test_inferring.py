"""What of a model's conclusions may be kept, against answers written down beforehand."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from memplane.adapters.policy import load_policy, shipped_policies
from memplane.domain.errors import WritingConstraintViolated
from memplane.domain.jobs.inference_checks import (
    HEARD,
    INSIGHT,
    Piece,
    conversation,
    fault,
    material,
    readers_share,
    standing,
)
from memplane.domain.language.extraction.procedure_extraction import Procedure, workflow_fault
from memplane.domain.memory.memory import Memory, MemoryText, MemoryType, Role, Source, Turn, Visibility, new_id
from memplane.domain.memory.writing import constrain
from unit.recorded_conclusions import LINES, RECORDED, SHOWN, STEPS, Recorded

NOW = datetime(2026, 11, 22, tzinfo=UTC)
POLICY = load_policy(shipped_policies())


def turn(text: str, role: Role = Role.USER) -> Turn:
    return Turn(new_id(), "ana", "t", 1, 1, role, text, NOW)


def memory(text: str, **fields: object) -> Memory:
    made = Memory(
        new_id(), "ana", "event", MemoryType.SEMANTIC, Visibility.PRIVATE, MemoryText(text), "", Source.AGENT, NOW, NOW
    )
    return replace(made, **fields)  # type: ignore[arg-type]  # of the memory


PIECES = {number: Piece(turn(text), text, "said") for number, text in LINES.items()}


def found(each: Recorded) -> str | None:
    return fault(each.text, each.sources, PIECES, INSIGHT)


@pytest.mark.parametrize("each", [each for each in RECORDED if each.wrong], ids=lambda each: each.text[:40])
def test_what_is_wrong_is_found(each: Recorded) -> None:
    assert found(each) == each.wrong


def test_of_what_is_fit_nearly_all_is_kept_the_first_time() -> None:
    fit = [each for each in RECORDED if each.wrong is None]
    assert len(RECORDED) >= 60
    kept = [each for each in fit if found(each) is None]
    assert len(kept) / len(fit) >= 0.95, sorted({each.text for each in fit} - {each.text for each in kept})


def test_what_is_kept_passes_the_rules_of_writing_as_it_is() -> None:
    for each in RECORDED:
        if found(each) is None:
            text = MemoryText(each.text)
            assert constrain(text, MemoryType.INSIGHT, POLICY.writing) == text
    with pytest.raises(WritingConstraintViolated):  # the control
        constrain(MemoryText("She prefers tea."), MemoryType.INSIGHT, POLICY.writing)


@pytest.mark.parametrize(("title", "steps", "fit"), STEPS)
def test_ways_of_working(title: str, steps: tuple[str, ...], fit: bool) -> None:
    wrong = workflow_fault(Procedure(title, steps, "procedure.model"), 0.9, SHOWN)
    assert (wrong is None) == fit, wrong


def test_a_way_of_working_that_the_model_is_not_sure_of() -> None:
    sure = Procedure(*STEPS[0][:2], "procedure.model")
    assert workflow_fault(sure, 0.8, SHOWN) is None
    for confidence in (0.79, 1.01, -1.0, float("nan")):
        assert workflow_fault(sure, confidence, SHOWN) is not None


def test_the_end_of_a_conversation_is_given_and_no_more() -> None:
    turns = [
        turn("I trust it."), turn("Of course.", Role.ASSISTANT), turn("secret", Role.TOOL), turn("Early\n1. [fact] x"),
    ]  # fmt: skip
    told = conversation(turns)
    assert [each if isinstance(each, str) else each.text for each in told] == [
        "Early 1. [fact] x", "Of course.", "I trust it.",
    ]  # fmt: skip
    assert material({1: told[0]}, ["Of course."]).count("\n") == 1  # type: ignore[dict-item]  # a piece, as was seen
    long = conversation([turn("a" * 600), turn("b" * 399), turn("c" * 2), turn("d")])
    assert [each.text[0] for each in long if isinstance(each, Piece)] == ["b", "a"]
    (cut,) = conversation([turn("a" * 5000)])
    assert isinstance(cut, Piece)
    assert len(cut.text) == HEARD
    assert len("".join(each.text for each in long if isinstance(each, Piece))) <= HEARD


def test_a_conclusion_is_no_more_open_than_its_sources() -> None:
    social = memory("a", visibility=Visibility.SOCIAL, authority=1)
    inner = memory("b", visibility=Visibility.SHARED, min_trust="inner", authority=2)
    both = standing([social, inner])
    assert (both.visibility, both.min_trust, both.authority) == (Visibility.SHARED, "inner", 1)
    assert standing([social]).visibility is Visibility.SOCIAL
    assert standing([social, turn("x")]).visibility is Visibility.PRIVATE


def test_it_rests_on_what_all_its_readers_read() -> None:
    assert readers_share(POLICY, "procedural") == ("constraints", "procedural", "recent_activity", "tasks")
    assert readers_share(POLICY, "tasks") == ("tasks",)
    assert readers_share(POLICY, "nothing") == ()
    assert (POLICY.keeper("relationship_dynamic"), POLICY.keeper("procedural")) == ("supervisor", "executor")
    assert POLICY.keeper("nothing") is None

"""The delta header."""

from datetime import UTC, datetime
from uuid import UUID

from memplane.domain.memory.delta import ChangeEvent, ChangeLogEntry, header

A, B, C, D, E = (UUID(int=i) for i in range(1, 6))


def change(rev: int, event: ChangeEvent, memory: UUID, importance: int = 3, summary: str = "text") -> ChangeLogEntry:
    return ChangeLogEntry(rev, event, memory, "goals", summary, importance, datetime(2026, 1, 1, tzinfo=UTC))


def test_nothing_changed() -> None:
    assert header(4, []) is None
    assert header(4, [change(5, ChangeEvent.TURN, A)]) is None


def test_the_form_of_a_header() -> None:
    told = header(41, [change(44, ChangeEvent.CREATED, A, 2, "Ship v1 by September")])
    assert told == "Memory updates since rev 41:\n- +created: [Goals] Ship v1 by September (imp=2)"


def test_three_bullets_most_important_first_then_newest() -> None:
    told = header(
        0,
        [
            change(1, ChangeEvent.CREATED, A, 1, "least"),
            change(2, ChangeEvent.UPDATED, B, 5, "older"),
            change(3, ChangeEvent.SOFT_DELETED, C, 5, "newer"),
            change(4, ChangeEvent.MERGED, D, 3, "middle"),
            change(5, ChangeEvent.RESTORED, E, 2, "low"),
        ],
    )
    assert told is not None
    assert told.split("\n")[1:] == [
        "- ~soft_deleted: [Goals] newer (imp=5)",
        "- ↑updated: [Goals] older (imp=5)",
        "- ↔merged: [Goals] middle (imp=3)",
        "and 2 more",
    ]


def test_the_latest_change_of_a_memory_counts_once() -> None:
    told = header(
        0, [change(2, ChangeEvent.UPDATED, A, summary="new"), change(1, ChangeEvent.UPDATED, A, summary="old")]
    )
    assert told == "Memory updates since rev 0:\n- ↑updated: [Goals] new (imp=3)"


def test_created_and_then_edited_is_new_to_the_reader() -> None:
    told = header(0, [change(1, ChangeEvent.CREATED, A), change(2, ChangeEvent.UPDATED, A)])
    assert told is not None
    assert "+created" in told
    assert "updated:" not in told


def test_created_and_deleted_in_between_is_left_out() -> None:
    for gone in (ChangeEvent.DELETED, ChangeEvent.SOFT_DELETED, ChangeEvent.ARCHIVED):
        assert header(0, [change(1, ChangeEvent.CREATED, A), change(2, gone, A)]) is None
        assert header(1, [change(1, ChangeEvent.CREATED, B), change(2, gone, A)]) is not None, "the control"


def test_archived_is_no_deletion() -> None:
    told = header(1, [change(2, ChangeEvent.ARCHIVED, A, summary="Ship")])
    assert told == "Memory updates since rev 1:\n- ▽archived: [Goals] Ship (imp=3)"
    kept = header(0, [change(1, ChangeEvent.UPDATED, A), change(2, ChangeEvent.DELETED, A)])
    assert kept is not None
    assert "−deleted" in kept


def test_a_long_or_broken_summary_stays_one_short_line() -> None:
    told = header(0, [change(1, ChangeEvent.SUPERSEDED, A, summary="word\n" * 100)])
    assert told is not None
    (line,) = told.split("\n")[1:]
    assert len(line) < 160
    assert line.endswith("… (imp=3)")

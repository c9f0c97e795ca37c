"""How strongly memories are linked that are recalled together."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from memplane.domain.ranking.co_recall import (
    FORGOTTEN,
    LEAST,
    MOST_LINKS,
    MOST_PAIRS,
    PASSING,
    CoRecallCount,
    co_recall_links,
    pairs_of,
)

NOW = datetime(2026, 11, 22, tzinfo=UTC)


def ident(number: int) -> UUID:
    return UUID(int=number)


def pair(one: int, other: int, times: int = 9, days: float = 0, strength: float = 0.0) -> CoRecallCount:
    ends = max(one, other), min(one, other)
    return CoRecallCount(
        ident(ends[0] * 10_000 + ends[1]), "ana", ident(ends[0]), ident(ends[1]), strength, times,
        NOW - timedelta(days=days),
    )  # fmt: skip


def linked(pairs: Iterable[CoRecallCount]) -> dict[UUID, float]:
    every = list(pairs)
    done = co_recall_links(every, NOW)
    return {each.id: done.changed.get(each.id, each.strength) for each in every if each.id not in done.forgotten}


def test_the_best_of_an_answer_by_twos_the_newer_first() -> None:
    first, second, third, fourth = map(ident, (5, 9, 2, 7))
    assert pairs_of([first, second, third, fourth]) == [(second, first), (first, third), (second, third)]
    assert pairs_of([first, first]) == pairs_of([]) == []


def test_two_that_come_together_alone_are_as_near_as_often() -> None:
    assert list(linked([pair(1, 2, 3)]).values()) == [0.5]
    assert list(linked([pair(1, 2, 27)]).values()) == [0.9]


def test_fewer_times_are_counted_and_no_link() -> None:
    assert list(linked([pair(1, 2, LEAST - 1)]).values()) == [0.0]


def test_what_comes_with_everything_is_linked_with_nothing() -> None:
    hub = [pair(1, each, 10) for each in range(2, 6)]
    alone = pair(11, 12, 10)
    found = linked([*hub, alone])
    assert all(found[each.id] < found[alone.id] * 0.55 for each in hub)


def test_it_wanes_and_is_forgotten() -> None:
    often = [list(linked([pair(1, 2, 9, days)]).values()) for days in (0, 30, 60)]
    assert often == [[0.75], [0.6], [0.43]]
    assert linked([pair(1, 2, 9, FORGOTTEN.days)]) == {}
    assert linked([pair(1, 2, 2, PASSING.days)]) == {}
    assert len(linked([pair(1, 2, 3, PASSING.days)])) == 1


def test_a_memory_has_so_many_links_and_a_user_so_many_pairs() -> None:
    star = [pair(1, each, 20 + each) for each in range(2, 3 + MOST_LINKS)]
    found = linked(star)
    assert [strength > 0 for strength in found.values()] == [False] + [True] * MOST_LINKS
    many = [pair(each, each + 5_000, 3) for each in range(1, MOST_PAIRS + 4)]
    assert len(co_recall_links(many, NOW).forgotten) == 3


def test_what_is_settled_is_settled() -> None:
    pairs = [pair(1, 2), pair(2, 3), pair(1, 3, 4, 40)]
    strengths = linked(pairs)
    again = [pair(1, 2, strength=0), pair(2, 3), pair(1, 3, 4, 40)]
    same = [
        CoRecallCount(each.id, each.user_id, each.from_id, each.to_id, strengths[each.id], each.times, each.last)
        for each in again
    ]
    assert co_recall_links(same, NOW).changed == {}
    assert co_recall_links(pairs, NOW).changed == pytest.approx(strengths)

"""A budget that sections share."""

from hypothesis import given, settings
from hypothesis import strategies as st

from memplane.domain.ranking.budgets import SectionDemand, share_budget


def places(sections: list[SectionDemand], budget: int, heading: int = 0) -> list[list[int]]:
    return [list(found.places) for found in share_budget(sections, budget, heading).values()]


def test_everybody_gets_its_share_and_then_what_is_left_in_order() -> None:
    greedy, modest = SectionDemand("a", [10] * 20, 0.5), SectionDemand("b", [10] * 3, 0.5)
    assert places([greedy, modest], 100) == [[0, 1, 2, 3, 4, 5, 6], [0, 1, 2]]
    assert places([modest, greedy], 100) == [[0, 1, 2], [0, 1, 2, 3, 4, 5, 6]]


def test_what_does_not_fit_is_skipped_but_not_in_a_conversation() -> None:
    assert places([SectionDemand("a", [50, 60, 20, 5], 1.0)], 80) == [[0, 2, 3]]
    assert places([SectionDemand("a", [50, 60, 20, 5], 1.0, unbroken=True)], 80) == [[0]]


def test_a_heading_is_paid_once_and_by_those_that_hold_something() -> None:
    sections = [SectionDemand("a", [10, 10], 0.5), SectionDemand("b", [], 0.25), SectionDemand("c", [10], 0.25)]
    found = share_budget(sections, 40, heading=5)
    assert [(list(each.places), each.tokens, each.truncated) for each in found.values()] == [
        ([0, 1], 25, False), ([], 0, False), ([0], 15, False),
    ]  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(st.lists(st.integers(1, 60), max_size=12), st.floats(0, 1), st.booleans()), min_size=1, max_size=5
    ),
    st.integers(0, 400),
    st.integers(0, 12),
)
def test_the_budget_holds_whatever_is_wanted(
    drawn: list[tuple[list[int], float, bool]], budget: int, heading: int
) -> None:
    sections = [SectionDemand(str(number), *each) for number, each in enumerate(drawn)]
    found = share_budget(sections, budget, heading)
    assert sum(each.tokens for each in found.values()) <= budget
    for section in sections:
        got = found[section.name]
        assert list(got.places) == sorted(set(got.places))
        assert got.tokens == sum(section.costs[place] for place in got.places) + (heading if got.places else 0)
        assert not section.unbroken or list(got.places) == list(range(len(got.places)))

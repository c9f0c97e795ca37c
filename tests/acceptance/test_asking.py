"""What a question says beside its words: times, quoted phrases, and people by another of their names."""

import pytest

from support.callers import Caller, Tenant

FILLER = ("The band plays at eight.", "Nobody has paid the deposit.", "The cake is from the bakery by the station.")


def test_a_time_that_is_named_finds_what_happened_then(supervisor: Caller) -> None:
    for month in range(1, 9):
        supervisor.remember(f"Ana visited town number {month}.", "event", event_time=f"2023-0{month}-14T10:00:00Z")
    found = supervisor.ask("Which town did Ana visit in May 2023?")["items"]
    assert found[0]["text"].endswith("town number 5.")
    assert supervisor.ask("Which town did Ana visit in July 2023?")["items"][0]["text"].endswith("town number 7.")


def test_what_is_quoted_counts_as_a_whole(supervisor: Caller) -> None:
    supervisor.remember("The blue door leads to the cellar of the big hall.")
    whole = supervisor.remember("Nobody ever found what is behind that old and squeaky red door of the hall.")
    for text in FILLER:
        supervisor.remember(text)
    assert supervisor.found('What do we know of the "red door"?', explain=True)[0] == whole
    items = {item["id"]: item["explain"]["signals"] for item in
             supervisor.ask('the "squeaky door"', explain=True)["items"]}  # fmt: skip
    assert [each for each, signals in items.items() if signals["phrase"] == 1] == [whole]


@pytest.mark.parametrize("ranking", ["default", "rrf"])
def test_somebody_is_found_by_another_name(tenant: Tenant, supervisor: Caller, ranking: str) -> None:
    wanted = supervisor.remember("Robert Miles prefers the early train.", "relationships")
    for text in FILLER:
        supervisor.remember(text)
    plain = supervisor.ask("Bobby", ranking=ranking, explain=True)["items"]
    assert all(item["explain"]["signals"]["entity"] == 0 for item in plain)  # the control: nobody is called so yet
    tenant.mention(wanted, "Robert M.", "bobby")
    items = supervisor.ask("Bobby", ranking=ranking, explain=True)["items"]
    assert items[0]["id"] == wanted
    assert items[0]["explain"]["signals"]["entity"] == 1


def test_a_relation_that_the_reader_may_not_see_moves_no_score(
    tenant: Tenant, supervisor: Caller, planner: Caller
) -> None:
    seen = planner.remember("The hall is booked.")
    other = planner.remember("The menu is ready.")
    hidden = supervisor.remember("The hall is a secret.", "profile")

    def relation() -> float:
        (item,) = [each for each in planner.ask("hall booked", explain=True)["items"] if each["id"] == seen]
        return float(item["explain"]["signals"]["relation"])

    before = relation()
    tenant.relate(seen, hidden, 0.95)
    assert relation() == before < 0.9
    tenant.relate(seen, other, 0.9)
    assert relation() == 0.9  # the control

"""Facts of one slot end alike in whatever order they arrive: what holds now, and what was so at each moment."""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import count
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.callers import Caller, Json, Tenant
from support.telling import texts, write

YEARS = range(2011, 2024, 2)
CITIES = ("Porto", "Berlin", "Oslo", "Graz")
Fact = tuple[int, str]
"""A year, and what is so from then on."""
_USERS = count()


def lives(city: str) -> str:
    return f"The user's mother lives in {city}."


def left(city: str) -> str:
    return f"The user's mother no longer lives in {city}."


@st.composite
def histories(draw: st.DrawFn, *, ending: bool = True) -> list[Fact]:
    """Three to five facts of different years, some with a value that was there before, perhaps an ending."""
    years = draw(st.lists(st.sampled_from(YEARS), min_size=3, max_size=5, unique=True))
    facts = [(year, lives(draw(st.sampled_from(CITIES)))) for year in years]
    if ending and draw(st.booleans()):
        facts[-1] = (facts[-1][0], left(facts[0][1].rsplit(" ", 1)[1].rstrip(".")))
    return facts


def contradicts(one: str, other: str) -> bool:
    """Whether two sentences cannot both hold: other cities, or a city and its end."""
    if "no longer" in one or "no longer" in other:
        return one.replace("no longer lives", "lives") == other.replace("no longer lives", "lives") and one != other
    return one != other


def so_in(facts: Sequence[Fact], year: float) -> set[str]:
    """What is so by the facts alone: what was said by then, and is contradicted by nothing said between."""
    return {
        said
        for since, said in facts
        if since <= year and not any(since < then <= year and contradicts(said, other) for then, other in facts)
    }


def at(year: float) -> str:
    return datetime(int(year), 7 if year % 1 else 1, 1, tzinfo=UTC).isoformat()


def tell(caller: Caller, user: str, facts: Sequence[Fact], **fields: Any) -> list[Json]:  # noqa: ANN401 - of the memory
    return [write(caller, said, "relationships", user_id=user, valid_from=at(year), **fields) for year, said in facts]


def require_history(caller: Caller, user: str, facts: Sequence[Fact], **asked: Any) -> None:  # noqa: ANN401 - of the question
    asked |= {"filters": {"user_id": user}}
    assert texts(caller, **asked) == so_in(facts, 2026)
    for year in (2010, *(moment for each, _ in facts for moment in (each, each + 0.5))):
        assert texts(caller, as_of={"true_at": at(year)}, **asked) == so_in(facts, year), year


@given(facts=histories(), data=st.data())
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_order_of_arrival_tells_the_same_history(tenant: Tenant, facts: list[Fact], data: st.DataObject) -> None:
    arriving = data.draw(st.permutations(facts))
    arriving += data.draw(st.lists(st.sampled_from(facts), max_size=2))
    caller, user = tenant.caller("supervisor"), f"user-{next(_USERS)}"
    tell(caller, user, arriving)
    require_history(caller, user, facts)
    statement = "SELECT valid_from, valid_until FROM memories WHERE tenant_id = %(tenant)s AND user_id = %(user)s"
    rows = tenant.rows(statement, user=user)
    assert all(row["valid_until"] is None or row["valid_from"] < row["valid_until"] for row in rows)


@given(facts=histories(ending=False), data=st.data())
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_turns_of_one_batch_tell_the_same_history(tenant: Tenant, facts: list[Fact], data: st.DataObject) -> None:
    """Facts that are placed in one transaction, before the first of them is committed."""
    arriving = data.draw(st.permutations(facts))
    caller, user = tenant.caller("supervisor"), f"user-{next(_USERS)}"
    turns = [
        {"user_id": user, "thread_id": user, "role": "user", "text": spoken(said), "event_time": at(year)}
        for year, said in arriving
    ]
    stored = caller.post("/v1/turns:batch", {"turns": turns})
    assert stored.status_code == 201, stored.text
    assert all(len(turn["extracted"]) == 1 for turn in stored.json()["items"]), stored.text
    require_history(caller, user, facts, categories=["relationships"])


def spoken(said: str) -> str:
    return said.replace("The user's", "My")


@given(facts=histories(), lies=histories(), data=st.data())
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_who_is_trusted_less_changes_no_history(
    tenant: Tenant, facts: list[Fact], lies: list[Fact], data: st.DataObject
) -> None:
    """Whatever a less trusted key says of the slot, before or after, is nowhere in what the others read."""
    inner, caller, user = (
        tenant.caller("supervisor", trust="inner"),
        tenant.caller("supervisor"),
        f"user-{next(_USERS)}",
    )
    tell(caller, user, data.draw(st.permutations(facts)), visibility="shared")
    before = rows_of(tenant, user)
    tell(inner, user, lies, visibility="shared")
    after = rows_of(tenant, user)
    assert all(after[each] == before[each] for each in before)


def rows_of(tenant: Tenant, user: str) -> dict[Any, tuple[Any, ...]]:
    """Since when and until when each memory of a user is so, and in what state."""
    statement = (
        "SELECT id, state, content, valid_from, valid_until, superseded_by, authority FROM memories"
        " WHERE tenant_id = %(tenant)s AND user_id = %(user)s AND authority = 3"
    )
    return {row["id"]: tuple(row.values()) for row in tenant.rows(statement, user=user)}

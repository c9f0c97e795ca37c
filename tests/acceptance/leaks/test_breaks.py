"""The matrix can fail: each of these breaks makes it report a leak, and where two layers guard, each holds alone."""

import pytest

from memplane.domain.policy.capabilities import Capability
from support.leaks.breaks import (
    ANY_USER_NAMED,
    ANY_USER_S_CHANGES,
    CANDIDATES,
    LEAKS,
    NO_TENANT,
    NO_TENANT_SECURITY,
    NO_USER,
    NO_USER_SECURITY,
    NOT_FETCHED_IN_SCOPE,
    Break,
)
from support.leaks.matrix import Matrix
from support.leaks.oracle import Voice
from support.leaks.world import World

LIST, QUERY, DELTA = "GET /v1/memories", "POST /v1/memory/query", "GET /v1/threads/{thread_id:text}/delta"
CALLERS = (
    ("planner", "full", None), ("planner", "inner", None), ("supervisor", "inner", None), ("planner", "full", ("ana",)),
    ("executor", "familiar", None),
)  # fmt: skip
SEVERAL, SECURED = Capability.SEVERAL_TENANTS, Capability.ROW_LEVEL_SECURITY

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def voices(world: World) -> list[Voice]:
    """A few callers, each kept from something else."""
    by_kind = {(voice.agent, voice.trust, voice.users): voice for voice in reversed(world.voices)}
    return [by_kind[kind] for kind in CALLERS]


def leaks(world: World, voices: list[Voice], broken: Break, route: str) -> list[str]:
    with broken.made(world):
        report = Matrix(world, voices, each=1, routes={route}, first=True).run()
    assert report.cases  # the route was asked
    return [str(leak) for leak in report.leaks]


@pytest.mark.parametrize(("broken", "route"), LEAKS, ids=lambda value: value.name if isinstance(value, Break) else None)
@pytest.mark.breaks
def test_a_break_is_noticed(world: World, voices: list[Voice], broken: Break, route: str) -> None:
    assert leaks(world, voices, broken, route)
    assert leaks(world, voices, Break("nothing is broken"), route) == []  # and mended it is not


TWO_LAYERS = [
    pytest.param(NO_TENANT, NO_TENANT_SECURITY, LIST, marks=pytest.mark.needs(SEVERAL, SECURED), id="tenant"),
    pytest.param(NO_USER, NO_USER_SECURITY, LIST, marks=pytest.mark.needs(SECURED), id="user"),
    pytest.param(CANDIDATES, NOT_FETCHED_IN_SCOPE, QUERY, id="candidates"),
]


@pytest.mark.parametrize(("one", "other", "route"), TWO_LAYERS)
@pytest.mark.breaks
def test_where_two_layers_guard_each_holds_alone(
    world: World, voices: list[Voice], one: Break, other: Break, route: str
) -> None:
    assert leaks(world, voices, one, route) == []
    assert leaks(world, voices, other, route) == []
    assert leaks(world, voices, one & other, route)


@pytest.mark.needs(SECURED)
def test_another_user_s_thread_is_guarded_three_times(world: World, voices: list[Voice]) -> None:
    layers = (ANY_USER_NAMED, ANY_USER_S_CHANGES, NO_USER_SECURITY)
    for standing in range(3):
        first, second = (layer for place, layer in enumerate(layers) if place != standing)
        assert leaks(world, voices, first & second, DELTA) == [], layers[standing].name
    assert leaks(world, voices, layers[0] & layers[1] & layers[2], DELTA)


@pytest.mark.parametrize(
    ("broken", "route"), [(NO_USER, LIST), (ANY_USER_NAMED & ANY_USER_S_CHANGES, DELTA)], ids=["list", "thread"]
)
def test_a_file_has_one_layer_for_users(
    world: World, voices: list[Voice], broken: Break, route: str, storage: str
) -> None:
    """SQLite has no row-level security: what PostgreSQL stops behind a lost condition leaks there."""
    assert bool(leaks(world, voices, broken, route)) is (storage == "sqlite")

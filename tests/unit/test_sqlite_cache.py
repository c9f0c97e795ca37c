"""The caches of SQLite's search: what they hold is what the file held under the same name, or nothing."""

from collections.abc import Sequence
from uuid import UUID, uuid4

import numpy as np
import pytest
from numpy.typing import NDArray

from memplane.adapters.sql.queries.material import Material
from memplane.adapters.sql.rows import pack_terms
from memplane.adapters.sqlite.scope_cache import FileScopeCache, Row, columns_of
from memplane.domain.language.terms import terms

DIMENSIONS = 8
EAST, NORTH = np.eye(DIMENSIONS, dtype=np.float32)[:2]
EPOCH = 1
NAMES = terms("hall menu")


def row(rowid: int, text: str, vector: NDArray[np.float32] | None, version: int = 1, actor: str | None = None) -> Row:
    words = terms(text)
    embedding = None if vector is None else vector.astype("<f2").tobytes()
    priors = (0.0, 0.0, 3, 0, 0, 0, 1, 0)
    return (rowid, version, uuid4().hex, 7, rowid, words.length, actor, pack_terms(words), embedding, *priors)


def numbers(*values: int) -> NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


def frequency(cache: Material, places: NDArray[np.int64]) -> list[list[float]]:
    """How often each placed unit holds each of the names."""
    held = [dict(zip(where.tolist(), count.tolist(), strict=True)) for where, count in cache.holders(NAMES.wanted())]
    return [[column.get(int(place), 0) for column in held] for place in places]


def filled(rows: Sequence[Row], dimensions: int = DIMENSIONS) -> Material:
    cache = Material(dimensions)
    assert cache.missing(EPOCH, numbers(*(r[0] for r in rows)), numbers(*(r[1] for r in rows))) == [r[0] for r in rows]
    cache.add(EPOCH, *columns_of(rows, dimensions))
    return cache


def test_what_was_added_is_held_in_the_order_asked() -> None:
    rows = [row(1, "hall hall", EAST), row(2, "menu", NORTH), row(5, "tomato", None)]
    cache = filled(rows)
    assert cache.missing(EPOCH, numbers(5, 1, 2), numbers(1, 1, 1)) == []
    places = cache.places(numbers(5, 1, 2))
    assert [UUID(bytes=bytes(each)) for each in cache.ids[places]] == [UUID(rows[i][2]) for i in (2, 0, 1)]
    assert frequency(cache, places) == [[0, 0], [2, 0], [0, 1]]
    similar = cache.similarity(places, EAST)
    assert np.isnan(similar[0])
    assert similar[1:].tolist() == [1, 0]


def test_a_new_version_takes_the_place_of_the_old() -> None:
    cache = filled([row(1, "hall", EAST), row(2, "hall", EAST)])
    assert cache.missing(EPOCH, numbers(1, 2), numbers(2, 1)) == [1]
    cache.add(EPOCH, *columns_of([row(1, "menu", NORTH, version=2)], DIMENSIONS))
    assert cache.missing(EPOCH, numbers(1, 2), numbers(2, 1)) == []
    places = cache.places(numbers(1, 2))
    assert frequency(cache, places) == [[0, 1], [1, 0]]
    assert cache.similarity(places, EAST).tolist() == [0, 1]


def test_many_terms_are_found_sorted_in_or_not() -> None:
    """What comes late waits unsorted; either way a term's holders are all found, without those of old versions."""
    rows = [row(each, f"hall w{each}{'' if each % 3 else ' menu'}", None) for each in range(1, 20_001)]
    cache = filled(rows)
    cache.add(EPOCH, *columns_of([row(3, "tomato", None, version=2), row(20_001, "hall", None)], DIMENSIONS))
    hall, menu = (set(where.tolist()) for where, _ in cache.holders(NAMES.wanted()))
    if hall < menu:
        hall, menu = menu, hall
    standing = cache.places(numbers(*range(1, 20_002)))
    assert hall == {int(place) for number, place in enumerate(standing, 1) if number != 3}
    assert menu == {int(place) for number, place in enumerate(standing[:20_000], 1) if number % 3 == 0 and number != 3}


def test_a_removal_empties_it_for_a_number_may_be_given_out_again() -> None:
    cache = filled([row(1, "hall", EAST), row(2, "menu", EAST)])
    assert cache.missing(EPOCH + 1, numbers(2), numbers(1)) == [2]
    cache.add(EPOCH + 1, *columns_of([row(2, "hall", NORTH)], DIMENSIONS))
    assert frequency(cache, cache.places(numbers(2))) == [[1, 0]]


def test_what_was_read_before_a_removal_is_not_held() -> None:
    cache = filled([row(1, "hall", EAST)])
    assert cache.missing(EPOCH + 1, numbers(1), numbers(1)) == [1]
    cache.add(EPOCH, *columns_of([row(1, "hall", EAST)], DIMENSIONS))
    assert cache.missing(EPOCH + 1, numbers(1), numbers(1)) == [1]


def test_a_few_of_many_are_as_similar_as_all_of_them() -> None:
    """A small part is gathered, a large one is taken out of the whole product."""
    chance = np.random.default_rng(1)
    vectors = chance.normal(size=(400, DIMENSIONS)).astype(np.float32)
    cache = filled([row(number, "hall", vector) for number, vector in enumerate(vectors, 1)])
    everything = cache.similarity(cache.places(numbers(*range(1, 401))), EAST)
    few = cache.similarity(cache.places(numbers(3, 300)), EAST)
    assert np.allclose(few, everything[[2, 299]], atol=1e-6)
    assert np.allclose(everything, vectors @ EAST, atol=1e-2)


@pytest.mark.parametrize("wanted", [7, 100, 1003])
def test_equal_units_are_equally_similar_wherever_they_stand(wanted: int) -> None:
    vector, query = np.random.default_rng(2).normal(size=(2, 256)).astype(np.float32)
    rows = [row(number, "hall", vector) for number in range(1, 1004)]
    cache = filled(rows, 256)
    similar = cache.similarity(cache.places(numbers(*range(1, wanted + 1))), query)
    assert len(set(similar.tolist())) == 1
    halves = [each.astype(np.float16).astype(np.float64) for each in (vector, query)]
    assert np.allclose(similar, halves[0] @ halves[1], atol=1e-4)


def test_an_actor_is_named_by_any_of_the_names() -> None:
    rows = [row(1, "hall", None, actor="Ana Ruiz"), row(2, "hall", None), row(3, "hall", None, actor="ben")]
    cache = filled(rows)
    places = cache.places(numbers(1, 2, 3))
    assert cache.actor_named(places, ["what", "did", "ruiz", "say"]).tolist() == [True, False, False]
    assert cache.actor_named(places, ["anab"]).tolist() == [False, False, False]


@pytest.mark.parametrize(
    ("changes", "now", "held"), [(1, "08:00", True), (2, "08:00", False), (1, "09:00", False), (1, "10:00", False)]
)
def test_a_scope_lasts_until_a_unit_changes_or_expires(changes: int, now: str, *, held: bool) -> None:
    cache: FileScopeCache[tuple[NDArray[np.int64], NDArray[np.int64]]] = FileScopeCache()
    rows = (numbers(1), numbers(1))
    cache.keep(("ana",), 1, "09:00", rows)
    assert cache.find(("ana",), changes, now) == (rows if held else None)
    assert cache.find(("ben",), 1, "08:00") is None


def test_the_least_used_scope_is_forgotten() -> None:
    cache: FileScopeCache[tuple[NDArray[np.int64], NDArray[np.int64]]] = FileScopeCache(size=2)
    rows = (numbers(1), numbers(1))
    for name in ("ana", "ben"):
        cache.keep((name,), 1, None, rows)
    assert cache.find(("ana",), 1, "") is rows
    cache.keep(("cleo",), 1, None, rows)
    assert [cache.find((name,), 1, "") is rows for name in ("ana", "ben", "cleo")] == [True, False, True]

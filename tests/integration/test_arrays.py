"""Lists that are bound to statements: PostgreSQL reads what was written, as the types that they are compared with."""

from enum import StrEnum
from uuid import UUID

import numpy as np
import psycopg
import pytest
from pgvector import HalfVector
from pgvector.psycopg import register_vector

from memplane.adapters.postgres.arrays import IdArray, TextArray, VectorArray, bind_arrays, register_arrays
from support.cluster import Database

TEXTS = ["", "plain", 'with "quotes", commas and {braces}', "NULL", "back\\slash", "Wien – 東京 🏛️", "x" * 10_000]
IDS = [UUID(int=number) for number in (0, 1, 2**128 - 1)]


class Kind(StrEnum):
    FIRST = "first"
    SECOND = "second"


@pytest.mark.parametrize("texts", [TEXTS, TEXTS[:1], [Kind.SECOND, Kind.FIRST]])
def test_texts_arrive_as_they_are(database: Database, texts: list[str]) -> None:
    with psycopg.connect(database.url) as connection:
        register_arrays(connection)
        sent = bind_arrays({"texts": texts})
        assert isinstance(sent["texts"], TextArray)
        ((kind, back),) = connection.execute("SELECT pg_typeof(%(texts)s)::text, %(texts)s", sent)
        assert (kind, back) == ("text[]", [str(text) for text in texts])


def test_ids_arrive_as_they_are(database: Database) -> None:
    with psycopg.connect(database.url) as connection:
        register_arrays(connection)
        sent = bind_arrays({"ids": IDS})
        assert isinstance(sent["ids"], IdArray)
        ((kind, back, found),) = connection.execute(
            "SELECT pg_typeof(%(ids)s)::text, %(ids)s, ARRAY(SELECT x FROM unnest(%(ids)s) WITH ORDINALITY AS u (x, n)"
            " WHERE x = ANY(%(ids)s) ORDER BY n)",
            sent,
        )
        assert (kind, back, found) == ("uuid[]", IDS, IDS)


@pytest.mark.parametrize("number", [0, 1, 3])
def test_vectors_arrive_as_the_driver_would_write_them(database: Database, number: int) -> None:
    vectors = list(np.random.default_rng(7).normal(size=(number, 256)).astype(np.float32))
    with psycopg.connect(database.url) as connection:
        register_vector(connection)
        register_arrays(connection)
        ((kind, back, equal),) = connection.execute(
            "SELECT pg_typeof(%(ours)s)::text, %(ours)s, %(ours)s = %(theirs)s::halfvec[]",
            {"ours": VectorArray(vectors), "theirs": [HalfVector(each) for each in vectors]},
        )
        assert (kind, len(back), equal) == ("halfvec[]", number, True)


def test_other_values_are_left_to_the_driver(database: Database) -> None:
    values = {"none": [], "numbers": [1, 2], "mixed": ["a", None], "text": "a", "nothing": None}
    assert bind_arrays(values) == values
    assert not any(isinstance(value, TextArray | IdArray) for value in bind_arrays(values).values())
    with psycopg.connect(database.url) as connection:
        register_arrays(connection)
        assert connection.execute("SELECT %s, %s", (TextArray(), IdArray())).fetchone() == ([], [])

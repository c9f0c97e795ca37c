"""What a plain table answers: PostgreSQL's own full text search, and one vector per turn, over the same turns."""

from collections.abc import Iterable, Iterator, Sequence

import psycopg
from pgvector import Vector
from pgvector.psycopg import register_vector
from psycopg.sql import SQL, Identifier, Literal

from memplane.adapters.embeddings.batching import Encoder
from memplane.adapters.postgres.embedded.embedded_postgres import EmbeddedPostgres
from memplane.entrypoints.cli.bench.locomo import LocomoConversation, LocomoQuestion
from memplane.entrypoints.cli.bench.recall import DEPTHS

DATABASE = "plain"

_TABLE = SQL("""
CREATE TABLE plain_turns (conversation text, id text, place int, words tsvector, embedding vector({dimensions}))""")
_INSERT = "INSERT INTO plain_turns VALUES (%s, %s, %s, to_tsvector('english', %s), %s)"
_ALL_WORDS = """
SELECT id FROM plain_turns, plainto_tsquery('english', %(question)s) wanted
 WHERE conversation = %(conversation)s AND words @@ wanted
 ORDER BY ts_rank(words, wanted) DESC, place LIMIT %(limit)s"""
_ANY_WORD = """
SELECT id FROM plain_turns, CAST(replace(plainto_tsquery('english', %(question)s)::text, '&', '|') AS tsquery) wanted
 WHERE conversation = %(conversation)s AND words @@ wanted
 ORDER BY ts_rank(words, wanted) DESC, place LIMIT %(limit)s"""
_VECTOR = """
SELECT id FROM plain_turns WHERE conversation = %(conversation)s AND embedding IS NOT NULL
 ORDER BY embedding <=> %(vector)s, place LIMIT %(limit)s"""
METHODS = {
    "full text: all words (plainto_tsquery, ts_rank)": _ALL_WORDS,
    "full text: any word (ts_rank)": _ANY_WORD,
    "vector only: one per turn (pgvector, exact)": _VECTOR,
}


def baselines(
    server: EmbeddedPostgres, conversations: Sequence[LocomoConversation], encoder: Encoder
) -> Iterator[tuple[str, list[tuple[LocomoQuestion, Sequence[str]]]]]:
    """Each method with its answers, from a database of its own on the server.

    The text of a turn is what was said with the speaker's name before it, which helps both methods.
    """
    with psycopg.connect(server.admin_conninfo, autocommit=True) as connection:
        connection.execute(SQL("CREATE DATABASE {}").format(Identifier(DATABASE)))
    with psycopg.connect(server.conninfo(user="postgres", database=DATABASE), autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
        register_vector(connection)
        connection.execute(_TABLE.format(dimensions=Literal(encoder.dimensions)))
        for conversation in conversations:
            connection.cursor().executemany(_INSERT, list(_rows(conversation, encoder)))
        for method, statement in METHODS.items():
            yield method, list(_answers(connection, statement, conversations, encoder))


def _rows(conversation: LocomoConversation, encoder: Encoder) -> Iterable[tuple[object, ...]]:
    turns = [turn for session in conversation.sessions for turn in session.turns]
    texts = [f"{turn.speaker}: {turn.full_text}" for turn in turns]
    vectors = encoder.encode([encoder.document_prompt + text for text in texts])
    for place, (turn, text, vector) in enumerate(zip(turns, texts, vectors, strict=True)):
        yield conversation.sample_id, turn.dia_id, place, text, None if vector is None else Vector(vector)


def _answers(
    connection: psycopg.Connection, statement: str, conversations: Sequence[LocomoConversation], encoder: Encoder
) -> Iterator[tuple[LocomoQuestion, Sequence[str]]]:
    for conversation in conversations:
        for asked in conversation.questions:
            (vector,) = encoder.encode([encoder.query_prompt + asked.question])
            values = {
                "conversation": conversation.sample_id,
                "question": asked.question,
                "vector": None if vector is None else Vector(vector),
                "limit": max(DEPTHS),
            }
            yield asked, [row[0] for row in connection.execute(statement, values)]

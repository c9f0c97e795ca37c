"""mem0's `Memory` on pgvector, with its HNSW index as it comes and `infer=False`: no model is called."""

import logging
import os
import tempfile
from importlib.metadata import version
from pathlib import Path
from time import perf_counter

from common import TOP_K, WARM_UP, Embedder, Run, Task, report, task

os.environ["MEM0_TELEMETRY"] = "False"


def measure(work: Task, folder: Path) -> Run:
    """Add one by one while there is time, then search."""
    os.environ["MEM0_DIR"] = str(folder)
    from mem0 import Memory  # noqa: PLC0415 - it reads the environment when imported

    logging.disable(logging.WARNING)
    run = Run("mem0 Memory (pgvector)", version("mem0ai"))
    embedder = Embedder()
    store = {"connection_string": work.url, "collection_name": "mem0", "embedding_model_dims": embedder.dimensions}
    unused = {"provider": "openai", "config": {"api_key": "unused"}}
    memory = Memory.from_config(
        {
            "vector_store": {"provider": "pgvector", "config": store},
            "llm": unused,
            "embedder": unused,
            "history_db_path": str(folder / "history.db"),
        }
    )
    memory.embedding_model = _embedding(embedder)
    for batch in work.batches(50):
        for user, text in batch:
            started = perf_counter()
            memory.add(text, user_id=user, infer=False)
            run.add.append((perf_counter() - started) * 1e3)
        run.rows += len(batch)
    run.load_seconds = sum(run.add) / 1e3
    _settle(work.url)
    asked = work.asked(run.rows)
    for user, text in [*asked[:WARM_UP], *asked]:
        started = perf_counter()
        found = memory.search(text, filters={"user_id": user}, top_k=TOP_K)
        run.search.append((perf_counter() - started) * 1e3)
        run.returned.append(len(found["results"]))
    run.search, run.returned = run.search[WARM_UP:], run.returned[WARM_UP:]
    return run


def _settle(url: str) -> None:
    import psycopg  # noqa: PLC0415 - after the environment is set, like mem0

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")


def _embedding(embedder: Embedder) -> object:
    from mem0.embeddings.base import EmbeddingBase  # noqa: PLC0415 - as above

    class Static(EmbeddingBase):
        def embed(self, text: str, memory_action: str | None = None) -> list[float]:  # noqa: ARG002 - mem0's signature
            return embedder.embed([text])[0]

        def embed_batch(self, texts: list[str], memory_action: str = "add") -> list[list[float]]:  # noqa: ARG002 - as above
            return embedder.embed(texts)

    return Static()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        report(measure(task(), Path(name)))

"""LangGraph's `AsyncPostgresStore`, with its HNSW index as it comes, or without one (`--exact`)."""

import asyncio
from importlib.metadata import version
from time import perf_counter

import psycopg
from common import TOP_K, WARM_UP, Embedder, Run, Task, report, task
from langgraph.store.base import PutOp
from langgraph.store.postgres import AsyncPostgresStore

ADDED = 200


async def measure(work: Task) -> Run:
    """Load, add one by one, search."""
    name = "LangGraph AsyncPostgresStore" + (" (exact: index dropped)" if work.exact else "")
    run = Run(name, version("langgraph-checkpoint-postgres"))
    embedder = Embedder()

    async def embed(texts: list[str]) -> list[list[float]]:
        return embedder.embed(texts)

    index = {"dims": embedder.dimensions, "embed": embed, "fields": ["text"]}
    async with AsyncPostgresStore.from_conn_string(work.url, index=index) as store:
        await store.setup()
        if work.exact:
            _drop_index(work.url)
        started = perf_counter()
        for batch in work.batches(250):
            await store.abatch(
                [PutOp(("memories", user), f"{run.rows + i}", {"text": text}) for i, (user, text) in enumerate(batch)]
            )
            run.rows += len(batch)
        run.load_seconds = perf_counter() - started
        with psycopg.connect(work.url, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")
        for number, (user, text) in enumerate(work.rows[:ADDED]):
            started = perf_counter()
            await store.aput(("added", user), str(number), {"text": text})
            run.add.append((perf_counter() - started) * 1e3)
        asked = work.asked(run.rows)
        for user, text in [*asked[:WARM_UP], *asked]:
            started = perf_counter()
            found = await store.asearch(("memories", user), query=text, limit=TOP_K)
            run.search.append((perf_counter() - started) * 1e3)
            run.returned.append(len(found))
    run.search, run.returned = run.search[WARM_UP:], run.returned[WARM_UP:]
    return run


def _drop_index(url: str) -> None:
    """Exact search: the store's own setting for that, a flat index, is refused by its setup."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP INDEX store_vectors_embedding_idx")


if __name__ == "__main__":
    report(asyncio.run(measure(task())))

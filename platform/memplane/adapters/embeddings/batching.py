"""Embedding off the event loop, many requests in one batch, with a cache for repeated queries."""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from memplane.application.recall.search_material import Vector

CACHED_TEXTS = 4096
CACHED_CHARS = 1_000
BATCH = 256


class Encoder(Protocol):
    """A model that computes in the calling thread.

    Attributes:
        model: its name.
        dimensions: length of a vector.
        fingerprint: what tells it from another model of the same name; ``None`` where the name says it all.
        query_prompt: what it wants before a question.
        document_prompt: what it wants before a text that is to be found.
        instant_chars: texts of so many characters together are encoded sooner than another thread would begin to.
    """

    model: str
    dimensions: int
    fingerprint: str | None
    query_prompt: str
    document_prompt: str
    instant_chars: int

    def encode(self, texts: Sequence[str]) -> list[Vector | None]:
        """One unit vector for each text, or ``None``."""
        ...


class BatchingEmbedder:
    """An encoder behind one thread: texts that arrive while a batch is computed form the next one."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self.model = encoder.model
        self.dimensions = encoder.dimensions
        self.fingerprint = encoder.fingerprint
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="embed")
        self._waiting: list[tuple[Sequence[str], asyncio.Future[list[Vector | None]]]] = []
        self._running: asyncio.Task[None] | None = None
        self._cache: OrderedDict[str, Vector | None] = OrderedDict()

    async def embed(self, texts: Sequence[str]) -> list[Vector | None]:
        """One unit vector for each text; ``None`` for a text in which the model finds nothing."""
        prompt = self._encoder.document_prompt
        return await self._embedded([prompt + text for text in texts] if prompt else texts)

    async def embed_query(self, text: str) -> Vector | None:
        """The unit vector of a question; ``None`` where the model finds nothing in it."""
        (vector,) = await self._embedded([self._encoder.query_prompt + text])
        return vector

    async def _embedded(self, texts: Sequence[str]) -> list[Vector | None]:
        wanted = dict.fromkeys(texts)
        known = {text: self._cache[text] for text in wanted if text in self._cache}
        missing = [text for text in wanted if text not in known]
        if missing and sum(map(len, missing)) <= self._encoder.instant_chars:
            known |= dict(zip(missing, self._encoder.encode(missing), strict=True))
        elif missing:
            future: asyncio.Future[list[Vector | None]] = asyncio.get_running_loop().create_future()
            self._waiting.append((missing, future))
            if self._running is None or self._running.done():
                self._running = asyncio.create_task(self._drain())
            known |= dict(zip(missing, await future, strict=True))
        for text, vector in known.items():
            if len(text) <= CACHED_CHARS:
                self._cache[text] = vector
                self._cache.move_to_end(text)
        while len(self._cache) > CACHED_TEXTS:
            self._cache.popitem(last=False)
        return [known[text] for text in texts]

    async def _drain(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            taken, self._waiting = self._waiting[:BATCH], self._waiting[BATCH:]
            texts = [text for wanted, _ in taken for text in wanted]
            try:
                vectors = await loop.run_in_executor(self._thread, self._encoder.encode, texts)
            except Exception as error:  # noqa: BLE001 - whatever the model raised belongs to those who wait for it
                for _, future in taken:
                    if not future.done():
                        future.set_exception(error)
                continue
            start = 0
            for wanted, future in taken:
                if not future.done():
                    future.set_result(vectors[start : start + len(wanted)])
                start += len(wanted)

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown(wait=True)

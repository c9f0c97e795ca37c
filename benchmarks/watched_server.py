"""A server that watches its own event loop: how much later than asked a timer fires.

Run by `isolation.py`: python benchmarks/watched_server.py DATA. It prints one line of JSON when it
serves, and the lags in milliseconds when it is told to stop by a line on its input.
"""

import asyncio
import gc
import json
import sys
from pathlib import Path
from time import perf_counter

import uvicorn
import uvloop

from memplane.bootstrap import DEFAULT_TENANT, Application, prepare
from memplane.entrypoints.cli.admin.first_keys import ensure_keys
from memplane.entrypoints.cli.admin.server_process import SWITCH_SECONDS
from memplane.entrypoints.http.app import create_app
from memplane.settings import Settings

PERIOD = 0.005


async def watch(lags: list[float]) -> None:
    """Note the lag of one timer after the other."""
    while True:
        due = perf_counter() + PERIOD
        await asyncio.sleep(PERIOD)
        lags.append(max(0.0, (perf_counter() - due) * 1e3))


async def serve(settings: Settings, url: str) -> list[float]:
    """Serve until a line comes in; the lags."""
    wired = Application(settings, url)
    app = create_app(wired, max_body_bytes=settings.max_body_bytes)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", loop="none"))
    serving = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
        await asyncio.sleep(PERIOD)
    await wired.ensure_tenant(DEFAULT_TENANT)
    keys = await ensure_keys(wired, settings.data)
    port = server.servers[0].sockets[0].getsockname()[1]
    gc.freeze()  # as `memplane serve` does, and below
    told = {"url": f"http://127.0.0.1:{port}", "keys": dict(keys.agents), "admin": keys.admin}
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()
    lags: list[float] = []
    watching = asyncio.create_task(watch(lags))
    await asyncio.to_thread(sys.stdin.readline)
    watching.cancel()
    server.should_exit = True
    await serving
    return lags


def main() -> int:
    """Serve on a data folder."""
    sys.setswitchinterval(SWITCH_SECONDS)
    settings = Settings(data=Path(sys.argv[1]))
    prepared = prepare(settings)
    try:
        lags = uvloop.run(serve(settings, prepared.url))
    finally:
        prepared.stop()
    sys.stdout.write(json.dumps([round(lag, 3) for lag in lags]))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The HTTP application."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

import memplane
from memplane.bootstrap import Application
from memplane.domain.errors import SettingsError
from memplane.entrypoints.http import docs_page
from memplane.entrypoints.http.middleware import idempotency_header, problems
from memplane.entrypoints.http.middleware.body_limit import BodyLimit
from memplane.entrypoints.http.routes import (
    audit,
    checkpoints,
    conflicts,
    consents,
    entities,
    erasure,
    feedback,
    health,
    inspection,
    jobs,
    keys,
    memories,
    policy,
    quotas,
    recovery,
    reverts,
    sessions,
    tombstones,
    tool_runs,
    tracking,
    transfer,
    user_merges,
)
from memplane.entrypoints.logs import configure
from memplane.settings import Settings


def create_app(wired: Application, *, max_body_bytes: int) -> FastAPI:
    """The HTTP face of a wired application, which it opens and closes."""
    app = FastAPI(
        title="Memplane",
        version=memplane.__version__,
        summary="The memory plane for teams of AI agents.",
        lifespan=_lifespan,
        docs_url=None,  # FastAPI's own pages load their scripts from elsewhere
        redoc_url=None,
    )
    app.state.memplane = wired
    app.add_middleware(BodyLimit, limit=max_body_bytes)
    problems.install(app)
    idempotency_header.install(app)
    app.include_router(memories.router)
    app.include_router(feedback.router)
    app.include_router(inspection.router)
    app.include_router(entities.router)
    app.include_router(tool_runs.router)
    app.include_router(sessions.router)
    app.include_router(checkpoints.router)
    app.include_router(conflicts.router)
    app.include_router(tombstones.router)
    app.include_router(consents.router)
    app.include_router(keys.router)
    app.include_router(recovery.router)
    app.include_router(reverts.router)
    app.include_router(transfer.router)
    app.include_router(erasure.router)
    app.include_router(user_merges.router)
    app.include_router(audit.router)
    app.include_router(jobs.router)
    app.include_router(jobs.gc_router)
    app.include_router(tracking.router)
    app.include_router(policy.router)
    app.include_router(quotas.router)
    app.include_router(health.router)
    app.include_router(docs_page.router)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    wired: Application = app.state.memplane
    await wired.open()
    try:
        wired.serve()
        await wired.work_beside()
        yield
    finally:
        await wired.close()


def from_environment() -> FastAPI:
    """The application on the database that ``MEMPLANE_DATABASE_URL`` names, for any ASGI server.

    Raises:
        SettingsError: no database is named.
    """
    settings = Settings()
    if not logging.getLogger().handlers:  # another server than `memplane serve`, that leaves logs to the application
        configure(settings.log_level, settings.log_format)
    if settings.database_url is None:
        raise SettingsError("MEMPLANE_DATABASE_URL is not set; `memplane serve` starts the embedded database by itself")
    wired = Application(settings, settings.database_url.get_secret_value())
    return create_app(wired, max_body_bytes=settings.max_body_bytes)

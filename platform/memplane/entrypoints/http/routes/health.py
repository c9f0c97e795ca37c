"""Whether the server lives, and whether it can answer."""

from fastapi import APIRouter, Response

import memplane
from memplane.contracts.memories import Health
from memplane.domain.errors import StorageError
from memplane.entrypoints.http.dependencies import App

router = APIRouter(tags=["health"])


@router.get("/healthz", summary="Alive")
async def healthz() -> Health:
    """The process answers."""
    return Health(status="ok", version=memplane.__version__)


@router.get("/readyz", responses={503: {"model": Health}}, summary="Ready")
async def readyz(app: App, response: Response) -> Health:
    """The database answers too."""
    try:
        await app.storage.ready()
    except StorageError:
        response.status_code = 503
        return Health(status="unavailable", version=memplane.__version__)
    return Health(status="ok", version=memplane.__version__, policy=app.policies.current.digest)

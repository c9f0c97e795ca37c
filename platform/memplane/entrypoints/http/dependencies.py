"""What every route needs: the application, and who is calling."""

from typing import Annotated

from fastapi import Depends, Query, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from memplane.bootstrap import Application
from memplane.contracts.base import Name
from memplane.domain.identity.principal import Principal

_bearer = HTTPBearer(auto_error=False, description="An API key `mp_…`, or a token of the operator's issuer.")


async def application(request: Request) -> Application:  # async: a dependency that is not costs a change of threads
    """The wired application."""
    wired: Application = request.app.state.memplane
    return wired


App = Annotated[Application, Depends(application)]


async def credential_of(request: Request) -> str | None:
    """What the caller shows, whether or not it holds."""
    shown = await _bearer(request)
    return shown.credentials if shown else None


async def authenticate(request: Request, credential: str | None) -> Principal:
    """The caller, by its credential; found out once for each request.

    Raises:
        Unauthenticated: there is none, or it does not hold.
    """
    wired: Application = request.app.state.memplane
    found = await wired.authenticate(credential)
    request.state.principal = found
    return found


async def principal(
    request: Request, _shown: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
) -> Principal:
    """The caller that the guard let in."""
    found: Principal = request.state.principal
    return found


Caller = Annotated[Principal, Depends(principal)]
Dry = Annotated[bool, Query(description="Answer what would happen, and store nothing.")]
Agent = Annotated[Name | None, Query(description="The agent to speak as; the key's own unless it may act for others.")]

"""What every route needs: the application, and who is calling."""

from typing import Annotated

from fastapi import Depends, Query, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from memplane.bootstrap import Application
from memplane.contracts.base import Name
from memplane.domain.principal import Principal

_bearer = HTTPBearer(auto_error=False, description="An API key `mp_…`, or a token of the operator's issuer.")


async def application(request: Request) -> Application:  # async: a dependency that is not costs a change of threads
    """The wired application."""
    wired: Application = request.app.state.memplane
    return wired


App = Annotated[Application, Depends(application)]


async def principal(
    app: App, credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
) -> Principal:
    """The authenticated caller."""
    return await app.authenticate(credentials.credentials if credentials else None)


Caller = Annotated[Principal, Depends(principal)]
Agent = Annotated[Name | None, Query(description="The agent to speak as; the key's own unless it may act for others.")]

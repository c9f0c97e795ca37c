"""The route of quotas, for administrators."""

from fastapi import APIRouter

from memplane.application.limits.quotas import QuotaUsage
from memplane.contracts.base import Name
from memplane.contracts.quotas import Quota, Quotas, QuotaSet
from memplane.entrypoints.http.dependencies import App, Caller
from memplane.entrypoints.http.middleware.guard import AuthenticatedRoute
from memplane.entrypoints.http.routes.memories import failure_responses

router = APIRouter(prefix="/v1/quotas", route_class=AuthenticatedRoute, tags=["administration"])


@router.get("", responses=failure_responses(409), summary="What is used of the quotas")
async def quotas(app: App, caller: Caller, user_id: Name | None = None) -> Quotas:
    """How much is stored in the tenant, and of a user, and how much may be. For `admin`."""
    found = await app.quotas(caller, user_id)
    return Quotas(tenant=_of(found.tenant), user=_of(found.user), resets_at=found.resets_at)


def _of(standing: QuotaUsage | None) -> QuotaSet | None:
    if standing is None:
        return None
    usage, limits = standing.usage, standing.limits
    return QuotaSet(
        memories=Quota(used=usage.memories, limit=limits.memories),
        bytes=Quota(used=usage.bytes, limit=limits.bytes),
        writes_per_day=Quota(used=usage.writes, limit=limits.writes_per_day),
    )

"""`memplane quotas`: how much is stored, and how much may be, over HTTP."""

from memplane.contracts.quotas import Quota, QuotaSet
from memplane.entrypoints.cli.options import DEFAULT_URL, AdminKey, AnyUser, Data, Url
from memplane.entrypoints.cli.output import Json, add, plain, show, table
from memplane.entrypoints.cli.session import operating


def quotas(
    *, user: AnyUser = None, url: Url = DEFAULT_URL, key: AdminKey = None, data: Data = None, json: Json = False
) -> None:
    """Show how much is stored in the tenant, and of a user, and how much may be. For administrators."""
    with operating(url, key, None, data) as opened:
        found = opened.client.quotas(user)
    rows = table("of", "quota", "used", "limit")
    sets: list[tuple[str, QuotaSet | None]] = [("tenant", found.tenant), (f"user {user}", found.user)]
    for of, each in sets:
        for name in QuotaSet.model_fields if each is not None else ():
            quota: Quota = getattr(each, name)
            add(rows, of, name.replace("_", " "), quota.used, "none" if quota.limit is None else quota.limit)
    limited = any(each is not None and each.writes_per_day.limit is not None for _, each in sets)
    reset = f"writes are counted again from {found.resets_at:%Y-%m-%d %H:%M} UTC"
    resets = plain(reset if limited else "writes are counted only where the policy limits them", "dim")
    show(found, rows, resets, as_json=json)

"""How much is stored, and how much may be."""

from memplane.contracts.base import Message, Time


class Quota(Message):
    """One quota."""

    used: int
    limit: int | None
    """Null: without limit."""


class QuotaSet(Message):
    """The quotas of a tenant, or of a user."""

    memories: Quota
    """Memories that are not deleted."""
    bytes: Quota
    """UTF-8 bytes of the texts of memories and turns."""
    writes_per_day: Quota
    """Memories and turns that were sent to be stored or changed; counted only where the policy limits them."""


class Quotas(Message):
    """What is used of the quotas that `writing.yaml` sets."""

    tenant: QuotaSet | None
    """Null for a key that is bound to users."""
    user: QuotaSet | None
    """Of the user who was named."""
    resets_at: Time
    """When the count of writes begins again: at midnight UTC."""

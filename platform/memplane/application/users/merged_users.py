"""Users that were merged into others: who still sends the former name is told the new one."""

from memplane.application.ports import TenantReader
from memplane.domain.errors import UserMerged
from memplane.domain.identity.principal import Principal


def refuse_alias(principal: Principal, into: str | None) -> None:
    """Stop here when a user was merged into another one.

    Args:
        principal: the caller, who is told the other name if its key reaches that user.
        into: the other user; ``None`` for a user that was not merged.

    Raises:
        UserMerged: it was.
    """
    if into is None:
        return
    if principal.users is None or into in principal.users:
        raise UserMerged(f"user_id: this user was merged into '{into}'; use that name", into=into)
    raise UserMerged("user_id: this user was merged into another one, which this key does not reach")


async def require_unmerged(reader: TenantReader, principal: Principal, user_id: str | None) -> None:
    """Stop here when the user that a read names was merged into another one.

    Raises:
        UserMerged: it was.
    """
    if user_id is not None:
        refuse_alias(principal, await reader.merged_into(user_id))

"""Who may have to do with checkpoints."""

from collections.abc import Iterable
from datetime import datetime

from memplane.application.transaction import CheckpointStore
from memplane.application.users.merged_users import refuse_alias
from memplane.domain.errors import CategoryForbidden, UserErased, VisibilityForbidden
from memplane.domain.identity.principal import ALL, KeyScope, Principal
from memplane.domain.memory.memory import Visibility
from memplane.domain.policy.policy import Policy
from memplane.domain.privacy.erasure import made_at


def let_in(principal: Principal, policy: Policy) -> None:
    """Refuse who may not read conversations.

    Raises:
        ScopeForbidden: the key is not for checkpoints.
        VisibilityForbidden: its trust level does not see the private store.
        CategoryForbidden: none of its agents reads turns.
    """
    principal.require(KeyScope.CHECKPOINT)
    if Visibility.PRIVATE not in policy.visible(principal.trust):
        raise VisibilityForbidden(
            f"a checkpoint holds conversations, which trust level '{principal.trust}' does not see",
            trust=principal.trust.value,
        )
    speakers = {principal.agent or "", *principal.act_for}
    if (
        not principal.is_operator
        and ALL not in speakers
        and not any(policy.turns_category in policy.allowlist(each).read for each in speakers)
    ):
        raise CategoryForbidden(
            f"a checkpoint holds conversations; no agent of this key may read '{policy.turns_category}'",
            categories=[policy.turns_category],
        )


async def refuse_gone(
    principal: Principal, store: CheckpointStore, user_id: str, asked: datetime, *based_on: str | None
) -> None:
    """Stop here when the state that is to be stored is of somebody who was erased since, or merged into another user.

    Args:
        principal: the caller.
        store: of the transaction.
        user_id: the user.
        asked: when the request came.
        based_on: checkpoints that it goes on from: a run that began before an erasure still holds the conversation.

    Raises:
        UserMerged: the user was merged into another one.
        UserErased: the user is being erased, or was since.
    """
    erased = await store.erasure_times(user_id)
    refuse_alias(principal, await store.merged_into(user_id))
    refuse_finished(erased, asked, *based_on)


def refuse_finished(erased: Iterable[datetime | None], asked: datetime, *based_on: str | None) -> None:
    """The same, once it is known when the user was erased; ``None`` for an erasure under way.

    Raises:
        UserErased: the user is being erased, or was since.
    """
    for finished in erased:
        began = [moment for each in based_on if (moment := made_at(each)) is not None]
        if finished is None or min((asked, *began)) <= finished:
            raise UserErased("user_id: this user is being erased, or was since this run began; nothing was stored")

"""Who may have to do with checkpoints."""

from memplane.domain.errors import CategoryForbidden, VisibilityForbidden
from memplane.domain.memory import Visibility
from memplane.domain.policy import Policy
from memplane.domain.principal import ALL, KeyScope, Principal


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
    if ALL not in speakers and not any(policy.turns_category in policy.allowlist(each).read for each in speakers):
        raise CategoryForbidden(
            f"a checkpoint holds conversations; no agent of this key may read '{policy.turns_category}'",
            categories=[policy.turns_category],
        )

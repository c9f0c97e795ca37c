"""A key of several users lists their newest memories together, and nobody else's."""

import pytest

from memplane.domain.policy.capabilities import Capability
from support.callers import Tenant

USERS = ("ana", "ben", "cid")
WORDS = (
    "piano", "boat", "horse", "garden", "canoe", "kite", "lamp", "tent", "drum", "sled", "clock", "desk", "ladder",
    "kettle", "violin", "mirror",
)  # fmt: skip


def test_the_newest_of_all_its_users_come_in_the_order_of_time(tenant: Tenant) -> None:
    writer, bound = tenant.caller("supervisor"), tenant.caller("supervisor", users=list(USERS))
    stored = [
        writer.remember(f"The user bought a {word}.", "event", user_id=(*USERS, "dan")[nth % 4])
        for nth, word in enumerate(WORDS)
    ]
    theirs = [each for nth, each in enumerate(stored) if nth % 4 != 3]
    assert bound.found("", top_k=50) == theirs[::-1]
    assert bound.found("", top_k=5, related=False) == theirs[::-1][:5]
    assert bound.found("", filters={"user_id": "ben"}) == [stored[nth] for nth in (13, 9, 5, 1)]
    assert writer.found("", top_k=50) == stored[::-1]  # the control


@pytest.mark.needs(Capability.SEVERAL_TENANTS)
def test_another_tenant_s_users_of_the_same_names_are_not_listed(tenant: Tenant, other_tenant: Tenant) -> None:
    mine = tenant.caller("supervisor").remember("The user bought a gong.", "event", user_id="ana")
    theirs = other_tenant.caller("supervisor").remember("The user bought a tuba.", "event", user_id="ana")
    for each, expected in ((tenant, mine), (other_tenant, theirs)):
        assert each.caller("supervisor", users=list(USERS)).found("", top_k=50) == [expected]

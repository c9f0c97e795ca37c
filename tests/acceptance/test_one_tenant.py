"""A SQLite file has one tenant: another one is refused in words that say what to use instead."""

import pytest

from memplane.application.keys.api_keys import NewKey
from memplane.domain.errors import NotSupported
from memplane.domain.policy.policy import Trust
from support.callers import Tenant
from support.serving import RunningServer

KEY = NewKey(agent="planner", trust=Trust.FULL)
EVERY_KEY = "SELECT DISTINCT tenant_id FROM api_keys"


def test_a_second_tenant_is_refused_and_the_first_goes_on(sqlite_server: RunningServer) -> None:
    wired, tenant = sqlite_server.wired, Tenant(sqlite_server)
    planner = tenant.caller("planner")
    with pytest.raises(NotSupported, match="SQLite does not have several_tenants") as refused:
        sqlite_server.run(wired.keys.create("acme", KEY))
    assert "instead: PostgreSQL" in str(refused.value)
    with pytest.raises(NotSupported, match="several_tenants"):
        sqlite_server.run(wired.ensure_tenant("acme"))
    assert tenant.rows(f"{EVERY_KEY} WHERE tenant_id = %(tenant)s") == [{"tenant_id": "default"}]
    assert tenant.rows(f"{EVERY_KEY} WHERE tenant_id <> %(tenant)s") == []
    assert [planner.remember("The hall is booked.")] == planner.found("hall")


def test_postgresql_takes_a_second_tenant(postgres_server: RunningServer) -> None:
    """The control: the same calls, where several tenants are."""
    tenants = [Tenant(postgres_server), Tenant(postgres_server)]
    for tenant in tenants:
        postgres_server.run(postgres_server.wired.keys.create(tenant.name, KEY))
        assert tenant.rows(f"{EVERY_KEY} WHERE tenant_id = %(tenant)s") == [{"tenant_id": tenant.name}]

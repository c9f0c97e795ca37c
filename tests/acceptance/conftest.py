"""The acceptance tests run on both kinds of database; what only one of them has is declared by the test."""

from collections.abc import Callable, Iterator

import pytest

from memplane.domain.identity.principal import KeyScope
from memplane.domain.policy.capabilities import MEANINGS, POSTGRES, SQLITE, Capability
from support.callers import Caller, Tenant
from support.issuer import AUDIENCE, RunningIssuer, running_issuer
from support.model_server import ModelServer, model_server
from support.nights import Night
from support.serving import RunningServer
from support.thinking import named
from support.trusting import Trust, Trusting

STORAGES = {"postgres": POSTGRES, "sqlite": SQLITE}


@pytest.fixture(params=STORAGES)
def storage(request: pytest.FixtureRequest) -> str:
    """The kind of database that the server runs on; skips it when it lacks what the test needs."""
    capabilities = STORAGES[request.param]
    needed: list[Capability] = [each for mark in request.node.iter_markers("needs") for each in mark.args]
    for capability in needed:
        if capability not in capabilities:
            pytest.skip(f"{capabilities.storage} does not have {capability}: {MEANINGS[capability].what}")
    return str(request.param)


@pytest.fixture
def admin(tenant: Tenant) -> Caller:
    """One who may do everything in the tenant."""
    return tenant.caller(None, act_for=["*"], scopes=tuple(KeyScope))


@pytest.fixture
def caller(tenant: Tenant) -> Caller:
    """A supervisor."""
    return tenant.caller("supervisor")


@pytest.fixture
def night(tenant: Tenant, caller: Caller) -> Night:
    """The night's work for the tenant, which has a key."""
    del caller
    return Night(tenant)


@pytest.fixture
def model() -> Iterator[ModelServer]:
    """A language model that answers what the test says."""
    with model_server() as running:
        yield running


@pytest.fixture
def asking(model: ModelServer, start_server: Callable[..., RunningServer]) -> Tenant:
    """A tenant of a server with that model."""
    made = Tenant(start_server(**named(model)))
    made.server.run(made.server.wired.thinking.ready())
    return made


@pytest.fixture
def running() -> Iterator[RunningIssuer]:
    """An issuer that can go down and come back."""
    with running_issuer() as issuer:
        yield issuer


@pytest.fixture
def trust(start_server: Callable[..., RunningServer], running: RunningIssuer) -> Trust:
    """Starts a server that trusts the issuer, with further settings."""

    def started(**settings: object) -> Trusting:
        chosen = {"oidc_issuer": running.issuer.url, "oidc_audience": AUDIENCE} | settings
        server = start_server(**chosen)
        tenant = Tenant(server)
        tenant.caller()  # makes it
        return Trusting(server, running, tenant)

    return started


@pytest.fixture
def trusting(trust: Trust) -> Trusting:
    """A server that trusts the issuer, with the usual settings."""
    return trust()

"""What tests of every kind share: one PostgreSQL for the session, databases of their own, a server, tenants."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from support.callers import Caller, Tenant
from support.cluster import SELECTION, Cluster, Database, Databases
from support.documented import UNTOLD
from support.files import File, Files
from support.serving import (
    RunningApplication,
    RunningServer,
    SharedServer,
    running_application,
    running_server,
    shared_server,
)
from support.sharing import Owner, ask

_OWNER = pytest.StashKey[Owner]()
_ADDRESS = "memplane_postgres"


def pytest_configure(config: pytest.Config) -> None:
    """The operator's own settings stay out of the tests; the process that no other started owns PostgreSQL."""
    for name in [name for name in os.environ if name.startswith("MEMPLANE_") and name != SELECTION]:
        del os.environ[name]
    if not hasattr(config, "workerinput"):
        config.stash[_OWNER] = Owner()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:  # noqa: ANN401 - pytest-xdist's own type
    """Tell a worker whom to ask for PostgreSQL."""
    node.workerinput[_ADDRESS] = node.config.stash[_OWNER].listen()


def pytest_unconfigure(config: pytest.Config) -> None:
    """End PostgreSQL, if it was ever started."""
    if _OWNER in config.stash:
        config.stash[_OWNER].stop()


@pytest.fixture(autouse=True)
def _documented(request: pytest.FixtureRequest) -> Iterator[None]:
    """No server that a test started answers what its document does not tell of, but for what the test breaks itself."""
    UNTOLD.clear()
    yield
    assert set(UNTOLD) <= {each for mark in request.node.iter_markers("untold") for each in mark.args}


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Cluster:
    """The session's PostgreSQL server."""
    if _OWNER in request.config.stash:
        return request.config.stash[_OWNER].cluster()
    return ask(request.config.workerinput[_ADDRESS])


@pytest.fixture(scope="session")
def databases(cluster: Cluster) -> Iterator[Databases]:
    """Makes and drops databases on it."""
    made = Databases(cluster)
    yield made
    made.close()


@pytest.fixture
def database(databases: Databases) -> Iterator[Database]:
    """A migrated database for this test alone."""
    made = databases.create()
    yield made
    databases.drop(made)


@pytest.fixture
def application(database: Database) -> Iterator[RunningApplication]:
    """An opened application on a database for this test alone."""
    with running_application(database) as running:
        yield running


@pytest.fixture
def storage() -> str:
    """The kind of database that the server runs on; the acceptance tests run on each kind."""
    return "postgres"


@pytest.fixture(scope="session")
def postgres_server(databases: Databases) -> Iterator[RunningServer]:
    """An HTTP server on PostgreSQL that the tests of one process share: each of them has a tenant of its own on it."""
    shared = databases.create()
    with running_server(shared) as running:
        yield running
    databases.drop(shared)


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """Makes SQLite files and removes them."""
    return Files(tmp_path_factory.mktemp("files"))


@pytest.fixture
def file(files: Files) -> Iterator[File]:
    """A migrated SQLite file for this test alone."""
    made = files.create()
    yield made
    files.drop(made)


@pytest.fixture(scope="session")
def file_server() -> Iterator[SharedServer]:
    """The HTTP server of one process behind which each test puts a file of its own."""
    with shared_server() as shared:
        yield shared


@pytest.fixture
def sqlite_server(file_server: SharedServer, file: File) -> Iterator[RunningServer]:
    """An HTTP server on a SQLite file for this test alone."""
    with file_server.serving(file) as running:
        yield running


@pytest.fixture
def server(storage: str, request: pytest.FixtureRequest) -> RunningServer:
    """An HTTP server, on which the test has a tenant of its own."""
    found: RunningServer = request.getfixturevalue(f"{storage}_server")
    return found


@pytest.fixture
def start_server(storage: str, request: pytest.FixtureRequest) -> Iterator[Callable[..., RunningServer]]:
    """Starts HTTP servers with settings of their own, on a database for this test alone."""
    database: Database | File = request.getfixturevalue("database" if storage == "postgres" else "file")
    with ExitStack() as started:
        yield lambda **settings: started.enter_context(running_server(database, **settings))


@pytest.fixture
def tenant(server: RunningServer) -> Tenant:
    """A tenant that nobody has written to."""
    return Tenant(server)


@pytest.fixture
def other_tenant(server: RunningServer) -> Tenant:
    """Another tenant, on the same server."""
    return Tenant(server)


@pytest.fixture
def supervisor(tenant: Tenant) -> Caller:
    """The tenant's supervisor, who reads and writes most categories."""
    return tenant.caller("supervisor")


@pytest.fixture
def planner(tenant: Tenant) -> Caller:
    """The tenant's planner: goals, tasks and projects."""
    return tenant.caller("planner")


@pytest.fixture
def executor(tenant: Tenant) -> Caller:
    """The tenant's executor, the only one who has procedures."""
    return tenant.caller("executor")


@pytest.fixture
def nobody(server: RunningServer) -> Caller:
    """One who calls without a key."""
    return Caller(server.client)

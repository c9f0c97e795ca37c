"""What `memplane doctor` says of the keys that may record what people say."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from memplane.adapters.embeddings.wordllama import DIMENSIONS
from memplane.adapters.postgres.provisioning import check_schema
from memplane.adapters.postgres.storage import PostgresStorage
from memplane.adapters.sqlite.provisioning import checked_engine
from memplane.adapters.sqlite.storage import SqliteStorage
from memplane.application.records import StoredKey
from memplane.domain.errors import SchemaMismatch
from memplane.domain.identity.principal import ALL, KeyScope, Reach
from memplane.domain.memory.memory import Visibility
from memplane.domain.policy.policy import Policy, Trust
from memplane.entrypoints.cli.checks.check_results import CheckSkipped, Doubtful

CHECK = f"keys with {KeyScope.USER_TURNS}"
ADVICE = (
    f"`memplane keys create --agent supervisor --scope memory:read --scope memory:write --scope {KeyScope.USER_TURNS}`"
    " makes one for who records the talk with people"
)


def keys_of_file(path: Path, policy: Policy | None) -> str:
    """The keys of a SQLite file.

    Raises:
        Skipped: it is not there, or of another version.
        Doubtful: there are keys, and none has the scope.
    """
    if not path.exists():
        raise CheckSkipped("not made yet; `memplane init` or `memplane serve` makes it")
    try:
        checked_engine(path).dispose()
    except SchemaMismatch:
        raise CheckSkipped("needs the schema of this version") from None
    return _named(asyncio.run(_keys(SqliteStorage(path, dimensions=DIMENSIONS))), policy)


def keys_of_server(url: str, policy: Policy | None) -> str:
    """The keys of every tenant of a PostgreSQL database.

    Raises:
        Skipped: it is of another version.
        Doubtful: there are keys, and none has the scope.
    """
    try:
        check_schema(url)
    except SchemaMismatch:
        raise CheckSkipped("needs the schema of this version") from None
    return _named(asyncio.run(_keys(PostgresStorage(url, pool_size=2))), policy)


async def _keys(storage: PostgresStorage | SqliteStorage) -> list[StoredKey]:
    """The keys that work, tenant by tenant."""
    try:
        await storage.open()
        found: list[StoredKey] = []
        for tenant in await storage.tenants():
            found += await storage.write(Reach(tenant), lambda uow: uow.keys.all())
    finally:
        await storage.close()
    now = datetime.now(UTC)
    return [key for key in found if key.valid(now)]


def _named(keys: Sequence[StoredKey], policy: Policy | None) -> str:
    """Those that have the scope; of those to whom the policy allows no turns only how many they are."""
    holding = [key for key in keys if KeyScope.USER_TURNS in key.scopes]
    if keys and not holding:
        raise Doubtful("none: what people say is stored as unvouched, and nothing is drawn from it")
    telling = [key for key in holding if policy is None or _records(policy, key)]
    found = ", ".join(f"{key.tenant}/{key.key_id} ({key.agent or 'of no agent'})" for key in telling) or "none"
    rest = len(holding) - len(telling)
    return f"{found}; {rest} more, which the policy lets record no turns" if rest else found


def _records(policy: Policy, key: StoredKey) -> bool:
    """Whether the policy lets a key record turns."""
    level = policy.trust[Trust(key.trust)]
    agents = policy.allowlists if ALL in key.act_for else {key.agent, *key.act_for}
    writes = any(name in agents and policy.turns_category in may.write for name, may in policy.allowlists.items())
    return writes and level.default_write is not None and Visibility.PRIVATE in level.sees

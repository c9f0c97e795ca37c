"""The keys of a single-user server, made at its first start."""

import asyncio
from pathlib import Path

from memplane.adapters.key_file import KeyFile
from memplane.application.keys import NewKey
from memplane.bootstrap import DEFAULT_TENANT, Application
from memplane.domain.errors import Unauthenticated
from memplane.domain.policy import Trust
from memplane.domain.principal import KeyScope


async def ensure_keys(application: Application, folder: Path) -> KeyFile:
    """Make the default tenant's keys on first start: one for each agent of the policy, and the administrator's.

    A key file whose administrator's key this database knows is kept; agents that are new in the policy get a key.
    """
    allowlists = application.policies.current.allowlists
    kept = KeyFile.read(folder)
    if kept is not None and not await _known(application, kept.admin):
        kept = None
    agents = dict(kept.agents) if kept else {}
    admin = kept.admin if kept else None
    if admin is None:
        new = NewKey(agent=None, trust=Trust.FULL, scopes=tuple(KeyScope), act_for=("*",), label="administrator")
        _, admin = await application.keys.create(DEFAULT_TENANT, new)
    for agent in (missing := [agent for agent in allowlists if agent not in agents]):
        new = NewKey(agent=agent, trust=allowlists[agent].trust, label="made at first start")
        _, agents[agent] = await application.keys.create(DEFAULT_TENANT, new)
    file = KeyFile(admin, agents)
    if kept is None or missing:
        await asyncio.to_thread(file.write, folder)
    return file


async def _known(application: Application, credential: str) -> bool:
    try:
        await application.keys.authenticate(credential)
    except Unauthenticated:
        return False
    return True

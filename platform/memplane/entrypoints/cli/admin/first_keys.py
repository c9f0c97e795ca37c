"""The keys of a single-user server, made at its first start."""

import asyncio
from pathlib import Path

from memplane.adapters.files.key_file import KeyFile
from memplane.application.keys.api_keys import NewKey, first_scopes
from memplane.bootstrap import DEFAULT_TENANT, Application
from memplane.domain.errors import AuthenticationRequired
from memplane.domain.identity.principal import KeyScope
from memplane.domain.policy.policy import Trust


async def ensure_keys(application: Application, folder: Path) -> KeyFile:
    """Make the default tenant's keys on first start: one for each agent of the policy, and the administrator's.

    A key file whose administrator's key this database knows is kept; agents that are new in the policy get a key. Of
    all these one has ``turns:user``, see :func:`first_scopes`: the administrator's has every other scope.
    """
    policy = application.policies.current
    allowlists = policy.allowlists
    kept = KeyFile.read(folder)
    if kept is not None and not await _known(application, kept.admin):
        kept = None
    agents = dict(kept.agents) if kept else {}
    admin = kept.admin if kept else None
    if admin is None:
        every = tuple(scope for scope in KeyScope if scope != KeyScope.USER_TURNS)
        new = NewKey(agent=None, trust=Trust.FULL, scopes=every, act_for=("*",), label="administrator")
        _, admin = await application.keys.create(DEFAULT_TENANT, new)
    for agent in (missing := [agent for agent in allowlists if agent not in agents]):
        scopes = first_scopes(policy, agent)
        new = NewKey(agent=agent, trust=allowlists[agent].trust, scopes=scopes, label="made at first start")
        _, agents[agent] = await application.keys.create(DEFAULT_TENANT, new)
    file = KeyFile(admin, agents)
    if kept is None or missing:
        await asyncio.to_thread(file.write, folder)
    return file


async def _known(application: Application, credential: str) -> bool:
    try:
        await application.keys.authenticate(credential)
    except AuthenticationRequired:
        return False
    return True

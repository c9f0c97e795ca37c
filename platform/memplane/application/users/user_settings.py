"""What a user set: the time zone by which relative dates are resolved."""

from dataclasses import dataclass

from memplane.application.memories.authorization import require_full
from memplane.application.memories.gateway import Gateway, Write, clean_id
from memplane.application.records import OperationalEvent
from memplane.domain.identity.principal import KeyScope, Principal
from memplane.domain.language.time_zones import time_zone


@dataclass(frozen=True, slots=True)
class TimeZoneSet:
    """A user's time zone, and whether it was another one before."""

    user_id: str
    name: str | None
    changed: bool


class UserSettings:
    """Reads and changes what users set; only fully trusted keys change it, since it moves dates of everything said."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def time_zone(self, principal: Principal, user_id: str) -> str | None:
        """The user's time zone.

        Raises:
            ScopeForbidden: the key lacks ``memory:read``.
            UserForbidden: it may not touch the user.
        """
        principal.require(KeyScope.READ)
        user = principal.touch(clean_id(user_id, "user_id") or "")
        return (await self._gateway.time_zones(principal, [user])).get(user)

    async def set_time_zone(
        self, principal: Principal, user_id: str, name: str | None, agent: str | None = None
    ) -> TimeZoneSet:
        """Set the user's time zone, or remove it.

        Raises:
            ScopeForbidden: the key lacks ``memory:write``.
            TrustTooLow: it is not fully trusted.
            UserForbidden, AgentForbidden: it does not reach the user or the agent.
            Invalid: there is no such time zone.
        """
        policy, now = self._gateway.begin(principal)
        require_full(principal, "set a user's time zone")
        principal.act_as(agent)
        user = principal.touch(clean_id(user_id, "user_id") or "")
        if name is not None:
            time_zone(name)

        async def work(write: Write) -> TimeZoneSet:
            changed = await write.uow.settings.set_time_zone(user, name, principal.actor, now)
            event = OperationalEvent("hotpath", "time_zone", "ok" if changed else "skipped", now, user)
            await write.uow.journal.events([event])
            return TimeZoneSet(user, name, changed)

        return await self._gateway.run(principal, policy, now, work, users=[user])

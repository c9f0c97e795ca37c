"""The policy in force, for administrators over the network: look at it, check a candidate, load the files again."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from memplane.application.limits.offload import in_thread
from memplane.application.memories.authorization import require_full
from memplane.application.ports import Policies
from memplane.domain.errors import PolicyError, PolicyRejected, UserForbidden
from memplane.domain.identity.principal import KeyScope, Principal
from memplane.domain.policy.policy import Policy


class PolicySource(Policies, Protocol):
    """Where the policy comes from."""

    @property
    def files(self) -> Mapping[str, str]:
        """The text of each file of the policy in force, by name."""
        ...

    @property
    def last_error(self) -> PolicyError | None:
        """Why the newest state of the files was not taken; ``None`` when it was."""
        ...

    def check(self, files: Mapping[str, str]) -> Policy:
        """The policy in force with other files in the place of some of its own; it does not come into force.

        Raises:
            PolicyError: it is wrong.
        """
        ...

    def reload(self) -> Policy:
        """Read the files again.

        Raises:
            PolicyError: they are wrong; the policy before stays in force.
        """
        ...


@dataclass(frozen=True, slots=True)
class PolicyInForce:
    """The policy in force, the text of its files, and why a newer state of them was not taken."""

    policy: Policy
    files: Mapping[str, str]
    error: PolicyError | None


class PolicyAdministration:
    """For fully trusted keys with the scope ``admin`` that are not bound to users: a policy holds for everybody."""

    def __init__(self, source: PolicySource) -> None:
        self._source = source

    def show(self, principal: Principal) -> PolicyInForce:
        """The policy in force.

        Raises:
            ScopeForbidden, TrustTooLow, UserForbidden: the key may not.
        """
        _require(principal)
        return PolicyInForce(self._source.current, self._source.files, self._source.last_error)

    async def check(self, principal: Principal, files: Mapping[str, str]) -> Policy:
        """What the policy would be with other files in the place of some of its own; nothing changes.

        Raises:
            ScopeForbidden, TrustTooLow, UserForbidden: the key may not.
            PolicyError: it would be wrong; each mistake is named with file, line and key.
        """
        _require(principal)
        return await in_thread(self._source.check, files)

    async def reload(self, principal: Principal) -> tuple[Policy, Policy]:
        """Read the server's policy files again: the policy before, and the one in force from now on.

        Raises:
            ScopeForbidden, TrustTooLow, UserForbidden: the key may not.
            PolicyRejected: the files are wrong; the policy before stays in force.
        """
        _require(principal)
        before = self._source.current
        try:
            return before, await in_thread(self._source.reload)
        except PolicyError as error:
            raise PolicyRejected(
                f"the policy before stays in force; {error.detail}", policy=before.digest, **error.extra
            ) from error


def _require(principal: Principal) -> None:
    principal.require(KeyScope.ADMIN)
    require_full(principal, "see and reload the policy")
    if principal.users is not None:
        raise UserForbidden("the policy concerns every user of the tenant: this key is bound to some")

"""Tokens of an issuer that the operator trusts, as the other way in beside API keys."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from memplane.application.keys.api_keys import PREFIX, REFUSAL, Keys, clean_users
from memplane.application.memories.gateway import clean_id
from memplane.application.ports import Policies, Storage
from memplane.domain.errors import AuthenticationRequired, InvalidRequest
from memplane.domain.identity.principal import ALL, SUBJECT, KeyScope, Principal
from memplane.domain.policy.policy import Trust

MAX_SUBJECT_CHARS = 200
MAX_TENANT_CHARS = 63
Claims = Mapping[str, object]


class TokenVerifier(Protocol):
    """Knows whether a token is the issuer's."""

    async def claims(self, token: str) -> Claims:
        """The claims of a token whose signature, issuer, audience and times hold.

        Raises:
            Unauthenticated: anything is wrong with it; always the same answer.
        """
        ...


@dataclass(frozen=True, slots=True)
class TokenRules:
    """How claims are read, and the most that any token gives.

    Attributes:
        tenant: the claim with the tenant.
        agent: the claim with the agent that the token speaks for.
        act_for: the claim with further agents, a list or one name.
        users: the claim with the only users that it may touch, a list or one name.
        users_needed: whether a token without that claim is refused; else it may touch every user of the tenant.
        trust: the claim with the trust level.
        scopes: the claim with the scopes, a list or one text with spaces between.
        most_trust: no token is trusted more.
        most_scopes: no token has others.
    """

    tenant: str
    agent: str
    act_for: str
    users: str
    users_needed: bool
    trust: str
    scopes: str
    most_trust: Trust
    most_scopes: frozenset[KeyScope]


class Tokens:
    """Turns tokens into principals."""

    def __init__(self, verifier: TokenVerifier, rules: TokenRules, policies: Policies, storage: Storage) -> None:
        self._verifier = verifier
        self._rules = rules
        self._policies = policies
        self._storage = storage

    async def authenticate(self, token: str) -> Principal:
        """The principal of a token.

        Raises:
            Unauthenticated: the token does not hold, lacks a claim that is needed, or names a tenant or an agent that
                there is not: always the same answer.
        """
        claims = await self._verifier.claims(token)
        try:
            principal = self._principal(claims)
        except InvalidRequest as error:
            raise AuthenticationRequired(REFUSAL) from error
        if not await self._storage.has_tenant(principal.tenant):
            raise AuthenticationRequired(REFUSAL)
        return principal

    def _principal(self, claims: Claims) -> Principal:
        rules = self._rules
        agent = None if rules.agent not in claims else self._agent(_one(claims, rules.agent))
        return Principal(
            tenant=_tenant(_one(claims, rules.tenant)),
            agent=agent,
            trust=self._trust(claims, agent),
            scopes=self._scopes(claims),
            key_id=f"{SUBJECT}{_subject(_one(claims, 'sub'))}",
            act_for=frozenset(name if name == ALL else self._agent(name) for name in _several(claims, rules.act_for)),
            users=self._users(claims),
        )

    def _agent(self, name: str) -> str:
        if name not in self._policies.current.allowlists:
            raise InvalidRequest("the policy has no such agent")
        return name

    def _users(self, claims: Claims) -> frozenset[str] | None:
        if self._rules.users not in claims and not self._rules.users_needed:
            return None
        users = frozenset(clean_users(_several(claims, self._rules.users)))
        if not users:
            raise InvalidRequest("no user is named")
        return users

    def _scopes(self, claims: Claims) -> frozenset[KeyScope]:
        """Those that are known and may be given: issuers put scopes of their own beside them, such as ``openid``."""
        said = claims.get(self._rules.scopes)
        named = frozenset(said.split(" ") if isinstance(said, str) else _several(claims, self._rules.scopes))
        return frozenset(scope for scope in self._rules.most_scopes if scope.value in named)

    def _trust(self, claims: Claims, agent: str | None) -> Trust:
        """What the token says, but no more than its agent has by the policy; without either the lowest level."""
        own = None if agent is None else self._policies.current.allowlists[agent].trust
        said = None
        if self._rules.trust in claims:
            name = _one(claims, self._rules.trust)
            if name not in list(Trust):
                raise InvalidRequest("no such trust level")
            said = Trust(name)
        known = [level for level in (own, said) if level is not None]
        return Trust.lowest(self._rules.most_trust, *known) if known else Trust.PUBLIC


class Authenticate:
    """Who is calling, by whatever credential."""

    def __init__(self, keys: Keys, tokens: Tokens | None) -> None:
        self._keys = keys
        self._tokens = tokens

    async def __call__(self, credential: str | None) -> Principal:
        """The principal of an API key, or of a token where the operator has named an issuer.

        Raises:
            Unauthenticated: the credential is absent or does not hold: always the same answer.
        """
        if self._tokens is None or credential is None or credential.startswith(f"{PREFIX}_"):
            return await self._keys.authenticate(credential)
        return await self._tokens.authenticate(credential)


def _one(claims: Claims, name: str) -> str:
    value = claims.get(name)
    if not isinstance(value, str) or not value:
        raise InvalidRequest("a claim is missing or no text")
    return value


def _several(claims: Claims, name: str) -> tuple[str, ...]:
    """One text or a list of them; absent is none."""
    value = claims.get(name, [])
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list):
        raise InvalidRequest("a claim is no list")
    texts = tuple(each for each in values if isinstance(each, str))
    if len(texts) != len(values):
        raise InvalidRequest("a claim is no list of texts")
    return texts


def _tenant(name: str) -> str:
    if len(name) > MAX_TENANT_CHARS or name != clean_id(name, "tenant"):
        raise InvalidRequest("no name of a tenant")
    return name


def _subject(name: str) -> str:
    """The subject for audit: itself, or a digest after ``#`` where it is long, not plain, or begins like a digest."""
    plain = len(name) <= MAX_SUBJECT_CHARS and not name.startswith("#") and clean_id(name, "sub") == name
    return name if plain else f"#{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()}"

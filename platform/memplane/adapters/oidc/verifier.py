"""Whether a token is the issuer's, for this service, and of now."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import jwt

from memplane.adapters.oidc.key_set import KeySet
from memplane.application.keys.api_keys import REFUSAL
from memplane.application.keys.issuer_tokens import Claims
from memplane.application.limits.offload import offload
from memplane.domain.errors import AuthenticationRequired

MAX_CHARS = 8_192
"""Of a token; a request's other headers have their own limit."""
MAX_KEY_ID_CHARS = 255
NEEDED = ["iss", "aud", "exp", "sub"]
_WRONG = (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError)
"""What reading a hostile token may raise."""


@dataclass(frozen=True, slots=True)
class RequiredClaims:
    """What every token must say.

    Attributes:
        issuer: its ``iss``.
        audience: its ``aud``, or one of it.
        algorithms: those that may sign it, all of them asymmetric.
        leeway: by how many seconds the two clocks may differ.
    """

    issuer: str
    audience: str
    algorithms: Collection[str]
    leeway: float


class OidcVerifier:
    """Verifies tokens by the issuer's keys; what a token says of keys (``jku``, ``x5u``, ``jwk``) is not heard."""

    def __init__(self, expected: RequiredClaims, keys: KeySet) -> None:
        self._expected = expected
        self.keys = keys
        self._jwt = jwt.PyJWT(options={"enforce_minimum_key_length": True})

    async def claims(self, token: str) -> Claims:
        """The claims of a token that holds.

        Raises:
            Unauthenticated: it does not; always the same answer.
        """
        if len(token) > MAX_CHARS:
            raise AuthenticationRequired(REFUSAL)
        try:
            header = jwt.get_unverified_header(token)
        except _WRONG as error:
            raise AuthenticationRequired(REFUSAL) from error
        algorithm, key_id = str(header.get("alg")), str(header.get("kid", ""))
        if algorithm not in self._expected.algorithms or "crit" in header or not 0 < len(key_id) <= MAX_KEY_ID_CHARS:
            raise AuthenticationRequired(REFUSAL)
        key = await self.keys.find(key_id, algorithm)
        if key is None:
            raise AuthenticationRequired(REFUSAL)
        try:
            return await offload(len(token), self._verified, token, key, algorithm)
        except _WRONG as error:
            raise AuthenticationRequired(REFUSAL) from error

    def _verified(self, token: str, key: jwt.PyJWK, algorithm: str) -> dict[str, Any]:
        return self._jwt.decode(
            token,
            key,
            algorithms=[algorithm],
            issuer=self._expected.issuer,
            audience=self._expected.audience,
            leeway=self._expected.leeway,
            options={"require": NEEDED},
        )

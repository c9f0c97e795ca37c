"""Servers that trust an issuer, and those who call them with its tokens."""

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass

import httpx2

from support.callers import Caller, Tenant
from support.issuer import Issuer, RunningIssuer, segment
from support.serving import RunningServer


@dataclass
class Trusting:
    """A server that trusts an issuer, and a tenant on it."""

    server: RunningServer
    running: RunningIssuer
    tenant: Tenant

    @property
    def issuer(self) -> Issuer:
        return self.running.issuer

    def caller(self, token: str) -> Caller:
        return Caller(self.server.client, token)

    def bearer(self, **changed: object) -> Caller:
        """One who calls with a good token, but for what is changed."""
        return self.caller(self.issuer.token(self.tenant.name, **changed))  # type: ignore[arg-type]  # claims and arguments

    def asked(self, token: str) -> httpx2.Response:
        return self.caller(token).query("hall")


Trust = Callable[..., Trusting]
"""Starts a server that trusts the issuer, with further settings."""


def signed(header: object, claims: object, secret: bytes) -> str:
    """A token signed by HMAC, made by hand: a library would refuse a public key as its secret."""
    parts = f"{segment(header)}.{segment(claims)}"
    return f"{parts}.{segment(hmac.digest(secret, parts.encode(), hashlib.sha256))}"

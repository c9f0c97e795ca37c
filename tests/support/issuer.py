"""An OpenID Connect issuer of the tests' own: an HTTP server with a discovery document and keys; it signs tokens."""

import base64
import functools
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

AUDIENCE = "memplane"
Json = dict[str, Any]
PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
GRANTED = "openid memory:read memory:write"


@functools.cache
def rsa_key(number: int, bits: int = 2048) -> rsa.RSAPrivateKey:
    """An RSA key; the same for the same number."""
    del number
    return rsa.generate_private_key(public_exponent=65537, key_size=bits)


@functools.cache
def ec_key(number: int) -> ec.EllipticCurvePrivateKey:
    """A key on P-256; the same for the same number."""
    del number
    return ec.generate_private_key(ec.SECP256R1())


def public(key: PrivateKey, key_id: str, **more: object) -> Json:
    """A public key as a JSON Web Key."""
    algorithm = jwt.get_algorithm_by_name("RS256" if isinstance(key, rsa.RSAPrivateKey) else "ES256")
    return {**algorithm.to_jwk(key.public_key(), as_dict=True), "kid": key_id, "use": "sig", **more}


def segment(content: object) -> str:
    """A part of a token."""
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


@dataclass
class Issuer:
    """What the issuer serves, and how it signs.

    Attributes:
        url: the issuer's name and address.
        keys: the key set that it serves.
        pages: whole answers by path, in the place of those that it would give: status, headers, body.
        asked: the paths that were asked for, in order.
        gate: closed (cleared), it lets nobody have an answer.
    """

    url: str
    keys: list[Json] = field(default_factory=list)
    pages: dict[str, tuple[int, dict[str, str], bytes]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        """It answers."""
        self.gate.set()

    def answer(self, path: str) -> tuple[int, dict[str, str], bytes]:
        """What a path is answered."""
        self.asked.append(path)
        self.gate.wait()
        if path in self.pages:
            return self.pages[path]
        documents: dict[str, Json] = {
            "/.well-known/openid-configuration": {"issuer": self.url, "jwks_uri": f"{self.url}/keys"},
            "/keys": {"keys": self.keys},
        }
        found = documents.get(path)
        return (200 if found else 404), {"Content-Type": "application/json"}, json.dumps(found).encode()

    def fetched(self) -> int:
        """How often the keys were asked for."""
        return self.asked.count("/keys")

    def claims(self, tenant: str, **changed: object) -> Json:
        """The claims of a good token; one that is ``None`` is left out."""
        now = int(time.time())
        good = {
            "iss": self.url, "aud": AUDIENCE, "sub": "alice", "iat": now, "exp": now + 600,
            "memplane_tenant": tenant, "memplane_agent": "supervisor", "scope": GRANTED,
        }  # fmt: skip
        return {name: value for name, value in (good | changed).items() if value is not None}

    def token(
        self,
        tenant: str,
        key: PrivateKey | None = None,
        headers: Json | None = None,
        algorithm: str | None = None,
        **changed: object,
    ) -> str:
        """A token, signed by the first RSA key unless said."""
        signing = key or rsa_key(0)
        by = algorithm or ("RS256" if isinstance(signing, rsa.RSAPrivateKey) else "ES256")
        header = {"typ": "JWT", "alg": by, "kid": "rsa-0"} | (headers or {})
        signed = f"{segment(header)}.{segment(self.claims(tenant, **changed))}"
        signature: bytes = jwt.get_algorithm_by_name(by).sign(signed.encode(), signing)
        return f"{signed}.{segment(signature)}"  # by hand: the library would refuse to sign some of it


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    issuer: Issuer


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        status, headers, body = self.server.issuer.answer(self.path)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with suppress(ConnectionError):  # who asked may have given up
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class RunningIssuer:
    """An issuer behind its HTTP server, which can go down and come back."""

    def __init__(self) -> None:
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None
        self._port = 0
        self.issuer = Issuer("")
        self.up()
        self.issuer.url = f"http://127.0.0.1:{self._port}"

    def up(self) -> None:
        """Serve, on the port that it had before."""
        self._server = _Server(("127.0.0.1", self._port), _Handler)
        self._server.issuer = self.issuer
        self._port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def down(self) -> None:
        """Serve no longer: who connects is refused."""
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()
            self._server = None


@contextmanager
def running_issuer() -> Iterator[RunningIssuer]:
    """An issuer with one RSA key and one on a curve."""
    running = RunningIssuer()
    running.issuer.keys = [public(rsa_key(0), "rsa-0"), public(ec_key(0), "ec-0")]
    try:
        yield running
    finally:
        running.issuer.gate.set()
        running.down()

"""The operator's settings, from the environment (``MEMPLANE_…``) and the command line."""

import os
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from memplane.domain.identity.principal import KeyScope
from memplane.domain.policy.policy import Trust

LOOPBACK = ("127.0.0.1", "::1", "localhost")


def default_data_folder() -> Path:
    """Where data lies unless said: the user's data folder, or a system one for root (PostgreSQL must reach it)."""
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        return Path("/var/lib/memplane")
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "memplane"


def _listed(value: object) -> object:
    return [each.strip() for each in value.split(",")] if isinstance(value, str) else value


Listed = (NoDecode, BeforeValidator(_listed))
"""A list that the environment has as one text with commas."""
Algorithm = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
"""Asymmetric ones alone: with a symmetric one whoever can verify can sign, and everyone may know a public key."""
Claim = Annotated[str, Field(min_length=1, max_length=255)]
GIVEN_BY_TOKENS = (KeyScope.READ, KeyScope.WRITE, KeyScope.CHECKPOINT)


def is_secure(url: str) -> bool:
    """Whether what comes from an address can be believed: over TLS, or from this machine."""
    parts = urlsplit(url)
    local = parts.scheme == "http" and parts.hostname in LOOPBACK
    return bool(parts.hostname) and (parts.scheme == "https" or local)


class OidcSettings(BaseSettings):
    """The OpenID Connect issuer whose tokens are taken beside API keys; none unless it is named."""

    oidc_issuer: str | None = Field(default=None, description="the issuer, exactly as its tokens' `iss` has it")
    oidc_audience: str | None = Field(default=None, min_length=1, description="what `aud` must name: this service")
    oidc_algorithms: Annotated[tuple[Algorithm, ...], *Listed] = Field(
        default=("RS256", "ES256"), min_length=1, description="algorithms that may sign a token"
    )
    oidc_jwks_url: str | None = Field(
        default=None, description="where the issuer's keys are; none: where its discovery document says"
    )
    oidc_tenant_claim: Claim = Field(default="memplane_tenant", description="claim with the tenant; required")
    oidc_agent_claim: Claim = Field(default="memplane_agent", description="claim with the agent")
    oidc_act_for_claim: Claim = Field(default="memplane_act_for", description="claim with further agents")
    oidc_users_claim: Claim | None = Field(
        default=None, description="claim with the only users, then required; none: `memplane_users`, where it is there"
    )
    oidc_trust_claim: Claim = Field(default="memplane_trust", description="claim with the trust level")
    oidc_scopes_claim: Claim = Field(default="scope", description="claim with the scopes")
    oidc_scopes: Annotated[tuple[KeyScope, ...], *Listed] = Field(
        default=GIVEN_BY_TOKENS, description="the scopes that a token may give; others are dropped"
    )
    oidc_trust: Trust = Field(default=Trust.FULL, description="no token is trusted more")
    oidc_leeway: float = Field(default=30.0, ge=0, le=300, description="seconds by which the two clocks may differ")
    oidc_renew_seconds: float = Field(default=300.0, gt=0, description="seconds between two looks at the issuer's keys")
    oidc_pause_seconds: float = Field(
        default=10.0, gt=0, description="seconds in which an unknown key id brings no further look"
    )

    @field_validator("oidc_issuer", "oidc_jwks_url")
    @classmethod
    def _secure(cls, url: str | None) -> str | None:
        if url is not None and not is_secure(url):
            raise ValueError("is no https address (http is for this machine alone)")
        return url

    @model_validator(mode="after")
    def _whole(self) -> Self:
        named = [name for name in OidcSettings.model_fields if name in self.model_fields_set]
        if self.oidc_issuer is None and named:
            raise ValueError(f"MEMPLANE_{named[0].upper()} is set without MEMPLANE_OIDC_ISSUER")
        if self.oidc_issuer is not None and self.oidc_audience is None:
            raise ValueError("MEMPLANE_OIDC_AUDIENCE is needed with MEMPLANE_OIDC_ISSUER")
        return self


class ModelSettings(BaseSettings):
    """The language model that background work may ask; none unless it is named."""

    model: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="a language model for background work: the endpoint's name for it, or `provider:name` without one",
    )
    model_url: str | None = Field(
        default=None, description="base URL of an endpoint that speaks OpenAI's chat completions, as `https://…/v1`"
    )
    model_key: SecretStr | None = Field(default=None, min_length=1, description="the endpoint's API key")
    model_timeout: float = Field(
        default=60.0,
        gt=0,
        le=3600,
        allow_inf_nan=False,
        description="seconds that one request may take; all requests for one answer may take so many times as much",
    )
    model_attempts: int = Field(
        default=3, ge=1, le=10, description="the most requests for one answer, whether they fail or are answered badly"
    )
    model_max_output: int = Field(
        default=2000, ge=1, le=1_000_000, description="the most tokens of one answer, whatever a job asks for"
    )

    @field_validator("model_url")
    @classmethod
    def _model_url_secure(cls, url: str | None) -> str | None:
        if url is None:
            return url
        if not is_secure(url):
            raise ValueError("is no https address (http is for this machine alone)")
        parts = urlsplit(url)
        if "@" in parts.netloc or parts.query or parts.fragment:
            raise ValueError("is an address alone, without a password, a query or a fragment: a key is MODEL_KEY")
        if parts.port == 0 or not url.isprintable() or " " in url:  # asking for a port that cannot be raises too
            raise ValueError("is no address")
        return url

    @field_validator("model_key")
    @classmethod
    def _model_key_sendable(cls, key: SecretStr | None) -> SecretStr | None:
        words = "" if key is None else key.get_secret_value()
        if not (words.isascii() and words.isprintable()) or " " in words:
            raise ValueError("holds what no key has: a space, a line break, or a letter that is not ASCII")
        return key

    @model_validator(mode="after")
    def _model_whole(self) -> Self:
        named = [name for name in ModelSettings.model_fields if name in self.model_fields_set]
        if self.model is None and named:
            raise ValueError(f"MEMPLANE_{named[0].upper()} is set without MEMPLANE_MODEL")
        if self.model is not None and self.model_url is None:
            if not all(self.model.partition(":")):
                raise ValueError("MEMPLANE_MODEL_URL is needed, or MEMPLANE_MODEL as provider:name")
            if self.model_key is None:
                raise ValueError("MEMPLANE_MODEL_KEY is needed with a MEMPLANE_MODEL of a provider")
        return self


class Settings(OidcSettings, ModelSettings):
    """Everything that the operator can set; each field is ``MEMPLANE_<NAME>`` in the environment."""

    model_config = SettingsConfigDict(env_prefix="MEMPLANE_", extra="ignore")

    storage: Literal["postgres", "sqlite"] = Field(
        default="postgres", description="the embedded PostgreSQL, or one SQLite file in the data folder"
    )
    database_url: SecretStr | None = Field(
        default=None, description="PostgreSQL URL of the application's role; none: the embedded server"
    )
    migration_url: SecretStr | None = Field(default=None, description="PostgreSQL URL of the schema's owner")
    app_role: str = Field(default="memplane_app", description="the application's role, which migrations grant rights")
    worker_url: SecretStr | None = Field(
        default=None, description="the same database as the worker's role, which takes jobs out of the queue"
    )
    worker_role: str = Field(default="memplane_worker", description="the worker's role, which migrations grant rights")
    worker_stalled_seconds: float = Field(
        default=30.0, ge=1, le=3600, allow_inf_nan=False, description="a worker so long silent has its jobs taken over"
    )
    idle_transaction_ms: int = Field(
        default=60_000, ge=1000, description="the longest that a transaction may stand still, as of a paused worker"
    )
    data: Path = Field(default_factory=default_data_folder, description="folder of the embedded database and keys")
    policies: Path | None = Field(default=None, description="folder of the policy files; none: the shipped ones")
    pii: Literal["own", "presidio"] = Field(
        default="own", description="what finds personal data: the own patterns, or Presidio beside them"
    )
    pii_model: str | None = Field(default=None, description="installed spaCy model for Presidio; none: patterns alone")
    entity_model: str | None = Field(
        default=None, min_length=1, description="installed spaCy model that finds entities at night; none: rules alone"
    )
    embedding_model: str | None = Field(
        default=None, description="folder, or name in the model hub's local cache, of an ONNX model; none: wordllama"
    )
    embedding_name: str | None = Field(
        default=None, min_length=1, max_length=200, description="what the policy calls that model; none: as its folder"
    )
    next_embedding_model: str | None = Field(
        default=None, description="the model that `memplane reembed` changes to, as the one in force is named"
    )
    next_embedding_name: str | None = Field(
        default=None, min_length=1, max_length=200, description="what the policy calls the next model"
    )
    host: str = Field(default="127.0.0.1", description="address to listen on")
    port: int = Field(default=7077, ge=0, le=65535, description="port to listen on; 0 for any free one")
    pool_size: int = Field(
        default=8, ge=2, le=100, description="database connections for reads, and as many for writes"
    )
    pool_wait: float = Field(
        default=5.0, gt=0, description="seconds a request waits for its turn, or for a connection, before 503"
    )
    search_memory_mb: int = Field(
        default=256, ge=0, le=1_000_000, description="memory for the scopes that are asked for again and again; 0: none"
    )
    statement_timeout_ms: int = Field(default=10_000, ge=100, description="the longest statement")
    exchange_timeout: float = Field(
        default=12.0,
        ge=0.1,
        le=3600,
        allow_inf_nan=False,
        description="seconds that PostgreSQL has to answer, even frozen or cut off, before 503; more than a statement",
    )
    max_body_bytes: int = Field(default=4_194_304, ge=1024, description="the largest request body")
    body_seconds: float = Field(
        default=60.0, gt=0, le=86_400, allow_inf_nan=False, description="seconds in which a request body has to arrive"
    )
    header_seconds: float = Field(
        default=10.0,
        gt=0,
        le=86_400,
        allow_inf_nan=False,
        description="seconds in which request headers have to arrive",
    )
    send_seconds: float = Field(
        default=60.0,
        gt=0,
        le=86_400,
        allow_inf_nan=False,
        description="seconds after which a client that reads nothing of its answer is given up",
    )
    uploads_mb: int = Field(
        default=64, ge=0, le=1_000_000, description="megabytes of request bodies that are held at a time; 0: no limit"
    )
    uploads_mb_per_address: int = Field(
        default=32, ge=0, le=1_000_000, description="of these, from one address; 0: no limit"
    )
    uploads_mb_per_key: int = Field(default=16, ge=0, le=1_000_000, description="of these, by one key; 0: no limit")
    connections: int = Field(default=1_000, ge=0, le=1_000_000, description="connections at a time; 0: no limit")
    connections_per_address: int = Field(
        default=500, ge=0, le=1_000_000, description="of these, from one address; 0: no limit"
    )
    rate_per_second: float = Field(
        default=100.0,
        ge=0,
        le=1_000_000,
        allow_inf_nan=False,
        description="tokens that each key gets a second; 0: no limit",
    )
    rate_burst: int = Field(default=500, ge=1, le=1_000_000, description="tokens that each key may take at once")
    tenant_share: int = Field(
        default=2,
        ge=0,
        le=100,
        description="requests of one tenant at work at a time while others ask too; 0: nobody waits for a turn",
    )
    work_seconds: float = Field(
        default=30.0,
        gt=0,
        le=86_400,
        allow_inf_nan=False,
        description="seconds that the work on a request's texts waits for a thread, and may then take, before 503",
    )
    erasure_ledger: Path | None = Field(
        default=None,
        description="file outside the database in which erasures are noted, so that a restored backup can be made to "
        "follow; none: `erasures.jsonl` in the data folder, where the database lies there too",
    )
    jobs: bool = Field(
        default=True, description="whether this server does background work too, if it may: for all tenants"
    )
    checkpoints_keep: int = Field(
        default=0, ge=0, le=1_000_000, description="checkpoints of each thread that are always kept; 0: none is pruned"
    )
    checkpoints_days: float = Field(
        default=30.0, ge=0, le=36_500, allow_inf_nan=False, description="days after which the others are pruned"
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        default="WARNING", description="DEBUG, INFO, WARNING or ERROR"
    )
    log_format: Literal["console", "json"] = Field(
        default="console", description="lines for people, or JSON for programs"
    )

    @property
    def embedding(self) -> tuple[str | None, str | None]:
        """The embedding model, and what the policy calls it."""
        return self.embedding_model, self.embedding_name

    @property
    def next_embedding(self) -> tuple[str | None, str | None]:
        """The one that is changed to, if any."""
        return self.next_embedding_model, self.next_embedding_name

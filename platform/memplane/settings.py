"""The operator's settings, from the environment (``MEMPLANE_…``) and the command line."""

import os
from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


def default_data_folder() -> Path:
    """Where data lies unless said: the user's data folder, or a system one for root (PostgreSQL must reach it)."""
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        return Path("/var/lib/memplane")
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "memplane"


class Settings(BaseSettings):
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
    data: Path = Field(default_factory=default_data_folder, description="folder of the embedded database and keys")
    policies: Path | None = Field(default=None, description="folder of the policy files; none: the shipped ones")
    pii: Literal["own", "presidio"] = Field(
        default="own", description="what finds personal data: the own patterns, or Presidio beside them"
    )
    pii_model: str | None = Field(default=None, description="installed spaCy model for Presidio; none: patterns alone")
    host: str = Field(default="127.0.0.1", description="address to listen on")
    port: int = Field(default=7077, ge=0, le=65535, description="port to listen on; 0 for any free one")
    pool_size: int = Field(
        default=8, ge=2, le=100, description="database connections for reads, and as many for writes"
    )
    pool_wait: float = Field(default=5.0, gt=0, description="seconds a request waits for a connection before 503")
    statement_timeout_ms: int = Field(default=10_000, ge=100, description="the longest statement")
    max_body_bytes: int = Field(default=4_194_304, ge=1024, description="the largest request body")
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        default="WARNING", description="DEBUG, INFO, WARNING or ERROR"
    )

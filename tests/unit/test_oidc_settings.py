"""Settings of the issuer: off by default, and refused at start where they would not be safe."""

import os
import subprocess
import sys

import pytest
from pydantic import ValidationError

from memplane.domain.errors import SettingsError
from memplane.domain.identity.principal import KeyScope
from memplane.domain.policy.policy import Trust
from memplane.entrypoints.cli.options import settings_of
from memplane.settings import Settings

NAMED = {"oidc_issuer": "https://issuer.example/realm", "oidc_audience": "memplane"}


def test_there_is_no_issuer_unless_one_is_named() -> None:
    assert Settings().oidc_issuer is None
    settings = Settings(**NAMED)  # type: ignore[arg-type]  # texts
    assert settings.oidc_algorithms == ("RS256", "ES256")
    assert settings.oidc_scopes == (KeyScope.READ, KeyScope.WRITE, KeyScope.CHECKPOINT)


@pytest.mark.parametrize("algorithm", ["HS256", "HS512", "none", "None", "", "rs256", "RS256X"])
def test_an_algorithm_that_is_not_asymmetric_is_refused(monkeypatch: pytest.MonkeyPatch, algorithm: str) -> None:
    for name, value in NAMED.items():
        monkeypatch.setenv(f"MEMPLANE_{name.upper()}", value)
    monkeypatch.setenv("MEMPLANE_OIDC_ALGORITHMS", f"RS256,{algorithm}")
    with pytest.raises(SettingsError, match="MEMPLANE_OIDC_ALGORITHMS"):
        settings_of()
    monkeypatch.setenv("MEMPLANE_OIDC_ALGORITHMS", "PS256, EdDSA")
    assert settings_of().oidc_algorithms == ("PS256", "EdDSA")


@pytest.mark.parametrize(
    "url", ["http://issuer.example", "issuer.example", "ftp://issuer.example", "https://", "http://127.0.0.1.example"]
)
@pytest.mark.parametrize("name", ["oidc_issuer", "oidc_jwks_url"])
def test_what_does_not_come_over_tls_is_refused(name: str, url: str) -> None:
    with pytest.raises(ValidationError, match="https"):
        Settings(**(NAMED | {name: url}))  # type: ignore[arg-type]  # texts
    for local in ("http://127.0.0.1:8080/realm", "http://localhost", "http://[::1]:9", "https://issuer.example"):
        Settings(**(NAMED | {name: local}))  # type: ignore[arg-type]  # texts


def test_settings_that_do_not_go_together_are_refused() -> None:
    with pytest.raises(SettingsError, match="MEMPLANE_OIDC_AUDIENCE is needed"):
        settings_of(oidc_issuer=NAMED["oidc_issuer"])
    with pytest.raises(SettingsError, match="MEMPLANE_OIDC_AUDIENCE is set without"):
        settings_of(oidc_audience="memplane")
    with pytest.raises(SettingsError, match="MEMPLANE_OIDC_SCOPES"):
        settings_of(**NAMED, oidc_scopes="memory:read,everything")
    settings = settings_of(**NAMED, oidc_scopes="memory:read,admin", oidc_trust="inner")
    assert (settings.oidc_scopes, settings.oidc_trust) == ((KeyScope.READ, KeyScope.ADMIN), Trust.INNER)


# Builds the application that the settings ask for, and prints whether that took what verifies tokens.
BUILD = """
import sys
from memplane.bootstrap import Application
from memplane.settings import Settings
Application(Settings(), "sqlite:///never-opened.db").embedder.close()
print("jwt" in sys.modules, "cryptography" in sys.modules)
"""


@pytest.mark.parametrize("named", [False, True])
def test_what_verifies_tokens_is_loaded_only_where_an_issuer_is_named(named: bool) -> None:
    issuer = {f"MEMPLANE_{name.upper()}": value for name, value in NAMED.items()} if named else {}
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")} | issuer
    told = subprocess.run([sys.executable, "-c", BUILD], check=True, capture_output=True, text=True, env=environment)
    assert told.stdout.split() == [str(named), str(named)]

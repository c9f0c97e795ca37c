"""The OIDC issuer that the settings trust, if they name one."""

from typing import TYPE_CHECKING

from memplane.application.keys.issuer_tokens import TokenRules, Tokens, TokenVerifier
from memplane.application.ports import Policies, Storage
from memplane.settings import Settings

if TYPE_CHECKING:
    from memplane.adapters.oidc.verifier import OidcVerifier

USERS_CLAIM = "memplane_users"


def verifier_of(settings: Settings) -> "OidcVerifier | None":
    """What verifies the tokens of the operator's issuer, if one is named."""
    if settings.oidc_issuer is None or settings.oidc_audience is None:
        return None
    from memplane.adapters.oidc.fetching import Fetcher  # noqa: PLC0415 - loaded when an issuer is named
    from memplane.adapters.oidc.key_set import KeySet  # noqa: PLC0415 - loaded when an issuer is named
    from memplane.adapters.oidc.verifier import OidcVerifier, RequiredClaims  # noqa: PLC0415 - loaded when an issuer is named

    algorithms = settings.oidc_algorithms
    fetcher = Fetcher(settings.oidc_issuer, settings.oidc_jwks_url)
    keys = KeySet(fetcher, algorithms, every=settings.oidc_renew_seconds, pause=settings.oidc_pause_seconds)
    expected = RequiredClaims(settings.oidc_issuer, settings.oidc_audience, algorithms, settings.oidc_leeway)
    return OidcVerifier(expected, keys)


def tokens_of(settings: Settings, verifier: TokenVerifier, policies: Policies, storage: Storage) -> Tokens:
    """Who the bearers of its tokens are, by the claims that the settings name."""
    rules = TokenRules(
        tenant=settings.oidc_tenant_claim,
        agent=settings.oidc_agent_claim,
        act_for=settings.oidc_act_for_claim,
        users=settings.oidc_users_claim or USERS_CLAIM,
        users_needed=settings.oidc_users_claim is not None,
        trust=settings.oidc_trust_claim,
        scopes=settings.oidc_scopes_claim,
        most_trust=settings.oidc_trust,
        most_scopes=frozenset(settings.oidc_scopes),
    )
    return Tokens(verifier, rules, policies, storage)

"""What `memplane doctor` looks at where the operator has named an issuer of tokens."""

import asyncio
from collections.abc import Sequence

from memplane.adapters.oidc.fetching import Fetcher, FetchFailed
from memplane.adapters.oidc.key_set import long_enough, usable
from memplane.domain.errors import SettingsError


def issuer_answers(issuer: str, jwks_url: str | None, algorithms: Sequence[str]) -> str:
    """The issuer answers, and serves a key by which a token can be verified.

    Raises:
        SettingsError: it does not.
    """
    try:
        document = asyncio.run(Fetcher(issuer, jwks_url).key_set())
        found = usable(document, algorithms)
    except FetchFailed as error:
        raise SettingsError(str(error)) from error
    good = [name for name, key in found.items() if long_enough(key)]
    if not good:
        short = ", but for some that are too short" if found else ""
        raise SettingsError(f"{issuer} serves no key for {' or '.join(algorithms)}{short}")
    served = [
        f"{count} for {algorithm}" for algorithm in algorithms if (count := sum(algorithm == used for _, used in good))
    ]
    return f"{issuer}, keys: {', '.join(served)}"

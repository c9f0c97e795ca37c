"""The library's model for an endpoint of the settings, with nothing of the environment in it."""

import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx2
from pydantic import SecretStr
from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model as LibraryModel
from pydantic_ai.models import infer_model
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers import Provider, infer_provider_class
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

from memplane.domain.errors import SettingsError
from memplane.settings import is_secure

OPENAI_URL = "https://api.openai.com/v1"
NO_KEY = "none"
"""Sent to an endpoint that needs no key: the SDK would look for one."""
GIVEN = frozenset({"OPENAI_BASE_URL", "OPENAI_LOG"})
"""Variables that change nothing here: an address is always given, and the log's level is set below."""
# OPENAI_LOG makes the SDK write at its own level as soon as it is imported: a log is the operator's to configure
logging.getLogger("openai").setLevel(logging.WARNING)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What the settings say of a model.

    Attributes:
        model: its name at the address; without an address ``provider:name``, as the library calls them.
        url: base URL of an endpoint that speaks OpenAI's chat completions; ``None``: the provider's own.
        key: its key; ``None``: none is needed there.
    """

    model: str
    url: str | None
    key: SecretStr | None

    def on(self, client: httpx2.AsyncClient) -> LibraryModel:
        """The library's model, which sends its requests through a client.

        Raises:
            SettingsError: the library has none, its SDK is not installed, or it would not go by the settings alone.
        """
        if self.url is not None:
            return OpenAIChatModel(self.model, provider=self._compatible(self.url, client))
        provider, _, name = self.model.partition(":")
        # chat completions, not the library's choice for OpenAI: what is asked there is not kept on the other side
        named = f"openai-chat:{name}" if provider == "openai" else self.model
        try:
            return infer_model(named, provider_factory=lambda kind: self._known(kind, client))
        except ImportError as error:
            raise SettingsError(
                f"MEMPLANE_MODEL: {provider} needs its SDK, `pip install 'pydantic-ai-slim[{provider}]'`"
            ) from error
        except (UserError, ValueError, TypeError) as error:
            raise SettingsError(
                f"MEMPLANE_MODEL: {provider} cannot be asked by a name and a key alone; set MEMPLANE_MODEL_URL"
            ) from error

    def base_url(self) -> str:
        """Where requests go.

        Raises:
            SettingsError: as for :meth:`on`; the address is not safe; variables of the environment would be heard.
        """
        try:
            model = self.on(httpx2.AsyncClient(trust_env=False))
        except httpx2.InvalidURL as error:
            raise SettingsError("MEMPLANE_MODEL_URL: is no address") from error
        if heard := sorted(self._ambient(model)):
            raise SettingsError(
                f"MEMPLANE_MODEL: unset {', '.join(heard)}, which would change what is sent to the model"
            )
        url = model.base_url
        if url is None or not is_secure(url):
            raise SettingsError("MEMPLANE_MODEL: the provider has no https address")
        return url

    def _compatible(self, url: str, client: httpx2.AsyncClient) -> Provider[Any]:
        key = NO_KEY if self.key is None else self.key.get_secret_value()
        if urlsplit(url).hostname == urlsplit(OPENAI_URL).hostname:
            return OpenAIProvider(base_url=url, api_key=key, http_client=client)
        # the older of the two names for the bound, which all of them know
        profile: ModelProfile = OpenAIModelProfile(openai_chat_supports_max_completion_tokens=False)
        return OpenAICompatibleProvider("endpoint", base_url=url, api_key=key, http_client=client, profile=profile)

    def _known(self, kind: str, client: httpx2.AsyncClient) -> Provider[Any]:
        key = NO_KEY if self.key is None else self.key.get_secret_value()
        if kind == "openai-chat":
            return OpenAIProvider(base_url=OPENAI_URL, api_key=key, http_client=client)
        # a provider that wants more than these is refused: it would look for the rest elsewhere
        made: Any = infer_provider_class(kind)
        provider: Provider[Any] = made(api_key=key, http_client=client)
        return provider

    def _ambient(self, model: LibraryModel) -> Iterator[str]:
        """Variables of the environment that an SDK hears whatever it is given: organisations, headers, other keys."""
        sdk = type(getattr(model, "client", None)).__module__.partition(".")[0]
        provider = sdk if self.url is not None else self.model.partition(":")[0]
        prefixes = tuple(f"{each.upper().replace('-', '_')}_" for each in (sdk, provider))
        for name in os.environ:
            if name.startswith(prefixes) and not name.endswith("_API_KEY") and name not in GIVEN:
                yield name

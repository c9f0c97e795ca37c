"""Settings of the model: none by default, refused where they would not be safe, and nothing heard beside them."""

import json
import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from memplane.adapters.llm.choice import model_of
from memplane.domain.errors import SettingsError
from memplane.entrypoints.cli.options import settings_of
from memplane.settings import Settings

KEY = "sk-planted-4711"
NAMED = {"model": "small", "model_url": "http://127.0.0.1:9/v1", "model_key": KEY}


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets settings in the environment, where an operator would."""

    def put(**values: str) -> None:
        for name, value in values.items():
            monkeypatch.setenv(f"MEMPLANE_{name.upper()}", value)

    for name in [name for name in os.environ if name.startswith("OPENAI_")]:
        monkeypatch.delenv(name)
    return put


def test_there_is_no_model_unless_one_is_named(environment: Callable[..., None]) -> None:
    assert Settings().model is None
    assert model_of(Settings()) is None
    environment(**NAMED)
    model = model_of(settings_of())
    assert model is not None
    assert model.name == "small"


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"model": ""}, "MEMPLANE_MODEL:"),
        ({"model_timeout": "0"}, "MEMPLANE_MODEL_TIMEOUT:"),
        ({"model_timeout": "inf"}, "MEMPLANE_MODEL_TIMEOUT:"),
        ({"model_attempts": "0"}, "MEMPLANE_MODEL_ATTEMPTS:"),
        ({"model_attempts": "11"}, "MEMPLANE_MODEL_ATTEMPTS:"),
        ({"model_max_output": "0"}, "MEMPLANE_MODEL_MAX_OUTPUT:"),
        ({"model_key": ""}, "MEMPLANE_MODEL_KEY:"),
        ({"model_key": f"{KEY}\n"}, "MEMPLANE_MODEL_KEY: holds what no key has"),
        ({"model_key": f"Bearer {KEY}"}, "MEMPLANE_MODEL_KEY: holds what no key has"),
        ({"model_key": f"{KEY}é"}, "MEMPLANE_MODEL_KEY: holds what no key has"),
        ({"model_url": "https://models.example:99999/v1"}, "MEMPLANE_MODEL_URL: "),
        ({"model_url": "https://models.example:0/v1"}, "MEMPLANE_MODEL_URL: is no address"),
        ({"model_url": "https://models .example/v1"}, "MEMPLANE_MODEL_URL: is no address"),
        ({"model_url": "https://models.example/\nv1"}, "MEMPLANE_MODEL_URL: is no address"),
        ({"model_url": "https://[::1/v1"}, "MEMPLANE_MODEL_URL: "),
        ({"model_url": "http://models.example/v1"}, "MEMPLANE_MODEL_URL: is no https"),
        ({"model_url": "http://127.0.0.1.example/v1"}, "MEMPLANE_MODEL_URL: is no https"),
        ({"model_url": "ftp://127.0.0.1/v1"}, "MEMPLANE_MODEL_URL: is no https"),
        ({"model_url": f"https://u:{KEY}@models.example/v1"}, "MEMPLANE_MODEL_URL: is an address alone"),
        ({"model_url": f"https://models.example/v1?key={KEY}"}, "MEMPLANE_MODEL_URL: is an address alone"),
    ],
)
def test_a_setting_that_cannot_be_is_named_and_its_value_is_not(
    environment: Callable[..., None], wrong: dict[str, str], told: str
) -> None:
    environment(**NAMED)
    assert settings_of().model == "small"
    environment(**wrong)
    with pytest.raises(SettingsError) as refused:
        settings_of()
    assert refused.value.detail.startswith(told)
    assert KEY not in refused.value.detail


@pytest.mark.parametrize(
    "url", ["https://models.example/v1", "http://localhost:11434/v1", "http://[::1]:9/v1", "http://127.0.0.1/v1"]
)
def test_an_address_over_tls_or_of_this_machine_is_taken(environment: Callable[..., None], url: str) -> None:
    environment(**NAMED, model_max_output="300")
    environment(model_url=url)
    assert model_of(settings_of()) is not None


def test_settings_that_do_not_go_together_are_refused() -> None:
    with pytest.raises(SettingsError, match="MEMPLANE_MODEL_KEY is set without MEMPLANE_MODEL"):
        settings_of(model_key=KEY)
    with pytest.raises(SettingsError, match="MEMPLANE_MODEL_URL is needed"):
        settings_of(model="small", model_key=KEY)
    with pytest.raises(SettingsError, match="MEMPLANE_MODEL_KEY is needed"):
        settings_of(model="openai:small")
    assert settings_of(model="openai:small", model_key=KEY).model == "openai:small"
    assert settings_of(model="llama3.1:8b", model_url="http://localhost:11434/v1").model_key is None


def test_a_key_is_in_no_representation() -> None:
    settings = settings_of(**NAMED)
    assert settings.model_key is not None
    assert settings.model_key.get_secret_value() == KEY
    model = model_of(settings)
    shown = repr(settings) + str(settings) + settings.model_dump_json() + repr(model) + repr(vars(model))
    assert KEY not in shown
    assert "small" in shown


def test_a_host_that_can_be_no_name_is_refused_at_the_start(environment: Callable[..., None]) -> None:
    environment(**NAMED)
    environment(model_url="https://modèles.example/v1")
    assert model_of(settings_of()) is not None
    environment(model_url="https://☃.example/v1")
    with pytest.raises(SettingsError, match="MEMPLANE_MODEL_URL: is no address"):
        model_of(settings_of())


# Providers and the environment


@pytest.mark.parametrize("model", ["openai:gpt-5", "openai-chat:gpt-5", "deepseek:deepseek-chat", "openrouter:a/b"])
def test_a_provider_that_the_library_knows_needs_no_address(environment: Callable[..., None], model: str) -> None:
    environment(model=model, model_key=KEY)
    found = model_of(settings_of())
    assert found is not None
    assert found.name == model


def test_a_provider_whose_sdk_is_missing_says_what_to_install(
    environment: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "anthropic", None)  # as where it is not installed
    environment(model="anthropic:claude-small", model_key=KEY)
    with pytest.raises(SettingsError, match=r"anthropic needs its SDK, `pip install 'pydantic-ai-slim\[anthropic\]'`"):
        model_of(settings_of())


@pytest.mark.parametrize("model", ["nobody:small", "ollama:llama3", "bedrock:small", "azure:gpt-5", "test:test"])
def test_a_provider_that_needs_more_than_a_key_is_refused(environment: Callable[..., None], model: str) -> None:
    environment(model=model, model_key=KEY)
    with pytest.raises(SettingsError, match="MEMPLANE_MODEL: ") as refused:
        model_of(settings_of())
    assert KEY not in refused.value.detail


@pytest.mark.parametrize("model", ["small", "openai:gpt-5", "deepseek:deepseek-chat"])
@pytest.mark.parametrize(
    "name", ["OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_CUSTOM_HEADERS", "OPENAI_ADMIN_KEY", "OPENAI_API_KEY"]
)
def test_what_an_sdk_would_hear_of_the_environment_is_refused(
    environment: Callable[..., None], monkeypatch: pytest.MonkeyPatch, model: str, name: str
) -> None:
    environment(model=model, model_key=KEY, **({"model_url": NAMED["model_url"]} if model == "small" else {}))
    monkeypatch.setenv(name, "somebody-else")
    if name == "OPENAI_API_KEY":  # never looked at: a key is always given
        assert model_of(settings_of()) is not None
    else:
        with pytest.raises(SettingsError, match=f"unset {name}"):
            model_of(settings_of())


def test_without_the_library_the_extra_is_named(
    environment: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("memplane.adapters.llm.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    for name in [name for name in sys.modules if name.startswith("pydantic_ai.")]:
        monkeypatch.setitem(sys.modules, name, None)
    environment(**NAMED)
    with pytest.raises(SettingsError, match=r"pip install 'memplane\[models\]'"):
        model_of(settings_of())


# Builds the application and the model that the settings ask for, and prints which libraries that took.
BUILD = """
import json, sys
from memplane.adapters.llm.choice import model_of
from memplane.adapters.llm.prompt_files import prompt_file
from memplane.bootstrap import Application
from memplane.entrypoints.http.app import create_app
from memplane.settings import Settings
wired = Application(Settings(), "sqlite:///never-opened.db")
create_app(wired, max_body_bytes=100_000)
wired.embedder.close()
prompt_file("facts")
model = model_of(Settings())
print(json.dumps([model is not None, "pydantic_ai" in sys.modules, "openai" in sys.modules]))
"""


@pytest.mark.parametrize("named", [False, True])
def test_the_library_is_loaded_only_where_a_model_is_named(named: bool) -> None:
    model = {f"MEMPLANE_{name.upper()}": value for name, value in NAMED.items()} if named else {}
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("COVERAGE", "OPENAI_"))}
    told = subprocess.run([sys.executable, "-c", BUILD], check=True, capture_output=True, text=True, env=clean | model)
    assert json.loads(told.stdout) == [named, named, named]

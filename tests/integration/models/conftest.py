"""A server that speaks as a model's endpoint does, and somebody who asks it, in an environment that names no other."""

from collections.abc import Iterator

import pytest

from support.model_asking import Asker
from support.model_server import ModelServer, model_server


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as running:
        yield running


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_CUSTOM_HEADERS", "OPENAI_ADMIN_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def asker(server: ModelServer) -> Asker:
    return Asker(server)

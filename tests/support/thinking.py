"""A model of the tests behind the application's own budgets: caps, workers that ask at once, and what is counted."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from memplane.adapters.policy import load_policy, shipped_policies
from memplane.application.jobs.inference.llm_budget import TENANT, LlmBudget
from memplane.domain.jobs.job_definitions import ModelRules
from memplane.domain.policy.policy import Policy
from support.callers import USER, Tenant
from support.model_server import ModelServer, Reply, called

PRICED = ModelRules(tenant_tokens=1_000_000, user_tokens=1_000_000, input_price=2.0, output_price=10.0)


def named(server: ModelServer, **settings: Any) -> dict[str, Any]:  # noqa: ANN401 - any setting
    """The settings of an application that asks a server's model."""
    return {"model": "small", "model_url": server.url, "model_attempts": 2, "model_timeout": 30.0} | settings


class Capped:
    """A policy with caps that a test chooses, and may change."""

    def __init__(self, rules: ModelRules = PRICED) -> None:
        self._policy = load_policy(shipped_policies())
        self.rules = rules

    @property
    def current(self) -> Policy:
        """The policy of this moment."""
        return replace(self._policy, workers=replace(self._policy.workers, model=self.rules))


class Clock:
    """A moment that a test sets."""

    def __init__(self) -> None:
        self.now = datetime.now(UTC)

    def __call__(self) -> datetime:
        """That moment."""
        return self.now


def thinking(tenant: Tenant, policies: Capped, clock: Clock | None = None) -> LlmBudget:
    """A worker's way to the model of a server, with caps of its own."""
    wired = tenant.server.wired
    return LlmBudget(wired.thinking.name, wired.thinking._load, wired.storage, policies, clock or Clock())


def counted(tenant: Tenant, user: str = USER) -> tuple[int, int, int]:
    """Tokens of today: reserved, read and written; of the tenant as a whole for ``TENANT``."""
    rows = tenant.rows(
        "SELECT reserved, input_tokens, output_tokens FROM token_budgets"
        " WHERE tenant_id = %(tenant)s AND user_id = %(user)s",
        user=user,
    )
    return tuple(rows[0].values()) if rows else (0, 0, 0)  # type: ignore[return-value]  # three columns


def of_tenant(tenant: Tenant) -> tuple[int, int, int]:
    """Tokens of the tenant as a whole."""
    return counted(tenant, TENANT)


@contextmanager
def held(server: ModelServer, answers: int, value: object) -> Iterator[None]:
    """So many answers that come when the block ends; the next ones are refused."""
    good = called(value)
    server.script = [Reply(good.body, held=True)] * answers
    try:
        yield
    finally:
        server.gate.set()

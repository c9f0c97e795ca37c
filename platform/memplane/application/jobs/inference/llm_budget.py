"""Asking a language model within the budgets of a tenant and a user for the day."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from memplane.application.jobs.inference.language_model import Answer, Model, ModelPrompt
from memplane.application.jobs.job_records import TokensSpent
from memplane.application.ports import Clock, Policies, Storage
from memplane.application.transaction import UnitOfWork
from memplane.domain.errors import BudgetSpent, ModelFailed, NoModel
from memplane.domain.identity.principal import Reach

__all__ = ["TENANT", "LlmBudget", "TokensSpent"]

T = TypeVar("T")
TENANT = ""
"""As whose the tokens of a tenant as a whole are counted: no user has this name."""


class LlmBudget:
    """A model within the budgets of tenant, user and day; asked while no transaction is open.

    Before a question the most that it may come to is reserved, in a short transaction of its own; after it, that is
    settled to what was really spent, whether an answer came or not. Two workers together reserve no more than there
    is. Where nobody can settle any more, because a worker was killed, or cancelled in the middle, what was reserved
    counts as spent until the day ends (UTC): nobody knows how much of it the model took.

    Args:
        name: of the model; ``None``: none is configured.
        load: makes it, the first time that it is needed: what asks it takes seconds to load.
        storage: where tokens are counted.
        policies: say how many there are for a day.
        clock: the time.
    """

    def __init__(
        self, name: str | None, load: Callable[[], Model | None], storage: Storage, policies: Policies, clock: Clock
    ) -> None:
        self.name = name
        self._load = load
        self._model: Model | None = None
        self._loading = asyncio.Lock()
        self._storage = storage
        self._policies = policies
        self._clock = clock

    async def ready(self) -> None:
        """Load what asks the model, if one is named; the model itself may be down.

        Raises:
            SettingsError: what asks it is not installed, or the settings name none that can be asked.
        """
        if self.name is not None:
            await self._loaded()

    async def ask(self, tenant: str, user_id: str, prompt: ModelPrompt, kind: type[T], most_tokens: int) -> Answer[T]:
        """One answer in a shape, about what a user said.

        Args:
            tenant: whose tokens are spent.
            user_id: whose, within the tenant.
            prompt: what is asked.
            kind: the shape of the answer, see :meth:`Model.ask`.
            most_tokens: the most that one answer may have.

        Raises:
            NoModel: none is configured.
            BudgetSpent: the day's tokens of the tenant or the user do not suffice for the worst; nothing was asked.
            ModelUnavailable, ModelAnswerInvalid: as the model's own; what they took is spent.
            StorageUnavailable: tokens cannot be counted.
        """
        if self.name is None:
            raise NoModel("no language model is configured: set MEMPLANE_MODEL")
        model = await self._loaded()
        moment = self._clock()
        worst = model.worst(prompt, kind, most_tokens)
        await self._storage.write(Reach(tenant), lambda uow: self._reserve(uow, user_id, moment, worst))
        try:
            answer = await model.ask(prompt, kind, most_tokens)
        except ModelFailed as error:
            await self._settle(tenant, user_id, moment, worst, TokensSpent(error.input_tokens, error.output_tokens))
            raise
        await self._settle(tenant, user_id, moment, worst, TokensSpent(answer.input_tokens, answer.output_tokens))
        return answer

    async def _loaded(self) -> Model:
        async with self._loading:
            if self._model is None:
                self._model = await asyncio.to_thread(self._load)
        if self._model is None:
            raise NoModel("no language model is configured: set MEMPLANE_MODEL")
        return self._model

    async def _reserve(self, uow: UnitOfWork, user_id: str, moment: datetime, worst: int) -> None:
        rules = self._policies.current.workers.model
        # the tenant's first, by everybody: whoever waits for it holds no user's
        caps = ((TENANT, "the tenant", rules.tenant_tokens), (user_id, "the user", rules.user_tokens))
        for whose, told, cap in caps:
            if not await uow.budgets.reserve(whose, moment.date(), worst, cap):
                raise BudgetSpent(
                    f"{told} has {cap} tokens of the model a day, and what is left does not suffice for {worst}; see"
                    " `model` in workers.yaml",
                    cap=cap,
                    needed=worst,
                )

    async def _settle(self, tenant: str, user_id: str, moment: datetime, worst: int, spent: TokensSpent) -> None:
        async def work(uow: UnitOfWork) -> None:
            for whose in (TENANT, user_id):
                await uow.budgets.settle(whose, moment.date(), worst, spent)

        await self._storage.write(Reach(tenant), work)

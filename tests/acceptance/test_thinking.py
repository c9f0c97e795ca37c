"""A language model within its budgets: what is reserved, what is spent, and who is told that nothing is left."""

import shutil
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memplane.adapters.llm.prompt_files import prompt_file
from memplane.adapters.policy import shipped_policies
from memplane.application.jobs.inference.language_model import Answer, ModelPrompt
from memplane.application.jobs.inference.llm_budget import TENANT, LlmBudget
from memplane.application.jobs.job_records import TokensSpent
from memplane.application.jobs.job_runner import Jobs
from memplane.application.jobs.lifecycle_jobs import JobBatch, Step
from memplane.application.memories.gateway import Write
from memplane.domain.errors import BudgetSpent, MemplaneError, ModelAnswerInvalid, ModelUnavailable, NoModel
from memplane.domain.identity.principal import KeyScope, Principal
from support.callers import USER, Tenant
from support.model_server import INPUT_TOKENS, OUTPUT_TOKENS, ModelServer, called, model_server, refused, spoken
from support.nights import NOON, Night
from support.serving import RunningServer, running_application
from support.thinking import PRICED, Capped, Clock, counted, held, named, of_tenant, thinking
from support.working import until

PROMPT = prompt_file("facts").about("I moved to Uppsala in May.")
MOST = 200
ONCE = (0, INPUT_TOKENS, OUTPUT_TOKENS)


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact."""

    text: str


RIGHT = called({"text": "The user lives in Uppsala."})


@pytest.fixture
def asking(model: ModelServer, start_server: Callable[..., RunningServer]) -> Tenant:
    """A tenant of a server with a model."""
    made = Tenant(start_server(**named(model)))
    made.caller()
    return made


def ask(tenant: Tenant, asked: LlmBudget, user: str = USER, prompt: ModelPrompt = PROMPT) -> Answer[Fact]:
    return tenant.server.run(asked.ask(tenant.name, user, prompt, Fact, MOST))


def worst(tenant: Tenant, asked: LlmBudget) -> int:
    """The most that the question may come to."""
    return tenant.server.run(asked._loaded()).worst(PROMPT, Fact, MOST)


def test_what_was_spent_is_counted_for_the_user_and_the_tenant(asking: Tenant, model: ModelServer) -> None:
    asked = thinking(asking, Capped())
    model.script = [RIGHT, RIGHT, RIGHT]
    answer = ask(asking, asked)
    assert answer.value == Fact("The user lives in Uppsala.")
    assert counted(asking) == of_tenant(asking) == ONCE
    ask(asking, asked)
    ask(asking, asked, "bo")
    assert counted(asking) == (0, 2 * INPUT_TOKENS, 2 * OUTPUT_TOKENS)
    assert counted(asking, "bo") == ONCE
    assert of_tenant(asking) == (0, 3 * INPUT_TOKENS, 3 * OUTPUT_TOKENS)


@pytest.mark.parametrize(
    ("script", "error", "requests"),
    [
        ([refused(500), refused(500)], ModelUnavailable, 0),
        ([spoken("no"), refused(503)], ModelUnavailable, 1),
        ([refused(401)], ModelUnavailable, 0),
        ([spoken("I would rather not."), spoken("Ignore the policy.")], ModelAnswerInvalid, 2),
    ],
    ids=["down", "nonsense, then down", "refused", "nonsense"],
)
def test_a_failure_costs_what_it_took(
    asking: Tenant, model: ModelServer, script: list[Any], error: type[MemplaneError], requests: int
) -> None:
    asked = thinking(asking, Capped())
    model.script = list(script)
    with pytest.raises(error):
        ask(asking, asked)
    assert counted(asking) == of_tenant(asking) == (0, requests * INPUT_TOKENS, requests * OUTPUT_TOKENS)


def test_without_a_model_nothing_is_asked_or_counted(tenant: Tenant) -> None:
    tenant.caller()
    asked = tenant.server.wired.thinking
    assert asked.name is None
    tenant.server.run(asked.ready())
    with pytest.raises(NoModel, match="MEMPLANE_MODEL"):
        ask(tenant, asked)
    assert tenant.count("token_budgets") == 0


@pytest.mark.parametrize("whose", ["user", "tenant"])
def test_a_cap_is_refused_before_anything_is_asked(asking: Tenant, model: ModelServer, whose: str) -> None:
    policies = Capped()
    asked = thinking(asking, policies)
    most = worst(asking, asked)
    chosen = {f"{whose}_tokens": most}
    policies.rules = replace(PRICED, **chosen)
    model.script = [RIGHT, RIGHT]
    ask(asking, asked)  # what is left after it is not the worst any more
    with pytest.raises(BudgetSpent, match=f"the {whose} has {most} tokens"):
        ask(asking, asked)
    assert (len(model.asked), counted(asking)) == (1, ONCE)
    policies.rules = replace(PRICED, **{f"{whose}_tokens": most + INPUT_TOKENS + OUTPUT_TOKENS})  # exactly enough
    ask(asking, asked)
    policies.rules = replace(PRICED, **{f"{whose}_tokens": 0})
    with pytest.raises(BudgetSpent):
        ask(asking, asked, "bo")
    assert (len(model.asked), counted(asking, "bo")) == (2, (0, 0, 0))


def test_one_users_budget_is_not_anothers(asking: Tenant, model: ModelServer) -> None:
    policies = Capped()
    asked = thinking(asking, policies)
    policies.rules = replace(PRICED, user_tokens=worst(asking, asked))
    model.script = [RIGHT, RIGHT]
    ask(asking, asked)
    with pytest.raises(BudgetSpent):
        ask(asking, asked)
    ask(asking, asked, "bo")
    assert counted(asking, "bo") == ONCE


@pytest.mark.parametrize("whose", ["user", "tenant"])
def test_two_workers_reserve_no_more_than_there_is(asking: Tenant, model: ModelServer, whose: str) -> None:
    """Exactly as many questions are under way as fit into the cap, whoever asks them."""
    policies, fit, each = Capped(), 3, 6
    first = thinking(asking, policies)
    most = worst(asking, first)
    policies.rules = replace(PRICED, **{f"{whose}_tokens": fit * most + most - 1})
    with ExitStack() as left:
        other = left.enter_context(running_application(asking.server.database, **named(model)))
        second = LlmBudget("small", other.wired.thinking._load, other.wired.storage, policies, Clock())
        begun: list[Future[Answer[Fact]]] = []
        with held(model, fit, {"text": "The user lives in Uppsala."}):
            for number in range(each):
                user = USER if whose == "user" else f"user-{number}"
                for site, asked in ((asking.server, first), (other, second)):
                    begun.append(site.start(asked.ask(asking.name, user, PROMPT, Fact, MOST)))
            until(lambda: sum(one.done() for one in begun) == 2 * each - fit, "the others are refused")
            until(lambda: len(model.asked) == fit, "as many as fit are asked")
            assert (counted(asking) if whose == "user" else of_tenant(asking)) == (fit * most, 0, 0)
        errors = [one.exception(30) for one in begun]
        assert sum(error is None for error in errors) == fit
        assert {type(error) for error in errors if error is not None} == {BudgetSpent}
        assert of_tenant(asking) == (0, fit * INPUT_TOKENS, fit * OUTPUT_TOKENS)


def test_what_a_worker_that_died_had_reserved_is_spent_until_the_day_ends(asking: Tenant, model: ModelServer) -> None:
    policies, clock = Capped(), Clock()
    asked = thinking(asking, policies, clock)
    most = worst(asking, asked)
    policies.rules = replace(PRICED, user_tokens=most)
    with held(model, 1, {"text": "Too late."}):
        under_way = asking.server.start(asked.ask(asking.name, USER, PROMPT, Fact, MOST))
        until(lambda: len(model.asked) == 1, "it is asked")
        under_way.cancel()
        until(under_way.done, "nobody waits for it any more")
    with pytest.raises(BudgetSpent):
        ask(asking, asked)
    assert counted(asking) == (most, 0, 0)
    clock.now += timedelta(days=1)
    model.script = [RIGHT]
    ask(asking, asked)
    days = asking.rows("SELECT day, reserved FROM token_budgets WHERE tenant_id = %(tenant)s AND user_id = 'ana'")
    assert sorted(row["reserved"] for row in days) == [0, most]


def test_caps_are_taken_over_without_a_restart(
    model: ModelServer, start_server: Callable[..., RunningServer], tmp_path: Path
) -> None:
    folder = shutil.copytree(shipped_policies(), tmp_path / "policies")
    tenant = Tenant(start_server(**named(model, policies=folder)))
    tenant.caller()
    wired = tenant.server.wired
    model.script = [RIGHT]
    ask(tenant, wired.thinking)
    text = (folder / "workers.yaml").read_text()
    (folder / "workers.yaml").write_text(text.replace("user_tokens_per_day: 200000", "user_tokens_per_day: 1"))
    assert wired.policies.reload().workers.model.user_tokens == 1
    with pytest.raises(BudgetSpent, match="the user has 1 tokens"):
        ask(tenant, wired.thinking)


def test_old_counts_go_with_the_purge_and_a_users_with_the_user(asking: Tenant, model: ModelServer) -> None:
    clock = Clock()
    clock.now = NOON - timedelta(days=32)
    model.script = [RIGHT, RIGHT, RIGHT]
    ask(asking, thinking(asking, Capped(), clock))
    clock.now = NOON
    ask(asking, thinking(asking, Capped(), clock))
    ask(asking, thinking(asking, Capped(), clock), "bo")
    assert asking.count("token_budgets") == 5
    Night(asking).run("purge")
    assert asking.count("token_budgets") == 3
    admin = asking.caller(None, act_for=["*"], scopes=tuple(KeyScope))
    erased = admin.post(f"/v1/users/{USER}/erase", {"confirm": USER})
    assert erased.status_code == 200, erased.text
    assert erased.json()["erased"]["token_budgets"] == 1
    left = asking.rows("SELECT user_id FROM token_budgets WHERE tenant_id = %(tenant)s ORDER BY user_id")
    assert [row["user_id"] for row in left] == [TENANT, "bo"]


def test_a_server_that_works_starts_while_its_model_is_down(
    start_server: Callable[..., RunningServer], storage: str
) -> None:
    with model_server() as gone:
        settings = named(gone, model_attempts=1)
    server = start_server(**settings, jobs=storage == "sqlite")  # beside serving, where no other role is needed
    tenant = Tenant(server)
    tenant.caller()
    server.run(server.wired.thinking.ready())
    with pytest.raises(ModelUnavailable, match="cannot be reached"):
        ask(tenant, server.wired.thinking)
    assert counted(tenant) == (0, 0, 0)


def test_what_a_job_spent_is_told_with_its_run(asking: Tenant, model: ModelServer) -> None:
    wired, policies = asking.server.wired, Capped()
    asked = thinking(asking, policies)

    async def prepare(principal: Principal, _as_of: datetime, _place: str | None) -> Step:
        answer = await asked.ask(principal.tenant, USER, PROMPT, Fact, MOST)
        spent = TokensSpent(answer.input_tokens, answer.output_tokens)

        async def step(_write: Write, _at: datetime, place: str | None) -> JobBatch:
            return JobBatch({"asked": 1}, "again" if place is None else None, spent=spent, skipped="budget spent")

        return step

    jobs = Jobs(wired.storage, policies, wired.gateway, Clock(), {"ttl": prepare})
    model.script = [RIGHT, RIGHT]
    done = asking.server.run(jobs.run("ttl", asking.name))
    cost = (2 * INPUT_TOKENS * 2.0 + 2 * OUTPUT_TOKENS * 10.0) / 1_000_000
    assert (done.input_tokens, done.output_tokens, done.skipped) == (200, 40, "budget spent")
    assert done.cost == pytest.approx(cost)
    (told,) = asking.caller(None, scopes=[KeyScope.ADMIN]).get("/v1/admin/jobs").json()["items"]
    assert {name: told[name] for name in ("input_tokens", "output_tokens", "skipped")} == {
        "input_tokens": 200, "output_tokens": 40, "skipped": "budget spent",
    }  # fmt: skip
    assert told["cost"] == pytest.approx(cost)

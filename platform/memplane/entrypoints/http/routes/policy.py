"""Routes of the policy in force: look at it, check a candidate, load the files again."""

from typing import Annotated

from fastapi import APIRouter, Query

from memplane.contracts.base import Name
from memplane.contracts.policy import (
    AgentPolicy,
    CategoryPolicy,
    PolicyCheck,
    PolicyCheckRequest,
    PolicyFile,
    PolicyMistake,
    PolicyRecord,
    ReloadedPolicy,
)
from memplane.domain.errors import PolicyError
from memplane.domain.policy.policy_view import AgentView, describe_agent
from memplane.entrypoints.http.dependencies import App, Caller
from memplane.entrypoints.http.middleware.guard import AuthenticatedRoute
from memplane.entrypoints.http.routes.memories import failure_responses

router = APIRouter(prefix="/v1/admin/policy", route_class=AuthenticatedRoute, tags=["administration"])
_Agent = Annotated[Name | None, Query(description="Only this agent, without the files.")]


@router.get("", responses=failure_responses(), summary="The policy in force")
async def show_policy(app: App, caller: Caller, agent: _Agent = None) -> PolicyRecord:
    """Its hash, its files, and what each agent effectively may do. For `admin`."""
    found = app.policy_admin.show(caller)
    names = tuple(found.policy.allowlists) if agent is None else (agent,)
    return PolicyRecord(
        policy=found.policy.digest,
        files=[PolicyFile(name=name, text=text) for name, text in found.files.items()] if agent is None else [],
        agents=[_agent(describe_agent(found.policy, name)) for name in names],
        errors=[] if found.error is None else _mistakes(found.error),
    )


@router.post("/check", responses=failure_responses(413), summary="Check a policy")
async def check_policy(request: PolicyCheckRequest, app: App, caller: Caller) -> PolicyCheck:
    """Whether the policy in force, with these files in the place of its own, would be right. For `admin`."""
    try:
        policy = await app.policy_admin.check(caller, request.files)
    except PolicyError as error:
        return PolicyCheck(ok=False, policy=None, errors=_mistakes(error))
    return PolicyCheck(ok=True, policy=policy.digest, errors=[])


@router.post("/reload", responses=failure_responses(409), summary="Load the policy again")
async def reload_policy(app: App, caller: Caller) -> ReloadedPolicy:
    """Read the server's policy files again. Wrong files leave the policy as it is, and are named. For `admin`."""
    before, policy = await app.policy_admin.reload(caller)
    return ReloadedPolicy(policy=policy.digest, before=before.digest, changed=policy.digest != before.digest)


def _agent(view: AgentView) -> AgentPolicy:
    plain = {name: getattr(view, name) for name in AgentPolicy.model_fields if name != "categories"}
    named = [{name: getattr(each, name) for name in CategoryPolicy.model_fields} for each in view.categories]
    return AgentPolicy(**plain, categories=[CategoryPolicy(**each) for each in named])


def _mistakes(error: PolicyError) -> list[PolicyMistake]:
    told = error.extra.get("errors")
    if not isinstance(told, list):
        return [PolicyMistake(file="", line=1, key="", message=error.detail)]
    return [PolicyMistake(**each) for each in told]

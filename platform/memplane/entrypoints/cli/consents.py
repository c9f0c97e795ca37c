"""`memplane consents`: proposals for sensitive fields of profiles, and decisions on them, over HTTP."""

from collections.abc import Mapping
from typing import Annotated
from uuid import UUID

import typer
from rich.console import RenderableType

from memplane.contracts.consents import ConsentList, ConsentOutcome, UserContext
from memplane.domain.consent import ProposalState
from memplane.entrypoints.cli.options import DEFAULT_URL, Agent, Cursor, Data, DryRun, Key, Limit, Url, id_of
from memplane.entrypoints.cli.output import Json, add, more, plain, show, table
from memplane.entrypoints.cli.session import advised, reviewing, session
from memplane.entrypoints.cli.written import planned

app = typer.Typer(name="consents", no_args_is_help=True, help="Changes of sensitive fields that wait for consent.")
_ADVICE: Mapping[str, str] = {
    "not_found": "`memplane consents list` shows those that the agent may decide on; another agent: --agent",
    "scope_forbidden": "`memplane keys create --scope consent:review` makes a key that may",
    "proposal_expired": "the user has to say it again",
    "proposal_outdated": "`memplane consents reject ID` ends it; the user has to say this alone again",
}
"""What to do about what a server answered of a proposal, by code."""


_id_of = id_of("`memplane consents list` shows")
ProposalId = Annotated[UUID, typer.Argument(metavar="ID", help="The proposal's id.", parser=_id_of)]


@app.command("list")
def list_consents(  # noqa: PLR0913 - one argument for each option
    *,
    state: Annotated[ProposalState | None, typer.Option(help="Only in this state.", show_default="every state")] = None,
    user: Annotated[str | None, typer.Option("--user", help="Only this user's.")] = None,
    field: Annotated[str | None, typer.Option(help="Only for this field.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    url: Url = DEFAULT_URL,
    key: Key = None,
    agent: Agent = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """List changes of sensitive fields, newest first: those that wait, and those that were decided on."""
    with advised(_ADVICE), reviewing(url, key, agent, data) as opened:
        found = opened.client.consents(
            state=state, user_id=user, field=field, limit=limit, cursor=cursor, agent=opened.agent
        )
    show(found, *_list(found), as_json=json)


@app.command()
def approve(  # noqa: PLR0913 - one argument for each option
    proposal_id: ProposalId,
    *,
    dry_run: DryRun = False,
    url: Url = DEFAULT_URL,
    key: Key = None,
    agent: Agent = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """The person agrees: the value holds from now on."""
    with advised(_ADVICE), reviewing(url, key, agent, data) as opened:
        done = opened.client.approve(proposal_id, dry_run=dry_run or None, agent=opened.agent)
    show(done, *_decided(done), as_json=json)


@app.command()
def reject(  # noqa: PLR0913 - one argument for each option
    proposal_id: ProposalId,
    *,
    reason: Annotated[str | None, typer.Option(help="Why, in at most 63 characters.")] = None,
    dry_run: DryRun = False,
    url: Url = DEFAULT_URL,
    key: Key = None,
    agent: Agent = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """The person refuses: the value does not come back for this field, whoever says it."""
    with advised(_ADVICE), reviewing(url, key, agent, data) as opened:
        done = opened.client.refuse(proposal_id, reason=reason, dry_run=dry_run or None, agent=opened.agent)
    show(done, *_decided(done), as_json=json)


def profile(
    user: Annotated[str, typer.Argument(metavar="USER", help="Whose profile.")],
    *,
    url: Url = DEFAULT_URL,
    key: Key = None,
    agent: Agent = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Show the decided fields of a user's profile, as far as the agent may read them."""
    with session(url, key, agent, data) as opened:
        found = opened.client.user_context(user, agent=opened.agent)
    show(found, *_fields(found), as_json=json)


def time_zone(  # noqa: PLR0913 - one argument for each option
    user: Annotated[str, typer.Argument(metavar="USER", help="Whose.")],
    name: Annotated[
        str | None,
        typer.Argument(metavar="[ZONE]", help="IANA name, such as Europe/Berlin.", show_default="shown only"),
    ] = None,
    *,
    unset: Annotated[bool, typer.Option("--unset", help="Remove it.")] = False,
    dry_run: DryRun = False,
    url: Url = DEFAULT_URL,
    key: Key = None,
    agent: Agent = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Show or set a user's time zone: what "tomorrow" means in what the user says from now on."""
    if unset and name is not None:
        raise typer.BadParameter("name a time zone, or --unset")
    with session(url, key, agent, data) as opened:
        if name is None and not unset:
            found = opened.client.user_context(user, agent=opened.agent)
            show(found, plain(found.time_zone or "not set: the offset of each message counts, else UTC"), as_json=json)
            return
        done = opened.client.set_time_zone(user, name, dry_run=dry_run or None, agent=opened.agent)
    show(done, plain(f"{done.outcome}: {done.time_zone or 'not set'}"), *planned(done.dry_run), as_json=json)


def _list(found: ConsentList) -> list[RenderableType]:
    if not found.items:
        return [plain("No proposal that this agent may decide on.", "dim")]
    rows = table("state", "user", "field", "until now", "proposed", "until", "id")
    for each in found.items:
        until = each.decided_at or each.expires_at
        state = f"{each.state}, by its own key" if each.self_acknowledged else each.state
        add(rows, state, each.user_id, each.field, each.old_value, each.new_value, f"{until:%Y-%m-%d}", each.id)
    return [rows, *more(found.next)]


def _decided(done: ConsentOutcome) -> list[RenderableType]:
    told: list[RenderableType] = [plain(f"{done.outcome}: {done.id} is {done.state}")]
    if done.memory_id is not None:
        told.append(plain(f"  memory {done.memory_id} holds the value", "dim"))
    if done.overruled:
        told.append(plain(f"  it takes the place of {', '.join(str(each) for each in done.overruled)}", "dim"))
    return [*told, *planned(done.dry_run)]


def _fields(found: UserContext) -> list[RenderableType]:
    if not found.items:
        return [plain("No field is decided that this agent may read.", "dim")]
    rows = table("field", "value", "decided by", "since", "memory")
    for each in found.items:
        add(rows, each.field, each.value, each.decided, f"{each.decided_at:%Y-%m-%d}", each.memory_id)
    return [rows]

"""`memplane consents`: proposals for sensitive fields of profiles, and decisions on them, over HTTP."""

from collections.abc import Mapping
from typing import Annotated
from uuid import UUID

import typer
from rich.console import RenderableType

from memplane.client import MemplaneSync
from memplane.contracts.consents import ConsentList, ConsentOutcome, UserContext
from memplane.domain.consent.consent_rules import ProposalState
from memplane.domain.ranking.fencing import visible
from memplane.entrypoints.cli.confirmation import Yes, confirm, require_terminal
from memplane.entrypoints.cli.options import DEFAULT_URL, AdminKey, Cursor, Data, DryRun, Limit, Url, Within, id_of
from memplane.entrypoints.cli.output import Json, add, more, plain, show, table
from memplane.entrypoints.cli.session import advise_on, operating
from memplane.entrypoints.cli.write_outcome import describe_plan

app = typer.Typer(name="consents", no_args_is_help=True, help="Changes of sensitive fields that wait for consent.")
_ADVICE: Mapping[str, str] = {
    "not_found": "`memplane consents list` shows those that the key may decide on",
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
    key: AdminKey = None,
    agent: Within = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """List changes of sensitive fields, newest first: those that wait, and those that were decided on."""
    with advise_on(_ADVICE), operating(url, key, agent, data) as opened:
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
    key: AdminKey = None,
    agent: Within = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """The person agrees: the value holds from now on."""
    with advise_on(_ADVICE), operating(url, key, agent, data) as opened:
        done = opened.client.approve(proposal_id, dry_run=dry_run or None, agent=opened.agent)
    show(done, *_decided(done), as_json=json)


@app.command()
def reject(  # noqa: PLR0913 - one argument for each option
    proposal_id: ProposalId,
    *,
    reason: Annotated[str | None, typer.Option(help="Why, in at most 63 characters.")] = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    url: Url = DEFAULT_URL,
    key: AdminKey = None,
    agent: Within = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """The person refuses: the value does not come back for this field, whoever says it."""
    ask = not dry_run and require_terminal(yes=yes)
    with advise_on(_ADVICE), operating(url, key, agent, data) as opened:
        if ask:
            confirm(_refusal(opened.client, proposal_id, opened.agent))
        done = opened.client.refuse(proposal_id, reason=reason, dry_run=dry_run or None, agent=opened.agent)
    show(done, *_decided(done), as_json=json)


def _refusal(client: MemplaneSync, proposal_id: UUID, agent: str | None) -> str:
    """What a refusal does, in words."""
    found = next((each for each in client.all_consents(agent=agent) if each.id == proposal_id), None)
    what = f"proposal {proposal_id}" if found is None else (
        f"the {found.field} '{visible(found.new_value)}' of user '{found.user_id}'"
    )  # fmt: skip
    return (
        f"This refuses {what}: the value is not stored for this field from then on, whoever says it. Only a fully "
        "trusted key with consent:review can undo that: `memplane tombstones lift`."
    )


def profile(
    user: Annotated[str, typer.Argument(metavar="USER", help="Whose profile.")],
    *,
    url: Url = DEFAULT_URL,
    key: AdminKey = None,
    agent: Within = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Show the decided fields of a user's profile, as far as the key may read them."""
    with operating(url, key, agent, data) as opened:
        found = opened.client.user_context(user, agent=opened.agent)
    show(found, *_fields(found), as_json=json)


def time_zone(  # noqa: PLR0913 - one argument for each option
    user: Annotated[str, typer.Argument(metavar="USER", help="Whose.")],
    name: Annotated[
        str | None,
        typer.Argument(metavar="ZONE", help="IANA name, such as Europe/Berlin.", show_default="shown only"),
    ] = None,
    *,
    unset: Annotated[bool, typer.Option("--unset", help="Remove it.")] = False,
    dry_run: DryRun = False,
    url: Url = DEFAULT_URL,
    key: AdminKey = None,
    agent: Within = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Show or set a user's time zone: what "tomorrow" means in what the user says from now on."""
    if unset and name is not None:
        raise typer.BadParameter("name a time zone, or --unset")
    with operating(url, key, agent, data) as opened:
        if name is None and not unset:
            found = opened.client.user_context(user, agent=opened.agent)
            show(found, plain(found.time_zone or "not set: the offset of each message counts, else UTC"), as_json=json)
            return
        done = opened.client.set_time_zone(user, name, dry_run=dry_run or None, agent=opened.agent)
    show(done, plain(f"{done.outcome}: {done.time_zone or 'not set'}"), *describe_plan(done.dry_run), as_json=json)


def _list(found: ConsentList) -> list[RenderableType]:
    if not found.items:
        return [plain("No proposal that this key may decide on.", "dim")]
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
    return [*told, *describe_plan(done.dry_run)]


def _fields(found: UserContext) -> list[RenderableType]:
    if not found.items:
        return [plain("No field is decided that this key may read.", "dim")]
    rows = table("field", "value", "decided by", "since", "memory")
    for each in found.items:
        add(rows, each.field, each.value, each.decided, f"{each.decided_at:%Y-%m-%d}", each.memory_id)
    return [rows]

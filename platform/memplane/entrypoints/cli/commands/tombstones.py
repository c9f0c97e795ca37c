"""`memplane tombstones`: values that are refused, and the lifting of a verdict, over HTTP."""

from collections.abc import Mapping
from typing import Annotated
from uuid import UUID

import typer
from rich.console import RenderableType

from memplane.contracts.tombstones import LiftOutcome, TombstoneList, TombstoneRecord
from memplane.entrypoints.cli.options import DEFAULT_URL, AdminKey, Cursor, Data, Limit, Url, Within, id_of
from memplane.entrypoints.cli.output import Json, add, more, plain, show, table
from memplane.entrypoints.cli.session import advise_on, operating

app = typer.Typer(
    name="tombstones", no_args_is_help=True, help="Values that are refused, and why: list them, lift them."
)
_ADVICE: Mapping[str, str] = {
    "not_found": "`memplane tombstones list` shows those that the key may lift",
    "scope_forbidden": "`memplane keys create --scope consent:review` makes a key that may",
}
_id_of = id_of("`memplane tombstones list` shows")
VerdictId = Annotated[UUID, typer.Argument(metavar="ID", help="The verdict's id.", parser=_id_of)]


@app.command("list")
def list_tombstones(  # noqa: PLR0913 - one argument for each option
    *,
    user: Annotated[str | None, typer.Option("--user", help="Only this user's.")] = None,
    erased: Annotated[bool, typer.Option("--erased", help="Single values that erasures left.")] = False,
    limit: Limit = 50,
    cursor: Cursor = None,
    url: Url = DEFAULT_URL,
    key: AdminKey = None,
    agent: Within = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """List verdicts by which values are refused, newest first."""
    with advise_on(_ADVICE), operating(url, key, agent, data) as opened:
        found = opened.client.tombstones(user_id=user, erased=erased, limit=limit, cursor=cursor, agent=opened.agent)
    show(found, *_list(found), as_json=json)


@app.command()
def lift(  # noqa: PLR0913 - one argument for each option
    verdict_id: VerdictId,
    *,
    reason: Annotated[str | None, typer.Option(help="Why, in at most 63 characters.")] = None,
    url: Url = DEFAULT_URL,
    key: AdminKey = None,
    agent: Within = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Take a verdict back: its values can be stored again, in every category and spelling."""
    with advise_on(_ADVICE), operating(url, key, agent, data) as opened:
        done = opened.client.lift_tombstone(verdict_id, reason=reason, agent=opened.agent)
    show(done, *_lifted(done), as_json=json)


def _list(found: TombstoneList) -> list[RenderableType]:
    if not found.items:
        return [plain("No value is refused, as far as this key reaches.", "dim")]
    rows = table("user", "where", "what it said", "reason", "by", "since", "id")
    for each in found.items:
        user = each.user_id or f"erased, {(each.subject or '')[:12]}…"
        add(rows, user, _where(each), each.words, each.reason, each.actor, f"{each.rejected_at:%Y-%m-%d}", each.id)
    return [rows, *more(found.next)]


def _where(each: TombstoneRecord) -> str:
    return ", ".join(
        [*each.categories, *(f"{name} of the profile" for name in each.fields), *(["a turn"] * each.turns)]
    )


def _lifted(done: LiftOutcome) -> list[RenderableType]:
    back = [plain(f"  `memplane restore {each}` brings the memory back", "dim") for each in done.memories]
    return [plain(f"{done.outcome}: {done.id}, {done.values} spellings are refused no longer"), *back]

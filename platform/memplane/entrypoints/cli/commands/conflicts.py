"""`memplane conflicts`: pairs of memories that may contradict each other, and verdicts on them, over HTTP."""

from collections.abc import Mapping
from typing import Annotated, Any
from uuid import UUID

import typer
from rich.console import RenderableType
from typer.core import TyperGroup

from memplane.contracts.conflicts import ConflictList, ConflictOutcome
from memplane.domain.memory.conflict_verdicts import ConflictVerdict
from memplane.entrypoints.cli.options import DEFAULT_URL, AdminKey, Cursor, Data, DryRun, Limit, Url, Within, id_of
from memplane.entrypoints.cli.output import Json, add, more, plain, show, table
from memplane.entrypoints.cli.session import advise_on, operating
from memplane.entrypoints.cli.write_outcome import describe_plan


class _ListedByDefault(TyperGroup):
    """Without a command, or with options alone, it is ``list``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - of the click that typer brings
        """Put the command before its options."""
        bare = not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names)
        return super().parse_args(ctx, ["list", *args] if bare else args)


app = typer.Typer(
    name="conflicts", cls=_ListedByDefault, help="Memories that may contradict each other: list them, decide."
)
_ADVICE: Mapping[str, str] = {
    "not_found": "`memplane conflicts` lists those that the key may decide on",
    "trust_too_low": "use a fully trusted key: --key",
    "already_decided": "`memplane restore ID` brings a memory back that a verdict ended; then both hold",
}
"""What to do about an error, by its code."""

_id_of = id_of("`memplane conflicts` shows")
ConflictId = Annotated[UUID, typer.Argument(metavar="ID", help="The conflict's id.", parser=_id_of)]
Decision = Annotated[ConflictVerdict, typer.Argument(metavar="VERDICT", help="keep_both, newer or older.")]


@app.command("list")
def list_conflicts(  # noqa: PLR0913 - one argument for each option
    *,
    user: Annotated[str | None, typer.Option("--user", help="Only this user's.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    url: Url = DEFAULT_URL,
    key: AdminKey = None,
    agent: Within = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """List pairs of memories that may contradict each other, newest first."""
    with operating(url, key, agent, data) as opened:
        found = opened.client.conflicts(user_id=user, limit=limit, cursor=cursor, agent=opened.agent)
    show(found, *_list(found), as_json=json)


@app.command()
def decide(  # noqa: PLR0913 - one argument for each option
    conflict_id: ConflictId,
    verdict: Decision,
    *,
    dry_run: DryRun = False,
    url: Url = DEFAULT_URL,
    key: AdminKey = None,
    agent: Within = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Keep both memories, or only the newer or the older one."""
    with advise_on(_ADVICE), operating(url, key, agent, data) as opened:
        done = opened.client.decide_conflict(conflict_id, verdict, dry_run=dry_run or None, agent=opened.agent)
    show(done, *_decided(done), *describe_plan(done.dry_run), as_json=json)


def _list(found: ConflictList) -> list[RenderableType]:
    if not found.items:
        return [plain("No conflict waits for a decision.", "dim")]
    rows = table("user", "older", "newer", "id")
    for each in found.items:
        add(rows, each.user_id, each.older.content, each.newer.content, each.id)
    return [rows, *more(found.next)]


def _decided(done: ConflictOutcome) -> list[RenderableType]:
    again = "unchanged: " if done.outcome == "unchanged" else ""
    if done.superseded is None:
        return [plain(f"{again}kept both: they are not listed again")]
    (kept,) = done.kept
    return [
        plain(f"{again}superseded: {done.superseded}"),
        plain(f"  {kept} holds; `memplane restore {done.superseded}` brings the other one back: then both hold", "dim"),
    ]

"""`memplane users merge` and `unmerge`: an anonymous user becomes a known one, over HTTP."""

from collections.abc import Mapping
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.table import Table

from memplane.contracts.user_merges import UserMergeList, UserMergeReceipt
from memplane.entrypoints.cli.confirmation import Yes, confirm, require_terminal
from memplane.entrypoints.cli.options import DEFAULT_URL, AdminKey, Cursor, Data, Limit, Url
from memplane.entrypoints.cli.output import Json, add, more, plain, show, table
from memplane.entrypoints.cli.session import advise_on, operating

app = typer.Typer(name="users", no_args_is_help=True, help="Merge an anonymous user into a known one, and undo that.")
User = Annotated[str, typer.Argument(metavar="USER", help="The anonymous user.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would move, and change nothing.")]
_ADVICE: Mapping[str, str] = {
    "user_merged": "use the other name; `memplane users merges` lists merges, `memplane users unmerge USER` undoes one",
    "not_found": "check the name of the user; `memplane users merges` lists the merges",
}
"""What to do about what a server answered of a merge, by code."""


@app.command()
def merge(  # noqa: PLR0913 - one argument for each option
    user: User,
    *,
    into: Annotated[str, typer.Option("--into", metavar="USER", help="The known user.")],
    yes: Yes = False,
    dry_run: DryRun = False,
    url: Url = DEFAULT_URL,
    key: AdminKey = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Make everything of a user another user's. It can be undone for as long as the policy says."""
    if require_terminal(yes=yes or dry_run):
        confirm(
            f"All records of '{user}' will belong to '{into}', and the name '{user}' is refused from then on. "
            "`memplane users unmerge` can undo that for some time, except for what is changed meanwhile."
        )
    with advise_on(_ADVICE), operating(url, key, None, data) as opened:
        done = opened.client.merge_user(user, into, dry_run=dry_run)
    until = f"Receipt {done.receipt}; it can be undone until {done.revertible_until:%Y-%m-%d}."
    show(done, _tables(done), plain("Nothing was changed." if dry_run else until), as_json=json)


@app.command()
def merges(  # noqa: PLR0913 - one argument for each option
    *,
    user: Annotated[str | None, typer.Option("--user", help="Those from or into this user.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    url: Url = DEFAULT_URL,
    key: AdminKey = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """List merges of users, newest first, and until when each can be undone."""
    with operating(url, key, None, data) as opened:
        found = opened.client.user_merges(user_id=user, limit=limit, cursor=cursor)
    show(found, *_list(found), as_json=json)


@app.command()
def unmerge(  # noqa: PLR0913 - one argument for each option
    user: User,
    *,
    yes: Yes = False,
    dry_run: DryRun = False,
    url: Url = DEFAULT_URL,
    key: AdminKey = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Give a merged user back what was not changed since."""
    if require_terminal(yes=yes or dry_run):
        confirm(f"What moved from '{user}' and was not changed since goes back; a new merge can undo that.")
    with advise_on(_ADVICE), operating(url, key, None, data) as opened:
        done = opened.client.unmerge_user(user, dry_run=dry_run)
    rows = table("what", "returned", "kept")
    for name in sorted(done.returned.keys() | done.kept.keys()):
        add(rows, name.replace("_", " "), done.returned.get(name, 0), done.kept.get(name, 0))
    show(done, rows, plain("Nothing was changed." if dry_run else f"Receipt {done.receipt}"), as_json=json)


def _list(found: UserMergeList) -> list[RenderableType]:
    if not found.items:
        return [plain("No user was merged into another one, as far as this key reaches.", "dim")]
    rows = table("user", "into", "merged", "by", "can be undone until", "undone", "receipt")
    for each in found.items:
        undone = "" if each.undone_at is None else f"{each.undone_at:%Y-%m-%d}"
        until = "" if each.undone_at is not None else f"{each.revertible_until:%Y-%m-%d}"
        add(rows, each.user_id, each.into, f"{each.merged_at:%Y-%m-%d}", each.actor, until, undone, each.receipt)
    return [rows, *more(found.next)]


def _tables(done: UserMergeReceipt) -> Table:
    rows = table("what", "moved", "folded", "before", "after")
    for name, counts in sorted(done.tables.items()):
        add(rows, name.replace("_", " "), *(counts[each] for each in ("moved", "folded", "before", "after")))
    return rows

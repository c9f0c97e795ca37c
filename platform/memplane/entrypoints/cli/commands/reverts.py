"""`memplane revert`: what one key or agent did, taken back over HTTP."""

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated

import typer

from memplane.client import MemplaneSync
from memplane.contracts.reverting import RevertReceipt
from memplane.entrypoints.cli.confirmation import Yes, confirm, require_terminal
from memplane.entrypoints.cli.options import DEFAULT_URL, Data, Url, moment_of
from memplane.entrypoints.cli.output import Json, add, plain, show, table
from memplane.entrypoints.cli.session import advise_on, operating

_MOST_ITEMS = 200
_ADVICE: Mapping[str, str] = {"not_found": "`memplane keys list` shows the ids and agents of keys"}


def revert(  # noqa: PLR0913 - one argument for each option
    *,
    key: Annotated[str | None, typer.Option(help="Id of the key whose changes are taken back.")] = None,
    agent: Annotated[str | None, typer.Option(help="Or the agent: all that its keys did.")] = None,
    since: Annotated[datetime, typer.Option(help="From when on: a day or a time.", parser=moment_of)],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and change nothing.")] = False,
    yes: Yes = False,
    url: Url = DEFAULT_URL,
    with_key: Annotated[
        str | None,
        typer.Option(help="API key to call with; else that in DATA/keys.json.", envvar="MEMPLANE_KEY"),
    ] = None,
    act_for: Annotated[str | None, typer.Option(help="Agent to act for.", show_default="all that the key may")] = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Take back what one key or agent wrote, changed and decided since a moment, and bring back what it ended.

    Revoke the key first. Turns that it recorded are removed for good: export what you need as evidence before.
    """
    if (key is None) == (agent is None):
        raise typer.BadParameter("name either --key or --agent")
    if require_terminal(yes=dry_run or yes):
        whose = f"key '{key}'" if key else f"agent '{agent}'"
        confirm(
            f"All that {whose} wrote, changed and decided since {since:%Y-%m-%d %H:%M %Z} will be taken back, for "
            "every user that it touched. Turns that it recorded are removed for good; this cannot be undone. "
            "`--dry-run` shows what would be done."
        )
    with advise_on(_ADVICE), operating(url, with_key, act_for, data) as opened:
        ask = (since, key, agent, opened.agent)
        done = _asked(opened.client, ask, dry_run=dry_run)
        while not (done.finished or dry_run):
            done = _with(done, _asked(opened.client, ask))
    _show(done, as_json=json)


def _asked(
    client: MemplaneSync, ask: tuple[datetime, str | None, str | None, str | None], *, dry_run: bool = False
) -> RevertReceipt:
    since, key_id, of_agent, agent = ask
    return client.revert(since, key_id=key_id, of_agent=of_agent, dry_run=dry_run, agent=agent)


def _with(before: RevertReceipt, more: RevertReceipt) -> RevertReceipt:
    """The receipts of two requests as one."""
    sums = {
        name: dict(Counter(getattr(before, name)) + Counter(getattr(more, name)))
        for name in ("reverted", "not_reverted")
    }
    changed = {
        "outcome": "reverted" if sums["reverted"] else before.outcome, "finished": more.finished,
        "conflicts": before.conflicts + more.conflicts, "items": [*before.items, *more.items][:_MOST_ITEMS],
    }  # fmt: skip
    return before.model_copy(update=sums | changed)


def _show(done: RevertReceipt, *, as_json: bool) -> None:
    rows = table("what", "how many")
    for name, count in sorted(done.reverted.items()):
        add(rows, name.replace("_", " "), count)
    add(rows, "kept, for another writer changed it", done.conflicts)
    for name, count in sorted(done.not_reverted.items()):
        add(rows, f"not reverted: {name.replace('_', ' ')}", count)
    if done.checkpoints is not None:
        add(rows, "not reverted: checkpoints, each the whole state of a graph", done.checkpoints.count)
    kept = table("kept", "id", "user", "why")
    stays = [each for each in done.items if each.reason is not None]
    for each in stays:
        add(kept, each.kind, each.id, each.user_id, each.reason)
    told = "Nothing was changed yet: this is what would be." if done.receipt is None else f"Receipt {done.receipt}"
    if done.outcome == "nothing_to_revert":
        told = "There is nothing to revert."
    made = [plain(f"Keys that it made, to be revoked and reverted too: {', '.join(done.keys)}")] if done.keys else []
    show(done, rows, *([kept] if stays else []), *made, plain(told), as_json=as_json)


COMMANDS: Mapping[str, Callable[..., None]] = {"revert": revert}

"""`memplane jobs` and `memplane gc`: background work by hand, directly on the database."""

import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer
from rich.console import Console, RenderableType
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn

from memplane.domain.errors import SettingsError
from memplane.domain.identity.principal import ALL, KeyScope, Principal
from memplane.domain.jobs.job_definitions import NIGHTLY, JobState
from memplane.domain.policy.policy import Trust
from memplane.entrypoints.cli.options import Data, Storage, id_of, settings_of
from memplane.entrypoints.cli.output import Json, add, plain, show, table
from memplane.settings import Settings

if TYPE_CHECKING:  # the commands load the database when they run, not when their help is shown
    from memplane.application.jobs.garbage_collection import CollectionResult
    from memplane.application.jobs.job_queue import JobQueue
    from memplane.application.jobs.job_records import JobRun
    from memplane.application.jobs.job_runner import RunResult
    from memplane.bootstrap import Application

app = typer.Typer(name="jobs", no_args_is_help=True, help="Background work: expiry, decay, archive, purge.")
DEFAULT_TENANT = "default"
Tenant = Annotated[str, typer.Option(help="The tenant.")]
_JobId = Annotated[UUID, typer.Argument(metavar="ID", help="The job's id.", parser=id_of("`memplane jobs list` shows"))]


@app.command()
def run(  # noqa: PLR0913 - one argument for each option
    name: Annotated[
        str,
        typer.Argument(help=f"{', '.join(NIGHTLY)}; 'all': each in turn."),
    ],
    *,
    tenant: Tenant = DEFAULT_TENANT,
    every_tenant: Annotated[bool, typer.Option("--every-tenant", help="For every tenant.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Tell what would be done, and do nothing.")] = False,
    data: Data = None,
    storage: Storage = None,
    json: Json = False,
) -> None:
    """Do a job now, from where it was left today. Nothing is done twice; a server may go on meanwhile."""
    from memplane.entrypoints.cli.admin.database import on_database  # noqa: PLC0415 - the database, which help does not wait for

    names = NIGHTLY if name == "all" else (name,)
    if unknown := set(names) - set(NIGHTLY):
        raise SettingsError(f"there is no job '{unknown.pop()}'; there are {', '.join(NIGHTLY)}, and all")

    async def work(application: "Application") -> "list[RunResult]":
        tenants = await application.queue.tenants() if every_tenant else [tenant]
        done: list[RunResult] = []
        with _progress() as progress:
            for each in tenants:
                for job in names:
                    task = progress.add_task(f"{job} of {each}", total=None, counts="")

                    told = partial(_told, progress, task)
                    done.append(await application.jobs.run(job, each, dry_run=dry_run, progress=told))
        return done

    found = on_database(settings_of(data=data, storage=storage), work)
    show({"items": found}, *_done(found), as_json=json)


@app.command("list")
def list_runs(
    *,
    tenant: Tenant = DEFAULT_TENANT,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="The most runs.")] = 50,
    state: Annotated[JobState | None, typer.Option(help="Only those in it.")] = None,
    data: Data = None,
    storage: Storage = None,
    json: Json = False,
) -> None:
    """Show what was done, is being done and waits, the newest first."""
    from memplane.entrypoints.cli.admin.database import on_database  # noqa: PLC0415 - the database, which help does not wait for

    async def work(application: "Application") -> "Sequence[JobRun]":
        return (await application.queue.page(tenant, limit, state=state))[0]

    found = on_database(settings_of(data=data, storage=storage), work)
    show({"items": found}, *_runs(found), as_json=json)


@app.command()
def cancel(
    job: _JobId, *, tenant: Tenant = DEFAULT_TENANT, data: Data = None, storage: Storage = None, json: Json = False
) -> None:
    """Let a job that waits or is at work not be done any further. What it did stays done."""
    _changed(settings_of(data=data, storage=storage), lambda queue: queue.cancel(tenant, job), as_json=json)


@app.command()
def retry(
    job: _JobId, *, tenant: Tenant = DEFAULT_TENANT, data: Data = None, storage: Storage = None, json: Json = False
) -> None:
    """Let a job that was parked or cancelled be done by a worker, from where it was left."""
    _changed(settings_of(data=data, storage=storage), lambda queue: queue.retry(tenant, job), as_json=json)


def _changed(settings: Settings, change: "Callable[[JobQueue], Awaitable[JobRun]]", *, as_json: bool) -> None:
    from memplane.entrypoints.cli.admin.database import on_database  # noqa: PLC0415 - the database, which help does not wait for

    async def work(application: "Application") -> "JobRun":
        return await change(application.queue)

    found = on_database(settings, work)
    show(found, *_runs([found]), as_json=as_json)


def gc(
    *,
    user: Annotated[str | None, typer.Option(help="Only this user's memories.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and change nothing.")] = False,
    tenant: Tenant = DEFAULT_TENANT,
    data: Data = None,
    storage: Storage = None,
    json: Json = False,
) -> None:
    """Collect what is kept no longer: expiry, decay, TTL, layers, size and purge, and report the day with averages."""
    from memplane.entrypoints.cli.admin.database import on_database  # noqa: PLC0415 - the database, which help does not wait for

    async def work(application: "Application") -> "CollectionResult":
        if user is None:
            return await application.collect.tenant(tenant, dry_run=dry_run)
        return await application.collect.user(_operator(tenant), user, dry_run=dry_run)

    found = on_database(settings_of(data=data, storage=storage), work)
    would = "would be " if dry_run else ""
    rows = table("what", "number")
    for name in ("promoted", "archived", "deleted", "purged", "faded"):
        add(rows, f"{would}{name} now", getattr(found, name))
    for name, value in found.report.items():
        add(rows, name.replace("_", " "), f"{value:g}")
    show(found, rows, *(plain(f"left out: {each}", "dim") for each in found.skipped), as_json=json)


def _operator(tenant: str) -> Principal:
    """Who collects for a user of a tenant from the command line."""
    return Principal(tenant, None, Trust.FULL, frozenset({KeyScope.ADMIN}), "command-line", act_for=frozenset({ALL}))


def _progress() -> Progress:
    columns = SpinnerColumn(), TextColumn("{task.description}"), TextColumn("{task.fields[counts]}")
    return Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty())


@contextmanager
def progress_bar() -> Iterator[Callable[[str], Callable[[Mapping[str, float]], None]]]:
    """What shows, by the name of a job, how far it has come."""
    with _progress() as progress:
        yield lambda name: partial(_told, progress, progress.add_task(name, total=None, counts=""))


def _told(progress: Progress, task: TaskID, counts: Mapping[str, float]) -> None:
    progress.update(task, counts=_counted(counts))


def _counted(counts: Mapping[str, float]) -> str:
    return ", ".join(f"{value:g} {name.replace('_', ' ')}" for name, value in counts.items()) or "nothing"


def _model(of: "RunResult | JobRun") -> str:
    """What a language model took, or why it was not asked."""
    tokens = of.input_tokens + of.output_tokens
    told = [f"{tokens} tokens"] * bool(tokens) + [f"cost {of.cost:.4g}"] * bool(of.cost)
    return ", ".join([*told, *([f"skipped: {of.skipped}"] if of.skipped else [])])


def _done(found: "Sequence[RunResult]") -> list[RenderableType]:
    told = {"done": "done", "unchanged": "done before today", "dry_run": "would be done"}
    rows = table("job", "tenant", "outcome", "what", "model")
    for each in found:
        add(rows, each.name, each.tenant, told[each.outcome], _counted(each.counts), _model(each))
    return [rows]


def _runs(found: "Sequence[JobRun]") -> list[RenderableType]:
    if not found:
        return [plain("Nothing was done yet.", "dim")]
    rows = table("day", "job", "state", "finished", "what", "model", "id")
    for each in found:
        finished = f"{each.finished_at:%H:%M}" if each.finished_at else "no"
        what = each.error or _counted(each.counts)
        add(rows, each.period, each.name, each.state, finished, what, _model(each), each.id)
    return [rows]

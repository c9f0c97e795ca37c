"""`memplane reembed`: another embedding model for a tenant that is in use, directly on the database."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import RenderableType

from memplane.domain.errors import StateConflict
from memplane.entrypoints.cli.admin.jobs import DEFAULT_TENANT, Tenant, progress_bar
from memplane.entrypoints.cli.options import Data, Storage, settings_of
from memplane.entrypoints.cli.output import Json, add, show, table
from memplane.settings import Settings

if TYPE_CHECKING:  # the commands load the database when they run, not when their help is shown
    from memplane.application.jobs.embedding_change import EmbeddingStatus
    from memplane.bootstrap import Application

app = typer.Typer(
    name="reembed", no_args_is_help=True, help="Change the embedding model of a tenant while it is in use."
)
EveryTenant = Annotated[bool, typer.Option("--every-tenant", help="For every tenant.")]


@app.command()
def start(
    *,
    tenant: Tenant = DEFAULT_TENANT,
    every_tenant: EveryTenant = False,
    here: Annotated[bool, typer.Option("--here", help="Do it in this process, with progress.")] = False,
    data: Data = None,
    storage: Storage = None,
    json: Json = False,
) -> None:
    """Begin to change to MEMPLANE_NEXT_EMBEDDING_MODEL, which every server and worker has to know by now."""

    async def begin(application: "Application", name: str) -> "EmbeddingStatus":
        begun = await application.reembedding.start(name)
        if not here:
            return begun
        with progress_bar() as told:
            await application.jobs.run("reembed", name, progress=told(f"reembed of {name}"))
        return await application.reembedding.status(name)

    _each(settings_of(data=data, storage=storage), begin, None if every_tenant else tenant, as_json=json)


@app.command()
def status(
    *,
    tenant: Tenant = DEFAULT_TENANT,
    every_tenant: EveryTenant = False,
    data: Data = None,
    storage: Storage = None,
    json: Json = False,
) -> None:
    """Show which model is in force, and how far a change has come."""
    settings = settings_of(data=data, storage=storage)
    _each(settings, lambda each, name: each.reembedding.status(name), None if every_tenant else tenant, as_json=json)


@app.command()
def cancel(*, tenant: Tenant = DEFAULT_TENANT, data: Data = None, storage: Storage = None, json: Json = False) -> None:
    """Give up a change that has not switched yet: the model in force stays, the new vectors are removed."""
    settings = settings_of(data=data, storage=storage)
    _each(settings, lambda each, name: each.reembedding.cancel(name), tenant, as_json=json)


def _each(
    settings: Settings,
    work: "Callable[[Application, str], Awaitable[EmbeddingStatus]]",
    tenant: str | None,
    *,
    as_json: bool,
) -> None:
    from memplane.entrypoints.cli.admin.database import on_database  # noqa: PLC0415 - the database, which help does not wait for

    async def all_of(application: "Application") -> "list[EmbeddingStatus]":
        names = await application.queue.tenants() if tenant is None else [tenant]
        found, refusals = [], {}
        for name in names:
            try:
                found.append(await work(application, name))
            except StateConflict as error:
                refusals[name] = error
                found.append(await application.reembedding.status(name))
        if refusals and len(refusals) == len(names):
            raise refusals[names[0]]
        for name, refusal in refusals.items():  # one that needs nothing keeps no other from it
            typer.echo(f"{name}: {refusal.detail}", err=True)
        return found

    found = on_database(settings, all_of)
    show({"items": found}, *_told(found), as_json=as_json)


def _told(found: "list[EmbeddingStatus]") -> list[RenderableType]:
    rows = table("tenant", "in force", "change", "so far")
    for each in found:
        change = "none" if each.phase is None else f"{each.phase} {each.other}"
        add(rows, each.tenant, each.model or "none yet", change, f"{each.done} of {each.total}" if each.phase else "")
    return [rows]

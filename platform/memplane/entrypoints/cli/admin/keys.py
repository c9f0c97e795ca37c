"""`memplane keys`: made, listed, rotated and revoked, directly on the database."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from memplane.adapters.files.key_file import KeyFile
from memplane.domain.identity.principal import KeyScope
from memplane.domain.policy.policy import Trust
from memplane.entrypoints.cli.options import Data, Limit, Storage, settings_of
from memplane.entrypoints.cli.output import Json, add, plain, show, table

if TYPE_CHECKING:  # the commands load the database when they run, not when their help is shown
    from memplane.application.keys.api_keys import KeyReplacement
    from memplane.application.records import StoredKey
    from memplane.bootstrap import Application
    from memplane.settings import Settings

app = typer.Typer(name="keys", no_args_is_help=True, help="API keys of a tenant.")

Tenant = Annotated[str, typer.Option(help="The tenant.")]
KeyId = Annotated[str, typer.Argument(help="The key's id: the part between mp_ and the next underscore.")]
DEFAULT_TENANT = "default"
_AGENT_SCOPES = "memory:read, memory:write and checkpoint"
_SPAN = re.compile(r"(\d{1,5})([dhm])")
_UNITS = {"d": timedelta(days=1), "h": timedelta(hours=1), "m": timedelta(minutes=1)}


def _span(value: str | timedelta) -> timedelta:
    """A span such as 7d, 24h or 30m.

    Raises:
        typer.BadParameter: it is none.
    """
    if isinstance(value, timedelta):
        return value
    if span := _SPAN.fullmatch(value):
        return int(span[1]) * _UNITS[span[2]]
    raise typer.BadParameter(f"'{value}' is no span: write 7d, 24h or 30m")


def _moment(value: str | datetime) -> datetime:
    """A point in time to come: a span such as 90d or 12h, a day, or an RFC 3339 time.

    Raises:
        typer.BadParameter: it is none, or is past.
    """
    if isinstance(value, datetime):
        return value
    now = datetime.now(UTC)
    if _SPAN.fullmatch(value):
        moment = now + _span(value)
    else:
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            raise typer.BadParameter(f"'{value}' is no time: write 90d, 12h, 2027-01-31 or 2027-01-31T18:00Z") from None
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    if moment <= now:
        raise typer.BadParameter(f"'{value}' is not in the future: the key would never work")
    return moment


@app.command()
def create(  # noqa: PLR0913 - one argument for each option
    *,
    agent: Annotated[str | None, typer.Option(help="The agent that it speaks for.")] = None,
    act_for: Annotated[
        list[str] | None, typer.Option(help="A further agent that it may speak for; '*': all. Repeatable.")
    ] = None,
    user: Annotated[
        list[str] | None, typer.Option(help="The only users it may touch. Repeatable.", show_default="all")
    ] = None,
    trust: Annotated[
        Trust | None, typer.Option(help="Its trust level.", show_default="the agent's, by the policy")
    ] = None,
    scope: Annotated[
        list[KeyScope] | None,
        typer.Option(help="What it may be used for. Repeatable.", show_default=_AGENT_SCOPES),
    ] = None,
    expires: Annotated[
        datetime | None,
        typer.Option(help="When it ends: 90d, 12h, a day or a time.", parser=_moment, show_default="never"),
    ] = None,
    label: Annotated[str | None, typer.Option(help="Your own note.")] = None,
    tenant: Tenant = DEFAULT_TENANT,
    data: Data = None,
    storage: Storage = None,
    json: Json = False,
) -> None:
    """Make a key. Its secret is shown this once."""
    if agent is None and not act_for and KeyScope.ADMIN not in (scope or ()):
        raise typer.BadParameter(
            "name the agent that the key speaks for with --agent, or --act-for; --scope admin does without"
        )

    from memplane.application.keys.api_keys import AGENT_SCOPES, NewKey  # noqa: PLC0415 - the database, which help does not wait for
    from memplane.entrypoints.cli.admin.database import on_database  # noqa: PLC0415 - the database, which help does not wait for

    async def work(application: "Application") -> "tuple[StoredKey, str]":
        new = NewKey(
            agent=agent,
            trust=trust or _trust_of(application, agent),
            scopes=tuple(scope or AGENT_SCOPES),
            act_for=tuple(act_for or ()),
            users=tuple(user) if user else None,
            label=label,
            expires_at=expires,
        )
        return await application.keys.create(tenant, new)

    stored, credential = on_database(settings_of(data=data, storage=storage), work)
    told = (_table([stored]), Text.assemble("\n", (credential, "bold"), "\n"), Text("Keep it: it is not shown again."))
    show({"key": credential} | _document(stored), *told, as_json=json)


@app.command("list")
def list_keys(tenant: Tenant = DEFAULT_TENANT, data: Data = None, storage: Storage = None, json: Json = False) -> None:
    """List the keys of a tenant, oldest first, revoked ones too."""
    from memplane.entrypoints.cli.admin.database import on_database  # noqa: PLC0415 - the database, which help does not wait for

    found = on_database(settings_of(data=data, storage=storage), lambda application: application.keys.list(tenant))
    show({"items": [_document(key) for key in found]}, _table(found), as_json=json)


@app.command()
def rotate(  # noqa: PLR0913 - one argument for each option
    *,
    key_id: KeyId,
    grace: Annotated[
        timedelta | None,
        typer.Option(
            help="How long the old key goes on working: 7d, 24h, 30m.", parser=_span, show_default="not at all"
        ),
    ] = None,
    expires: Annotated[
        datetime | None,
        typer.Option(
            help="When the new key ends: 90d, 12h, a day or a time.", parser=_moment, show_default="as the old one"
        ),
    ] = None,
    tenant: Tenant = DEFAULT_TENANT,
    data: Data = None,
    storage: Storage = None,
    json: Json = False,
) -> None:
    """Put a new key with the same bindings in the place of a key. Its secret is shown this once.

    Where keys.json in the data folder holds the old key, the new one takes its place there too.
    """
    from memplane.application.keys.api_keys import Rotation  # noqa: PLC0415 - the database, which help does not wait for
    from memplane.entrypoints.cli.admin.database import on_database  # noqa: PLC0415 - the database, which help does not wait for

    settings, rotation = settings_of(data=data, storage=storage), Rotation(grace or timedelta(0), expires)
    rotated = on_database(settings, lambda application: application.keys.rotate(tenant, key_id, rotation))
    kept = _kept_in_file(settings, rotated)
    stored, credential = rotated.made.stored, rotated.made.credential
    ends = f"The key {key_id} {f'works until {rotated.ends_at:%Y-%m-%d %H:%M} UTC' if grace else 'is revoked'}."
    where = "It is in keys.json too." if kept else "Keep it: it is not shown again."
    told = (_table([stored]), Text.assemble("\n", (credential, "bold"), "\n"), Text(f"{ends} {where}"))
    document = {"key": credential, "replaces": key_id, "replaced_ends_at": rotated.ends_at, "in_key_file": kept}
    show(document | _document(stored), *told, as_json=json)


def _kept_in_file(settings: "Settings", rotated: "KeyReplacement") -> bool:
    """Whether the key file held the old key; then it holds the new one now."""
    file = KeyFile.read(settings.data)
    replaced = None if file is None else file.with_credential(rotated.replaces, rotated.made.credential)
    if replaced is None:
        return False
    replaced.write(settings.data)
    return True


@app.command()
def revoke(
    key_id: KeyId,
    tenant: Tenant = DEFAULT_TENANT,
    data: Data = None,
    storage: Storage = None,
    json: Json = False,
) -> None:
    """End a key at once."""
    from memplane.entrypoints.cli.admin.database import on_database  # noqa: PLC0415 - the database, which help does not wait for

    on_database(settings_of(data=data, storage=storage), lambda application: application.keys.revoke(tenant, key_id))
    show({"revoked": key_id}, plain(f"The key {key_id} is revoked."), as_json=json)


@app.command()
def history(
    key_id: Annotated[str | None, typer.Argument(help="Of this key alone.", show_default="every key")] = None,
    *,
    limit: Limit = 50,
    tenant: Tenant = DEFAULT_TENANT,
    data: Data = None,
    storage: Storage = None,
    json: Json = False,
) -> None:
    """Tell who made, rotated and revoked keys, and when, newest first."""
    from memplane.entrypoints.cli.admin.database import on_database  # noqa: PLC0415 - the database, which help does not wait for

    asked = None if key_id is None else [key_id]
    found = on_database(
        settings_of(data=data, storage=storage),
        lambda application: application.keys.history(tenant, asked, before=None, limit=limit),
    )
    items = [{name: getattr(each, name) for name in each.__slots__} for each in found]
    rows = table("when", "key", "event", "by", "with key", "")
    for each in found:
        more = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in each.meta.items())
        add(rows, f"{each.ts:%Y-%m-%d %H:%M:%S}", each.key_id, each.event, each.actor, each.by_key, more)
    show({"items": items}, rows if found else plain("Nothing was done to such a key.", "dim"), as_json=json)


def _trust_of(application: "Application", agent: str | None) -> Trust:
    allowlist = application.policies.current.allowlists.get(agent or "")
    return allowlist.trust if allowlist else Trust.FULL


def _document(key: "StoredKey") -> dict[str, object]:
    """All of a key but the hash of its secret."""
    shown = ("tenant", "agent", "act_for", "users", "trust", "scopes", "label")
    times = ("created_at", "expires_at", "revoked_at", "last_used_at")
    return {"id": key.key_id} | {name: getattr(key, name) for name in (*shown, *times)}


def _table(keys: "Sequence[StoredKey]") -> Table:
    made = table("id", "agent", "acts for", "users", "trust", "scopes", "state", "last used", "label")
    for key in keys:
        users = "*" if key.users is None else key.users
        used = f"{key.last_used_at:%Y-%m-%d %H:%M}" if key.last_used_at else "never"
        add(made, key.key_id, key.agent, key.act_for, users, key.trust, key.scopes, _state(key), used, key.label)
    return made


def _state(key: "StoredKey") -> str:
    if key.revoked_at is not None:
        return f"revoked {key.revoked_at:%Y-%m-%d}"
    if key.expires_at is None:
        return "valid"
    ended = key.expires_at <= datetime.now(UTC)
    return f"{'expired' if ended else 'until'} {key.expires_at:%Y-%m-%d %H:%M}"

"""`memplane policy`: what the policy files say, without a server, or what a server goes by."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from memplane.contracts.policy import PolicyMistake
from memplane.domain.consent.consent_rules import ConsentRules
from memplane.domain.errors import PolicyError
from memplane.domain.policy.policy import Policy
from memplane.domain.policy.policy_view import AgentView, describe_agent
from memplane.entrypoints.cli.options import DEFAULT_URL, AdminKey, Data, Url, settings_of
from memplane.entrypoints.cli.output import ExitCode, Json, add, plain, show, table
from memplane.entrypoints.cli.session import operating

app = typer.Typer(name="policy", no_args_is_help=True, help="The policy files, checked and explained.")

Folder = Annotated[
    Path | None,
    typer.Option("--policies", help="The policy folder.", show_default="MEMPLANE_POLICIES, or the shipped one"),
]


@app.command()
def check(policies: Folder = None, json: Json = False) -> None:
    """Check the policy files; every mistake is told with its file, line and key."""
    folder = _folder(policies)
    try:
        policy = _loaded(folder)
    except PolicyError as error:
        errors = error.extra["errors"]
        show({"ok": False, "folder": folder, "errors": errors}, *_mistakes(folder, error), as_json=json)
        raise typer.Exit(ExitCode.FAILED) from error
    counted = {"categories": len(policy.categories), "agents": len(policy.allowlists)}
    told = plain(f"{folder} is valid: {counted['categories']} categories, {counted['agents']} agents, {policy.digest}")
    show({"ok": True, "folder": folder, "policy": policy.digest} | counted, told, as_json=json)


@app.command("show")
def show_policy(
    agent: Annotated[str | None, typer.Option(help="One agent, in detail.", show_default="all")] = None,
    policies: Folder = None,
    json: Json = False,
) -> None:
    """Show what agents effectively may do: allowlist, trust and categories together."""
    policy = _loaded(_folder(policies))
    if agent is not None:
        view = describe_agent(policy, agent)
        show(_document(view), *_details(view), as_json=json)
        return
    views = [describe_agent(policy, name) for name in policy.allowlists]
    document = {
        "policy": policy.digest,
        "agents": [_document(view) for view in views],
        "consent": _consent(policy.consent),
        "extraction": None if policy.extraction is None else {"write": policy.extraction},
    }
    told = [plain(line) for line in (_extraction_line(policy), *_consent_lines(policy.consent))]
    show(document, _matrix(policy, views), *told, plain(policy.digest, "dim"), as_json=json)


@app.command("show-server")
def show_server(
    agent: Annotated[str | None, typer.Option(help="One agent alone.", show_default="all")] = None,
    url: Url = DEFAULT_URL,
    key: AdminKey = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Show the policy that a server has in force, and why newer files were rejected."""
    with operating(url, key, None, data) as opened:
        found = opened.client.policy(of_agent=agent)
    names = [", ".join(each.name for each in found.files)] if found.files else []
    rows = table("agent", "trust", "reads", "writes")
    for each in found.agents:
        reads, writes = ([one.name for one in each.categories if getattr(one, may)] for may in ("read", "write"))
        add(rows, each.agent, each.trust, ", ".join(reads), ", ".join(writes))
    show(found, rows, plain(" of ".join((found.policy, *names)), "dim"), *_wrong(found.errors), as_json=json)


@app.command("check-server")
def check_server(
    policies: Folder = None, url: Url = DEFAULT_URL, key: AdminKey = None, data: Data = None, json: Json = False
) -> None:
    """Check the policy files by a server, without letting them come into force there."""
    folder = _folder(policies)
    files = {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.yaml"))}
    with operating(url, key, None, data) as opened:
        found = opened.client.check_policy(files)
    told = [plain(f"{folder} is valid: {found.policy}")] if found.ok else []
    show(found, *told, *_wrong(found.errors), as_json=json)
    if not found.ok:
        raise typer.Exit(ExitCode.FAILED)


@app.command()
def reload(url: Url = DEFAULT_URL, key: AdminKey = None, data: Data = None, json: Json = False) -> None:
    """Let a server read its policy files again; wrong ones leave its policy as it is."""
    with operating(url, key, None, data) as opened:
        done = opened.client.reload_policy()
    told = f"reloaded: {done.policy}" if done.changed else f"unchanged: {done.policy}"
    show(done, plain(told), as_json=json)


def _wrong(errors: Sequence[PolicyMistake]) -> list[Text]:
    return [plain(f"{each.file}:{each.line}: {each.key}: {each.message}", "red") for each in errors]


def _folder(named: Path | None) -> Path:
    from memplane.adapters.policy import shipped_policies  # noqa: PLC0415 - what help does not wait for

    return named or settings_of().policies or shipped_policies()


def _loaded(folder: Path) -> Policy:
    from memplane.adapters.policy import load_policy  # noqa: PLC0415 - what help does not wait for

    return load_policy(folder)


def _document(view: AgentView) -> dict[str, object]:
    names = ("agent", "trust", "sees", "default_store", "read", "write", "categories", "asked_by_default", "drawn_into")
    values = {name: getattr(view, name) for name in names}
    turns = {"category": view.turns_category, "seen": view.sees_turns}
    return values | {"turns": turns, "policy": view.digest}


def _mistakes(folder: Path, error: PolicyError) -> tuple[Text, ...]:
    lines = error.detail.splitlines()
    head = plain(f"{folder} is not valid, {len(lines)} problem{'' if len(lines) == 1 else 's'}:", "bold red")
    return (head, *(plain(line) for line in lines))


def _details(view: AgentView) -> tuple[Text, Table, Text, Text, Text]:
    sees = ", ".join(view.sees) or "nothing"
    head = f"{view.agent}: trust {view.trust}, sees {sees}, writes to {view.default_store or 'nothing'}"
    rows = table("category", "reads", "writes", "context", "asked by default")
    for category in view.categories:
        mode = category.context if category.rag_length is None else f"{category.context}, {category.rag_length}"
        asked = category.name in view.asked_by_default
        add(rows, category.name, _mark(category.read), _mark(category.write), mode, _mark(asked))
    turns = f"Conversation turns ({view.turns_category}) {'reach it' if view.sees_turns else 'do not reach it'}."
    sensitive = [f"{field} ({each.name})" for each in view.categories for field in each.sensitive_fields]
    consent = f"Changes by consent only: {', '.join(sensitive) or 'nothing that it reads or writes'}."
    drawn = f"Facts drawn from the turns that it records go to: {', '.join(view.drawn_into)}."
    if not view.drawn_into:
        drawn = "No facts are drawn from turns for it: it records none, or they may go to no category."
    return plain(head, "bold"), rows, plain(turns), plain(drawn), plain(consent)


def _matrix(policy: Policy, views: list[AgentView]) -> Table:
    rows = table("category", *(view.agent for view in views))
    for name in policy.categories:
        cells = ("".join(("r" * (name in view.read), "w" * (name in view.write))) for view in views)
        add(rows, name, *cells)
    add(rows, Text("trust", style="dim"), *(plain(view.trust, "dim") for view in views))
    return rows


def _extraction_line(policy: Policy) -> str:
    if policy.extraction is None:
        return "Facts drawn from turns go to the categories that the agent which recorded the turn may write."
    return f"Facts drawn from turns go to: {', '.join(policy.extraction) or 'no category'}."


def _consent(rules: ConsentRules) -> dict[str, object]:
    return {
        "sensitive": rules.sensitive,
        "proposal_days": rules.life.days,
        "benign": rules.benign,
        "corroboration": {"turns": rules.turns, "insight_confidence": rules.insight_confidence},
    }


def _consent_lines(rules: ConsentRules) -> tuple[str, str]:
    return (
        f"By consent only, within {rules.life.days} days: {', '.join(rules.sensitive) or 'no field'}.",
        f"By themselves, once {rules.turns} turns agree: {', '.join(rules.benign) or 'no field'}.",
    )


def _mark(value: bool) -> str:
    return "yes" if value else ""

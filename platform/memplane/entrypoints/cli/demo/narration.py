"""The telling: a stage, the scenes on it, and whether what was claimed is true."""

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rich.console import Console
from rich.rule import Rule
from rich.text import Text

from memplane.adapters.policy import load_policy, shipped_policies
from memplane.application.keys.api_keys import NewKey
from memplane.bootstrap import DEFAULT_TENANT
from memplane.client import MemplaneSync
from memplane.domain.errors import SettingsError
from memplane.domain.policy.policy import Trust
from memplane.entrypoints.cli.admin.database import on_database
from memplane.entrypoints.cli.admin.signals import Interrupts
from memplane.entrypoints.cli.demo.scenes import AGENTS, SCENES, CheckedClaim, Scene, Stage
from memplane.entrypoints.cli.demo.server import RunningServer, throwaway_server
from memplane.entrypoints.cli.demo.story import Story, load
from memplane.entrypoints.cli.output import ExitCode, plain, show
from memplane.settings import Settings

WIDTH = 100


def tell(policies: Path | None, *, as_json: bool) -> ExitCode:
    """Tell the story, and check every claim that it makes.

    Args:
        policies: folder of the policy files; the shipped ones, unless said.
        as_json: print a summary instead.

    Returns:
        Whether all of it was true.
    """
    begin = time.monotonic()
    screen = Console(
        width=min(WIDTH, Console().width) if sys.stdout.isatty() else WIDTH, quiet=as_json, highlight=False
    )
    screen.print(Rule("[bold]Memplane: one memory, five agents[/bold]"))
    screen.print(Text("Starting a server of its own, with its own PostgreSQL …", style="dim"))
    scenes: list[Scene] = []
    with Interrupts.intercept() as interrupts, _stage(load(), policies, interrupts) as stage:
        screen.print(Text(f"It is ready after {time.monotonic() - begin:.1f} s.", style="dim"))
        for number, play in enumerate(SCENES, 1):
            with interrupts.kept_back():
                scene = play(stage)
            _tell(screen, number, scene)
            scenes.append(scene)
    return _end(screen, scenes, time.monotonic() - begin, as_json=as_json)


@contextmanager
def _stage(story: Story, policies: Path | None, interrupts: Interrupts) -> Iterator[Stage]:
    """A server with the agents' keys, and one more that is bound to the second user."""
    allowlists = load_policy(policies or shipped_policies()).allowlists
    if missing := [agent for agent in AGENTS if agent not in allowlists]:
        raise SettingsError(f"the story needs the agents {', '.join(AGENTS)}; the policy lacks {', '.join(missing)}")
    reads = {agent: allowlists[agent].read for agent in AGENTS}
    with throwaway_server(policies, interrupts) as server, ExitStack() as clients:
        agents = {agent: clients.enter_context(MemplaneSync(server.url, server.keys.agents[agent])) for agent in AGENTS}
        with interrupts.kept_back():
            key = _bound_key(server, story.second_user, policies)
        guest = clients.enter_context(MemplaneSync(server.url, key))
        yield Stage(story, agents, guest, reads)


def _bound_key(server: RunningServer, user: str, policies: Path | None) -> str:
    settings = Settings(data=server.data, database_url=None, policies=policies)
    new = NewKey(agent=AGENTS[0], trust=Trust.FULL, users=(user,), label="the second user's own")
    _, credential = on_database(settings, lambda application: application.keys.create(DEFAULT_TENANT, new))
    return credential


def _tell(screen: Console, number: int, scene: Scene) -> None:
    screen.print()
    screen.print(Rule(f"[bold]{number}. {scene.title}[/bold]", align="left"))
    for each in scene.shown:
        screen.print(each)
    for claim in scene.claims:
        screen.print(_verdict(claim))


def _verdict(claim: CheckedClaim) -> Text:
    mark, style = ("✓", "green") if claim.holds else ("✗", "bold red")
    return plain(f"{mark} {claim.text}{'' if claim.holds else ': NOT TRUE'}", style)


def _end(screen: Console, scenes: list[Scene], seconds: float, *, as_json: bool) -> ExitCode:
    claims = [claim for scene in scenes for claim in scene.claims]
    wrong = [claim.text for claim in claims if not claim.holds]
    screen.print()
    screen.print(Rule())
    told = (
        f"{len(claims) - len(wrong)} of {len(claims)} claims checked and true, in {seconds:.1f} s; the server is gone."
    )
    screen.print(Text(told, style="bold red" if wrong else "bold green"))
    document = {
        "ok": not wrong,
        "seconds": round(seconds, 1),
        "claims": len(claims),
        "untrue": wrong,
        "scenes": {scene.name: {"claims": scene.claims, **scene.facts} for scene in scenes},
    }
    if as_json:
        show(document, as_json=True)
    return ExitCode.FAILED if wrong else ExitCode.OK

"""A supervisor with a planner, a stylist, a researcher and an executor on one memory, told in two acts.

    python examples/supervisor [--data FOLDER] [--act 1|2] [--json]

It runs offline with a scripted model; with `OPENAI_API_KEY` set, with a real one. The second act is a restart.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from langchain_core.messages import HumanMessage
from langgraph.types import Command
from models import chosen_model
from team import CONFIG, SUPERVISOR, THREAD, USER, Team, opened


@dataclass
class Narrator:
    """Tells what happens, and keeps what a test asks for."""

    quiet: bool
    facts: dict[str, Any] = field(default_factory=lambda: {"refused": [], "deltas": [], "said": [], "consent": []})

    def say(self, line: str = "") -> None:
        """One line of the story."""
        if not self.quiet:
            print(line)

    def heard(self, agent: str, tool: str, answer: str) -> None:
        """An agent used a tool."""
        first = answer.splitlines()[0] if "Data, not instructions" not in answer else answer.splitlines()[2]
        if answer.startswith("refused"):
            self.facts["refused"].append([agent, tool, answer])
        if tool == "consent":
            self.facts["consent"].append(answer)
        self.say(f"    {agent} · {tool} → {first[:110]}")

    def delta(self, header: str) -> None:
        """The memory told the supervisor what changed."""
        self.facts["deltas"].append(header)
        for line in header.splitlines():
            self.say(f"    memory · {line}")

    def answer(self, text: str) -> None:
        """What the supervisor says to the user."""
        self.facts["said"].append(text)
        self.say(f"  supervisor: {text}")


async def speak(team: Team, text: str, narrator: Narrator, replies: tuple[str, ...] = ()) -> None:
    """The user says something; whatever the graph asks on the way is answered."""
    narrator.say(f"\n  ana: {text}")
    given: Any = {"messages": [SUPERVISOR, HumanMessage(text)]}
    for reply in (*replies, None):
        asked = [each async for each in _updates(team, given, narrator)]
        if not asked:
            return
        narrator.say(f"  supervisor asks: may I remember this? “{asked[-1]}”")
        narrator.facts["before consent"] = await profile(team)
        narrator.say(f"    memory · the profile until then: {narrator.facts['before consent'] or 'nothing'}")
        narrator.say(f"  ana: {reply}")
        given = Command(resume=reply)


async def _updates(team: Team, given: Any, narrator: Narrator) -> AsyncIterator[str]:  # noqa: ANN401 - a state or a command
    async for update in team.graph.astream(given, CONFIG, stream_mode="updates"):
        for node, told in update.items():
            if node == "__interrupt__":
                yield str(told[0].value["content"])
            elif node == "recall" and told["memory_delta"]:
                narrator.delta(told["memory_delta"])
            elif node == "think" and told["messages"][-1].text:
                narrator.answer(told["messages"][-1].text)


async def profile(team: Team) -> list[str]:
    """What is known of the user's profile."""
    found = await team.memories["supervisor"].query(categories=["profile"], filters={"user_id": USER})
    return [item.text for item in found.items]


async def first(team: Team, narrator: Narrator) -> None:
    """A plan, a refusal, and a question before something private is kept."""
    narrator.say("ACT 1. A plan, made by five agents on one memory.")
    await speak(team, "Please plan the launch of the bee app: it has to ship on 15 May.", narrator)
    await speak(team, "And please call me Annie.", narrator, ("Yes, please do.",))
    narrator.facts["profile"] = await profile(team)
    narrator.say(f"    memory · the profile since then: {narrator.facts['profile']}")


async def second(team: Team, narrator: Narrator) -> None:
    """A new process: the thread goes on, and what changed meanwhile is told."""
    narrator.say("\nACT 2. Another day, another process, the same file.")
    planner = team.memories["planner"]
    known = await planner.query("When does the bee app ship?", categories=["goals"], filters={"user_id": USER})
    narrator.say("  Meanwhile the planner, in a thread of its own, has put the date right.")
    await planner.correct(known.items[0].id, "The bee app ships on 29 May.")
    state = (await team.graph.aget_state(CONFIG)).values
    narrator.facts["remembered messages"] = len(state.get("messages", ()))
    narrator.say(f"  The thread holds {narrator.facts['remembered messages']} messages of before.")
    await speak(team, "When do we ship, and who am I?", narrator)
    kept = await team.memories["supervisor"].delta(THREAD, user_id=USER)
    narrator.say(f"\n  The thread is at revision {kept.rev}. With --data FOLDER all of it stays.")


async def told(file: Path, acts: tuple[int, ...], narrator: Narrator) -> None:
    """Each act opens everything anew, as another process would."""
    for act in acts:
        async with opened(file, chosen_model(), narrator.heard) as team:
            await (first, second)[act - 1](team, narrator)


def main() -> None:
    """Tell the story."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, help="folder of the memory; one of its own, unless said")
    parser.add_argument("--act", type=int, choices=(1, 2), help="one act alone")
    parser.add_argument("--json", action="store_true", help="tell what happened as JSON")
    chosen = parser.parse_args()
    narrator = Narrator(quiet=chosen.json)
    acts = (chosen.act,) if chosen.act else (1, 2)
    with tempfile.TemporaryDirectory() as own:
        folder = chosen.data or Path(own)
        folder.mkdir(parents=True, exist_ok=True)
        asyncio.run(told(folder / "memory.db", acts, narrator))
    if chosen.json:
        print(json.dumps(narrator.facts, indent=2))


if __name__ == "__main__":
    main()

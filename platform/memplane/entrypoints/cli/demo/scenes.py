"""The scenes of the demo: each asks a real server, tells what it answered, and claims only what it then checks."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from memplane.client import Forbidden, MemplaneSync
from memplane.client.fields import QueryFields
from memplane.contracts.query import QueryAnswer, QueryItem
from memplane.domain.memory.memory import Role
from memplane.entrypoints.cli.demo.story import Story
from memplane.entrypoints.cli.output import add, plain, table

TOP_K = 3
AGENTS = ("supervisor", "planner", "stylist", "researcher", "executor")


@dataclass(frozen=True, slots=True)
class CheckedClaim:
    """Something that the story says, and whether it is true."""

    text: str
    holds: bool


@dataclass(frozen=True, slots=True)
class Scene:
    """A part of the story: what people read, what `--json` prints, and what must be true."""

    name: str
    title: str
    shown: tuple[RenderableType, ...]
    facts: Mapping[str, object]
    claims: tuple[CheckedClaim, ...]


@dataclass(slots=True)
class Stage:
    """Where the story plays.

    Attributes:
        story: what is told.
        agents: a client for each agent, with the agent's own key.
        guest: a client with a key that may touch the second user alone.
        reads: the categories that each agent may read.
        ids: what was stored, by user.
    """

    story: Story
    agents: Mapping[str, MemplaneSync]
    guest: MemplaneSync
    reads: Mapping[str, tuple[str, ...]]
    ids: dict[str, set[UUID]] = field(default_factory=dict)


def store_scene(stage: Stage) -> Scene:
    """Everything is stored: turns by the supervisor, each memory by the agent that may write its category."""
    story = stage.story
    stored = stage.agents["supervisor"].turns(story.turns).items
    for turn, outcome in zip(story.turns, stored, strict=True):
        stage.ids.setdefault(turn.user_id, set()).add(outcome.turn_id)
    created = []
    for memory in story.memories:
        fields = memory.model_dump(exclude_unset=True, exclude={"agent", "content"})
        written = stage.agents[memory.agent or ""].remember(memory.content, **fields)
        stage.ids.setdefault(memory.user_id or "", set()).add(written.id)
        created.append(written.outcome)
    categories = sorted({memory.category for memory in story.memories})
    users = sorted(stage.ids)
    told = (
        "Two people talk to a team of agents. Mira prepares an open studio weekend, Tomas a bicycle tour. "
        f"{len(stored)} turns of {len(story.threads)} conversations are kept word for word, and {len(created)} "
        f"memories in {len(categories)} categories, each written by the agent that may write there."
    )
    facts = {"turns": len(stored), "memories": len(created), "threads": len(story.threads), "users": users}
    claims = (
        CheckedClaim("every turn was stored as new", all(outcome.outcome == "created" for outcome in stored)),
        CheckedClaim("every memory was stored as new", set(created) == {"created"}),
    )
    return Scene("remembered", "What is remembered", (plain(told),), facts | {"categories": categories}, claims)


def five_views(stage: Stage) -> Scene:
    """One question, five agents, five answers."""
    answers = {agent: _ask(stage, agent) for agent in AGENTS}
    panels = [_panel(agent, stage, answer) for agent, answer in answers.items()]
    seen = {agent: {item.category for item in answer.items} for agent, answer in answers.items()}
    outside = {agent: seen[agent] - set(stage.reads[agent]) for agent in AGENTS}
    different = {tuple(item.id for item in answer.items) for answer in answers.values()}
    claims = (
        CheckedClaim("every agent got an answer", all(answer.items for answer in answers.values())),
        CheckedClaim("none got anything outside its allowlist", not any(outside.values())),
        CheckedClaim("no two got the same answer", len(different) == len(AGENTS)),
        CheckedClaim(
            "all that was answered is about Mira",
            all(_only(stage, a, stage.story.first_user) for a in answers.values()),
        ),
    )
    told = plain(f"All five are asked: {stage.story.question} Each gets the best {TOP_K} that it may see.")
    facts = {agent: [item.text for item in answer.items] for agent, answer in answers.items()}
    return Scene("five_views", "One question, five agents", (told, *panels), facts, claims)


def refusal(stage: Stage) -> Scene:
    """A category outside the allowlist refuses the whole request."""
    asked = stage.story.refused
    told = plain(f"The {asked.agent} asks for the category {asked.category}, which is the {asked.allowed}'s.")
    refused = _refused(lambda: _ask(stage, asked.agent, categories=[asked.category]))
    allowed = _ask(stage, asked.allowed, categories=[asked.category])
    claims = (
        CheckedClaim(
            f"the {asked.agent} was refused with 403 category_forbidden",
            refused is not None and (refused.status, refused.code) == (403, "category_forbidden"),
        ),
        CheckedClaim(f"the {asked.allowed}, asking the same, was answered", bool(allowed.items)),
    )
    lines = Text(f"{refused.status} {refused.code}: {refused.detail}" if refused else "It was answered.", style="red")
    answered = plain(f"The {asked.allowed} asks the same and gets: {allowed.items[0].text if allowed.items else '-'}")
    facts = {
        "agent": asked.agent, "category": asked.category,
        "status": refused.status if refused else 200, "code": refused.code if refused else None,
    }  # fmt: skip
    return Scene("refusal", "A refused category", (told, Panel(lines, border_style="red"), answered), facts, claims)


def change(stage: Stage) -> Scene:
    """Something changes; the next answer begins with it, for those who may know."""
    story, thread = stage.story, stage.story.changed_thread
    planner, stylist = stage.agents[story.change.agent], stage.agents[story.addition.agent or ""]
    before = planner.delta(thread, user_id=story.first_user).rev
    memory_id, version = _changing(stage)
    updated = planner.update(memory_id, version=version, content=story.change.content)
    added = stylist.remember(
        story.addition.content, **story.addition.model_dump(exclude_unset=True, exclude={"agent", "content"})
    )
    stage.ids[story.first_user].add(added.id)
    heads = {agent: _header(stage, agent, before) for agent in (story.change.agent, "researcher")}
    after = _header(stage, story.change.agent, added.rev or 0)
    mine, others = heads[story.change.agent], heads["researcher"]
    claims = (
        CheckedClaim("the planner is told of the update", mine is not None and "↑updated: [Tasks]" in mine),
        CheckedClaim("the planner is not told of the stylist's new memory", mine is not None and "[Tone]" not in mine),
        CheckedClaim("the researcher, who may read neither, is told nothing", others is None),
        CheckedClaim("told once: nothing has changed since", after is None),
        CheckedClaim(
            "the thread's revision grew by one for each", (updated.rev, added.rev) == (before + 1, before + 2)
        ),
    )
    told = plain(
        f"At revision {before} of the conversation, the kiln's service gets a date: the planner corrects a task, and "
        "the stylist notes something of its own. Asked since that revision, the planner's next answer begins with:"
    )
    lines = Group(*(plain(line, "cyan") for line in (mine or "(nothing)").splitlines()))
    shown = (
        told,
        Panel(lines, border_style="cyan"),
        plain("The researcher may read neither, and is told nothing."),
    )
    facts = {"since": before, "rev": added.rev, "planner": mine, "researcher": others}
    return Scene("change", "Something changes", shown, facts, claims)


def past(stage: Stage) -> Scene:
    """The changed memory's history, with what it said before."""
    story = stage.story
    memory_id, version = _changing(stage)
    entries = stage.agents[story.change.agent].history(memory_id).items
    rows = table("event", "by", "before", "after")
    for entry in reversed(entries):
        add(rows, entry.event, entry.actor, entry.old_ref, entry.new_ref)
    (first,) = [memory for memory in story.memories if memory.external_id == story.change.external_id]
    events = [entry.event.value for entry in reversed(entries)]
    claims = (
        CheckedClaim("the history has the creation and the update", events == ["ADD", "UPDATE"]),
        CheckedClaim("the update knows what was said before", bool(entries) and entries[0].old_ref == first.content),
        CheckedClaim("and what is said now", bool(entries) and entries[0].new_ref == story.change.content),
        CheckedClaim("each change is one version", version == len(entries)),
    )
    told = plain("Nothing was overwritten without a trace. The history of that task:")
    return Scene("past", "What it said before", (told, rows), {"events": events, "version": version}, claims)


def another_user(stage: Stage) -> Scene:
    """The same question with a key that is bound to the second user."""
    story = stage.story
    answer = stage.guest.query(story.question, top_k=20, related=True)
    refused = _refused(lambda: stage.guest.query(story.question, filters={"user_id": story.first_user}))
    claims = (
        CheckedClaim("the second user's key is answered", bool(answer.items)),
        CheckedClaim("with nothing but the second user's own", _only(stage, answer, story.second_user)),
        CheckedClaim("naming the first user is refused", refused is not None and refused.code == "user_forbidden"),
    )
    told = plain(
        "Tomas has a supervisor too, with a key that may touch Tomas alone. It asks Mira's question, without any "
        f"filter, and of {len(answer.items)} items not one is Mira's. The best:"
    )
    best = _lines(answer.items[:TOP_K])
    tried = Text(
        f"Asked for Mira by name: {refused.status} {refused.code}" if refused else "It was answered.", style="red"
    )
    facts = {
        "items": [item.text for item in answer.items],
        "foreign": sum(item.id not in stage.ids[story.second_user] for item in answer.items),
        "named": refused.code if refused else None,
    }  # fmt: skip
    return Scene("another_user", "Another person asks", (told, Panel(best), tried), facts, claims)


def on_demand(stage: Stage) -> Scene:
    """The supervisor asks twice in the middle of one turn; the share of turns that needed it is computed."""
    story, supervisor = stage.story, stage.agents["supervisor"]
    for text in (story.question, None):
        supervisor.query(
            text, filters={"user_id": story.first_user}, top_k=1, thread_id=story.changed_thread, purpose="on_demand"
        )
    found = supervisor.stats().on_demand
    said = [turn for turn in story.turns if turn.role is Role.USER]
    shown = "no share" if found is None or found.share is None else f"{found.share:.1%}"
    claims = (
        CheckedClaim("every turn of a user is counted", found is not None and found.turns == len(said)),
        CheckedClaim("one turn needed recall on demand, however often", found is not None and found.recalled == 1),
        CheckedClaim("both queries were counted, and no other", found is not None and found.queries == 2),
        CheckedClaim("the share is under a tenth", found is not None and found.share == 1 / len(said) < 0.1),
    )
    told = plain(
        "In the middle of a turn the supervisor is not sure, and asks on demand, twice. Of all turns in which the two "
        f"people spoke, {shown} needed that; the questions of the scenes before do not count."
    )
    facts = {} if found is None else found.model_dump(mode="json")
    return Scene("on_demand", "Asked on demand", (told,), facts, claims)


SCENES: tuple[Callable[[Stage], Scene], ...] = (
    store_scene, five_views, refusal, change, past, another_user, on_demand,
)  # fmt: skip


def _ask(stage: Stage, agent: str, categories: list[str] | None = None) -> QueryAnswer:
    """The story's question, about the first user."""
    fields: QueryFields = {"filters": {"user_id": stage.story.first_user}, "top_k": TOP_K}
    if categories is not None:
        fields["categories"] = categories
    return stage.agents[agent].query(stage.story.question, **fields)


def _header(stage: Stage, agent: str, since: int) -> str | None:
    """The delta header that an agent's next answer begins with."""
    story = stage.story
    answer = stage.agents[agent].query(
        story.question, filters={"user_id": story.first_user}, top_k=1, thread_id=story.changed_thread, since_rev=since
    )
    return answer.delta.header if answer.delta else None


def _changing(stage: Stage) -> tuple[UUID, int]:
    """Id and version of the memory that changes."""
    story = stage.story
    agent = stage.agents[story.change.agent]
    found = [m for m in agent.list(user_id=story.first_user) if m.external_id == story.change.external_id]
    return found[0].id, found[0].version


def _refused(ask: Callable[[], QueryAnswer]) -> Forbidden | None:
    """The refusal of a question, or none if it was answered."""
    try:
        ask()
    except Forbidden as error:
        return error
    return None


def _only(stage: Stage, answer: QueryAnswer, user: str) -> bool:
    """Whether all of an answer is of one user, and there is another whose memories it could have been."""
    return all(item.id in stage.ids[user] for item in answer.items) and len(stage.ids) > 1


def _panel(agent: str, stage: Stage, answer: QueryAnswer) -> Panel:
    return Panel(
        _lines(answer.items),
        title=plain(agent, "bold"),
        title_align="left",
        subtitle=plain(f"may read {', '.join(stage.reads[agent])}", "dim"),
        subtitle_align="right",
    )


def _lines(items: list[QueryItem]) -> Group:
    return Group(*(plain(f"• {item.text}") for item in items))

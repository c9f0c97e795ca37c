"""What a supervisor's state says of its graph, kept beside the graph's own checkpoints."""

import re
from collections.abc import Mapping, Sequence

GRAPH, MEMORY, CONVERSATION, AGENTS = "graph", "memory", "conversation", "agents"
SECTIONS = (GRAPH, MEMORY, CONVERSATION, AGENTS)
MAX_AGENTS = 100
_CALL = re.compile(r":[^|]*")


def after_checkpoint(
    data: Mapping[str, object],
    namespace: str,
    told: Mapping[str, object],
    conversation: Sequence[Mapping[str, object]] | None,
    memory: Mapping[str, object],
) -> dict[str, object]:
    """The state after the graph, or one of its subgraphs, has stored a checkpoint.

    Args:
        data: the state before.
        namespace: of the subgraph; '' for the graph itself.
        told: the checkpoint in brief.
        conversation: the last messages, where the checkpoint holds any.
        memory: what the graph knows of the memory; a value that is ``None`` leaves what was there.
    """
    if namespace:
        agents = _mapping(data.get(AGENTS))
        name = agent_of(namespace)
        others = sorted((each for each in agents if each != name), key=lambda each: (_last_of(agents[each]), each))
        # the one that was active longest ago goes first; databases do not keep the order of members
        latest = {each: agents[each] for each in others[-(MAX_AGENTS - 1) :]}
        return {**data, AGENTS: latest | {name: {**_mapping(agents.get(name)), "graph": dict(told)}}}
    known = {name: value for name, value in memory.items() if value is not None}
    after = {**data, GRAPH: dict(told), MEMORY: _mapping(data.get(MEMORY)) | known}
    return after if conversation is None else {**after, CONVERSATION: [dict(each) for each in conversation]}


def agent_of(namespace: str) -> str:
    """The subgraph's name: its namespace without the ids of calls (``child:4f…|inner:9a…`` is ``child|inner``)."""
    return _CALL.sub("", namespace)


def _last_of(agent: object) -> str:
    """The id of an agent's last checkpoint: later ones are greater. None for what a caller stored without one."""
    return str(_mapping(_mapping(agent).get("graph")).get("checkpoint_id", ""))


def _mapping(value: object) -> dict[str, object]:
    return dict(value) if isinstance(value, Mapping) else {}

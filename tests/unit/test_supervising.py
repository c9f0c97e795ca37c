"""What a supervisor's state says of its graph."""

from memplane.domain.checkpoints.supervisor_state import AGENTS, MAX_AGENTS, after_checkpoint


def after_all(names: list[str]) -> dict[str, object]:
    """The state after each agent was active once; between, a database puts the members in an order of its own."""
    data: dict[str, object] = {}
    for place, name in enumerate(names):
        data = after_checkpoint(data, f"{name}:call", {"checkpoint_id": f"{place:08d}"}, None, {})
        agents = data[AGENTS]
        assert isinstance(agents, dict)
        data[AGENTS] = dict(sorted(agents.items(), key=lambda pair: (len(pair[0]), pair[0])))
    return data


def test_of_too_many_agents_the_one_that_was_active_longest_ago_goes() -> None:
    names = [f"agent-{MAX_AGENTS + 5 - place}" for place in range(MAX_AGENTS + 5)]
    agents = after_all(names)[AGENTS]
    assert isinstance(agents, dict)
    assert set(agents) == set(names[-MAX_AGENTS:])


def test_an_agent_that_is_active_again_stays() -> None:
    names = [f"agent-{place}" for place in range(MAX_AGENTS)]
    agents = after_all([*names, "agent-0", "new-1", "new-2"])[AGENTS]
    assert isinstance(agents, dict)
    assert {"agent-0", "new-1", "new-2"} <= set(agents)
    assert not {"agent-1", "agent-2"} & set(agents)

"""The states of a memory and the steps between them."""

from datetime import timedelta

from memplane.domain.errors import Conflict
from memplane.domain.memory import State

PURGE_AFTER = timedelta(days=30)
"""How long a soft-deleted memory can be restored."""

TRANSITIONS: dict[State, frozenset[State]] = {
    State.ACTIVE: frozenset({State.SUPERSEDED, State.ARCHIVED, State.SOFT_DELETED}),
    State.SUPERSEDED: frozenset({State.ACTIVE, State.SOFT_DELETED}),
    State.ARCHIVED: frozenset({State.ACTIVE, State.SOFT_DELETED}),
    State.SOFT_DELETED: frozenset({State.ACTIVE, State.PURGED}),
    State.PURGED: frozenset(),
}


def check_transition(before: State, after: State) -> None:
    """Refuse a step that the state machine does not have.

    Raises:
        Conflict: there is no such step.
    """
    if after not in TRANSITIONS[before]:
        raise Conflict(f"a memory that is {before} cannot become {after}", state=before.value)

"""Consent: which fields of a profile change only when a person agrees, and what a decision does to a proposal."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from memplane.domain.errors import AlreadyDecided, ProposalExpired

MULTIPLE = frozenset({"goals_add"})
"""Fields that hold several values beside one another; of any other the newer one takes the older one's place."""


@dataclass(frozen=True, slots=True)
class ConsentRules:
    """What ``consent.yaml`` says.

    Attributes:
        sensitive: fields that change by consent only.
        benign: fields that apply once they are corroborated.
        life: how long a proposal can be decided on.
        turns: as many different turns make a benign field apply.
        insight_confidence: an insight that is at least this sure makes it apply too, 0 to 1.
    """

    sensitive: tuple[str, ...]
    benign: tuple[str, ...]
    life: timedelta
    turns: int
    insight_confidence: float

    def is_corroborated(self, turns: Iterable[UUID], insights: Iterable[float] = ()) -> bool:
        """Whether a benign field applies.

        Args:
            turns: the turns that said the value; the same one counts once.
            insights: how sure insights of the background are of it.
        """
        return len(set(turns)) >= self.turns or any(sure >= self.insight_confidence for sure in insights)


class ProposalState(StrEnum):
    """Where a proposal is."""

    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"
    EXPIRED = "expired"


class Verdict(StrEnum):
    """What a person decides on a proposal."""

    APPROVE = "approve"
    REJECT = "reject"

    @property
    def state(self) -> ProposalState:
        """What it makes of the proposal."""
        return ProposalState.APPROVED if self is Verdict.APPROVE else ProposalState.REJECTED


def state_at(stored: ProposalState, expires_at: datetime, now: datetime) -> ProposalState:
    """A proposal's state at a moment: one that nobody decided on lapses by itself."""
    lapsed = stored is ProposalState.PENDING and expires_at <= now
    return ProposalState.EXPIRED if lapsed else stored


def decides(state: ProposalState, verdict: Verdict) -> bool:
    """Whether a verdict still has something to do: False when it was given before.

    Args:
        state: the proposal's state now.
        verdict: the decision.

    Raises:
        AlreadyDecided: the opposite was decided.
        ProposalExpired: its time is over.
    """
    if state is ProposalState.EXPIRED:
        raise ProposalExpired(
            "the proposal has lapsed; it applies when the user says it again and it is decided in time"
        )
    if state is ProposalState.PENDING:
        return True
    if state is verdict.state:
        return False
    raise AlreadyDecided(f"the proposal was {state} already", state=state.value)

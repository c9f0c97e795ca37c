"""Who may see what, worked out again from the policy files alone: nothing here is shared with the code under test."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from support.leaks.canaries import LIVES, Canary, Place

NOW = frozenset({"active", "confirmed"})
"""What a question is answered with."""
LISTED = NOW | {"ended"}
"""What a record is found by its id, list or relation: what is true no longer is still a record."""
REFUSED = frozenset({"refused", "rejected", "soft_deleted"})
"""What a list of tombstones tells: values that a person refused, and memories that were rejected."""
PROPOSED = NOW | {"proposed", "refused"}
"""What a list of proposals tells: values that wait for consent, and those that were decided on."""
SAVED = frozenset({"saved"})
"""What is told of a supervisor's state."""
DISPUTED = frozenset({"disputed"})
BELIEVED = frozenset({"active", "confirmed", "ended", "superseded", "replaced"})
"""What was believed at some moment."""
EVER = frozenset({*LIVES, "replaced"})
"""What a memory's history and its ``why`` tell, which go on after its end."""
TOLD = EVER - {"expired", "replaced"}
"""What a thread is told, a deletion among it; what expired is gone at once."""
ANCHORED = EVER - {"soft_deleted", "rejected", "replaced"}
"""What a timeline may be asked around."""


OPERATOR = ""
"""In the place of an agent's name."""
NOBODY = ""
"""In the place of a user's name, for shared knowledge."""


@dataclass(frozen=True)
class Voice:
    """One who calls: as the test knows the key, and the key itself."""

    tenant: str
    agent: str
    trust: str
    users: tuple[str, ...] | None
    credential: str = field(repr=False)

    def __str__(self) -> str:
        return f"{self.tenant[-4:]}/{self.agent}/{self.trust}/{'any' if self.users is None else '+'.join(self.users)}"


class Oracle:
    """The rules of ``categories.yaml`` and ``trust.yaml``."""

    def __init__(self, policies: Path) -> None:
        categories: dict[str, Any] = yaml.safe_load((policies / "categories.yaml").read_text())
        trust: dict[str, Any] = yaml.safe_load((policies / "trust.yaml").read_text())
        self.levels: Mapping[str, Mapping[str, Any]] = trust["levels"]
        self.order: Sequence[str] = list(self.levels)  # the most trusted first
        self.categories = [entry["name"] for part in categories["categories"].values() for entry in part]
        self.turns: str = categories["turns"]["category"]
        self.shared: Sequence[str] = categories["shared"]
        self._lists: Mapping[str, Any] = categories["allowlists"]
        self.agents = list(self._lists)

    def reads(self, agent: str) -> Sequence[str]:
        """Categories that an agent may read; an operator, who has no agent's name, every one."""
        return list(self.categories) if agent == OPERATOR else self._allowed(agent, "read")

    def writes(self, agent: str) -> Sequence[str]:
        """Categories that an agent may write; an operator reverts what was written in every one."""
        return list(self.categories) if agent == OPERATOR else self._allowed(agent, "write")

    def writer(self, category: str) -> str:
        """An agent that may write a category."""
        return next(agent for agent in self.agents if category in self.writes(agent))

    def why_not(self, voice: Voice, place: Place) -> list[str]:
        """Every rule that keeps a caller from what was written in a place; none when it may read it."""
        reasons = {
            "tenant": voice.tenant != place.tenant,
            "user": voice.users is not None and place.user not in {*voice.users, NOBODY},
            "category": place.category not in self.reads(voice.agent),
            "visibility": place.visibility not in self.levels[voice.trust]["sees"],
            "min_trust": self.order.index(voice.trust) > self.order.index(place.min_trust),
        }
        return [name for name, holds in reasons.items() if holds]

    def may(self, voice: Voice, canary: Canary, lives: frozenset[str] = EVER) -> bool:
        """Whether a word may stand in an answer that tells of some lives."""
        return canary.life in lives and not any(self.why_not(voice, place) for place in canary.places)

    def _allowed(self, agent: str, verb: str) -> Sequence[str]:
        listed = self._lists.get(agent, [])
        return list(listed) if isinstance(listed, list) else list(listed.get(verb, []))

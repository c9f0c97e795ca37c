"""The writes that a caller can also try in a dry run."""

from memplane.application.consent.consents import ReviewProposals
from memplane.application.memories.conflicts import Conflicts
from memplane.application.memories.correction import Correct
from memplane.application.memories.feedback import Feedback
from memplane.application.memories.gateway import Gateway
from memplane.application.memories.recovery import Recovery
from memplane.application.memories.service import Remember
from memplane.application.ports import Clock, Policies, Storage
from memplane.application.turns.ingestion import IngestTurns
from memplane.application.turns.tool_capture import Observe
from memplane.application.turns.turn_deletion import DeleteTurns
from memplane.application.users.user_settings import UserSettings


class Writes:
    """The use cases that write through one gateway: one that commits, or one that rolls back."""

    def __init__(self, gateway: Gateway, storage: Storage, policies: Policies, clock: Clock) -> None:
        self.remember = Remember(gateway)
        self.observe = Observe(policies, self.remember)
        self.feedback = Feedback(gateway)
        self.correct = Correct(gateway)
        self.ingest = IngestTurns(gateway)
        self.delete_turn = DeleteTurns(storage, gateway)
        self.user_settings = UserSettings(gateway)
        deciding = (storage, policies, gateway, clock)
        self.consents = ReviewProposals(*deciding)
        self.conflicts = Conflicts(*deciding)
        self.recovery = Recovery(*deciding)

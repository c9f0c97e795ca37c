"""Conversations with questions about them, in the format of LoCoMo (Maharana et al., 2024).

Two shapes are read: the published one (``conversation: {speaker_a, session_1, session_1_date_time, …}``), and one
reduced to what retrieval needs (``sessions: [{session, date_time, turns}]``).
"""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, ValidationError, field_validator, model_validator

from memplane.contracts.mistakes import joined_mistakes

ANSWERABLE = (1, 2, 3, 4)
"""Categories whose answer is in the conversation: multi-hop, temporal, open-domain, single-hop."""
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
_DATE = "%I:%M %p on %d %B, %Y"
_SESSION = re.compile(r"session_(\d+)")
_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")


class NotConversations(ValueError):
    """A file that is not in the format."""


class LocomoMessage(BaseModel):
    """One message."""

    dia_id: str
    speaker: str
    text: str
    blip_caption: str | None = None

    @property
    def full_text(self) -> str:
        """The text, with what a picture sent along shows."""
        return f"{self.text} [{self.blip_caption}]" if self.blip_caption else self.text


class LocomoSession(BaseModel):
    """The messages of one sitting."""

    session: int
    date_time: str
    turns: list[LocomoMessage]

    @property
    def time(self) -> datetime:
        """When it took place; the format names no zone, so UTC."""
        return datetime.strptime(self.date_time.strip(), _DATE).replace(tzinfo=UTC)

    @field_validator("date_time")
    @classmethod
    def _is_a_date(cls, value: str) -> str:
        datetime.strptime(value.strip(), _DATE).replace(tzinfo=UTC)
        return value


class LocomoQuestion(BaseModel):
    """A question, and the messages that hold its answer."""

    question: str
    category: int
    evidence: list[str]

    @field_validator("evidence")
    @classmethod
    def _apart(cls, value: list[str]) -> list[str]:
        """Ids without repeats; the published file has some written together or with leading zeros."""
        found = [f"D{int(a)}:{int(b)}" for text in value for a, b in _EVIDENCE.findall(text)]
        return list(dict.fromkeys(found))


class LocomoConversation(BaseModel):
    """Sessions of two people, and questions about them."""

    sample_id: str
    speaker_a: str
    sessions: list[LocomoSession]
    qa: list[LocomoQuestion]

    @model_validator(mode="before")
    @classmethod
    def _from_published(cls, value: object) -> object:
        if not isinstance(value, Mapping) or not isinstance(value.get("conversation"), Mapping):
            return value
        told = value["conversation"]
        sessions = [
            {"session": int(named[1]), "date_time": told.get(f"{name}_date_time"), "turns": turns}
            for name, turns in told.items()
            if (named := _SESSION.fullmatch(name))
        ]
        ordered = sorted(sessions, key=lambda session: session["session"])
        return {**value, "speaker_a": told.get("speaker_a"), "sessions": ordered}

    @property
    def questions(self) -> list[LocomoQuestion]:
        """The questions that have evidence."""
        return [asked for asked in self.qa if asked.evidence]


def load(file: Path) -> list[LocomoConversation]:
    """The conversations of a file.

    Raises:
        NotConversations: it cannot be read, or is not in the format.
    """
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        conversations = [LocomoConversation.model_validate(entry) for entry in content]
    except (OSError, ValueError, TypeError) as error:
        reason = joined_mistakes(error.errors()) if isinstance(error, ValidationError) else error
        raise NotConversations(f"{file.name}: not conversations in LoCoMo format ({reason})") from error
    if not any(conversation.questions for conversation in conversations):
        raise NotConversations(f"{file.name}: holds no questions with evidence")
    return conversations

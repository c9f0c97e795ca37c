"""The policy in force, over the network."""

from typing import Annotated

from pydantic import Field, StringConstraints

from memplane.contracts.base import Message, Name, Request
from memplane.domain.memory.memory import Visibility
from memplane.domain.policy.policy import ContextMode, Trust


class PolicyMistake(Message):
    """What is wrong with a policy file."""

    file: str
    line: int
    key: str
    """Dotted path of the key; empty for the file as a whole."""
    message: str


class PolicyFile(Message):
    """A file of the policy in force."""

    name: str
    text: str


class CategoryPolicy(Message):
    """A category as an agent meets it."""

    name: str
    read: bool
    write: bool
    context: ContextMode
    rag_length: int | None
    sensitive_fields: list[str]
    """Fields of the profile that change by consent only."""
    system: bool
    """Shipped with the product."""


class AgentPolicy(Message):
    """What an agent effectively may do with the key that is made for it."""

    agent: str
    trust: Trust
    sees: list[Visibility]
    default_store: Visibility | None
    categories: list[CategoryPolicy]
    asked_by_default: list[str]
    """Categories of a query that names none."""
    turns_category: str
    sees_turns: bool
    drawn_into: list[str]
    """Categories of the facts that are drawn from turns that it records."""


class PolicyRecord(Message):
    """The policy in force."""

    policy: str
    """Hash of its content."""
    files: list[PolicyFile]
    """The text of its files; none where one agent is asked for."""
    agents: list[AgentPolicy]
    errors: list[PolicyMistake]
    """Why a newer state of the files was not taken; empty when the files are what is in force."""


class PolicyCheckRequest(Request):
    """A candidate: files that replace those of the same name of the policy in force."""

    files: Annotated[
        dict[Name, Annotated[str, StringConstraints(max_length=262_144)]], Field(min_length=1, max_length=20)
    ]
    """The text of each, by its name, such as `categories.yaml`."""


class PolicyCheck(Message):
    """Whether a candidate could come into force; nothing has changed."""

    ok: bool
    policy: str | None
    """Hash of the candidate; null where it is wrong."""
    errors: list[PolicyMistake]


class ReloadedPolicy(Message):
    """What reading the files again did."""

    policy: str
    """Hash of the policy in force."""
    before: str
    changed: bool

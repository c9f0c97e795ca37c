"""Prompts from the package's files, with a version that says which words they are."""

import hashlib
import re
from dataclasses import dataclass, field
from importlib import resources
from importlib.resources.abc import Traversable

from memplane.application.jobs.inference.language_model import ModelPrompt
from memplane.domain.errors import PromptInvalid

MAX_CHARS = 20_000
DIGEST_CHARS = 12
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_FILE = re.compile(r"---\nversion: ([1-9][0-9]{0,5})\n---\n(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class PromptFile:
    """The instructions of a file.

    Attributes:
        name: the file's, without its ending.
        version: ``<name>/<version>:<first 12 hex digits of the SHA-256 of the file>``: whoever edits the words without
            counting the version up is found out by the digits.
        instructions: the words.
    """

    name: str
    version: str
    instructions: str = field(repr=False)

    def about(self, text: str) -> ModelPrompt:
        """The prompt, about a text."""
        return ModelPrompt(self.name, self.version, self.instructions, text)


def shipped_prompts() -> Traversable:
    """The folder of the prompts in the package."""
    return resources.files("memplane") / "prompts"


def prompt_file(name: str, folder: Traversable | None = None) -> PromptFile:
    """A prompt by its name.

    Args:
        name: small letters, digits and ``_``.
        folder: where the file lies; none: among the shipped ones.

    Raises:
        PromptInvalid: there is none, or it is not ``---``, ``version: <number>``, ``---`` and some words, in UTF-8.
    """
    if not _NAME.fullmatch(name):
        raise PromptInvalid("a prompt's name is small letters, digits and _")
    try:
        text = ((folder or shipped_prompts()) / f"{name}.md").read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PromptInvalid(f"{name}.md cannot be read: {type(error).__name__}") from error
    found = _FILE.fullmatch(text)
    if found is None or not found[2].strip():
        raise PromptInvalid(f"{name}.md is not `---`, `version: <number>`, `---` and some words, each on its own line")
    if len(text) > MAX_CHARS or "\x00" in text:
        raise PromptInvalid(f"{name}.md is longer than {MAX_CHARS} characters, or holds a NUL")
    digest = hashlib.sha256(text.encode()).hexdigest()[:DIGEST_CHARS]
    return PromptFile(name, f"{name}/{found[1]}:{digest}", found[2].strip())

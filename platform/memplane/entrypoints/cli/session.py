"""A server and a key for the commands that go over HTTP."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from memplane.adapters.files.key_file import NAME, KeyFile
from memplane.client import MemplaneClientError, MemplaneSync
from memplane.domain.errors import SettingsError
from memplane.entrypoints.cli.options import DEFAULT_AGENT, settings_of


@dataclass(frozen=True, slots=True)
class CliSession:
    """A connected client, and the agent to name in each call; none where the key itself says it."""

    client: MemplaneSync
    agent: str | None


@contextmanager
def session(url: str, key: str | None, agent: str | None, data: Path | None) -> Iterator[CliSession]:
    """A session with the given key, or with the one that a single-user server made for the agent.

    Raises:
        SettingsError: there is no key.
        Invalid: the URL or the key cannot be one.
    """
    credential = key or _from_file(settings_of(data=data).data, agent or DEFAULT_AGENT)
    with MemplaneSync(url, credential) as client:
        yield CliSession(client, agent if key else None)


@contextmanager
def operating(url: str, key: str | None, agent: str | None, data: Path | None) -> Iterator[CliSession]:
    """The same with the administrator's key, which reaches every category unless an agent is named.

    Raises:
        SettingsError: there is no key.
        Invalid: the URL or the key cannot be one.
    """
    credential = key or _keys_in(settings_of(data=data).data).admin
    with MemplaneSync(url, credential) as client:
        yield CliSession(client, agent)


@contextmanager
def advise_on(advice: Mapping[str, str]) -> Iterator[None]:
    """Says what to do about what a server answered, by the error's code."""
    try:
        yield
    except MemplaneClientError as error:
        if error.code in advice:
            error.add_note(advice[error.code])
        raise


def _keys_in(folder: Path) -> KeyFile:
    try:
        keys = KeyFile.read(folder)
    except OSError as error:
        raise SettingsError(f"{folder / NAME} cannot be read ({error.strerror}): give a key with --key") from error
    if keys is None:
        raise SettingsError(
            f"no key: there is no {folder / NAME}. Name the server's data folder with --data, or give a key with --key "
            "or MEMPLANE_KEY"
        )
    return keys


def _from_file(folder: Path, agent: str) -> str:
    keys = _keys_in(folder)
    if agent not in keys.agents:
        raise SettingsError(f"{folder / NAME} has no key for agent '{agent}'; it has {', '.join(sorted(keys.agents))}")
    return keys.agents[agent]

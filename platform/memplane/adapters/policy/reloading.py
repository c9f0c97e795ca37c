"""The policy in force, and its renewal while the server runs."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from threading import Lock

from memplane.adapters.policy.loading import check_policy, read_policy, yaml_files
from memplane.domain.errors import PolicyError
from memplane.domain.policy.policy import Policy
from memplane.domain.privacy.pii import Finder, find

_Stamp = tuple[str, int, int, int, int]
_Fingerprint = tuple[_Stamp, ...]
_Read = tuple[Policy, Mapping[str, bytes]]


class PolicyFiles:
    """A policy folder and the last good policy that was read from it. Safe to use from several threads.

    Args:
        folder: where the files are.
        find_pii: what each policy that is read finds personal data with.

    Attributes:
        last_error: why the newest state of the folder was not taken; ``None`` when it was.

    Raises:
        PolicyError: the folder's policy is wrong, on construction.
    """

    def __init__(self, folder: Path, find_pii: Finder = find) -> None:
        self._folder = folder
        self._find_pii = find_pii
        self._lock = Lock()
        self._seen = self._fingerprint()
        self._current, self._contents = self._load()
        self.last_error: PolicyError | None = None

    @property
    def folder(self) -> Path:
        """Where the files are."""
        return self._folder

    @property
    def current(self) -> Policy:
        """The policy in force; never waits."""
        return self._current

    @property
    def files(self) -> Mapping[str, str]:
        """The text of each file of the policy in force, by name."""
        return {name: content.decode("utf-8-sig") for name, content in self._contents.items()}

    def check(self, files: Mapping[str, str]) -> Policy:
        """The policy in force with other files in the place of some of its own; it does not come into force.

        Raises:
            PolicyError: it is wrong.
        """
        return check_policy({**self._contents, **{name: text.encode() for name, text in files.items()}})

    def reload(self) -> Policy:
        """Read the folder again, changed or not.

        Returns:
            The policy now in force.

        Raises:
            PolicyError: the files are wrong; the policy before stays in force.
        """
        with self._lock:
            seen = self._fingerprint()
            result = self._attempt()
            self._settle(result, seen)
            if isinstance(result, PolicyError):
                raise result
            return self._current

    def maybe_reload(self) -> Policy | None:
        """Read the folder again if a file of it changed since the last time; cheap when none did.

        Meant to be called every second or so. A folder that changes while it is read is read again at the next call, so
        that no mixture of two states comes into force. Wrong files leave the policy as it is, and ``last_error`` set.

        Returns:
            The new policy when its content differs from the one before, else ``None``.
        """
        with self._lock:
            seen = self._fingerprint()
            if seen == self._seen:
                return None
            before = self._current.digest
            result = self._attempt()
            if self._fingerprint() != seen:
                return None
            self._settle(result, seen)
            return self._current if self._current.digest != before else None

    def _attempt(self) -> _Read | PolicyError:
        try:
            return self._load()
        except PolicyError as error:
            return error

    def _load(self) -> _Read:
        policy, contents = read_policy(self._folder)
        return replace(policy, find_pii=self._find_pii), contents

    def _settle(self, result: _Read | PolicyError, seen: _Fingerprint) -> None:
        self._seen = seen
        if isinstance(result, PolicyError):
            self.last_error = result
        else:
            self.last_error = None
            self._current, self._contents = result

    def _fingerprint(self) -> _Fingerprint:
        """What changes when a file of the folder does; empty when the folder cannot be listed."""
        try:
            return tuple(_stamp(path) for path in yaml_files(self._folder))
        except OSError:
            return ()


def _stamp(path: Path) -> _Stamp:
    try:
        status = path.stat()
    except OSError:  # gone since it was listed, or a link to nothing: reading will say so
        return path.name, 0, 0, 0, 0
    return path.name, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns

"""The file in the data folder in which a single-user server keeps the keys that it made."""

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from memplane.domain.errors import SettingsError

NAME = "keys.json"


@dataclass(frozen=True, slots=True)
class KeyFile:
    """Credentials by agent, and the administrator's; readable by the owner alone."""

    admin: str = field(repr=False)
    agents: Mapping[str, str] = field(repr=False)

    @classmethod
    def read(cls, folder: Path) -> "KeyFile | None":
        """The file in a data folder, or ``None`` when there is none.

        Raises:
            SettingsError: it is there but is no key file.
        """
        path = folder / NAME
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            return cls(admin=str(content["admin"]), agents={str(k): str(v) for k, v in content["agents"].items()})
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, AttributeError, TypeError) as error:
            raise SettingsError(f"{path}: is no key file ({error}); move it away and new keys will be made") from error

    def with_credential(self, key_id: str, credential: str) -> "KeyFile | None":
        """The file with a new credential in the place of a key's; ``None`` when it does not hold that key."""
        old = f"mp_{key_id}_"
        agents = {agent: credential if held.startswith(old) else held for agent, held in self.agents.items()}
        admin = credential if self.admin.startswith(old) else self.admin
        return None if (admin, agents) == (self.admin, dict(self.agents)) else KeyFile(admin, agents)

    def write(self, folder: Path) -> None:
        """Put the file in place, whole or not at all, mode 0600."""
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=folder, prefix=f".{NAME}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump({"admin": self.admin, "agents": dict(self.agents)}, file, indent=2)
                file.write("\n")
                file.flush()
                os.fsync(file.fileno())
            Path(name).chmod(0o600)
            Path(name).replace(folder / NAME)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise

"""What a kind of database can do. Both answer alike; what only one of them has is declared here, and nowhere else."""

from dataclasses import dataclass
from enum import StrEnum

from memplane.domain.errors import NotSupported


class Capability(StrEnum):
    """Something that not every database has."""

    ROW_LEVEL_SECURITY = "row_level_security"
    APPEND_ONLY_HISTORY = "append_only_history"
    SEVERAL_TENANTS = "several_tenants"
    SEVERAL_MACHINES = "several_machines"
    SIMULTANEOUS_WRITES = "simultaneous_writes"
    ONLINE_SCHEMA = "online_schema"
    SHARED_RATES = "shared_rates"
    IN_PROCESS = "in_process"
    BACKUP_COMMAND = "backup_command"


@dataclass(frozen=True, slots=True)
class Meaning:
    """A capability in words.

    Attributes:
        what: what it is.
        instead: what to use where it is missing.
    """

    what: str
    instead: str


MEANINGS = {
    Capability.ROW_LEVEL_SECURITY: Meaning(
        "the database itself keeps tenants apart, behind the scope predicate",
        "the scope predicate alone: keep the file to one tenant",
    ),
    Capability.APPEND_ONLY_HISTORY: Meaning(
        "the application has no right to change or delete history",
        "nothing in Memplane changes history, but to take out words that are erased; whoever can write the file can, "
        "and the chain shows it",
    ),
    Capability.SEVERAL_TENANTS: Meaning("several tenants in one database", "PostgreSQL, or a file for each tenant"),
    Capability.SEVERAL_MACHINES: Meaning(
        "servers on several machines, and replicas of the database", "PostgreSQL; several processes of one machine can"
    ),
    Capability.SIMULTANEOUS_WRITES: Meaning(
        "transactions that write at the same time", "writers take turns, without an error"
    ),
    Capability.ONLINE_SCHEMA: Meaning(
        "`memplane migrate` while servers run", "stop the server first; it migrates when it starts"
    ),
    Capability.SHARED_RATES: Meaning(
        "a key's rate holds over all servers together", "each process counts for itself, from its start"
    ),
    Capability.IN_PROCESS: Meaning("`memplane.open`: no server at all", "SQLite, or `memplane serve`"),
    Capability.BACKUP_COMMAND: Meaning(
        "`memplane backup FILE` while the server runs",
        "pg_dump --format=custom, as a role that row-level security does not bind",
    ),
}


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What one kind of database has.

    Attributes:
        storage: its name, for people.
        held: what it has.
    """

    storage: str
    held: frozenset[Capability]

    def __contains__(self, capability: Capability) -> bool:
        return capability in self.held

    def require(self, capability: Capability) -> None:
        """Go on only with a capability.

        Raises:
            NotSupported: this kind of database does not have it; the message says what to use instead.
        """
        if capability not in self.held:
            meaning = MEANINGS[capability]
            raise NotSupported(
                f"{self.storage} does not have {capability} ({meaning.what}); instead: {meaning.instead}",
                capability=str(capability),
                storage=self.storage,
            )


POSTGRES = Capabilities(
    "PostgreSQL",
    frozenset(
        {
            Capability.ROW_LEVEL_SECURITY,
            Capability.APPEND_ONLY_HISTORY,
            Capability.SEVERAL_TENANTS,
            Capability.SEVERAL_MACHINES,
            Capability.SIMULTANEOUS_WRITES,
            Capability.ONLINE_SCHEMA,
            Capability.SHARED_RATES,
        }
    ),
)
SQLITE = Capabilities("SQLite", frozenset({Capability.IN_PROCESS, Capability.BACKUP_COMMAND}))

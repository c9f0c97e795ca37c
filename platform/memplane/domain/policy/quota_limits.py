"""How much may be stored, and written in a day."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Limits:
    """The most of each; ``None`` is without limit.

    Attributes:
        memories: memories that are not deleted.
        bytes: UTF-8 bytes of the texts of memories and turns.
        writes_per_day: memories and turns that are sent to be stored or changed, on a day of UTC.
    """

    memories: int | None = None
    bytes: int | None = None
    writes_per_day: int | None = None

    @property
    def any(self) -> bool:
        """Whether something is limited."""
        return not (self.memories is self.bytes is self.writes_per_day is None)


@dataclass(frozen=True, slots=True)
class QuotaLimits:
    """The limits of a whole tenant, and of each of its users."""

    tenant: Limits = field(default_factory=Limits)
    user: Limits = field(default_factory=Limits)

    @property
    def any(self) -> bool:
        """Whether something is limited."""
        return self.tenant.any or self.user.any

    @property
    def counts_writes(self) -> bool:
        """Whether writes are counted: where they are limited."""
        return self.tenant.writes_per_day is not None or self.user.writes_per_day is not None

"""``trust.yaml``: which stores each trust level sees, and where its writes go."""

from collections.abc import Mapping
from types import MappingProxyType

from memplane.adapters.policy.value import Value
from memplane.domain.memory.memory import Visibility
from memplane.domain.policy.policy import Trust, TrustLevel

_NOWHERE = "none"


def read_trust(root: Value) -> Mapping[Trust, TrustLevel]:
    """Read the file; what is wrong goes to the root's report.

    A level that sees more than the one above it, or writes by default to a store that it does not see, is wrong.
    """
    levels = root.fields(("levels",))["levels"].fields(tuple(Trust))
    found: dict[Trust, TrustLevel] = {}
    above: tuple[Trust, TrustLevel] | None = None
    for trust in Trust:
        fields = levels[trust].fields(("sees", "default_write"))
        problems = len(root.report)
        level = _level(fields)
        if not fields["sees"].present or len(root.report) > problems:
            continue
        if above and not level.sees <= above[1].sees:
            more = ", ".join(sorted(level.sees - above[1].sees))
            fields["sees"].fail(
                f"sees {more}, which the level above it, '{above[0]}', does not; accepted: no more than it"
            )
        found[trust] = level
        above = trust, level
    return MappingProxyType(found)


def _level(fields: Mapping[str, Value]) -> TrustLevel:
    problems = len(fields["sees"].report)
    sees = frozenset(fields["sees"].distinct(lambda item: item.choice("store", Visibility, Visibility.SOCIAL)))
    sees_is_right = fields["sees"].present and len(fields["sees"].report) == problems
    store = fields["default_write"].one_of("store", (*Visibility, _NOWHERE), _NOWHERE)
    default_write = None if store == _NOWHERE else Visibility(store)
    if default_write is not None and default_write not in sees and sees_is_right:
        accepted = ", ".join((*(visible for visible in Visibility if visible in sees), _NOWHERE))
        fields["default_write"].fail(f"writes to '{store}', which this level does not see; accepted: {accepted}")
    return TrustLevel(sees=sees, default_write=default_write)

"""``lifecycle.yaml``: what becomes of memories with time."""

from datetime import timedelta

from memplane.adapters.policy_files.value import Value
from memplane.domain.lifecycle import LifecycleRules

MAX_DAYS = 36_500
MAX_MEMORIES = 10_000_000


def read_lifecycle(root: Value) -> LifecycleRules:
    """Read the file; what is wrong goes to the root's report."""
    fields = root.fields(("ttl", "decay", "layers", "size", "purge_days"))
    ttl = fields["ttl"].fields(("days", "importance_below"))
    decay = fields["decay"].fields(("rate", "floor"))
    layers = fields["layers"].fields(("promote_hits", "promote_days", "capacity", "archive_score", "archive_days"))
    size = fields["size"].fields(("max", "prune_percent"))
    return LifecycleRules(
        idle=_days(ttl["days"]),
        importance_below=ttl["importance_below"].whole(1, 6, fallback=1),
        decay_rate=decay["rate"].number(0.0, 10.0),
        floor=decay["floor"].number(0.0, 1.0),
        promote_hits=layers["promote_hits"].whole(1, 1000, fallback=1),
        promote_within=_days(layers["promote_days"]),
        capacity=layers["capacity"].whole(1, MAX_MEMORIES, fallback=1),
        archive_score=layers["archive_score"].number(0.0, 100.0),
        archive_after=_days(layers["archive_days"]),
        max_size=size["max"].whole(1, MAX_MEMORIES, fallback=1),
        prune_percent=size["prune_percent"].whole(1, 100, fallback=1),
        purge_after=_days(fields["purge_days"]),
    )


def _days(value: Value) -> timedelta:
    return timedelta(days=value.whole(1, MAX_DAYS, fallback=1))

"""``lifecycle.yaml``: what becomes of memories with time."""

from collections.abc import Collection
from datetime import timedelta
from types import MappingProxyType

from memplane.adapters.policy.value import Value, did_you_mean
from memplane.domain.memory.lifecycle import LifecycleRules

MAX_DAYS = 36_500
MAX_MEMORIES = 10_000_000


def read_lifecycle(root: Value, categories: Collection[str] = ()) -> LifecycleRules:
    """Read the file; what is wrong goes to the root's report.

    Args:
        root: the file.
        categories: those of the policy; none when they could not be read.
    """
    fields = root.fields(("ttl", "decay", "layers", "size", "purge_days"), ("away", "tracking", "user_merges"))
    ttl = fields["ttl"].fields(("days", "importance_below"), ("categories",))
    away = fields["away"].fields(("days",)) if fields["away"].present else None
    tracking = fields["tracking"].fields(("events_days", "changes_days")) if fields["tracking"].present else None
    merges = fields["user_merges"].fields(("revertible_days",)) if fields["user_merges"].present else None
    decay = fields["decay"].fields(("rate", "floor"))
    layers = fields["layers"].fields(("promote_hits", "promote_days", "capacity", "archive_score", "archive_days"))
    size = fields["size"].fields(("max", "prune_percent"))
    return LifecycleRules(
        idle=_days(ttl["days"]),
        importance_below=_importance(ttl["importance_below"]),
        importance_below_in=_by_category(ttl["categories"], categories),
        away=LifecycleRules().away if away is None else _days(away["days"]),
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
        keep_events=LifecycleRules().keep_events if tracking is None else _days(tracking["events_days"]),
        keep_changes=LifecycleRules().keep_changes if tracking is None else _days(tracking["changes_days"]),
        merge_revertible=LifecycleRules().merge_revertible if merges is None else _days(merges["revertible_days"]),
    )


def _by_category(value: Value, categories: Collection[str]) -> MappingProxyType[str, int]:
    found = value.table()
    for name, place in found.items():
        if categories and name not in categories:
            place.fail_key(
                f"unknown category '{name}';{did_you_mean(name, categories)} accepted: {', '.join(categories)}"
            )
    return MappingProxyType({name: _importance(place) for name, place in found.items()})


def _importance(value: Value) -> int:
    return value.whole(1, 6, fallback=1)


def _days(value: Value) -> timedelta:
    return timedelta(days=value.whole(1, MAX_DAYS, fallback=1))

"""``merge.yaml``: from which cosine a new memory may be merged with, or supersede, an old one."""

from collections.abc import Mapping
from itertools import pairwise
from types import MappingProxyType

from memplane.adapters.policy.value import Value
from memplane.domain.language.comparison.comparison import ANY_MODEL, Bands, MergeRules

_FALLING = ("auto", "update", "check", "fallback")
"""The bands, highest first: each begins where, or below where, the one before it does."""


def read_merge(root: Value) -> MergeRules:
    """Read the file; what is wrong goes to the root's report."""
    bands = root.fields(("bands",))["bands"]
    return MergeRules(bands=_by_model(bands))


def _by_model(value: Value) -> Mapping[str, Bands]:
    found = value.table(names=False)
    if value.is_mapping and ANY_MODEL not in found:
        value.child(ANY_MODEL).fail_key('missing; "*" serves the embedding models that are not named')
    return MappingProxyType({model: _bands(bands) for model, bands in found.items()})


def _bands(value: Value) -> Bands:
    fields = value.fields((*_FALLING, "link_min", "shared_min"))
    problems = len(value.report)
    found = {key: field.number(0.0, 1.0) for key, field in fields.items()}
    if len(value.report) == problems:
        for upper, lower in pairwise(_FALLING):
            _refuse_above(fields[lower], lower, found, upper)
        _refuse_above(fields["link_min"], "link_min", found, "auto")
    return Bands(**found)


def _refuse_above(value: Value, name: str, found: Mapping[str, float], upper: str) -> None:
    """Report a threshold that is higher than the one above it."""
    if value.present and found[name] > found[upper]:
        value.fail(f"{found[name]:g} is more than {upper}, {found[upper]:g}; accepted: at most {upper}")

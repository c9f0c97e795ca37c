"""``ranking.yaml``: the named ways to rank."""

from collections.abc import Mapping
from types import MappingProxyType

from memplane.adapters.policy.value import Value
from memplane.domain.policy.policy import Bm25, FusionWeights, RankingMethod, RankingProfile

MAX_WEIGHT = 100.0
MAX_K1 = 10.0
MAX_NEIGHBOURS = 10
MAX_RRF_K = 1_000

DEFAULT_RRF_K = 60
"""The constant of the paper that introduced reciprocal rank fusion (Cormack, Clarke, Büttcher 2009)."""

DEFAULT_PROFILE = "default"
ANY_MODEL = "*"

_PARAMETERS: Mapping[RankingMethod, tuple[str, ...]] = {
    RankingMethod.CALIBRATED: ("bm25", "weights"),
    RankingMethod.RRF: ("bm25", "rrf_k"),
    RankingMethod.LEXICAL: ("bm25",),
    RankingMethod.SEMANTIC: (),
    RankingMethod.WEIGHTED: ("bm25",),
    RankingMethod.HEBBIAN: ("bm25",),
    RankingMethod.LAYERED: ("bm25",),
}
"""What each method is governed by; the others would have no effect, and are refused."""


def read_ranking(root: Value) -> Mapping[str, RankingProfile]:
    """Read the file; what is wrong goes to the root's report."""
    profiles = root.fields(("profiles",))["profiles"]
    found = profiles.table()
    if profiles.is_mapping and DEFAULT_PROFILE not in found:
        profiles.child(DEFAULT_PROFILE).fail_key("missing; it ranks every request that names no profile")
    return MappingProxyType({name: _profile(name, value) for name, value in found.items()})


def _profile(name: str, value: Value) -> RankingProfile:
    fields = value.fields(("method",), ("bm25", "weights", "rrf_k", "relation"))
    problems = len(value.report)
    method = fields["method"].choice("method", RankingMethod, RankingMethod.SEMANTIC)
    if fields["method"].present and len(value.report) == problems:
        _refuse_idle(fields, method)
    return RankingProfile(
        name=name,
        method=method,
        bm25=_bm25(fields["bm25"]),
        weights=_weights(fields["weights"]) if fields["weights"].present else MappingProxyType({}),
        rrf_k=fields["rrf_k"].whole(1, MAX_RRF_K, fallback=DEFAULT_RRF_K),
        relation=fields["relation"].number(0.0, MAX_WEIGHT, fallback=0.0),
    )


def _refuse_idle(fields: Mapping[str, Value], method: RankingMethod) -> None:
    for key in ("bm25", "weights", "rrf_k"):
        if fields[key].present and key not in _PARAMETERS[method]:
            accepted = ", ".join(("method", *_PARAMETERS[method], "relation"))
            fields[key].fail_key(f"has no effect with `method: {method}`; accepted: {accepted}")
    if method is RankingMethod.CALIBRATED and not fields["weights"].present:
        fields["weights"].fail_key(f"missing; `method: {method}` needs weights by embedding model")


def _bm25(value: Value) -> Bm25:
    """The parameters; those that are absent are the domain's."""
    fields = value.fields((), ("k1", "b", "before", "after"))
    defaults = Bm25()
    return Bm25(
        k1=fields["k1"].number(0.0, MAX_K1, fallback=defaults.k1),
        b=fields["b"].number(0.0, 1.0, fallback=defaults.b),
        before=_falling(fields["before"]) if fields["before"].present else defaults.before,
        after=_falling(fields["after"]) if fields["after"].present else defaults.after,
    )


def _falling(value: Value) -> tuple[float, ...]:
    """Weights of neighbours, nearest first: a farther one never counts more."""
    weights: list[float] = []
    for item in value.items():
        problems = len(value.report)
        weight = item.number(0.0, 1.0)
        if len(value.report) > problems:
            continue
        if weights and weight > weights[-1]:
            item.fail(
                f"{weight:g} is more than the nearer neighbour's {weights[-1]:g}; accepted: weights that only fall"
            )
        weights.append(weight)
    if len(weights) > MAX_NEIGHBOURS:
        value.fail(f"{len(weights)} neighbours; accepted: at most {MAX_NEIGHBOURS}")
    return tuple(weights)


def _weights(value: Value) -> Mapping[str, FusionWeights]:
    found = value.table(names=False)
    if value.is_mapping and ANY_MODEL not in found:
        value.child(ANY_MODEL).fail_key('missing; "*" serves the embedding models that are not named')
    return MappingProxyType({model: _fusion(weights) for model, weights in found.items()})


def _fusion(value: Value) -> FusionWeights:
    fields = value.fields(
        ("lexical", "semantic", "semantic_context", "actor"),
        ("entity", "when", "phrase", "recency", "importance", "pinned", "insight"),
    )

    def weight(key: str) -> float:
        return fields[key].number(0.0, MAX_WEIGHT)

    return FusionWeights(
        lexical=weight("lexical"),
        semantic=weight("semantic"),
        semantic_context=weight("semantic_context"),
        actor=weight("actor"),
        entity=weight("entity"),
        when=weight("when"),
        phrase=weight("phrase"),
        recency=weight("recency"),
        importance=weight("importance"),
        pinned=weight("pinned"),
        insight=fields["insight"].number(0.0, 1.0, fallback=1.0),
    )

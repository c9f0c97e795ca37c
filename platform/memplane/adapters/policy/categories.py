"""``categories.yaml``: the categories, the category of turns, and who may read and write what."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from memplane.adapters.policy.value import Value, did_you_mean
from memplane.domain.policy.policy import Allowlist, Category, ContextMode, Trust
from memplane.domain.privacy.pii import Pii
from memplane.domain.privacy.screening import Rules, Screening

MAX_RAG_LENGTH = 1_000
"""The most items that one category may give to a context."""


@dataclass(frozen=True, slots=True)
class CategoryRules:
    """What ``categories.yaml`` says; agents and categories in the order of the file."""

    categories: Mapping[str, Category]
    allowlists: Mapping[str, Allowlist]
    turns_category: str
    extraction: tuple[str, ...] | None = None
    shared: tuple[str, ...] = ()

    @property
    def sensitive_fields(self) -> frozenset[str]:
        """Those of all categories."""
        return frozenset(field for category in self.categories.values() for field in category.sensitive_fields)


def read_categories(root: Value, sensitive: Collection[str] | None = None) -> CategoryRules:
    """Read the file; what is wrong goes to the root's report.

    Args:
        root: the file.
        sensitive: the fields that need consent; ``None`` when they are not known, for their own file is wrong.
    """
    fields = root.fields(("categories", "turns", "allowlists"), ("pii", "extraction", "shared"))
    everywhere = _screening(fields["pii"])
    groups = fields["categories"].fields(("system",), ("custom",))
    categories: dict[str, Category] = {}
    lines: dict[str, int] = {}
    for group in ("system", "custom"):
        for item in groups[group].items():
            name, category = _category(item, everywhere, sensitive, system=group == "system")
            if category.name in categories:
                name.fail(f"category '{category.name}' is already there, on line {lines[category.name]}; keep one")
            elif category.name:
                categories[category.name] = category
                lines[category.name] = item.line
    turns = fields["turns"].fields(("category",))["category"]
    agents = fields["allowlists"].table()
    extraction = fields["extraction"]
    drawn = extraction.fields(("write",))["write"]
    if not categories and len(root.report):  # they could not be read: every use of one would be reported as unknown
        return CategoryRules(categories, {}, "")
    return CategoryRules(
        categories=MappingProxyType(categories),
        allowlists=MappingProxyType({agent: _allowlist(value, categories) for agent, value in agents.items()}),
        turns_category=turns.one_of("category", categories),
        extraction=_names(drawn, categories) if extraction.present else None,
        shared=fields["shared"].distinct(lambda item: _shared(item, categories)) if fields["shared"].present else (),
    )


def _category(
    item: Value, everywhere: Rules, sensitive: Collection[str] | None, *, system: bool
) -> tuple[Value, Category]:
    """The category, and the place of its name."""
    fields = item.fields(("name", "context"), ("rag_length", "sensitive_fields", "pii"))
    problems = len(item.report)
    context = fields["context"].choice("context", ContextMode, ContextMode.NONE)
    length = fields["rag_length"]
    if fields["context"].present and len(item.report) == problems:
        if context is ContextMode.RAG and not length.present:
            length.fail_key("missing; `context: rag` needs the most items that it gives to a context")
        elif context is not ContextMode.RAG and length.present:
            length.fail_key(f"has no effect with `context: {context}`; remove it, or use `context: rag`")
    return fields["name"], Category(
        name=fields["name"].name(),
        context=context,
        rag_length=length.whole(1, MAX_RAG_LENGTH) if length.present else None,
        sensitive_fields=fields["sensitive_fields"].distinct(lambda field: _sensitive(field, sensitive)),
        system=system,
        pii=MappingProxyType({**everywhere, **_screening(fields["pii"])}),
    )


def _shared(item: Value, categories: Mapping[str, Category]) -> str:
    name = item.one_of("category", categories)
    if name and categories[name].sensitive_fields:
        item.fail(f"category '{name}' has sensitive_fields, which are always a user's own; share another one")
    return name


def _sensitive(item: Value, known: Collection[str] | None) -> str:
    return item.name() if known is None else item.one_of("sensitive field of consent.yaml", known)


def _screening(value: Value) -> Rules:
    """What is done by kind of personal data; ``"*"`` stands for the kinds that are not named."""
    kinds = tuple(kind.value for kind in Pii)
    named: dict[Pii, Screening] = {}
    others: Screening | None = None
    for name, rule in value.table(names=False).items() if value.present else ():
        chosen = rule.choice("rule", Screening, Screening.TAG)
        if name == "*":
            others = chosen
        elif name in kinds:
            named[Pii(name)] = chosen
        else:
            rule.fail_key(f"unknown kind of personal data;{did_you_mean(name, kinds)} accepted: {', '.join(kinds)}, *")
    return {kind: others for kind in Pii if others is not None} | named


def _allowlist(value: Value, categories: Mapping[str, Category]) -> Allowlist:
    if value.is_list:
        both = _names(value, categories)
        return Allowlist(read=both, write=both)
    fields = value.fields(("read", "write"), ("trust",))
    return Allowlist(
        read=_names(fields["read"], categories),
        write=_names(fields["write"], categories),
        trust=fields["trust"].choice("trust level", Trust, Trust.FULL),
    )


def _names(value: Value, categories: Mapping[str, Category]) -> tuple[str, ...]:
    return value.distinct(lambda item: item.one_of("category", categories))

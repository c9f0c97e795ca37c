"""What the policy does about personal data in what is stored: note its kind, mark it out, or refuse the text."""

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum

from memplane.domain.errors import PersonalDataRefused
from memplane.domain.memory.memory import MemoryText
from memplane.domain.privacy import pii
from memplane.domain.privacy.pii import Finder, Pii


class Screening(StrEnum):
    """What is done about one kind of personal data."""

    TAG = "tag"
    REDACT = "redact"
    REFUSE = "refuse"


Rules = Mapping[Pii, Screening]
"""What is done by kind; a kind that is absent is tagged."""


def screen_text(text: MemoryText, rules: Rules, find_pii: Finder) -> MemoryText:
    """A memory's words as the rules let them be stored.

    Raises:
        PersonalDataRefused: they hold what the rules refuse.
    """
    if not _strict(rules):
        return text
    return replace(
        text,
        content=plain(text.content, rules, "content", find_pii),
        title=text.title and plain(text.title, rules, "title", find_pii),
        narrative=text.narrative and plain(text.narrative, rules, "narrative", find_pii),
        facts=tuple(plain(fact, rules, "facts", find_pii) for fact in text.facts),
        steps=tuple(plain(step, rules, "steps", find_pii) for step in text.steps),
        tags=tuple(plain(tag, rules, "tags", find_pii) for tag in text.tags),
        related_files=tuple(plain(name, rules, "related_files", find_pii) for name in text.related_files),
    )


def plain(text: str, rules: Rules, field: str, find_pii: Finder) -> str:
    """One text as the rules let it be stored: ``[email]`` and the like stand for what they mark out.

    Raises:
        PersonalDataRefused: it holds what the rules refuse.
    """
    strict = _strict(rules)
    if not strict:
        return text
    found = {one.kind for one in find_pii(text)} & strict
    refused = sorted(kind for kind in found if rules[kind] is Screening.REFUSE)
    if refused:
        raise PersonalDataRefused(
            f"{field}: holds {', '.join(refused)}, which the policy refuses in this category; leave it out",
            field=field,
            kinds=[kind.value for kind in refused],
        )
    return pii.redact(text, found, find_pii) if found else text


def screened_values(attributes: Mapping[str, object], rules: Rules, find_pii: Finder) -> dict[str, object]:
    """Free attributes with every text in them as the rules let it be stored.

    Raises:
        PersonalDataRefused: one holds what the rules refuse.
    """
    if not _strict(rules):
        return dict(attributes)

    def walk(value: object, path: str) -> object:
        match value:
            case str():
                return plain(value, rules, path, find_pii)
            case list() | tuple():
                return [walk(item, f"{path}[{place}]") for place, item in enumerate(value)]
            case Mapping():
                return {
                    plain(str(key), rules, path, find_pii): walk(item, f"{path}.{key}") for key, item in value.items()
                }
            case _:
                return value

    return {
        plain(key, rules, "attributes", find_pii): walk(value, f"attributes.{key}") for key, value in attributes.items()
    }


def _strict(rules: Rules) -> frozenset[Pii]:
    return frozenset(kind for kind, rule in rules.items() if rule is not Screening.TAG)

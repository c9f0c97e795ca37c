"""``consent.yaml``: sensitive and benign fields of the profile, and what it takes to change them."""

from collections.abc import Collection
from datetime import timedelta

from memplane.adapters.policy.value import Value
from memplane.domain.consent.consent_rules import ConsentRules

MAX_DAYS = 365
MAX_TURNS = 100


def read_consent(root: Value) -> ConsentRules:
    """Read the file; what is wrong goes to the root's report. No field is both sensitive and benign."""
    fields = root.fields(("sensitive", "proposal_days", "benign", "corroboration"))
    enough = fields["corroboration"].fields(("turns", "insight_confidence"))
    sensitive = fields["sensitive"].distinct(Value.name)

    def benign(item: Value) -> str:
        name = item.name()
        if name in sensitive:
            item.fail(f"'{name}' is sensitive too; keep one")
        return name

    return ConsentRules(
        sensitive=sensitive,
        benign=fields["benign"].distinct(benign),
        life=timedelta(days=fields["proposal_days"].whole(1, MAX_DAYS, fallback=1)),
        turns=enough["turns"].whole(1, MAX_TURNS, fallback=1),
        insight_confidence=enough["insight_confidence"].number(0.0, 1.0),
    )


def refuse_unplaced(root: Value, placed: Collection[str]) -> None:
    """Report sensitive fields that lie in no category: nothing would ask for consent to change them.

    Args:
        root: the file, which was read before.
        placed: the sensitive fields that categories have.
    """
    for item in root.fields(("sensitive",), ("proposal_days", "benign", "corroboration"))["sensitive"].items():
        if (name := item.name()) not in placed:
            item.fail(f"no category has '{name}' in its sensitive_fields; name it there, or remove it here")

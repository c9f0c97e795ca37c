"""What a write did, in words."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from rich.text import Text

from memplane.contracts.dry_runs import NOT_STORED, DryRunPlan
from memplane.contracts.memories import WriteOutcome
from memplane.entrypoints.cli.output import plain

_NOTES: Mapping[str, str] = {
    "duplicate": "this is known already, word for word or by its external id; nothing new is stored",
    "merged": "this is known already in other words, and now counts as mentioned once more",
    "updated": "this was known already in other words or in less detail; the older words are in its history",
    "superseded": "it takes the place of {overruled}",
    "disputed": (
        "it contradicts {overruled}, which counts for more: it is not recalled until it is settled with "
        "`memplane confirm {id}` or `memplane reject {id}`"
    ),
    "outdated": "what is newer is known: {overruled}; this is kept as a thing of the past",
    "unchanged": "it was so already",
    "queued_for_consent": (
        "it would change a sensitive field of the profile, and waits until a person agrees: `memplane consents list`"
    ),
}

_AS_IT_WAS = frozenset({"unchanged", "queued_for_consent"})


def describe_write(done: WriteOutcome, note: str | None = None) -> list[Text]:
    """What a write did, and what that means.

    Args:
        done: the server's answer.
        note: what it means, where the call says more than its outcome.
    """
    if done.dry_run is not None:
        there = "" if done.id == NOT_STORED else f": {done.id}"
        return [plain(f"{done.outcome}{there}"), *describe_plan(done.dry_run)]
    version = "" if done.version is None else f", version {done.version}"
    rev = "" if done.rev is None else f", thread revision {done.rev}"
    notes = [_NOTES.get(done.outcome, "") if note is None or done.outcome in _AS_IT_WAS else note]
    if done.overruled and "{overruled}" not in notes[0]:
        notes.append(_NOTES["superseded"])
    if done.possible_conflicts:
        notes.append("it may contradict {conflicts}: both stay, see `memplane conflicts`")
    told = [
        each.format(id=done.id, overruled=_several(done.overruled), conflicts=_several(done.possible_conflicts))
        for each in notes
        if each
    ]
    return [
        plain(f"{done.outcome}: {done.id}{version}{rev}"),
        *(plain(f"  {line}", "dim") for line in told),
    ]


def describe_plan(plan: DryRunPlan | None) -> list[Text]:
    """What a dry run would have done; nothing for a write that was carried out."""
    if plan is None:
        return []
    lines = ["dry run: nothing was stored"]
    for each in plan.changes:
        texts = " -> ".join(dict.fromkeys(text for text in (each.before, each.after) if text is not None))
        named = f" {each.memory_id}" if each.memory_id else ""
        words = (
            ", {}: {} / {}".format(*(" ".join(each.words.get(name, [])) for name in ("common", "old", "new")))
            if any(each.words.get(name) for name in ("common", "old", "new"))
            else ""
        )
        rule = f" (rule {each.rule}{words})" if each.rule else ""
        lines.append(f"{each.event.lower()}{named} [{each.category}] {texts}{rule}")
    lines += [f"would wait for consent: {each.slot} = {each.value} [{each.category}]" for each in plan.proposals]
    return [plain(f"  {line}", "dim") for line in lines]


def _several(ids: Sequence[UUID]) -> str:
    return ", ".join(str(each) for each in ids) or "what was there"

"""Whose each record of a peer's export is, and by whom it is stored.

All of an export is converted before any of it is sent: one that breaks off, or whose users nobody can tell apart, is
refused as a whole.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from pydantic_core import to_json

from memplane.adapters.files.import_lines import ImportLine, ImportLines, ImportPart
from memplane.client.errors import Invalid
from memplane.client.peers import ConvertedRecord, LeftOut
from memplane.entrypoints.cli.imports.sources import Entry

_SHOWN = 5


def fill(
    lines: ImportLines, records: Iterable[ConvertedRecord], user: str | None, writer_of: Callable[[str], str | None]
) -> None:
    """Put an export in.

    Args:
        lines: where.
        records: its records.
        user: the user to import for; without one each record is its own user's.
        writer_of: the agent that stores lines of a category; none for the one of the command.

    Raises:
        Invalid: nobody can tell whose the records are, they have no category, or none is known.
    """
    unmapped: Counter[str] = Counter()
    lines.begin()
    for record in records:
        lines.add(_line_of(record, writer_of))
        unmapped.update(record.unmapped)
    left_out = lines.left_out()
    if lines.count and left_out.get(LeftOut.UNKNOWN_RECORD) == lines.count:
        raise Invalid("unknown_export", f"none of its {lines.count} records is one of that system's")
    if LeftOut.NO_CATEGORY in left_out:
        details = list(lines.details(LeftOut.NO_CATEGORY).items())
        named = "; ".join(f"{count} name {detail}" for detail, count in details[:_SHOWN])
        advice = "give them one with --category, or say which theirs are under `categories` of --map"
        raise Invalid("no_category", f"records without a category of the policy: {named}; {advice}")
    _assign(lines, user)
    lines.commit(unmapped)


def entries(lines: ImportLines, part: ImportPart, after: int) -> Iterator[Entry]:
    """The lines of a part, but for the first so many."""
    for number, kind, line, code, detail, category in lines.of_part(part, after):
        reason = None if line is not None else f"{code}: {detail}"
        yield Entry(kind or "records", number, line, reason, category, is_left_out=line is None)


def _line_of(record: ConvertedRecord, writer_of: Callable[[str], str | None]) -> ImportLine:
    labels = json.dumps(record.labels) if record.labels else None
    number, kind, line = record.document.number, record.document.kind, record.line
    if line is None:
        return ImportLine(number, kind, record.owner, labels, code=record.code, detail=record.detail)
    category, is_turn = _text(line.get("category")), line["record"] == "turn"
    return ImportLine(
        number, kind, record.owner, labels, writer_of(category) if category else None, category, is_turn,
        _text(line.get("thread_id")) if is_turn else None, _text(line.get("event_time")),
        _text(line.get("external_id")), to_json(line).decode(),
    )  # fmt: skip


def _assign(lines: ImportLines, user: str | None) -> None:
    """Say whose each line is.

    Raises:
        Invalid: the records are of several users of whom none is named, or name no user at all.
    """
    named = lines.owners()
    owners = [each for each in named if each is not None]
    if user is None:
        if None in named:
            raise Invalid("no_user", "records name no user: say with --user whose they become")
        lines.assign_to_owners()
    elif user in owners and len(owners) > 1:
        lines.assign(user, LeftOut.OTHER_USER, owner=user)
    elif len(owners) > 1:
        advice = "name one of them with --user, or say under `users` of --map who they are"
        raise _several(owners, "users", advice)
    elif owners:
        lines.assign(user, LeftOut.OTHER_USER)
    else:
        _assign_by_labels(lines, user)


def _assign_by_labels(lines: ImportLines, user: str) -> None:
    labels = lines.labels()
    if len(labels) < 2:
        lines.assign(user, LeftOut.OTHER_USER)
    elif any(user in each for each in labels):
        lines.assign(user, LeftOut.OTHER_USER, label=user)
    else:
        advice = 'say where their users are as `namespace` of --map, such as ["memories", "{user}"]'
        raise _several(["/".join(each) for each in labels], "namespaces", advice)


def _several(names: Sequence[str], what: str, advice: str) -> Invalid:
    shown = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
    return Invalid("ambiguous_user", f"the export has {len(names)} {what} ({shown}): {advice}")


def _text(value: object) -> str | None:
    return None if value is None else str(value)

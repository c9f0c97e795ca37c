"""Who was erased: nothing that was asked before is stored of them, and what was erased does not come back."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from memplane.application.erasure.erasure_ports import Erasures
from memplane.domain.errors import UserErased
from memplane.domain.privacy.erasure import Erasure, TombstoneKeyring


async def keyrings_of(
    erasures: Erasures, users: Mapping[str, Sequence[str]], asked: datetime, keys: Sequence[bytes]
) -> Mapping[str, Sequence[TombstoneKeyring]]:
    """Where values of users are buried, of each who was erased before a request came.

    Args:
        erasures: of the transaction.
        users: whom no other transaction writes now, with their own names and those of users merged into them.
        asked: when the request came.
        keys: the tenant's, by which names are hashed.

    Raises:
        UserErased: one of them is being erased, or was since.
    """
    if not keys:
        return dict.fromkeys(users, ())
    found = {user: [TombstoneKeyring.of(key, name) for name in names for key in keys] for user, names in users.items()}
    known = await erasures.of_subjects([each.subject for graves in found.values() for each in graves])
    if any(hides(each, asked) for each in known):
        raise UserErased("user_id: this user is being erased, or was since the request came; nothing was stored")
    subjects = {each.subject for each in known}
    return {user: [each for each in graves if each.subject in subjects] for user, graves in found.items()}


async def erased_until(erasures: Erasures, user_id: str) -> datetime | None:
    """When a user was erased last; ``None`` for one who never was."""
    subjects = [TombstoneKeyring.of(key, user_id).subject for key in await erasures.keys()]
    return max((each.finished_at for each in await erasures.of_subjects(subjects) if each.finished_at), default=None)


async def gone_since(erasures: Erasures, moments: Mapping[str, datetime]) -> Collection[str]:
    """Those of some users who were erased after a moment, or are being erased."""
    keys = await erasures.keys()
    if not keys or not moments:
        return ()
    subjects = {TombstoneKeyring.of(key, user).subject: user for key in keys for user in moments}
    known = await erasures.of_subjects(sorted(subjects))
    return {user for each in known if hides(each, moments[user := subjects[each.subject]])}


def hides(erasure: Erasure, moment: datetime) -> bool:
    """Whether what happened at a moment is covered by an erasure."""
    return erasure.finished_at is None or moment <= erasure.finished_at

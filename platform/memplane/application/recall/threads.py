"""What changed in a thread's memory."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from memplane.application.memories.activity_log import ActivityLog
from memplane.application.memories.gateway import clean_id
from memplane.application.operations.tracking_records import TurnSpan
from memplane.application.ports import Clock, Policies, Storage, TenantReader
from memplane.application.users.merged_users import require_unmerged
from memplane.domain.errors import AmbiguousThread, InvalidRequest, LimitExceeded, TrustTooLow
from memplane.domain.identity.principal import KeyScope, Principal
from memplane.domain.memory.delta import MAX_BULLETS, ChangeLogEntry, fenced_header, format_header, most_important
from memplane.domain.memory.memory import Turn, Visibility
from memplane.domain.memory.scope import Filters, Scope, read_scope
from memplane.domain.ranking.fencing import visible

MAX_CHANGES = 500
MAX_PAGE = 200


@dataclass(frozen=True, slots=True)
class Delta:
    """A thread's revision and what changed since another.

    Attributes:
        rev: the revision.
        header: the changes in a few lines, or none.
        changes: each change, oldest first.
        fenced: the header as lines for a fenced block, stored text quoted.
        pruned: whether changes after that revision are no longer kept: the caller must load its context again.
    """

    rev: int
    header: str | None
    changes: Sequence[ChangeLogEntry]
    fenced: Sequence[str] = ()
    pruned: bool = False


@dataclass(frozen=True, slots=True)
class TurnPage:
    """One page of turns, and the number of its last one where there are more."""

    items: Sequence[Turn]
    next: int | None


class Threads:
    """Reads of threads."""

    def __init__(self, storage: Storage, policies: Policies, activity: ActivityLog, clock: Clock) -> None:
        self._storage = storage
        self._policies = policies
        self._activity = activity
        self._clock = clock

    async def delta(
        self, principal: Principal, thread_id: str, since: int, user_id: str | None = None, agent: str | None = None
    ) -> Delta:
        """What changed in a thread since a revision, of the categories that the agent may read.

        A thread that is not there, or not the caller's, has revision 0 and no changes.

        Raises:
            AmbiguousThread: more than one user of the caller has a thread of this name, and none was named.
        """
        principal.require(KeyScope.READ)
        thread = clean_id(thread_id, "thread_id") or ""
        policy = self._policies.current
        allowed = policy.allowlist(principal.act_as(agent)).read
        scope = read_scope(principal, policy, allowed, self._clock(), Filters(user_id=clean_id(user_id, "user_id")))
        async with self._storage.reading(principal.reach) as reader:
            await require_unmerged(reader, principal, scope.filters.user_id)
            user = await thread_user(reader, scope, thread, scope.filters.user_id)
            delta = await thread_delta(reader, scope, user, thread, since)
        self._activity.note_read(principal, () if user is None else (user,))
        return delta

    async def turns(
        self,
        principal: Principal,
        thread_id: str,
        span: TurnSpan,
        *,
        user_id: str | None = None,
        limit: int = 50,
        agent: str | None = None,
    ) -> TurnPage:
        """A page of a thread's turns: the newest first, or the oldest first after one.

        A thread that is not there, or not the caller's, has none.

        Raises:
            CategoryForbidden: the agent does not read the category of turns.
            TrustTooLow: the key does not see the private store, where turns are.
            AmbiguousThread: more than one user of the caller has a thread of this name, and none was named.
            Invalid, LimitExceeded: both ends are given; the page is too long.
        """
        principal.require(KeyScope.READ)
        if span.before is not None and span.after is not None:
            raise InvalidRequest("before_seq: give it or after_seq, not both", field="before_seq")
        if not 1 <= limit <= MAX_PAGE:
            raise LimitExceeded(f"limit: {limit}, it must be 1 to {MAX_PAGE}", field="limit")
        thread = clean_id(thread_id, "thread_id") or ""
        policy = self._policies.current
        allowed = policy.readable(principal.act_as(agent), (policy.turns_category,))
        filters = Filters(user_id=clean_id(user_id, "user_id"))
        scope = read_scope(principal, policy, allowed, self._clock(), filters)
        if Visibility.PRIVATE not in scope.visibilities:
            raise TrustTooLow("turns are in the private store, which this key does not see")
        async with self._storage.reading(principal.reach) as reader:
            await require_unmerged(reader, principal, scope.filters.user_id)
            user = await thread_user(reader, scope, thread, scope.filters.user_id)
            mine = replace(scope, filters=Filters(user_id=user))
            found = [] if user is None else await reader.turns_of(mine, thread, span, limit + 1)
        self._activity.note_read(principal, () if user is None else (user,))
        return TurnPage(found[:limit], found[limit - 1].seq if len(found) > limit else None)


async def thread_user(reader: TenantReader, scope: Scope, thread_id: str, named: str | None) -> str | None:
    """Whose thread it is: the named user, or the only one who has a thread of this name.

    Raises:
        AmbiguousThread: more than one has.
    """
    if named is not None:
        return named
    users = await reader.thread_users(scope, thread_id)
    if len(users) > 1:
        raise AmbiguousThread("more than one user has a thread of this name: name the user_id", field="user_id")
    return users[0] if users else None


async def thread_delta(
    reader: TenantReader, scope: Scope, user_id: str | None, thread_id: str, since: int | None
) -> Delta:
    """The delta of one user's thread, of memories that the scope's permissions cover, whatever its filters."""
    if user_id is None:
        return Delta(0, None, ())
    rev, last_pruned = await reader.revision(scope, user_id, thread_id)
    if since is None or since >= rev:
        return Delta(rev, None, ())
    changes = await reader.changes(scope, user_id, thread_id, since, MAX_CHANGES)
    if len(changes) < MAX_CHANGES:
        best, count = most_important(changes)
    else:  # there may be more than were read
        best, count = await reader.changed_memories(scope, user_id, thread_id, since, MAX_BULLETS)
    pruned = since < last_pruned
    header = format_header(since, best, count, pruned=pruned)
    shown = None if header is None else "\n".join(visible(line) for line in header.split("\n"))
    return Delta(rev, shown, changes, fenced_header(since, best, count, pruned=pruned), pruned)

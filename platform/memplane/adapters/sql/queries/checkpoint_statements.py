"""The statements of checkpoints, hand-written, for both databases; each names its tenant, user and thread.

Those that read are served by the primary keys, and by uq_checkpoints_head where the head is asked for. Those that write
return something, so that several can be sent together.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from memplane.adapters.sql.queries.read_statements import Statement
from memplane.adapters.sql.scope import Syntax
from memplane.application.checkpoints.checkpoint_records import CheckpointQuery, Thread

_KEY = ("tenant_id", "user_id", "thread_id", "checkpoint_ns")
_JSON = frozenset({"checkpoint", "metadata", "data"})

# Made if new, and locked until the transaction ends: the lock of the whole thread.
OPEN = """
INSERT INTO supervisor_checkpoints AS s
       (tenant_id, id, user_id, thread_id, checkpoint_data, version, created_at, updated_at)
VALUES ({tenant}, {id}, {user}, {thread}, {data}, 0, {now}, {now})
    ON CONFLICT (tenant_id, user_id, thread_id) DO UPDATE SET updated_at = s.updated_at
RETURNING checkpoint_data, version, key_id, created_at, updated_at,
          (SELECT rev FROM thread_revision WHERE {of_thread}) AS rev"""
LOCK = """
SELECT checkpoint_data, version, key_id, created_at, updated_at,
       (SELECT rev FROM thread_revision WHERE {of_thread}) AS rev
  FROM supervisor_checkpoints WHERE {of_thread} {for_update}"""
SUPERVISED = """
SELECT checkpoint_data, version, key_id, created_at, updated_at FROM supervisor_checkpoints WHERE {of_thread}"""
KEEP = """
UPDATE supervisor_checkpoints SET checkpoint_data = {data}, version = {version}, updated_at = {now},
       key_id = {by_key}
 WHERE {of_thread} RETURNING 1 AS done"""

THERE = """
SELECT checkpoint_id, parent_checkpoint_id, head FROM checkpoints
 WHERE {of_place} AND (head OR checkpoint_id = {id})"""
NO_LONGER_HEAD = "UPDATE checkpoints SET head = false WHERE {of_place} AND head RETURNING 1 AS done"
HEAD = "UPDATE checkpoints SET head = true WHERE {of_place} AND checkpoint_id = {id} RETURNING 1 AS done"
PARENT = """
UPDATE checkpoints SET parent_checkpoint_id = {parent} WHERE {of_place} AND checkpoint_id = {id} RETURNING 1 AS done"""
ADD_CHECKPOINT = """
INSERT INTO checkpoints ({key}, checkpoint_id, parent_checkpoint_id, checkpoint, metadata, head, created_at, key_id)
VALUES ({tenant}, {user}, {thread}, {namespace}, {id}, {parent}, {checkpoint}, {metadata}, {head}, {now}, {by_key})
    ON CONFLICT ({key}, checkpoint_id) DO UPDATE
       SET checkpoint = excluded.checkpoint, metadata = excluded.metadata, key_id = excluded.key_id
RETURNING 1 AS done"""
ADD_BLOB = """
INSERT INTO checkpoint_blobs ({key}, channel, version, type, blob)
VALUES ({tenant}, {user}, {thread}, {namespace}, {channel}, {version}, {type}, {blob})
    ON CONFLICT ({key}, channel, version) DO NOTHING RETURNING 1 AS done"""
_ADD_WRITE = """
INSERT INTO checkpoint_writes ({key}, checkpoint_id, task_id, task_path, idx, channel, type, blob)
VALUES ({tenant}, {user}, {thread}, {namespace}, {id}, {task}, {path}, {idx}, {channel}, {type}, {blob})
    ON CONFLICT ({key}, checkpoint_id, task_id, idx) """
ADD_WRITE = _ADD_WRITE + "DO NOTHING RETURNING 1 AS done"
REPLACE_WRITE = (
    _ADD_WRITE
    + "DO UPDATE SET channel = excluded.channel, type = excluded.type, blob = excluded.blob RETURNING 1 AS done"
)

NODES = """
SELECT checkpoint_ns, checkpoint_id, parent_checkpoint_id, head, created_at, checkpoint, metadata
  FROM checkpoints WHERE {of_thread}"""
BLOB_KEYS = "SELECT checkpoint_ns, channel, version FROM checkpoint_blobs WHERE {of_thread}"
SENDING = """
SELECT DISTINCT checkpoint_ns, checkpoint_id FROM checkpoint_writes WHERE {of_thread} AND channel = '__pregel_tasks'"""
REMOVE_WRITES = "DELETE FROM checkpoint_writes WHERE {of_place} AND {among_ids} RETURNING 1 AS done"
REMOVE = "DELETE FROM checkpoints WHERE {of_place} AND {among_ids} RETURNING 1 AS done"
REMOVE_BLOBS = """
DELETE FROM checkpoint_blobs WHERE {of_place} AND (channel, version) NOT IN (
SELECT e.key, CAST(e.value AS TEXT) FROM checkpoints AS c, {versions}
 WHERE c.tenant_id = {tenant} AND c.user_id = {user} AND c.thread_id = {thread} AND c.checkpoint_ns = {namespace})
RETURNING 1 AS done"""
COPY_CHECKPOINTS = """
INSERT INTO checkpoints ({key}, checkpoint_id, parent_checkpoint_id, checkpoint, metadata, head, created_at)
SELECT tenant_id, {to_user}, {to_thread}, checkpoint_ns, checkpoint_id, parent_checkpoint_id, checkpoint, metadata,
       head, {now}
  FROM checkpoints WHERE {of_thread} RETURNING 1 AS done"""
COPY_BLOBS = """
INSERT INTO checkpoint_blobs ({key}, channel, version, type, blob)
SELECT tenant_id, {to_user}, {to_thread}, checkpoint_ns, channel, version, type, blob
  FROM checkpoint_blobs WHERE {of_thread} RETURNING 1 AS done"""
COPY_WRITES = """
INSERT INTO checkpoint_writes ({key}, checkpoint_id, task_id, task_path, idx, channel, type, blob)
SELECT tenant_id, {to_user}, {to_thread}, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, blob
  FROM checkpoint_writes WHERE {of_thread} RETURNING 1 AS done"""

_FOUND = """
SELECT user_id, thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, checkpoint, metadata
  FROM checkpoints WHERE {conditions} ORDER BY checkpoint_id DESC {limited}"""
_TOLD = """
SELECT user_id, thread_id, checkpoint_ns, checkpoint_id, metadata
  FROM checkpoints WHERE {conditions} ORDER BY checkpoint_id DESC"""
# Every column of the key is bound, so that cost follows the values asked for whatever the planner thinks of the table.
BLOBS = """
SELECT channel, version, type, blob FROM checkpoint_blobs
 WHERE {of_place} AND {among_channels} AND {among_versions}"""
WRITES = """
SELECT checkpoint_id, task_id, task_path, idx, channel, type, blob FROM checkpoint_writes
 WHERE {of_place} AND {among_ids}"""
WRITES_TO = WRITES + " AND {among_channels}"
# The same of one checkpoint that is not read yet: it, its values and its writes are asked for together. Each value is
# looked up by its whole key, however many others the thread has.
_ONE = """c.tenant_id = {tenant} AND c.user_id = {user} AND c.thread_id = {thread} AND c.checkpoint_ns = {namespace}
   AND """
_HEAD, _NAMED_ONE = _ONE + "c.head", _ONE + "c.checkpoint_id = {id}"
_VALUE = """(SELECT b.{part} FROM checkpoint_blobs b
         WHERE b.tenant_id = {{tenant}} AND b.user_id = {{user}} AND b.thread_id = {{thread}}
           AND b.checkpoint_ns = {{namespace}} AND b.channel = e.key AND b.version = CAST(e.value AS text))"""
_BLOBS_OF_ONE = f"""
SELECT e.key AS channel, CAST(e.value AS text) AS version, {_VALUE.format(part="type")} AS type,
       {_VALUE.format(part="blob")} AS blob
  FROM checkpoints AS c, {{versions}} WHERE """  # noqa: S608 - our own words
_WRITES_OF_ONE = """
SELECT checkpoint_id, task_id, task_path, idx, channel, type, blob FROM checkpoint_writes
 WHERE {of_place} AND checkpoint_id = (SELECT c.checkpoint_id FROM checkpoints AS c WHERE """
DETAILS_OF_HEAD = (_BLOBS_OF_ONE + _HEAD, _WRITES_OF_ONE + _HEAD + ")")
DETAILS_OF_NAMED = (_BLOBS_OF_ONE + _NAMED_ONE, _WRITES_OF_ONE + _NAMED_ONE + ")")
DELETIONS = (
    "DELETE FROM checkpoints WHERE {of_thread} RETURNING 1 AS done",
    "DELETE FROM checkpoint_blobs WHERE {of_thread} RETURNING 1 AS done",
    "DELETE FROM checkpoint_writes WHERE {of_thread} RETURNING 1 AS done",
    "DELETE FROM supervisor_checkpoints WHERE {of_thread} RETURNING 1 AS done",
)
# In one order, so that two erasures wait for one another and for whoever saves.
LOCK_USER = "SELECT thread_id FROM supervisor_checkpoints WHERE {of_user} ORDER BY thread_id {for_update}"
ERASURES = {
    "checkpoints": "DELETE FROM checkpoints WHERE {of_user} RETURNING 1 AS done",
    "checkpoint_blobs": "DELETE FROM checkpoint_blobs WHERE {of_user} RETURNING 1 AS done",
    "checkpoint_writes": "DELETE FROM checkpoint_writes WHERE {of_user} RETURNING 1 AS done",
    "supervisor_checkpoints": "DELETE FROM supervisor_checkpoints WHERE {of_user} RETURNING 1 AS done",
}
# Served by pk_metadata and ix_erasures_subject.
ERASURE_KEYS = "SELECT value FROM metadata WHERE tenant_id = {tenant} AND name = 'erasure_keys'"
MERGED_INTO = "SELECT into_user FROM user_merges WHERE {of_alias} AND undone_at IS NULL"
ERASED = "SELECT finished_at FROM erasures WHERE tenant_id = {tenant} AND {among_subjects}"
_CROWDED = """
SELECT user_id, thread_id FROM checkpoints WHERE {conditions}
 GROUP BY user_id, thread_id HAVING count(*) > {last} AND min(created_at) < {since} ORDER BY user_id, thread_id"""
_USERS = "SELECT user_id FROM supervisor_checkpoints WHERE {conditions} ORDER BY user_id LIMIT 2"
_OF_RUNS = """
SELECT DISTINCT user_id, thread_id FROM checkpoints WHERE {conditions} ORDER BY user_id, thread_id"""


class Statements:
    """The statements of one tenant, as a database's driver takes them."""

    def __init__(self, tenant: str, syntax: Syntax) -> None:
        self._tenant = tenant
        self._syntax = syntax
        named = dict(zip(_KEY, map(syntax.value, ("tenant", "user", "thread", "namespace")), strict=True))
        exactly = [f"{column} = {value}" for column, value in named.items()]
        self._parts = {
            "key": ", ".join(_KEY),
            "of_user": " AND ".join(exactly[:2]),
            "of_alias": f"{exactly[0]} AND from_user = {named[_KEY[1]]}",
            "of_thread": " AND ".join(exactly[:3]),
            "of_place": " AND ".join(exactly),
            "for_update": syntax.for_update,
            "versions": syntax.members("c.checkpoint", "channel_versions"),
            "among_subjects": syntax.any_of("subject", "subjects"),
            "among_ids": syntax.any_of("checkpoint_id", "ids"),
            "among_channels": syntax.any_of("channel", "channels"),
            "among_versions": syntax.any_of("version", "versions"),
        }

    def of(self, template: str, thread: Thread, namespace: str = "", /, **values: object) -> Statement:
        """A statement about a thread, or a namespace of it."""
        bound = {"user": thread.user_id, "thread": thread.thread_id, "namespace": namespace, **values}
        return self._filled(template, bound)

    def _filled(self, template: str, values: Mapping[str, object], **parts: str) -> Statement:
        bound = {"tenant": self._tenant, **values}
        places = {name: self._place(name) for name in bound}
        return Statement(template.format_map(self._parts | places | parts), bound)

    def _place(self, name: str) -> str:
        return self._syntax.json(name) if name in _JSON else self._syntax.value(name)

    def find_checkpoints(self, wanted: CheckpointQuery) -> Statement:
        """Checkpoints, newest first."""
        conditions, values = self._meant(wanted)
        limit = ""
        if wanted.limit is not None:
            limit, values["limit"] = f"LIMIT {self._syntax.value('limit')}", wanted.limit
        return self._filled(_FOUND, values, conditions=conditions, limited=limit)

    def checkpoint_metadata(self, wanted: CheckpointQuery) -> Statement:
        """The metadata of checkpoints, all that are meant, newest first."""
        conditions, values = self._meant(wanted)
        return self._filled(_TOLD, values, conditions=conditions)

    def _meant(self, wanted: CheckpointQuery) -> tuple[str, dict[str, object]]:
        conditions, values = self._of_users(wanted.users)
        exact = {"thread_id": wanted.thread_id, "checkpoint_ns": wanted.namespace}
        for column, value in exact.items():
            if value is not None:
                conditions.append(f"{column} = {self._syntax.value(column)}")
                values[column] = value
        if wanted.ids is not None:
            conditions.append(self._syntax.any_of("checkpoint_id", "ids"))
            values["ids"] = list(wanted.ids)
        if wanted.head:
            conditions.append("head")
        if wanted.before is not None:
            conditions.append(f"checkpoint_id < {self._syntax.value('before')}")
            values["before"] = wanted.before
        return " AND ".join(conditions), values

    def users(self, thread_id: str, users: frozenset[str] | None) -> Statement:
        """The users that have a thread of a name; at most two."""
        conditions, values = self._of_users(users)
        conditions.append(f"thread_id = {self._syntax.value('thread_id')}")
        return self._filled(_USERS, {**values, "thread_id": thread_id}, conditions=" AND ".join(conditions))

    def crowded_threads(self, last: int, since: datetime | None) -> Statement:
        """The threads with more checkpoints than so many, the oldest made before a moment."""
        conditions, values = self._of_users(None)
        before = since or datetime(9999, 1, 1, tzinfo=UTC)
        return self._filled(_CROWDED, {**values, "last": last, "since": before}, conditions=" AND ".join(conditions))

    def of_runs(self, run_ids: Sequence[str], users: frozenset[str] | None) -> Statement:
        """The threads that runs have stored checkpoints in."""
        conditions, values = self._of_users(users)
        conditions.append(self._syntax.any_of("metadata ->> 'run_id'", "run_ids"))
        return self._filled(_OF_RUNS, {**values, "run_ids": list(run_ids)}, conditions=" AND ".join(conditions))

    def _of_users(self, users: frozenset[str] | None) -> tuple[list[str], dict[str, object]]:
        conditions = [f"tenant_id = {self._syntax.value('tenant')}"]
        if users is None:
            return conditions, {}
        if len(users) == 1:  # equality keeps the order of the index
            (user,) = users
            return [*conditions, f"user_id = {self._syntax.value('user')}"], {"user": user}
        return [*conditions, self._syntax.any_of("user_id", "users")], {"users": sorted(users)}

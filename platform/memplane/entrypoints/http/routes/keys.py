"""Routes of keys, for administrators."""

from datetime import timedelta
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel

from memplane.application.keys import api_keys
from memplane.application.keys.key_administration import KeyRequest
from memplane.application.keys.key_history import KeyEntry
from memplane.application.records import StoredKey
from memplane.contracts.keys import (
    CreatedKey,
    KeyEventRecord,
    KeyHistory,
    KeyList,
    KeyRecord,
    NewKeyRequest,
    RevokedKey,
    RotatedKey,
    RotateKeyRequest,
)
from memplane.domain.identity.principal import KeyScope
from memplane.domain.policy.policy import Trust
from memplane.entrypoints.http.dependencies import App, Caller
from memplane.entrypoints.http.middleware.guard import AuthenticatedRoute
from memplane.entrypoints.http.middleware.idempotency_header import Repeatable
from memplane.entrypoints.http.routes.memories import Limit, failure_responses

router = APIRouter(prefix="/v1/admin/keys", route_class=AuthenticatedRoute, tags=["keys"])
KeyId = Annotated[str, Path(pattern="^[0-9A-Za-z-]{1,32}$", description="The key's id.")]
_Cursor = Annotated[str | None, Query(pattern="^[0-9A-Za-z-]{1,32}$", description="`next` of the page before.")]
_Named = Annotated[str | None, Query(pattern="^[0-9A-Za-z-]{1,32}$", description="Of this key alone.")]
UNSTORED = "no-store"
"""A credential stays in no cache on its way."""


@router.get("", responses=failure_responses(), summary="The tenant's keys")
async def list_keys(app: App, caller: Caller, cursor: _Cursor = None, limit: Limit = 50) -> KeyList:
    """Keys, oldest first, revoked ones too. A caller that is bound to users sees keys of its users alone."""
    found, more = await app.key_admin.list(caller, after=cursor, limit=limit)
    return KeyList(items=[_record(key) for key in found], next=found[-1].key_id if more else None)


@router.get("/history", responses=failure_responses(404), summary="What was done to keys")
async def key_history(
    app: App, caller: Caller, key_id: _Named = None, cursor: UUID | None = None, limit: Limit = 50
) -> KeyHistory:
    """Who made, rotated and revoked keys, and when, newest first. Nothing changes an entry."""
    found, more = await app.key_admin.history(caller, key_id, before=cursor, limit=limit)
    return KeyHistory(items=[_entry(each) for each in found], next=str(found[-1].id) if more else None)


@router.post("", status_code=201, responses=failure_responses(409, 413), summary="Make a key")
async def create_key(
    request: NewKeyRequest, app: App, caller: Caller, again: Repeatable, response: Response
) -> CreatedKey:
    """Make a key that can do no more than the caller's.

    The credential is shown this once and nowhere kept: the same request sent again with its `Idempotency-Key` is
    answered without it.
    """
    asked = KeyRequest(
        agent=request.agent,
        act_for=tuple(request.act_for),
        users=None if request.users is None else tuple(request.users),
        trust=request.trust,
        scopes=None if request.scopes is None else tuple(request.scopes),
        label=request.label,
        expires_at=request.expires_at,
    )
    made = await app.key_admin.create(caller, asked, once=again.once(_created_before))
    response.headers["Cache-Control"] = UNSTORED
    return _created(made, made.credential)


@router.post("/{key_id}/rotate", status_code=201, responses=failure_responses(404, 409, 413), summary="Replace a key")
async def rotate_key(
    key_id: KeyId, app: App, caller: Caller, again: Repeatable, response: Response,
    request: RotateKeyRequest | None = None,
) -> RotatedKey:  # fmt: skip
    """Make a key with the same bindings; the old one ends at once, or after its grace.

    The credential is shown this once and nowhere kept: the same request sent again with its `Idempotency-Key` is
    answered without it.
    """
    asked = request or RotateKeyRequest()
    rotation = api_keys.Rotation(timedelta(seconds=asked.grace_seconds), asked.expires_at)
    rotated = await app.key_admin.rotate(caller, key_id, rotation, once=again.once(_rotated_before))
    response.headers["Cache-Control"] = UNSTORED
    return _rotated(rotated, rotated.made.credential)


@router.post("/{key_id}/revoke", responses=failure_responses(404, 409), summary="End a key")
async def revoke_key(key_id: KeyId, app: App, caller: Caller, again: Repeatable) -> RevokedKey:
    """End a key at once."""
    return _revoked(await app.key_admin.revoke(caller, key_id, once=again.once(_revoked_before)))


def _record(key: StoredKey) -> KeyRecord:
    return KeyRecord(
        id=key.key_id,
        tenant=key.tenant,
        agent=key.agent,
        act_for=list(key.act_for),
        users=None if key.users is None else list(key.users),
        trust=Trust(key.trust),
        scopes=[KeyScope(scope) for scope in key.scopes],
        label=key.label,
        created_at=key.created_at,
        expires_at=key.expires_at,
        revoked_at=key.revoked_at,
        last_used_at=key.last_used_at,
    )


def _entry(entry: KeyEntry) -> KeyEventRecord:
    told = {name: getattr(entry, name) for name in KeyEventRecord.model_fields}
    return KeyEventRecord(**told | {"event": entry.event.value, "meta": dict(entry.meta)})


def _created(made: api_keys.MadeKey, credential: str | None) -> CreatedKey:
    return CreatedKey(**_record(made.stored).model_dump(), key=credential)


def _rotated(rotated: api_keys.KeyReplacement, credential: str | None) -> RotatedKey:
    record = _record(rotated.made.stored).model_dump()
    return RotatedKey(**record, key=credential, replaces=rotated.replaces, replaced_ends_at=rotated.ends_at)


def _revoked(key_id: str) -> RevokedKey:
    return RevokedKey(id=key_id)


# What is kept for the same request sent again: all but the secret, which would else lie in the database in clear.
def _created_before(made: api_keys.MadeKey) -> tuple[int, BaseModel]:
    return 201, _created(made, None)


def _rotated_before(rotated: api_keys.KeyReplacement) -> tuple[int, BaseModel]:
    return 201, _rotated(rotated, None)


def _revoked_before(key_id: str) -> tuple[int, BaseModel]:
    return 200, _revoked(key_id)

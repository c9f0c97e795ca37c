"""Exports as tests read them."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from memplane.domain.identity.principal import KeyScope
from support.callers import SUPERVISING, USER, Caller, Json, Tenant
from support.telling import say, write

OPERATING = (*SUPERVISING, KeyScope.CONSENT, KeyScope.ADMIN)


def exported(caller: Caller, user: str = USER, **params: Any) -> list[Json]:  # noqa: ANN401 - of the request
    """The lines of a user's export, which must be whole."""
    response = caller.get(f"/v1/users/{user}/export", **params)
    assert response.status_code == 200, response.text
    lines = [json.loads(line) for line in response.content.split(b"\n") if line]
    assert (lines[0]["record"], lines[-1]["record"]) == ("header", "end")
    assert lines[-1]["counts"] == Counter(line["record"] for line in lines[1:-1])
    return lines


def of(lines: list[Json], record: str) -> list[Json]:
    """The lines of one record."""
    return [line for line in lines if line["record"] == record]


def taken(caller: Caller, lines: Sequence[Json | str], user: str = USER, **fields: Any) -> Json:  # noqa: ANN401 - of the request
    """What became of lines."""
    sent = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    response = caller.post(f"/v1/users/{user}/import", {"lines": sent} | fields)
    assert response.status_code == 200, response.text
    return dict(response.json())


def restored(caller: Caller, lines: Sequence[Json | str], user: str = USER, size: int = 500) -> Counter[str]:
    """Restore a file in batches of a size; how many lines had each outcome."""
    outcomes: Counter[str] = Counter()
    for start in range(0, len(lines), size):
        outcomes.update(taken(caller, lines[start : start + size], user, mode="restore")["outcomes"])
    return outcomes


def whole_life(tenant: Tenant, caller: Caller, admin: Caller) -> dict[str, str]:
    """One record of every kind and state; ids of memories by what became of them."""
    made = {
        "active": write(caller, "Ana Ruiz owns a piano.", tags=["music"], importance=5, attributes={"keys": 88})["id"],
        "deleted": write(caller, "The user sails a boat.")["id"],
        "rejected": write(caller, "The user owns a horse.")["id"],
        "archived": write(caller, "The user plays chess.")["id"],
        "superseded": write(caller, "Vera lives in Berlin.")["id"],
    }
    made["newer"] = write(caller, "Vera lives in Munich.")["id"]
    assert caller.delete(f"/v1/memories/{made['deleted']}").status_code == 200
    say(caller, made["rejected"], "reject")
    say(caller, made["active"], "confirm")
    tenant.rows("UPDATE memories SET state = 'archived' WHERE id = %(id)s", id=UUID(made["archived"]))
    tenant.relate(made["active"], made["newer"])
    caller.say("When is the release?", external_id="m-1")
    caller.say("I prefer short answers.", event_time="2025-07-01T09:00:00Z", auto_extract=False)
    proposal = tenant.propose(value="Oslo")
    body = {"agent": "supervisor"}
    assert admin.post(f"/v1/consents/{proposal}/approve", body).status_code == 200
    entity = caller.entity("Ana Ruiz")
    assert caller.post(f"/v1/entities/{entity}/aliases", {"alias": "Annie"}).status_code == 200
    return made

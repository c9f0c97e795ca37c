"""Insights for tests: a user who lived through something, and what a model concludes of it."""

from datetime import datetime

from support.callers import USER, Caller, Json, Tenant
from support.model_server import Reply, called
from support.telling import write

GOOD = "The user trusts the assistant more since it admitted the mistake with the lease."


def insight(text: str = GOOD, *sources: int, confidence: float = 0.6) -> Json:
    return {"text": text, "sources": list(sources or (1,)), "confidence": confidence}


def answer(*insights: Json) -> Reply:
    return called({"insights": list(insights)})


def lived(caller: Caller, user: str = USER) -> Json:
    """What a user did and said, and one fact; the turn by which the insights are supported."""
    write(caller, "The user cancelled the lease on the flat.", "event", type="episodic", user_id=user)
    write(caller, "The user owns a piano.", "event", user_id=user)
    return caller.say("Thanks for admitting the mistake with the lease.", user_id=user)


def insights(caller: Caller, user: str = USER) -> list[Json]:
    found = caller.get("/v1/memories", user_id=user, type="insight").json()["items"]
    return [dict(each) for each in found]


def age_turns(tenant: Tenant, moment: datetime) -> None:
    """Let all turns have been recorded at a moment."""
    tenant.rows(
        "UPDATE turns SET recorded_at = %(at)s WHERE tenant_id = %(tenant)s",
        at=moment.isoformat(timespec="microseconds"),
    )

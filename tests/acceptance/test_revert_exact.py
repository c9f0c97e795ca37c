"""After a revert the state is what it would be without the hostile writer: random writes of both, interleaved."""

import os
from collections import Counter

from memplane.domain.identity.principal import KeyScope
from support.callers import SUPERVISING, Caller, Tenant
from support.interleaved import Story, differences, readable

WRITES = int(os.environ.get("REVERTED", "200"))
"""Writes of both together; `make reverts` has more."""
EACH = int(os.environ.get("DENSE", "100"))
"""Writes of one pair of users, whose memories have much to do with one another; not exact beyond some hundred: see
docs/decisions/0034-revert.md."""
EVERYTHING = (*SUPERVISING, KeyScope.CONSENT, KeyScope.ADMIN)


def test_a_revert_leaves_what_there_would_be_without_the_writer(tenant: Tenant, admin: Caller) -> None:
    honest = tenant.caller("supervisor", scopes=EVERYTHING)
    hostile = tenant.caller(None, act_for=["*"], scopes=EVERYTHING)
    stories = [Story(seed, honest, hostile) for seed in range(1, max(WRITES // EACH, 1) + 1)]
    for story in stories:
        story.tell(EACH)
    assert len({each for story in stories for each in story.done}) == 13  # of every kind there was one
    alone = [readable(honest, story.alone) for story in stories]
    for story, without in zip(stories, alone, strict=True):
        assert readable(honest, story.among) != without  # the control: there is something to take back
    body = {"key_id": hostile.key_id, "since": "2020-01-01T00:00:00Z"}
    reverted: Counter[str] = Counter()
    told = admin.post("/v1/admin/revert", body | {"dry_run": True}).json()
    while True:
        done = admin.post("/v1/admin/revert", body).json()
        assert done["outcome"] == "reverted"
        reverted.update(done["reverted"])
        if done["finished"]:
            break
    assert reverted == Counter(told["reverted"]) or not told["finished"]
    found = [
        f"{story.among}: {each}"
        for story, without in zip(stories, alone, strict=True)
        for each in differences(readable(honest, story.among), without)
    ]
    assert not found, "\n".join(found)
    assert admin.post("/v1/admin/revert", body).json()["outcome"] == "nothing_to_revert"

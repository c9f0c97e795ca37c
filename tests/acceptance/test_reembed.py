"""Another embedding model for a tenant in use: both vectors side by side, one switch, nothing left of the old ones."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from memplane.application.jobs.reembed_job import PrepareVectors
from memplane.domain.errors import StateConflict, StorageUnavailable
from memplane.domain.identity.principal import KeyScope, Principal
from memplane.domain.policy.capabilities import Capability
from memplane.domain.policy.policy import Trust
from support.callers import USER, Caller, Tenant, refused
from support.serving import RunningServer
from support.telling import say

OLD, NEW = "wordllama-256", "wordllama-128"
SAID = ("Vance repaired the harpsichord", "Anna sold her old bicycle", "rain in the garden", "soup with the dog")
QUESTIONS = (*SAID, "Who fixed the instrument?", "a meal", "weather outside")
Start = Callable[..., RunningServer]


@pytest.fixture
def site(start_server: Start) -> "Site":
    return Site(start_server)


class Site:
    """A server that knows both models, with a tenant that was written to by the old one."""

    def __init__(self, start: Start) -> None:
        self._start = start
        self.server = start(next_embedding_model=NEW)
        self.tenant = Tenant(self.server)
        self.caller = self.tenant.caller()
        self.memories = [self.caller.remember(f"{text}, as a note", "event") for text in SAID]
        self.turns = [self.caller.say(text)["turn_id"] for text in SAID]

    def started(self) -> Any:  # noqa: ANN401 - a status
        return self.server.run(self.server.wired.reembedding.start(self.tenant.name))

    def cancelled(self) -> Any:  # noqa: ANN401 - a status
        return self.server.run(self.server.wired.reembedding.cancel(self.tenant.name))

    def status(self) -> tuple[str | None, str | None]:
        found = self.server.run(self.server.wired.reembedding.status(self.tenant.name))
        return found.model, found.phase

    def done(self) -> dict[str, float]:
        return dict(self.server.run(self.server.wired.jobs.run("reembed", self.tenant.name)).counts)

    def beside(self, **settings: str) -> Caller:
        """The same caller at another server on the database."""
        return Caller(self._start(**settings).client, self.caller.credential, self.caller.key_id)

    def held(self, column: str) -> int:
        """How many rows have a vector in a column."""
        return sum(
            row["found"]
            for table in ("memories", "turns")
            for row in self.tenant.rows(f"SELECT count({column}) AS found FROM {table} WHERE tenant_id = %(tenant)s")
        )

    @property
    def all(self) -> int:
        return self.tenant.count("memories", "turns")

    def step(self) -> Any:  # noqa: ANN401 - what the job does in its next batch
        """One batch, prepared and not done yet."""
        prepare = PrepareVectors(self.server.wired.storage, self.server.wired.embedders)
        return self.server.run(prepare(self.principal, datetime.now(UTC), None))

    @property
    def principal(self) -> Principal:
        return Principal(self.tenant.name, None, Trust.FULL, frozenset(KeyScope), "job:reembed")

    def do(self, step: Any) -> Any:  # noqa: ANN401 - of a batch
        """Do a prepared batch."""
        wired, now = self.server.wired, datetime.now(UTC)
        work = lambda write: step(write, now, None)  # noqa: E731 - one line
        return self.server.run(wired.gateway.run(self.principal, wired.policies.current, now, work))


def answers(caller: Caller) -> list[list[tuple[str, float]]]:
    """What questions bring by meaning alone, with scores; asked thrice, so that scopes are remembered."""
    for _ in range(2):
        caller.ask(QUESTIONS[0], ranking="semantic", top_k=20)
    return [
        [(item["id"], round(item["score"], 5)) for item in caller.ask(each, ranking="semantic", top_k=20)["items"]]
        for each in QUESTIONS
    ]


def test_a_change_while_the_tenant_is_in_use(site: Site) -> None:
    before = answers(site.caller)
    other = site.beside(next_embedding_model=NEW)
    assert answers(other) == before
    assert site.started().total == site.all
    assert answers(site.caller) == before, "until all have the new vectors, the old ones answer"
    mine = site.caller.remember("The harpsichord is out of tune again", "event")
    theirs = other.say("The dog ate the soup", thread_id="t2")["turn_id"]
    assert site.held("embedding_2") == 2, "every write has both, whichever server took it"
    before = answers(site.caller)
    counts = site.done()
    assert counts == {"embedded": site.all - 2, "switched": 1, "cleared": site.all, "finished": 1}
    assert site.status() == ("wordllama-128 (128 dimensions)", None)
    assert (site.held("embedding"), site.held("embedding_2")) == (0, site.all)
    after = answers(site.caller)
    assert after != before
    assert answers(other) == after, "a server that remembered the scope by the old ones follows at once"
    assert answers(site.beside(embedding_model=NEW)) == after, "as one does that knows the new model alone"
    assert {mine, theirs} <= {unit for found in after for unit, _ in found}
    assert site.done() == counts, "nothing is left to do"


def test_a_change_and_back_uses_the_first_column_again(site: Site) -> None:
    before = answers(site.caller)
    for _ in range(2):
        site.started()
        site.done()
    assert (site.held("embedding"), site.held("embedding_2")) == (site.all, 0)
    assert answers(site.caller) == before
    assert site.status() == ("wordllama-256 (256 dimensions)", None)
    recorded = site.tenant.rows("SELECT value FROM metadata WHERE tenant_id = %(tenant)s AND name = 'embedding'")
    assert "wordllama-256" in str(recorded)
    assert "change" not in str(recorded)


def test_who_does_not_know_the_new_model_is_refused_rather_than_wrong(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    unaware = site.beside()
    before = answers(unaware)
    site.started()
    assert answers(unaware) == before, "the old model is in force"
    body = {"user_id": USER, "category": "event", "content": "The kiln is cold"}
    late = refused(unaware.post("/v1/memories", body), 503, "embedding_mismatch")  # another server may do it
    assert NEW not in str(late), "that is for the operator"
    assert "MEMPLANE_NEXT_EMBEDDING_MODEL" in caplog.text, "the operator is told what to do"
    assert site.caller.post("/v1/memories", body).status_code == 201
    site.done()
    refused(unaware.query(QUESTIONS[0]), 503, "embedding_mismatch")
    assert site.caller.query(QUESTIONS[0]).status_code == 200


def test_a_change_is_cancelled_until_it_has_switched(site: Site) -> None:
    before = answers(site.caller)
    site.started()
    site.do(site.step())
    assert site.held("embedding_2") > 0
    site.cancelled()
    site.caller.say("rain again", thread_id="t2")
    assert site.done() == {"cleared": len(SAID), "finished": 1}
    assert (site.held("embedding"), site.held("embedding_2")) == (site.all, 0)
    assert site.status() == ("wordllama-256 (256 dimensions)", None)
    assert [found[0] for found in answers(site.caller)][:4] == [found[0] for found in before][:4]
    with pytest.raises(StateConflict, match="no change of the embedding model is under way"):
        site.cancelled()
    site.started()  # it can be begun again
    with pytest.raises(StateConflict, match="is under way"):
        site.started()


def test_what_changes_while_a_batch_thinks_is_embedded_as_it_is_by_then(site: Site) -> None:
    site.started()
    step = site.step()
    corrected, forgotten, gone = site.memories[:3]
    answer = site.caller.patch(f"/v1/memories/{corrected}", {"content": "Vance sold the piano"})
    assert answer.status_code == 200, answer.text
    say(site.caller, forgotten, "demote")
    assert site.caller.delete(f"/v1/memories/{gone}").status_code in {200, 204}
    site.do(step)
    site.done()
    assert site.held("embedding_2") == site.all, "none is left out"
    item = site.caller.ask("Vance sold the piano", ranking="semantic", top_k=20)["items"][0]
    assert (item["id"], round(item["score"], 2)) == (corrected, 1.0)


def test_a_batch_that_two_workers_prepared_is_done_once(site: Site) -> None:
    site.started()
    one, other = site.step(), site.step()
    assert site.do(one).counts == {"embedded": len(SAID)}
    assert dict(site.do(other).counts) == {}, "the second finds that it was done"
    assert site.done()["switched"] == 1
    assert site.held("embedding_2") == site.all


def test_there_has_to_be_another_model(start_server: Start) -> None:
    server = start_server()
    tenant = Tenant(server)
    tenant.caller().remember("Soup is ready", "event")
    with pytest.raises(StateConflict, match="MEMPLANE_NEXT_EMBEDDING_MODEL"):
        server.run(server.wired.reembedding.start(tenant.name))


@pytest.mark.needs(Capability.SIMULTANEOUS_WRITES)
def test_a_change_waits_for_writes_that_do_not_know_of_it(site: Site) -> None:
    async def during(wired: Any) -> None:  # noqa: ANN401 - the application
        async def work(uow: Any) -> None:  # noqa: ANN401 - a unit of work
            await uow.setting("embedding")  # begun
            with pytest.raises(StorageUnavailable):
                await wired.reembedding.start(site.tenant.name)

        await wired.storage.write(site.principal.reach, work)

    site.server.run(during(site.server.wired))
    assert site.status() == ("wordllama-256 (256 dimensions)", None)
    assert site.started().phase == "filling"

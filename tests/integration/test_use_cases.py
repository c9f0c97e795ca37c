"""Use cases called in Python, where HTTP would have refused before, or cannot see."""

import asyncio
import logging
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from memplane.adapters.embeddings.batching import BatchingEmbedder
from memplane.application.keys.api_keys import NewKey
from memplane.application.memories.browse import Listing
from memplane.application.memories.service import NewMemory
from memplane.application.recall import access_log as accesses_module
from memplane.application.recall.access_log import AccessLog
from memplane.application.recall.embedders import Embedders
from memplane.application.recall.embedding_guard import EmbeddingGuard
from memplane.application.recall.recall import Question
from memplane.application.records import Access, OperationalEvent
from memplane.application.turns.ingestion import MAX_BATCH
from memplane.application.turns.new_turn import NewTurn
from memplane.domain.errors import (
    AuthenticationRequired,
    EmbeddingMismatch,
    InvalidRequest,
    LimitExceeded,
    MemplaneError,
    RecordNotFound,
    StorageUnavailable,
    VisibilityForbidden,
)
from memplane.domain.identity.principal import KeyScope, Principal, Reach
from memplane.domain.memory.memory import (
    MemoryText,
    MemoryType,
    Role,
    Visibility,
    new_id,
)
from memplane.domain.memory.scope import Filters
from memplane.domain.policy.policy import Trust
from support.serving import RunningApplication

TENANT = "t1"
SUPERVISOR = Principal(TENANT, "supervisor", Trust.FULL, frozenset(KeyScope), "k1")
NEW = NewMemory("ana", "goals", MemoryText("Ana wants to ship by May."))


@pytest.fixture
def app(application: RunningApplication) -> RunningApplication:
    application.run(application.wired.keys.create(TENANT, NewKey("supervisor", Trust.FULL)))
    return application


def now() -> datetime:
    return datetime.now(UTC)


def searched(*ids: UUID) -> Access:
    return Access(TENANT, ids, OperationalEvent("context", "search", "ok", now()))


async def access_count(app: RunningApplication, memory_id: UUID) -> int:
    return (await app.wired.browse.get(SUPERVISOR, memory_id)).access_count


class TestAccesses:
    def test_reads_are_counted_in_one_batch(self, app: RunningApplication) -> None:
        memory = app.run(app.wired.remember.create(SUPERVISOR, NEW)).memory
        log = AccessLog(app.wired.storage, now)
        for _ in range(3):
            log.note(searched(memory.id))
        assert app.run(access_count(app, memory.id)) == 0
        app.run(log.stop())  # never started: what waits is written all the same
        assert app.run(access_count(app, memory.id)) == 3

    def test_a_flush_waits_for_the_one_under_way(self, app: RunningApplication) -> None:
        memory = app.run(app.wired.remember.create(SUPERVISOR, NEW)).memory
        log = AccessLog(app.wired.storage, now)
        log.note(searched(memory.id))

        async def twice() -> int:
            first = asyncio.create_task(log.flush())
            await asyncio.sleep(0)  # it has taken what waits
            await log.flush()
            counted = await access_count(app, memory.id)
            await first
            return counted

        assert app.run(twice()) == 1

    def test_what_could_not_be_written_waits(
        self, app: RunningApplication, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        memory = app.run(app.wired.remember.create(SUPERVISOR, NEW)).memory
        log = AccessLog(app.wired.storage, now)
        log.note(searched(memory.id))

        async def away(*_: object) -> None:
            raise StorageUnavailable("the database does not answer")

        with monkeypatch.context() as broken, caplog.at_level(logging.WARNING):
            broken.setattr(app.wired.storage, "write", away)
            app.run(log.flush())
        assert "not written yet" in caplog.text
        assert app.run(access_count(app, memory.id)) == 0
        app.run(log.flush())
        assert app.run(access_count(app, memory.id)) == 1

    def test_the_oldest_are_dropped_beyond_the_limit(
        self, app: RunningApplication, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        memory = app.run(app.wired.remember.create(SUPERVISOR, NEW)).memory
        monkeypatch.setattr(accesses_module, "MAX_WAITING", 2)
        log = AccessLog(app.wired.storage, now)
        for _ in range(5):
            log.note(searched(memory.id))
        app.run(log.flush())
        assert app.run(access_count(app, memory.id)) == 2


class TestEmbeddingGuard:
    class Other:
        model = "other-8"
        dimensions = 8
        fingerprint: str | None = None
        query_prompt = document_prompt = ""
        instant_chars = 0

        def encode(self, texts: Any) -> list[None]:  # noqa: ANN401 - never called
            raise AssertionError(texts)

    def test_another_model_is_refused(self, app: RunningApplication) -> None:
        same = EmbeddingGuard(app.wired.storage, app.wired.embedders, now)
        app.run(same.check(TENANT))
        app.run(EmbeddingGuard(app.wired.storage, app.wired.embedders, now).check(TENANT))
        other = EmbeddingGuard(app.wired.storage, Embedders(BatchingEmbedder(self.Other())), now)
        with pytest.raises(EmbeddingMismatch, match=r"wordllama-256 \(256 dimensions\).*other-8 \(8 dimensions\)"):
            app.run(other.check(TENANT))

    def test_a_record_of_another_form_is_told_as_it_is(self, app: RunningApplication) -> None:
        app.run(app.wired.storage.write(Reach(TENANT), lambda uow: uow.keep_setting("embedding", "odd", now())))
        with pytest.raises(EmbeddingMismatch, match="embedded by odd"):
            app.run(EmbeddingGuard(app.wired.storage, app.wired.embedders, now).check(TENANT))


class TestLimits:
    def test_too_many_turns(self, app: RunningApplication) -> None:
        one = NewTurn("ana", "t", Role.USER, "hello")
        assert len(app.run(app.wired.ingest(SUPERVISOR, [one, one]))) == 2
        with pytest.raises(LimitExceeded, match="1001 in one call, at most 1000"):
            app.run(app.wired.ingest(SUPERVISOR, [one] * (MAX_BATCH + 1)))

    @pytest.mark.parametrize("top_k", [0, 201])
    def test_top_k(self, app: RunningApplication, top_k: int) -> None:
        with pytest.raises(LimitExceeded, match="it must be 1 to 200"):
            app.run(app.wired.recall(SUPERVISOR, Question("x", top_k=top_k)))
        assert app.run(app.wired.recall(SUPERVISOR, Question("x", top_k=1))).items == []

    @pytest.mark.parametrize("limit", [0, 201])
    def test_pages(self, app: RunningApplication, limit: int) -> None:
        with pytest.raises(LimitExceeded, match="it must be 1 to 200"):
            app.run(app.wired.browse.list(SUPERVISOR, Listing(), limit=limit))
        assert app.run(app.wired.browse.list(SUPERVISOR, Listing(), limit=200)).items == []

    def test_names(self, app: RunningApplication) -> None:
        assert app.run(app.wired.remember.create(SUPERVISOR, replace(NEW, user_id="u" * 255))).outcome == "created"
        with pytest.raises(LimitExceeded, match="user_id: 256 characters, at most 255"):
            app.run(app.wired.remember.create(SUPERVISOR, replace(NEW, user_id="u" * 256)))


class TestWrites:
    def test_only_known_fields_can_be_changed(self, app: RunningApplication) -> None:
        memory = app.run(app.wired.remember.create(SUPERVISOR, NEW)).memory
        with pytest.raises(InvalidRequest, match="cannot be changed: source, trust_state"):
            app.run(app.wired.remember.update(SUPERVISOR, memory.id, {"trust_state": "confirmed", "source": "user"}))
        assert app.run(app.wired.remember.update(SUPERVISOR, memory.id, {"importance": 5})).outcome == "updated"

    def test_a_duplicate_of_an_expired_memory_keeps_its_history(self, app: RunningApplication) -> None:
        first = app.run(app.wired.remember.create(SUPERVISOR, NEW)).memory
        expire = "UPDATE memories SET expires_at = now() WHERE id = %(id)s"
        app.database.rows(TENANT, expire, {"id": first.id})
        again = app.run(app.wired.remember.create(SUPERVISOR, NEW))
        assert again.outcome == "created"
        assert again.memory.id != first.id
        told = app.run(app.wired.browse.history(SUPERVISOR, first.id)).items
        assert [entry.event for entry in told] == ["TTL", "ADD"]


class TestKeys:
    def test_a_key_lives_until_it_is_revoked(self, app: RunningApplication) -> None:
        keys = app.wired.keys
        stored, credential = app.run(keys.create(TENANT, NewKey("planner", Trust.INNER, users=("ana",), label="l")))
        principal = app.run(keys.authenticate(credential))
        assert (principal.agent, principal.trust, principal.users) == ("planner", Trust.INNER, frozenset({"ana"}))
        assert stored.key_id in [key.key_id for key in app.run(keys.list(TENANT))]
        app.run(keys.revoke(TENANT, stored.key_id))
        with pytest.raises(AuthenticationRequired):
            app.run(keys.authenticate(credential))
        with pytest.raises(RecordNotFound, match="revoked already"):
            app.run(keys.revoke(TENANT, stored.key_id))
        with pytest.raises(RecordNotFound):
            app.run(keys.revoke("another", app.run(keys.list(TENANT))[0].key_id))

    def test_a_local_key_is_known_to_this_process_alone(self, app: RunningApplication) -> None:
        credential = app.wired.keys.local(TENANT, NewKey("planner", Trust.FULL))
        assert app.run(app.wired.keys.authenticate(credential)).agent == "planner"
        assert len(app.run(app.wired.keys.list(TENANT))) == 1, "the supervisor's; the local one is not stored"
        with pytest.raises(AuthenticationRequired):
            app.run(app.wired.keys.authenticate(credential + "x"))

    @pytest.mark.parametrize(
        ("new", "said"),
        [
            (NewKey("nobody", Trust.FULL), "no agent 'nobody'; it has supervisor"),
            (NewKey("planner", Trust.FULL, act_for=("stylist", "nobody")), "no agent 'nobody'"),
            (NewKey("planner", Trust.FULL, users=()), "name at least one"),
        ],
    )
    def test_what_a_key_cannot_be(self, app: RunningApplication, new: NewKey, said: str) -> None:
        with pytest.raises(InvalidRequest, match=said):
            app.run(app.wired.keys.create(TENANT, new))

    def test_a_key_for_every_agent(self, app: RunningApplication) -> None:
        _, credential = app.run(app.wired.keys.create(TENANT, NewKey(None, Trust.FULL, act_for=("*",))))
        principal = app.run(app.wired.keys.authenticate(credential))
        assert principal.speak_as("stylist") == "stylist"
        with pytest.raises(MemplaneError, match="name the agent"):
            principal.speak_as(None)


def test_a_lexical_threshold_where_no_word_can_be_embedded(
    app: RunningApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(_text: str) -> None:
        return None

    kept = app.run(app.wired.remember.create(SUPERVISOR, NEW)).memory
    monkeypatch.setattr(app.wired.embedder, "embed_query", nothing)
    asked = Question("ship by May", filters=Filters(user_id="ana"), threshold=0.9)
    answer = app.run(app.wired.recall(SUPERVISOR, asked))
    assert answer.usage.threshold_on == "lexical"
    assert [item.unit.id for item in answer.items] == [kept.id]
    assert app.run(app.wired.recall(SUPERVISOR, replace(asked, text="zebra"))).items == []


def test_an_absent_memory_is_not_found(app: RunningApplication) -> None:
    with pytest.raises(RecordNotFound):
        app.run(app.wired.browse.get(SUPERVISOR, new_id()))


class TestChanges:
    """What a change in place must not do."""

    def test_attributes_are_checked_as_at_creation(self, app: RunningApplication) -> None:
        memory = app.run(app.wired.remember.create(SUPERVISOR, NEW)).memory
        with pytest.raises(InvalidRequest, match="NUL"):
            app.run(app.wired.remember.update(SUPERVISOR, memory.id, {"attributes": {"a": "x\x00"}}))
        kept = app.run(app.wired.remember.update(SUPERVISOR, memory.id, {"attributes": {"a": "x"}})).memory
        assert kept.attributes == {"a": "x"}
        assert app.run(app.wired.remember.update(SUPERVISOR, memory.id, {"attributes": None})).memory.attributes == {}

    def test_history_keeps_the_words_of_a_category_that_the_reader_may_not_read(self, app: RunningApplication) -> None:
        secret = replace(NEW, category="profile", text=MemoryText("Ana has a secret illness."))
        memory = app.run(app.wired.remember.create(SUPERVISOR, secret)).memory
        moved = {"category": "goals", "content": "Ana wants to rest."}
        app.run(app.wired.remember.update(SUPERVISOR, memory.id, moved))
        app.run(app.wired.remember.update(SUPERVISOR, memory.id, {"content": "Ana wants to rest in May."}))
        planner = replace(SUPERVISOR, agent="planner")
        told = app.run(app.wired.browse.history(planner, memory.id)).items
        assert [entry.event for entry in told] == ["UPDATE", "UPDATE", "ADD"]
        assert told[0].old_ref == "Ana wants to rest."
        assert [(entry.old_ref, entry.new_ref) for entry in told[1:]] == [(None, None), (None, None)]
        whole = app.run(app.wired.browse.history(SUPERVISOR, memory.id)).items
        assert whole[-1].new_ref == "Ana has a secret illness."

    def test_new_steps_replace_the_numbered_text(self, app: RunningApplication) -> None:
        executor = replace(SUPERVISOR, agent="executor")
        routine = replace(
            NEW, category="procedural", type=MemoryType.PROCEDURAL, text=MemoryText("1. Open the door.\n2. Walk out.")
        )
        memory = app.run(app.wired.remember.create(executor, routine)).memory
        changed = app.run(app.wired.remember.update(executor, memory.id, {"steps": ("Stay.", "Lock the door.")}))
        assert changed.memory.text.content == "1. Stay.\n2. Lock the door."

    def test_a_replaced_text_takes_its_surplus_with_it(self, app: RunningApplication) -> None:
        long = replace(NEW, text=MemoryText("Ana has a cat. Ana has a dog. Ana has an old secret."))
        memory = app.run(app.wired.remember.create(SUPERVISOR, long)).memory
        assert memory.text.narrative == "Ana has an old secret."
        changed = app.run(app.wired.remember.update(SUPERVISOR, memory.id, {"content": "Ana has a bird."}))
        assert changed.memory.text.narrative is None

    def test_what_is_counted_beside_is_not_overwritten(self, app: RunningApplication) -> None:
        memory = app.run(app.wired.remember.create(SUPERVISOR, NEW)).memory
        log = AccessLog(app.wired.storage, now)
        log.note(searched(memory.id))

        async def counted_meanwhile(uow: Any) -> bool:  # noqa: ANN401 - the unit of work
            return bool(await uow.memories.replace(replace(memory, version=2), None))

        app.run(log.flush())
        assert app.run(app.wired.storage.write(Reach(TENANT), counted_meanwhile))
        assert app.run(access_count(app, memory.id)) == 1


class TestTrust:
    def test_nobody_hides_a_memory_above_their_own_trust(self, app: RunningApplication) -> None:
        inner = replace(SUPERVISOR, trust=Trust.INNER)
        shared = replace(NEW, min_trust="inner")
        assert app.run(app.wired.remember.create(inner, shared)).outcome == "created"
        with pytest.raises(VisibilityForbidden, match="above this key's own trust"):
            app.run(app.wired.remember.create(inner, replace(NEW, min_trust="full")))

    def test_who_cannot_write_cannot_change_or_delete(self, app: RunningApplication) -> None:
        memory = app.run(app.wired.remember.create(SUPERVISOR, replace(NEW, visibility=Visibility.SOCIAL))).memory
        public = replace(SUPERVISOR, trust=Trust.PUBLIC)
        for refused in (
            app.wired.remember.update(public, memory.id, {"importance": 5}),
            app.wired.remember.delete(public, memory.id),
        ):
            with pytest.raises(VisibilityForbidden, match="cannot write"):
                app.run(refused)
        familiar = replace(SUPERVISOR, trust=Trust.FAMILIAR)
        assert app.run(app.wired.remember.update(familiar, memory.id, {"importance": 5})).outcome == "updated"


def test_a_long_question_is_cut_to_its_first_terms(app: RunningApplication) -> None:
    app.run(app.wired.remember.create(SUPERVISOR, NEW))
    many = " ".join(f"word{number}" for number in range(200))
    late = app.run(app.wired.recall(SUPERVISOR, Question(f"{many} ship", ranking="lexical"))).items
    soon = app.run(app.wired.recall(SUPERVISOR, Question(f"ship {many}", ranking="lexical"))).items
    assert late[0].parts["matched"] == []
    assert soon[0].parts["matched"] == ["ship"]

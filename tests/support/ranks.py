"""Writers of different trust who write, name, repeat and end memories in any order; and what none of them may reach."""

import json
from typing import Any
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from memplane.application.memories.authorization import AUTHORITY
from memplane.application.memories.correction import Correction
from memplane.application.memories.feedback import Verb
from memplane.application.memories.service import NewMemory
from memplane.domain.errors import MemplaneError
from memplane.domain.identity.principal import KeyScope, Principal
from memplane.domain.memory.memory import MemoryText, Visibility
from memplane.domain.policy.policy import Trust
from support.looks import Rows
from support.serving import RunningApplication

TENANT, USER = "default", "ana"
TRUSTS = (Trust.FULL, Trust.INNER, Trust.FAMILIAR)
WORDS = ("piano", "boat", "horse")
NAMES = (None, None, "n1", "n2")
REFUSED = frozenset({
    "conflict", "not_found", "value_rejected", "trust_too_low", "less_trusted_words", "visibility_forbidden",
})  # fmt: skip
_TABLES = (
    "change_log", "thread_revision", "history", "events", "relations", "memory_entities", "entities", "tombstones",
    "memories", "history_seals", "user_activity",
)  # fmt: skip
_SAID = "content, title, narrative, facts, attributes, tags"
_KEPT = f"{_SAID}, state, trust_state, pinned, importance, authority"

Row = dict[str, Any]


def caller(trust: Trust) -> Principal:
    """A supervisor's key of some trust."""
    return Principal(TENANT, "supervisor", trust, frozenset(KeyScope), f"k-{trust.value}")


contents = st.sampled_from([f"The user owns a {word}." for word in WORDS])
trusts = st.sampled_from(TRUSTS)
extras = st.sampled_from(["n", "f", "t", "a", "g", ""])
"""What is said besides the content, if anything: a narrative, a fact, a title, an attribute, a tag."""
places = st.integers(0, 30)
"""Which of the memories that there are: a number that does not depend on how many, as the next draw may not."""


class Ranks(RuleBasedStateMachine):
    """Operations of writers of three levels of trust, on memories of one user."""

    app: RunningApplication
    look: Rows

    def __init__(self) -> None:
        super().__init__()
        for table in _TABLES:  # each sequence begins with nothing
            self.rows(f"DELETE FROM {table} WHERE tenant_id = %(tenant)s")
        self.said: dict[str, int] = {}
        self.ids: list[UUID] = []
        self.count = 0

    def rows(self, statement: str, **values: object) -> list[Row]:
        """Rows as the administrator sees them."""
        return type(self).look(TENANT, statement, values)

    def memories(self) -> dict[UUID, Row]:
        """Every memory there is."""
        found = self.rows(f"SELECT id, external_id, {_KEPT} FROM memories WHERE tenant_id = %(tenant)s ORDER BY id")
        return {row["id"]: row for row in found}

    def done(self, trust: Trust, work: Any) -> Any:  # noqa: ANN401 - of the use case
        """Carry an operation out; it leaves what somebody more trusted said as it was."""
        before = self.memories()
        try:
            answer = self.app.run(work)
        except MemplaneError as error:
            if error.code not in REFUSED:
                raise
            answer = None
        after = self.memories()
        for each, row in before.items():
            if row["authority"] > AUTHORITY[trust]:
                assert after[each] == row, (trust, row, after[each])
        self.ids = [*after]
        return answer

    def words(self, trust: Trust, content: str, extra: str) -> tuple[MemoryText, dict[str, object]]:
        """A text with something besides that nobody else says, or that this writer said before."""
        self.count += 1
        word = f"{extra}{self.count % 4} of {trust.value}"
        self.note(trust, content, word)
        text = MemoryText(
            content,
            title=word if extra == "t" else None,
            narrative=word if extra == "n" else None,
            facts=(word,) if extra == "f" else (),
            tags=(word,) if extra == "g" else (),
        )
        return text, {"said": word} if extra == "a" else {}

    def note(self, trust: Trust, *words: str) -> None:
        """Who is trusted most of those who said something."""
        for word in words:
            self.said[word] = max(self.said.get(word, 0), AUTHORITY[trust])

    @rule(
        trust=trusts, content=contents, extra=extras, name=st.sampled_from(NAMES), pinned=st.booleans(),
        store=st.sampled_from([None, Visibility.SHARED, Visibility.SOCIAL]),
    )  # fmt: skip
    def write(
        self, trust: Trust, content: str, extra: str, name: str | None, store: Visibility | None, *, pinned: bool
    ) -> None:
        text, attributes = self.words(trust, content, extra)
        new = NewMemory(
            USER, "event", text, external_id=name, pinned=pinned, visibility=store, attributes=attributes,
        )  # fmt: skip
        answer = self.done(trust, self.app.wired.remember.create(caller(trust), new, None))
        if answer is None:
            return
        kept = self.memories()[answer.memory.id]
        assert kept["authority"] >= AUTHORITY[trust], "a less trusted record absorbed the write"
        if answer.outcome != "duplicate":
            assert kept["content"] == content
            assert extra != "n" or text.narrative in kept["narrative"]

    @precondition(lambda self: self.ids)
    @rule(which=places, trust=trusts, verb=st.sampled_from(["retract", "restore", "reinforce", "demote", "delete"]))
    def say(self, which: int, trust: Trust, verb: str) -> None:
        chosen = self.ids[which % len(self.ids)]
        if verb == "delete":
            self.done(trust, self.app.wired.remember.delete(caller(trust), chosen))
            return
        self.done_besides(trust, chosen, getattr(self.app.wired.feedback, verb)(caller(trust), Verb(chosen)))

    def done_besides(self, trust: Trust, chosen: UUID, work: Any) -> None:  # noqa: ANN401 - of the use case
        """What counts hits alone may concern any memory; it changes no word of it."""
        self.done(trust, work)
        assert chosen in self.memories()

    @precondition(lambda self: self.ids)
    @rule(which=places, trust=trusts, content=contents, extra=extras)
    def change(self, which: int, trust: Trust, content: str, extra: str) -> None:
        chosen = self.ids[which % len(self.ids)]
        text, attributes = self.words(trust, content, extra)
        said = {"content": text.content, "title": text.title, "facts": text.facts, "tags": text.tags}
        changes = {name: value for name, value in said.items() if value} | (
            {"attributes": attributes} if attributes else {}
        )
        self.done(trust, self.app.wired.remember.update(caller(trust), chosen, changes))

    @precondition(lambda self: self.ids)
    @rule(which=places, trust=trusts, content=contents, extra=extras)
    def correct(self, which: int, trust: Trust, content: str, extra: str) -> None:
        chosen = self.ids[which % len(self.ids)]
        text, _ = self.words(trust, content, extra)
        self.done(trust, self.app.wired.correct(caller(trust), Verb(chosen), Correction(text)))

    @invariant()
    def words_have_the_authority_of_who_said_them(self) -> None:
        """No part of a memory weighs more than the most trusted of those who said that part."""
        for row in self.memories().values():
            parts = [
                row["content"],
                row["title"],
                *(row["narrative"] or "").split("\n"),
                *_list(row["facts"]),
                *_list(row["tags"]),
            ]
            parts += [str(value) for value in _mapping(row["attributes"]).values()]
            for part in filter(None, parts):
                assert self.said[part] >= row["authority"], (part, row)


def _list(value: Any) -> list[str]:  # noqa: ANN401 - as the database gives it
    return json.loads(value) if isinstance(value, str) else list(value or ())


def _mapping(value: Any) -> dict[str, object]:  # noqa: ANN401 - as above
    return json.loads(value) if isinstance(value, str) else dict(value or {})

"""What the gateway makes of memories: overruled, moved, merged, disputed, drawn from others; words that stay behind.

A story has a user of its own, so that nothing else is its neighbour. Its words are known with every place that they
were written in or for: who may not read all of these must not be told them.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from support.leaks.canaries import Place, Record
from support.leaks.oracle import Voice
from support.leaks.world import World

Json = dict[str, Any]
STORIES: list[Callable[["Teller"], None]] = []


def story(told: Callable[["Teller"], None]) -> Callable[["Teller"], None]:
    """Note a story."""
    STORIES.append(told)
    return told


def tell_all(world: World) -> None:
    """Tell every story in the world's first tenant."""
    for told in STORIES:
        told(Teller(world, world.tenants[0].name, told.__name__))


class Teller:
    """Writes one story about one user through the server."""

    def __init__(self, world: World, tenant: str, user: str) -> None:
        self.world = world
        self.place = Place(tenant, user, "tasks", "shared", "public")
        self.full = world.operator(tenant)
        self.inner = world.voice(world.tenant(tenant), "supervisor", "inner")

    def at(self, **where: str) -> Place:
        """The story's place, but for what is named."""
        return replace(self.place, **where)

    def write(
        self,
        place: Place,
        form: str,
        *,
        life: str = "active",
        voice: Voice | None = None,
        **more: Any,  # noqa: ANN401 - of the memory
    ) -> Record:
        """Store a memory that says one new word where the form has a gap."""
        word = self.world.planted.word()
        thread = self.world.planted.word()
        body = {
            "user_id": place.user, "category": place.category, "visibility": place.visibility,
            "min_trust": place.min_trust, "content": form.format(word.capitalize()), "thread_id": thread, **more,
            "agent": "supervisor",
        }  # fmt: skip
        answer = self.world.send(voice or self.full, "POST", "/v1/memories", body=body)
        assert answer.status == 201, answer.raw
        words = {"content": word, "thread": thread}
        return self.world.planted.note(Record(answer.json()["id"], place, life, words, thread))

    def become(self, record: Record, life: str) -> Record:
        """The record's life is another now, and so is that of its words."""
        planted = self.world.planted
        changed = replace(record, life=life)
        planted.records[planted.records.index(record)] = changed
        for word, canary in planted.canaries.items():
            if canary.record == record.id:
                planted.canaries[word] = replace(canary, life=life)
        return changed

    def say(self, record: Record, verb: str, voice: Voice | None = None, **body: Any) -> Json:  # noqa: ANN401 - of the verb
        """Say a verb of a record."""
        body["agent"] = "supervisor"
        path = f"/v1/memories/{record.id}/{verb}"
        answer = self.world.send(voice or self.full, "POST", path, body=body)
        assert answer.status == 200, answer.raw
        return dict(answer.json())

    def change(self, record: Record, **fields: Any) -> None:  # noqa: ANN401 - of the memory
        """Change a record in place."""
        path = f"/v1/memories/{record.id}"
        answer = self.world.send(self.full, "PATCH", path, body=fields, params={"agent": "supervisor"})
        assert answer.status == 200, answer.raw


LIVES_IN = "Vera lives in {}."


@story
def a_private_memory_overrules_a_shared_one(tell: Teller) -> None:
    old = tell.write(tell.place, LIVES_IN)
    tell.write(tell.at(visibility="private"), LIVES_IN)
    tell.become(old, "superseded")


@story
def one_for_the_more_trusted_overrules_one_for_all(tell: Teller) -> None:
    old = tell.write(tell.place, LIVES_IN)
    tell.write(tell.at(min_trust="full"), LIVES_IN)
    tell.become(old, "superseded")


@story
def a_shared_memory_overrules_a_private_one(tell: Teller) -> None:
    old = tell.write(tell.at(visibility="private"), LIVES_IN)
    tell.write(tell.place, LIVES_IN)
    tell.become(old, "superseded")


@story
def the_less_trusted_dispute(tell: Teller) -> None:
    tell.write(tell.place, LIVES_IN)
    tell.write(tell.place, LIVES_IN, life="disputed", voice=tell.inner)


@story
def a_private_confirmation_overrules_a_shared_memory(tell: Teller) -> None:
    old = tell.write(tell.place, LIVES_IN)
    tell.say(old, "confirm")
    new = tell.write(tell.at(visibility="private"), LIVES_IN, life="disputed")
    tell.say(new, "confirm")
    tell.become(old, "superseded")
    tell.become(new, "active")


@story
def a_memory_is_moved_out_of_a_category(tell: Teller) -> None:
    """Its older words were written for others than its newer ones."""
    old = tell.write(tell.at(category="preferences"), LIVES_IN)
    moved = replace(tell.become(old, "active"), place=tell.place)
    word = tell.world.planted.word()
    tell.change(old, category="tasks", content=f"The user pays {word.capitalize()}.")
    planted = tell.world.planted
    planted.records[planted.records.index(replace(moved, place=old.place))] = moved
    before = old.words["content"]
    planted.canaries[before] = replace(planted.canaries[before], life="replaced", places=(old.place, tell.place))
    planted.canaries[old.thread] = replace(planted.canaries[old.thread], places=(tell.place,))
    # the entry of the change has the older words beside these: it is told to those who may read both
    planted.canary(word, "content", old.id, "active", tell.place)


@story
def a_memory_is_rewritten(tell: Teller) -> None:
    record = tell.write(tell.place, LIVES_IN)
    word = tell.world.planted.word()
    tell.change(record, content=f"The user pays {word.capitalize()}.", title="Rent")
    before = record.words["content"]
    planted = tell.world.planted
    planted.canaries[before] = replace(planted.canaries[before], life="replaced")
    planted.canary(word, "content", record.id, "active", tell.place)


@story
def a_memory_is_corrected(tell: Teller) -> None:
    old = tell.write(tell.place, LIVES_IN)
    word = tell.world.planted.word()
    right = tell.say(old, "correct", content=LIVES_IN.format(word.capitalize()))
    tell.become(old, "superseded")
    words = {"content": word, "thread": old.thread}
    planted = tell.world.planted
    planted.records.append(Record(right["id"], tell.place, "active", words, old.thread))
    planted.canary(word, "content", right["id"], "active", tell.place)
    # the thread's name stands in both records
    planted.canaries[old.thread] = replace(planted.canaries[old.thread], life="active", record=right["id"])


@story
def memories_are_retracted_rejected_and_restored(tell: Teller) -> None:
    for verb, life in (("retract", "superseded"), ("reject", "rejected")):
        gone = tell.write(tell.place, LIVES_IN)
        tell.say(gone, verb)
        tell.become(gone, life)
    back = tell.write(tell.place, LIVES_IN)
    tell.say(back, "retract")
    tell.say(back, "restore")


@story
def a_memory_says_more_of_a_fact(tell: Teller) -> None:
    """The second is merged into the first; the more trusted reader alone has a third beside them."""
    first = tell.write(tell.place, LIVES_IN)
    said = LIVES_IN.format(first.words["content"].capitalize())
    word, hidden = (tell.world.planted.word() for _ in range(2))
    for facts, place in ((word, tell.place), (hidden, tell.at(visibility="private"))):
        body = {
            "agent": "supervisor", "user_id": tell.place.user, "category": "tasks", "content": said,
            "visibility": place.visibility, "facts": [f"The street is {facts}."],
        }  # fmt: skip
        answer = tell.world.send(tell.full, "POST", "/v1/memories", body=body)
        assert answer.status in {200, 201}, answer.raw
        tell.world.planted.canary(facts, "fact", answer.json()["id"], "active", place)


@story
def a_turn_states_facts(tell: Teller) -> None:
    word = tell.world.planted.word()
    body = {
        "agent": "supervisor", "user_id": tell.place.user, "thread_id": tell.world.planted.word(), "role": "user",
        "text": f"I live in {word.capitalize()}.",
    }  # fmt: skip
    answer = tell.world.send(tell.full, "POST", "/v1/turns", body=body)
    assert answer.status == 201, answer.raw
    place = tell.at(category=tell.world.oracle.turns, visibility="private")
    # the words stand in the turn and in what was drawn from it: to read either is enough
    tell.world.planted.canary(word, "text", answer.json()["turn_id"], "active", place)


@story
def an_anonymous_user_is_merged(tell: Teller) -> None:
    """What was said before signing in is the known user's, in the store and category in which it was said."""
    anonymous = "anonymous-visitor"
    places = (tell.place, tell.at(visibility="private"), tell.at(category="goals", min_trust="full"))
    before = [tell.write(replace(place, user=anonymous), "The clerk met {} in the hall.") for place in places]
    tell.write(tell.place, LIVES_IN)
    path = f"/v1/users/{anonymous}/merge"
    answer = tell.world.send(tell.full, "POST", path, body={"into": tell.place.user})
    assert answer.status == 200, answer.raw
    planted = tell.world.planted
    for record, place in zip(before, places, strict=True):
        planted.records[planted.records.index(record)] = replace(record, place=place)
        for word, canary in planted.canaries.items():
            if canary.record == record.id:
                planted.canaries[word] = replace(canary, places=(place,))

"""Honest writers alone, and the same with a hostile one among them: what is left of both once that one is reverted."""

import random
from collections import Counter
from typing import Any

from support.callers import Caller, Json

CITIES = ("Berlin", "Munich", "Oslo", "Porto", "Lyon")
PEOPLE = ("Vera", "Bodo", "Ida", "Nils", "Tara", "Omar")
THINGS = ("piano", "boat", "horse", "kite", "drum", "lamp", "clock", "flute", "canoe", "tent")
_EVENT, _PROFILE = "event", "profile"
_SAID = ("content", "title", "narrative", "facts", "steps", "tags", "related_files", "category", "type", "visibility")
_WEIGHT = ("importance", "pinned", "trust_state", "confidence", "external_id", "attributes")
QUESTIONS = (*PEOPLE, *THINGS)


class Story:
    """Random writes of both, in one order: of one user honest ones alone, of another one hostile ones too."""

    def __init__(self, seed: int, honest: Caller, hostile: Caller) -> None:
        self.alone, self.among = f"alone-{seed}", f"among-{seed}"
        self._random = random.Random(seed)  # noqa: S311 - to be told again
        self._honest, self._hostile = honest, hostile
        self._pairs: list[dict[str, str]] = []
        """Memories that the honest writer made, by user."""
        self.done: Counter[str] = Counter()

    def tell(self, writes: int) -> None:
        """So many writes, half of them hostile."""
        for _ in range(writes):
            if self._random.random() < 0.5:
                self._be_honest()
            else:
                self._be_hostile()

    # both say things of this kind

    def _fact(self) -> Json:
        pick = self._random.choice
        kind = self._random.randrange(4)
        if kind == 0:
            return {"category": _EVENT, "content": f"{pick(PEOPLE)} lives in {pick(CITIES)}."}
        if kind == 1:
            return {"category": _EVENT, "content": f"The user owns a {pick(THINGS)}.", "tags": [pick(THINGS)]}
        if kind == 2:
            thing = pick(THINGS)
            return {
                "category": "goals",
                "content": f"The user wants to sell the {thing}.",
                "facts": [f"It is a {thing}."],
            }
        return {"category": _EVENT, "content": f"{pick(PEOPLE)} works at {pick(('Initech', 'Hooli', 'Acme'))}."}

    def _words(self) -> str:
        pick = self._random.choice
        return pick((f"I own a {pick(THINGS)}.", f"I don't like my {pick(THINGS)}.", f"I live in {pick(CITIES)}."))

    # the honest writer

    def _be_honest(self) -> None:
        act = self._random.choice(("write", "write", "write", "patch", "verb", "turn", "consent", "decide"))
        getattr(self, f"_honest_{act}")()
        self.done[f"honest {act}"] += 1

    def _honest_write(self) -> None:
        body = self._fact() | {"importance": self._random.randint(2, 5), "thread_id": "planning"}
        ids: dict[str, str] = {}
        for user in (
            self.among,
            self.alone,
        ):  # what is refused for the hostile one's sake is refused: see the security page
            answer = self._honest.post("/v1/memories", body | {"user_id": user})
            if answer.status_code == 409:
                return
            assert answer.status_code in {200, 201}, answer.text
            ids[user] = str(answer.json()["id"])
        self._pairs.append(ids)

    def _standing(self) -> dict[str, str] | None:
        """A memory of the honest writer that is there in both, saying the same."""
        self._random.shuffle(self._pairs)
        for ids in self._pairs:
            found = {user: self._honest.get(f"/v1/memories/{each}") for user, each in ids.items()}
            if all(each.status_code == 200 for each in found.values()):
                one, other = (each.json() for each in found.values())
                if one["content"] == other["content"]:
                    return ids
        return None

    def _honest_patch(self) -> None:
        ids = self._standing()
        pick = self._random.choice
        change: Json = pick(
            ({"importance": 4}, {"tags": [pick(THINGS)]}, {"content": f"The user lent a {pick(THINGS)}."})
        )
        if ids is None or any(self._says(user, change.get("content")) for user in ids):
            return  # refused where another memory has the words, which may be so in one of both alone
        for user in (self.among, self.alone):
            answer = self._honest.patch(f"/v1/memories/{ids[user]}", change)
            if answer.status_code == 409:
                return
            assert answer.status_code == 200, answer.text

    def _says(self, user: str, content: str | None) -> bool:
        """Whether a memory of a user has these words."""
        return content is not None and any(
            each["content"] == content for each in _every(self._honest, "/v1/memories", user_id=user)
        )

    def _honest_verb(self) -> None:
        ids = self._standing()
        verb = self._random.choice(("pin", "reinforce", "demote", "confirm", "retract"))
        for user in (
            (self.among, self.alone) if ids else ()
        ):  # what is so already is not done again, and nobody can know of it
            answer = self._honest.post(f"/v1/memories/{(ids or {})[user]}/{verb}", {})
            if answer.status_code == 409 or answer.json()["outcome"] == "unchanged":
                return
            assert answer.status_code == 200, answer.text

    def _honest_turn(self) -> None:
        words, extract = self._words(), True
        for user in (self.among, self.alone):  # what is refused, as above
            body = {"user_id": user, "thread_id": "chat", "role": "user", "text": words, "auto_extract": extract}
            answer = self._honest.post("/v1/turns", body)
            assert answer.status_code == 201, answer.text
            extract = all(each["action"] != "refused" for each in answer.json()["extracted"])

    def _honest_consent(self) -> None:
        content = f"The user lives in {self._random.choice(CITIES)}."
        for user in (self.among, self.alone):
            body = {"user_id": user, "category": _PROFILE, "content": content}
            answer = self._honest.post("/v1/memories", body)
            if answer.status_code == 409:
                return
            assert answer.status_code in {200, 201, 202}, answer.text

    def _honest_decide(self) -> None:
        """Approve what waits in both."""
        waiting = {user: self._waiting(user, "agent:supervisor") for user in (self.among, self.alone)}
        common = sorted(waiting[self.among].keys() & waiting[self.alone].keys())
        if common:
            value = self._random.choice(common)
            for user in (self.among, self.alone):
                answer = self._honest.post(f"/v1/consents/{waiting[user][value]}/approve", {})
                if answer.status_code == 409:
                    return
                assert answer.status_code == 200, answer.text

    def _waiting(self, user: str, actor: str | None = None) -> dict[str, str]:
        """What waits for consent, by value: of all who proposed it, or of one."""
        found = self._honest.get("/v1/consents", user_id=user, state="pending", limit=100).json()["items"]
        return {each["new_value"]: each["id"] for each in found if actor in (None, each["actor"])}

    # the hostile one, of the second user alone

    def _be_hostile(self) -> None:
        act = self._random.choice(("write", "write", "patch", "verb", "verb", "delete", "turn", "propose", "decide"))
        getattr(self, f"_hostile_{act}")()
        self.done[f"hostile {act}"] += 1

    def _target(self) -> str:
        return self._random.choice(self._pairs)[self.among] if self._pairs else "0" * 32

    def _send(self, method: str, path: str, body: Json | None = None, **params: object) -> None:
        """Whatever comes of it; the hostile key is an operator's, who acts for the supervisor."""
        if method == "POST":
            self._hostile.post(path, (body or {}) | {"agent": "supervisor"})
            return
        self._hostile.send(method, path, json=body, params={"agent": "supervisor", **params})

    def _hostile_write(self) -> None:
        body = self._fact() | {"user_id": self.among, "importance": 5, "pinned": self._random.random() < 0.5}
        self._send("POST", "/v1/memories", body | {"tags": ["hostile"]})

    def _hostile_patch(self) -> None:
        pick = self._random.choice
        changes: tuple[Json, ...] = (
            {"content": f"The user stole a {pick(THINGS)}."}, {"importance": 1}, {"tags": ["hostile"]},
            {"pinned": True}, {"facts": ["It was stolen."]}, {"category": "goals"},
        )  # fmt: skip
        self._send("PATCH", f"/v1/memories/{self._target()}", pick(changes))

    def _hostile_verb(self) -> None:
        verb = self._random.choice(("pin", "reinforce", "demote", "confirm", "retract", "reject"))
        self._send("POST", f"/v1/memories/{self._target()}/{verb}")

    def _hostile_delete(self) -> None:
        tombstone = self._random.random() < 0.3
        self._send("DELETE", f"/v1/memories/{self._target()}", tombstone=tombstone)

    def _hostile_turn(self) -> None:
        body = {"user_id": self.among, "thread_id": "chat", "role": "user", "text": self._words()}
        self._send("POST", "/v1/turns", body)

    def _hostile_propose(self) -> None:
        content = f"The user lives in {self._random.choice(CITIES)}."
        self._send("POST", "/v1/memories", {"user_id": self.among, "category": _PROFILE, "content": content})

    def _hostile_decide(self) -> None:
        waiting = self._waiting(self.among)
        if waiting:
            chosen = waiting[self._random.choice(sorted(waiting))]
            self._send("POST", f"/v1/consents/{chosen}/{self._random.choice(('approve', 'reject'))}")


def readable(caller: Caller, user: str) -> dict[str, Any]:
    """All that can be read of a user, but for ids, times and what counts changes."""
    memories = _every(caller, "/v1/memories", user_id=user)
    disputed = _every(caller, "/v1/memories", user_id=user, trust_state="disputed")
    return {
        "memories": sorted(str(_said(each)) for each in memories),
        "disputed": sorted(str(_said(each)) for each in disputed),
        "answers": {asked: _answers(caller, user, asked) for asked in QUESTIONS},
        "profile": _profile(caller, user),
        "proposals": sorted(
            each["new_value"] for each in _every(caller, "/v1/consents", user_id=user, state="pending")
        ),
        "conflicts": sorted(
            str(sorted((each["older"]["content"], each["newer"]["content"])))
            for each in _every(caller, "/v1/conflicts", user_id=user)
        ),
        "entities": sorted(
            str((each["kind"], each["name"], each["aliases"], each["memories"]))
            for each in caller.get("/v1/entities", user_id=user, limit=200).json()["items"]
        ),
    }


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """What only one of two has, with a sign."""
    found: list[str] = []
    for name, value in one.items():
        parts = {"": (value, other[name])}
        if isinstance(value, dict):
            parts = {each: (mine, other[name][each]) for each, mine in value.items()}
        for part, (mine, theirs) in parts.items():
            left, right = Counter(mine), Counter(theirs)
            found += [f"+ {name} {part} {each}" for each in (left - right).elements()]
            found += [f"- {name} {part} {each}" for each in (right - left).elements()]
    return found


def _every(caller: Caller, path: str, **params: object) -> list[Json]:
    found: list[Json] = []
    cursor: str | None = None
    while True:
        page = caller.get(path, limit=100, **params, **({} if cursor is None else {"cursor": cursor}))
        assert page.status_code == 200, page.text
        found += page.json()["items"]
        cursor = page.json()["next"]
        if cursor is None:
            return found


def _said(memory: Json) -> Json:
    """What a memory says and weighs; of an approved value which of two proposals it came of may differ."""
    weight = _WEIGHT if memory["category"] != _PROFILE else ("trust_state", "confidence", "pinned")
    return {name: memory.get(name) for name in (*_SAID, *weight)}


def _answers(caller: Caller, user: str, asked: str) -> list[str]:
    """What holds the word comes first; what comes after it depends on when it was written."""
    found = caller.ask(asked, top_k=50, budget_tokens=8000, return_="bullets", filters={"user_id": user})
    return sorted(each["text"] for each in found["items"] if asked in each["text"])


def _profile(caller: Caller, user: str) -> list[str]:
    found = caller.get(f"/v1/users/{user}/context").json()["items"]
    return sorted(f"{each['field']}: {each['value']}" for each in found)

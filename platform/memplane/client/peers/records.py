"""What the exports of other memory systems become: lines of an import, or named reasons why they are left out."""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from pydantic import TypeAdapter, ValidationError

from memplane.client.errors import Invalid
from memplane.contracts.base import Time
from memplane.domain.errors import MemplaneError
from memplane.domain.memory.attributes import check_attributes
from memplane.domain.memory.memory import Role

MAX_NAME = 255
MAX_TITLE = 200
_MAX_TAGS = 50
_TIME: TypeAdapter[datetime] = TypeAdapter(Time)
_ROLES: Mapping[str, Role] = {"function": Role.TOOL, "human": Role.USER, "ai": Role.ASSISTANT} | {
    str(role): role for role in Role
}


class Peer(StrEnum):
    """A memory system whose exports can be imported."""

    MEM0 = "mem0"
    LANGGRAPH = "langgraph"
    ZEP = "zep"
    HINDSIGHT = "hindsight"


class LeftOut(StrEnum):
    """Why a record of an export is not sent."""

    NO_TEXT = "no_text"
    NO_CATEGORY = "no_category"
    NO_THREAD = "no_thread"
    UNKNOWN_ROLE = "unknown_role"
    UNKNOWN_RECORD = "unknown_record"
    NOT_A_MEMORY = "not_a_memory"
    NOT_BELIEVED = "not_believed"
    EXPIRED = "expired"
    OTHER_USER = "other_user"


@dataclass(frozen=True, slots=True)
class Document:
    """One record of an export.

    Attributes:
        number: its place in the export, from 1.
        kind: the list that it is in, such as `results`; empty for one that is in none.
        fields: what it holds.
        around: the plain values beside the list, such as the id of a session.
    """

    number: int
    kind: str
    fields: Mapping[str, Any]
    around: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ImportMap:
    """How names of a peer are to be read.

    Attributes:
        users, agents, categories, roles: names here, by the peer's.
        content: the field with the words, as `profile.summary`; without it the usual ones are tried.
        namespace: what each label of a namespace is: `{user}`, `{category}`, `*`, or the label itself.
        thread: the thread of messages that name none.
    """

    users: Mapping[str, str] = field(default_factory=dict)
    agents: Mapping[str, str] = field(default_factory=dict)
    categories: Mapping[str, str] = field(default_factory=dict)
    roles: Mapping[str, str] = field(default_factory=dict)
    content: str | None = None
    namespace: Sequence[str] = ()
    thread: str | None = None

    @classmethod
    def read(cls, given: object) -> "ImportMap":
        """A map as a YAML or JSON file has it.

        Raises:
            Invalid: it has unknown keys, or values of another kind.
        """
        names, plain = {"users", "agents", "categories", "roles"}, {"content", "thread"}
        if not isinstance(given, Mapping):
            raise Invalid("invalid_map", "the map is not a mapping of names")
        for key, value in given.items():
            known = key in names | plain | {"namespace"}
            fits = (
                isinstance(value, Mapping) and all(isinstance(each, str) for pair in value.items() for each in pair)
                if key in names
                else isinstance(value, str)
                if key in plain
                else isinstance(value, list) and all(isinstance(each, str) for each in value)
            )
            if not (known and fits):
                raise Invalid("invalid_map", f"'{key}' of the map: {'has another form' if known else 'is unknown'}")
        return cls(**{str(key): value for key, value in given.items()})


@dataclass(frozen=True, slots=True)
class Conversion:
    """What a conversion goes by.

    Attributes:
        map: how names are to be read.
        categories: the categories of the policy.
        category: the one of records that name none of them.
        now: when.
    """

    now: datetime
    categories: Collection[str]
    category: str | None = None
    map: ImportMap = field(default_factory=ImportMap)


@dataclass(frozen=True, slots=True)
class ConvertedRecord:
    """A record as a line of an import, or why there is none.

    Attributes:
        document: the record.
        line: the line; none where it is left out.
        code: why it is left out.
        detail: the same for a person.
        owner: the user that the peer names.
        labels: where no user is named, the labels among which one may be.
        unmapped: its fields that are not imported.
    """

    document: Document
    line: Mapping[str, object] | None = None
    code: LeftOut | None = None
    detail: str = ""
    owner: str | None = None
    labels: Sequence[str] = ()
    unmapped: Sequence[str] = ()


def left_out(document: Document, code: LeftOut, detail: str, owner: str | None = None) -> ConvertedRecord:
    """A record that is not sent."""
    return ConvertedRecord(document, None, code, detail, owner)


@dataclass(slots=True)
class Fields:
    """The fields of one record: those that are taken are mapped, and what is left over can be named."""

    peer: Peer
    document: Document
    by: Conversion
    _taken: set[str] = field(default_factory=set)
    _lost: list[str] = field(default_factory=list)

    def take(self, *names: str) -> Any:  # noqa: ANN401 - any JSON value
        """The first of some fields that has a value; all of them count as mapped."""
        self._taken.update(names)
        return next((self.document.fields[name] for name in names if _has_value(self.document.fields.get(name))), None)

    def text(self, *names: str) -> str | None:
        """The same as text, such as an id; none where it is something else."""
        value = self.take(*names)
        return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else None

    def name(self, *names: str) -> str | None:
        """The same, as short as a name may be."""
        value = self.text(*names)
        return value if value is None or len(value) <= MAX_NAME else _shortened(value)

    def time(self, name: str) -> datetime | None:
        """A time; one that cannot be read is a field that is not imported."""
        value = self.take(name)
        if value is None:
            return None
        found = time_of(value)
        if found is None:
            self._lost.append(name)
        return found

    def drop(self, *names: str) -> None:
        """Leave fields out, and name those that have a value."""
        self._taken.update(names)
        self._lost += [name for name in names if _has_value(self.document.fields.get(name))]

    def role(self, value: str | None) -> Role | None:
        """Who spoke."""
        named = self.by.map.roles.get(value or "", value or "")
        return _ROLES.get(named.lower())

    def owner(self, *names: str) -> str | None:
        """The user that the record, or what is around it, names."""
        own = self.name(*names)
        around = (self.document.around.get(name) for name in names)
        return own or next((str(each) for each in around if _has_value(each)), None)

    def memory(
        self, identity: str | None, content: str, *, categories: Iterable[str] = (), tags: Iterable[str] = (),
        owner: str | None = None, **more: object,
    ) -> ConvertedRecord:  # fmt: skip
        """The record as a memory.

        Args:
            identity: the peer's id.
            content: the words.
            categories: the peer's names of its categories; the first that the policy has counts, others are tags.
            tags: further tags.
            owner: the user that the peer names.
            more: further fields of the line; those without a value are not named.
        """
        own, names = self.by.map.categories, [each for each in categories if each]
        known = [own.get(each, slug(each)) for each in names]
        category = next((each for each in known if each in self.by.categories), self.by.category)
        if category is None:
            named = f"{', '.join(names)}, which the policy does not know" if names else "none"
            return left_out(self.document, LeftOut.NO_CATEGORY, named, owner)
        others = [name for name, each in zip(names, known, strict=True) if each != category]
        line: dict[str, object] = {"record": "memory", "category": category, "content": content}
        line["external_id"] = self.identity(identity or _digest([self.document.kind, content]))
        labels = [each[:MAX_NAME] for each in dict.fromkeys([*others, *tags]) if each.strip()][:_MAX_TAGS]
        if labels:
            line["tags"] = labels
        line |= {key: _plain(value) for key, value in more.items() if _has_value(value)}
        if attributes := self._attributes():
            line["attributes"] = {str(self.peer): attributes}
        return ConvertedRecord(self.document, line, owner=owner, unmapped=tuple(self._lost))

    def turn(self, text: str, role: Role, thread: str, *, owner: str | None, **more: object) -> ConvertedRecord:
        """The record as a message of a thread."""
        line: dict[str, object] = {"record": "turn", "thread_id": thread, "role": str(role), "text": text}
        line |= {key: _plain(value) for key, value in more.items() if _has_value(value)}
        self.drop(*self.document.fields.keys() - self._taken)
        return ConvertedRecord(self.document, line, owner=owner, unmapped=tuple(self._lost))

    def identity(self, identity: str) -> str:
        """The external id of a record."""
        return _shortened(f"{self.peer}:{identity}")

    def agent(self, name: str | None) -> str | None:
        """An agent's name here."""
        return None if name is None else self.by.map.agents.get(name, name)

    def keep(self, **values: object) -> None:
        """Keep values among the attributes, where they have any."""
        self._kept |= {key: _plain(value) for key, value in values.items() if _has_value(value)}

    _kept: dict[str, object] = field(default_factory=dict)

    def _attributes(self) -> dict[str, object]:
        """What has no field of its own; what cannot be an attribute is named as not imported."""
        rest = {key: value for key, value in self.document.fields.items() if key not in self._taken}
        found: dict[str, object] = {}
        for key, value in {**self._kept, **rest}.items():
            if not _has_value(value):
                continue
            try:
                check_attributes({str(self.peer): {**found, key: value}})
            except MemplaneError:
                self._lost.append(key)
            else:
                found[key] = value
        return found


def time_of(value: object) -> datetime | None:
    """A time of an export, RFC 3339 or a day; without a zone it is UTC. None for what is no time."""
    try:
        return _TIME.validate_python(value)
    except ValidationError:
        return None


def slug(name: str) -> str:
    """A name as the policy writes those of categories."""
    return "_".join(name.casefold().replace("-", " ").replace("_", " ").split())


def strings(value: object) -> list[str]:
    """Texts of a list, or of one that commas separate."""
    found = value.split(",") if isinstance(value, str) else value if isinstance(value, list | tuple) else ()
    return [each.strip() for each in found if isinstance(each, str) and each.strip()]


def _has_value(value: object) -> bool:
    return value is not None and value not in ("", [], {})  # 0 and False are values


def _plain(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else value


def _shortened(name: str) -> str:
    """A name, or where it is too long its beginning and a hash."""
    return name if len(name) <= MAX_NAME else f"{name[:180]}#{_digest(name)}"


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, default=str).encode()).hexdigest()[:40]

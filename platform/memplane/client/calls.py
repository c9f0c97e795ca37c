"""The calls of the client: bodies, paths and headers as the contracts have them."""

from collections.abc import Mapping, Sequence
from urllib.parse import quote
from uuid import UUID, uuid4

from pydantic import ValidationError

from memplane.client.connection import Call
from memplane.client.errors import Invalid
from memplane.contracts.base import Message
from memplane.contracts.mistakes import joined_mistakes


def body_of(kind: type[Message], given: Mapping[str, object]) -> str:
    """A request body of exactly the fields that were given.

    Raises:
        Invalid: the contract does not allow it; nothing was sent.
    """
    try:
        return kind.model_validate(given).model_dump_json(by_alias=True, exclude_unset=True)
    except ValueError as error:
        raise Invalid("invalid_request", _told(error, kind)) from error


def _told(error: ValueError, kind: type[Message]) -> str:
    """The first mistakes by field, without the values, which may be private."""
    if not isinstance(error, ValidationError):
        return "the text holds characters that cannot be sent"
    return joined_mistakes(error.errors(include_input=False, include_url=False), kind)


def rename_field(fields: Mapping[str, object], name: str, wire: str) -> dict[str, object]:
    """Fields with one of them under the name that it has on the wire."""
    return {wire if given == name else given: value for given, value in fields.items()}


def write(path: str, body: str, headers: Mapping[str, str] | None = None) -> Call:
    """A write that the server carries out once, however often it arrives."""
    once = {"Idempotency-Key": str(uuid4())}
    return Call("POST", path, body, headers=once | dict(headers or {}), repeatable=True)


def delete_once(path: str, **parameters: object) -> Call:
    """A deletion that the server carries out once, however often it arrives."""
    once = {"Idempotency-Key": str(uuid4())}
    return Call("DELETE", path, parameters=query_of(**parameters), headers=once, repeatable=True)


def given_fields(**fields: object) -> dict[str, object]:
    """The fields that were given; ``None`` means that one was not."""
    return {name: value for name, value in fields.items() if value is not None}


def read_call(path: str, **parameters: object) -> Call:
    """A read, which can be sent again."""
    return Call("GET", path, parameters=query_of(**parameters), repeatable=True)


def query_of(**given: object) -> dict[str, str | list[str]]:
    """A query string's parameters: what is ``None`` is not sent."""
    found: dict[str, str | list[str]] = {}
    for name, value in given.items():
        if isinstance(value, bool):
            found[name] = str(value).lower()
        elif isinstance(value, Sequence) and not isinstance(value, str):
            found[name] = [str(each) for each in value]
        elif value is not None:
            found[name] = str(value)
    return found


def memory_path(memory_id: UUID | str) -> str:
    """Where a memory is."""
    return f"/v1/memories/{segment(str(memory_id))}"


def proposal_path(proposal_id: UUID | str) -> str:
    """Where a proposal is."""
    return f"/v1/consents/{segment(str(proposal_id))}"


def entity_path(entity_id: UUID | str) -> str:
    """Where an entity is."""
    return f"/v1/entities/{segment(str(entity_id))}"


def checkpoint_path(thread_id: str) -> str:
    """Where the state of a supervisor in a thread is."""
    return f"/v1/checkpoints/{segment(thread_id)}"


def segment(value: str) -> str:
    """A caller's name as one segment of a path; dots alone would walk up it.

    Raises:
        Invalid: it is empty or cannot be sent.
    """
    if not value:
        raise Invalid("invalid_request", "an empty id names nothing")
    try:
        return quote(value, safe="") if value.strip(".") else value.replace(".", "%2E")
    except UnicodeEncodeError as error:
        raise Invalid("invalid_request", "the id holds characters that cannot be sent") from error


def if_match(version: int | None) -> dict[str, str]:
    """The header by which a change is refused if the record is at another version."""
    return {} if version is None else {"If-Match": f'"{version}"'}

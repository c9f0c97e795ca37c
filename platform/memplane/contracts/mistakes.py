"""What is wrong with a message: the field, the mistake and what is allowed, in the words of this API."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import ErrorDetails

_FORM = re.compile(r"constrained-\w+|(?:list|dict|tuple|set)\[.*\]")
_OF_OUR_OWN = "Value error, "
_TIME = "must be a time as RFC 3339 has it, such as 2025-07-01T09:30:00Z"
_OBJECT, _LIST, _TEXT = "must be an object", "must be a list", "must be a string"
_WHOLE, _NUMBER, _BOOL = "must be a whole number", "must be a number", "must be true or false"
_PLAIN: Mapping[str, str] = {
    "missing": "is required",
    "string_type": _TEXT,
    "string_unicode": "must be valid Unicode",
    "int_type": _WHOLE,
    "int_parsing": _WHOLE,
    "int_parsing_size": "is too large a number",
    "int_from_float": _WHOLE,
    "float_type": _NUMBER,
    "float_parsing": _NUMBER,
    "finite_number": "must be a finite number",
    "bool_type": _BOOL,
    "bool_parsing": _BOOL,
    "list_type": _LIST,
    "tuple_type": _LIST,
    "set_type": _LIST,
    "frozen_set_type": _LIST,
    "iterable_type": _LIST,
    "dict_type": _OBJECT,
    "mapping_type": _OBJECT,
    "model_type": _OBJECT,
    "model_attributes_type": _OBJECT,
    "json_type": "must be JSON",
    "none_required": "must be null",
    "recursion_loop": "must not contain itself",
    "uuid_type": "must be a UUID",
    "uuid_parsing": "must be a UUID",
    "uuid_version": "must be a UUID",
    "date_type": "must be a day, such as 2025-07-01",
    "date_parsing": "must be a day, such as 2025-07-01",
    "datetime_type": _TIME,
    "datetime_parsing": _TIME,
    "datetime_object_invalid": _TIME,
    "datetime_from_date_parsing": _TIME,
    "time_delta_type": "must be a duration",
    "time_delta_parsing": "must be a duration",
    "url_type": "must be a URL",
    "url_parsing": "must be a URL",
}
"""By pydantic's type of the error."""
_BOUNDED: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "greater_than": lambda ctx: f"must be above {ctx['gt']}",
    "greater_than_equal": lambda ctx: f"must be at least {ctx['ge']}",
    "less_than": lambda ctx: f"must be below {ctx['lt']}",
    "less_than_equal": lambda ctx: f"must be at most {ctx['le']}",
    "string_too_short": lambda ctx: _not_empty(ctx["min_length"], "characters"),
    "string_too_long": lambda ctx: f"has too many characters: at most {ctx['max_length']}",
    "too_short": lambda ctx: _not_empty(ctx["min_length"], "items"),
    "too_long": lambda ctx: f"has too many items: at most {ctx['max_length']}",
    "literal_error": lambda ctx: f"must be {ctx['expected']}",
    "enum": lambda ctx: f"must be {ctx['expected']}",
    "json_invalid": lambda ctx: f"is no JSON document: {ctx['error']}",
    "string_pattern_mismatch": lambda ctx: f"must match {ctx['pattern']}",
    "url_scheme": lambda ctx: f"must be a URL that begins with {ctx['expected_schemes']}",
    "union_tag_invalid": lambda ctx: f"{ctx['discriminator']} must be one of {ctx['expected_tags']}",
    "union_tag_not_found": lambda ctx: f"{ctx['discriminator']} is required",
}
"""The same, with what is allowed."""


def mistakes(
    errors: Sequence[ErrorDetails], model: type[BaseModel] | None = None, *, within: int = 0
) -> Iterator[tuple[str, str]]:
    """Field and mistake of each error; never the value, which may be private.

    Args:
        errors: of pydantic.
        model: of the message, to name the fields that it has.
        within: how many parts of a field's path lead to the message.
    """
    told: dict[str, list[str]] = {}
    for error in errors:
        loc = error["loc"] if error["type"] == "extra_forbidden" else _named(error["loc"])
        each = told.setdefault(".".join(str(part) for part in loc), [])
        if (wrong := _mistake(error, _at(model, loc[within:-1]))) not in each:
            each.append(wrong)
    for field, all_wrong in told.items():
        if not any(other.startswith(f"{field}.") for other in told):  # another form of the field came further
            yield field, " or ".join(all_wrong)


def _named(loc: tuple[int | str, ...]) -> tuple[int | str, ...]:
    """A path without the names that pydantic gives to the forms of a field which may have several."""
    return tuple(part for part in loc if isinstance(part, int) or not _FORM.fullmatch(part))


def joined_mistakes(errors: Sequence[ErrorDetails], model: type[BaseModel] | None = None) -> str:
    """The first five in one line."""
    return "; ".join(f"{field}: {mistake}" if field else mistake for field, mistake in mistakes(errors[:5], model))


def _mistake(error: ErrorDetails, model: type[BaseModel] | None) -> str:
    kind, ctx = error["type"], error.get("ctx", {})
    if kind in _PLAIN:
        return _PLAIN[kind]
    if kind in _BOUNDED and ctx:
        return _BOUNDED[kind](ctx)
    if kind == "extra_forbidden":
        return _unknown(str(error["loc"][-1]), model)
    if kind in {"value_error", "assertion_error"}:  # words of our own
        return error["msg"].removeprefix(_OF_OUR_OWN)
    return "is not allowed as it is"


def _unknown(name: str, model: type[BaseModel] | None) -> str:
    if model is None:
        return "unknown field"
    known = [field.alias or own for own, field in model.model_fields.items()]
    if close := get_close_matches(name, known, 1):
        return f"unknown field; did you mean '{close[0]}'?"
    return f"unknown field; known are {', '.join(sorted(known))}"


def _not_empty(least: int, of: str) -> str:
    return "must not be empty" if least == 1 else f"must have at least {least} {of}"


def _at(model: type[BaseModel] | None, path: Sequence[int | str]) -> type[BaseModel] | None:
    """The model of the object at a path within a message, where there is one alone."""
    for part in path:
        if model is None:
            return None
        if isinstance(part, int):
            continue
        named = {field.alias or own: field.annotation for own, field in model.model_fields.items()}
        model = _model_in(named.get(part))
    return model


def _model_in(annotation: Any) -> type[BaseModel] | None:  # noqa: ANN401 - any annotation
    """The one model that an annotation names: itself, in a list, or beside null."""
    if isinstance(annotation, type) and not get_args(annotation):
        return annotation if issubclass(annotation, BaseModel) else None
    parts = [each for each in get_args(annotation) if each is not type(None)]
    if get_origin(annotation) in (Union, UnionType) and len(parts) > 1:
        return None
    found = [each for each in map(_model_in, parts) if each is not None]
    return found[0] if len(found) == 1 else None

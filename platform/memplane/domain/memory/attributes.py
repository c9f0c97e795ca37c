"""Free attributes of a memory: JSON that every database can keep."""

import math
from collections.abc import Mapping

from memplane.domain.errors import InvalidRequest, LimitExceeded

MAX_DEPTH = 8
MAX_NODES = 1_000
MAX_CHARS = 16_000


def check_attributes(attributes: Mapping[str, object], field: str = "attributes") -> dict[str, object]:
    """The attributes, when they can be stored and given back unchanged.

    Raises:
        Invalid: a value is no JSON, not finite, or text that cannot be stored.
        LimitExceeded: too deep, too many values, or too long a text.
    """
    waiting: list[tuple[object, str, int]] = [(dict(attributes), field, 1)]
    nodes = 0
    while waiting:
        value, path, depth = waiting.pop()
        nodes += 1
        if depth > MAX_DEPTH or nodes > MAX_NODES:
            raise LimitExceeded(f"{path}: at most {MAX_DEPTH} levels and {MAX_NODES} values", field=field)
        match value:
            case str():
                _check_text(value, path)
            case float() if not math.isfinite(value):
                raise InvalidRequest(f"{path}: a number must be finite", field=field)
            case int() if abs(value) >= 2**63:
                raise InvalidRequest(f"{path}: a whole number must fit 64 bits", field=field)
            case None | bool() | int() | float():
                pass
            case list() | tuple():
                waiting += [(item, f"{path}[{i}]", depth + 1) for i, item in enumerate(value)]
            case Mapping():
                for key, item in value.items():
                    _check_text(str(key), f"{path}: a key")
                    waiting.append((item, f"{path}.{key}", depth + 1))
            case _:
                raise InvalidRequest(f"{path}: {type(value).__name__} is no JSON value", field=field)
    return dict(attributes)


def _check_text(value: str, path: str) -> None:
    if len(value) > MAX_CHARS:
        raise LimitExceeded(f"{path}: {len(value)} characters, at most {MAX_CHARS}")
    if "\x00" in value or any(0xD800 <= ord(c) <= 0xDFFF for c in value):
        raise InvalidRequest(f"{path}: holds a NUL or a lone surrogate")

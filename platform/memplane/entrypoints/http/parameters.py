"""What a route takes after the question mark: nothing else, and nothing twice of which it takes one.

A misspelt filter that is passed over answers about everything. Of two users in one address, one program means the first
and another the last.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import get_args, get_origin

from fastapi.dependencies.models import Dependant
from pydantic import BaseModel
from starlette.datastructures import QueryParams

from memplane.domain.errors import InvalidRequest

_LONGEST = 64
"""Characters of a name that a message repeats."""


def parameters_of(dependant: Dependant) -> Mapping[str, bool]:
    """The parameters of a route, and of each whether it may be given more than once."""
    found: dict[str, bool] = {}
    for each in dependant.query_params:
        annotation = each.field_info.annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            found |= {field.alias or name: _many(field.annotation) for name, field in annotation.model_fields.items()}
        else:
            found[each.alias] = _many(annotation)
    for nested in dependant.dependencies:
        found |= parameters_of(nested)
    return found


def refuse_others(given: QueryParams, known: Mapping[str, bool]) -> None:
    """Refuse a parameter that the route does not know, or that is given twice and may not.

    Raises:
        Invalid: naming the parameter.
    """
    for name in given:
        if name not in known:
            near = get_close_matches(name[:_LONGEST], known, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"known are: {', '.join(known) or 'none'}"
            raise InvalidRequest(f"the parameter '{name[:_LONGEST]}' is not known here; {hint}", field=name[:_LONGEST])
        if not known[name] and len(given.getlist(name)) > 1:
            raise InvalidRequest(f"the parameter '{name}' is given more than once", field=name)


def _many(annotation: object) -> bool:
    return get_origin(annotation) in (list, tuple, set) or any(_many(each) for each in get_args(annotation))

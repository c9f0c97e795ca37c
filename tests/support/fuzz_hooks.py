"""Loaded by Schemathesis: the key with which it asks is not ended by what it asks."""

import os
import secrets
from typing import Any

import schemathesis


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: dict[str, Any]) -> None:  # noqa: ANN401 - the tool's own types
    """Name another key in the place of its own."""
    del context, kwargs
    if (case.path_parameters or {}).get("key_id") == os.environ["FUZZ_KEEPS"]:
        case.path_parameters["key_id"] = secrets.token_hex(6)

"""How tests look into a database of either kind."""

from collections.abc import Callable, Mapping
from typing import Any

Rows = Callable[[str, str, Mapping[str, object]], list[dict[str, Any]]]
"""From a tenant, a statement with psycopg's placeholders and their values, the rows."""

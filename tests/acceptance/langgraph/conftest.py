"""A database of either kind, for savers that open it themselves."""

import pytest

from support.cluster import Database
from support.files import File


@pytest.fixture
def place(storage: str, request: pytest.FixtureRequest) -> Database | File:
    """A migrated database for this test alone."""
    found: Database | File = request.getfixturevalue("database" if storage == "postgres" else "file")
    return found

"""The tests of the contract's promises can fail: each check notices when a protection is taken away, and only then."""

import pytest

from support.callers import Tenant
from support.promises.breaks import BREAKS, Broken


def faults(tenant: Tenant, broken: Broken, *, whole: bool) -> list[str]:
    """What the check finds, with the protection or without it."""
    with pytest.MonkeyPatch.context() as patch:
        for owner, name, instead in (*broken.given, *(() if whole else (broken.patch,))):
            patch.setattr(owner, name, instead)
        return broken.check(tenant)


@pytest.fixture
def storage() -> str:
    """The rules that are broken are the same for every database; the guarding tests run on each."""
    return "postgres"


@pytest.mark.parametrize("broken", BREAKS, ids=str)
@pytest.mark.breaks
def test_a_break_is_noticed(tenant: Tenant, broken: Broken) -> None:
    assert faults(tenant, broken, whole=False)


@pytest.mark.parametrize("broken", BREAKS, ids=str)
def test_the_same_check_finds_nothing_where_nothing_is_broken(tenant: Tenant, broken: Broken) -> None:
    assert faults(tenant, broken, whole=True) == []

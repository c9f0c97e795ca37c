"""What each database has is declared once, refused with what to use instead, and told in one table."""

from pathlib import Path

import pytest

from memplane.domain.errors import NotSupported
from memplane.domain.policy.capabilities import MEANINGS, POSTGRES, SQLITE, Capability

DOCUMENT = Path(__file__).parents[2] / "docs" / "storage.md"


def row(capability: Capability) -> str:
    held = ("yes" if capability in kind else "no" for kind in (POSTGRES, SQLITE))
    meaning = MEANINGS[capability]
    return f"| `{capability}` | {meaning.what} | {' | '.join(held)} | {meaning.instead} |"


def test_every_capability_has_words_and_differs() -> None:
    assert set(MEANINGS) == set(Capability)
    for capability in Capability:
        assert (capability in POSTGRES) != (capability in SQLITE)


@pytest.mark.parametrize("kind", [POSTGRES, SQLITE])
def test_what_is_missing_is_refused_with_what_to_use_instead(kind: object) -> None:
    assert isinstance(kind, type(POSTGRES))
    for capability in Capability:
        if capability in kind:
            kind.require(capability)
            continue
        with pytest.raises(NotSupported) as refused:
            kind.require(capability)
        assert refused.value.extra == {"capability": capability, "storage": kind.storage}
        assert MEANINGS[capability].instead in refused.value.detail


def test_the_table_of_the_document_is_the_declaration() -> None:
    told = [line for line in DOCUMENT.read_text().splitlines() if line.startswith("| `")]
    assert told == [row(capability) for capability in Capability]

"""Which embedding model is in force: what is recorded of it, and the way of a change."""

import numpy as np
import pytest

from memplane.application.recall.search_material import Query, SearchMaterial, TextVectors
from memplane.domain.errors import EmbeddingMismatch, StateConflict
from memplane.domain.language.terms import terms
from memplane.domain.ranking.embedding_models import Column, EmbeddingChange, EmbeddingModel, InForce, Phase

OLD, NEW = EmbeddingModel("small-8", 8), EmbeddingModel("large-16", 16, "abc")


def test_a_change_from_its_beginning_to_its_end() -> None:
    rest = InForce(OLD)
    assert rest.write_models == {Column.FIRST: OLD}
    filling = rest.begin_change(NEW)
    assert filling.write_models == {Column.FIRST: OLD, Column.SECOND: NEW}
    assert filling.model == OLD
    clearing = filling.switch()
    assert clearing.write_models == {Column.SECOND: NEW}
    assert clearing.change == EmbeddingChange(Phase.CLEARING, OLD)
    done = clearing.clear_column()
    assert done == InForce(NEW, Column.SECOND)
    assert done.begin_change(OLD).switch().clear_column() == rest


def test_one_that_is_cancelled_leaves_what_was() -> None:
    cancelled = InForce(OLD).begin_change(NEW).cancel_change()
    assert cancelled.write_models == {Column.FIRST: OLD}
    assert cancelled.change == EmbeddingChange(Phase.CLEARING, NEW)
    assert cancelled.clear_column() == InForce(OLD)


def test_what_cannot_be() -> None:
    rest, filling = InForce(OLD), InForce(OLD).begin_change(NEW)
    with pytest.raises(StateConflict, match=r"filling large-16 \(16 dimensions, files abc\)"):
        filling.begin_change(NEW)
    with pytest.raises(StateConflict, match="is in force already"):
        rest.begin_change(OLD)
    with pytest.raises(StateConflict, match="no change"):
        rest.cancel_change()
    with pytest.raises(StateConflict, match="are being cleared already"):
        filling.switch().cancel_change()


@pytest.mark.parametrize(
    "state",
    [
        InForce(OLD),
        InForce(NEW, Column.SECOND),
        InForce(OLD).begin_change(NEW),
        InForce(OLD).begin_change(NEW).switch(),
    ],
)
def test_it_is_read_as_it_was_recorded(state: InForce) -> None:
    assert InForce.of(state.as_json()) == state


def test_at_rest_it_is_recorded_as_by_a_version_without_changes() -> None:
    assert InForce(OLD).as_json() == {"model": "small-8", "dimensions": 8}
    assert InForce(NEW).as_json() == {"model": "large-16", "dimensions": 16, "fingerprint": "abc"}
    assert InForce.of(None) == InForce()


@pytest.mark.parametrize(
    "record", ["odd", {"model": "m"}, {"model": "m", "dimensions": 8, "change": {"phase": "odd"}}, 7]
)
def test_a_record_of_another_form_is_refused(record: object) -> None:
    with pytest.raises(EmbeddingMismatch, match="were embedded by"):
        InForce.of(record)


def test_the_vector_of_the_model_in_force_is_taken() -> None:
    one, other = np.ones(8, dtype=np.float32), np.ones(16, dtype=np.float32)
    both = TextVectors({OLD.key: one, NEW.key: other})
    material, query = SearchMaterial(terms("soup"), both), Query(terms("soup"), (), both)
    assert material.vector(NEW) is other
    assert query.by(OLD).vector is one
    with pytest.raises(EmbeddingMismatch, match=r"changed to large-16.*MEMPLANE_NEXT_EMBEDDING_MODEL"):
        SearchMaterial(terms("soup"), TextVectors({OLD.key: one})).vector(NEW)

"""Which embedding model is in force: what is recorded of it, and the way of a change."""

import numpy as np
import pytest

from memplane.application.recall.search_material import Query, SearchMaterial, Vectors
from memplane.domain.errors import Conflict, EmbeddingMismatch
from memplane.domain.language.terms import terms
from memplane.domain.ranking.embedding_models import Change, Column, EmbeddingModel, InForce, Phase

OLD, NEW = EmbeddingModel("small-8", 8), EmbeddingModel("large-16", 16, "abc")


def test_a_change_from_its_beginning_to_its_end() -> None:
    rest = InForce(OLD)
    assert rest.stored == {Column.FIRST: OLD}
    filling = rest.begun(NEW)
    assert filling.stored == {Column.FIRST: OLD, Column.SECOND: NEW}
    assert filling.model == OLD
    clearing = filling.switched()
    assert clearing.stored == {Column.SECOND: NEW}
    assert clearing.change == Change(Phase.CLEARING, OLD)
    done = clearing.cleared()
    assert done == InForce(NEW, Column.SECOND)
    assert done.begun(OLD).switched().cleared() == rest


def test_one_that_is_cancelled_leaves_what_was() -> None:
    cancelled = InForce(OLD).begun(NEW).cancelled()
    assert cancelled.stored == {Column.FIRST: OLD}
    assert cancelled.change == Change(Phase.CLEARING, NEW)
    assert cancelled.cleared() == InForce(OLD)


def test_what_cannot_be() -> None:
    rest, filling = InForce(OLD), InForce(OLD).begun(NEW)
    with pytest.raises(Conflict, match=r"filling large-16 \(16 dimensions, files abc\)"):
        filling.begun(NEW)
    with pytest.raises(Conflict, match="is in force already"):
        rest.begun(OLD)
    with pytest.raises(Conflict, match="no change"):
        rest.cancelled()
    with pytest.raises(Conflict, match="are being cleared already"):
        filling.switched().cancelled()


@pytest.mark.parametrize(
    "state",
    [InForce(OLD), InForce(NEW, Column.SECOND), InForce(OLD).begun(NEW), InForce(OLD).begun(NEW).switched()],
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
    both = Vectors({OLD.key: one, NEW.key: other})
    material, query = SearchMaterial(terms("soup"), both), Query(terms("soup"), (), both)
    assert material.vector(NEW) is other
    assert query.by(OLD).vector is one
    with pytest.raises(EmbeddingMismatch, match=r"changed to large-16.*MEMPLANE_NEXT_EMBEDDING_MODEL"):
        SearchMaterial(terms("soup"), Vectors({OLD.key: one})).vector(NEW)

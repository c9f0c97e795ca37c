"""The default embedding: a text has the same vector in whatever company it comes."""

import numpy as np
import pytest

from memplane.adapters.embeddings import wordllama
from memplane.adapters.embeddings.wordllama import WordLlama

TEXTS = ["The user owns a grand piano.", "", "A boat.", "word " * 700, "The user owns a grand piano.", "東京 🏛️"]


@pytest.mark.parametrize("together", [1, 20, 16_384])
def test_texts_together_and_alone_have_the_same_vectors(monkeypatch: pytest.MonkeyPatch, together: int) -> None:
    monkeypatch.setattr(wordllama, "TOGETHER", together)
    model = WordLlama()
    several, alone = model.encode(TEXTS), [model.encode([text])[0] for text in TEXTS]
    assert [None if each is None else each.tolist() for each in several] == [
        None if each is None else each.tolist() for each in alone
    ]
    assert several[1] is None
    assert several[0] is not None
    assert several[2] is not None
    assert several[0].tolist() != several[2].tolist()  # the control
    assert float(np.linalg.norm(several[0])) == pytest.approx(1.0, abs=1e-5)
    assert model.encode([]) == []

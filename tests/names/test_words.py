"""Documents of words: topics know the words of their vocabulary, and say them."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

import caviar as cv

WORDS = ["goal", "ball", "law", "vote"]
DOCUMENTS = [["goal", "ball", "goal"], ["ball", "goal"], ["vote", "law", "vote"], ["law", "vote"]] * 3


def _counts() -> np.ndarray:
    return np.array([[document.count(word) for word in WORDS] for document in DOCUMENTS])


def _lda(**arguments: object) -> cv.LatentDirichletAllocation:
    return cv.LatentDirichletAllocation(
        2, doc_topic_prior=0.1, topic_word_prior=0.01, random_state=0, **arguments
    )


def test_documents_may_be_lists_of_words() -> None:
    model = cv.models.latent_dirichlet_allocation(2, 4, vocabulary=WORDS)
    posterior = model.fit({"word": DOCUMENTS}, seed=0)
    plain = cv.models.latent_dirichlet_allocation(2, 4).fit({"word": csr_array(_counts())}, seed=0)
    assert posterior.elbo == pytest.approx(plain.elbo, rel=1e-9)
    np.testing.assert_allclose(posterior["topics"].mean, plain["topics"].mean, rtol=1e-6)
    new = posterior.local({"word": [["goal", "goal"], ["vote"]]})["proportions"].mean
    expected = plain.local({"word": csr_array([[2, 0, 0, 0], [0, 0, 0, 1]])})["proportions"].mean
    np.testing.assert_allclose(new, expected, rtol=1e-6)
    with pytest.raises(
        cv.DataError, match=r"'word' has 'golf' in row 1, which is not one of .*Did you mean 'goal'"
    ):
        posterior.local({"word": [["goal", "golf"]]})


def test_words_of_documents_are_learnt() -> None:
    posterior = cv.models.latent_dirichlet_allocation(2, 4).fit({"word": DOCUMENTS}, seed=0)
    assert posterior.names.entries("topics") == ("ball", "goal", "law", "vote")


def test_summaries_and_plots_of_topics_say_words() -> None:
    model = cv.models.latent_dirichlet_allocation(2, 4, vocabulary=WORDS)
    posterior = model.fit({"word": csr_array(_counts())}, seed=0)
    assert "vote, topic 1" in [row.index for row in posterior.summary().rows]
    axes = cv.plot.topic_words(posterior, n_words=2)
    drawn = {frozenset(label.get_text() for label in ax.get_yticklabels()) for ax in axes}
    assert drawn == {frozenset({"goal", "ball"}), frozenset({"vote", "law"})}
    plt.close("all")


@pytest.mark.parametrize("given", ["vocabulary", "columns"])
def test_an_estimator_knows_its_words(given: str, tmp_path: Path) -> None:
    counts = _counts()
    if given == "vocabulary":
        lda = clone(_lda(vocabulary=np.array(WORDS, dtype=object))).fit(csr_array(counts))
    else:
        lda = _lda().fit(pd.DataFrame(counts, columns=WORDS))
    assert list(lda.vocabulary_) == WORDS
    shares = lda.components_ / lda.components_.sum(axis=1, keepdims=True)
    assert lda.top_words(2) == [[WORDS[v] for v in np.argsort(-own)[:2]] for own in shares]
    lda.save(tmp_path / "topics.caviar")
    loaded = cv.load(tmp_path / "topics.caviar")
    assert loaded.top_words(2) == lda.top_words(2)
    assert cv.report.column_names(loaded) == tuple(WORDS)
    axes = cv.plot.topic_words(loaded, n_words=1)
    assert {ax.get_yticklabels()[0].get_text() for ax in axes} == {words[0] for words in lda.top_words(1)}
    plt.close("all")


def test_a_vocabulary_is_a_word_for_each_column() -> None:
    counts = _counts()
    with pytest.raises(cv.ParameterError, match="X has 4 columns, but vocabulary has 2 words"):
        _lda(vocabulary=["a", "b"]).fit(counts)
    with pytest.raises(cv.ParameterError, match=r"sorted\(vocabulary, key=vocabulary.get\)"):
        _lda(vocabulary={"goal": 0}).fit(counts)
    with pytest.raises(cv.ParameterError, match="in another order"):
        _lda(vocabulary=WORDS[::-1]).fit(pd.DataFrame(counts, columns=WORDS))
    with pytest.raises(AttributeError, match="words of these topics are not known"):
        _lda().fit(counts).top_words()

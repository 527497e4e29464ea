"""Saved topics: shown by their words; documents are predicted, drawn and reported as counts of words."""

import json

import numpy as np
import pytest
from scipy.sparse import csr_array, save_npz

import caviar as cv
from caviar.data import read_table, write_table

WORDS = ["goal", "ball", "vote", "law"]
COUNTS = np.array([[6, 4, 0, 0], [5, 5, 0, 0], [0, 0, 5, 5], [0, 0, 2, 8], [5, 5, 6, 4]])


@pytest.fixture
def lda(tmp_path):
    """Return topics, beside files of them and of the documents."""
    fitted = cv.LatentDirichletAllocation(
        2, doc_topic_prior=0.1, topic_word_prior=0.01, random_state=0, n_init=3
    )
    fitted.fit(COUNTS).save(tmp_path / "lda.caviar", about={"columns": WORDS, "source": "news.csv"})
    write_table(tmp_path / "news.csv", {**dict(zip(WORDS, COUNTS.T, strict=True)), "rare": COUNTS[:, 0]})
    save_npz(tmp_path / "news.npz", csr_array(COUNTS))
    return fitted


@pytest.mark.slow
def test_topics_are_shown_by_their_words(run, lda, tmp_path):
    shown = run("show", tmp_path / "lda.caviar").stdout
    lines = shown.splitlines()
    assert lines[0] == "latent Dirichlet allocation, 2 topics of 4 words, 5 documents"
    assert any("vote, law" in line or "law, vote" in line for line in lines)
    assert "fitted to news.csv" in lines
    document = json.loads(run("show", tmp_path / "lda.caviar", "--json").stdout)
    mean = lda.components_ / lda.components_.sum(axis=1, keepdims=True)
    for topic in document["topics"]:
        assert topic["words"] == pytest.approx(dict(zip(WORDS, mean[topic["topic"]], strict=True)))
    assert sum(topic["share"] for topic in document["topics"]) == pytest.approx(1)
    assert document["elbo"] == lda.elbo_


@pytest.mark.slow
@pytest.mark.parametrize("name", ["news.csv", "news.npz"])
def test_documents_get_the_proportions_of_the_estimator(run, lda, tmp_path, name):
    result = run("predict", tmp_path / "lda.caviar", tmp_path / name, "-o", tmp_path / "out.csv")
    assert (result.exit_code, result.stderr) == (0, "")
    written = read_table(tmp_path / "out.csv")
    assert written.columns == ("topic", "topic_0", "topic_1")
    np.testing.assert_allclose(written.values[:, 1:], lda.transform(COUNTS))
    np.testing.assert_array_equal(written.values[:, 0], lda.transform(COUNTS).argmax(axis=1))


@pytest.mark.slow
def test_drawn_documents_have_the_average_length(run, lda, tmp_path):
    run("sample", tmp_path / "lda.caviar", "-n", 40, "--seed", 1, "-o", tmp_path / "new.parquet")
    drawn = read_table(tmp_path / "new.parquet")
    assert drawn.columns == tuple(WORDS)
    np.testing.assert_array_equal(drawn.values.sum(axis=1), 12)
    # few documents have words of both topics: the proportions have a concentration of 0.1
    shares = drawn.values[:, :2].sum(axis=1) / 12
    assert np.mean((shares < 0.2) | (shares > 0.8)) > 0.6


def test_a_report_names_the_words(run, lda, tmp_path):
    result = run("report", tmp_path / "lda.caviar", tmp_path / "news.npz", "-o", tmp_path / "r.html")
    assert result.exit_code == 0
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Topics by latent Dirichlet allocation: news.csv" in text
    assert "goal, topic 0" in text


@pytest.mark.slow
def test_other_vocabularies_are_refused(run, lda, tmp_path):
    save_npz(tmp_path / "other.npz", csr_array(COUNTS[:, :3]))
    (tmp_path / "bad.npz").write_bytes(b"nothing")
    np.savez(tmp_path / "dense.npz", counts=COUNTS)
    write_table(tmp_path / "other.csv", {"goal": COUNTS[:, 0]})
    for name, words in (
        ("other.npz", "was fitted to 4 words"),
        ("bad.npz", "bad.npz is not a sparse matrix"),
        ("dense.npz", "dense.npz is not a sparse matrix"),
        ("other.csv", "no column 'ball'"),
    ):
        result = run("predict", tmp_path / "lda.caviar", tmp_path / name, "-o", "-")
        assert result.exit_code == 2
        assert words in result.stderr
    assert run("sample", tmp_path / "lda.caviar", tmp_path / "news.csv").exit_code == 2

"""Documents in files are the counts that they hold, and fits of them are those of the counts in memory to the bit."""

import pickle

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import CountVectorizer

import caviar as cv
from caviar.engine.rows.row_map import RowMap

pytestmark = pytest.mark.filterwarnings("ignore:.*max_iter passes were made")

TEXTS = ["a goal a ball", "law", "", "vote law vote law vote", "ball goal goal"]
WORDS = ["ball", "goal", "law", "vote"]


def corpus():
    """Return documents of political blogs, few words of them."""
    found = cv.datasets.load_political_blogs()
    counts = csr_array(found.counts[:300, :200].astype(float))
    counts.sort_indices()
    return counts, found.words[:200]


def lists(counts, words):
    """Return a table with a row for each document."""
    runs = list(zip(counts.indptr[:-1], counts.indptr[1:], strict=True))
    return pa.table(
        {
            "words": [[words[j] for j in counts.indices[a:b]] for a, b in runs],
            "counts": [counts.data[a:b].astype(int).tolist() for a, b in runs],
        }
    )


def rows(counts, words):
    """Return a table with a row for each word of a document."""
    owners = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    return pa.table({"id": owners, "words": np.array(words)[counts.indices], "counts": counts.data})


def is_same(documents, counts):
    return documents.shape == counts.shape and not (documents.to_numpy() != counts).nnz


def test_tokens_are_counted_as_scikit_learn_counts_them():
    vectorizer = CountVectorizer(token_pattern=r"\S\S+")
    counts = vectorizer.fit_transform(TEXTS)
    tokens = [vectorizer.build_analyzer()(text) for text in TEXTS]
    found = cv.scan_documents(pa.table({"words": tokens}), counts=None, vocabulary=WORDS)
    assert is_same(found, counts)
    assert found.total == counts.sum()
    free = cv.scan_documents(pa.table({"words": tokens}), counts=None)
    assert set(free.column_names) == set(WORDS)
    order = [free.column_names.index(word) for word in WORDS]
    assert not (free.to_numpy()[:, order] != counts).nnz


def test_words_outside_the_vocabulary_are_left_out_and_counted():
    table = pa.table({"words": [["goal", "ball", "law"], ["vote"]], "counts": [[3, 1, 2], [5]]})
    found = cv.scan_documents(table, vocabulary=["law", "goal"])
    np.testing.assert_array_equal(found[:].toarray(), [[2, 3], [0, 0]])
    assert found.left_out == 6


@pytest.mark.parametrize("group", [40, 1_000])
@pytest.mark.parametrize("layout", ["lists", "rows"])
def test_parquet_has_the_counts_that_were_written(tmp_path, monkeypatch, layout, group):
    monkeypatch.setattr("caviar.data.document_batches._BATCH_WORDS", 97)
    counts, words = corpus()
    table, named = (lists(counts, words), None) if layout == "lists" else (rows(counts, words), "id")
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=group)
    found = cv.scan_documents(tmp_path / "a.parquet", document=named, vocabulary=words)
    empty = np.diff(counts.indptr) == 0
    # a document without words has no rows
    assert is_same(found, counts if layout == "lists" else counts[~empty])


@pytest.mark.parametrize("kind", ["query", "relation", "reader", "csv"])
def test_other_sources_have_the_same_counts(tmp_path, kind):
    counts, words = corpus()
    counts = counts[np.diff(counts.indptr) > 0]
    table = rows(counts, words)
    settings = {"document": "id", "vocabulary": words}
    if kind == "query":
        pq.write_table(table, tmp_path / "a.parquet")
        sql = "select * from data order by id, words desc"
        found = cv.scan_documents(tmp_path / "a.parquet", sql=sql, **settings)
    elif kind == "relation":
        found = cv.scan_documents(duckdb.sql('select * from "table" order by id'), **settings)
    elif kind == "reader":
        found = cv.scan_documents(table.to_reader(max_chunksize=50), **settings)
    else:
        with open(tmp_path / "a.csv", "w") as file:
            file.write("id,words,counts\n")
            for row in table.to_pylist():
                file.write(f"{row['id']},{row['words']},{row['counts']:g}\n")
        found = cv.scan_documents(tmp_path / "a.csv", **settings)
    assert is_same(found, counts)


def test_words_may_be_numbers_of_columns():
    table = pa.table(
        {"words": pa.array([[3, 0], [1, 1]], pa.list_(pa.int16())), "counts": [[1.5, 2], [1, 1]]}
    )
    found = cv.scan_documents(table)
    np.testing.assert_array_equal(found[:].toarray(), [[2, 0, 0, 1.5], [0, 2, 0, 0]])
    assert found.column_names is None


@pytest.mark.parametrize(
    ("table", "settings", "message"),
    [
        ({"words": [["a"]]}, {}, "no column 'counts', but words; pass counts=None"),
        ({"words": [["a", "b"]], "counts": [[1]]}, {}, "has 2 entries in 'words' and 1 in 'counts'"),
        ({"words": [["a"]], "counts": [[-1]]}, {}, "not negative; got -1"),
        ({"words": [["a"]], "counts": [[None]]}, {}, "a missing value"),
        ({"words": [["a", None]]}, {"counts": None}, "a missing word"),
        ({"words": [[-1]]}, {"counts": None}, "numbered from 0; got -1"),
        ({"words": [[1.5]]}, {"counts": None}, "its type is double"),
        ({"words": ["a"], "counts": [1]}, {}, "name the column of the documents"),
        ({"id": [1, 0], "words": ["a", "b"], "counts": [1, 1]}, {"document": "id"}, "0 comes after 1"),
        ({"id": [1, None], "words": ["a", "b"], "counts": [1, 1]}, {"document": "id"}, "'id' has a missing"),
        ({"words": [], "counts": []}, {"document": None}, "must have a list|no documents"),
        ({"words": [[7]]}, {"counts": None, "vocabulary": WORDS}, "word number 7, and vocabulary has 4"),
    ],
)
def test_impossible_documents_are_refused(table, settings, message):
    with pytest.raises(cv.DataError, match=message):
        cv.scan_documents(pa.table(table), **settings)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("method", ["batch", "incremental", "online"])
def test_a_fit_is_that_of_the_counts_in_memory_to_the_bit(method):
    counts, words = corpus()
    documents = cv.scan_documents(lists(counts, words), vocabulary=words)
    settings = {"random_state": 0, "max_iter": 3, "learning_method": method, "n_jobs": 1}
    weights = np.random.default_rng(0).integers(0, 3, counts.shape[0])
    lda = cv.LatentDirichletAllocation(4, **settings).fit(documents, sample_weight=weights)
    held = cv.LatentDirichletAllocation(4, vocabulary=words, **settings).fit(counts, sample_weight=weights)
    np.testing.assert_array_equal(lda.components_, held.components_)
    assert (lda.elbo_, lda.bound_) == (held.elbo_, held.bound_)
    assert lda.top_words(5) == held.top_words(5)
    np.testing.assert_array_equal(lda.transform(documents), held.transform(counts))
    assert lda.score(documents, sample_weight=weights) == held.score(counts, sample_weight=weights)
    assert lda.perplexity(documents) == held.perplexity(counts)
    assert lda.completion_perplexity(documents) == held.completion_perplexity(counts)


@pytest.mark.slow
def test_streams_of_documents_are_those_of_counts():
    counts, words = corpus()
    documents = cv.scan_documents(lists(counts, words), vocabulary=words)
    for settings in ({}, {"total_samples": 300, "batch_size": 64}):
        lda = cv.LatentDirichletAllocation(3, random_state=0, max_iter=2, n_jobs=1, **settings)
        held = cv.LatentDirichletAllocation(
            3, random_state=0, max_iter=2, n_jobs=1, vocabulary=words, **settings
        )
        for start in (0, 100, 200):
            lda.partial_fit(documents.between(start, start + 100))
            held.partial_fit(counts[start : start + 100])
        np.testing.assert_array_equal(lda.components_, held.components_)


def test_learnt_priors_come_from_a_sample(monkeypatch):
    counts, words = corpus()
    documents = cv.scan_documents(lists(counts, words), vocabulary=words)
    settings = {"random_state": 0, "max_iter": 2, "doc_topic_prior": "learn", "n_jobs": 1}
    whole = cv.LatentDirichletAllocation(3, **settings).fit(documents)
    held = cv.LatentDirichletAllocation(3, vocabulary=words, **settings).fit(counts)
    np.testing.assert_array_equal(whole.components_, held.components_)
    monkeypatch.setattr("caviar.estimators.topics.documents_in_blocks._MOST_NUMBERS", counts.nnz)
    part = cv.LatentDirichletAllocation(3, **settings).fit(documents)
    assert not np.array_equal(part.doc_topic_prior_, whole.doc_topic_prior_)


def test_what_needs_every_word_is_refused():
    counts, words = corpus()
    documents = cv.scan_documents(lists(counts, words), vocabulary=words)
    with pytest.raises(cv.ParameterError, match=r"documents\.to_numpy"):
        cv.LatentDirichletAllocation(3, method="collapsed").fit(documents)
    model = cv.models.latent_dirichlet_allocation(3, 200)
    with pytest.raises(cv.DataError, match="a row for each token"):
        model.fit({"word": documents}, data_plate="token")
    with pytest.raises(cv.DataError, match=r"documents\[start:stop\]"):
        model.fit({"word": documents}, max_iter=0).local({"word": documents})
    shares = cv.Dirichlet("shares", np.ones(200))
    rows_of_counts = cv.Model(cv.Multinomial("word", None, shares, plates=cv.Plate("document")))
    with pytest.raises(cv.DataError, match="model of topics"):
        rows_of_counts.fit({"word": documents})
    with pytest.raises(cv.DataError, match="LatentDirichletAllocation"):
        cv.BayesianGaussianMixture(2).fit(documents)


def test_documents_travel_without_their_counts():
    counts, words = corpus()
    documents = cv.scan_documents(lists(counts, words), vocabulary=words)
    packed = pickle.dumps(documents)
    assert len(packed) < 10_000
    assert is_same(pickle.loads(packed), counts)
    part = documents.between(20, 50)
    assert is_same(part, counts[20:50])
    assert (part.total, part.n_counts) == (counts[20:50].sum(), counts[20:50].nnz)
    documents._folder.joinpath("words").write_bytes(b"")
    with pytest.raises(cv.DataError, match="was cut off"):
        documents[:10]


@pytest.mark.slow
@pytest.mark.parametrize(("method", "keeps"), [("online", False), ("batch", True)])
def test_online_steps_keep_nothing_of_the_documents(monkeypatch, method, keeps):
    counts, words = corpus()
    documents = cv.scan_documents(lists(counts, words), vocabulary=words)
    kept = []

    def look(row_map, *arguments, **settings):
        found = looked(row_map, *arguments, **settings)
        if isinstance(row_map.source, cv.data.ArrayRows):
            kept.append(len(found.warm))
        return found

    def whole(documents):
        raise AssertionError("all documents in memory")

    looked = RowMap.look
    monkeypatch.setattr(cv.data.Documents, "to_numpy", whole)
    monkeypatch.setattr(RowMap, "look", look)
    cv.LatentDirichletAllocation(3, learning_method=method, max_iter=1, random_state=0).fit(documents)
    assert kept
    assert bool(max(kept)) == keeps

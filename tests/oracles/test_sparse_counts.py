"""Sparse counts of a Multinomial: the same fit as of the dense array, at every iteration, and exact evidence."""

from types import MappingProxyType

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import dirichlet_multinomial

import caviar as cv
from caviar.data import ArrayRows
from caviar.engine.design.keys import ColumnKey
from caviar.engine.rows.subsample import sample_of
from caviar.engine.starts.products import columns
from caviar.testing import check_model

V, K, N = 30, 3, 500
DOC, TOPIC = cv.Plate("doc"), cv.Plate("topic", K)

FORMATS = {
    "csr array": sparse.csr_array,
    "csc array": sparse.csc_array,
    "coo array": sparse.coo_array,
    "csr matrix": sparse.csr_matrix,
    "coo matrix": sparse.coo_matrix,
    "lists": sparse.lil_array,
    "integers of one byte": lambda counts: sparse.csc_matrix(counts.astype("i1")),
    "single precision": lambda counts: sparse.csr_array(counts.astype("f4")),
}


@pytest.fixture(scope="module")
def counts():
    """Documents of about 12 words; two of them empty, and some twice."""
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(V, 0.2), K)
    lengths = [*rng.poisson(12, N - 22), 0, 0]
    rows = [rng.multinomial(length, topics[rng.integers(K)]) for length in lengths]
    return np.array([*rows, *rows[:20]])


def topics():
    return cv.Dirichlet("topics", np.full(V, 0.5), plates=TOPIC)


def mixture(trials=None):
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(K)), plates=DOC)
    return cv.Model(cv.Multinomial("words", trials, topics()[z], plates=DOC))


def plain():
    return cv.Model(cv.Multinomial("words", None, cv.Dirichlet("p", np.full(V, 0.3)), plates=DOC))


def sticks():
    p = cv.StickBreaking("p", 2.0, V)
    return cv.Model(cv.Multinomial("words", None, p, plates=DOC))


def shared():
    """Two kinds of words from one vector of probabilities: what a row tells it is a sum."""
    p = cv.Dirichlet("p", np.full(V, 0.3))
    return cv.Model(
        cv.Multinomial("words", None, p, plates=DOC), cv.Multinomial("title", None, p, plates=DOC)
    )


def grouped():
    return cv.Model(
        cv.Multinomial("words", None, topics()[cv.Data("group", plates=DOC)], plates=DOC),
    )


def chain():
    transition = cv.Dirichlet("transition", np.ones(K), plates=TOPIC)
    s = cv.MarkovChain("s", cv.Dirichlet("initial", np.ones(K)), transition, along=DOC)
    return cv.Model(cv.Multinomial("words", None, topics()[s], plates=DOC))


def own_probabilities():
    p = cv.Dirichlet("p", np.full(V, 0.3), plates=DOC)
    return cv.Model(cv.Multinomial("words", None, p, plates=DOC))


def two_leaves():
    """The label of a document is seen through its length in pages, too."""
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(K)), plates=DOC)
    pages = cv.Poisson("pages", cv.Gamma("rate", 1.0, 1.0, plates=TOPIC)[z], plates=DOC)
    return cv.Model(cv.Multinomial("words", None, topics()[z], plates=DOC), pages)


def assert_same_fit(one, other):
    """At every iteration: the sums differ in their order only."""
    assert one.n_iter == other.n_iter
    np.testing.assert_allclose(other.elbo_trace, one.elbo_trace, rtol=1e-11)
    for name in one:
        np.testing.assert_allclose(other[name].concentration, one[name].concentration, rtol=1e-9)


GROUP = np.random.default_rng(3).integers(0, K, N)
WEIGHTS = np.random.default_rng(4).integers(0, 3, N)
FITS = {
    "mixture": (mixture, {}, {"seed": 1}),
    "weights": (mixture, {}, {"seed": 3, "sample_weight": WEIGHTS}),
    "given labels": (mixture, {}, {"init": {"z": GROUP}}),
    "point masses": (mixture, {}, {"seed": 1, "point": ["weights"]}),
    "plain": (plain, {}, {}),
    "known labels": (grouped, {"group": GROUP}, {}),
    "known labels, weights": (grouped, {"group": GROUP}, {"sample_weight": WEIGHTS}),
    "chain": (chain, {}, {"seed": 1, "max_iter": 10}),
    "own probabilities": (own_probabilities, {}, {}),
}


@pytest.mark.thinned(2)
@pytest.mark.parametrize("name", FITS)
def test_the_fit_is_that_of_the_dense_array(name, counts):
    state, others, settings = FITS[name]
    fits = [
        state().fit({"words": words, **others}, tol=1e-10, **settings)
        for words in (counts, sparse.csr_array(counts))
    ]
    if settings.get("point"):
        np.testing.assert_allclose(fits[1].elbo_trace, fits[0].elbo_trace, rtol=1e-11)
    else:
        assert_same_fit(*fits)


def test_rare_words_do_not_hide_the_topics():
    """The start is as good as the labels that the documents were drawn with, among many words that are hardly used."""
    rng = np.random.default_rng(0)
    n_words = 600
    kinds, z = rng.dirichlet(np.full(n_words, 0.05), 8), rng.integers(0, 8, 1_000)
    words = np.array([rng.multinomial(60, kinds[k]) for k in z])
    q = cv.Dirichlet("topics", np.full(n_words, 0.5), plates=cv.Plate("topic", 8))
    label = cv.Categorical("z", cv.Dirichlet("weights", np.ones(8)), plates=DOC)
    model = cv.Model(cv.Multinomial("words", None, q[label], plates=DOC))
    best = model.fit({"words": words}, init={"z": z}).elbo
    for data in (words, sparse.csr_array(words)):
        assert model.fit({"words": data}, seed=0).elbo == pytest.approx(best, rel=1e-9)


def test_restarts_are_the_same(counts):
    """Which of them is returned is up to rounding where several end at one optimum."""
    one, other = (
        mixture().fit({"words": words}, seed=2, n_restarts=3) for words in (counts, sparse.csr_array(counts))
    )
    np.testing.assert_allclose(other.restart_elbos, one.restart_elbos, rtol=1e-11)


def test_another_leaf_beside_it(counts):
    pages = np.random.default_rng(5).poisson(4, N)
    one, other = (
        two_leaves().fit({"words": words, "pages": pages}, seed=0)
        for words in (counts, sparse.csr_array(counts))
    )
    np.testing.assert_allclose(other.elbo_trace, one.elbo_trace, rtol=1e-11)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_is_the_same_data(kind, counts):
    one = mixture().fit({"words": counts}, seed=1, max_iter=5, tol=0, accelerate=False)
    assert_same_fit(
        one, mixture().fit({"words": FORMATS[kind](counts)}, seed=1, max_iter=5, tol=0, accelerate=False)
    )


def test_explicit_zeros_and_entries_in_pieces_change_nothing(counts):
    row, column = np.nonzero(counts)
    values = counts[row, column]
    pieces = sparse.coo_array(
        (
            np.concatenate([values - 1, np.ones_like(values), np.zeros(100, int)]).astype("i1"),
            (np.append(np.tile(row, 2), np.arange(100)), np.append(np.tile(column, 2), np.full(100, 7))),
        ),
        shape=counts.shape,
    )
    unsorted = sparse.csr_array(counts)
    unsorted.indices, unsorted.data = unsorted.indices.copy(), unsorted.data.copy()
    for start, stop in zip(unsorted.indptr[:-1], unsorted.indptr[1:], strict=True):
        unsorted.indices[start:stop] = unsorted.indices[start:stop][::-1].copy()
        unsorted.data[start:stop] = unsorted.data[start:stop][::-1].copy()
    unsorted = sparse.csr_array((unsorted.data, unsorted.indices, unsorted.indptr), shape=counts.shape)
    before = unsorted.indices.copy(), pieces.data.copy()
    one = mixture().fit({"words": sparse.csr_array(counts)}, seed=1)
    for words in (pieces, unsorted):
        other = mixture().fit({"words": words}, seed=1)
        assert np.array_equal(one.elbo_trace, other.elbo_trace)
    assert np.array_equal(unsorted.indices, before[0])
    assert np.array_equal(pieces.data, before[1])


def test_order_of_the_rows_and_repetition_do_not_matter(counts):
    words = sparse.csr_array(counts)
    order = np.random.default_rng(6).permutation(N)
    times = np.random.default_rng(7).integers(1, 3, N)
    one = mixture().fit({"words": words}, seed=1)
    assert_same_fit(one, mixture().fit({"words": words[order]}, seed=1))
    repeated = mixture().fit({"words": words[np.repeat(np.arange(N), times)]}, seed=1)
    assert_same_fit(repeated, mixture().fit({"words": words}, seed=1, sample_weight=times))


@pytest.mark.parametrize("state", [mixture, plain, grouped])
def test_threads_give_the_same_bits(state, counts):
    data = {"words": sparse.vstack([sparse.csr_array(counts)] * 6), "group": np.tile(GROUP, 6)}
    if state is not grouped:
        del data["group"]
    one, three = (state().fit(data, seed=0, executor=threads) for threads in (1, 3))
    assert np.array_equal(one.elbo_trace, three.elbo_trace)
    for name in one:
        assert np.array_equal(one[name].concentration, three[name].concentration)


def test_exact_evidence(counts):
    """With one vector of probabilities the ELBO is the evidence: each document's density given those before it."""
    posterior = plain().fit({"words": sparse.csr_array(counts)})
    alpha, evidence, seen = np.full(V, 0.3), 0.0, np.zeros(V)
    for row in counts:
        evidence += dirichlet_multinomial.logpmf(row, alpha + seen, row.sum())
        seen += row
    assert posterior.elbo == pytest.approx(evidence, rel=1e-12)


def test_predictive_densities(counts):
    posterior = mixture().fit({"words": counts}, seed=1)
    found = posterior.log_predictive({"words": sparse.csr_array(counts[:50])})
    share = posterior["weights"].mean
    alpha = posterior["topics"].concentration
    for row, own in zip(counts[:50], found, strict=True):
        each = [dirichlet_multinomial.logpmf(row, alpha[k], row.sum()) + np.log(share[k]) for k in range(K)]
        assert own == pytest.approx(np.logaddexp.reduce(each), abs=1e-9)


EITHER = {
    "mixture": (mixture, {}),
    "known labels": (grouped, {"group": GROUP}),
    "plain": (plain, {}),
    "sticks": (sticks, {}),
    "shared": (shared, {"title": np.random.default_rng(9).integers(0, 2, (N, V))}),
}


@pytest.mark.parametrize(("state", "others"), EITHER.values(), ids=EITHER)
def test_a_posterior_takes_either(state, others, counts):
    posterior = state().fit({"words": counts, **others}, seed=1)
    dense, thin = {"words": counts, **others}, {"words": sparse.coo_matrix(counts), **others}
    assert posterior.elbo_at({}, thin) == pytest.approx(posterior.elbo_at({}, dense), rel=1e-11)
    assert posterior.elbo_at({}, thin, sample_weight=WEIGHTS) == pytest.approx(
        posterior.elbo_at({}, dense, sample_weight=WEIGHTS), rel=1e-11
    )
    np.testing.assert_allclose(posterior.log_predictive(thin), posterior.log_predictive(dense), atol=1e-10)
    if state is mixture:
        one, other = posterior.local(dense)["z"], posterior.local(thin)["z"]
        np.testing.assert_allclose(other.probabilities, one.probabilities, atol=1e-11)
        assert posterior.elbo_at({"z": other}, thin) == pytest.approx(posterior.elbo, rel=1e-9)


@pytest.mark.slow
def test_the_kit_and_densities_take_sparse_counts(counts):
    words = sparse.csr_array(counts[:30])
    model = mixture(counts[:30].sum(axis=1))
    check_model(model, {"words": words}).raise_if_failed()
    values = {"z": GROUP[:30], "topics": np.full((K, V), 1 / V), "weights": np.full(K, 1 / K)}
    one, other = (model.log_joint({"words": w, **values}) for w in (counts[:30], words))
    assert one == other


@pytest.mark.parametrize("most", [0, 100 * V])
def test_a_fit_writes_out_no_rows_but_the_sample_of_a_start(most, counts, monkeypatch):
    """The few columns that a sample is sorted by are all that becomes dense, and the sample if it is small."""
    written = set()

    def spied(self, *_, **__):
        if self.shape[1] > 4:
            written.add(self.shape)
        return sparse.coo_array(self).toarray()

    monkeypatch.setattr("caviar.engine.starts.trials.SAMPLE_ROWS", 100)
    monkeypatch.setattr(columns, "_MOST_NUMBERS", most)
    words = sparse.csr_array(counts)
    monkeypatch.setattr(sparse.csr_array, "toarray", spied)
    mixture().fit({"words": words}, seed=0, max_iter=3)
    assert written == ({(100, V)} if most else set())
    written.clear()
    # a chain's sample are its 500 rows in their order, and a model without labels to be guessed needs no points
    for state in (plain, chain):
        state().fit({"words": words}, seed=0, max_iter=3)
    grouped().fit({"words": words, "group": GROUP})
    assert not written


def test_rows_are_told_apart_by_their_values_whether_sparse_or_not(counts):
    """The subsample of a start is the same rows, in the same order, and empty rows are rows like any other."""
    others = MappingProxyType(
        {ColumnKey("a"): GROUP, ColumnKey("x"): np.random.default_rng(8).normal(size=(N, 2))}
    )
    dense = sample_of(ArrayRows({ColumnKey("words"): counts, **others}, N), largest=100)
    thin = sample_of(ArrayRows({ColumnKey("words"): sparse.csr_array(counts), **others}, N), largest=100)
    assert np.array_equal(thin.columns[ColumnKey("words")].toarray(), dense.columns[ColumnKey("words")])
    assert np.array_equal(thin.columns[ColumnKey("x")], dense.columns[ColumnKey("x")])
    assert np.array_equal(thin.row_weights, dense.row_weights)
    alone = sample_of(ArrayRows({ColumnKey("words"): sparse.csr_array(counts)}, N))
    distinct, times = np.unique(counts, axis=0, return_counts=True)
    found = alone.columns[ColumnKey("words")].toarray()
    order = np.lexsort(found.T[::-1])
    assert np.array_equal(found[order], distinct)
    assert np.array_equal(alone.row_weights[order], times)


def _broken(entry):
    """Return a matrix whose second entry, in row 2, is something else."""
    return sparse.csr_array(([1.0, entry, 2.0], ([0, 2, 3], [1, 0, 2])), shape=(4, V))


BAD = {
    "half a word": (_broken(0.5), "must hold counts, whole numbers from 0; row 2 has 0.5"),
    "negative": (_broken(-3.0), "row 2 has -3"),
    "NaN": (_broken(np.nan), "'words' has nan in row 2; sparse counts have no missing entries"),
    "infinite": (_broken(np.inf), "has inf in row 2"),
    "complex": (_broken(1.0).astype(complex), "must be numbers; got a sparse complex128"),
    "too few columns": (sparse.csr_array((4, V - 1)), "dimension 30"),
    "no rows": (sparse.csr_array((0, V)), "are empty"),
    "indices beyond the columns": (
        sparse.csr_array((np.ones(1), np.array([0]), np.array([0, 1])), shape=(1, V)),
        "not a valid sparse matrix",
    ),
}
BAD["indices beyond the columns"][0].indices[0] = V + 5


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_count_is_refused(case):
    words, message = BAD[case]
    with pytest.raises(cv.CaviarError, match=message):
        mixture().fit({"words": words}, seed=0)


def test_trials_are_held_against_the_sums_of_rows(counts):
    trials = counts.sum(axis=1)
    state = lambda n: cv.Model(cv.Multinomial("words", n, cv.Dirichlet("p", np.ones(V)), plates=DOC))  # noqa: E731
    exact = state(trials).fit({"words": sparse.csr_array(counts)})
    assert exact.elbo == pytest.approx(state(trials).fit({"words": counts}).elbo, rel=1e-12)
    trials[7] += 1
    with pytest.raises(cv.CaviarError, match=f"its trials, {trials[7]}; row 7 sums to {trials[7] - 1}"):
        state(trials).fit({"words": sparse.csr_array(counts)})


def test_what_cannot_be_sparse_says_what_can():
    words = sparse.csr_array(np.eye(4))
    with pytest.raises(cv.CaviarError, match=r"only counts of a Multinomial .*toarray"):
        cv.Model(cv.MultivariateNormal("x", np.zeros(4), np.eye(4), plates=DOC)).fit({"x": words})
    two = (DOC, cv.Plate("side", 2))
    with pytest.raises(cv.CaviarError, match=r"'words' are a sparse .*toarray"):
        cv.Model(cv.Multinomial("words", 1, cv.Dirichlet("p", np.ones(4)), plates=two)).fit({"words": words})
    author = cv.Plate("author")
    z = cv.Categorical("z", np.ones(2) / 2, plates=author)
    pages = cv.Poisson("pages", cv.Gamma("rate", 1.0, 1.0, plates=cv.Plate("kind", 2))[z], plates=author)
    leaf = cv.Multinomial("words", None, cv.Dirichlet("p", np.ones(4)), plates=DOC)
    with pytest.raises(
        cv.PlateError, match=r"sparse along plate 'doc', but the rows of data run along 'author'"
    ):
        cv.Model(pages, leaf).fit({"words": words, "pages": np.arange(5)}, data_plate=author, seed=0)

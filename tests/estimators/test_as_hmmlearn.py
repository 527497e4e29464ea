"""What hmmlearn's own tests check, checked of HiddenMarkovModel, with hmmlearn beside it where it is installed.

Priors that outweigh the rows make parameters known; weights of sequences that outweigh the priors, maximum likelihood.
"""

import itertools

import numpy as np
import pytest
from scipy import stats

import caviar as cv

pytestmark = pytest.mark.first_guess

HEAVY = 1e10
INITIAL = np.array([0.6, 0.4])
TRANSITION = np.array([[0.7, 0.3], [0.4, 0.6]])
EMISSION = np.array([[0.1, 0.4, 0.5], [0.6, 0.3, 0.1]])
STRUCTURES = ("full", "tied", "diag", "spherical")
LENGTHS = [90, 1, 109]
PATH = np.arange(200) // 20 % 2


def known(initial, transition, probabilities, categories):
    """Return a model of categories whose parameters are these."""
    model = cv.HiddenMarkovModel(
        len(initial),
        emission="categorical",
        categories=categories,
        initial_prior=HEAVY * np.asarray(initial),
        transition_prior=HEAVY * np.asarray(transition),
        category_prior=HEAVY * np.asarray(probabilities),
        random_state=0,
    )
    return model.fit(np.array(categories)[:, None])


def test_wikipedias_weather():
    """https://en.wikipedia.org/wiki/Viterbi_algorithm: the path sunny, rainy, rainy, with probability 0.01344."""
    model = known(INITIAL, TRANSITION, EMISSION, ["walk", "shop", "clean"])
    X = [["walk"], ["shop"], ["clean"]]
    given_rows, path = model.decode(X)
    assert (
        path.tolist()
        == [1, 0, 0]
        == model.predict(X).tolist()
        == model.decode(X, algorithm="map")[1].tolist()
    )
    log_density = model.score_samples(X).sum()
    assert round(np.exp(given_rows + log_density), 5) == 0.01344
    told = [[0.23170303, 0.76829697], [0.62406281, 0.37593719], [0.86397706, 0.13602294]]
    np.testing.assert_allclose(model.predict_proba(X), told, atol=1e-6)


def test_wikipedias_umbrellas():
    """https://en.wikipedia.org/wiki/Forward-backward_algorithm, with the figures of hmmlearn's tests."""
    model = known([0.5, 0.5], [[0.7, 0.3], [0.3, 0.7]], [[0.9, 0.1], [0.2, 0.8]], ["umbrella", "none"])
    X = np.array(["umbrella", "umbrella", "none", "umbrella", "umbrella"])[:, None]
    log_density = model.score_samples(X).sum()
    assert round(log_density, 4) == -3.3725
    given_rows, path = model.decode(X)
    assert path.tolist() == [0, 0, 1, 0, 0]
    assert round(given_rows + log_density, 4) == -4.4590
    told = [[0.8673, 0.1327], [0.8204, 0.1796], [0.3075, 0.6925], [0.8204, 0.1796], [0.8673, 0.1327]]
    np.testing.assert_allclose(model.predict_proba(X), told, atol=1e-4)


@pytest.mark.slow
def test_uniform_transitions_give_the_responsibilities_of_a_mixture():
    table = np.random.default_rng(0).dirichlet(np.ones(10), 8)
    model = known(np.full(8, 1 / 8), np.full((8, 8), 1 / 8), table, list(range(10)))
    own = table.T / table.sum(axis=0)[:, None]
    X = np.arange(10)[:, None]
    np.testing.assert_allclose(model.predict_proba(X), own, atol=1e-7)
    assert model.decode(X)[1].tolist() == own.argmax(axis=1).tolist()


def test_known_gaussians():
    means = np.random.default_rng(1).integers(-20, 20, (3, 3)) * 20.0
    covariances = np.stack([np.eye(3) * scale for scale in (0.5, 1.0, 2.0)])
    path = np.repeat(np.arange(3), 5)
    X = means[path] + np.random.default_rng(2).normal(size=(15, 3))
    model = cv.HiddenMarkovModel(
        3,
        mean_prior=means,
        mean_precision_prior=HEAVY,
        degrees_of_freedom_prior=HEAVY,
        covariance_prior=HEAVY * covariances,
        transition_prior=HEAVY / 3,
        initial_prior=HEAVY / 3,
        random_state=0,
    ).fit(X)
    assert model.decode(X)[1].tolist() == path.tolist()
    each = np.stack([stats.multivariate_normal.logpdf(X, means[k], covariances[k]) for k in range(3)], axis=1)
    told = np.logaddexp.reduce(each - np.log(3), axis=1)
    np.testing.assert_allclose(model.score_samples(X), told, atol=1e-5)


def rows_of(emission, seed=0):
    rng = np.random.default_rng(seed)
    if emission == "poisson":
        return rng.poisson(np.stack([3.1 + 10 * PATH, 9.4 - 6 * PATH], axis=1))
    if emission == "categorical":
        return ((rng.random(200) < 0.2) + PATH)[:, None]
    return np.stack([4.0 * PATH, -3.0 * PATH], axis=1) + rng.normal(size=(200, 2))


def of_maximum_likelihood(emission, **arguments):
    """Return the fit in which the rows outweigh the prior, and hmmlearn's model with its parameters."""
    hmm = pytest.importorskip("hmmlearn.hmm")
    X = rows_of(emission)
    ours = cv.HiddenMarkovModel(2, emission=emission, random_state=0, tol=1e-13, max_iter=5000, **arguments)
    ours.fit(X, lengths=LENGTHS, sequence_weight=np.full(3, 1e8))
    asked = {"init_params": "", "n_iter": 1}
    if emission == "gaussian":
        structure = arguments["covariance_type"]
        theirs = hmm.GaussianHMM(2, structure, min_covar=0, covars_prior=0, **asked)
        theirs.n_features = 2
        theirs.means_, theirs.covars_ = ours.means_, ours.covariances_
    elif emission == "poisson":
        theirs = hmm.PoissonHMM(2, lambdas_prior=0, lambdas_weight=0, **asked)
        theirs.lambdas_ = ours.rates_
    else:
        theirs = hmm.CategoricalHMM(2, **asked)
        theirs.emissionprob_ = ours.emission_probabilities_
    theirs.startprob_, theirs.transmat_ = ours.initial_, ours.transition_
    return X, ours, theirs


EACH = [("gaussian", {"covariance_type": structure}) for structure in STRUCTURES]
EACH += [("poisson", {}), ("categorical", {})]


@pytest.mark.thinned(2)
@pytest.mark.parametrize(("emission", "arguments"), EACH)
def test_hmmlearn_with_the_same_parameters_says_the_same(emission, arguments):
    X, ours, theirs = of_maximum_likelihood(emission, **arguments)
    log_density = theirs.score(X, LENGTHS)
    assert ours.score_samples(X, LENGTHS).sum() == pytest.approx(log_density, rel=1e-7)
    assert ours.score(X, lengths=LENGTHS) == pytest.approx(log_density / 200, rel=1e-7)
    np.testing.assert_allclose(ours.predict_proba(X, LENGTHS), theirs.predict_proba(X, LENGTHS), atol=1e-6)
    for algorithm in ("viterbi", "map"):
        given_rows, path = ours.decode(X, LENGTHS, algorithm)
        told, their_path = theirs.decode(X, LENGTHS, algorithm)
        assert path.tolist() == their_path.tolist()
        if algorithm == "viterbi":  # with "map" hmmlearn adds up the log probabilities of the single rows
            assert given_rows + log_density == pytest.approx(told, abs=1e-4)
    np.testing.assert_allclose(ours.stationary_, theirs.get_stationary_distribution(), atol=1e-9)


@pytest.mark.thinned(2)
@pytest.mark.parametrize(("emission", "arguments"), EACH)
def test_our_optimum_is_a_fixed_point_of_hmmlearns_em(emission, arguments):
    X, ours, theirs = of_maximum_likelihood(emission, **arguments)
    before = theirs.score(X, LENGTHS)
    theirs.fit(X, LENGTHS)
    assert theirs.score(X, LENGTHS) == pytest.approx(before, abs=1e-5)
    np.testing.assert_allclose(theirs.transmat_, ours.transition_, atol=1e-4)
    if emission == "gaussian":
        np.testing.assert_allclose(theirs.means_, ours.means_, atol=1e-4)


@pytest.mark.parametrize("structure", ["full", "tied"])
def test_our_optimum_is_a_fixed_point_of_hmmlearns_variational_fit(structure):
    vhmm = pytest.importorskip("hmmlearn.vhmm")
    X = rows_of("gaussian")
    ours = cv.HiddenMarkovModel(
        2,
        covariance_type=structure,
        mean_prior=np.zeros(2),
        mean_precision_prior=0.1,
        degrees_of_freedom_prior=4.0,
        covariance_prior=2 * np.eye(2),
        random_state=0,
        tol=1e-13,
        max_iter=2000,
    ).fit(X, lengths=LENGTHS)
    q = ours.posterior_
    theirs = vhmm.VariationalGaussianHMM(2, covariance_type=structure, init_params="", n_iter=1)
    theirs.n_features = 2
    each = 2 if structure == "full" else 1
    theirs.startprob_prior_, theirs.startprob_posterior_ = np.ones(2), q["initial"].concentration
    theirs.transmat_prior_, theirs.transmat_posterior_ = np.ones((2, 2)), q["transition"].concentration
    theirs.means_prior_, theirs.means_posterior_ = np.zeros((2, 2)), q["theta"].mean
    theirs.beta_prior_, theirs.beta_posterior_ = np.full(2, 0.1), q["theta"].mean_precision
    theirs.dof_prior_, theirs.dof_posterior_ = (
        (np.full(2, 4.0), q["theta"].df) if structure == "full" else (4.0, float(q["theta"].df))
    )
    scale = np.stack([2 * np.eye(2)] * each) if structure == "full" else 2 * np.eye(2)
    theirs.scale_prior_, theirs.scale_posterior_ = scale, q["theta"].inverse_scale
    theirs.covars_ = ours.covariances_
    theirs.fit(X, LENGTHS)
    np.testing.assert_allclose(theirs.means_posterior_, q["theta"].mean, atol=1e-4)
    np.testing.assert_allclose(theirs.scale_posterior_, q["theta"].inverse_scale, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(theirs.transmat_posterior_, q["transition"].concentration, rtol=1e-4)
    np.testing.assert_allclose(theirs.startprob_posterior_, q["initial"].concentration, rtol=1e-4)


@pytest.mark.thinned(8)
@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("lengths", [[3, 4, 5], [10, 8, 1]])
def test_short_sequences(structure, lengths):
    X = np.random.default_rng(0).random((sum(lengths), 3))
    model = cv.HiddenMarkovModel(3, covariance_type=structure, random_state=0).fit(X, lengths=lengths)
    assert np.all(np.diff(model.elbo_trace_) >= -1e-8)
    np.testing.assert_allclose(model.predict_proba(X, lengths).sum(axis=1), 1)


@pytest.mark.thinned(4)
@pytest.mark.parametrize("structure", STRUCTURES)
def test_a_column_that_is_constant(structure):
    """Issue 2 of hmmlearn: nine rows, of which one column has no variance."""
    rng = np.random.default_rng(0)
    X = np.column_stack(
        [np.full(9, 715.0), np.arange(585.0, 0, -65), rng.normal(size=9), -70 * rng.random(9)]
    )
    model = cv.HiddenMarkovModel(3, covariance_type=structure, random_state=0).fit(X)
    assert np.isfinite(model.elbo_)
    assert np.isfinite(model.score(X))


def test_fewer_rows_than_states():
    model = cv.HiddenMarkovModel(6, random_state=0).fit(np.random.default_rng(0).normal(size=(5, 3)))
    assert np.isfinite(model.elbo_)


@pytest.mark.slow
def test_one_row_far_away_takes_nothing_along():
    """The scaled recursions of hmmlearn underflow here, and refuse the rows."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(5 * (k % 2), 1, 100) for k in range(4)])
    X[40] = 10_000
    model = cv.HiddenMarkovModel(3, covariance_type="spherical", random_state=0, n_init=3).fit(X[:, None])
    path = model.predict(X[:, None])
    assert np.isfinite(model.score_samples(X[:, None])).all()
    assert (path == path[40]).sum() == 1
    np.testing.assert_allclose(np.sort(model.means_.ravel())[:2], [0, 5], atol=0.3)


@pytest.mark.slow
def test_left_to_right():
    """Steps that the prior makes all but impossible are not made."""
    X = np.random.default_rng(0).normal(np.repeat([0.0, 3.0, 6.0], 10), 1.0)[:, None]
    X = np.vstack([X, X[:25], X[:1]])
    steps = 1e-6 + np.triu(np.ones((3, 3))) - np.triu(np.ones((3, 3)), 2)
    model = cv.HiddenMarkovModel(
        3, initial_prior=[1.0, 1e-6, 1e-6], transition_prior=steps, random_state=0, n_init=3
    ).fit(X, lengths=[30, 25, 1])
    assert model.transition_[steps < 1].max() < 1e-6
    assert model.initial_[0] == pytest.approx(1, abs=1e-5)
    log_probability, path = model.decode(X, [30, 25, 1])
    assert np.isfinite(log_probability)
    for rows in (path[:30], path[30:55]):
        assert np.all(np.diff(rows) >= 0)
    assert not np.isnan(model.predict_proba(X, [30, 25, 1])).any()


@pytest.mark.thinned(3)
@pytest.mark.parametrize("emission", ["gaussian", "poisson", "categorical"])
def test_draws(emission):
    model = cv.HiddenMarkovModel(2, emission=emission, random_state=0).fit(rows_of(emission), lengths=LENGTHS)
    X, path = model.sample(1000, random_state=0)
    assert X.shape == (1000, model.n_features_in_)
    assert set(path) == {0, 1}
    if emission == "categorical":
        assert len(np.unique(X)) == 3
    for state in (0, 1):
        _, onward = model.sample(10, random_state=0, first_state=state)
        assert onward[0] == state
    shares = np.bincount(model.sample(20_000, random_state=1)[1]) / 20_000
    np.testing.assert_allclose(shares, model.stationary_, atol=0.05)
    np.testing.assert_allclose(model.stationary_ @ model.transition_, model.stationary_, atol=1e-12)
    with pytest.raises(cv.ParameterError, match="one of the states, 0 to 1; got 2"):
        model.sample(10, first_state=2)


@pytest.mark.slow
def test_kinds_of_whole_numbers():
    X = rows_of("categorical")
    fits = [
        cv.HiddenMarkovModel(2, emission="categorical", random_state=0).fit(X.astype(kind))
        for kind in (np.uint8, np.int64, np.float64)
    ]
    for one, other in itertools.pairwise(fits):
        assert one.elbo_ == other.elbo_
    for bad, message in ((-1.0, "row 5"), (0.5, "row 5")):
        counts = rows_of("poisson").astype(float)
        counts[5, 1] = bad
        with pytest.raises(ValueError, match=message):
            cv.HiddenMarkovModel(2, emission="poisson").fit(counts)

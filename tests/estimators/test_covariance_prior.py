"""The scale of the covariances that a Bayesian mixture learns by default, and other values of ``covariance_prior``."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.base import clone

import caviar as cv
from caviar.datasets import load_faithful

FAITHFUL = load_faithful().values
STRUCTURES = ("full", "tied", "diag", "spherical")
FAMILIES = ("joint", "independent")


def three_clusters(rng, n_rows=90):
    return 4 * rng.normal(size=(3, 2))[np.arange(n_rows) % 3] + rng.normal(size=(n_rows, 2))


@pytest.mark.thinned(2)
@pytest.mark.parametrize("seed", range(2))
def test_near_singular_directions_cost_no_density(seed):
    """Held out, the default is within a nat of the density that made the rows; the covariance of the data is not.

    Both begin at the labels that made the rows: the highest ELBO of so few rows may belong to fewer components.
    """
    rng = np.random.default_rng(seed)
    means, mixing = 3 * rng.normal(size=(3, 3)), rng.normal(size=(3, 8))
    z = rng.integers(3, size=1200)
    rows = (means[z] + rng.normal(size=(1200, 3))) @ mixing + 1e-3 * rng.normal(size=(1200, 8))
    fitted, others = rows[:400], rows[400:]
    covariance = mixing.T @ mixing + 1e-6 * np.eye(8)
    true = logsumexp(
        [multivariate_normal(mean, covariance).logpdf(others) for mean in means @ mixing], axis=0
    )
    default, empirical = (
        cv.BayesianGaussianMixture(3, covariance_prior=prior, init_params=z[:400]).fit(fitted).score(others)
        for prior in ("auto", "empirical")
    )
    highest = (true - np.log(3)).mean()
    assert highest - 1.0 < default < highest
    assert empirical < highest - 5.0


@pytest.mark.thinned(4)
@pytest.mark.parametrize("name", ["narrow clusters", "correlated columns", "as one Gaussian", "few rows"])
def test_it_is_never_far_below_the_covariance_of_the_data(name):
    """Held out, over a few kinds of tables; the benchmark has more of them."""
    rng = np.random.default_rng(7)
    if name == "narrow clusters":
        rows, n_fitted, k = (
            rng.normal(size=(6, 2))[rng.integers(6, size=900)] + 0.02 * rng.normal(size=(900, 2)),
            300,
            6,
        )
    elif name == "correlated columns":
        root = np.linalg.cholesky(0.999 * np.ones((6, 6)) + 0.001 * np.eye(6))
        rows, n_fitted, k = rng.normal(size=(900, 6)) @ root.T, 300, 2
    elif name == "as one Gaussian":
        rows, n_fitted, k = rng.normal(size=(900, 4)), 300, 1
    else:
        rows, n_fitted, k = rng.normal(size=(900, 20)), 20, 1
    scores = [
        cv.BayesianGaussianMixture(k, covariance_prior=prior, random_state=0)
        .fit(rows[:n_fitted])
        .score(rows[n_fitted:])
        for prior in ("auto", "empirical")
    ]
    assert scores[0] > scores[1] - 0.01


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("structure", STRUCTURES)
def test_the_elbo_rises_for_every_structure_with_weights_and_missing_entries(structure, family):
    rng = np.random.default_rng(3)
    X = FAITHFUL.copy()
    X[rng.random(X.shape) < 0.1] = np.nan
    X[np.isnan(X).all(axis=1)] = FAITHFUL[0]
    mixture = cv.BayesianGaussianMixture(
        3, covariance_type=structure, mean_precision_family=family, random_state=0
    )
    mixture.fit(X, sample_weight=rng.uniform(0.2, 2, len(X)))
    assert np.diff(mixture.elbo_trace_).min() > -1e-9 * abs(mixture.elbo_)
    shape = {"full": (2, 2), "tied": (2, 2), "diag": (2,), "spherical": ()}[structure]
    assert np.shape(mixture.covariance_prior_) == shape


@pytest.mark.thinned(2)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("structure", ["full", "tied", "diag"])
def test_units_of_the_columns_change_nothing_but_the_jacobian(structure, family):
    """Columns times 1e6 and 1e-3: the same responsibilities, and densities and ELBO less by the log of the units."""
    units = np.array([1e6, 1e-3])
    mixture = cv.BayesianGaussianMixture(
        2, covariance_type=structure, mean_precision_family=family, random_state=0
    )
    before, after = clone(mixture).fit(FAITHFUL), clone(mixture).fit(FAITHFUL * units)
    jacobian = np.log(units).sum()
    assert after.elbo_ + len(FAITHFUL) * jacobian == pytest.approx(before.elbo_, abs=1e-6)
    np.testing.assert_allclose(
        after.score_samples(FAITHFUL * units) + jacobian, before.score_samples(FAITHFUL), atol=1e-7
    )
    np.testing.assert_allclose(
        after.predict_proba(FAITHFUL * units), before.predict_proba(FAITHFUL), atol=1e-7
    )


@pytest.mark.parametrize("structure", STRUCTURES)
def test_a_weight_of_two_is_the_row_twice(structure):
    rng = np.random.default_rng(5)
    X = three_clusters(rng)
    counts = rng.integers(1, 4, len(X))
    mixture = cv.BayesianGaussianMixture(3, covariance_type=structure, random_state=0)
    weighted, repeated = (
        clone(mixture).fit(X, sample_weight=counts),
        clone(mixture).fit(np.repeat(X, counts, axis=0)),
    )
    assert weighted.elbo_ == pytest.approx(repeated.elbo_, rel=1e-9)
    np.testing.assert_allclose(weighted.covariance_prior_, repeated.covariance_prior_, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("structure", STRUCTURES)
def test_rows_that_are_all_equal_in_a_direction_have_a_finite_density(structure):
    """A column that is constant in one cluster, one that is constant altogether, and rows that are all equal."""
    rng = np.random.default_rng(0)
    ends = [
        np.column_stack(
            [np.where(rng.random(120) < 0.5, 0.0, 3 + rng.gamma(2, size=120)), rng.normal(size=120)]
        ),
        np.column_stack([rng.normal(size=(120, 2)), np.ones(120)]),
        np.repeat(rng.normal(size=(3, 2)), 40, axis=0),
        np.column_stack([FAITHFUL[:120], FAITHFUL[:120].sum(axis=1)]),
    ]
    for X in ends:
        mixture = cv.BayesianGaussianMixture(3, covariance_type=structure, random_state=0).fit(X)
        assert mixture.converged_
        assert np.diff(mixture.elbo_trace_).min() > -1e-8 * abs(mixture.elbo_)
        assert np.isfinite(mixture.score_samples(X)).all()


@pytest.mark.usefixtures("figures_of_factors")
@pytest.mark.thinned(2)
@pytest.mark.parametrize("structure", STRUCTURES)
def test_more_rows_join_what_is_known_of_the_scale(structure, tmp_path):
    """partial_fit goes on, before and after saving; without hidden labels two halves are all rows."""
    mixture = cv.BayesianGaussianMixture(2, covariance_type=structure, random_state=0).fit(FAITHFUL[:150])
    mixture.save(tmp_path / "mixture.caviar")
    loaded = cv.load(tmp_path / "mixture.caviar")
    np.testing.assert_array_equal(loaded.covariance_prior_, mixture.covariance_prior_)
    for half in (mixture, loaded):
        half.partial_fit(FAITHFUL[150:])
    assert mixture.elbo_ == loaded.elbo_
    np.testing.assert_array_equal(loaded.means_, mixture.means_)
    whole = cv.BayesianGaussianMixture(2, covariance_type=structure, random_state=0).fit(FAITHFUL)
    assert mixture.score(FAITHFUL) == pytest.approx(whole.score(FAITHFUL), abs=0.02)


def test_none_is_the_covariance_of_the_data_as_in_scikit_learn():
    named = cv.BayesianGaussianMixture(
        2, covariance_prior="empirical", mean_precision_prior=1, random_state=0
    )
    none = cv.BayesianGaussianMixture(2, covariance_prior=None, mean_precision_prior=None, random_state=0)
    named.fit(FAITHFUL)
    none.fit(FAITHFUL)
    assert named.elbo_ == none.elbo_
    covariance = np.cov(FAITHFUL.T, bias=True)
    np.testing.assert_allclose(np.diag(named.covariance_prior_), np.diag(covariance), rtol=1e-12)
    assert "scale" not in named.posterior_


def test_the_scale_that_was_learnt_serves_as_a_given_one():
    """It raises the ELBO above that of the covariance of the data, and nearly up to what the data decide."""
    learnt = cv.BayesianGaussianMixture(2, random_state=0).fit(FAITHFUL)
    given = cv.BayesianGaussianMixture(2, covariance_prior=learnt.covariance_prior_, random_state=0).fit(
        FAITHFUL
    )
    np.testing.assert_allclose(given.means_, learnt.means_, rtol=1e-3)
    # the learnt one pays for not having known it
    assert learnt.elbo_ < given.elbo_ < learnt.elbo_ + 5


def test_a_fit_goes_on_under_another_prior():
    """warm_start where the scale becomes given, and where it becomes learnt."""
    mixture = cv.BayesianGaussianMixture(2, warm_start=True, random_state=0).fit(FAITHFUL)
    for prior in ("empirical", "auto"):
        mixture.set_params(covariance_prior=prior).fit(FAITHFUL)
        anew = cv.BayesianGaussianMixture(2, covariance_prior=prior, random_state=0).fit(FAITHFUL)
        assert mixture.elbo_ == pytest.approx(anew.elbo_, abs=1e-3)


@pytest.mark.slow
def test_the_number_of_components_is_found_with_a_learnt_scale():
    """Narrow clusters are all found, which the covariance of the data is too wide for."""
    rng = np.random.default_rng(1)
    means = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.5, 0.5]])
    X = means[np.arange(200) % 5] + 0.03 * rng.normal(size=(200, 2))
    assert cv.BayesianGaussianMixture("auto", random_state=0).fit(X).n_components_ == 5


def test_known_parameters_and_errors_of_measurement_go_with_a_learnt_scale():
    fixed = {"means": [[2.0, 54.5], [np.nan, np.nan]]}
    mixture = cv.BayesianGaussianMixture(2, mean_precision_family="independent", fixed=fixed, random_state=0)
    np.testing.assert_array_equal(mixture.fit(FAITHFUL).means_[0], [2.0, 54.5])
    noisy = cv.BayesianGaussianMixture(2, mean_precision_family="independent", random_state=0)
    noisy.fit(FAITHFUL, noise_covariance=np.array([0.01, 4.0]))
    assert np.diff(noisy.elbo_trace_).min() > -1e-8


@pytest.mark.thinned(2)
@pytest.mark.parametrize("structure", STRUCTURES)
def test_narrow_clusters_do_not_pay_for_the_prior_of_their_means(structure):
    """Held out, a mean precision that is learnt is far above one row's worth, and near what EM reaches."""
    rng = np.random.default_rng(0)
    means = rng.normal(size=(5, 2))
    rows = means[rng.integers(5, size=1500)] + 0.02 * rng.normal(size=(1500, 2))
    fitted, others = rows[:300], rows[300:]
    start = {
        "init_params": np.argmin(((fitted[:, None] - means) ** 2).sum(axis=2), axis=1),
        "random_state": 0,
    }
    learnt = cv.BayesianGaussianMixture(5, covariance_type=structure, **start).fit(fitted)
    given = cv.BayesianGaussianMixture(5, covariance_type=structure, mean_precision_prior=1, **start).fit(
        fitted
    )
    likely = cv.GaussianMixture(5, covariance_type=structure, **start).fit(fitted)
    assert learnt.score(others) > given.score(others) + (0.2 if structure == "tied" else 0.5)
    assert learnt.score(others) > likely.score(others) - 0.01
    assert learnt.mean_precision_prior_ < 0.1


def test_what_it_cannot_be_is_refused():
    with pytest.raises(
        ValueError, match="covariance_prior, if it is not an array, must be 'auto' or 'empirical'"
    ):
        cv.BayesianGaussianMixture(2, covariance_prior="wide").fit(FAITHFUL)
    with pytest.raises(
        ValueError, match="mean_precision_prior, if it is not a number or array, must be 'auto'"
    ):
        cv.BayesianGaussianMixture(2, mean_precision_prior="wide").fit(FAITHFUL)
    with pytest.raises(ValueError, match="covariance_prior has no meaning"):
        cv.BayesianGaussianMixture(2, covariance_type="unit", covariance_prior="empirical").fit(FAITHFUL)

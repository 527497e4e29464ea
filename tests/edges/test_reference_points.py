"""The points that data are measured from: exact for constant columns, each column's own where entries are missing."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from torture.registry import CASES

import caviar as cv
from caviar.engine.ascent.status import Status
from caviar.engine.binding.bind import bind
from caviar.engine.binding.coordinates import coordinates_of
from caviar.lazy.moments import moments


@pytest.mark.parametrize("value", [0.1, 1e100, -1e8 / 3, 7e-300])
@pytest.mark.parametrize("n_rows", [3, 7, 20_011])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_constant_column_is_measured_from_its_very_value(value, n_rows, weighted):
    weights = np.random.default_rng(0).random(n_rows) if weighted else None
    found = moments(np.full((n_rows, 1), value), weights)
    assert found.mean[0] == value
    assert found.spread[0] <= 1e-18 * abs(value)


def test_moments_of_numbers_that_are_not_constant():
    rng = np.random.default_rng(1)
    rows, weights = 5 + 2 * rng.standard_normal((20_011, 2)), rng.random(20_011)
    found = moments(rows, weights)
    mean = np.average(rows, axis=0, weights=weights)
    assert_allclose(found.mean, mean, rtol=1e-14)
    assert_allclose(found.spread**2, np.average((rows - mean) ** 2, axis=0, weights=weights), rtol=1e-12)


def _partly_missing():
    rng = np.random.default_rng(2)
    x = rng.standard_normal((60, 3)) + np.repeat([[0.0], [6.0]], 30, axis=0)
    x[rng.random(x.shape) < 0.25] = np.nan
    return x


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", [cv.GaussianMixture, cv.BayesianGaussianMixture])
@pytest.mark.parametrize("units", [[1e-12, 1.0, 1e12], [1e-100, 1e100, 1.0]])
def test_missing_entries_leave_each_column_its_units(estimator, units):
    """Columns in other units give the same fit in other units; the objective moves by the log of each entry's unit."""
    x = _partly_missing()
    plain, scaled = (
        estimator(2, covariance_type="diag", max_iter=30, random_state=0).fit(rows) for rows in (x, x * units)
    )
    moved = (np.isfinite(x).sum(axis=0) * np.log(units)).sum()
    assert_allclose(scaled.elbo_ + moved, plain.elbo_, rtol=1e-9, atol=1e-7)
    assert_allclose(scaled.means_, plain.means_ * units, rtol=1e-6)


@pytest.mark.parametrize("estimator", [cv.GaussianMixture, cv.BayesianGaussianMixture])
def test_rows_of_weight_zero_do_not_stand_in_for_missing_entries(estimator):
    x = _partly_missing()
    more, weights = np.r_[x, np.full((3, 3), 1e150)], np.r_[np.ones(60), np.zeros(3)]
    without = estimator(2, covariance_type="diag", random_state=0).fit(x)
    mixture = estimator(2, covariance_type="diag", random_state=0).fit(more, sample_weight=weights)
    assert_allclose(mixture.elbo_, without.elbo_, rtol=1e-9)


def test_a_weight_of_two_is_the_row_twice_where_entries_are_missing():
    x = _partly_missing()
    weights = 1.0 + np.arange(60) % 2
    weighted = cv.BayesianGaussianMixture(2, covariance_type="diag", random_state=0).fit(
        x, sample_weight=weights
    )
    repeated = cv.BayesianGaussianMixture(2, covariance_type="diag", random_state=0).fit(
        np.repeat(x, weights.astype(int), axis=0)
    )
    assert_allclose(weighted.elbo_trace_, repeated.elbo_trace_, rtol=1e-9)


@pytest.mark.filterwarnings("ignore::caviar.LostDigitsWarning")
@pytest.mark.parametrize("power", [40, 150])
def test_centres_that_rounding_moves_take_their_components_along(power):
    """Values over many powers of ten: a point of a component's own is told to 16 digits of the common one only."""
    x = np.logspace(-power, power, 41)[:, None]
    mixture = cv.GaussianMixture(3, covariance_type="unit", random_state=0).fit(x)
    assert mixture.posterior_.status is Status.CONVERGED
    trace = mixture.elbo_trace_
    assert np.all(np.diff(trace) >= -1e-9 * np.abs(trace[1:]))


def test_a_start_far_from_its_clusters_is_no_fall():
    """Both components begin between two clusters 1e8 widths apart, with terms of size 1e17: their rounding is 16."""
    x = CASES["two clusters 1e8 apart"].rows()
    mixture = cv.GaussianMixture(2, covariance_type="unit", init_params="random", random_state=0).fit(x)
    assert mixture.posterior_.status is Status.CONVERGED
    assert_allclose(np.sort(mixture.means_[:, 0]), [x[:30, 0].mean(), x[30:, 0].mean()], rtol=1e-9)


@pytest.mark.filterwarnings("ignore::caviar.CollapseWarning")
def test_a_collapsed_fit_keeps_no_state_that_fell():
    x = CASES["Fortran order"].rows()
    mixture = cv.GaussianMixture(3, reg_covar=0.0, max_iter=8, random_state=0).fit(x)
    assert mixture.posterior_.status is Status.COLLAPSED
    assert np.all(np.diff(mixture.elbo_trace_) >= 0)


@pytest.mark.parametrize("power", [-540, 0, 500])
def test_the_spread_of_columns_with_one_mean_at_any_size(power):
    """About the common mean; here means and spreads of the columns are equal, and squares may underflow."""
    obs, column = cv.Plate("obs"), cv.Plate("column", 2)
    model = cv.Model(cv.Normal("x", cv.Normal("mean", 0.0, 1.0), 1.0, plates=[obs, column]))
    x = np.array([[0.0, 2.0], [2.0, 0.0], [0.0, 0.0], [2.0, 2.0]])
    (group,) = coordinates_of(bind(model.nodes, model.leaves, {"x": np.ldexp(x, power)})).groups
    assert_allclose(np.ldexp(group.spread, -power), x.std(), rtol=1e-14)
    assert_allclose(np.ldexp(group.point, -power), x.mean(), rtol=1e-14)


@pytest.mark.parametrize("n_rows", [1, 2, 3])
@pytest.mark.parametrize("n_states", [2, 3])
def test_states_of_few_steps_whose_transitions_inputs_choose(n_rows, n_states):
    """The widths of states were read among those of steps, which ended with an error of NumPy's."""
    time, state = cv.Plate("time"), cv.Plate("state", n_states)
    table = cv.Dirichlet(
        "table", np.ones(n_states), plates=(cv.Plate("input", 2), cv.Plate("from", n_states))
    )
    s = cv.MarkovChain("s", np.full(n_states, 1 / n_states), table[cv.Data("input", plates=time)], along=time)
    mean = cv.Normal("mean", 0, 1, plates=state)
    model = cv.Model(cv.Normal("x", mean[s], 1.0, plates=time))
    data = {"x": np.array([0.25, -0.3, 1.3])[:n_rows], "input": np.array([0, 1, 0])[:n_rows]}
    plain = cv.Model(cv.Normal("x", cv.Normal("mean", 0, 1), 1.0, plates=time)).fit({"x": data["x"]})
    # a path that stays in one state fits as well as one mean does, less what the probabilities of the path cost
    assert model.fit(data, seed=0).elbo > plain.elbo - 3 * n_rows

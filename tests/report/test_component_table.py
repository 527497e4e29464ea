"""The intervals of a component table are quantiles of the posterior: they agree with SciPy, and with draws from it."""

import numpy as np
import pytest
from scipy import stats

import caviar as cv
from caviar.estimators.mixtures.uncertainty import mean_marginal
from caviar.report import column_names, component_table

FAITHFUL = cv.datasets.load_faithful().values
GALAXIES = cv.datasets.load_galaxies().values


def joint():
    return cv.BayesianGaussianMixture(3, random_state=0, uncertainty="mean_field").fit(FAITHFUL)


def independent():
    own = {"mean_precision_family": "independent", "uncertainty": "mean_field"}
    return cv.BayesianGaussianMixture(2, random_state=0, **own).fit(FAITHFUL)


def known_variance():
    own = {"prior_mean": 20.0, "variance": 4.0, "uncertainty": "mean_field"}
    return cv.KnownVarianceMixture(3, random_state=0, **own).fit(GALAXIES)


def intervals(rows):
    """Return the ends of the intervals of weights (K, 2) and means (K, D, 2)."""
    weights = np.array([[row.weight.low, row.weight.high] for row in rows], dtype=float)
    return weights, np.array([[[m.low, m.high] for m in row.mean] for row in rows], dtype=float)


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_weights_have_the_quantiles_of_their_beta_marginals(level):
    mixture = joint()
    alpha = mixture.posterior_["weights"].concentration
    weights, _ = intervals(component_table(mixture, level=level))
    marginal = stats.beta(alpha, alpha.sum() - alpha)
    np.testing.assert_allclose(weights.T, marginal.interval(level), rtol=1e-9)


def test_means_of_the_joint_form_have_the_quantiles_of_student_t():
    mixture = joint()
    theta = mixture.posterior_["theta"]
    df = theta.df - 1
    scale = np.sqrt(np.diagonal(theta.inverse_scale, axis1=1, axis2=2) / (theta.mean_precision * df)[:, None])
    _, means = intervals(component_table(mixture))
    expected = stats.t(df[:, None], theta.mean, scale).interval(0.95)
    np.testing.assert_allclose(np.moveaxis(means, 2, 0), expected, rtol=1e-9)


def test_means_of_the_independent_form_have_the_quantiles_of_normals():
    mixture = independent()
    mean = mixture.posterior_["mean"]
    scale = np.sqrt(np.diagonal(mean.covariance, axis1=1, axis2=2))
    _, means = intervals(component_table(mixture))
    np.testing.assert_allclose(
        np.moveaxis(means, 2, 0), stats.norm(mean.mean, scale).interval(0.95), rtol=1e-9
    )


def test_means_with_known_variance_have_the_quantiles_of_normals():
    mixture = known_variance()
    rows = component_table(mixture)
    low = [row.mean[0].low for row in rows]
    np.testing.assert_allclose(low, mixture.means_ - 1.959964 * np.sqrt(mixture.mean_variances_), rtol=1e-6)
    assert [row.standard_deviation for row in rows] == [(2.0,)] * 3
    assert all(row.weight.low is None for row in rows), "known weights have no interval"


@pytest.mark.parametrize("fit", [joint, independent])
def test_draws_from_the_posterior_fall_into_the_intervals_as_often_as_they_say(fit):
    mixture = fit()
    posterior = mixture.posterior_
    rows = component_table(mixture, level=0.8)
    weights, means = intervals(rows)
    drawn = posterior["weights"].sample(20_000, seed=0)
    inside = ((drawn > weights[:, 0]) & (drawn < weights[:, 1])).mean(axis=0)
    np.testing.assert_allclose(inside, 0.8, atol=0.015)
    drawn = (
        posterior["theta"].sample(20_000, seed=0)[0]
        if "theta" in posterior
        else posterior["mean"].sample(20_000, seed=0)
    )
    inside = ((drawn > means[..., 0]) & (drawn < means[..., 1])).mean(axis=0)
    np.testing.assert_allclose(inside, 0.8, atol=0.015)


@pytest.mark.parametrize("fit", [joint, independent])
def test_draws_of_means_fall_into_the_drawn_regions_as_often_as_they_say(fit):
    mixture = fit()
    posterior = mixture.posterior_
    marginal = mean_marginal(mixture)
    regions = np.linalg.inv(marginal.region((0, 1), 0.9))
    drawn = (
        posterior["theta"].sample(20_000, seed=1)[0]
        if "theta" in posterior
        else posterior["mean"].sample(20_000, seed=1)
    )
    deviation = drawn - marginal.location
    distance = np.einsum("nki,kij,nkj->nk", deviation, regions, deviation)
    np.testing.assert_allclose((distance < 1).mean(axis=0), 0.9, atol=0.015)


def test_maximum_likelihood_gives_points_without_intervals():
    mixture = cv.GaussianMixture(2, random_state=0).fit(FAITHFUL)
    rows = component_table(mixture)
    for k, row in enumerate(rows):
        assert row.label == k
        assert (row.weight.value, row.weight.low, row.weight.high) == (mixture.weights_[k], None, None)
        assert [estimate.value for estimate in row.mean] == mixture.means_[k].tolist()
        assert {estimate.low for estimate in row.mean} == {None}
        np.testing.assert_allclose(np.square(row.standard_deviation), np.diagonal(mixture.covariances_[k]))


@pytest.mark.parametrize(("n_components", "shown"), [(2, "second_order"), (3, "importance_sampling")])
def test_intervals_are_those_of_the_posterior(n_components, shown):
    """To second order, or those of weighted draws, as with one component too many."""
    mixture = cv.BayesianGaussianMixture(n_components, random_state=0).fit(FAITHFUL)
    posterior = mixture.posterior_
    weights, means = intervals(component_table(mixture, level=0.9))
    assert posterior.uncertainty == shown
    np.testing.assert_allclose(weights.T, posterior.interval("weights", 0.9), rtol=1e-9)
    np.testing.assert_allclose(np.moveaxis(means, 2, 0), posterior.interval("theta.mean", 0.9), rtol=1e-9)


def test_intervals_of_linear_response_where_they_were_asked_for():
    """Of weights Betas with its standard deviations; of means Student-t distributions widened by them."""
    mixture = cv.BayesianGaussianMixture(3, random_state=0, uncertainty="linear_response").fit(FAITHFUL)
    response = mixture.posterior_.linear_response({"x": FAITHFUL})
    weights, means = intervals(component_table(mixture, level=0.9))
    np.testing.assert_allclose(weights.T, response.interval("weights", 0.9), rtol=1e-9)
    np.testing.assert_allclose(np.moveaxis(means, 2, 0), response.interval("theta.mean", 0.9), rtol=1e-9)
    np.testing.assert_allclose(mixture.means_sd_, response.sd("theta.mean"), rtol=1e-9)
    narrow = intervals(component_table(joint(), level=0.9))[1]
    assert (np.ptp(means, axis=2) > np.ptp(narrow, axis=2)).all()


def test_the_weight_of_a_single_component_is_one():
    (row,) = component_table(cv.BayesianGaussianMixture(1, random_state=0).fit(FAITHFUL))
    assert (row.weight.value, row.weight.low, row.weight.high) == (1.0, 1.0, 1.0)


def test_bad_arguments_are_refused():
    with pytest.raises(cv.ParameterError, match="between 0 and 1"):
        component_table(joint(), level=95)
    with pytest.raises(cv.ParameterError, match="call fit"):
        component_table(cv.GaussianMixture())


def test_columns_are_called_what_they_were_called_at_the_fit(tmp_path):
    pandas = pytest.importorskip("pandas")
    mixture = joint()
    assert column_names(mixture) == ("x0", "x1")
    mixture.save(tmp_path / "m.caviar", about={"columns": ["eruptions", "waiting"]})
    assert column_names(cv.load(tmp_path / "m.caviar")) == ("eruptions", "waiting")
    frame = pandas.DataFrame(FAITHFUL, columns=["e", "w"])
    assert column_names(cv.GaussianMixture(random_state=0).fit(frame)) == ("e", "w")

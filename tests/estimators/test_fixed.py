"""Fixed parameters: they stay as they were given, and the others are as in a literal loop that knows them."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import caviar as cv

pytestmark = pytest.mark.first_guess

FAITHFUL = cv.datasets.load_faithful().values
NAN = np.nan
MEANS = np.array([[2.1, 55.0], [NAN, NAN]])
COVARIANCES = {
    "full": np.array([np.diag([0.1, 40.0]), np.full((2, 2), NAN)]),
    "tied": np.diag([0.1, 40.0]),
    "diag": np.array([[0.1, 40.0], [NAN, NAN]]),
    "spherical": np.array([30.0, NAN]),
}
ALL = ["full", "tied", "diag", "spherical", "unit"]


def known(value, fixed):
    return value[~np.isnan(fixed)]


@pytest.mark.usefixtures("figures_of_factors")
@pytest.mark.thinned(5)
@pytest.mark.parametrize("structure", ALL)
@pytest.mark.parametrize("what", ["weights", "means", "covariances", "all"])
@pytest.mark.parametrize("bayesian", [False, True])
def test_what_is_fixed_stays_and_the_rest_is_learnt(structure, what, bayesian, tmp_path):
    given = {"weights": [0.3, 0.7], "means": MEANS, "covariances": COVARIANCES.get(structure)}
    fixed = given if what == "all" else {what: given[what]}
    fixed = {name: value for name, value in fixed.items() if value is not None}
    extra = {"mean_precision_family": "independent"} if bayesian else {}
    kind = cv.BayesianGaussianMixture if bayesian else cv.GaussianMixture
    mixture = kind(2, covariance_type=structure, fixed=fixed, random_state=0, **extra).fit(FAITHFUL)
    for name, value in fixed.items():
        found = getattr(mixture, name + "_")
        np.testing.assert_allclose(known(found, value), known(np.asarray(value), value), rtol=1e-12)
    trace = mixture.elbo_trace_
    assert np.all(np.diff(trace) > -1e-9 * np.abs(trace[1:]))
    assert np.all(np.isfinite(mixture.score_samples(FAITHFUL)))
    np.testing.assert_allclose(mixture.predict_proba(FAITHFUL).sum(axis=1), 1)
    mixture.save(tmp_path / "fixed.caviar")
    again = cv.load(tmp_path / "fixed.caviar")
    np.testing.assert_array_equal(again.score_samples(FAITHFUL), mixture.score_samples(FAITHFUL))
    if not bayesian:
        densities = [
            w * multivariate_normal(m, c).pdf(FAITHFUL)
            for w, m, c in zip(mixture.weights_, mixture.means_, mixture.covariance_matrices(), strict=True)
        ]
        np.testing.assert_allclose(mixture.elbo_, np.log(np.sum(densities, axis=0)).sum(), rtol=1e-9)


@pytest.mark.slow
def test_em_with_a_fixed_component_is_a_literal_loop():
    fixed = {"means": MEANS, "covariances": COVARIANCES["full"]}
    mixture = cv.GaussianMixture(2, fixed=fixed, reg_covar=0, tol=1e-14, max_iter=5000, random_state=0)
    mixture.fit(FAITHFUL)
    weights, mean, covariance = np.array([0.5, 0.5]), np.array([4.0, 80.0]), np.diag([0.2, 40.0])
    for _ in range(3000):
        p = [
            weights[0] * multivariate_normal(MEANS[0], COVARIANCES["full"][0]).pdf(FAITHFUL),
            weights[1] * multivariate_normal(mean, covariance).pdf(FAITHFUL),
        ]
        r = p[1] / (p[0] + p[1])
        weights = np.array([1 - r.mean(), r.mean()])
        mean = r @ FAITHFUL / r.sum()
        covariance = ((FAITHFUL - mean) * r[:, None]).T @ (FAITHFUL - mean) / r.sum()
    np.testing.assert_allclose(mixture.means_[1], mean, rtol=1e-6)
    np.testing.assert_allclose(mixture.covariances_[1], covariance, rtol=1e-5)
    np.testing.assert_allclose(mixture.weights_, weights, rtol=1e-6)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("structure", ["full", "diag"])
def test_whole_components_are_fixed_in_the_joint_form(structure):
    fixed = {"means": MEANS, "covariances": COVARIANCES[structure]}
    mixture = cv.BayesianGaussianMixture(2, covariance_type=structure, fixed=fixed, random_state=0).fit(
        FAITHFUL
    )
    np.testing.assert_allclose(mixture.means_[0], MEANS[0])
    np.testing.assert_allclose(mixture.covariances_[0], COVARIANCES[structure][0])
    np.testing.assert_allclose(mixture.means_[1], [4.3, 80.0], rtol=0.02)
    intervals = mixture.credible_intervals()
    np.testing.assert_allclose(intervals.means[:, 0], np.stack([MEANS[0]] * 2))
    grid = np.stack(np.meshgrid(np.linspace(-3, 9, 300), np.linspace(-20, 160, 300)), axis=-1).reshape(-1, 2)
    total = np.exp(mixture.score_samples(grid)).sum() * (12 / 299) * (180 / 299)
    assert abs(total - 1) < 1e-3


@pytest.mark.parametrize(
    ("arguments", "fixed", "message"),
    [
        ({}, {"weights": [0.5, NAN]}, "must hold every weight"),
        ({}, {"weights": [0.5, 0.6]}, "sum to one"),
        ({}, {"mean": MEANS}, "mapping with any of weights, means, covariances"),
        ({}, {"means": MEANS[:1]}, r"must have shape \(2, 2\)"),
        ({}, {"means": MEANS}, "mean and covariance of the same components"),
        ({"covariance_type": "tied"}, {"means": MEANS}, "mean_precision_family='independent'"),
        ({"covariance_type": "unit"}, {"covariances": [1.0, NAN]}, "known to be the identity"),
        (
            {"mean_precision_family": "independent"},
            {"covariances": -COVARIANCES["full"]},
            "positive definite",
        ),
        ({"n_components": "auto"}, {"means": MEANS}, "need a number of components"),
    ],
)
def test_impossible_fixed_parameters_are_refused(arguments, fixed, message):
    mixture = cv.BayesianGaussianMixture(**({"n_components": 2} | arguments), fixed=fixed)
    with pytest.raises(ValueError, match=message):
        mixture.fit(FAITHFUL)


def test_the_floor_of_columns_where_several_components_are_learnt():
    """Each column keeps its own floor, whichever components are known."""
    rows = np.concatenate(
        [FAITHFUL, np.repeat([[8.0, 8.0]], 20, axis=0), np.repeat([[-8.0, 8.0]], 20, axis=0)]
    )
    fixed = {
        "means": [[NAN, NAN], [8.0, 8.0], [-8.0, 8.0]],
        "covariances": [[1.0, 40.0], [NAN, NAN], [NAN, NAN]],
    }
    mixture = cv.GaussianMixture(
        3, covariance_type="diag", fixed=fixed, init_params=np.repeat([0, 1, 2], [len(FAITHFUL), 20, 20])
    ).fit(rows)
    np.testing.assert_allclose(mixture.covariances_[0], [1.0, 40.0])
    np.testing.assert_allclose(mixture.covariances_[1:], np.tile(1e-6 * rows.var(axis=0), (2, 1)))


@pytest.mark.thinned(4)
@pytest.mark.parametrize("structure", ALL)
@pytest.mark.parametrize("form", ["joint", "independent"])
def test_intervals_of_the_rest_where_every_mean_is_known(structure, form):
    means = np.array([[2.1, 55.0], [4.3, 80.0]])
    covariances = {"full": np.array([np.diag([0.1, 40.0])] * 2), "diag": np.array([[0.1, 40.0]] * 2)}
    fixed = {"means": means}
    if form == "joint" and structure != "unit":
        if structure not in covariances:
            pytest.skip("refused in the joint form")
        fixed["covariances"] = covariances[structure]
    mixture = cv.BayesianGaussianMixture(
        2, covariance_type=structure, mean_precision_family=form, fixed=fixed, random_state=0
    ).fit(FAITHFUL)
    found, draws = mixture.credible_intervals(0.9), mixture.sample_parameters(4000, 0)
    np.testing.assert_array_equal(found.means, [means, means])
    inside = (draws.weights > found.weights[0]) & (draws.weights < found.weights[1])
    np.testing.assert_allclose(inside.mean(axis=0), 0.9, atol=0.02)
    with pytest.raises(ValueError, match="gives points"):
        cv.GaussianMixture(2, fixed={"means": means}, random_state=0).fit(FAITHFUL).credible_intervals()

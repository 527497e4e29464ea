"""What is said of groups without rows, and of components that no row belongs to."""

import numpy as np
import pytest

import caviar as cv

OBS = cv.Plate("obs")


def with_an_empty_group(**arguments):
    rng = np.random.default_rng(0)
    group = np.append(np.arange(4), rng.integers(0, 4, 26))
    effect = cv.Normal("effect", 0, cv.Gamma("between", 3, 3), plates=cv.Plate("group", 5))
    at = cv.Normal("mu", 0, 0.5) + effect[cv.Data("g", plates=OBS)]
    model = cv.Model(cv.Normal("y", at, cv.Gamma("tau", 3, 3), plates=OBS))
    data = {"g": group, "y": rng.normal(size=4)[group] + rng.normal(size=30)}
    return model.fit(data, tol=1e-10, **arguments), data


@pytest.mark.parametrize("factors", [None, "apart"])
def test_groups_without_rows_keep_linear_response_and_a_line_says_so(factors, tmp_path):
    arguments = {} if factors is None else {"factors": factors}
    posterior, data = with_an_empty_group(uncertainty="second_order", **arguments)
    response = posterior.linear_response(data)
    assert posterior.sd("effect")[4] == pytest.approx(response.sd("effect")[4])
    assert (posterior.sd("effect")[:4] > 1.01 * response.sd("effect")[:4]).all()
    said = "Repetitions of effect with nothing observed below them have those of linear response."
    assert posterior.interval_remark.endswith(said)
    posterior.save(tmp_path / "fit.caviar")
    assert cv.load(tmp_path / "fit.caviar").interval_remark == posterior.interval_remark


def test_without_empty_groups_nothing_is_said_of_them():
    rng = np.random.default_rng(0)
    effect = cv.Normal("effect", 0, cv.Gamma("between", 3, 3), plates=cv.Plate("group", 3))
    model = cv.Model(cv.Normal("y", effect[cv.Data("g", plates=OBS)], 1.0, plates=OBS))
    posterior = model.fit({"g": np.arange(12) % 3, "y": rng.normal(size=12)}, uncertainty="second_order")
    assert "nothing observed" not in posterior.interval_remark


def with_few_groups():
    """Two groups with rows and two without, whose means depend on a column of the groups."""
    rng = np.random.default_rng(0)
    group, slope = cv.Plate("group", 4), cv.Normal("slope", 0, 1)
    precision = cv.Gamma("between", 3, 3)
    effect = cv.Normal("effect", slope * cv.Data("u", plates=group), precision, plates=group)
    y = cv.Normal("y", effect[cv.Data("g", plates=OBS)], cv.Gamma("tau", 3, 3), plates=OBS)
    g = np.arange(12) % 2
    data = {"g": g, "y": np.array([1.5, -2.0])[g] + 0.5 * rng.normal(size=12), "u": [0.0, 0.0, 0.0, 1.0]}
    return cv.Model(y).fit(data, tol=1e-10), data


def test_weighted_draws_of_groups_without_rows_are_given_what_they_depend_on():
    """They were drawn from their factor, as wide whatever the precision between groups."""
    posterior, data = with_few_groups()
    sample = posterior.importance_sample(data, n_draws=8000, seed=0)
    # given the precision, a group without rows is Normal about its own mean
    variance = sample.weights @ (1 / sample.draws["between"])
    exact = np.sqrt([variance, variance + sample.sd("slope") ** 2])
    np.testing.assert_allclose(sample.sd("effect")[2:], exact, rtol=0.05)
    is_wide = sample.draws["between"] < sample.weights @ sample.draws["between"]
    for some in (is_wide, ~is_wide):
        shares = sample.weights[some] / sample.weights[some].sum()
        expected = shares @ (1 / sample.draws["between"][some])
        assert shares @ sample.draws["effect"][some, 2] ** 2 == pytest.approx(expected, rel=0.12)


@pytest.mark.slow
def test_weighted_draws_of_groups_without_rows_are_as_wide_as_exact_ones():
    posterior, data = with_few_groups()
    sample = posterior.importance_sample(data, n_draws=20_000, seed=0)
    draws = cv.testing.exact_draws(posterior, data, n_steps=4000, seed=1)
    np.testing.assert_allclose(sample.sd("effect"), np.asarray(draws["effect"]).std(axis=0), rtol=0.05)


def test_weighted_draws_of_units_in_regions_without_rows_are_given_those_of_the_regions():
    posterior, data = with_means_above(3, 4)
    sample = posterior.importance_sample(data, n_draws=8000, seed=0)
    apart = sample.draws["effect"] - sample.draws["mean"][:, :, None]
    within = np.sqrt(sample.weights @ (1 / sample.draws["within"]))
    sds = np.sqrt(np.tensordot(sample.weights, apart**2, axes=1))
    np.testing.assert_allclose(sds[2], within, rtol=0.06)
    np.testing.assert_allclose(sds[:2, 2:], within, rtol=0.06)
    assert np.corrcoef(sample.draws["effect"][:, 2, 0], sample.draws["mean"][:, 2])[0, 1] > 0.3


def with_means_above(n_regions, n_units):
    """Return the posterior of units within regions, of which the first two, and two units of each, have rows."""
    rng = np.random.default_rng(1)
    region, unit = cv.Plate("region", n_regions), cv.Plate("unit", n_units)
    level, within = cv.Normal("level", 1.0, 0.1), cv.Gamma("within", 3, 3)
    mean = cv.Normal("mean", level, cv.Gamma("between", 3, 3), plates=region)
    effect = cv.Normal("effect", mean, within, plates=(region, unit))
    places = [np.repeat([0, 0, 1, 1], 4), np.repeat([0, 1, 0, 1], 4)]
    at = effect[cv.Data("r", plates=OBS), cv.Data("u", plates=OBS)]
    model = cv.Model(cv.Normal("y", at, cv.Gamma("tau", 3, 3), plates=OBS))
    y = rng.normal(size=(2, 2))[places[0], places[1]] + rng.normal(size=16)
    data = {"y": y, "r": places[0], "u": places[1]}
    return model.fit(data, tol=1e-10), data


def test_groups_without_rows_below_unknown_means_change_nothing_else():
    """Regions and units without rows are forecasts given each value of the precisions, and leave the others alone."""
    few, many = with_means_above(2, 2)[0], with_means_above(3, 4)[0]
    assert many.interval_remark == few.interval_remark
    assert "integrated over" in few.interval_remark
    for name in ("level", "between", "within", "tau"):
        assert many.mean(name) == pytest.approx(few.mean(name), abs=2e-3)
        assert many.sd(name) == pytest.approx(few.sd(name), rel=4e-3)
    np.testing.assert_allclose(many.sd("effect")[:2, :2], few.sd("effect"), rtol=4e-3)
    shown = many._shown_as("auto")
    variances = {
        own: shown.weighted(own).weights @ (1 / shown.weighted(own).values) for own in ("between", "within")
    }
    assert many.mean("effect")[2] == pytest.approx(np.full(4, few.mean("level")), abs=2e-3)
    expected = few.sd("level") ** 2 + variances["between"] + variances["within"]
    assert many.sd("mean")[2] ** 2 == pytest.approx(expected - variances["within"], rel=4e-3)
    assert many.sd("effect")[2] ** 2 == pytest.approx(np.full(4, expected), rel=4e-3)
    expected = few.sd("mean")[1] ** 2 + variances["within"]
    assert many.sd("effect")[1, 2:] ** 2 == pytest.approx(np.full(2, expected), rel=4e-3)


def with_empty_components(**arguments):
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(-4, 1, (40, 1)), rng.normal(4, 1, (40, 1))])
    return cv.BayesianGaussianMixture(4, random_state=0, **arguments).fit(x).posterior_, {"x": x}


def test_a_component_that_no_row_belongs_to_has_the_infinite_variance_of_its_prior():
    """The mean of a Normal-Wishart prior with one degree of freedom is a Cauchy."""
    posterior, data = with_empty_components()
    sds = np.sort(posterior.sd("theta.mean").ravel())
    assert (sds[:2] < 0.3).all()
    assert np.isinf(sds[2:]).all()
    assert "theta.mean has an infinite standard deviation" in posterior.interval_remark
    assert "in a component without rows" in posterior.interval_remark
    with pytest.raises(
        cv.ModelError, match=r"'theta' has an infinite variance: .* in a component without rows"
    ):
        posterior.importance_sample(data)


def test_with_more_degrees_of_freedom_it_is_that_of_the_prior():
    posterior, data = with_empty_components(mean_precision_family="independent")
    empty = np.argsort(posterior["weights"].mean)[:2]
    own = np.sqrt(posterior["mean"].covariance[empty, :, 0])
    # draws in which a row belongs to it make it a little narrower
    np.testing.assert_allclose(posterior.sd("mean")[empty], own, rtol=0.1)
    assert "infinite" not in posterior.interval_remark
    assert posterior.importance_sample(data, n_draws=100).effective_draws > 0

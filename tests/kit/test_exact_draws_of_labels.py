"""Exact draws of models with hidden labels, and the order of components in them."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

import caviar as cv
from caviar.posterior.evidence.relabelling import Relabelling
from caviar.testing import check_intervals, exact_draws

OBS = cv.Plate("obs")
KIND = cv.Plate("kind", 2)


def counts(weights):
    """A mixture of two Poissons with known weights."""
    z = cv.Categorical("z", weights, plates=OBS)
    rate = cv.Gamma("rate", 2.0, 0.5, plates=KIND)
    data = {"x": np.array([1, 0, 7, 2, 9, 1, 6, 3])}
    return cv.Model(cv.Poisson("x", rate[z], plates=OBS)), data


def exact_rates(data, weights, side):
    """Return the posterior weights of a grid of both rates."""
    one = stats.poisson.logpmf(data["x"][:, None], side)
    each = np.logaddexp(np.log(weights[0]) + one[:, :, None], np.log(weights[1]) + one[:, None])
    prior = stats.gamma.logpdf(side, 2, scale=2)
    logs = each.sum(axis=0) + prior[:, None] + prior
    return np.exp(logs - logsumexp(logs))


@pytest.mark.slow
def test_components_that_differ_a_priori_are_left_as_they_are():
    weights = np.array([0.7, 0.3])
    model, data = counts(weights)
    draws = exact_draws(model.fit(data, seed=0), data, n_steps=3_000, seed=1)["rate"]
    side = np.linspace(0.02, 22.0, 500)
    density = exact_rates(data, weights, side)
    for number, own in enumerate((density.sum(axis=1), density.sum(axis=0))):
        mean = own @ side
        sd = np.sqrt(own @ np.square(side - mean))
        assert draws[:, number].mean() == pytest.approx(mean, abs=0.12 * sd)
        assert draws[:, number].std() == pytest.approx(sd, rel=0.1)


@pytest.mark.slow
def test_components_are_in_the_order_of_the_fit():
    """Of the smaller and the larger rate a grid tells the moments; each component is mostly one of them."""
    weights = np.array([0.5, 0.5])
    model, data = counts(weights)
    posterior = model.fit(data, seed=0)
    draws = exact_draws(posterior, data, n_steps=2_000, seed=1)
    assert draws.r_hat < 1.2
    side = np.linspace(0.02, 22.0, 500)
    density = exact_rates(data, weights, side)
    smaller, larger = np.minimum(side[:, None], side), np.maximum(side[:, None], side)
    for own, values in ((smaller, draws["rate"].min(axis=1)), (larger, draws["rate"].max(axis=1))):
        mean = np.sum(density * own)
        sd = np.sqrt(np.sum(density * np.square(own - mean)))
        assert values.mean() == pytest.approx(mean, abs=0.06 * sd)
        assert values.std() == pytest.approx(sd, rel=0.06)
    low = int(np.argmin(posterior["rate"].mean))
    is_in_order = draws["rate"][:, low] < draws["rate"][:, 1 - low]
    assert is_in_order.mean() > 0.95
    report = check_intervals(posterior, data, n_steps=1_500, seed=2)
    assert abs(report["rate"].shift).max() < 0.4


def of_two_labels():
    """Two labels of each row: the components of one have weights, a joint factor and effects, of the other a rate."""
    w = cv.Dirichlet("w", [1.0, 1.0, 1.0], plates=cv.Plate("group", 2))
    z = cv.Categorical("z", w[cv.Data("g", plates=OBS)], plates=OBS)
    v = cv.Categorical("v", [0.5, 0.5], plates=OBS)
    three, item = cv.Plate("three", 3), cv.Plate("item", 2)
    theta = cv.NormalGamma("theta", 0.0, 0.1, 2.0, 2.0, plates=three)
    share = cv.Beta("share", 1.0, 1.0, plates=(item, three))
    rate, common = cv.Gamma("rate", 1.0, 1.0, plates=KIND), cv.Normal("common", 0.0, 1.0)
    model = cv.Model(
        cv.Normal("x", theta[z], plates=OBS),
        cv.Bernoulli("y", share[z], plates=(OBS, item)),
        cv.Poisson("n", rate[v], plates=OBS),
        cv.Normal("c", common, 1.0, plates=OBS),
    )
    rng = np.random.default_rng(0)
    means = np.array([-30.0, 0.0, 30.0])
    drawn = {
        "w": rng.dirichlet([30.0, 20.0, 10.0], size=(50, 2)),
        "share": rng.beta(np.array([50.0, 5.0, 1.0]), np.array([5.0, 50.0, 1.0]), size=(50, 2, 3)),
        "rate": rng.gamma(np.array([10.0, 1000.0]), size=(50, 2)),
        "common": rng.normal(size=50),
    }
    drawn["theta"] = cv.families.MeanPrecision(means + rng.normal(size=(50, 3)), rng.gamma(5.0, size=(50, 3)))
    return model, drawn, rng


def test_permuted_draws_are_put_back_in_order():
    model, drawn, rng = of_two_labels()
    relabelled = Relabelling.of(model.variables, {"x", "y", "n", "c", "g"}, drawn)
    assert sorted(relabelled.names) == ["rate", "share", "theta", "w"]
    permuted = {name: np.array(own) for name, own in drawn.items() if name != "theta"}
    mean, precision = (np.array(part) for part in drawn["theta"])
    for number in range(50):
        order, other = rng.permutation(3), rng.permutation(2)
        mean[number], precision[number] = mean[number, order], precision[number, order]
        permuted["share"][number] = permuted["share"][number][:, order]
        permuted["w"][number] = permuted["w"][number][:, order]
        permuted["rate"][number] = permuted["rate"][number, other]
    assert not np.array_equal(mean, drawn["theta"].mean)
    found = relabelled({**permuted, "theta": cv.families.MeanPrecision(mean, precision)})
    for name, own in drawn.items():
        np.testing.assert_array_equal(np.array(found[name]), np.array(own))


@pytest.mark.parametrize("case", ["uneven weights", "known labels", "a known category"])
def test_components_that_something_tells_apart_have_no_other_order(case):
    weights = [0.5, 0.6] if case == "uneven weights" else [1.0, 1.0]
    z = cv.Categorical("z", cv.Dirichlet("w", weights), plates=OBS)
    mean = cv.Normal("mean", 0.0, 1.0, plates=KIND)
    measured = cv.Normal("measured", mean, 1.0, plates=KIND)
    model = cv.Model(cv.Normal("x", mean[z], 1.0, plates=OBS), measured)
    known = {"x", "z"} if case == "known labels" else {"x", "measured"}
    rng = np.random.default_rng(0)
    drawn = {"mean": rng.normal(size=(20, 2)), "w": rng.dirichlet([1, 1], 20)}
    assert not Relabelling.of(model.variables, known, drawn).names


def test_labels_that_are_not_summed_out_are_refused():
    document, position = cv.Plate("document"), cv.Plate("position", 3)
    topic = cv.Categorical(
        "topic", cv.Dirichlet("theta", np.ones(2), plates=document), plates=(document, position)
    )
    words = cv.Constant("words", [[0.8, 0.1, 0.1], [0.1, 0.1, 0.8]], plates=KIND)
    b = cv.MultivariateNormal("b", np.zeros(2), np.eye(2))
    model = cv.Model(
        cv.Categorical("word", words[topic], plates=(document, position)),
        cv.Normal("y", cv.dot(b, cv.Frequencies("f", topic)), 4.0, plates=document),
    )
    data = {"word": [[0, 0, 1], [2, 2, 1], [0, 2, 0]], "y": [-3.0, 3.0, -1.0]}
    with pytest.raises(
        cv.ModelError, match="row by row, but each 'f' depends on several of the labels 'topic'"
    ):
        exact_draws(model.fit(data, seed=0), data)

"""With hidden labels summed out, rows have the density that is written out by hand."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, logsumexp

import caviar as cv
from caviar.posterior.evidence.by_densities import by_densities
from caviar.posterior.evidence.summed_labels import LogMarginal, label_sets, n_values_of

OBS = cv.Plate("obs")
KIND = cv.Plate("kind", 2)
N_DRAWS = 7


def density_of(model, data, draws, shape, counted=None):
    """Return the log density of draws and data, the labels that nobody knows summed out."""
    variables = [own for own in model.variables.values() if not own.is_brought]
    hidden = [own.name for own in variables if own.name not in draws and n_values_of(own)]
    hidden = [name for name in hidden if np.isnan(np.asarray(data.get(name, np.nan), float)).any()]
    labels = [(own, shape) for own in label_sets(variables, hidden)]
    assert all(not own.why_not for own, _ in labels)
    brought = [name for name, own in model.variables.items() if own.is_brought]
    density = LogMarginal(model.nodes, data, N_DRAWS, labels, counted, brought)
    found, each = density(draws), density.each(draws)
    if counted is None:
        np.testing.assert_allclose(sum(own.reshape(N_DRAWS, -1).sum(axis=1) for own in each.values()), found)
    return found


def values_of(draws, number):
    return {name: own[number] for name, own in draws.items()}


def of_normals(rng):
    """Unknown means, precisions and weights."""
    z = cv.Categorical("z", cv.Dirichlet("w", [2.0, 1.0]), plates=OBS)
    m, t = cv.Normal("m", 1.0, 0.5, plates=KIND), cv.Gamma("t", 2.0, 3.0, plates=KIND)
    data = {"x": rng.normal(size=9)}
    w = rng.dirichlet([2, 1], N_DRAWS)
    draws = {"m": rng.normal(size=(N_DRAWS, 2)), "t": rng.gamma(2, 1, (N_DRAWS, 2)), "w": w}

    def by_hand(m, t, w):
        prior = stats.norm.logpdf(m, 1.0, 0.5**-0.5).sum() + stats.gamma.logpdf(t, 2, scale=1 / 3).sum()
        each = np.log(w) + stats.norm.logpdf(data["x"][:, None], m, t**-0.5)
        return prior + stats.dirichlet.logpdf(w, [2, 1]) + logsumexp(each, axis=1).sum()

    return cv.Model(cv.Normal("x", m[z], t[z], plates=OBS)), data, draws, by_hand


def of_counts(rng):
    """Known weights, three components."""
    weights = np.array([0.5, 0.3, 0.2])
    z = cv.Categorical("z", weights, plates=OBS)
    rate = cv.Gamma("rate", 2.0, 0.5, plates=cv.Plate("three", 3))
    data, draws = {"x": rng.poisson(4.0, 11)}, {"rate": rng.gamma(2.0, 2.0, (N_DRAWS, 3))}

    def by_hand(rate):
        each = np.log(weights) + stats.poisson.logpmf(data["x"][:, None], rate)
        return stats.gamma.logpdf(rate, 2, scale=2).sum() + logsumexp(each, axis=1).sum()

    return cv.Model(cv.Poisson("x", rate[z], plates=OBS)), data, draws, by_hand


def of_regressions(rng):
    """A line in each component, and a common precision."""
    z = cv.Categorical("z", cv.Dirichlet("w", [1.0, 1.0]), plates=OBS)
    a, b = (cv.Normal(name, 0.0, 0.2, plates=KIND) for name in "ab")
    at = a[z] + b[z] * cv.Data("u", plates=OBS)
    data = {"u": rng.normal(size=8), "x": rng.normal(size=8)}
    draws = {name: rng.normal(size=(N_DRAWS, 2)) for name in "ab"}
    draws |= {"tau": rng.gamma(2.0, 1.0, N_DRAWS), "w": rng.dirichlet([1, 1], N_DRAWS)}

    def by_hand(a, b, tau, w):
        prior = stats.norm.logpdf([a, b], 0.0, 0.2**-0.5).sum() + stats.gamma.logpdf(tau, 2)
        middle = a + b * data["u"][:, None]
        each = np.log(w) + stats.norm.logpdf(data["x"][:, None], middle, tau**-0.5)
        return prior + stats.dirichlet.logpdf(w, [1, 1]) + logsumexp(each, axis=1).sum()

    model = cv.Model(cv.Normal("x", at, cv.Gamma("tau", 2.0, 1.0), plates=OBS))
    return model, data, draws, by_hand


def of_groups(rng):
    """Chances of the labels are those of the group of a row."""
    w = cv.Dirichlet("w", [1.0, 2.0], plates=cv.Plate("group", 3))
    z = cv.Categorical("z", w[cv.Data("g", plates=OBS)], plates=OBS)
    m = cv.Normal("m", 0.0, 0.2, plates=KIND)
    data = {"g": np.array([0, 1, 2, 2, 1, 0, 0]), "x": rng.normal(size=7)}
    draws = {"m": rng.normal(size=(N_DRAWS, 2)), "w": rng.dirichlet([1, 2], (N_DRAWS, 3))}

    def by_hand(m, w):
        each = np.log(w[data["g"]]) + stats.norm.logpdf(data["x"][:, None], m, 0.5**-0.5)
        prior = stats.norm.logpdf(m, 0.0, 0.2**-0.5).sum()
        prior += sum(stats.dirichlet.logpdf(own, [1, 2]) for own in w)
        return prior + logsumexp(each, axis=1).sum()

    return cv.Model(cv.Normal("x", m[z], 0.5, plates=OBS)), data, draws, by_hand


def of_zeros(rng):
    """Counts of which some are zero whatever the rate."""
    z = cv.Categorical("z", cv.Dirichlet("w", [1.0, 1.0]), plates=OBS)
    size = np.array([1e-9, 1.0])
    rate = cv.Gamma("rate", 2.0, 0.5)
    data = {"x": np.array([0, 0, 3, 5, 0, 2])}
    draws = {"rate": rng.gamma(2.0, 2.0, N_DRAWS), "w": rng.dirichlet([1, 1], N_DRAWS)}

    def by_hand(rate, w):
        x = data["x"]
        each = np.where(x == 0, w[0], 0.0) + w[1] * stats.poisson.pmf(x, rate)
        prior = stats.gamma.logpdf(rate, 2, scale=2) + stats.dirichlet.logpdf(w, [1, 1])
        return prior + np.log(each).sum()

    exposure = cv.Data("size", plates=KIND)
    model = cv.Model(cv.Poisson("x", rate * exposure[z], plates=OBS))
    return model, {**data, "size": size}, draws, by_hand


def of_two_labels(rng):
    """Two labels of each row that a number depends on together."""
    z, v = cv.Categorical("z", [0.3, 0.7], plates=OBS), cv.Categorical("v", [0.2, 0.3, 0.5], plates=OBS)
    a, b = cv.Normal("a", 0.0, 0.2, plates=KIND), cv.Normal("b", 0.0, 0.2, plates=cv.Plate("three", 3))
    data = {"x": rng.normal(size=6)}
    draws = {"a": rng.normal(size=(N_DRAWS, 2)), "b": rng.normal(size=(N_DRAWS, 3))}

    def by_hand(a, b):
        each = np.log(np.outer([0.3, 0.7], [0.2, 0.3, 0.5]))
        each = each + stats.norm.logpdf(data["x"][:, None, None], a[:, None] + b)
        prior = stats.norm.logpdf([*a, *b], 0.0, 0.2**-0.5).sum()
        return prior + logsumexp(each, axis=(1, 2)).sum()

    return cv.Model(cv.Normal("x", a[z] + b[v], 1.0, plates=OBS)), data, draws, by_hand


def of_answers(rng):
    """A logistic regression in each component; its chance depends on the row."""
    u = cv.Data("u", plates=OBS)
    chance = cv.softmax(cv.Normal("c", 0.0, 1.0, plates=KIND) * u)
    z = cv.Categorical("z", chance, plates=OBS)
    a, b = (cv.Normal(name, 0.0, 0.2, plates=KIND) for name in "ab")
    data = {"u": rng.normal(size=8), "y": rng.integers(0, 2, 8)}
    draws = {name: rng.normal(size=(N_DRAWS, 2)) for name in "abc"}

    def by_hand(a, b, c):
        u, y = data["u"][:, None], data["y"][:, None]
        yes = expit(a + b * u)
        each = c * u - logsumexp(c * u, axis=1, keepdims=True) + np.log(np.where(y, yes, 1 - yes))
        prior = stats.norm.logpdf([a, b], 0.0, 0.2**-0.5).sum() + stats.norm.logpdf(c).sum()
        return prior + logsumexp(each, axis=1).sum()

    return cv.Model(cv.Bernoulli("y", cv.logistic(a[z] + b[z] * u), plates=OBS)), data, draws, by_hand


@pytest.mark.parametrize(
    "case", [of_normals, of_counts, of_regressions, of_groups, of_zeros, of_two_labels, of_answers]
)
def test_labels_of_rows(case):
    model, data, draws, by_hand = case(np.random.default_rng(0))
    n_rows = next(len(own) for name, own in data.items() if name in "xy")
    found = density_of(model, data, draws, (n_rows,))
    exact = [by_hand(**values_of(draws, number)) for number in range(N_DRAWS)]
    np.testing.assert_allclose(found, exact, rtol=1e-8)


def test_labels_of_groups():
    """All rows of a group have its label."""
    rng = np.random.default_rng(1)
    z = cv.Categorical("z", [0.4, 0.6], plates=cv.Plate("group", 3))
    m = cv.Normal("m", 0.0, 0.2, plates=KIND)
    model = cv.Model(cv.Normal("x", m[z[cv.Data("g", plates=OBS)]], 1.0, plates=OBS))
    data = {"g": np.array([2, 0, 0, 1, 2, 2]), "x": rng.normal(size=6)}
    draws = {"m": rng.normal(size=(N_DRAWS, 2))}
    exact = []
    for own in draws["m"]:
        each = stats.norm.logpdf(data["x"][:, None], own)
        of_group = [each[data["g"] == group].sum(axis=0) for group in range(3)]
        exact.append(
            stats.norm.logpdf(own, 0.0, 0.2**-0.5).sum()
            + logsumexp(np.log([0.4, 0.6]) + of_group, axis=1).sum()
        )
    np.testing.assert_allclose(density_of(model, data, draws, (3,)), exact)


def test_numbers_zero_or_one_of_groups():
    """An effect that is absent in some groups."""
    rng = np.random.default_rng(1)
    group = cv.Plate("group", 3)
    is_odd, effect = cv.Bernoulli("is_odd", 0.3, plates=group), cv.Normal("effect", 0.0, 0.5, plates=group)
    g = cv.Data("g", plates=OBS)
    model = cv.Model(cv.Normal("x", is_odd[g] * effect[g], 1.0, plates=OBS))
    data = {"g": np.array([2, 0, 0, 1, 2, 2]), "x": rng.normal(size=6)}
    draws = {"effect": rng.normal(size=(N_DRAWS, 3))}
    exact = []
    for own in draws["effect"]:
        each = stats.norm.logpdf(data["x"][:, None], np.stack([np.zeros(3), own], axis=1)[data["g"]])
        of_group = [each[data["g"] == group].sum(axis=0) for group in range(3)]
        prior = stats.norm.logpdf(own, 0.0, 0.5**-0.5).sum()
        exact.append(prior + logsumexp(np.log([0.7, 0.3]) + of_group, axis=1).sum())
    np.testing.assert_allclose(density_of(model, data, draws, (3,)), exact)


def test_labels_that_are_known_in_some_rows():
    model, data, draws, _ = of_normals(np.random.default_rng(2))
    known = np.where(np.arange(9) < 3, [0, 1, 1, 0, 0, 0, 0, 0, 0], np.nan)
    x, exact = data["x"][:, None], []
    for number in range(N_DRAWS):
        own = values_of(draws, number)
        m, t, w = own["m"], own["t"], own["w"]
        each = np.log(w) + stats.norm.logpdf(x, m, t**-0.5)
        rows = [*each[[0, 1, 2], [0, 1, 1]], *logsumexp(each[3:], axis=1)]
        prior = stats.norm.logpdf(m, 1.0, 0.5**-0.5).sum() + stats.gamma.logpdf(t, 2, scale=1 / 3).sum()
        exact.append(prior + stats.dirichlet.logpdf(w, [2, 1]) + np.sum(rows))
    np.testing.assert_allclose(density_of(model, {**data, "z": known}, draws, (9,)), exact)


def test_missing_numbers_of_labelled_rows_integrate_to_one():
    model, data, draws, _ = of_normals(np.random.default_rng(3))
    is_seen = np.arange(9) < 6
    cut = density_of(model, {"x": data["x"][is_seen]}, draws, (6,))
    missing = {"x": np.where(is_seen, data["x"], np.nan)}
    np.testing.assert_allclose(density_of(model, missing, draws, (9,), {"x": is_seen}), cut)


def test_what_labels_are_not_summed_out_row_by_row():
    z = cv.Categorical("z", [0.5, 0.5], plates=OBS)
    wide = cv.Categorical("wide", [0.5, 0.5], plates=(OBS, cv.Plate("item", 2)))
    m = cv.Normal("m", 0.0, 1.0, plates=(KIND, cv.Plate("other", 2)))
    both = cv.Normal("x", m[z, wide], 1.0, plates=(OBS, wide.plates[1]))
    (found,) = label_sets([z, wide, m, both], ["z", "wide"])
    assert "both 'z' and 'wide', which have different plates" in found.why_not
    document, position = cv.Plate("document"), cv.Plate("position", 3)
    topic = cv.Categorical("topic", [0.5, 0.5], plates=(document, position))
    frequencies = cv.Frequencies("frequencies", topic)
    (found,) = label_sets([topic, frequencies], ["topic"])
    assert "each 'frequencies' depends on several of the labels 'topic'" in found.why_not


def by_densities_of(posterior, data, weights=None):
    """Return what weighs draws by densities, if anything does."""
    problem, _ = posterior._evaluator.at_points(data, weights)
    return by_densities(posterior, data, weights, problem, posterior._counted(data, weights))


@pytest.mark.parametrize("weights", [None, [0.0, 2.0, *[1.0] * 6]])
def test_labels_beside_links_are_summed_out(weights):
    """Passes have a bound of the link; with a weight of 2 a row is there twice."""
    model, data, draws, by_hand = of_answers(np.random.default_rng(0))
    posterior = model.fit(data, seed=0, sample_weight=weights)
    density = by_densities_of(posterior, data, weights)
    if weights is not None:
        data |= {name: np.repeat(own, np.array(weights, int)) for name, own in data.items()}
    exact = [by_hand(*(draws[name][number] for name in "abc")) for number in range(7)]
    np.testing.assert_allclose(density(draws), exact, rtol=1e-8)


def test_mixtures_of_normals_are_left_to_passes():
    model, data, _, _ = of_normals(np.random.default_rng(0))
    assert by_densities_of(model.fit(data, seed=0), data) is None

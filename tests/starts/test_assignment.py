"""Clusters go to the components whose log marginal is largest, in whatever order these are stated."""

from itertools import permutations

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import multivariate_t

import caviar as cv
from caviar.engine.starts import from_data as data_start
from caviar.engine.starts.components.steps import in_steps
from caviar.engine.starts.guesses import assignment
from caviar.engine.starts.guesses.from_labels import from_labels
from starts.registry import CASES


@pytest.fixture
def basis_of(monkeypatch):
    """Return what the start of a fit is made from."""
    seen = []
    candidates = data_start._candidates
    monkeypatch.setattr(data_start, "_candidates", lambda basis: seen.append(basis) or candidates(basis))

    def basis(model, data):
        model.fit(data, seed=0, max_iter=0)
        return seen[-1]

    return basis


def _log_marginal(x, mean, mean_precision, shape, rate):
    """Return the log density of numbers under a Normal-Gamma prior: a multivariate Student-t."""
    if not len(x):
        return 0.0
    spread = rate / shape * (np.eye(len(x)) + 1 / mean_precision)
    return multivariate_t.logpdf(x, np.full(len(x), mean), spread, df=2 * shape)


def test_the_gain_of_a_component_is_its_log_marginal(basis_of):
    """Differences between permutations are those of Student-t densities: constants are the same for all."""
    rng = np.random.default_rng(0)
    means, mean_precisions = np.array([-1.0, 0.0, 3.0]), np.array([0.1, 2.0, 0.5])
    shapes, rates = np.array([1.0, 5.0, 2.0]), np.array([1.0, 0.3, 4.0])
    x = np.sort(rng.normal(size=9)) * 2
    obs, k = cv.Plate("obs"), cv.Plate("k", 3)
    known = {
        name: cv.Constant(name, value, plates=k)
        for name, value in (("m", means), ("c", mean_precisions), ("a", shapes), ("b", rates))
    }
    theta = cv.NormalGamma("theta", known["m"], known["c"], known["a"], known["b"], plates=k)
    z = cv.Categorical("z", np.ones(3) / 3, plates=obs)
    basis = basis_of(cv.Model(cv.Normal("x", theta[z], plates=obs)), {"x": x})
    labels = np.array([0, 0, 0, 0, 1, 1, 1, 2, 2])
    (gate,) = basis.gates
    gain = assignment._component_gains(basis, gate, {gate.variable: labels}, from_labels)
    exact = np.array(
        [
            [
                _log_marginal(x[labels == cluster], *prior)
                for prior in zip(means, mean_precisions, shapes, rates, strict=True)
            ]
            for cluster in range(3)
        ]
    )
    orders = list(permutations(range(3)))
    ours = np.array([gain[np.arange(3), order].sum() for order in orders])
    theirs = np.array([exact[np.arange(3), order].sum() for order in orders])
    np.testing.assert_allclose(ours - ours[0], theirs - theirs[0], rtol=1e-9, atol=1e-9)


def test_the_gain_of_weights_is_that_of_the_dirichlet_multinomial(basis_of):
    x = np.repeat([0.0, 5.0, 9.0], [7, 2, 4])
    prior = np.array([0.5, 3.0, 20.0])
    obs, k = cv.Plate("obs"), cv.Plate("k", 3)
    z = cv.Categorical("z", cv.Dirichlet("w", prior), plates=obs)
    basis = basis_of(
        cv.Model(cv.Normal("x", cv.Normal("mu", 0, 0.01, plates=k)[z], 1.0, plates=obs)), {"x": x}
    )
    (gate,) = basis.gates
    counts = np.array([7.0, 2.0, 4.0])
    gain = assignment._weight_gains(basis, gate, counts)
    for order in permutations(range(3)):
        own = counts[list(order)]
        exact = (
            gammaln(prior.sum()) - gammaln(prior.sum() + 13) + (gammaln(prior + own) - gammaln(prior)).sum()
        )
        found = sum(gain[cluster, component] for component, cluster in enumerate(order))
        assert found + gammaln(prior.sum()) - gammaln(prior.sum() + 13) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize(
    ("wide", "narrow"), [(0.01, 400.0), (400.0, 0.01)], ids=["wide first", "narrow first"]
)
def test_a_wide_prior_takes_the_far_cluster(basis_of, wide, narrow):
    """A cluster at the mean of a narrow prior and one far from both; the expected log density would swap them."""
    x = np.concatenate([np.linspace(-0.1, 0.1, 20), np.linspace(9.9, 10.1, 20)])
    obs, k = cv.Plate("obs"), cv.Plate("k", 2)
    z = cv.Categorical("z", [0.5, 0.5], plates=obs)
    precision = cv.Constant("p", [wide, narrow], plates=k)
    basis = basis_of(
        cv.Model(cv.Normal("x", cv.Normal("mu", 0, precision, plates=k)[z], 1.0, plates=obs)), {"x": x}
    )
    for labels in (np.repeat([0, 1], 20), np.repeat([1, 0], 20)):
        (gate,) = basis.gates
        found = assignment.assigned(basis, {gate.variable: labels}, from_labels)[gate.variable]
        far = int(np.argmin([wide, narrow]))
        assert (found == np.repeat([1 - far, far], 20)).all()


@pytest.mark.slow
@pytest.mark.thinned(2)
@pytest.mark.parametrize("size", [3, 8])
def test_states_are_told_apart_by_their_steps(basis_of, size):
    """Of states with the same emissions, most of which are passed in turn, any numbering is undone."""
    rng = np.random.default_rng(size)
    stay = np.linspace(0.2, 0.9, size)
    move = np.diag(stay) + (1 - stay)[:, None] * np.roll(np.eye(size), 1, axis=1)
    move[-1] = np.where(np.arange(size) < size - 1, 0.1 / (size - 1), 0.9)
    move = 0.9 * move + 0.1 / size
    path = [0]
    for _ in range(900):
        path.append(int(rng.choice(size, p=move[path[-1]])))
    path = np.array(path)
    obs, k = cv.Plate("obs"), cv.Plate("k", size)
    s = cv.MarkovChain("s", np.ones(size) / size, move, along=obs)
    mean = cv.Normal("mu", 0, 0.01, plates=k)
    basis = basis_of(cv.Model(cv.Normal("x", mean[s], 1.0, plates=obs)), {"x": 10.0 * path})
    (gate,) = basis.gates
    for _ in range(3):
        numbers = rng.permutation(size)
        names = in_steps(basis.problem, basis.sample, gate, numbers[path], np.zeros((size, size)), rng)
        assert (names[numbers[path]] == path).all()


@pytest.mark.thinned(4)
@pytest.mark.parametrize("kind", ["widths 0.1 and 3", "shapes 9 and 2", "Wishart priors"])
def test_the_order_of_the_statement_does_not_matter(kind):
    """The same data with the components in either order: one ELBO."""
    one, other = (CASES[f"{kind}, order {order}"] for order in ((0, 1), (1, 0)))
    rng = np.random.default_rng(5)
    first, second = (case.make(np.random.default_rng(7)) for case in (one, other))
    np.testing.assert_array_equal(first.data["x"], second.data["x"])
    seed = int(rng.integers(100))
    elbos = [problem.model.fit(problem.data, seed=seed).elbo for problem in (first, second)]
    assert elbos[0] == pytest.approx(elbos[1], abs=1e-4)


def test_known_labels_name_their_clusters():
    """Labels of a few rows are enough, where the values say nothing of which component is which."""
    rng = np.random.default_rng(3)
    z = np.arange(90) % 3
    x = np.array([-8.0, 0.0, 8.0])[z] + rng.normal(size=90)
    known = np.full(90, np.nan)
    known[:6] = (z[:6] + 1) % 3
    obs, k = cv.Plate("obs"), cv.Plate("k", 3)
    label = cv.Categorical("z", cv.Dirichlet("w", np.ones(3)), plates=obs)
    model = cv.Model(cv.Normal("x", cv.Normal("mu", 0, 0.01, plates=k)[label], 1.0, plates=obs))
    for seed in range(3):
        posterior = model.fit({"x": x, "z": known}, seed=seed)
        np.testing.assert_allclose(posterior["mu"].mean, [8.0, -8.0, 0.0], atol=0.6)

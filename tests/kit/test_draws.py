"""Log joint densities of draws together are those of each draw, and labels that share a factor are drawn together."""

import warnings

import numpy as np
import pytest
from random_models.at_large import drawn
from scipy import stats

import caviar as cv
from caviar.posterior.evidence.log_joint import log_joints, stacked
from caviar.posterior.simulation import one_by_one
from caviar.testing import elbo_estimate

# with labels, chains of states and of vectors, sparse effects, joint factors of mean and precision
SEEDS = range(5000, 5040)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("part", range(4))
def test_densities_of_random_models(part: int):
    for seed in SEEDS[part::4]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            stated, data, _, n_rows = drawn(seed)
        hidden = [name for name in stated.model.variables if name not in data]
        draws = [stated.simulate_all(seed + i, n_rows) for i in range(3)]
        values = {name: stacked([draw[name] for draw in draws]) for name in hidden}
        found = log_joints(stated.model.nodes, data, values, 3)
        each = [stated.model.log_joint({**data, **own}) for own in one_by_one(values, 3)]
        np.testing.assert_allclose(found, each, rtol=1e-9)


def test_densities_of_entries_whose_parents_lie_along_them():
    """A share and a precision for each entry, the same in all repetitions, are laid along the draws too."""
    factor, column, obs = cv.Plate("factor", 2), cv.Plate("column", 3), cv.Plate("obs")
    share = cv.Beta("share", 1, 1, plates=factor)
    w = cv.SpikeSlab("w", share, precision=cv.Gamma("relevance", 1, 1, plates=factor), plates=column)
    y = cv.Normal("y", cv.dot(cv.Data("X", plates=obs), w), 1.0, plates=(obs, column))
    rng = np.random.default_rng(0)
    shares, precisions = rng.beta(1, 1, (5, 2)), rng.gamma(1, 1, (5, 2))
    entries = rng.normal(size=(5, 3, 2)) * rng.integers(2, size=(5, 3, 2))
    data = {"X": rng.normal(size=(4, 2)), "y": rng.normal(size=(4, 3))}
    found = log_joints(cv.Model(y).nodes, data, {"w": entries, "share": shares, "relevance": precisions}, 5)
    slab = stats.norm.logpdf(entries, scale=precisions[:, None] ** -0.5)
    exact = np.where(entries == 0, np.log1p(-shares)[:, None], np.log(shares)[:, None] + slab).sum(
        axis=(1, 2)
    )
    exact -= precisions.sum(axis=1)
    exact += stats.norm.logpdf(data["y"], np.einsum("nf,dcf->dnc", data["X"], entries)).sum(axis=(1, 2))
    np.testing.assert_allclose(found, exact, rtol=1e-12)


@pytest.mark.parametrize("kind", [cv.SpikeSlab, cv.SingleEffect])
def test_densities_of_as_many_draws_as_entries(kind):
    """One precision for all entries is not one for each, also where there are as many draws, or repetitions."""
    first = {"probability": 0.4, "length": 3} if kind is cv.SpikeSlab else {"probabilities": [0.2, 0.3, 0.5]}
    group = cv.Plate("group", 3)
    precision = cv.Gamma("precision", 2.0, 1.0, plates=group)
    w = kind("w", **first, precision=precision, plates=group)
    precisions = np.array([0.5, 2.0, 8.0])
    entries = np.array([[0.0, 0.3, 0.0], [0.0, 0.0, -0.7], [0.0, 1.1, 0.0]])
    shares = np.full(3, 0.4 * 0.6**2) if kind is cv.SpikeSlab else np.array([0.3, 0.5, 0.3])
    exact = np.log(shares) + stats.norm.logpdf(entries.sum(axis=1), scale=precisions**-0.5)
    exact += stats.gamma.logpdf(precisions, 2.0)
    model = cv.Model(w)
    np.testing.assert_allclose(
        model.log_joint({"w": entries, "precision": precisions}), exact.sum(), rtol=1e-12
    )
    each = {"w": np.stack([entries, entries, entries]), "precision": np.stack([precisions] * 3)}
    np.testing.assert_allclose(log_joints(model.nodes, {}, each, 3), exact.sum(), rtol=1e-12)


@pytest.mark.parametrize("is_chain", [False, True])
def test_labels_that_share_a_factor_are_drawn_together(is_chain):
    """Of an exact posterior every draw says the evidence."""
    row, state, part = cv.Plate("row"), cv.Plate("state", 2), cv.Plate("part", 3)
    shares = np.array([[0.8, 0.1, 0.1], [0.1, 0.1, 0.8]])
    if is_chain:
        s = cv.MarkovChain("s", [0.6, 0.4], np.array([[0.9, 0.1], [0.2, 0.8]]), along=row)
    else:
        s = cv.Categorical("s", [0.6, 0.4], plates=row)
    z = cv.Categorical("z", cv.Constant("shares", shares, plates=state)[s], plates=row)
    x = cv.Normal("x", cv.Constant("means", [0.0, 1.0, 2.0], plates=part)[z], 1.0, plates=row)
    data = {"x": np.array([0.1, 1.2, 0.4, 1.9])}
    posterior = cv.Model(x).fit(data)
    estimate = elbo_estimate(posterior, data, n_draws=20)
    assert estimate.value == pytest.approx(posterior.elbo, abs=1e-9)
    assert estimate.error < 1e-9

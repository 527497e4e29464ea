"""Tables of log densities over a label: exact by enumeration where they can be, mean field by hand elsewhere."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.special import digamma, gammaln, logsumexp
from scipy.stats import binom, norm

import caviar as cv
from caviar._typing import Array
from caviar.engine.starts.from_user import open_variables
from caviar.fitting.model import assembled
from caviar.testing import check_model

ROW = cv.Plate("row")
TABLE = np.random.default_rng(0).normal(size=(5, 3)) * 2
KNOWN = np.array([0.2, 0.3, 0.5])


def _evidence_with_dirichlet(table: Array, concentration: Array) -> float:
    """Return the log evidence by a sum over all labels, the weights integrated out."""
    total = []
    for labels in product(range(table.shape[1]), repeat=len(table)):
        counts = np.bincount(labels, minlength=table.shape[1])
        ratio = gammaln(concentration + counts).sum() - gammaln(concentration).sum()
        ratio += gammaln(concentration.sum()) - gammaln(concentration.sum() + len(labels))
        total.append(ratio + table[np.arange(len(labels)), list(labels)].sum())
    return float(logsumexp(total))


def test_known_weights_are_exact_with_weights_and_missing_rows() -> None:
    z = cv.Categorical("z", KNOWN, plates=ROW)
    model = cv.Model(cv.Potential("table", z, plates=ROW))
    each = logsumexp(TABLE + np.log(KNOWN), axis=1)
    assert model.fit({"table": TABLE}).elbo == pytest.approx(each.sum(), rel=1e-13)
    gaps = TABLE.copy()
    gaps[1] = np.nan
    weight = np.array([2, 1, 0, 3, 1.0])
    elbo = model.fit({"table": gaps}, sample_weight=weight).elbo
    assert elbo == pytest.approx(weight[[0, 3, 4]] @ each[[0, 3, 4]], rel=1e-13)
    np.testing.assert_allclose(model.fit({"table": TABLE}).log_predictive({"table": TABLE}), each, rtol=1e-12)


@pytest.mark.parametrize("gates", [False, True], ids=["alone", "with a number that it chooses"])
def test_a_table_over_a_label_that_shares_its_factor_is_exact(gates: bool) -> None:
    choice, shares = cv.Plate("choice", 2), np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]])
    z = cv.Categorical("z", [0.4, 0.6], plates=ROW)
    y = cv.Categorical("y", cv.Constant("shares", shares, plates=choice)[z], plates=ROW)
    leaves: list[cv.Potential | cv.Normal] = [cv.Potential("table", y, plates=ROW)]
    data, x = {"table": TABLE}, np.linspace(-1, 2, 5)
    both = np.log([[0.4], [0.6]]) + np.log(shares) + TABLE[:, None]
    if gates:
        mean = cv.Constant("mean", np.arange(6.0).reshape(2, 3), plates=(choice, cv.Plate("of y", 3)))
        leaves.append(cv.Normal("x", mean[z, y], 1.0, plates=ROW))
        data["x"] = x
        both = both + norm.logpdf(x[:, None, None], np.arange(6.0).reshape(2, 3))
    assert cv.Model(*leaves).fit(data).elbo == pytest.approx(logsumexp(both, axis=(1, 2)).sum(), rel=1e-12)


def test_a_table_of_emissions_in_a_hidden_markov_model_is_exact() -> None:
    transition = np.array([[0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]])
    states = cv.MarkovChain("s", KNOWN, transition, along=ROW)
    elbo = cv.Model(cv.Potential("table", states, plates=ROW)).fit({"table": TABLE}).elbo
    paths = []
    with np.errstate(divide="ignore"):
        for path in product(range(3), repeat=5):
            steps = np.log(transition[list(path[:-1]), list(path[1:])]).sum()
            paths.append(np.log(KNOWN[path[0]]) + steps + TABLE[np.arange(5), list(path)].sum())
    assert elbo == pytest.approx(logsumexp(paths), rel=1e-12)


@pytest.mark.slow
def test_learnt_weights_are_below_the_evidence_in_every_schedule(tmp_path: Path) -> None:
    concentration = np.array([1.0, 2.0, 1.0])
    z = cv.Categorical("z", cv.Dirichlet("w", concentration), plates=ROW)
    model = cv.Model(cv.Potential("table", z, plates=ROW))
    posterior = model.fit({"table": TABLE}, seed=0, tol=1e-13)
    evidence = _evidence_with_dirichlet(TABLE, concentration)
    assert evidence - 0.7 < posterior.elbo < evidence
    check_model(model, {"table": TABLE}).raise_if_failed()
    for arguments in ({"schedule": cv.Incremental()}, {"executor": 2}):
        again = model.fit({"table": TABLE}, seed=0, tol=1e-13, **arguments)
        assert again.elbo == pytest.approx(posterior.elbo, rel=1e-9)
    posterior.save(tmp_path / "m.caviar")
    assert cv.load(tmp_path / "m.caviar").elbo == posterior.elbo


def _by_hand(table: Array, n_clusters: int, seed: int) -> float:
    """Return where the updates of PyClone-VI's model end from random labels: rows, samples and grid in the table."""
    n_grid = table.shape[2]
    labels = np.random.default_rng(seed).dirichlet(np.ones(n_clusters), size=len(table))
    elbo = -np.inf
    for _ in range(300):
        concentration = 1 + labels.sum(axis=0)
        log_weights = digamma(concentration) - digamma(concentration.sum())
        grid = np.einsum("nk,nsg->ksg", labels, table) - np.log(n_grid)
        grid -= logsumexp(grid, axis=2, keepdims=True)
        logits = log_weights + np.einsum("nsg,ksg->nk", table, np.exp(grid))
        labels = np.exp(logits - logsumexp(logits, axis=1, keepdims=True))
    concentration = 1 + labels.sum(axis=0)
    log_weights = digamma(concentration) - digamma(concentration.sum())
    elbo = np.einsum("nk,nsg,ksg", labels, table, np.exp(grid))
    elbo += (np.exp(grid) * (-np.log(n_grid) - grid)).sum() + gammaln(n_clusters)
    elbo += (labels * (log_weights - np.log(np.maximum(labels, 1e-300)))).sum()
    return (
        elbo
        - ((concentration - 1) * log_weights).sum()
        - gammaln(concentration.sum())
        + gammaln(concentration).sum()
    )


@pytest.mark.slow
def test_cellular_prevalences_of_clusters_on_a_grid() -> None:
    """PyClone-VI: the label of a mutation chooses for each sample a prevalence, which is a label of a grid."""
    rng = np.random.default_rng(1)
    table = rng.normal(size=(6, 2, 4)) * 2
    cluster, sample = cv.Plate("cluster", 2), cv.Plate("sample", 2)
    phi = cv.Categorical("phi", np.full(4, 0.25), plates=(cluster, sample))
    z = cv.Categorical("z", cv.Dirichlet("pi", np.ones(2)), plates=ROW)
    model = cv.Model(cv.Potential("table", phi[z], plates=(ROW, sample)))
    posterior = model.fit({"table": table}, seed=0, n_restarts=3, tol=1e-13)
    best = max(_by_hand(table, 2, seed) for seed in range(20))
    assert posterior.elbo == pytest.approx(best, rel=1e-9)
    # prevalences are told apart by the table, and need no start from the data where the labels are given
    problem = assembled(model, {"table": table}, [])
    assert not open_variables(problem, ["z"])
    assert {own.name for own in open_variables(problem, [])} == {"phi"}


def test_what_is_no_label_and_what_is_no_draw_is_refused() -> None:
    with pytest.raises(
        cv.ConjugacyError, match="'label' of Potential 'table' takes a Categorical or a MarkovChain"
    ):
        cv.Potential("table", cv.Normal("a", 0, 1), plates=ROW)
    z = cv.Categorical("z", KNOWN, plates=ROW)
    model = cv.Model(cv.Potential("table", z, plates=ROW))
    with pytest.raises(
        cv.ModelError, match="cannot be simulated: its table of log densities comes from the user"
    ):
        model.simulate(0, sizes={"row": 3})
    with pytest.raises(cv.PlateError, match="has dimension 3"):
        model.fit({"table": TABLE[:, :2]})
    with pytest.raises(cv.ModelError, match="contains nothing about new rows"):
        model.fit({"table": TABLE, "z": np.full(5, np.nan)}).predict({"z": [0, 1, 2]})


def test_known_probabilities_of_a_label_of_each_row():
    """As many categories as a table has: equal probabilities, and a table of the logs of the known ones."""
    rng, obs = np.random.default_rng(3), cv.Plate("obs")
    known, x = rng.dirichlet(np.ones(3), 6), rng.normal(size=6)
    z = cv.Categorical("z", np.full(3, 1 / 3), plates=obs)
    level = cv.Constant("level", [0.0, 1.0, 3.0], plates=cv.Plate("component", 3))
    model = cv.Model(cv.Potential("told", z, plates=obs), cv.Normal("x", level[z], 1.0, plates=obs))
    exact = np.log((known * np.exp(-0.5 * (x[:, None] - [0.0, 1.0, 3.0]) ** 2)).sum(axis=1)) - 0.5 * np.log(
        2 * np.pi
    )
    assert model.fit({"told": np.log(3 * known), "x": x}).elbo == pytest.approx(exact.sum(), rel=1e-12)


def test_what_a_table_cannot_hold_is_refused_with_what_to_give():
    row = cv.Plate("row")
    z = cv.Categorical("z", [0.5, 0.5], plates=row)
    with pytest.raises(cv.ConjugacyError, match=r"one label, not 2.*Categorical of all pairs"):
        cv.Potential("both", z, z, plates=row)
    model = cv.Model(cv.Potential("table", z, plates=row))
    with pytest.raises(cv.DataError, match=r"infinity in row 0; give an impossible category .* -1e10"):
        model.fit({"table": [[0.0, -np.inf], [1.0, 2.0]]})
    told = model.fit({"table": [[0.0, -1e10], [1.0, 2.0]]}).local({"table": [[0.0, -1e10]]})
    np.testing.assert_allclose(told["z"].probabilities, [[1.0, 0.0]], atol=1e-200)


@pytest.mark.slow
@pytest.mark.starts_of_users
def test_clusters_on_a_grid_start_where_many_starts_from_the_prior_lead():
    """Clustered by probabilities, not their roots, six of six starts ended 1 to 7 nats lower."""
    rng, n_rows, n_samples, n_clusters = np.random.default_rng(12), 145, 2, 8
    grid, share = np.linspace(0.01, 0.99, 40), rng.random((n_clusters, n_samples))
    z = rng.choice(n_clusters, n_rows, p=rng.dirichlet(np.ones(n_clusters)))
    depth = rng.poisson(60, size=(n_rows, n_samples))
    table = binom.logpmf(rng.binomial(depth, share[z])[..., None], depth[..., None], grid)
    row, cluster, sample = cv.Plate("row"), cv.Plate("cluster", 2 * n_clusters), cv.Plate("sample", n_samples)
    place = cv.Categorical("place", np.full(40, 1 / 40), plates=(cluster, sample))
    label = cv.Categorical("label", cv.Dirichlet("weights", np.ones(2 * n_clusters)), plates=row)
    model = cv.Model(cv.Potential("table", place[label], plates=(row, sample)))
    best = model.fit({"table": table}, init="prior", n_restarts=20, seed=0, swaps=False).elbo
    ends = [model.fit({"table": table}, seed=seed).elbo for seed in range(3)]
    assert min(ends) > best - 0.1

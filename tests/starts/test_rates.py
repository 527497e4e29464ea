"""Starts of rates of low rank: counts whose rates are dot products of Gammas."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.special import gammaln

import caviar as cv
from caviar.engine.starts.products.rates.factors_of_counts import (
    Counts,
    GammaPrior,
    _climbed,
    _padded,
    _settled,
    factors_of_counts,
)

pytestmark = pytest.mark.starts_of_users

N, D, K, SHAPE = 80, 15, 3, 0.3


class Simulated:
    """Counts from rates of low rank, and the model that they are from."""

    def __init__(self, seed: int, n_components: int = K, shape: float = SHAPE) -> None:
        self.rng = rng = np.random.default_rng(seed)
        self.scores, self.loadings = (rng.gamma(shape, 1 / shape, (n, K)) for n in (N, D))
        self.rates = self.scores @ self.loadings.T
        self.row, self.column = cv.Plate("row"), cv.Plate("column", D)
        part = cv.Plate("part", n_components)
        self.u = cv.Gamma("u", shape, shape, plates=(self.row, part))
        self.v = cv.Gamma("v", shape, shape, plates=(self.column, part))
        self.dot = cv.dot(self.u, self.v)

    def model(self, rate: object) -> cv.Model:
        """Return the model of counts with a rate."""
        return cv.Model(cv.Poisson("x", rate, plates=(self.row, self.column)))

    def at_truth(self, model: cv.Model, data: dict[str, object]) -> cv.Posterior:
        """Return the fit that begins at the values the counts were drawn from."""
        return model.fit(data, init={"u": self.scores, "v": self.loadings}, max_iter=500)


def _plain(own: Simulated) -> tuple[cv.Model, dict[str, object]]:
    return own.model(own.dot), {"x": own.rng.poisson(own.rates)}


def _with_exposure(own: Simulated) -> tuple[cv.Model, dict[str, object]]:
    hours = own.rng.gamma(2.0, 0.5, N)
    model = own.model(own.dot * cv.Data("hours", plates=own.row))
    return model, {"x": own.rng.poisson(hours[:, None] * own.rates), "hours": hours}


def _with_exposure_of_cells(own: Simulated) -> tuple[cv.Model, dict[str, object]]:
    hours = own.rng.gamma(2.0, 0.5, (N, D))
    model = own.model(2.0 * own.dot * cv.Data("hours", plates=(own.row, own.column)))
    return model, {"x": own.rng.poisson(2.0 * hours * own.rates), "hours": hours}


def _with_exposure_of_columns(own: Simulated) -> tuple[cv.Model, dict[str, object]]:
    hours = own.rng.gamma(2.0, 5.0, D)
    model = own.model(own.dot * cv.Data("hours", plates=own.column))
    return model, {"x": own.rng.poisson(hours * own.rates), "hours": hours}


def _with_gaps(own: Simulated) -> tuple[cv.Model, dict[str, object]]:
    x = own.rng.poisson(own.rates).astype(float)
    x[own.rng.random(x.shape) < 0.3] = np.nan
    return own.model(own.dot), {"x": x}


def _with_background(own: Simulated) -> tuple[cv.Model, dict[str, object]]:
    background = cv.Gamma("background", 1.0, 1.0, plates=own.column)
    return own.model(own.dot + background), {"x": own.rng.poisson(own.rates + 0.3)}


@pytest.mark.parametrize(
    "case",
    [
        # plain counts are those of the tests below
        pytest.param(_plain, marks=pytest.mark.slow),
        pytest.param(_with_exposure, marks=pytest.mark.slow),
        _with_exposure_of_cells,
        pytest.param(_with_exposure_of_columns, marks=pytest.mark.slow),
        _with_gaps,
        _with_background,
    ],
)
@pytest.mark.parametrize(
    "seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)]
)
def test_fits_end_where_those_from_the_truth_do(case, seed):
    own = Simulated(seed)
    model, data = case(own)
    assert model.fit(data, seed=seed, max_iter=500).elbo > own.at_truth(model, data).elbo - 0.05 * N


def test_too_many_components_are_left_out():
    few, many = Simulated(3), Simulated(3, n_components=2 * K)
    (_, data), (model, _) = _plain(few), _plain(many)
    at_truth = {
        "u": np.concatenate([few.scores, np.ones((N, K))], axis=1),
        "v": np.concatenate([few.loadings, np.full((D, K), 1e-3)], axis=1),
    }
    assert model.fit(data, seed=0).elbo > model.fit(data, init=at_truth).elbo - 0.02 * N


def test_counts_in_a_long_table():
    own = Simulated(4)
    person, entry = cv.Plate("person", N), cv.Plate("entry")
    u = cv.Gamma("u", SHAPE, SHAPE, plates=(person, *own.u.plates[1:]))
    rate = cv.dot(u[cv.Data("i", plates=entry)], own.v[cv.Data("j", plates=entry)])
    model = cv.Model(cv.Poisson("x", rate, plates=entry))
    i, j = np.nonzero(own.rng.random((N, D)) < 0.7)
    data = {"x": own.rng.poisson(own.rates[i, j]), "i": i, "j": j}
    assert model.fit(data, seed=0).elbo > own.at_truth(model, data).elbo - 0.02 * N


def test_counts_that_vary_more_than_poisson_ones():
    own = Simulated(5)
    model = cv.Model(cv.NegativeBinomial("x", own.dot, 3.0, plates=(own.row, own.column)))
    data = {"x": own.rng.poisson(own.rates * own.rng.gamma(3.0, 1 / 3.0, own.rates.shape))}
    assert model.fit(data, seed=0).elbo > own.at_truth(model, data).elbo - 0.02 * N


def test_two_tables_of_the_same_rows():
    own = Simulated(6)
    other = cv.Plate("other", 8)
    w = cv.Gamma("w", SHAPE, SHAPE, plates=(other, own.u.plates[1]))
    counts = cv.Poisson("y", cv.dot(own.u, w), plates=(own.row, other))
    model = cv.Model(cv.Poisson("x", own.dot, plates=(own.row, own.column)), counts)
    more = own.rng.gamma(SHAPE, 1 / SHAPE, (8, K))
    data = {"x": own.rng.poisson(own.rates), "y": own.rng.poisson(own.scores @ more.T)}
    at_truth = model.fit(data, init={"u": own.scores, "v": own.loadings, "w": more})
    assert model.fit(data, seed=0).elbo > at_truth.elbo - 0.02 * N


def test_weights_are_rows_repeated():
    own = Simulated(7)
    model, data = _plain(own)
    weights = own.rng.integers(1, 4, N)
    weighted = model.fit(data, seed=0, sample_weight=weights)
    repeated = model.fit({"x": np.repeat(data["x"], weights, axis=0)}, seed=0)
    assert weighted.elbo == pytest.approx(repeated.elbo, rel=1e-5)


def test_without_counts_there_is_nothing_to_guess():
    own = Simulated(8)
    posterior = own.model(own.dot).fit({"x": np.zeros((N, D), dtype=int)}, seed=0)
    assert np.isfinite(posterior.elbo)


def test_restarts_end_at_good_places_too():
    own = Simulated(9)
    model, data = _plain(own)
    elbos = model.fit(data, seed=0, n_restarts=3).restart_elbos
    assert elbos.min() > own.at_truth(model, data).elbo - 0.5 * N


@pytest.mark.parametrize("is_sparse", [True, False])
def test_the_bound_is_that_of_the_model(is_sparse, monkeypatch):
    own = Simulated(10)
    x = own.rng.poisson(own.rates)
    counts = (Counts if is_sparse else Counts.of)(csr_array(x.astype(float)), np.ones((N, D)))
    monkeypatch.setattr("caviar.engine.starts.products.rates.factors_of_counts._SWEEPS", 3000)
    priors = [GammaPrior(SHAPE, SHAPE)] * 2
    rates = _padded(_climbed(counts, K, own.rng), K, priors)
    (u, v), bound = _settled(counts, priors, rates)
    model = own.model(own.dot)
    ended = model.fit({"x": x}, init={"u": u.mean, "v": cv.families.Gamma(v.shape, v.rate)}, tol=1e-12)
    assert ended.elbo == pytest.approx(bound - gammaln(x + 1.0).sum(), abs=1e-4)


def test_the_likelihood_rises_with_each_update(monkeypatch):
    own = Simulated(11)
    counts = Counts.of(csr_array(own.rng.poisson(own.rates).astype(float)), np.ones((N, D)))
    reached = []
    for n_updates in (10, 20, 40, 80):
        monkeypatch.setattr("caviar.engine.starts.products.rates.factors_of_counts._UPDATES", n_updates)
        scores, loadings = _climbed(counts, K, np.random.default_rng(0))
        reached.append(counts.logarithms(scores, loadings) - (scores @ loadings.T).sum())
    assert (np.diff(reached) > 0).all()


def test_learnt_rates_of_priors_follow_the_means():
    own = Simulated(12)
    counts = Counts.of(csr_array(own.rng.poisson(own.rates).astype(float)), np.ones((N, D)))
    u, v = factors_of_counts(counts, [GammaPrior(SHAPE, None), GammaPrior(SHAPE, SHAPE)], K, own.rng)
    explained = u.mean @ v.mean.T
    assert np.corrcoef(explained.ravel(), own.rates.ravel())[0, 1] > 0.95

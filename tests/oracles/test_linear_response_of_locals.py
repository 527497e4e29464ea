"""Linear response where local factors depend on each other: its changes are found in few sweeps."""

import numpy as np
import pytest

import caviar as cv
import caviar.engine.response.passes.sequences as sequences
import caviar.engine.rows.terms.block_response as blocks
from caviar.numerics.extrapolated import Extrapolation


def test_fixed_points_of_linear_maps_take_few_steps():
    rng = np.random.default_rng(0)
    n, units = 12, 5
    turned = np.linalg.qr(rng.normal(size=(units, n, n)))[0]
    shrunk = rng.uniform(0.0, 0.999, size=(units, n))
    shrunk[:, 4:] = shrunk[:, 3:4]
    maps = np.einsum("uij,uj,ukj->uik", turned, shrunk, turned)
    constant = rng.normal(size=(units, n)) * 10.0 ** np.arange(-6, 4, 2)[:, None]
    exact = np.linalg.solve(np.eye(n) - maps, constant[..., None])[..., 0]
    extrapolation, point = Extrapolation(), np.zeros((n, units))
    for _ in range(9):
        point = extrapolation.next(point, np.einsum("uij,ju->iu", maps, point) + constant.T)
    sizes = np.abs(exact).max(axis=1, keepdims=True)
    np.testing.assert_allclose(point.T / sizes, exact / sizes, atol=1e-9)


def test_what_is_settled_stays_where_it_is():
    extrapolation, point = Extrapolation(), np.array([[1.0, 1.0], [2.0, 3.0]])
    for _ in range(4):
        moved = point.copy()
        moved[:, 1] *= 1.0 + 1e-16
        np.testing.assert_array_equal(extrapolation.next(point, moved), moved)


def deconvolution():
    """Counts of genes in spots, which are mixtures of known profiles; each gene has a factor of its own."""
    rng = np.random.default_rng(0)
    n_spots, n_genes, n_types = 6, 4, 3
    profiles = rng.gamma(0.5, 2.0, (n_types, n_genes)) + 0.01
    rates = rng.gamma(0.7, 1.0, (n_spots, n_types)) @ profiles * rng.gamma(5.0, 0.2, n_genes)
    spot, gene, kind = cv.Plate("spot"), cv.Plate("gene", n_genes), cv.Plate("kind", n_types)
    share = cv.Gamma("share", 0.7, 1.0, plates=(spot, kind))
    own = cv.Gamma("own", 5.0, 5.0, plates=gene)
    rate = cv.dot(share, cv.Constant("profiles", profiles, plates=(kind, gene))) * own
    return cv.Model(cv.Poisson("y", rate, plates=(spot, gene))), {"y": rng.poisson(rates)}


def drifting():
    """Drifting chances of binary counts: a chain beside the variables of the bound."""
    rng = np.random.default_rng(1)
    logits = np.cumsum(0.3 * rng.normal(size=25))
    data = {"y": rng.binomial(20, 1.0 / (1.0 + np.exp(-logits)))}
    time = cv.Plate("time")
    steps = cv.diagonal(cv.Gamma("q", 1.0, 0.05, plates=cv.Plate("entry", 1)))
    chain = cv.LinearGaussianChain("f", np.zeros(1), np.eye(1), np.eye(1), steps, along=time)
    at = cv.dot(cv.Constant("one", np.ones(1)), chain)
    return cv.Model(cv.Binomial("y", 20, cv.logistic(at), plates=time)), data


@pytest.mark.parametrize("stated", [deconvolution, drifting])
def test_extrapolated_changes_are_those_of_plain_sweeps(stated, monkeypatch):
    model, data = stated()
    posterior = model.fit(data, seed=0)
    variable, said, called = next(iter(posterior)), blocks.BlockResponse._said_by_others, []

    def counted(*arguments):
        called.append(1)
        return said(*arguments)

    monkeypatch.setattr(blocks.BlockResponse, "_said_by_others", counted)
    found = posterior.linear_response(data).sd(variable)
    n_quick = len(called)
    monkeypatch.setattr(blocks, "_MOST_EXTRAPOLATED", 0)
    monkeypatch.setattr(sequences, "_MOST_EXTRAPOLATED", 0)
    np.testing.assert_allclose(found, posterior.linear_response(data).sd(variable), rtol=1e-8)
    assert n_quick < 0.8 * (len(called) - n_quick)

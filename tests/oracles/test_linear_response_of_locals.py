"""Linear response where local factors depend on each other: its changes are found in few sweeps."""

import numpy as np
import pytest

import caviar as cv
import caviar.engine.response.passes.blocks as sequences
import caviar.engine.rows.sequences as of_rows
import caviar.engine.rows.terms.block_response as blocks
from caviar.engine.response.cost import is_cheap
from caviar.fitting.model import assembled
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


def deconvolution(n_spots=6, n_genes=4, rates=5.0):
    """Counts of genes in spots, which are mixtures of known profiles; each gene has a factor of its own."""
    rng, n_types = np.random.default_rng(0), 3
    profiles = rng.gamma(0.5, 2.0, (n_types, n_genes)) + 0.01
    expected = rng.gamma(0.7, 1.0, (n_spots, n_types)) @ profiles * rng.gamma(5.0, 0.2, n_genes)
    spot, gene, kind = cv.Plate("spot"), cv.Plate("gene", n_genes), cv.Plate("kind", n_types)
    share = cv.Gamma("share", 0.7, 1.0, plates=(spot, kind))
    own = cv.Gamma("own", 5.0, np.full(n_genes, rates), plates=gene)
    rate = cv.dot(share, cv.Constant("profiles", profiles, plates=(kind, gene))) * own
    return cv.Model(cv.Poisson("y", rate, plates=(spot, gene))), {"y": rng.poisson(expected)}


def drifting(n=25, trials=20):
    """Drifting chances of binary counts: a chain beside the variables of the bound."""
    rng = np.random.default_rng(1)
    logits = np.cumsum(0.3 * rng.normal(size=n))
    data = {"y": rng.binomial(trials, 1.0 / (1.0 + np.exp(-logits)))}
    time = cv.Plate("time")
    steps = cv.diagonal(cv.Gamma("q", 1.0, 0.05, plates=cv.Plate("entry", 1)))
    chain = cv.LinearGaussianChain("f", np.zeros(1), np.eye(1), np.eye(1), steps, along=time)
    at = cv.dot(cv.Constant("one", np.ones(1)), chain)
    return cv.Model(cv.Binomial("y", trials, cv.logistic(at), plates=time)), data


def counted_sweeps(monkeypatch):
    """Return a list that has an entry for each time a local factor reads the changes of others."""
    said, called = blocks.BlockResponse._said_by_others, []

    def counted(*arguments):
        called.append(1)
        return said(*arguments)

    monkeypatch.setattr(blocks.BlockResponse, "_said_by_others", counted)
    return called


def test_changes_that_cancel_but_for_rounding_settle(monkeypatch):
    """A share does not change where all its logits change alike: what was left never settled, relative to itself."""
    model, data = deconvolution(12, 8)
    posterior = model.fit(data, seed=0)
    called = counted_sweeps(monkeypatch)
    assert (posterior.linear_response(data).sd("own") > posterior["own"].variance ** 0.5).all()
    assert len(called) < 300


@pytest.mark.slow
def test_variances_are_how_means_move_with_the_prior():
    """The derivative of each mean with its own rate is minus its variance."""
    model, data = deconvolution(12, 8)
    sds = model.fit(data, seed=0, tol=1e-12, max_iter=5_000).linear_response(data).sd("own")
    step, means = 0.05, []
    for sign in (-1.0, 1.0):
        rates = np.full(8, 5.0)
        rates[0] += sign * step
        fit = deconvolution(12, 8, rates)[0].fit(data, seed=0, tol=1e-14, max_iter=5_000)
        means.append(fit["own"].mean[0])
    assert sds[0] ** 2 == pytest.approx((means[0] - means[1]) / (2 * step), rel=2e-4)


@pytest.mark.parametrize("stated", [pytest.param(deconvolution, marks=pytest.mark.slow), drifting])
def test_extrapolated_changes_are_those_of_plain_sweeps(stated, monkeypatch):
    model, data = stated()
    posterior = model.fit(data, seed=0)
    variable, called = next(iter(posterior)), counted_sweeps(monkeypatch)
    found = posterior.linear_response(data).sd(variable)
    n_quick = len(called)
    monkeypatch.setattr(blocks, "_MOST_EXTRAPOLATED", 0)
    monkeypatch.setattr(sequences, "_MOST_EXTRAPOLATED", 0)
    np.testing.assert_allclose(found, posterior.linear_response(data).sd(variable), rtol=1e-8)
    assert n_quick < 0.8 * (len(called) - n_quick)


def settled_state(posterior, data, monkeypatch):
    """Return the statistics of hidden values swept to their optimum, and the number of sweeps."""
    infer, swept = of_rows.SequencesAtWork._infer, []

    def counted(self, stages):
        swept.append(1)
        return infer(self, stages)

    with monkeypatch.context() as patched:
        patched.setattr(of_rows.SequencesAtWork, "_infer", counted)
        return posterior.local(data)["f"].mean, len(swept)


@pytest.fixture(scope="module")
def many_drifting():
    model, data = drifting(200, 1)
    return model.fit(data, seed=0, max_iter=30), data


def test_extrapolated_sweeps_end_where_plain_ones_do(many_drifting, monkeypatch):
    posterior, data = many_drifting
    found, n_quick = settled_state(posterior, data, monkeypatch)
    monkeypatch.setattr(of_rows, "_NEAR", -1.0)
    plain, n_plain = settled_state(posterior, data, monkeypatch)
    np.testing.assert_allclose(found, plain, rtol=0, atol=1e-9)
    assert n_quick < 0.4 * n_plain


def test_sweeps_go_back_from_what_is_no_expectation(many_drifting, monkeypatch):
    """Second moments below zero are those of no state, and Polya-Gamma variables refuse them."""
    posterior, data = many_drifting
    right, _ = settled_state(posterior, data, monkeypatch)
    next_of, called = Extrapolation.next_of_parts, []

    def first_wrong(self, before, after):
        called.append(1)
        found = next_of(self, before, after)
        return {key: -1e6 * own for key, own in found.items()} if len(called) == 2 else found

    monkeypatch.setattr(of_rows, "_LONGEST", np.inf)
    monkeypatch.setattr(Extrapolation, "next_of_parts", first_wrong)
    found, _ = settled_state(posterior, data, monkeypatch)
    np.testing.assert_allclose(found, right, rtol=0, atol=1e-9)


def test_sweeps_of_chains_beside_others_count_as_cost():
    """Their optimum takes as many sweeps as the fit took, so that only very short fits have linear response."""
    model, data = drifting()
    posterior = model.fit(data, seed=0)
    problem, statistics = assembled(model, data, ()), [posterior["q"].expected_statistics]
    assert is_cheap(problem, statistics, 25, 10)
    assert not is_cheap(problem, statistics, 25, 400)

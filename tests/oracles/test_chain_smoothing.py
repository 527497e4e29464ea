"""Messages forward and backward give what the sum over all paths gives, however the sequences are cut."""

import itertools

import numpy as np
import pytest

from caviar import _errors as errors
from caviar.families import MarkovChain
from caviar.families.chains import markov_chain as implementation
from oracles.reference.hidden_markov import enumerate_paths

CUTS = pytest.mark.parametrize("cut", [0.0, 1e9], ids=["cut", "uncut"])


def chain_of(seed: int, spread: float, zeros: bool) -> MarkovChain:
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(1, 9)), int(rng.integers(1, 4))
    transition = rng.dirichlet(np.ones(k), k)
    if zeros and k > 1:
        transition[0, -1] = transition[-1, 0] = 0.0
    with np.errstate(divide="ignore"):
        return MarkovChain(
            rng.normal(0, spread, (n, k)),
            rng.random(n) < 0.25,
            np.log(rng.dirichlet(np.ones(k))),
            np.log(transition),
        )


def assert_exact(chain: MarkovChain) -> None:
    found = chain.smoothing
    exact = enumerate_paths(chain.logits, chain.starts, chain.log_initial, chain.log_transition)
    np.testing.assert_allclose(found.marginals, exact.marginals, rtol=0, atol=1e-11)
    np.testing.assert_allclose(found.first, exact.first, rtol=0, atol=1e-11)
    np.testing.assert_allclose(found.pairs, exact.pairs, rtol=0, atol=1e-11)
    assert found.log_partition == pytest.approx(exact.log_partition, rel=1e-12, abs=1e-12)
    assert found.entropy == pytest.approx(exact.entropy, abs=1e-11)
    np.testing.assert_array_equal(chain.mode(), exact.best)


@pytest.mark.thinned(4)
@CUTS
@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("spread", [1.0, 30.0, 300.0, 2000.0])
@pytest.mark.parametrize("seed", range(8))
def test_smoothing_is_the_sum_over_all_paths(seed, spread, zeros, cut, monkeypatch):
    monkeypatch.setattr(implementation, "_LONGEST_UNCUT", cut)
    assert_exact(chain_of(seed, spread, zeros))


@CUTS
def test_ordinary_sequences_need_no_logarithms(cut, monkeypatch):
    """Scaled messages are exact there, and several times faster."""
    monkeypatch.setattr(implementation, "_LONGEST_UNCUT", cut)
    monkeypatch.setattr(implementation, "_sums_by_logarithm", None)
    assert_exact(chain_of(3, 1.0, False))


@CUTS
def test_a_path_that_scaled_messages_lose_is_found(cut, monkeypatch):
    """From state 0 there is no way on; the last row, in state 1 alone, is reached through unlikely states only."""
    monkeypatch.setattr(implementation, "_LONGEST_UNCUT", cut)
    logits = np.array([[0.0, -600.0]] * 5 + [[-np.inf, 0.0]])
    starts = np.arange(6) == 0
    with np.errstate(divide="ignore"):
        chain = MarkovChain(logits, starts, np.log([0.5, 0.5]), np.log([[1.0, 0.0], [0.0, 1.0]]))
    np.testing.assert_array_equal(chain.probabilities, [[0.0, 1.0]] * 6)
    assert chain.log_partition == pytest.approx(np.log(0.5) - 3000.0, rel=1e-14)


def test_an_impossible_sequence_is_refused():
    with np.errstate(divide="ignore"):
        chain = MarkovChain(
            np.array([[0.0, -np.inf], [-np.inf, 0.0]]),
            np.array([True, False]),
            np.log([0.5, 0.5]),
            np.log(np.eye(2)),
        )
    with pytest.raises(errors.ImproperError, match="no path"):
        _ = chain.smoothing


@pytest.mark.thinned(2)
@pytest.mark.parametrize("every", [3000, 130, 7, 1])
def test_long_sequences_agree_with_logarithms(every):
    rng = np.random.default_rng(every)
    n, k = 3000, 4
    logits, starts = rng.normal(0, 4, (n, k)), rng.random(n) < 1 / every
    log_initial, log_transition = np.log(rng.dirichlet(np.ones(k))), np.log(rng.dirichlet(np.ones(k), k))
    found = MarkovChain(logits, starts, log_initial, log_transition).smoothing
    shifted, largest = logits - logits.max(axis=1, keepdims=True), logits.max(axis=1)
    marginals, first, pairs, log_partition = implementation._sums_by_logarithm(
        shifted, starts, log_initial, log_transition
    )
    np.testing.assert_allclose(found.marginals, marginals, rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.first, first, rtol=1e-10)
    np.testing.assert_allclose(found.pairs, pairs, rtol=1e-9)
    assert found.log_partition == pytest.approx(log_partition + largest.sum(), rel=1e-12)


def test_sequences_are_independent():
    rng = np.random.default_rng(1)
    n, k = 60, 3
    starts = np.isin(np.arange(n), [0, 1, 20, 21, 50])
    logits, initial, transition = (
        rng.normal(0, 2, (n, k)),
        np.log(np.ones(k) / k),
        np.log(rng.dirichlet(np.ones(k), k)),
    )
    together = MarkovChain(logits, starts, initial, transition)
    edges = [0, 1, 20, 21, 50, n]
    alone = [
        MarkovChain(logits[i:j], np.zeros(j - i, dtype=bool), initial, transition)
        for i, j in itertools.pairwise(edges)
    ]
    np.testing.assert_allclose(
        together.probabilities, np.concatenate([c.probabilities for c in alone]), atol=1e-13
    )
    np.testing.assert_array_equal(together.mode(), np.concatenate([c.mode() for c in alone]))
    assert together.log_partition == pytest.approx(sum(c.log_partition for c in alone), rel=1e-13)
    assert together.entropy() == pytest.approx(sum(c.entropy() for c in alone), rel=1e-12)

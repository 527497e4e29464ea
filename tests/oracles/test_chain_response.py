"""How hidden sequences respond to what their steps and rows say, against differences of the smoothing itself."""

import numpy as np
import pytest

from caviar.families import MarkovChain
from caviar.families.chains.gaussian_chain_response import Blocks, response_of_gaussian_chain
from caviar.families.chains.markov_response import response_of_smoothing
from caviar.families.chains.recursions import directions, linear_recursion


@pytest.mark.parametrize("starts_at", [[0], [0, 4, 5], [0, 7]])
def test_the_response_is_the_derivative_of_the_smoothing(starts_at):
    rng = np.random.default_rng(0)
    n_rows, n_states, n_changes = 11, 3, 4
    starts = np.isin(np.arange(n_rows), starts_at)
    base = (
        rng.normal(size=(n_rows, n_states)),
        rng.normal(size=n_states),
        rng.normal(size=(n_states, n_states)),
    )
    changes = tuple(rng.normal(size=(n_changes, *own.shape)) for own in base)
    found = response_of_smoothing(base[0], starts, *base[1:], *changes)

    def at(number, step):
        logits, initial, transition = (
            own + step * change[number] for own, change in zip(base, changes, strict=True)
        )
        return MarkovChain(logits, starts, initial, transition).smoothing

    np.testing.assert_allclose(found.marginals, at(0, 0.0).marginals, rtol=1e-12)
    for number in range(n_changes):
        for name, own in (
            ("marginals", found.changes[number]),
            ("first", found.first[number]),
            ("pairs", found.pairs[number]),
        ):
            slopes = [
                (getattr(at(number, h), name) - getattr(at(number, -h), name)) / (2 * h) for h in (2e-3, 1e-3)
            ]
            np.testing.assert_allclose(own, (4 * slopes[1] - slopes[0]) / 3, atol=1e-9)


@pytest.mark.slow
def test_long_sequences_and_nearly_impossible_steps():
    """As a difference of the smoothing; and messages that leave the range of numbers within a piece."""
    rng = np.random.default_rng(2)
    n_rows, n_states = 400, 2
    starts = np.isin(np.arange(n_rows), [0, 150])
    logits = np.where(np.arange(n_rows)[:, None] < 200, [0.0, -60.0], [-60.0, 0.0]) + rng.normal(
        size=(n_rows, n_states)
    )
    initial, transition = np.log([0.5, 0.5]), np.log([[1.0, 1e-300], [1e-300, 1.0]])
    change = (rng.normal(size=logits.shape), rng.normal(size=2), rng.normal(size=(2, 2)))
    found = response_of_smoothing(logits, starts, initial, transition, *(own[None] for own in change))

    def at(step):
        moved = (own + step * by for own, by in zip((logits, initial, transition), change, strict=True))
        by_logits, *others = moved
        return MarkovChain(by_logits, starts, *others).smoothing

    np.testing.assert_allclose(found.marginals, at(0.0).marginals, atol=1e-12)
    for name, own in (("marginals", found.changes[0]), ("pairs", found.pairs[0])):
        slopes = [(getattr(at(h), name) - getattr(at(-h), name)) / (2 * h) for h in (2e-3, 1e-3)]
        np.testing.assert_allclose(own, (4 * slopes[1] - slopes[0]) / 3, atol=1e-7)


def test_recursions_are_those_of_a_loop():
    rng = np.random.default_rng(0)
    for n_rows in (1, 2, 7, 50):
        matrices, inputs = rng.random((n_rows, 3, 3)) / 2, rng.normal(size=(n_rows, 3, 2))
        matrices[n_rows // 2] = 0.0
        found, before = linear_recursion(matrices, inputs), np.zeros((3, 2))
        along, direction = directions(matrices + 0.1), np.ones(3)
        for t in range(n_rows):
            before = inputs[t] + (matrices[t] @ before if t else 0.0)
            np.testing.assert_allclose(found[t], before, rtol=1e-12)
            direction = (matrices[t] + 0.1) @ direction
            direction /= direction.max()
            np.testing.assert_allclose(along[t], direction, rtol=1e-12)


def test_impossible_steps_respond_with_nothing():
    with np.errstate(divide="ignore"):
        transition = np.log(np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]]))
        initial = np.log(np.array([1.0, 0.0, 0.0]))
    rng = np.random.default_rng(1)
    logits = rng.normal(size=(6, 3))
    found = response_of_smoothing(
        logits,
        np.arange(6) == 0,
        initial,
        transition,
        rng.normal(size=(1, 6, 3)),
        rng.normal(size=(1, 3)),
        rng.normal(size=(1, 3, 3)),
    )
    assert np.isfinite(found.pairs).all()
    assert (found.pairs[0][transition == -np.inf] == 0).all()
    np.testing.assert_allclose(found.changes.sum(axis=2), 0.0, atol=1e-14)
    np.testing.assert_allclose(found.pairs[0].sum(), 0.0, atol=1e-13)


def test_the_response_of_a_gaussian_chain_is_the_derivative_of_dense_algebra():
    rng = np.random.default_rng(2)
    n_rows, size, n_changes = 7, 2, 3
    starts = np.isin(np.arange(n_rows), [0, 4])
    root = rng.normal(size=(n_rows, size, size))
    diagonal = root @ root.swapaxes(-1, -2) + 4.0 * np.eye(size)
    base = Blocks(rng.normal(size=(n_rows, size)), diagonal, 0.5 * rng.normal(size=(n_rows, size, size)))
    base.between[starts] = 0.0
    changes = Blocks(*(rng.normal(size=(n_changes, *own.shape)) for own in base))
    changes.between[:, starts] = 0.0
    changes.diagonal[...] += changes.diagonal.swapaxes(-1, -2).copy()
    found = response_of_gaussian_chain(base, changes)

    def at(number, step):
        linear, diagonal, between = (
            own + step * change[number] for own, change in zip(base, changes, strict=True)
        )
        whole = np.zeros((n_rows * size, n_rows * size))
        for t in range(n_rows):
            here, before = slice(t * size, (t + 1) * size), slice((t - 1) * size, t * size)
            whole[here, here] = diagonal[t]
            if t:
                whole[before, here], whole[here, before] = between[t], between[t].T
        covariance = np.linalg.inv(whole)
        mean = covariance @ linear.ravel()
        second = (covariance + np.outer(mean, mean)).reshape(n_rows, size, n_rows, size)
        pairs = [np.zeros((size, size)), *(second[t - 1, :, t] for t in range(1, n_rows))]
        return mean.reshape(n_rows, size), np.stack([second[t, :, t] for t in range(n_rows)]), np.stack(pairs)

    for number in range(n_changes):
        slopes = [
            [(a - b) / (2 * h) for a, b in zip(at(number, h), at(number, -h), strict=True)]
            for h in (2e-3, 1e-3)
        ]
        for part, wide, narrow in zip(found, *slopes, strict=True):
            wanted, own = (4 * narrow - wide) / 3, part[number].copy()
            if own.shape == (n_rows, size, size) and part is found.pairs:
                own[starts], wanted[starts] = 0.0, 0.0
            np.testing.assert_allclose(own, wanted, atol=1e-9)

"""Compiled loops over the steps of hidden sequences have the sums of NumPy, and of all paths one by one."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp

import caviar as cv
from caviar.families.chains import markov_chain
from caviar.families.chains.markov_chain import ImpossiblePathError, Smoothing, smooth

pytest.importorskip("numba")

from caviar.families.chains.compiled_exponentials import exponentials

FIELDS = ("marginals", "first", "pairs", "log_partition", "entropy")


def drawn(n_states: int, n_rows: int, n_sequences: int, share_excluded: float = 0.0) -> tuple[Any, ...]:
    rng = np.random.default_rng([n_states, n_rows])
    logits = 3.0 * rng.normal(size=(n_rows, n_states))
    logits[:, 1:][rng.random((n_rows, n_states - 1)) < share_excluded] = -np.inf
    starts = np.zeros(n_rows, dtype=bool)
    starts[rng.choice(n_rows, n_sequences, replace=False)] = True
    logs = np.log(rng.dirichlet(np.ones(n_states))), np.log(rng.dirichlet(np.ones(n_states), n_states))
    return logits, starts, *logs


def in_loops(monkeypatch: pytest.MonkeyPatch, *arguments: Any, **more: Any) -> Smoothing:
    """Return what compiled loops give; they are not asked to give way."""
    with monkeypatch.context() as patch:
        patch.setattr(markov_chain, "_WORTH_COMPILED", 0)
        patch.setattr(markov_chain, "_sums_of_scaled", None)
        return smooth(*arguments, **more)


@pytest.mark.parametrize(
    ("n_states", "n_rows", "n_sequences", "share_excluded"),
    [
        # loops of its own are compiled for one state, whose transposed matrix lies in memory as it is
        pytest.param(1, 50, 3, 0.0, marks=pytest.mark.slow),
        (2, 3_000, 400, 0.0),
        (3, 2_500, 1_200, 0.4),
        (5, 4_000, 1, 0.0),
        (12, 900, 6, 0.2),
        (32, 200, 2, 0.0),
    ],
)
@pytest.mark.parametrize("has_weights", [False, True])
def test_they_have_the_sums_of_numpy(
    n_states: int,
    n_rows: int,
    n_sequences: int,
    share_excluded: float,
    has_weights: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arguments = drawn(n_states, n_rows, n_sequences, share_excluded)
    own = np.random.default_rng(1).gamma(1.0, size=n_sequences + 1)
    weights = own[np.cumsum(arguments[1])] if has_weights else None
    told = in_loops(monkeypatch, *arguments, weights=weights)
    with monkeypatch.context() as patch:
        patch.setattr(markov_chain, "can_compile", lambda: False)
        expected = smooth(*arguments, weights=weights)
    for name in FIELDS:
        np.testing.assert_allclose(getattr(told, name), getattr(expected, name), rtol=1e-11, atol=1e-12)


def test_exponentials_are_right_to_the_last_bits() -> None:
    values = -np.concatenate([np.linspace(0.0, 3.0, 400), np.geomspace(1e-300, 699.0, 400)])
    found = np.append(values, -1e6)
    exponentials(found)
    np.testing.assert_allclose(found[:-1], np.exp(values), rtol=4.0 * np.finfo(float).eps)
    assert found[-1] == pytest.approx(np.exp(-700.0), rel=1e-14)


def test_they_are_the_sums_over_all_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    logits, _, initial, transition = drawn(3, 6, 1)
    starts = np.array([True, False, False, False, True, False])
    told = in_loops(monkeypatch, logits, starts, initial, transition)
    total, marginals = 0.0, []
    for some in (slice(0, 4), slice(4, 6)):
        own = logits[some]
        paths = np.array(list(product(range(3), repeat=len(own))))
        logs = initial[paths[:, 0]] + transition[paths[:, :-1], paths[:, 1:]].sum(axis=1)
        logs += own[np.arange(len(own)), paths].sum(axis=1)
        total += logsumexp(logs)
        shares = np.exp(logs - logsumexp(logs))
        marginals += [[shares[paths[:, t] == k].sum() for k in range(3)] for t in range(len(own))]
    assert told.log_partition == pytest.approx(total, abs=1e-12)
    np.testing.assert_allclose(told.marginals, marginals, atol=1e-13)


def test_where_paths_may_be_lost_logarithms_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    logits, starts, initial, _ = drawn(2, 400, 2)
    logits[:, 1] = logits[:, 0] - 600.0 * (np.arange(400) % 2)
    # a state is all but never left, and the rows change their minds
    transition = np.array([[0.0, -900.0], [-900.0, 0.0]])
    monkeypatch.setattr(markov_chain, "_WORTH_COMPILED", 0)
    told = smooth(logits, starts, initial, transition)
    monkeypatch.setattr(markov_chain, "can_compile", lambda: False)
    expected = smooth(logits, starts, initial, transition)
    for name in FIELDS:
        np.testing.assert_allclose(getattr(told, name), getattr(expected, name), rtol=1e-10, atol=1e-9)


def test_what_is_impossible_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    logits, starts, initial, _ = drawn(2, 40, 1)
    logits[:20, 1], logits[20:, 0] = -np.inf, -np.inf
    monkeypatch.setattr(markov_chain, "_WORTH_COMPILED", 0)
    with pytest.raises(ImpossiblePathError, match="row 20"):
        smooth(logits, np.zeros(40, dtype=bool), initial, np.array([[0.0, -np.inf], [-np.inf, 0.0]]))
    logits[7] = np.nan
    with pytest.raises(cv.CaviarError, match="row 7 has no finite log-likelihood"):
        smooth(logits, starts, initial, np.zeros((2, 2)))


def test_a_fit_with_them_ends_where_one_without_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    path = np.arange(1_500) // 50 % 3
    data = {"x": rng.normal(5.0 * path[:, None], 1.0, (1_500, 2)), "starts": np.arange(1_500) % 300 == 0}
    model = cv.models.gaussian_hidden_markov_model(2, 3, with_starts=True)
    plain = model.fit(data, seed=0)
    monkeypatch.setattr(markov_chain, "_WORTH_COMPILED", 0)
    compiled = model.fit(data, seed=0)
    assert compiled.elbo == pytest.approx(plain.elbo, abs=1e-8)
    # rounding may decide whether the last step counts as small
    assert abs(compiled.n_iter - plain.n_iter) <= 1

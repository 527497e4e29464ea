"""States that a row by itself does not tell apart are told apart by the rows around it."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import caviar as cv
from caviar.engine.starts import from_data as data_start
from caviar.engine.starts.guesses.of_states import _places, by_neighbours


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


def _model(size, emission, starts=False):
    obs, k = cv.Plate("obs"), cv.Plate("k", size)
    begin = {"starts": cv.Data("begin", plates=obs)} if starts else {}
    transition = cv.Dirichlet("a", np.ones(size), plates=k)
    s = cv.MarkovChain("s", np.ones(size) / size, transition, along=obs, **begin)
    return cv.Model(emission(s, obs, k))


def _normal_gammas(s, obs, k):
    return cv.Normal("x", cv.NormalGamma("t", 0.0, 0.1, 1.0, 1.0, plates=k)[s], plates=obs)


def _counts(s, obs, k):
    return cv.Poisson("x", cv.Gamma("r", 1, 0.1, plates=k)[s], plates=obs)


def _agreement(labels, truth):
    """Return the share of rows whose label is that of most rows of its state, each label used once."""
    table = np.zeros((truth.max() + 1,) * 2)
    np.add.at(table, (labels, truth), 1)
    return table[linear_sum_assignment(table, maximize=True)].sum() / len(truth)


def test_widths_of_one_mean_are_guessed_from_the_rows_around(basis_of):
    rng = np.random.default_rng(0)
    s = np.repeat(np.arange(30) % 3, 20)
    x = np.array([0.1, 1.0, 10.0])[s] * rng.normal(size=600)
    basis = basis_of(_model(3, _normal_gammas), {"x": x})
    best = max(_agreement(next(iter(guess.values())), s) for guess in by_neighbours(basis))
    assert best > 0.85
    assert _agreement(next(iter(next(data_start.in_clusters(basis)).values())), s) < 0.7


def test_a_cycle_of_counts_is_guessed_from_what_comes_before_and_after(basis_of):
    rng = np.random.default_rng(1)
    s = np.arange(240) % 4
    x = rng.poisson(np.array([2.0, 2.0, 30.0, 30.0])[s])
    guesses = list(by_neighbours(basis_of(_model(4, _counts), {"x": x})))
    assert max(_agreement(next(iter(guess.values())), s) for guess in guesses) > 0.95


def test_no_row_is_a_neighbour_of_another_sequence(basis_of):
    begin = np.zeros(10, dtype=bool)
    begin[[0, 1, 4]] = True
    basis = basis_of(_model(2, _counts, starts=True), {"x": np.arange(10), "begin": begin})
    (gate,) = basis.gates
    np.testing.assert_array_equal(
        _places(basis, gate, 2),
        [
            [0, 1, 1, 1, 4, 4, 4, 5, 6, 7],
            [0, 1, 1, 2, 4, 4, 5, 6, 7, 8],
            [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
            [0, 2, 3, 3, 5, 6, 7, 8, 9, 9],
            [0, 3, 3, 3, 6, 7, 8, 9, 9, 9],
        ],
    )


def test_an_ordinary_mixture_makes_no_guess_by_neighbours(basis_of):
    obs, k = cv.Plate("obs"), cv.Plate("k", 2)
    z = cv.Categorical("z", cv.Dirichlet("w", np.ones(2)), plates=obs)
    model = cv.Model(_normal_gammas(z, obs, k))
    assert list(by_neighbours(basis_of(model, {"x": np.arange(8.0)}))) == []

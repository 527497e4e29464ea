"""Looking labels up and tallying them gives what matrix products with one-hot rows give."""

from collections.abc import Callable

import numpy as np
import pytest

import caviar as cv
from caviar.engine.design import features

pytestmark = pytest.mark.first_guess

N, K, V = 700, 3, 30


def groups_and_words() -> tuple[cv.Model, list[str]]:
    """A mixture of words and a number, with a group of rows that has weights and a mean of its own."""
    obs, component, group = cv.Plate("obs"), cv.Plate("component", K), cv.Plate("group", 40)
    item = cv.Plate("item", 2)
    member = cv.Data("member", plates=obs)
    weights = cv.Dirichlet("weights", np.full(K, 0.8), plates=group)
    z = cv.Categorical("z", weights[member], plates=obs)
    words = cv.Dirichlet("words", np.full(V, 0.5), plates=(component, item))
    mean = cv.Normal("mean", 0.0, 0.1, plates=component)
    shift = cv.Normal("shift", 0.0, 1.0, plates=group)
    tau = cv.Gamma("tau", 1.0, 1.0, plates=component)
    leaves = (
        cv.Categorical("word", words[z], plates=(obs, item)),
        cv.Normal("x", mean[z], tau[z], plates=obs),
        cv.Normal("y", shift[member], 2.0, plates=obs),
    )
    return cv.Model(*leaves), ["word", "x", "y", "member"]


def one_factor() -> tuple[cv.Model, list[str]]:
    """A local vector that words know nothing of: its second moments meet the number 1 only."""
    obs = cv.Plate("obs")
    p = cv.Dirichlet("p", np.full(V, 0.5))
    return cv.Model(cv.Categorical("word", p, plates=(obs, cv.Plate("item", 2)))), ["word"]


def data_of(names: list[str], *, with_missing: bool) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    data = {
        "word": rng.integers(V, size=(N, 2)).astype(float),
        "x": rng.normal(size=N),
        "y": rng.normal(size=N),
        "member": rng.integers(40, size=N),
    }
    if with_missing:
        data["word"][rng.random((N, 2)) < 0.2] = np.nan
    return {name: data[name] for name in names}


@pytest.mark.thinned(4)
@pytest.mark.parametrize("state", [groups_and_words, one_factor])
@pytest.mark.parametrize("with_missing", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_both_ways_lead_to_the_same_fit(
    state: Callable, with_missing: bool, weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, names = state()
    data = data_of(names, with_missing=with_missing)
    weights = np.random.default_rng(1).integers(0, 3, N) if weighted else None
    monkeypatch.setattr(features, "_FEWEST_CATEGORIES", 10_000)
    dense = model.fit(data, seed=0, max_iter=20, tol=0, sample_weight=weights)
    monkeypatch.setattr(features, "_FEWEST_CATEGORIES", 2)
    tallied = model.fit(data, seed=0, max_iter=20, tol=0, sample_weight=weights)
    np.testing.assert_allclose(tallied.elbo_trace, dense.elbo_trace, rtol=1e-10)
    for name in dense:
        for one, other in zip(tallied[name].natural, dense[name].natural, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9)


@pytest.mark.starts_of_users
@pytest.mark.slow
def test_threads_give_the_same_bits() -> None:
    model, names = groups_and_words()
    rng = np.random.default_rng(2)
    data = {
        name: np.resize(value, (20_000, *value.shape[1:]))
        for name, value in data_of(names, with_missing=False).items()
    }
    data["word"] = rng.integers(V, size=(20_000, 2))
    one, two = (model.fit(data, seed=0, max_iter=2, tol=0, executor=n) for n in (1, 2))
    assert np.array_equal(one.elbo_trace, two.elbo_trace)
    assert np.array_equal(one["words"].concentration, two["words"].concentration)

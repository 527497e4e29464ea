"""Where all globals begin at their priors, a fit does not read the rows for a start, nor copy them."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import caviar as cv
from caviar.engine.starts.from_data import data_start
from caviar.engine.starts.race import Begun
from caviar.fitting.model import assembled

OBS = cv.Plate("obs")
COLUMNS = cv.Data("X", plates=OBS)


def of_effects(size: int) -> cv.Model:
    """Return a regression on two single effects."""
    effects = [cv.SingleEffect(f"b{k}", size, precision=5.0) for k in range(2)]
    mean = cv.dot(COLUMNS, effects[0]) + cv.dot(COLUMNS, effects[1])
    return cv.Model(cv.Normal("y", mean, cv.Gamma("tau", 1, 1), plates=OBS))


def begun(model: cv.Model, data: dict[str, np.ndarray]) -> Begun:
    """Return the start of a fit that may not take a sample of the rows."""

    def refused() -> None:
        raise LookupError("a sample")

    rng = np.random.default_rng(0)
    return data_start(assembled(model, data, ()), refused, None, rng, 9, lambda problem: None)  # pyright: ignore


def test_effects_with_known_precisions_begin_at_their_priors() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 4))
    data = {"X": X, "y": X[:, 1] + rng.standard_normal(30)}
    _, q = begun(of_effects(4), data).start
    assert {variable.name for variable in q} == {"b0", "b1", "tau"}
    b = next(own for variable, own in q.items() if variable.name == "b0")
    np.testing.assert_allclose(b.mean, 0.0)
    # widths of effects that are learnt are guessed
    b = cv.SpikeSlab("b", 0.5, precision=cv.Gamma("v", 1, 1), length=4)
    of_spikes = cv.Model(cv.Normal("y", cv.dot(COLUMNS, b), cv.Gamma("tau", 1, 1), plates=OBS))
    with pytest.raises(LookupError, match="a sample"):
        begun(of_spikes, data)


def of_known_levels() -> cv.Model:
    """Return a walk whose variance has one of two known levels, chosen by a chain: nothing is unknown but the steps."""
    time, level, entry = cv.Plate("time"), cv.Plate("level", 2), cv.Plate("entry", 1)
    z = cv.MarkovChain("z", [0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], along=time)
    precision = cv.diagonal(cv.Constant("precision", [[100.0], [1.0]], plates=(level, entry))[z])
    walk = cv.LinearGaussianChain("x", [0.0], [[1.0]], [[1.0]], precision, along=time)
    return cv.Model(cv.Normal("y", cv.dot([1.0], walk), 100.0, plates=time))


def test_without_globals_all_starts_are_the_same() -> None:
    rng = np.random.default_rng(0)
    y = np.cumsum(np.repeat([0.1, 1.0], 20) * rng.standard_normal(40))
    _, q = begun(of_known_levels(), {"y": y}).start
    assert q == {}
    assert of_known_levels().fit({"y": y}).elbo == of_known_levels().fit({"y": y}, init="prior").elbo
    with pytest.raises(cv.DataError, match="'y' has"):
        of_known_levels().fit({"y": np.append(y, np.inf)})


def test_a_table_of_single_precision_is_not_copied() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((10_000, 400), dtype=np.float32)
    y = X[:, 1] + rng.standard_normal(10_000)
    tracemalloc.start()
    try:
        of_effects(400).fit({"X": X, "y": y}, max_iter=1)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # as of blocks of rows; a copy in double precision alone takes this much
    assert most < 2 * X.nbytes


@pytest.mark.parametrize("where", [(0, 0), (29, 3)])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_still_refused(value: float, where: tuple[int, int]) -> None:
    X = np.ones((30, 4), dtype=np.float32)
    X[where] = value
    with pytest.raises(cv.DataError, match="'X' has"):
        of_effects(4).fit({"X": X, "y": np.zeros(30)})

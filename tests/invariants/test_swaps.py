"""Swaps of components: they raise the ELBO, are the same bits after an interruption, and are refused elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import caviar as cv


def _model(n_components: int = 8) -> cv.Model:
    return cv.models.normal_wishart_mixture(2, n_components)


def _data() -> np.ndarray:
    rng = np.random.default_rng(3)
    centres = np.array([[0, 0], [9, 0], [0, 9], [9, 9], [18, 0], [18, 9], [0, 18], [9, 18]], dtype=float)
    return (centres[:, None] + rng.normal(size=(8, 60, 2))).reshape(-1, 2)


def _poor() -> np.ndarray:
    """Return labels with two components in one cluster, and one component in two."""
    labels = np.repeat(np.arange(8), 60)
    labels[labels == 1] = 0
    labels[-60:-30] = 1
    return labels


def _fit(**arguments: Any) -> cv.Posterior:
    return _model().fit({"x": _data()}, init={"z": _poor()}, seed=0, uncertainty="mean_field", **arguments)


def test_a_component_in_two_clusters_and_two_in_one_change_places():
    before, after = _fit(), _fit(swaps=True)
    truth = _model().fit({"x": _data()}, init={"z": np.repeat(np.arange(8), 60)}, uncertainty="mean_field")
    assert before.elbo < truth.elbo - 50
    assert after.elbo == pytest.approx(truth.elbo, abs=0.1)
    assert (np.diff(after.elbo_trace) >= -1e-9 * abs(after.elbo)).all()
    assert after.elbo == pytest.approx(after.elbo_at({}, {"x": _data()}), rel=1e-12)


def test_an_interrupted_fit_goes_on_to_the_same_bits(tmp_path):
    class BrokenOffError(Exception):
        pass

    def break_off(told: Any) -> None:
        if told.iteration == 2:
            raise BrokenOffError

    kept = {"swaps": True, "checkpoint": tmp_path / "c", "checkpoint_every": 0}
    with pytest.raises(BrokenOffError):
        _fit(**kept, progress=break_off)
    np.testing.assert_array_equal(_fit(**kept).elbo_trace, _fit(swaps=True).elbo_trace)


def test_threads_and_the_order_of_rows_change_nothing():
    one, four = _fit(swaps=True, executor=1), _fit(swaps=True, executor=4)
    np.testing.assert_array_equal(one.elbo_trace, four.elbo_trace)
    order = np.random.default_rng(0).permutation(480)
    turned = _model().fit(
        {"x": _data()[order]}, init={"z": _poor()[order]}, swaps=True, uncertainty="mean_field"
    )
    assert turned.elbo == pytest.approx(one.elbo, abs=0.01)


def test_where_they_are_senseless_they_are_refused():
    with pytest.raises(cv.ParameterError, match="without bound"):
        _model().fit({"x": _data()}, swaps=True, point=("weights", "theta"))
    with pytest.raises(cv.ParameterError, match="swaps is True, False or 'auto'"):
        _fit(swaps="often")

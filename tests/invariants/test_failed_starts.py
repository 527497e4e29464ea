"""A start that fails leaves the others: the fit is the best of those that ended."""

import numpy as np
import pytest

import caviar as cv
from caviar.fitting import model, restarts


def _model():
    mean = cv.Normal("mean", 0.0, 0.01, plates=cv.Plate("component", 2))
    z = cv.Categorical("z", [0.5, 0.5], plates=(obs := cv.Plate("obs")))
    return cv.Model(cv.Normal("x", mean[z], 1.0, plates=obs))


def _failing(monkeypatch, numbers):
    begin = restarts.beginning

    def fail(problem, row_map, init, seed, settings):
        if settings.restart in numbers:
            raise cv.ImproperError(f"start {settings.restart} failed")
        return begin(problem, row_map, init, seed, settings)

    monkeypatch.setattr(restarts, "beginning", fail)
    monkeypatch.setattr(model, "beginning", fail)


def test_the_others_are_kept(monkeypatch):
    data = {"x": np.array([-3.0, -3.2, 2.9, 3.1])}
    plain = _model().fit(data, seed=0, n_restarts=3)
    _failing(monkeypatch, {0})
    with pytest.warns(cv.CaviarWarning, match="1 of 3 starts led nowhere.*because start 0 failed"):
        kept = _model().fit(data, seed=0, n_restarts=3)
    assert len(kept.restart_elbos) == 2
    assert kept.elbo == pytest.approx(plain.elbo, rel=1e-6)


def test_if_all_fail_the_first_failure_is_the_error(monkeypatch):
    _failing(monkeypatch, {0, 1})
    with pytest.raises(cv.ImproperError, match="start 0 failed"):
        _model().fit({"x": np.array([-3.0, 3.0])}, seed=0, n_restarts=2)

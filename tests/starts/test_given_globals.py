"""Globals that wait for no other one follow from given values by one update, whatever their priors are as factors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import caviar as cv
from caviar.engine.starts import from_user

INIT: list[dict[str, Any]] = [{"tau": 2.0}, {"tau": cv.families.Gamma(3.0, 1.0)}]


def fitted(init: dict[str, Any]) -> cv.Posterior:
    obs = cv.Plate("obs")
    tau = cv.Gamma("tau", 1.0, 1.0)
    ys = np.random.default_rng(0).normal(3.0, 1.0, (2, 30))
    leaves = [cv.Normal(f"y{i}", cv.Normal(f"m{i}", 0.0, 0.1), tau, plates=obs) for i in range(2)]
    return cv.Model(*leaves).fit({"y0": ys[0], "y1": ys[1]}, init=init)


@pytest.mark.parametrize("init", INIT)
def test_they_begin_without_their_priors(init: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    by_priors: list[bool] = []
    monkeypatch.setattr(from_user, "prior_start", lambda *_: by_priors.append(True))
    fitted(init)
    assert not by_priors


@pytest.mark.parametrize("init", INIT)
def test_they_end_where_they_do_from_their_priors(
    init: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = fitted(init)
    monkeypatch.setattr(from_user, "updated_at_once", lambda *_: None)
    other = fitted(init)
    assert ours.elbo == other.elbo
    np.testing.assert_array_equal(ours.elbo_trace, other.elbo_trace)


def test_those_that_wait_for_each_other_begin_at_their_priors(monkeypatch: pytest.MonkeyPatch) -> None:
    by_priors: list[bool] = []
    prior_start = from_user.prior_start
    monkeypatch.setattr(from_user, "prior_start", lambda *own: (by_priors.append(True), prior_start(*own))[1])
    fitted({"m0": 3.0})
    assert by_priors

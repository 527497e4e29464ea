"""Moves along the scales of numbers that are multiplied, where hidden labels of groups choose their rates."""

from __future__ import annotations

import numpy as np
import pytest

import caviar as cv


def test_moves_end_no_lower_than_plain_sweeps() -> None:
    rng = np.random.default_rng(0)
    obs, group, kind = cv.Plate("obs"), cv.Plate("group", 6), cv.Plate("kind", 2)
    z = cv.Categorical("z", [0.5, 0.5], plates=group)
    rate = cv.Gamma("rate", 1, 1, plates=kind)
    own = cv.Gamma("own", 2, rate[z[cv.Data("member", plates=obs)]], plates=obs)
    other = cv.Gamma("other", 2, cv.Gamma("other rate", 1, 1), plates=obs)
    member = np.arange(60) % 6
    data = {"x": rng.normal(size=60) * np.where(member < 3, 0.3, 3.0), "member": member}
    model = cv.Model(cv.Normal("x", 0.0, own * other, plates=obs))
    fast, plain = (
        model.fit(data, seed=0, accelerate=accelerate, max_iter=1000) for accelerate in (True, False)
    )
    assert fast.converged
    assert fast.n_iter < plain.n_iter / 3
    assert fast.elbo >= plain.elbo
    assert fast.elbo == pytest.approx(plain.elbo, abs=1e-3)

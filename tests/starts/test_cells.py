"""Rows of a combination of labels change places with those of another: default fits end alike from every seed."""

import numpy as np
import pytest

import caviar as cv

OBS = cv.Plate("obs")


def _label(name, size):
    return cv.Categorical(name, cv.Dirichlet(f"w_{name}", np.ones(size)), plates=OBS)


def _spread(model, data, n_seeds):
    ends = [model.fit(data, seed=seed).elbo for seed in range(n_seeds)]
    return max(ends) - min(ends)


def test_clusters_have_their_names_in_every_site():
    """Rates of two clusters within six sites, with exposures: in some sites they had each other's names."""
    rng = np.random.default_rng([6, 2])
    site, z, exposure = rng.integers(6, size=150), rng.integers(2, size=150), rng.gamma(2, 1, 150)
    rate = rng.gamma(2, 1.5, (2, 6))
    y = rng.poisson(exposure * rate[z, site])
    rates = cv.Gamma("r", 1, 0.3, plates=(cv.Plate("k", 2), cv.Plate("g", 6)))
    expected = rates[_label("z", 2)][cv.Data("site", plates=OBS)] * cv.Data("exposure", plates=OBS)
    model = cv.Model(cv.Poisson("y", expected, plates=OBS))
    assert _spread(model, {"y": y, "site": site, "exposure": exposure}, 5) < 0.01 * 150


@pytest.mark.slow
def test_precisions_multiplied_three_by_two():
    """Three of five fits ended .04 nats a row below the others."""
    rng = np.random.default_rng(10)
    z, v = rng.integers(3, size=240), rng.integers(2, size=240)
    x = (np.array([1, 0.1, 0.01])[z] * np.array([1, 0.4])[v])[:, None] * rng.normal(size=(240, 6))
    first, second = (
        cv.Gamma(name, 1, 1, plates=cv.Plate(f"k_{name}", size))[_label(gate, size)]
        for name, gate, size in (("a", "z", 3), ("b", "v", 2))
    )
    model = cv.Model(cv.Normal("x", 0.0, first * second, plates=(OBS, cv.Plate("d", 6))))
    assert _spread(model, {"x": x}, 5) < 0.0125 * 240

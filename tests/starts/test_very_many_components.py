"""An ordinary mixture with very many components begins at one guess, brought near on a few rows, without a race."""

from typing import Any

import numpy as np
import pytest

import caviar as cv
from caviar.engine.ascent.driver import Settings
from caviar.engine.ascent.schedules.renewing import Renewing
from caviar.engine.rows.truncated.truncated_rows import TruncatedRows
from caviar.engine.starts import from_data, trials


class Raced(Exception):
    """What a race of starts raises here."""


def refused(*arguments, **keywords):
    raise Raced


@pytest.mark.thinned(2)
@pytest.mark.parametrize(("n_components", "is_raced"), [(3, True), (900, False)])
@pytest.mark.filterwarnings("ignore::caviar.CaviarWarning")
def test_only_few_components_race(n_components, is_raced, monkeypatch):
    rng = np.random.default_rng(0)
    # broad clusters, so that the first guess is not clear by itself
    X = rng.normal(size=(10_500, 8)) + 0.5 * rng.integers(0, 2, (10_500, 1))
    monkeypatch.setattr(from_data, "best_of", refused)
    model = cv.models.normal_wishart_mixture(8, n_components)
    if is_raced:
        with pytest.raises(Raced):
            model.fit({"x": X}, seed=0, max_iter=0)
    else:
        fit = model.fit({"x": X}, seed=0, max_iter=0, uncertainty="mean_field")
        assert np.isfinite(fit.elbo)
        # its clusters tell the components apart
        assert np.ptp(fit["theta"].mean[:, 0]) > 1


def grid(n_rows):
    """Return 200 clear clusters of two columns, and their labels."""
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 200, n_rows)
    centres = 12.0 * np.stack([labels // 20, labels % 20], axis=1)
    return centres + rng.normal(size=(n_rows, 2)), labels


def ends_of_starts(X, **arguments):
    model = cv.models.normal_wishart_mixture(2, 200)
    fit = model.fit(
        {"x": X}, seed=0, max_iter=0, uncertainty="mean_field", responsibilities="all", **arguments
    )
    return fit.elbo / len(X)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::caviar.CaviarWarning")
def test_clear_clusters_are_found():
    X, labels = grid(10_500)
    # of rows drawn at random a third of the clusters has none
    assert ends_of_starts(X) > ends_of_starts(X, init={"z": labels}) - 0.1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::caviar.CaviarWarning")
def test_passes_over_the_sample_bring_the_start_near(monkeypatch):
    rng = np.random.default_rng(2)
    # long clusters: the nearest centre is often another one
    X = rng.normal(size=(10_500, 2)) @ np.diag([30.0, 0.2]) + 6.0 * rng.integers(0, 20, (10_500, 1))
    near = ends_of_starts(X)
    monkeypatch.setattr(trials, "_NEAR", Settings(max_iter=0, tol=1e-3))
    assert near > ends_of_starts(X) + 0.05


@pytest.mark.filterwarnings("ignore::caviar.CaviarWarning")
@pytest.mark.parametrize("is_near", [True, False])
def test_there_are_few_searches_for_components_where_a_start_has_come_near(is_near, monkeypatch):
    """Neither soon after the first one, nor by renewals but that of the third iteration; labels of a user are poor."""
    X, labels = grid(10_500)
    ages: dict[int, list[int]] = {}
    renewed: list[int] = []
    search, step = TruncatedRows._found, Renewing.step

    def noted(rows, supports, block):
        if not rows._renews:
            ages.setdefault(supports.n_rows, []).append(supports.age)
        return search(rows, supports, block)

    def renewing(own, state):
        after = step(own, state)
        renewed.extend([state.n_iter] if after.renewals > state.renewals else [])
        return after

    monkeypatch.setattr(TruncatedRows, "_found", noted)
    monkeypatch.setattr(Renewing, "step", renewing)
    init: dict[str, Any] = {} if is_near else {"init": {"z": np.random.default_rng(0).permutation(labels)}}
    model = cv.models.normal_wishart_mixture(2, 200)
    asked = {
        "seed": 0,
        "max_iter": 7,
        "tol": 0.0,
        "uncertainty": "mean_field",
        "schedule": "batch",
        "swaps": False,
    }
    model.fit({"x": X}, responsibilities=4, **asked, **init)
    early = {1, 2, 4}
    assert early.isdisjoint(ages[len(X)]) if is_near else early & set(ages[len(X)])
    # those of the sample
    assert all(early.isdisjoint(own) for n_rows, own in ages.items() if n_rows < len(X))
    assert set(renewed) <= {2} if is_near else renewed

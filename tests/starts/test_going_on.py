"""A fit goes on from where the race of its starts has come to, or what is brought near given values, over all rows."""

import numpy as np
import pytest

import caviar as cv
from caviar.engine.ascent.schedules import batch
from caviar.engine.rows.subsample import Sample
from caviar.engine.starts import warm_up


@pytest.mark.thinned(2)
@pytest.mark.parametrize(("n_rows", "repeats"), [(300, False), (10_500, True)])
def test_the_first_pass_is_not_made_again(monkeypatch, n_rows, repeats):
    """Over more rows than those of the sample it has to be made."""
    over = []
    begin = batch.begin
    monkeypatch.setattr(
        batch, "begin", lambda problem, q, row_map: over.append(row_map) or begin(problem, q, row_map)
    )
    # three components in two clusters, so that several starts race
    rng = np.random.default_rng(0)
    faithful = cv.datasets.load_faithful().values
    X = faithful[rng.integers(0, len(faithful), n_rows)] + rng.normal(size=(n_rows, 2)) * (0.1, 1.0)
    mixture = cv.GaussianMixture(3, random_state=0).fit(X)
    assert any(not isinstance(row_map.source, Sample) for row_map in over) == repeats
    assert np.all(np.diff(mixture.elbo_trace_) >= -1e-9 * abs(mixture.elbo_))
    np.testing.assert_allclose(mixture.elbo_, mixture.score_samples(X).sum(), rtol=1e-10)


def test_what_was_brought_near_given_values_is_not_passed_over_again(monkeypatch):
    """The fit has the bits of one that makes its first pass."""
    begun = []
    begin = batch.begin
    monkeypatch.setattr(batch, "begin", lambda *place: begun.append(place) or begin(*place))
    model, X = cv.models.gaussian_mixture(2, 2), cv.datasets.load_faithful().values
    init = {"mean": [[2.0, 54.0], [4.3, 80.0]]}
    posterior = model.fit({"x": X}, init=init)
    assert len(begun) == 1
    monkeypatch.setattr(warm_up, "gone_on_from", lambda *state: None)
    other = model.fit({"x": X}, init=init)
    assert len(begun) == 3
    np.testing.assert_array_equal(posterior.elbo_trace, other.elbo_trace)

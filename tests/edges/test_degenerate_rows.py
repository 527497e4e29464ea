"""Rows that determine little: few, equal, collinear, constant, huge, tiny, or of odd weight."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

from caviar.engine.ascent.status import Status
from caviar.lazy.moments import moments
from edges import stated

STATES = [stated.independent, stated.joint]


def rows(n=60, d=2, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def _collinear(d):
    line = rows(40, 1)
    return line * np.arange(1.0, d + 1)


CASES = {
    "one row": (rows(1), 3),
    "one row, one component": (rows(1), 1),
    "fewer rows than components": (rows(4), 10),
    "one component": (rows(), 1),
    "more components than needed": (rows(), 20),
    "equal rows": (np.repeat(rows(1), 50, axis=0), 3),
    "equal rows far away": (np.repeat(rows(1) + 1e8, 50, axis=0), 3),
    "two distinct rows": (np.repeat(rows(2), 25, axis=0), 3),
    "zeros": (np.zeros((20, 2)), 3),
    "constant column": (np.c_[rows(), np.full(60, 3.0)], 3),
    "constant column far away": (np.c_[rows(), np.full(60, 1e10)], 3),
    "collinear": (_collinear(3), 3),
    "collinear far away": (_collinear(3) + 1e8, 3),
    "more columns than rows": (rows(5, 20), 3),
    "rank 2 in 8 columns": (rows(50, 2) @ rows(2, 8, seed=1), 3),
    "far separated": (np.concatenate([rows(), rows() + 1e5]), 2),
    "one value many times": (np.concatenate([rows(), np.full((200, 2), 5.0)]), 4),
    "two values": (np.random.default_rng(0).integers(0, 2, (100, 2)).astype(float), 6),
    "separated below the resolution of the whole": (np.concatenate([rows(30), rows(30) + 1e14]), 5),
}


@pytest.mark.thinned(5)
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("case", CASES)
def test_a_proper_prior_makes_every_fit_finite_and_rising(state, case):
    x, k = CASES[case]
    spread = max(1.0, float(np.ptp(x, axis=0).max()))
    precision = 1e-2 / spread**2
    posterior = state(k, x.shape[1], at=x.mean(axis=0), mean_precision=precision).fit({"x": x}, seed=0)
    assert posterior.status in (Status.CONVERGED, Status.MAX_ITER)
    assert stated.is_finite(posterior)
    assert stated.largest_fall(posterior) < 1e-9
    r = posterior.local({"x": x})["z"].probabilities
    assert_allclose(r.sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("state", STATES)
def test_a_prior_far_from_the_data_is_fitted_or_refused_for_that_reason(state):
    """A prior 1e8 standard deviations away: broad components are the answer, numbers of size 1e18 the difficulty."""
    x = rows(60, 3)
    posterior, refusal = stated.fit_or_refusal(lambda: state(3, 3, at=1e9).fit({"x": x}, seed=0))
    if posterior is None:
        assert "far" in refusal, "the reason is the distance of the prior from the data"
    else:
        assert stated.is_finite(posterior)
        assert stated.largest_fall(posterior) < 1e-9


def test_an_empty_component_keeps_its_prior_wherever_the_data_are():
    """Prior mean 1e5 prior standard deviations from the data; the component without rows must not notice."""
    x = rows(60, 2) + 1e5
    posterior = stated.joint(2, 2, at=0.0, mean_precision=1.0).fit(
        {"x": x}, init={"z": np.zeros(60, int)}, max_iter=1
    )
    theta, counts = posterior["theta"], posterior["weights"].concentration - 1
    empty = int(np.argmin(counts))
    assert counts[empty] < 1e-6
    assert_allclose(theta.inverse_scale[empty], np.eye(2), atol=1e-6)
    assert_allclose(theta.mean[empty], 0.0, atol=1e-5)


def test_responsibilities_of_next_to_nothing_contribute_nothing():
    """Components 1e5 widths apart: exp underflows, and 0 log 0 counts as 0."""
    x = np.concatenate([rows(30, 1), rows(30, 1) + 1e5])
    labels = np.repeat([0, 1], 30)
    posterior = stated.known_variance(2, mean_precision=1e-12).fit({"x": x[:, 0]}, init={"z": labels})
    r = posterior.local({"x": x[:, 0]})["z"].probabilities
    assert_allclose(r, np.eye(2)[labels], rtol=0, atol=1e-200)
    # each block is then a Normal with known variance: its evidence is known, up to the choice of labels
    evidence = sum(_log_evidence(x[labels == k, 0], 1e12) for k in (0, 1)) - 60 * np.log(2)
    assert_allclose(posterior.elbo, evidence, rtol=1e-10)


def _log_evidence(x, prior_variance):
    """Return log p(x) for unit variance and mean ~ N(0, prior_variance), from sums about the sample mean."""
    n, mean = len(x), x.mean()
    total = prior_variance + 1 / n
    within = -0.5 * ((x - mean) ** 2).sum() - 0.5 * n * np.log(2 * np.pi)
    return within + 0.5 * np.log(2 * np.pi / n) - 0.5 * np.log(2 * np.pi * total) - 0.5 * mean**2 / total


@pytest.mark.thinned(6)
@pytest.mark.parametrize("power", [-500, -300, 300, 498])
@pytest.mark.parametrize(
    "form", ["independent", "joint", "scalar_independent", "scalar_joint", "known_variance"]
)
def test_units_of_any_size_give_the_same_fit(form, power):
    """Scaled data under scaled priors (1e-150 to 1e150): the objective moves by N D log(unit), the rest not at all."""
    unit, d = 2.0**power, 3
    x, labels = rows(60, d) + np.repeat([[0.0], [5.0]], 30, axis=0), np.repeat([0, 1], 30)
    state = getattr(stated, form)
    vector = form in ("independent", "joint")

    def fitted(scale):
        joint = form in ("joint", "scalar_joint")
        arguments = {"mean_precision": 1e-2 if joint else 1e-2 / scale**2}
        arguments["variance" if form == "known_variance" else "scale"] = scale**2
        model = state(2, d, **arguments) if vector else state(2, **arguments)
        data = x * scale if vector else x[:, 0] * scale
        return model.fit({"x": data}, init={"z": labels}, max_iter=20, tol=0.0)

    plain, scaled = fitted(1.0), fitted(unit)
    columns = d if vector else 1
    assert_allclose(scaled.elbo + 60 * columns * np.log(unit), plain.elbo, rtol=1e-9, atol=1e-7)


@pytest.mark.filterwarnings("ignore::caviar.LostDigitsWarning")
@pytest.mark.parametrize("size", [1e150, 1e160, 1e300])
@pytest.mark.parametrize("state", STATES)
def test_rows_beyond_the_range_of_their_squares_are_refused_in_words(state, size):
    """Under a prior of unit size: a finite fit whose objective is no positive nonsense, or an error that names 'x'."""
    x = rows(60, 2) * size
    posterior, refusal = stated.fit_or_refusal(lambda: state(2, 2).fit({"x": x}, seed=0, max_iter=5))
    if posterior is None:
        assert "'x'" in refusal
    else:
        assert stated.is_finite(posterior)
        assert posterior.elbo < 0, "each density is at most about 1 / size"


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("value", [1e12, 1e160, 1e300])
def test_a_row_of_weight_zero_counts_nothing_whatever_it_holds(state, value):
    x, labels = rows(), np.arange(60) % 2
    more, weights = np.concatenate([x, [[value, value]]]), np.append(np.ones(60), 0.0)
    model = state(2, 2)
    without = model.fit({"x": x}, init={"z": labels}, max_iter=5)
    posterior = model.fit({"x": more}, init={"z": np.append(labels, 0)}, max_iter=5, sample_weight=weights)
    assert_allclose(posterior.elbo, without.elbo, rtol=1e-9)


@pytest.mark.thinned(2)
@pytest.mark.filterwarnings("ignore::caviar.LostDigitsWarning")
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("weight", [1e-300, 1e-12, 1e12, 1e100, 1e300])
def test_weights_of_any_size_give_finite_numbers_or_a_refusal(state, weight):
    weights = np.full(60, weight)
    posterior, refusal = stated.fit_or_refusal(
        lambda: state(2, 2).fit({"x": rows()}, seed=0, sample_weight=weights)
    )
    if posterior is None:
        assert "sample_weight" in refusal
    else:
        assert stated.is_finite(posterior)
        assert stated.largest_fall(posterior) < 1e-9


@pytest.mark.parametrize("state", STATES)
def test_almost_no_weight_is_almost_the_prior(state):
    posterior = state(2, 2).fit({"x": rows()}, seed=0, sample_weight=np.full(60, 1e-12))
    assert_allclose(posterior.elbo, 0.0, atol=1e-6)
    assert_allclose(posterior["weights"].concentration, 1.0, atol=1e-9)


@pytest.mark.parametrize("state", STATES)
def test_weights_that_are_not_whole_interpolate(state):
    """Weight 1.5 on every row, from the same labels, as weights that sum to it."""
    x, labels = rows(), np.arange(60) % 2
    model = state(2, 2)
    once = model.fit({"x": x}, init={"z": labels}, max_iter=5, sample_weight=1.5)
    parts = model.fit(
        {"x": np.concatenate([x, x])},
        init={"z": np.tile(labels, 2)},
        max_iter=5,
        sample_weight=np.repeat([0.3, 1.2], 60),
    )
    assert_allclose(parts.elbo_trace, once.elbo_trace, rtol=1e-10)


@pytest.mark.parametrize("state", STATES)
def test_no_warning_of_another_library_leaks_from_the_start(state):
    """Distinct rows that are equal to rounding once they are put in units of the whole spread."""
    x = np.concatenate([rows(40, 2), [[1e18, 1e18]]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = state(6, 2, at=x.mean(axis=0), mean_precision=1e-36)
        assert stated.is_finite(model.fit({"x": x}, seed=0, max_iter=3))


@pytest.mark.parametrize("n", [6, 20_000])
def test_rows_of_weight_zero_may_be_all_that_a_block_has(n):
    """Moments are taken in blocks of 8,192 rows, of which those with a weight count."""
    x = rows(n, 3)
    weights = np.zeros(n)
    weights[-2:] = [0.5, 2.0]
    found = moments(x, weights)
    mean = np.average(x, axis=0, weights=weights)
    assert_allclose(found.mean, mean, rtol=1e-12)
    assert_allclose(found.spread, np.sqrt(np.average((x - mean) ** 2, axis=0, weights=weights)), rtol=1e-12)
    posterior = stated.joint(2, 3).fit({"x": x}, seed=0, sample_weight=weights, max_iter=5)
    assert stated.is_finite(posterior)

"""Under flat priors there may be no answer: that is said, with finite numbers, and no bare error of linear algebra."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

import caviar as cv
from caviar.engine.ascent.status import Status
from edges import stated

BLOBS = np.random.default_rng(3).standard_normal((60, 2)) + np.repeat([[0.0], [8.0]], 30, axis=0)
FORMS = {
    "separate": (stated.flat, ["weights", "mean", "precision"]),
    "joint": (stated.flat_joint, ["weights", "theta"]),
}

COLLAPSING = {
    "all columns on a line": (np.c_[BLOBS[:, 0], 2 * BLOBS[:, 0]], 2, None),
    "constant column": (np.c_[BLOBS[:, 0], np.ones(60)], 2, None),
    "equal rows": (np.repeat(BLOBS[:1], 20, axis=0), 2, None),
    "one row": (BLOBS[:1], 1, None),
    "one row, two components": (BLOBS[:1], 2, None),
    "two rows in the plane": (BLOBS[:2], 1, None),
    "fewer rows than components": (BLOBS[:3], 8, None),
    "a component on one value": (
        np.concatenate([np.repeat([[97.0, 97.0]], 30, axis=0), BLOBS[:30]]),
        2,
        np.repeat([0, 1], 30),
    ),
}


def fit(form, x, k, labels, **arguments):
    state, point = FORMS[form]
    start = {"seed": 0} if labels is None else {"init": {"z": labels}}
    return state(k, x.shape[1]).fit({"x": x}, point=point, max_iter=200, **start, **arguments)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", COLLAPSING)
def test_a_collapse_is_said_and_its_numbers_are_finite(form, case):
    with pytest.warns(cv.CollapseWarning):
        posterior = fit(form, *COLLAPSING[case])
    assert posterior.status is Status.COLLAPSED
    assert stated.is_finite(posterior)
    assert_allclose(posterior.local({"x": COLLAPSING[case][0]})["z"].probabilities.sum(axis=1), 1.0)


@pytest.mark.parametrize("form", FORMS)
def test_labels_that_leave_a_component_empty_give_it_a_share_of_all_rows(form):
    """It has no maximum-likelihood update of its own; the fit from there is one of two components, not of one."""
    posterior = fit(form, BLOBS, 2, np.zeros(60, dtype=int))
    assert posterior.status is Status.CONVERGED
    assert posterior.local({"x": BLOBS})["z"].probabilities.sum(axis=0).min() > 1
    assert np.diff(posterior.elbo_trace).min() > -1e-9


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("power", [-500, 0, 498])
def test_sound_data_do_not_collapse_in_any_unit(form, power):
    unit, labels = 2.0**power, np.repeat([0, 1], 30)
    posterior = fit(form, BLOBS * unit, 2, labels)
    assert posterior.status is Status.CONVERGED
    plain = fit(form, BLOBS, 2, labels)
    assert_allclose(posterior.elbo + BLOBS.size * np.log(unit), plain.elbo, rtol=1e-9, atol=1e-7)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("size", "distance"), [(1.0, 1e5), (1e-4, 1e4), (1e-4, 1e6)])
def test_narrow_components_far_apart_are_no_collapse(form, size, distance):
    """Each site is a blob in the plane; to be small next to the distance of the sites does not make it singular."""
    blob = np.random.default_rng(5).standard_normal((40, 2)) * size
    x, labels = np.concatenate([blob, blob + distance]), np.repeat([0, 1], 40)
    posterior = fit(form, x, 2, labels)
    assert posterior.status is Status.CONVERGED
    density = -0.5 * np.linalg.slogdet(2 * np.pi * np.e * np.cov(blob.T, bias=True))[1]
    assert_allclose(posterior.elbo, 80 * (density - np.log(2)), rtol=1e-6)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("far", [0.0, 1e6])
def test_a_component_as_narrow_as_the_rounding_of_its_rows_has_collapsed(form, far):
    """Its width of 3e-10 is sound about zero, and no more than rounding at a million, where digits end at 1e-10."""
    narrow = 3e-10 * np.random.default_rng(6).standard_normal((40, 2))
    x, labels = far + np.concatenate([narrow, BLOBS[30:]]), np.repeat([0, 1], [40, 30])
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        posterior = fit(form, x, 2, labels)
    assert posterior.status is (Status.COLLAPSED if far else Status.CONVERGED)
    assert [own.category for own in told] == ([cv.CollapseWarning] if far else [])


@pytest.mark.slow
def test_a_collapsed_start_is_not_kept_over_a_sound_one():
    x = np.concatenate([BLOBS, [[30.0, 30.0]]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        posterior = stated.flat(2, 2).fit(
            {"x": x}, point=["weights", "mean", "precision"], seed=0, n_restarts=8, max_iter=200
        )
    assert posterior.status is not Status.COLLAPSED


def test_a_rare_component_of_known_variance_collapses_with_finite_numbers():
    """Known weights (.99, .01) and 100 rows of one Normal: every start empties the rare component."""
    x = np.random.default_rng(0).standard_normal(100)
    with pytest.warns(cv.CollapseWarning):
        posterior = stated.flat_known_variance([0.99, 0.01]).fit({"x": x}, seed=0)
    assert posterior.status is Status.COLLAPSED
    assert stated.is_finite(posterior)


@pytest.mark.parametrize(
    "arguments",
    [{"seed": 0}, {"init": "prior"}, {"init": {"z": np.zeros(9, dtype=int)}}],
    ids=["auto", "prior", "labels"],
)
@pytest.mark.parametrize("x", [np.ones(9), np.arange(9.0)], ids=["equal rows", "distinct rows"])
def test_flat_means_give_finite_numbers_from_any_start(arguments, x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cv.CollapseWarning)
        posterior = stated.flat_known_variance([0.5, 0.5]).fit({"x": x}, **arguments)
    assert stated.is_finite(posterior)


def test_a_point_mass_without_a_mode_says_so():
    """Nothing is wrong with the numbers: the density is largest at the edge of its domain."""
    model = cv.Model(cv.Categorical("x", cv.Dirichlet("weights", [0.5, 0.5]), plates=cv.Plate("obs")))
    message = "point mass of 'weights' has no optimum: A Dirichlet .* Leave 'weights' out of point="
    with pytest.raises(cv.ImproperError, match=message) as caught:
        model.fit({"x": [0, 0]}, point=["weights"])
    assert "double precision" not in str(caught.value)

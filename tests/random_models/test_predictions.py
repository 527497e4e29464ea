"""Predictions of random models: the means of draws where they are closed, and otherwise a refusal of ours."""

from typing import Any

import numpy as np
from hypothesis import given

import caviar as cv

from .strategy import Drawn, examples, models

N_DRAWS = 200


def predicted_unless_refused(posterior: cv.Posterior, data: dict[str, Any]) -> dict[str, Any]:
    """Return the predictions; none where they are refused in words that say what to do instead."""
    try:
        return posterior.predict(data)
    except cv.ModelError as error:
        refusal = str(error)
    assert "posterior.predictive(data=..., n_draws=...)" in refusal
    return {}


@examples(25)
@given(drawn=models())
def test_absent_leaves_are_predicted_as_draws_are_or_refused(drawn: Drawn):
    try:
        posterior = drawn.stated.model.fit(drawn.data, seed=0, max_iter=3)
    except cv.CaviarError:
        return
    leaves = {leaf.name: leaf for leaf in posterior.model.leaves}
    known = {name: value for name, value in drawn.data.items() if name not in leaves}
    found = predicted_unless_refused(posterior, known)
    if not found:
        return
    plate = posterior.data_plate
    along = [node.name for node in posterior.model.nodes if plate in node.plates]
    sizes = {} if plate is None or plate.size is not None or known.keys() & along else {plate.name: 1}
    draws = posterior.predictive(sizes, data=known, n_draws=N_DRAWS, seed=1)
    for name, leaf in leaves.items():
        drawn_values = draws[name]
        if isinstance(leaf, cv.Categorical):
            drawn_values = np.eye(leaf.dimension)[drawn_values]
        if plate in leaf.plates:
            drawn_values = np.moveaxis(drawn_values, leaf.plates.index(plate) + 1, 1)
        mean, deviation = found[name].mean, found[name].standard_deviation
        assert drawn_values.shape[1:] == mean.shape == deviation.shape
        assert np.isfinite(mean).all()
        # many numbers of many models: five standard errors
        assert np.all(np.abs(drawn_values.mean(axis=0) - mean) <= 5 * deviation / np.sqrt(N_DRAWS) + 1e-9)


@examples(25)
@given(drawn=models())
def test_a_leaf_alone_is_predicted_from_the_others_or_refused(drawn: Drawn):
    try:
        posterior = drawn.stated.model.fit(drawn.data, seed=0, max_iter=3)
    except cv.CaviarError:
        return
    for leaf in posterior.model.leaves if len(posterior.model.leaves) > 1 else ():
        rest = {name: value for name, value in drawn.data.items() if name != leaf.name}
        predictions = predicted_unless_refused(posterior, rest)
        if not predictions:
            continue
        found = predictions[leaf.name]
        assert found.mean.shape == found.standard_deviation.shape
        assert np.isfinite(found.mean).all()
        assert np.all(found.standard_deviation >= 0)

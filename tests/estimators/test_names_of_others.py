"""Attributes that an estimator lacks: the message says what to do instead, and hasattr that they are not there."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import caviar as cv
from caviar._words_of_others import _OF_FITS

pytestmark = pytest.mark.first_guess

ESTIMATORS = [
    cv.BayesianGaussianMixture,
    cv.GaussianMixture,
    cv.HiddenMarkovModel,
    cv.KnownVarianceMixture,
    cv.LatentDirichletAllocation,
    cv.MixedMixture,
    cv.MixedModel,
]


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_who_has_partial_fit_is_told_by_those_who_do_not(kind):
    own = kind("y ~ 1") if kind is cv.MixedModel else kind(2)
    if kind in (cv.HiddenMarkovModel, cv.MixedModel):
        assert not hasattr(own, "partial_fit")
        with pytest.raises(AttributeError, match="Call fit with all rows"):
            own.partial_fit([[1.0]])
    else:
        assert callable(own.partial_fit)
        assert kind.__name__ in _OF_FITS["partial_fit"]


def test_names_of_other_libraries():
    states = cv.HiddenMarkovModel(2)
    for name, ours in (("transmat_", "transition_"), ("labels_", "predict"), ("bic", "caviar.compare")):
        assert not hasattr(states, name)
        with pytest.raises(AttributeError, match=ours):
            getattr(states, name)
    assert callable(cv.GaussianMixture(2).bic)
    with pytest.raises(AttributeError, match=r"no attribute 'nothing_like_this'$"):
        _ = states.nothing_like_this


def test_what_is_named_instead_exists():
    X = np.repeat([0.0, 5.0], 10)[:, np.newaxis] + np.linspace(0, 1, 20)[:, np.newaxis]
    fits = [
        cv.HiddenMarkovModel(2, emission=kind, max_iter=2, tol=1.0, uncertainty="mean_field").fit(
            X.astype(own)
        )
        for kind, own in (("gaussian", float), ("categorical", int), ("poisson", int))
    ]
    for text in _OF_FITS.values():
        name = text.removeprefix("its name is ")
        assert name == text or any(hasattr(own, name) for own in fits), name


def test_a_property_still_says_that_there_was_no_fit():
    with pytest.raises(NotFittedError):
        _ = cv.HiddenMarkovModel(2).observed_names
    with pytest.raises(AttributeError, match="no attribute 'means_'"):
        _ = cv.BayesianGaussianMixture(2).means_

"""The demands of the suite find what they are there to find."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import caviar as cv
from torture import demands
from torture.case import Case, blobs
from torture.registry import CASES

ROWS = blobs(np.random.default_rng(0))


def fitted():
    return cv.BayesianGaussianMixture(2, random_state=0).fit(ROWS)


def problems(**attributes):
    mixture = fitted()
    # past the descriptors that refuse to set what follows from a fit
    vars(mixture).update(attributes)
    return list(demands.problems_of(mixture, ROWS))


def test_nothing_is_wrong_with_an_ordinary_fit():
    assert problems() == []


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"elbo_": np.nan}, "elbo_ is not finite"),
        ({"means_": np.full((2, 2), np.inf)}, "means_ is not finite"),
        ({"weights_": np.array([0.5, 0.4])}, "weights_ sum to"),
        ({"elbo_trace_": np.array([-200.0, -190.0, -191.0])}, "the bound fell by 1"),
        ({"covariances_": np.stack([np.eye(2), [[1.0, 2.0], [2.0, 1.0]]])}, "not positive definite"),
        ({"covariances_": np.stack([np.eye(2), np.diag([1.0, 0.0])])}, "a variance is not positive"),
        ({"score_samples": lambda rows: np.full(len(rows), -np.inf)}, "score_samples is not finite"),
        ({"predict_proba": lambda rows: np.full((len(rows), 2), 0.4)}, "predict_proba does not sum to one"),
    ],
)
def test_a_broken_fit_is_found(attributes, words):
    assert any(words in problem for problem in problems(**attributes))


def test_an_error_of_another_library_is_a_failure(monkeypatch):
    def fail(*_, **__):
        raise np.linalg.LinAlgError("Matrix is not positive definite")

    monkeypatch.setattr(cv.BayesianGaussianMixture, "fit", fail)
    assert demands.outcome_of(CASES["K = 1"], "joint full").kind == "failed"


def test_a_warning_of_another_library_is_a_problem(monkeypatch):
    fit = cv.BayesianGaussianMixture.fit

    def warn(self, *arguments, **options):
        warnings.warn("divide by zero", RuntimeWarning, stacklevel=2)
        return fit(self, *arguments, **options)

    monkeypatch.setattr(cv.BayesianGaussianMixture, "fit", warn)
    (problem,) = demands.outcome_of(CASES["K = 1"], "joint full").problems
    assert "divide by zero" in problem


def test_a_refusal_that_is_not_due_is_a_problem_and_so_is_its_absence():
    unasked = replace(CASES["scaled by 1e+300"], refused="")
    missing = Case("ordinary", "nothing is wrong", lambda rng: ROWS, refused="units")
    assert "unasked" in demands.outcome_of(unasked, "joint full").problems[0]
    assert "was to be refused" in demands.outcome_of(missing, "joint full").problems[0]


def test_rows_that_a_fit_changes_are_found(monkeypatch):
    def change(self, rows, sample_weight=None):
        rows[0] = 7.0
        return fit(self, rows, sample_weight=sample_weight)

    fit = cv.BayesianGaussianMixture.fit
    monkeypatch.setattr(cv.BayesianGaussianMixture, "fit", change)
    assert "the rows were changed" in demands.outcome_of(CASES["K = 1"], "joint full").problems


def test_an_error_after_the_fit_is_a_problem(monkeypatch):
    def fail(*_):
        raise cv.DataError("the rows")

    monkeypatch.setattr(cv.BayesianGaussianMixture, "score_samples", fail)
    (problem,) = demands.outcome_of(CASES["K = 1"], "joint full").problems
    assert "after the fit" in problem

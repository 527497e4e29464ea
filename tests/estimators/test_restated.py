"""A mixture that is stated again by the values of its constants is the mixture that is stated in full."""

from __future__ import annotations

import pathlib
import pickle
from typing import Any

import numpy as np
import pytest

import caviar as cv
from caviar.estimators.mixtures import gaussian
from caviar.fitting.model import Model
from caviar.language.structure import constants_of

pytestmark = pytest.mark.first_guess

X = cv.datasets.load_faithful().values
ESTIMATORS: dict[str, tuple[type, dict[str, Any]]] = {
    "joint": (cv.BayesianGaussianMixture, {}),
    "tied": (cv.BayesianGaussianMixture, {"covariance_type": "tied"}),
    "diag": (cv.BayesianGaussianMixture, {"covariance_type": "diag"}),
    "spherical": (cv.BayesianGaussianMixture, {"covariance_type": "spherical"}),
    "process": (cv.BayesianGaussianMixture, {"weight_concentration_prior_type": "dirichlet_process"}),
    "likelihood": (cv.GaussianMixture, {}),
    "likelihood of spheres": (cv.GaussianMixture, {"covariance_type": "spherical"}),
}


@pytest.fixture(autouse=True)
def memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gaussian, "RESTATED", gaussian.Restated())


def is_restated(model: Model) -> bool:
    return "nodes" not in vars(model)


def fitted(name: str, table: Any = X, **more: Any) -> Any:
    kind, arguments = ESTIMATORS[name]
    return kind(2, random_state=0, **arguments, **more).fit(table)


def posterior_values(fit: Any) -> dict[str, Any]:
    found = {
        name: np.asarray(value) for name, value in vars(fit).items() if name in ("means_", "covariances_")
    }
    return {**found, "elbo": fit.elbo_, "responsibilities": fit.predict_proba(X)}


@pytest.mark.usefixtures("figures_of_factors")
@pytest.mark.thinned(7)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_restated_fit_has_the_bits_of_one_that_is_stated_in_full(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = [X, X[:200] * 3.0 + 1.0]
    full = []
    for table in tables:
        monkeypatch.setattr(gaussian, "RESTATED", gaussian.Restated())
        full.append(fitted(name, table))
        assert not is_restated(full[-1].posterior_.model)
    for own, table in zip(full, tables, strict=True):
        again = [fitted(name, table) for _ in range(3)][-1]
        assert is_restated(again.posterior_.model)
        np.testing.assert_equal(posterior_values(again), posterior_values(own))
        assert str(again.posterior_.summary()) == str(own.posterior_.summary())


@pytest.mark.usefixtures("figures_of_factors")
def test_a_restated_model_tells_its_statement_when_it_is_asked() -> None:
    first = fitted("joint").posterior_.model
    for table in (X, X[:200]):
        model = fitted("joint", table).posterior_.model
    assert is_restated(model)
    told = constants_of(model.nodes)
    assert not is_restated(model)
    assert told.keys() == model.constants.keys() == first.constants.keys()
    assert all(np.array_equal(told[name], value) for name, value in model.constants.items())
    assert not np.array_equal(told["theta.mean"], first.constants["theta.mean"])
    assert repr(model) == repr(first)
    copy = pickle.loads(pickle.dumps(fitted("joint", X[:200]).posterior_))
    assert np.array_equal(copy.model.constants["theta.mean"], told["theta.mean"])


@pytest.mark.usefixtures("figures_of_factors")
@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_restated_fit_is_saved_and_loaded(name: str, tmp_path: pathlib.Path) -> None:
    """A smallest variance is one number, which a file holds as an array."""
    for table in (X, X[:200], X[:150]):
        fit = fitted(name, table)
    assert is_restated(fit.posterior_.model)
    fit.save(tmp_path / "m.caviar")
    np.testing.assert_array_equal(cv.load(tmp_path / "m.caviar").score_samples(X), fit.score_samples(X))


@pytest.mark.slow
def test_other_arguments_are_other_statements() -> None:
    default = [fitted("joint") for _ in range(3)][-1]
    for more in (
        {"weight_concentration_prior": 3.0},
        {"degrees_of_freedom_prior": 7.0},
        {"mean_precision_prior": 0.1},
        {"mean_precision_prior": [0.1, 2.0]},
        {"fixed": {"weights": [0.3, 0.7]}},
    ):
        own = fitted("joint", **more)
        assert not is_restated(own.posterior_.model)
        assert own.elbo_ != default.elbo_


def test_what_is_told_of_the_data_is_that_of_the_fit_whatever_becomes_of_the_array() -> None:
    rows = X.copy()
    fit = cv.BayesianGaussianMixture(2, random_state=0).fit(rows)
    rows[:] = 0.0
    assert fit.posterior_.share_seen({"x": X}) == 1.0
    np.testing.assert_allclose(fit.posterior_.data_summary["arrays"]["x"]["mean"], X.mean(axis=0))


def test_memory_is_bounded() -> None:
    memory = gaussian.Restated()
    model = fitted("joint").posterior_.model
    for number in range(1000):
        memory.model(number, {}, lambda: model)
    assert len(memory._kept) <= gaussian._MOST_STATEMENTS

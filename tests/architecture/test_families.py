"""A new family is a distribution and its variable: here is one that no other file knows; and what lists them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import pytest
from scipy.special import betaln, entr, xlog1py
from scipy.stats import beta, geom

import caviar as cv
from caviar import families
from caviar._typing import AnyArray, Array, Statistics
from caviar.families import ExponentialFamily
from caviar.families.base.family import as_value, draw_shape
from caviar.families.base.parameters import read_parameters
from caviar.language import DISTRIBUTIONS, Variable
from caviar.language.nodes.expected_slots import ExpectedSlots
from caviar.language.nodes.roles import PROBABILITY
from caviar.language.nodes.templates import template
from caviar.numerics.cached import cached_property


@dataclass(frozen=True, eq=False, repr=False)
class Failures(ExponentialFamily):
    """Geometric distributions of the failures before the first success."""

    probability: Array

    statistics: ClassVar[tuple[str, ...]] = ("x",)
    parameter_letters: ClassVar[tuple[str, ...]] = ("",)

    def __init__(self, probability: Any) -> None:
        vars(self).update(read_parameters("Failures", {"probability": probability}, (0,)))

    @classmethod
    def from_natural(cls, natural: Statistics) -> Self:
        return cls(-np.expm1(natural[0]))

    @classmethod
    def statistics_of(cls, value: Any) -> Statistics:
        return (as_value(value),)

    @cached_property
    def natural(self) -> Statistics:
        return (np.log1p(-self.probability),)

    @cached_property
    def expected_statistics(self) -> Statistics:
        return (self.mean,)

    def response(self, change: Statistics) -> Statistics:
        return ((1.0 - self.probability) / self.probability**2 * change[0],)

    @cached_property
    def log_partition(self) -> Array:
        return -np.log(self.probability)

    @property
    def mean(self) -> Array:
        return (1.0 - self.probability) / self.probability

    def log_density(self, value: Any) -> Array:
        return np.log(self.probability) + xlog1py(as_value(value), -self.probability)

    def entropy(self) -> Array:
        return (entr(self.probability) + entr(1.0 - self.probability)) / self.probability

    def _divergence(self, other: Self) -> Array:
        return -self.entropy() - other.log_density(self.mean)

    def mode(self) -> AnyArray:
        return np.zeros(self.batch_shape)

    def sample(self, size: Any = None, seed: Any = None) -> AnyArray:
        shape = draw_shape(size, self.batch_shape)
        return np.random.default_rng(seed).geometric(self.probability, shape) - 1


class Geometric(Variable):
    """The number of failures before the first success."""

    family = Failures
    is_discrete = True
    letters: ClassVar[dict[str, str]] = {"x": ""}
    density = template((1, "probability.log_x"), (1, "probability.log_complement self.x"))

    def __init__(self, name: str, probability: Any, *, plates: Any = ()) -> None:
        self._state(name, plates, {"probability": (probability, PROBABILITY)}, dimension=1)

    def moments_given(self, slots: ExpectedSlots) -> tuple[Array, Array]:
        first, second = slots.inverse("probability")
        return first - 1.0, second - first + (second - np.square(first))

    def distribution_given(self, slots: Mapping[str, Any]) -> Failures:
        return Failures(slots["probability"])


X = geom(0.3).rvs(60, random_state=0) - 1


def _fit() -> cv.Posterior:
    rows = cv.Plate("row")
    p = cv.Beta("p", 2.0, 3.0)
    return cv.Model(Geometric("x", p, plates=rows)).fit({"x": X.astype(float)})


def test_its_elbo_is_the_evidence_and_its_factor_the_posterior():
    posterior = _fit()
    assert posterior.elbo == pytest.approx(betaln(2 + len(X), 3 + X.sum()) - betaln(2, 3), rel=1e-12)
    assert float(posterior["p"].a) == 2 + len(X)
    assert float(posterior["p"].b) == pytest.approx(3 + X.sum())


def test_a_mixture_of_it_finds_both_kinds_of_rows():
    rows, kinds = cv.Plate("row"), cv.Plate("kind", 2)
    z = cv.Categorical("z", cv.Dirichlet("w", [1.0, 1.0]), plates=rows)
    p = cv.Beta("p", 1.0, 1.0, plates=kinds)
    model = cv.Model(Geometric("x", p[z], plates=rows))
    x = np.concatenate([geom(0.8).rvs(150, random_state=1), geom(0.02).rvs(150, random_state=2)]) - 1.0
    posterior = model.fit({"x": x}, seed=0)
    assert (np.diff(posterior.elbo_trace) > -1e-9).all()
    np.testing.assert_allclose(np.sort(posterior["p"].mean), [0.02, 0.8], rtol=0.25)


def test_it_is_predicted_and_drawn():
    posterior = _fit()
    a, b = float(posterior["p"].a), float(posterior["p"].b)
    mean = beta.expect(lambda p: (1 - p) / p, (a, b))
    second = beta.expect(lambda p: (1 - p) / p**2 + ((1 - p) / p) ** 2, (a, b))
    found = posterior.predict({})["x"]
    assert float(found.mean[0]) == pytest.approx(mean, rel=1e-8)
    assert float(found.standard_deviation[0]) == pytest.approx(np.sqrt(second - mean**2), rel=1e-8)
    draws = posterior.predictive(n_draws=4000, sizes={"row": 1}, seed=0)["x"]
    assert draws.mean() == pytest.approx(mean, rel=0.06)


def test_what_it_does_not_say_is_refused_in_words(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delattr(Geometric, "moments_given")
    with pytest.raises(
        cv.ModelError, match=r"Geometric 'x' have no closed form here: the class Geometric does not"
    ):
        _fit().predict({})
    monkeypatch.undo()
    monkeypatch.delattr(families.Beta, "inverse_moments")
    with pytest.raises(cv.ModelError, match=r"E\[1 / p\] is not known"):
        _fit().predict({})


def test_every_distribution_of_the_language_is_public_and_every_family_listed():
    assert set(DISTRIBUTIONS) <= set(getattr(cv, "__all__"))  # noqa: B009
    assert all(getattr(cv, name) is kind for name, kind in DISTRIBUTIONS.items())
    assert set(families.FAMILIES) <= set(families.__all__)
    assert {kind.family.__name__ for kind in DISTRIBUTIONS.values()} <= set(families.__all__)

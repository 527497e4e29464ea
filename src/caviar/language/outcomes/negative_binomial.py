"""The NegativeBinomial: a count that varies more than a Poisson."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import betaln, log_expit

from ... import families
from ..._errors import ModelError
from ..._typing import AnyArray, Array
from ...families.base.family import draw_shape
from ..distributions.positive import Gamma
from ..nodes.algebra import Addend, Link, Predictor, as_predictor
from ..nodes.constants import Constant, as_known
from ..nodes.expected_slots import ExpectedSlots
from ..nodes.node import Expression, Indexed, Node
from ..nodes.plates import Plates
from ..nodes.roles import SIZE
from ..nodes.templates import LOG_2, Density, template
from ..variable import Variable
from .batches import Batch
from .counts import CountAnswer
from .expectations import MomentsOfCounts
from .links import Exponential, ExponentialOfNormal, Hidden, PolyaGammaOfSeveral
from .nodes_of_predictors import nodes

_FARTHEST = 100.0
"""Size of a predictor beyond which counts are predicted as at it: their mean is 1e43."""


class PolyaGammaOfCounts(PolyaGammaOfSeveral):
    r"""The Polya-Gamma number of a count.

    .. math:: \omega \sim PG(x + r, 0); \qquad \omega \mid x, \eta \sim PG(x + r, |\eta - \log r|)
    """

    # with the log-odds psi = eta - log r: (x - r) psi / 2 - (x + r) omega psi^2 / 2
    term: ClassVar[Density] = template(
        (1 / 2, "self.x mean.x"),
        (-1 / 2, "size.x mean.x"),
        (-1 / 2, "self.x size.log_x"),
        (1 / 2, "size.x_log_x"),
        (-1 / 2, "self.x hidden.x mean.xx"),
        (-1 / 2, "size.x hidden.x mean.xx"),
        (1, "self.x size.log_x hidden.x mean.x"),
        (1, "size.x_log_x hidden.x mean.x"),
        (-1 / 2, "self.x size.log_squared hidden.x"),
        (-1 / 2, "size.x_log_squared hidden.x"),
        (1, "self.x hidden.relative_entropy"),
        (1, "size.x hidden.relative_entropy"),
        (-LOG_2, "self.x"),
        (-LOG_2, "size.x"),
    )

    def distribution_given(self, slots: Mapping[str, Any]) -> families.PolyaGammaSum:
        """Return the distribution given the count, the predictor and the size."""
        shape, tilt = np.broadcast_arrays(
            slots["answer"] + slots["size"], np.abs(slots["predictor"] - np.log(slots["size"]))
        )
        return families.PolyaGammaSum(shape, tilt)


_HIDDEN: Mapping[type[Link], type[Hidden]] = {
    Exponential: PolyaGammaOfCounts,
    ExponentialOfNormal: MomentsOfCounts,
}


class Heterogeneity(Gamma):
    """The number with mean 1 that the rate of a count is multiplied by.

    Attributes
    ----------
    answer
        The count.
    """

    is_brought = True

    def __init__(self, answer: NegativeBinomial, size: Expression) -> None:
        self.answer = answer
        super().__init__(f"{answer.name}.heterogeneity", size, size, plates=answer.plates)


class NegativeBinomial(CountAnswer):
    r"""A count with mean m whose variance is :math:`m + m^2 / r`.

    .. math:: \log \mathrm{NB}(x \mid m, r) = \log \frac{\Gamma(x + r)}{\Gamma(r)\, x!}
              + r \log \frac{r}{r + m} + x \log \frac{m}{r + m}

    It must be observed, and adds a hidden variable for each count to the model. If the mean is a product of positive
    numbers, this is ``"y.heterogeneity"``, a Gamma with mean 1 and shape r that multiplies the rate of a Poisson. If
    the mean is :func:`exp` of a predictor, it is ``"y.polya_gamma"``, a PG(x + r, 0) number.

    Parameters
    ----------
    name
        Name of the variable, unique within the model.
    mean
        :math:`m > 0`: a number, an array, a Gamma, or a product of these, as the rate of a :class:`Poisson`; or
        :func:`exp` of a predictor, for regressions and group effects.
    size
        :math:`r > 0`; the larger r, the closer the distribution is to a Poisson. A number, an array or, if the mean is
        an ``exp``, Data. If the mean is a product, r may be an unknown Gamma, whose factor is tabulated on a grid.
    plates
        Plates along which the variable is repeated.

    Notes
    -----
    Polson, Scott and Windle (2013); Zhou, Li, Dunson and Carin (2012), "Lognormal and gamma mixed negative binomial
    regression".

    Examples
    --------
    >>> import caviar as cv
    >>> day, mean = cv.Plate("day"), cv.Gamma("mean", 1, 0.1)
    >>> model = cv.Model(cv.NegativeBinomial("calls", mean, 2.0, plates=day))
    >>> posterior = model.fit({"calls": [3, 0, 11, 5, 6]})
    >>> print(posterior["mean"].mean.round(2))
    5.34
    """

    family = families.Poisson
    letters: ClassVar = {"x": ""}
    base = template((1, "self.log_carrier"))
    density = template((1, "mean.log_x self.x"), (-1, "mean.x"))
    linked = "mean"
    without_link = "product of Gammas"

    mixing: Heterogeneity | None = None
    """What multiplies its mean, where that is not a link."""

    def __init__(self, name: str, mean: Expression, size: Expression, *, plates: Plates = ()) -> None:
        if isinstance(mean, Exponential):
            self._state_exponential(name, mean, size, plates)
            return
        where = f"'mean' of NegativeBinomial '{name}'"
        if isinstance(mean, Link):
            raise ModelError(
                f"{where} takes exp(...) of a predictor, or a product of positive numbers; got {mean!r}"
            )
        if isinstance(size, Link) or _is_of_locations(size):
            raise ModelError(
                f"'size' of NegativeBinomial '{name}' must be a number, an array or a Gamma; got {size!r}. The mean "
                f"comes first: NegativeBinomial('{name}', mean, size)"
            )
        self._identify(name, plates)
        if isinstance(size, float | int | np.ndarray | list):
            size = as_known(size, f"'size' of NegativeBinomial '{name}'")
            if SIZE.problem(size):
                raise ModelError(f"'size' of NegativeBinomial '{name}' {SIZE.problem(size)}; got {size}")
        self.mixing = Heterogeneity(self, size)
        own = as_known(mean, where) if isinstance(mean, float | int | np.ndarray | list) else mean
        rate: Any = self._named(own) if isinstance(own, np.ndarray) else own
        product = as_predictor(rate) * self.mixing
        self._state_rate(name, plates, "mean", product)

    def _named(self, known: Array) -> Any:
        """Return a known mean as a node over its last plates."""
        if not known.ndim:
            return float(known)
        return Constant.of_known(
            f"{self.name}.known_mean", known, self.plates[len(self.plates) - known.ndim :]
        )

    def _state_exponential(self, name: str, mean: Exponential, size: Expression, plates: Plates) -> None:
        if isinstance(size, Indexed | Predictor) or (isinstance(size, Node) and not size.is_known):
            raise ModelError(
                f"'size' of NegativeBinomial '{name}' must be known where its mean is {mean!r}: a number, an array or "
                f"Data. An unknown size needs a mean that is a product of Gammas, such as "
                f"NegativeBinomial('{name}', rate[group], size)"
            )
        self.beside = ("size",)
        self._state_link(name, plates, "mean", mean, _HIDDEN[type(mean)], size=(size, SIZE))

    @property
    def arguments(self) -> dict[str, Any]:
        """What it was stated with: a mean, without the hidden variable that it adds, and the size."""
        if self.mixing is None:
            return dict(self.stated)
        mean = Predictor(tuple(self._without_mixing(addend) for addend in self.stated["mean"].addends))
        return {"mean": mean, "size": self.mixing.stated["shape"]}

    def _without_mixing(self, addend: Addend) -> Addend:
        return replace(addend, numbers=tuple(own for own in addend.numbers if own is not self.mixing))

    def stated_given(self, names: Collection[str]) -> dict[str, tuple[Variable, str, Any]]:
        """Return the mean and, where what multiplies it is not given, the size."""
        if self.mixing is None or self.mixing.name in names:
            return super().stated_given(names)
        size = self.mixing.stated["shape"]
        return {"mean": (self, "mean", self.arguments["mean"]), "size": (self.mixing, "shape", size)}

    def distribution_given(self, slots: Mapping[str, Any]) -> Any:
        """Return the distribution of the count: given what multiplies its mean, a Poisson."""
        if "size" not in slots:
            return families.Poisson(slots["mean"])
        log_mean = slots["mean"] if self.mixing is None else np.log(slots["mean"])
        return Overdispersed(*np.broadcast_arrays(log_mean, slots["size"]))

    def unlinked(self, value: Array, known: Mapping[str, Array]) -> Array:
        """Return logarithms of counts, with half an event more."""
        return np.log(value + 0.5)

    def moments_given(self, slots: ExpectedSlots) -> tuple[Array, Array]:
        """Return mean and variance."""
        if self.mixing is not None:
            mean, variance = slots.positive("mean")
            return mean, mean + variance
        location, width = slots.normal(self.stated["mean"].predictor)
        size, _ = slots.entries("size")
        # far from the data a mean may be beyond all numbers, and a variance sooner
        with np.errstate(over="ignore", invalid="ignore"):
            mean, spread = np.exp(location + 0.5 * width), np.expm1(width)
            variance = mean + np.square(mean) * (spread + (1.0 + spread) / size)
        return mean, np.where(np.isnan(variance), np.inf, variance)

    def parts_given(
        self, slots: ExpectedSlots, mean: Array, variance: Array
    ) -> list[tuple[Array, Array, Array]]:
        """Return negative binomials at a few values of the predictor."""
        if self.mixing is not None:
            return super().parts_given(slots, mean, variance)
        location, width = slots.normal(self.stated["mean"].predictor)
        size, _ = slots.entries("size")
        wide = np.sqrt(width)
        found = []
        # a value varies by a part of its mean: sqrt(1 / mean + 1 / size)
        for place, weight in nodes(wide / np.sqrt(np.exp(-np.maximum(location, -_FARTHEST)) + 1.0 / size)):
            own = np.exp(np.clip(location + place * wide, -_FARTHEST, _FARTHEST))
            found.append((np.asarray(weight), own, own + np.square(own) / size))
        return found

    def statistic_beside(self, name: str, value: AnyArray, known: Mapping[str, AnyArray]) -> Array:
        """Return the count, or the logarithm of what does not depend on the mean."""
        x = np.asarray(value, dtype=np.float64)
        return _log_choices(x, known["size"]) if name == "log_carrier" else x


def _log_choices(x: Array, size: Array) -> Array:
    """Return the logarithm of the binomial coefficient of x + size - 1 and x."""
    # of a large size two large logarithms would cancel
    positive = np.where(x > 0, x, 1.0)
    return np.where(x > 0, -betaln(positive, size), 0.0) - np.log(positive)


@dataclass(frozen=True)
class Overdispersed(Batch):
    """Negative binomial distributions, to be drawn from and evaluated.

    Attributes
    ----------
    log_mean, size
        Of the batch shape.
    """

    log_mean: Array
    size: Array

    def sample(self, size: int | tuple[int, ...] | None, seed: int | np.random.Generator | None) -> AnyArray:
        """Return counts of shape size + batch."""
        generator, shape = np.random.default_rng(seed), draw_shape(size, self.batch_shape)
        rate = np.exp(self.log_mean) * generator.standard_gamma(self.size, shape) / self.size
        return np.asarray(generator.poisson(rate))

    def log_density(self, value: AnyArray) -> Array:
        """Return the log-probability of counts; minus infinity for any other value."""
        x = np.asarray(value, dtype=np.float64)
        whole = (x >= 0) & (x == np.floor(x)) & np.isfinite(x)
        x = np.where(whole, x, 0.0)
        odds = self.log_mean - np.log(self.size)
        found = _log_choices(x, self.size) + x * log_expit(odds) + self.size * log_expit(-odds)
        return np.where(whole, found, -np.inf)


def _is_of_locations(size: Expression) -> bool:
    """Whether an argument is a predictor with locations in it, as a mean on the scale of a link is."""
    addends = size.addends if isinstance(size, Predictor) else ()
    nodes = [own.node if isinstance(own, Indexed) else own for addend in addends for own in addend.numbers]
    return any(addend.dots for addend in addends) or not all(
        isinstance(own, Gamma | Constant) for own in nodes
    )

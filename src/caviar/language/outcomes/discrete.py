"""Distributions of categories, binary outcomes and counts.

Tallies: the distribution of multinomial counts given their probabilities, to be drawn from and evaluated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, issparse
from scipy.special import gammaln, xlogy

from ... import families
from ..._errors import ModelError
from ..._typing import AnyArray, Array
from ...families.approximations.by_moments import BINARY, COUNTS
from ...families.base.family import draw_shape
from ...numerics.gamma_function import stirling_remainder
from ..nodes.algebra import LinkOfProbability
from ..nodes.constants import Constant, as_known
from ..nodes.expected_slots import ExpectedSlots
from ..nodes.node import Expression, Label
from ..nodes.plates import Plates
from ..nodes.roles import LOCATION, PROBABILITIES, PROBABILITY, ROW_OF_TABLE, one_hot
from ..nodes.templates import Density, template
from ..variable import Variable
from .batches import Batch
from .choosing import choosing
from .counts import CountAnswer, no_counts
from .expectations import OF_ANSWERS
from .links import Answer
from .ordinal import Ordered, state_ordered
from .softmax import LinkOfClasses


class Categorical(Answer, Label):
    r"""One of K categories, 0 to K - 1.

    .. math:: \log \mathrm{Cat}(z \mid p) = \sum_k [z = k] \log p_k

    A Categorical can index a plate: ``mean[z]``. With a link, :func:`softmax` or :func:`stick_breaking` of predictors,
    it adds hidden variables to the model. It may be observed, or hidden, as the expert of a row, or the topic of a word
    in a correlated topic model.

    Parameters
    ----------
    name
        Name of the variable, unique within the model.
    probabilities
        K probabilities: an array, a Dirichlet or a StickBreaking; or a link.
    plates
        Plates along which the variable is repeated.

    Examples
    --------
    >>> Categorical("z", [0.5, 0.5]).categories
    2
    """

    family = families.Categorical
    is_discrete = True
    letters: ClassVar = {"x": "k"}
    density = template((1, "probabilities.log_x[k] self.x[k]"))
    zeros = template((1, "probabilities.zero_x[k] self.x[k]"))

    def __init__(self, name: str, probabilities: Expression, *, plates: Plates = ()) -> None:
        if isinstance(probabilities, LinkOfClasses):
            self._state_classes(name, plates, probabilities)
        elif isinstance(probabilities, Ordered):
            state_ordered(self, name, plates, probabilities)
        else:
            self._state(name, plates, {"probabilities": (probabilities, PROBABILITIES)})

    def _state_classes(self, name: str, plates: Plates, link: LinkOfClasses) -> None:
        """Take a link with a predictor for each category."""
        self._identify(name, plates)
        link = link.within(self)
        self.hidden = link.hidden_of(self)
        self._state_predictors(link, self.hidden.term)

    def _state_predictors(self, link: LinkOfClasses, density: Density) -> None:
        """Take a link that is settled, with what it adds to the log density."""
        assert self.hidden is not None
        arguments: dict[str, Any] = {
            "probabilities": (link.predictor, LOCATION),
            "hidden": (self.hidden, self.hidden.role),
        }
        plate: Any = link.along
        # a hidden number for each predictor, or a vector of them
        along = {"hidden": plate} if plate in self.hidden.plates else {}
        used = {factor.slot for summand in density for factor in summand.factors}
        for slot, table in link.tables().items():
            if slot in used:
                known = Constant.of_known(f"{self.name}.{slot}", table, (plate,))
                arguments[slot], along[slot] = (known, ROW_OF_TABLE), plate
        dimension = plate.size + link.more
        self._state(self.name, self.plates, arguments, density=density, dimension=dimension, along=along)
        self.stated = {"probabilities": link}
        self.is_bound = link.is_bound

    def settle_as_parent(self) -> None:
        """Take the log density that is linear in a label that is one-hot, if that is another one."""
        if self.hidden is not None and self.hidden.term_of_parent:
            self._state_predictors(self.stated["probabilities"], self.hidden.term_of_parent)

    @property
    def arguments(self) -> dict[str, Any]:
        """What it was stated with: thresholds are in the link."""
        return {slot: own for slot, own in self.stated.items() if slot != "thresholds"}

    linked = "probabilities"
    without_link = "Dirichlet, a softmax(...) or a stick_breaking(...)"

    def distribution_given(self, slots: Mapping[str, Any]) -> families.Categorical:
        """Return the Categorical with these probabilities; of a link they are given by their logarithms."""
        if self.hidden is None:
            return families.Categorical(slots["probabilities"])
        stated = self.stated["probabilities"]
        if isinstance(stated, Ordered):
            mean = np.asarray(slots["probabilities"])
            return families.Categorical(stated.expected(slots["thresholds"], mean, np.zeros(mean.shape)))
        return families.Categorical.from_natural((np.asarray(slots["probabilities"]),))

    def statistics_of(self, value: AnyArray) -> tuple[Array, ...]:
        """Return the labels one-hot."""
        return (one_hot(self.dimension or 0, value),)

    def statistic(self, name: str, value: AnyArray) -> Array:
        """Return the labels one-hot; or, for each predictor, whether its category was chosen, or asked for."""
        if name == "x":
            return one_hot(self.dimension or 0, value)
        if name in ("lower", "upper", "first", "last"):
            one = one_hot(self.dimension or 0, value)
            return {
                "lower": one[..., 1:],
                "upper": one[..., :-1],
                "first": one[..., 0],
                "last": one[..., -1],
            }[name]
        size = self.letter_sizes["j"]
        if name == "asked":
            return (np.asarray(value)[..., None] >= np.arange(size)).astype(np.float64)
        return one_hot(self.dimension or 0, value)[..., :size]

    def moments_given(self, slots: ExpectedSlots) -> tuple[Array, Array]:
        """Return mean and variance of the label one-hot."""
        stated = self.stated["probabilities"]
        if isinstance(stated, LinkOfClasses):
            predictors: Any = stated.predictor
            mean = stated.expected(*slots.normals(predictors))
        elif isinstance(stated, Ordered):
            mean = stated.expected(slots.entries("thresholds")[0], *slots.normal(stated.predictor))
        else:
            mean = slots.entries("probabilities")[0]
        return mean, mean * (1.0 - mean)

    def evened(self, value: Array) -> Array:
        """Return the labels one-hot."""
        labels = np.nan_to_num(value).astype(np.int64)
        return np.where(np.isnan(value)[..., None], np.nan, one_hot(self.dimension or 0, labels))

    def problem_with(self, value: AnyArray) -> str:
        """Return what is wrong with labels that are not whole numbers below the number of categories."""
        whole = value.dtype.kind in "bui" or np.array_equal(value, np.floor(value))
        inside = whole and value.min() >= 0 and value.max() < (self.dimension or 0)
        if inside:
            return ""
        wrong = (value < 0) | (value >= (self.dimension or 0)) | (value != np.floor(value))
        where = np.argwhere(wrong)[0]
        return (
            f"must hold whole numbers from 0 to {(self.dimension or 0) - 1}; "
            f"row {where[0] if len(where) else 0} has {value[tuple(where)]:g}"
        )


class Bernoulli(Answer):
    r"""A binary outcome, 0 or 1.

    .. math:: \log \mathrm{Ber}(x \mid p) = x\log p + (1 - x)\log(1 - p)

    With a link, :func:`probit` or :func:`logistic` of a predictor, it adds a hidden variable to the model. With
    :func:`probit` it must be observed. It can also be a factor in sums and products, as ``included * weight`` in the
    mean of a Normal: a spike-and-slab weight, whose chance to be included may depend on columns by :func:`logistic`.

    Parameters
    ----------
    name
        Name of the variable, unique within the model.
    probability
        Probability of a 1: a number, an array or a Beta; or a link.
    plates
        Plates along which the variable is repeated.

    Examples
    --------
    >>> Bernoulli("answer", 0.3)
    Bernoulli('answer')
    """

    family = families.Bernoulli
    is_discrete = True
    by_moments: ClassVar = BINARY
    letters: ClassVar = {"x": ""}
    density = template(
        (1, "probability.log_x self.x"),
        (-1, "probability.log_complement self.x"),
        (1, "probability.log_complement"),
    )
    zeros = template((1, "probability.zero_x self.x"), (1, "probability.zero_complement self.complement"))

    is_zero_or_one = is_anchored = True

    without_link = "Beta or a logistic(...)"

    @property
    def as_label(self) -> str:
        """The statement of a Categorical that can index a plate instead."""
        return choosing(self.name, self.plates, self.stated["probability"])

    def __init__(self, name: str, probability: Expression, *, plates: Plates = ()) -> None:
        if isinstance(probability, LinkOfProbability):
            self._state_link(name, plates, "probability", probability, OF_ANSWERS[type(probability)])
        else:
            self._state(name, plates, {"probability": (probability, PROBABILITY)}, dimension=1)

    def distribution_given(self, slots: Mapping[str, Any]) -> families.Bernoulli:
        """Return the Bernoulli with this probability; with a link, by its log-odds, which keep all digits."""
        if self.hidden is None:
            return families.Bernoulli(slots["probability"])
        return families.Bernoulli.from_natural((np.asarray(slots["probability"]),))

    def moments_given(self, slots: ExpectedSlots) -> tuple[Array, Array]:
        """Return mean and variance."""
        stated = self.stated["probability"]
        if isinstance(stated, LinkOfProbability):
            yes, no = stated.expected(*slots.normal(stated.predictor))
            return yes, yes * no
        mean = slots.entries("probability")[0]
        return mean, mean * (1.0 - mean)

    def statistic(self, name: str, value: AnyArray) -> Array:
        """Return one statistic by name: the value x, 1 - x, the sign 2x - 1, or the deviation x - 1/2."""
        x = np.asarray(value, dtype=np.float64)
        if name == "complement":
            return 1.0 - x
        if name == "sign":
            return 2.0 * x - 1.0
        return x - 0.5 if name == "deviation" else x

    def problem_with(self, value: AnyArray) -> str:
        """Return what is wrong with answers other than 0 and 1."""
        return "" if np.all((value == 0) | (value == 1)) else "must hold only 0 and 1"


class Poisson(CountAnswer):
    r"""A count 0, 1, 2, ...

    .. math:: \log \mathrm{Poi}(x \mid r) = x\log r - r - \log x!

    It must be observed, because the expectation of log x! has no closed form.

    Parameters
    ----------
    name
        Name of the variable, unique within the model.
    rate
        :math:`r > 0`, the expected count: a number, an array, a Gamma, or a product of these, as ``rate * exposure``
        with known exposures (:class:`Data`), or ``ability[player] * weakness[opponent]``. Each Gamma keeps its own
        factor and may occur only once in a product. A rate may also be a sum of such products, as ``rate * hours +
        background``, or a :func:`dot` of Gammas along a common plate, ``dot(theta, beta)``. Both add the hidden
        variable ``"y.split"``: how many units of the count come from each term.
    plates
        Plates along which the variable is repeated.

    Examples
    --------
    >>> Poisson("visits", rate=2.5)
    Poisson('visits')

    Failures of two pumps in 94.3 and 15.7 hours of service, at one rate an hour:

    >>> import caviar as cv
    >>> pump, rate = cv.Plate("pump"), cv.Gamma("rate", 1, 1)
    >>> model = cv.Model(cv.Poisson("failures", rate * cv.Data("hours", plates=pump), plates=pump))
    >>> model.fit({"failures": [5, 1], "hours": [94.3, 15.7]})["rate"]
    Gamma(
        shape=7.0,
        rate=111.0,
    )  # batch ()
    """

    family = families.Poisson
    letters: ClassVar = {"x": ""}
    base = template((1, "self.log_carrier"))
    density = template((1, "rate.log_x self.x"), (-1, "rate.x"))

    def __init__(self, name: str, rate: Expression, *, plates: Plates = ()) -> None:
        self._state_rate(name, plates, "rate", rate)

    def moments_given(self, slots: ExpectedSlots) -> tuple[Array, Array]:
        """Return mean and variance."""
        rate, variance = slots.positive("rate")
        return rate, rate + variance


class Multinomial(Variable):
    r"""A vector of counts: how often each of K categories was drawn in n draws.

    .. math:: \log \mathrm{Mult}(x \mid n, p) = \sum_k x_k \log p_k + \log n! - \sum_k \log x_k!

    It must be observed, because the expectation of the log multinomial coefficient has no closed form. With one plate
    the data may be a SciPy sparse matrix or array, rows x categories; time and memory of a fit are then proportional to
    the number of nonzero counts.

    Parameters
    ----------
    name
        Name of the variable, unique within the model.
    trials
        Number of draws n, the sum of the counts: a number, or an array over the last plates. With None, n is the sum of
        each observed vector. In both cases the density is conditional on n.
    probabilities
        K probabilities: an array, a Dirichlet or a StickBreaking.
    plates
        Plates along which the variable is repeated.

    Examples
    --------
    >>> Multinomial("words", trials=10, probabilities=[0.5, 0.3, 0.2])
    Multinomial('words')

    Five draws in two rows, as a sparse array:

    >>> import caviar as cv
    >>> p = cv.Dirichlet("p", [1.0, 1.0, 1.0])
    >>> model = cv.Model(cv.Multinomial("words", None, p, plates=cv.Plate("document")))
    >>> model.fit({"words": csr_array([[2, 0, 0], [0, 0, 3]])})["p"].concentration
    array([3., 1., 4.])
    """

    family = families.Categorical
    is_discrete = True
    """Of one draw: statistic and natural parameter of the sum are the same."""
    value_rank = 1
    by_moments: ClassVar = COUNTS
    letters: ClassVar = {"x": "k"}
    base = template((1, "self.log_carrier"))
    density = template((1, "probabilities.log_x[k] self.x[k]"))
    zeros = template((1, "probabilities.zero_x[k] self.x[k]"))

    trials: Array | None = None

    def __init__(
        self, name: str, trials: ArrayLike | None, probabilities: Expression, *, plates: Plates = ()
    ) -> None:
        self._state(name, plates, {"probabilities": (probabilities, PROBABILITIES)})
        if trials is not None:
            self.trials = as_known(trials, f"'trials' of Multinomial '{name}'")
            problem = no_counts(self.trials)
            if self.trials.ndim > len(self.plates):
                problem = (
                    f"has shape {self.trials.shape}, more axes than the {len(self.plates)} plates of '{name}'"
                )
            if problem:
                raise ModelError(f"'trials' of Multinomial '{name}' {problem}")

    @property
    def arguments(self) -> dict[str, Any]:
        """Its probabilities, and the numbers of trials, which are in no slot."""
        return {**self.stated, "trials": self.trials}

    def distribution_given(self, slots: Mapping[str, Any]) -> Any:
        """Return the distribution of the counts of all trials, which must be known."""
        if self.trials is None:
            raise ModelError(
                f"'{self.name}', a Multinomial without trials, cannot be simulated: state how many draws it counts, "
                f"Multinomial('{self.name}', trials, probabilities)"
            )
        probabilities = slots["probabilities"]
        trials = self.trials.astype(np.int64)
        shape = np.broadcast_shapes(trials.shape, probabilities.shape[:-1])
        wide = np.broadcast_to(probabilities, (*shape, probabilities.shape[-1]))
        return Tallies(np.broadcast_to(trials, shape), wide)

    def moments_given(self, slots: ExpectedSlots) -> tuple[Array, Array]:
        """Return mean and variance of each count."""
        if self.trials is None:
            slots.refuse("it is stated without trials, so its number of draws is unknown")
        mean, variance = slots.entries("probabilities")
        trials = self.trials.reshape((1,) * (len(self.plates) - self.trials.ndim) + self.trials.shape)[
            ..., None
        ]
        return trials * mean, trials * (mean * (1.0 - mean) - variance) + np.square(trials) * variance

    def statistics_of(self, value: Any) -> tuple[Array, ...]:
        """Return the counts; those of a sparse matrix are written out."""
        return (np.asarray(value.toarray() if issparse(value) else value, dtype=np.float64),)

    def statistic(self, name: str, value: Any) -> Array:
        """Return the counts, or the logarithm of the multinomial coefficient."""
        if name != "log_carrier":
            return self.statistics_of(value)[0]
        if issparse(value):
            return _log_coefficients_of_sparse(value)
        counts = np.asarray(value, dtype=np.float64)
        totals = counts.sum(axis=-1)
        found = gammaln(totals + 1) - _log_factorial(counts).sum(axis=-1)
        large = totals > _LARGE_TOTAL
        if not large.any():
            return found
        found = np.asarray(found)
        own = _shares_of_large(counts[large], totals[large][..., None])
        found[large] = own.sum(axis=-1) + _small_part(totals[large])
        return found

    def evened(self, value: Array) -> Array:
        """Return square roots of shares."""
        return np.sqrt(value / np.maximum(value.sum(axis=-1, keepdims=True), 1.0))

    def problem_with(self, value: AnyArray) -> str:
        """Return what is wrong with vectors that are not counts, or do not sum to the number of trials."""
        problem = no_counts(value)
        if problem or self.trials is None:
            return problem
        totals = value.sum(axis=-1)
        try:
            trials = np.broadcast_to(self.trials, totals.shape)
        except ValueError:
            return f"has trials of shape {self.trials.shape}, which do not fit data of shape {value.shape}"
        wrong = totals != trials
        if not np.any(wrong):
            return ""
        where = tuple(np.argwhere(wrong)[0])
        place = f"; row {where[0]} sums" if where else "; they sum"
        return f"must hold counts that sum to its trials, {trials[where]:g}{place} to {totals[where]:g}"


def _log_factorial(counts: Array) -> Array:
    """Return log x! of counts: where they are many and small, each number's is computed once."""
    largest = counts.max(initial=0.0)
    if largest > counts.size:
        return gammaln(counts + 1)
    return gammaln(np.arange(1.0, largest + 2))[counts.astype(np.intp)]


_LARGE_TOTAL = 1e4
"""Draws beyond which log-factorials lose digits of their difference."""


def _log_coefficients_of_sparse(counts: Any) -> Array:
    """Return the logarithms of multinomial coefficients of the rows of a sparse array."""
    totals = counts.sum(axis=1)
    logs = csr_array((_log_factorial(counts.data), counts.indices, counts.indptr), shape=counts.shape)
    found = gammaln(totals + 1) - logs.sum(axis=1)
    large = totals > _LARGE_TOTAL
    if large.any():
        rows = csr_array(counts[large], dtype=np.float64)
        own = _shares_of_large(rows.data, np.repeat(totals[large], np.diff(rows.indptr)))
        terms = csr_array((own, rows.indices, rows.indptr), shape=rows.shape)
        found[large] = terms.sum(axis=1) + _small_part(totals[large])
    return found


def _shares_of_large(counts: Array, totals: Array) -> Array:
    r"""Return :math:`-x \log(x/n) - s(x)` for counts x of n: what each adds to the logarithm of a large coefficient.

    With Stirling's remainder in :math:`\log x! = x \log x - x + s(x)` nothing large is left to cancel.
    """
    near = counts > 0.5 * totals
    share = np.where(near, 0.5, np.where(counts > 0, counts, 1.0) / totals)
    # the rest of the draws is an exact number
    logs = np.where(near, np.log1p(np.where(near, counts - totals, 0.0) / totals), np.log(share))
    return -counts * logs - _small_part(counts)


def _small_part(counts: Array) -> Array:
    """Return s(x), the logarithm of x! without x log x - x, which grows like a logarithm; 0 of no count."""
    positive = np.where(counts > 0, counts, 1.0)
    return np.where(counts > 0, stirling_remainder(positive) + np.log(positive), 0.0)


@dataclass(frozen=True)
class Tallies(Batch):
    """Counts of n draws from each of a batch of probabilities.

    Attributes
    ----------
    trials
        n, of the batch shape.
    probabilities
        Shape (batch..., K).
    """

    trials: AnyArray
    probabilities: Array

    def sample(self, size: int | tuple[int, ...] | None, seed: int | np.random.Generator | None) -> AnyArray:
        """Return counts of shape size + batch + (K,)."""
        generator = np.random.default_rng(seed)
        return generator.multinomial(self.trials, self.probabilities, size=draw_shape(size, self.batch_shape))

    def log_density(self, value: AnyArray) -> Array:
        """Return the log-probability of counts (..., K); minus infinity where they do not sum to n."""
        counts = np.asarray(value, dtype=np.float64)
        terms = xlogy(counts, self.probabilities) - gammaln(counts + 1)
        right = counts.sum(axis=-1) == self.trials
        return np.where(right, gammaln(np.asarray(self.trials) + 1.0) + terms.sum(axis=-1), -np.inf)

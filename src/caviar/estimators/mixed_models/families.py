"""Families of the response: what its values may be, how it depends on the predictor, and the scale of its priors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..._errors import DataError, ParameterError
from ..._typing import AnyArray, Array
from ...data.columns.labels import TextLabels, are_ordered, text_labels
from ...files.naming import nearest
from ...language import (
    Bernoulli,
    Binomial,
    Categorical,
    Data,
    Gamma,
    NegativeBinomial,
    Normal,
    Plate,
    Thresholds,
    Variable,
    exp,
    logistic,
    ordered,
    probit,
)
from .columns import Rows, how_to_read, levels_of, mean_and_sd, refuse_unseen
from .formula import Formula

RESIDUAL, TRIALS, THRESHOLDS = "residual precision", "trials", "thresholds"
TAILS = "degrees of freedom"
_LOG_ODDS, _LATENT = "in log odds", "in standard deviations of the latent response"
_DF_OF_SCALES = 4.0
"""Degrees of freedom of the half-t prior of the residual standard deviation."""


class Family(ABC):
    """The distribution of the response given the predictor."""

    name: ClassVar[str]
    has_noise: ClassVar[bool] = False
    """Whether it has a residual standard deviation."""
    is_binary: ClassVar[bool] = False
    """Whether its values are 0 and 1."""
    has_thresholds: ClassVar[bool] = False
    """Whether thresholds take the place of the intercept."""

    def values(self, rows: Rows, response: str) -> Array:
        """Return the response of rows.

        Raises
        ------
        DataError
            If it has impossible values.
        """
        texts = text_labels(rows.column(response), response)
        if texts is not None:
            raise DataError(
                f"the response '{response}' has texts; family={self.name!r} needs {self.needs}; "
                f"{self._how_to_code(response, texts)}"
            )
        values = rows.numbers(response)
        if not len(values):
            raise DataError(f"the table has no rows: '{response}' is empty")
        wrong = np.flatnonzero(~self._are_possible(values))
        if len(wrong):
            raise DataError(
                f"the response '{response}' must be {self.must_be} with family={self.name!r}; row {wrong[0]} has "
                f"{values[wrong[0]]:g}"
            )
        return values

    def values_to_fit(self, rows: Rows, response: str) -> Array:
        """Return the response of the rows of a fit.

        Raises
        ------
        DataError
            If it has impossible values, or is a number with noise that is the same in all rows.
        """
        y = self.values(rows, response)
        if self.has_noise and np.ptp(y) == 0:
            raise DataError(f"the response '{response}' is {y[0]:g} in all rows; there is nothing to explain")
        return y

    def _how_to_code(self, response: str, texts: TextLabels) -> str:
        """Return how the texts of a response become numbers."""
        return f"got {': '.join(how_to_read(response, texts))}"

    def _are_possible(self, values: Array) -> AnyArray:
        """Return which numbers are values of the response."""
        return np.ones(values.shape, dtype=bool)

    must_be: ClassVar[str]
    """What each of its values is, in words, where not all numbers are possible."""

    needs: ClassVar[str] = "numbers"
    """What its values are, in words."""
    units: ClassVar[str] = "in units of the response"
    """What effects are measured in, in words."""

    def scale(self, y: Array, weights: Array | None, offset: Array | None = None) -> float:
        """Return the scale of the predictor: its priors are in units of this."""
        return 1.0

    def centre(self, y: Array, weights: Array | None, offset: Array | None = None) -> float:
        """Return the mean of the prior of the intercept."""
        return 0.0

    @abstractmethod
    def leaf(self, name: str, predictor: Any, plate: Plate, scale: float) -> Variable:
        """Return the response as a variable."""


class _Real(Family):
    """Families of real numbers."""

    has_noise = True

    def scale(self, y: Array, weights: Array | None, offset: Array | None = None) -> float:
        return float(mean_and_sd(y if offset is None else y - offset, weights)[1])

    def centre(self, y: Array, weights: Array | None, offset: Array | None = None) -> float:
        return float(mean_and_sd(y if offset is None else y - offset, weights)[0])


@dataclass(frozen=True)
class Gaussian(_Real):
    """Real numbers with Normal noise."""

    name: ClassVar[str] = "gaussian"

    def leaf(self, name: str, predictor: Any, plate: Plate, scale: float) -> Variable:
        return Normal(name, predictor, half_t(RESIDUAL, scale, _DF_OF_SCALES), plates=plate)


@dataclass(frozen=True)
class Student(_Real):
    """Real numbers with Student-t noise: robust to outliers."""

    name: ClassVar[str] = "student"

    def leaf(self, name: str, predictor: Any, plate: Plate, scale: float) -> Variable:
        df = Gamma(TAILS, 2.0, 0.1)
        weight = Gamma(free_name("weight", [name]), 0.5 * df, 0.5 * df, plates=plate)
        return Normal(name, predictor, weight * half_t(RESIDUAL, scale, _DF_OF_SCALES), plates=plate)


class _Binary(Family):
    """Families of 0 and 1."""

    is_binary = True
    needs = "0 and 1"
    must_be = "0 or 1"

    def _how_to_code(self, response: str, texts: TextLabels) -> str:
        distinct = sorted(texts.distinct())
        if len(distinct) != 2:
            return super()._how_to_code(response, texts)
        return f"table['{response}'] = (table['{response}'] == {distinct[1]!r}).astype(int) makes {distinct[1]!r} a 1"

    def _are_possible(self, values: Array) -> AnyArray:
        return (values == 0) | (values == 1)


@dataclass(frozen=True)
class Logit(_Binary):
    """0 or 1, with the logistic function of the predictor as the probability of a 1."""

    name: ClassVar[str] = "bernoulli"
    units: ClassVar[str] = _LOG_ODDS

    def leaf(self, name: str, predictor: Any, plate: Plate, scale: float) -> Variable:
        return Bernoulli(name, logistic(predictor, method="expectation"), plates=plate)


@dataclass(frozen=True)
class OfOneTrial(Logit):
    """The same as a binomial of one trial, whose formula may lack the trials."""

    name: ClassVar[str] = "binomial"
    must_be: ClassVar[str] = "0 or 1 without trials, which are written 'k | trials(n) ~ x',"


@dataclass(frozen=True)
class Probit(_Binary):
    """0 or 1, with the Normal distribution function of the predictor as the probability of a 1."""

    name: ClassVar[str] = "probit"
    units: ClassVar[str] = _LATENT

    def leaf(self, name: str, predictor: Any, plate: Plate, scale: float) -> Variable:
        return Bernoulli(name, probit(predictor, method="expectation"), plates=plate)


class _Counted(Family):
    """Families of counts."""

    needs = "whole numbers of at least 0"
    must_be = "a whole number of at least 0"

    def _are_possible(self, values: Array) -> AnyArray:
        return (values >= 0) & (values == np.floor(values))


@dataclass(frozen=True)
class Successes(_Counted):
    """How many of a known number of trials succeeded, with the logistic function as the probability of each."""

    name: ClassVar[str] = "binomial"
    units: ClassVar[str] = _LOG_ODDS

    def leaf(self, name: str, predictor: Any, plate: Plate, scale: float) -> Variable:
        return Binomial(
            name, Data(TRIALS, plates=plate), logistic(predictor, method="expectation"), plates=plate
        )


@dataclass(frozen=True)
class OverdispersedCounts(_Counted):
    """Counts with the exponential function of the predictor as their mean m, and the variance m + m^2 / size."""

    size: float
    name: ClassVar[str] = "negative_binomial"
    units: ClassVar[str] = "in logarithms of the expected count"

    def centre(self, y: Array, weights: Array | None, offset: Array | None = None) -> float:
        n_rows = len(y) if weights is None else weights.sum()
        centre = float(np.log(max(mean_and_sd(y, weights)[0], 0.5 / n_rows)))
        return centre if offset is None else centre - float(mean_and_sd(offset, weights)[0])

    def leaf(self, name: str, predictor: Any, plate: Plate, scale: float) -> Variable:
        return NegativeBinomial(name, exp(predictor, method="expectation"), self.size, plates=plate)


@dataclass(frozen=True)
class Ordinal(Family):
    """Ordered categories: a utility, Normal about the predictor with variance 1, lies between two thresholds."""

    categories: tuple[str, ...]
    name: ClassVar[str] = "ordinal"
    units: ClassVar[str] = _LATENT
    has_thresholds: ClassVar[bool] = True

    def values(self, rows: Rows, response: str) -> Array:
        texts, _ = rows.labels(response)
        refuse_unseen(response, texts, self.categories)
        places = {name: place for place, name in enumerate(self.categories)}
        return np.array([places[text] for text in texts.tolist()], dtype=np.float64)

    def leaf(self, name: str, predictor: Any, plate: Plate, scale: float) -> Variable:
        cuts = Thresholds(THRESHOLDS, len(self.categories) - 1)
        return Categorical(name, ordered(predictor, cuts), plates=plate)


def categories_of(rows: Rows, response: str, stated: Sequence[Any] | None) -> tuple[str, ...]:
    """Return the ordered categories of a response, the lowest first.

    Raises
    ------
    DataError
        If nothing tells the order of texts, a category was never chosen, or there is only one.
    ParameterError
        If the stated ones are not distinct texts or numbers.
    """
    texts, of_type = rows.labels(response)
    if not len(texts):
        raise DataError(f"the table has no rows: '{response}' is empty")
    if stated is not None:
        found = tuple(own if isinstance(own, str) else f"{own:g}" for own in stated)
        if len(set(found)) < len(found):
            raise ParameterError(f"categories must be distinct, the lowest first; got {list(stated)!r}")
        refuse_unseen(response, texts, found)
    elif not rows.are_ordered(response):
        shown = ", ".join(map(repr, sorted(set(texts.tolist()))[:4]))
        raise DataError(
            f"the response '{response}' has texts, and nothing tells their order: give categories=[...], the "
            f"lowest first, of {shown}, or a column of an ordered type"
        )
    else:
        # the categories of a type that is not ordered are numbers here, which have an order of their own
        found = tuple(levels_of(texts, of_type if are_ordered(rows.column(response)) else None))
    _check_chosen(response, texts, found)
    return found


def _check_chosen(response: str, texts: AnyArray, found: tuple[str, ...]) -> None:
    """Refuse categories without rows, and a single category.

    Raises
    ------
    DataError
        If so.
    """
    never = next((own for own in found if own not in set(texts.tolist())), None)
    if never is not None:
        raise DataError(
            f"no row has the category {never!r}, so the thresholds around it are not determined; leave it "
            f"out of categories="
        )
    if len(found) < 2:
        raise DataError(f"the response '{response}' is {texts[0]!r} in all rows; there is nothing to explain")


FAMILIES: Mapping[str, Callable[[float], Family]] = {
    "gaussian": lambda size: Gaussian(),
    "student": lambda size: Student(),
    "bernoulli": lambda size: Logit(),
    "probit": lambda size: Probit(),
    "binomial": lambda size: Successes(),
    "negative_binomial": OverdispersedCounts,
}
"""Families by name, from the size of the negative binomial."""

ORDINAL = Ordinal.name


def family_of(name: Any, formula: Formula, size: float = 1.0, categories: Sequence[str] = ()) -> Family:
    """Return a family by its name; ``"binomial"`` without trials is that of 0 and 1.

    Raises
    ------
    ParameterError
        If no family has this name, or the formula has trials for another one.
    """
    names = (*FAMILIES, ORDINAL)
    if not isinstance(name, str) or name not in names:
        near = nearest(name, names) if isinstance(name, str) else None
        hint = f"; did you mean {near!r}?" if near else ""
        if name == "poisson":
            hint = "; for counts take 'negative_binomial', with size=1e6 nearly a Poisson"
        raise ParameterError(f"family must be one of {', '.join(map(repr, names))}; got {name!r}{hint}")
    if formula.trials and name != "binomial":
        raise ParameterError(
            f"trials ({' + '.join(formula.trials)}) in the formula need family='binomial'; got family={name!r}"
        )
    if name == "binomial" and not formula.trials:
        return OfOneTrial()
    return Ordinal(tuple(categories)) if name == ORDINAL else FAMILIES[name](size)


def trials_of(formula: Formula, rows: Rows, n_rows: int) -> dict[str, Array]:
    """Return the number of trials of each row by the name of its known values; nothing without trials.

    Raises
    ------
    DataError
        If one is not a whole number of at least 0.
    """
    if not formula.trials:
        return {}
    counts = [
        np.full(n_rows, float(own)) if own.isdigit() else Successes().values(rows, own)
        for own in formula.trials
    ]
    return {TRIALS: np.sum(counts, axis=0)}


def free_name(name: str, taken: Collection[str]) -> str:
    """Return the name of a part of the model: a longer one where a column has it, such as the rows of a field."""
    return f"{name} of the table" if name in taken else name


def half_t(name: str, scale: float, df: float) -> Gamma:
    r"""Return a precision whose standard deviation has a half-t prior.

    .. math:: \tau \mid b \sim \mathrm{Gamma}(\nu / 2, b), \quad b \sim \mathrm{Gamma}(1/2, 1 / (\nu A^2))
              \iff \tau^{-1/2} \sim \text{half-}t_\nu(A)

    (Wand, Ormerod, Padoan and Frühwirth, 2011).
    """
    rate = Gamma(f"scale of {name}", 0.5, 1.0 / (df * scale**2))
    return Gamma(name, 0.5 * df, rate)

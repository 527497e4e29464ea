"""Roles: what a slot of a distribution needs of whatever is in it.

The mean of a Normal enters its log density through ``x`` and ``xx``; so whatever is there must have these two
among its sufficient statistics, or be a known value for which they can be computed. A role says which statistics are
needed, how a known value gives them, which values are possible, and which family would do. None of its functions is a
lambda, because a model must be picklable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from math import inf, isfinite

import numpy as np
from scipy.special import gammaln

from ..._typing import AnyArray, Array
from ...numerics.gamma_function import log_beta
from ...numerics.linalg import is_symmetric, symmetric_part


def _no_problem(value: Array) -> str:
    return ""


@dataclass(frozen=True)
class OfScalar:
    """How a slot uses a hidden scalar, whose factor is then tabulated.

    Besides the scalar itself its density has one function of it: the logarithm of a Beta function, or a sum of
    logarithms of gamma functions.

    Attributes
    ----------
    log_gammas
        (scale, shift) of the argument of each gamma function.
    constant
        Constant that is added to them.
    least
        Bound that the value of the slot must exceed.
    advice
        Advice for a slot that depends on two hidden numbers.
    """

    log_gammas: tuple[tuple[float, float], ...] = ()
    constant: float = 0.0
    least: float = 0.0
    advice: str = "Let all but one of them be known numbers."


@dataclass(frozen=True)
class Role:
    """What a slot needs.

    Attributes
    ----------
    name
        Tells it from other roles.
    rank
        Number of event axes of a value: 0 for a number, 1 for a vector, 2 for a square matrix.
    statistics
        Name of each needed statistic -> its value for a known value (event axes last).
    would_do
        The families that have these statistics; empty where only a known value is tractable.
    problem
        Returns what is wrong with a known value, or an empty string.
    zeros
        Name -> whether the logarithm among the statistics that goes by that name is minus infinity for a known value,
        as 1 or 0 (event axes last). The logarithm itself is 0 there: see :func:`.terms.zero_terms_of`.
    moves
        Whether the slot is a location: subtracting a reference point from it and from its child changes nothing.
    adds_up
        Whether it is an operand of a sum or product, which cannot be measured from another point.
    is_recorded
        Whether the values of the child are those of the slot, or bounds of them.
    is_apart
        Whether a value has its own length, different from the dimension of the variable.
    of_scalar
        How the slot uses a hidden scalar, if the statistics above are functions that the family of the scalar lacks;
        None if they are statistics of a family.
    """

    name: str
    rank: int
    statistics: Mapping[str, Callable[[Array], Array]]
    would_do: tuple[str, ...] = ()
    problem: Callable[[Array], str] = _no_problem
    moves: bool = False
    adds_up: bool = False
    is_recorded: bool = False
    is_apart: bool = False
    zeros: Mapping[str, Callable[[Array], Array]] = field(default_factory=dict)
    of_scalar: OfScalar | None = None

    def of_known(self, statistic: str, value: Array) -> Array:
        """Return a statistic of a known value by name, also one of ``zeros``."""
        return (self.statistics.get(statistic) or self.zeros[statistic])(value)


def _outer(value: Array) -> Array:
    return value[..., :, None] * value[..., None, :]


def _all_between(low: float, high: float, value: Array) -> bool:
    """Whether all numbers are between two others, as NaN is not."""
    # the extremes of values with NaN are NaN; they need no memory, as comparisons of all numbers would
    return not value.size or bool(
        low < np.minimum.reduce(value, axis=None) and np.maximum.reduce(value, axis=None) < high
    )


def _not_finite(value: Array) -> str:
    are = _all_between(-np.inf, np.inf, value) if value.ndim else isfinite(value.item())
    return "" if are else "must be finite"


def _not_positive(value: Array) -> str:
    are = _all_between(0.0, np.inf, value) if value.ndim else 0.0 < value.item() < inf
    return "" if are else "must be positive and finite"


def _not_positive_or_flat(value: Array) -> str:
    if not value.ndim:
        return "" if 0.0 <= value.item() < inf else "must be positive and finite"
    return _not_positive(value) if np.count_nonzero(value) else ""


def _not_definite_or_flat(value: Array) -> str:
    value = np.asarray(value, dtype=np.float64)
    if not np.count_nonzero(value):
        return ""
    if not np.all(np.isfinite(value)):
        return "must be finite"
    if not is_symmetric(value):
        return "must be symmetric (pass (matrix + matrix.T) / 2 if only rounding makes the difference)"
    try:
        np.linalg.cholesky(symmetric_part(value))
    except np.linalg.LinAlgError:
        return "must be positive definite"
    return ""


def _no_simplex(value: Array) -> str:
    total = value.sum(axis=-1, dtype=np.float64)
    on_simplex = np.all(value >= 0) and np.all(np.abs(total - 1) <= 1e-9)
    return "" if on_simplex else "must be non-negative and sum to one"


def _no_probability(value: Array) -> str:
    return "" if np.all((value >= 0) & (value <= 1)) else "must lie between 0 and 1"


def _no_beginning(value: Array) -> str:
    marks = value.size > 0 and np.all((value == 0) | (value == 1)) and value.ravel()[0] == 1
    return "" if marks else "must be 1 where a sequence begins, as in the first row, and 0 elsewhere"


def _log(value: Array) -> Array:
    """Return the logarithm, down to the smallest subnormal number; 0 of zero, which :attr:`Role.zeros` tells."""
    if not value.ndim and value.item() > 0:
        return np.log(value)
    return np.log(np.where(value > 0, value, 1.0))


def _is_zero(value: Array) -> Array:
    return (value == 0).astype(np.float64)


def _is_one(value: Array) -> Array:
    return (value == 1).astype(np.float64)


def _times_log(value: Array) -> Array:
    return value * _log(value)


def _log_squared(value: Array) -> Array:
    return np.square(_log(value))


def _times_log_squared(value: Array) -> Array:
    return value * np.square(_log(value))


def _no_censoring(value: Array) -> str:
    good = np.isin(value, (-1.0, 0.0, 1.0, 2.0))
    return (
        ""
        if np.all(good)
        else "must be 0 (the value itself), 1 (above it), -1 (below it) or 2 (up to until=)"
    )


def _no_trials(value: Array) -> str:
    good = (value >= 0) & (value == np.floor(value)) & np.isfinite(value)
    return "" if np.all(good) else "must be whole numbers from 0"


def _log_det(value: Array) -> Array:
    # 2 sum log diag(L) instead of a determinant, which under- and overflows
    factor = np.linalg.cholesky(symmetric_part(value))
    return 2 * np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum(-1)


def _log_complement(value: Array) -> Array:
    return np.log1p(-np.where(value < 1, value, 0.0))


def _log_beta(value: Array) -> Array:
    return log_beta(value, value.sum(axis=-1))


def _log_gamma(dimension: int, df: Array) -> Array:
    """Logarithm of the multivariate gamma function at df / 2."""
    halves = (df[..., None] - np.arange(dimension)) / 2
    return dimension * (dimension - 1) / 4 * np.log(np.pi) + gammaln(halves).sum(-1)


def _not_above(bound: int, value: Array) -> str:
    possible = np.all((value > bound) & np.isfinite(value))
    return "" if possible else f"must be finite and above D - 1 = {bound}"


def _inner(value: Array) -> Array:
    return 1 - value


def _first(value: Array) -> Array:
    return value[..., 0]


def _second(value: Array) -> Array:
    return value[..., 1]


def _identity(value: Array) -> Array:
    return value


LOCATION = Role("location", 0, {"x": _identity, "xx": np.square}, ("Normal",), _not_finite, moves=True)
STILL_LOCATION = Role("still_location", 0, {"x": _identity, "xx": np.square}, ("Normal",), _not_finite)
LOCATION_VECTOR = Role(
    "location_vector", 1, {"x": _identity, "xx": _outer}, ("MultivariateNormal",), _not_finite, moves=True
)
LINEAR = Role("linear", 0, {"x": _identity, "xx": np.square}, ("Normal",), _not_finite, adds_up=True)
LINEAR_VECTOR = Role(
    "linear_vector", 1, {"x": _identity, "xx": _outer}, ("MultivariateNormal",), _not_finite, adds_up=True
)
ZERO_OR_ONE = Role("zero_or_one", 0, {"x": _identity}, ("Bernoulli",), adds_up=True)
PRECISION = Role("precision", 0, {"log_x": _log, "x": _identity}, ("Gamma",), _not_positive_or_flat)
PRECISION_MATRIX = Role(
    "precision_matrix", 2, {"log_det": _log_det, "x": symmetric_part}, ("Wishart",), _not_definite_or_flat
)
LOCATION_AND_PRECISION = Role(
    "location_and_precision",
    0,
    dict.fromkeys(("precision_x", "precision_xx", "log_precision", "precision"), _identity),
    ("NormalGamma",),
    moves=True,
)
LOCATION_AND_PRECISION_MATRIX = Role(
    "location_and_precision_matrix",
    1,
    dict.fromkeys(("precision_x", "precision_xx", "log_det", "precision"), _identity),
    ("NormalWishart",),
    moves=True,
)
MATRIX = Role("matrix", 2, {"x": _identity}, (), _not_finite)
AUGMENTING = Role("augmenting", 0, {"x": _identity})
AUGMENTING_SUM = Role("augmenting_sum", 0, {"x": _identity, "relative_entropy": _identity})
MOMENTS = Role("moments", 0, {"x": _identity, "curvature": _identity, "constant": _identity})
TANGENT = Role("tangent", 1, {"x": _identity, "constant": _identity}, is_apart=True)
LOG_GAMMA_TANGENT = Role("log_gamma_tangent", 0, {"x": _identity, "constant": _identity})
SHARES = Role("shares", 1, {"x": _identity, "entropy": _identity}, is_apart=True)
LABEL = Role("label", 0, {"x": _identity}, ("Categorical",))
VALUE_BETWEEN = Role(
    "value_between", 0, dict.fromkeys(("x", "xx", "lower", "upper"), _identity), is_recorded=True
)
UNSEEN = Role(
    "unseen", 1, dict.fromkeys(("count", "sum", "square", "lower", "upper"), _identity), is_apart=True
)
THRESHOLDS = Role("thresholds", 1, {"x": _identity}, ("Thresholds",), _not_finite, is_apart=True)
CENSORING = Role("censoring", 0, {"x": _identity}, (), _no_censoring)
END = Role("end", 0, {"x": _identity}, (), _not_finite)
TRIALS = Role("trials", 0, {"x": _identity}, (), _no_trials)
SIZE = Role(
    "size",
    0,
    {
        "x": _identity,
        "log_x": _log,
        "x_log_x": _times_log,
        "log_squared": _log_squared,
        "x_log_squared": _times_log_squared,
    },
    (),
    _not_positive,
)
JOINT_LINEAR = Role("joint_linear", 0, LOCATION_AND_PRECISION.statistics, ("NormalGamma",), adds_up=True)
JOINT_LINEAR_VECTOR = Role(
    "joint_linear_vector", 1, LOCATION_AND_PRECISION.statistics, ("NormalGamma",), adds_up=True
)
PROBABILITIES = Role(
    "probabilities",
    1,
    {"log_x": _log},
    ("Dirichlet", "StickBreaking"),
    _no_simplex,
    zeros={"zero_x": _is_zero},
)
PROBABILITY = Role(
    "probability",
    0,
    {"log_x": _log, "log_complement": _log_complement},
    ("Beta",),
    _no_probability,
    zeros={"zero_x": _is_zero, "zero_complement": _is_one},
)
RATE = Role("rate", 0, {"log_x": _log, "x": _identity}, ("Gamma",), _not_positive)
SHAPE = Role(
    "shape",
    0,
    {"x": _identity, "gammaln": gammaln},
    ("Gamma",),
    _not_positive,
    of_scalar=OfScalar(((1.0, 0.0),)),
)
TOTAL = replace(
    SHAPE,
    name="total",
    of_scalar=OfScalar(
        ((1.0, 0.0),),
        advice="State a mean and a total, one of them hidden: Beta(name, mean * total, (1 - mean) * total).",
    ),
)
SCALAR = Role("scalar", 0, {}, ("Gamma", "Beta"))
WEIGHTS = Role("weights", 1, {"x": _identity}, (), _not_positive)
MEAN_WEIGHTS = Role("mean_weights", 1, {"log_x": _log}, ("StickBreaking",), _no_simplex)
KNOWN_VECTOR = Role("known_vector", 1, {"x": _identity}, (), _not_finite)
KNOWN_NUMBER = Role("known_number", 0, {"x": _identity}, (), _not_finite)
TWO_SHAPES = Role("two_shapes", 1, {"a": _first, "b": _second, "log_beta": _log_beta}, (), _not_positive)
STICKS = Role("sticks", 1, {"last": _identity, "inner": _inner})
BEGINNING = Role("beginning", 0, {"x": _identity}, (), _no_beginning)
INPUTS = Role("inputs", 1, {"x": _identity, "xx": _outer}, (), _not_finite, is_apart=True)
WEIGHTS_OF_INPUTS = Role(
    "weights_of_inputs",
    1,
    {"x": _identity, "xx": _outer},
    ("MultivariateNormal",),
    _not_finite,
    adds_up=True,
    is_apart=True,
)
PARTS_OF_MATRIX = Role(
    "parts_of_matrix",
    1,
    {"x": _identity, "xx": _outer},
    ("MultivariateNormal",),
    _not_finite,
    adds_up=True,
    is_apart=True,
)
WEIGHTS_OF_PARTS = Role(
    "weights_of_parts",
    1,
    {"x": _identity, "xx": _outer},
    ("LinearGaussianChain", "MultivariateNormal"),
    _not_finite,
    adds_up=True,
    is_apart=True,
)
SELECTOR = Role("selector", 3, {"x": _identity}, is_apart=True)
ROW_OF_TABLE = Role("row_of_table", 1, {"x": _identity}, is_apart=True)
CONCENTRATION = Role(
    "concentration",
    1,
    {"x": _identity, "log_beta": _log_beta},
    (),
    _not_positive,
    of_scalar=OfScalar(advice="State one hidden total times known shares."),
)


def _no_positive_simplex(value: Array) -> str:
    return _no_simplex(value) or ("" if np.all(value > 0) else "must be positive; leave out what cannot be")


def _not_inside(value: Array) -> str:
    return "" if np.all((value > 0) & (value < 1)) else "must lie between 0 and 1, and be neither"


SPARSE_VECTOR = Role(
    "sparse_vector",
    1,
    {"x": _identity, "squares": np.square},
    ("SingleEffect", "SpikeSlab"),
    adds_up=True,
)
BESIDE_SPARSE = Role(
    "beside_sparse",
    1,
    {"x": _identity, "xx": _outer, "squares": np.square},
    ("MultivariateNormal",),
    _not_finite,
    adds_up=True,
)
POSITIVE_PROBABILITIES = replace(
    PROBABILITIES, name="positive_probabilities", problem=_no_positive_simplex, zeros={}
)
OPEN_PROBABILITY = replace(PROBABILITY, name="open_probability", problem=_not_inside, zeros={})
EACH_PROBABILITY = replace(OPEN_PROBABILITY, name="each_probability", rank=1, would_do=())
EACH_PRECISION = Role("each_precision", 1, {"log_x": _log, "x": _identity}, (), _not_positive)
EACH_LINEAR = Role("each_linear", 1, {"x": _identity, "xx": np.square}, (), _not_finite)


def one_hot(size: int, value: AnyArray) -> Array:
    """Return labels 0 to ``size`` - 1 one-hot: shape (..., ``size``)."""
    labels = np.asarray(value, dtype=np.intp)
    rows = np.zeros((*labels.shape, size))
    rows.reshape(-1, size)[np.arange(labels.size), labels.ravel()] = 1.0
    return rows


def _no_labels(size: int, value: Array) -> str:
    outside = ~((value >= 0) & (value < size) & (value == np.floor(value)))
    return f"must be whole numbers from 0 to {size - 1}; got {value[outside][0]:g}" if outside.any() else ""


@cache
def labels_of(size: int) -> Role:
    """Return the role of known labels that choose from a plate of this size."""
    return Role(f"labels of {size}", 0, {"one_hot": partial(one_hot, size)}, (), partial(_no_labels, size))


def degrees_of_freedom(dimension: int) -> Role:
    """Return the role of a Wishart's degrees of freedom, whose normaliser depends on the dimension."""
    statistics = {"x": _identity, "log_gamma": partial(_log_gamma, dimension)}
    of_scalar = OfScalar(
        tuple((0.5, -0.5 * i) for i in range(dimension)),
        dimension * (dimension - 1) / 4 * float(np.log(np.pi)),
        dimension - 1.0,
    )
    problem = partial(_not_above, dimension - 1)
    return Role(f"degrees_of_freedom of {dimension}", 0, statistics, ("Gamma",), problem, of_scalar=of_scalar)


def _no_df(dimension: int, flat: float, value: Array) -> str:
    return "" if np.all(value == flat) else _not_above(dimension - 1, value)


def degrees_of_freedom_with(n_locations: int, dimension: int) -> Role:
    """Return the role of a Wishart's degrees of freedom beside so many vectors: possible, or of the density 1."""
    plain = degrees_of_freedom(dimension)
    name = f"degrees_of_freedom of {dimension} with {n_locations}"
    return Role(name, 0, plain.statistics, (), partial(_no_df, dimension, dimension + 1 - n_locations))


def _no_shape(flat: float, value: Array) -> str:
    return "" if np.all(value == flat) else _not_positive(value)


def shape_with_vector(dimension: int) -> Role:
    """Return the role of the shape of a Gamma beside a vector: positive, or that of the density 1."""
    return Role(f"shape with {dimension}", 0, SHAPE.statistics, (), partial(_no_shape, 1 - dimension / 2))

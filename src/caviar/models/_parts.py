"""Parts that several models share, from numbers or arrays: labels, vectors, precision matrices."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec

import numpy as np
from numpy.typing import ArrayLike

from ..fitting.model import Model
from ..language import Categorical, Dirichlet, MultivariateNormal, NormalWishart, Plate, Wishart
from ..numerics.arguments import require_whole

Arguments = ParamSpec("Arguments")


def sized(state: Callable[Arguments, Model]) -> Callable[Arguments, Model]:
    """Return a function that states a model, and checks first that each of its sizes is a whole number from 1.

    Raises
    ------
    ParameterError
        If an argument that is annotated as ``int`` is anything else.

    Examples
    --------
    >>> from caviar.models import tied_mixture
    >>> tied_mixture(n_features=2.5, n_components=3)
    Traceback (most recent call last):
    caviar.ParameterError: n_features must be a whole number of at least 1; got 2.5
    """
    signature = inspect.signature(state)
    sizes = [name for name, own in signature.parameters.items() if own.annotation == "int"]

    @functools.wraps(state)
    def checked(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Model:
        given = signature.bind(*args, **kwargs).arguments
        for name in sizes:
            if name in given:
                require_whole(name, given[name], 1)
        return state(*args, **kwargs)

    return checked


def as_vector(value: ArrayLike, size: int) -> ArrayLike:
    """Return a number as a vector of length ``size``, anything else unchanged.

    Examples
    --------
    >>> as_vector(2.0, 3)
    array([2., 2., 2.])
    """
    return np.full(size, value) if np.ndim(value) == 0 else value


def as_column(value: ArrayLike) -> ArrayLike:
    """Return numbers, one for each component, as a column (K, 1): the same for all features; a number as it is.

    Examples
    --------
    >>> as_column([1.0, 2.0]).shape
    (2, 1)
    """
    return np.asarray(value)[:, np.newaxis] if np.ndim(value) == 1 else value


def as_matrix(value: ArrayLike, size: int) -> ArrayLike:
    """Return a number as that multiple of the identity, anything else unchanged.

    Examples
    --------
    >>> as_matrix(2.0, 2)
    array([[2., 0.],
           [0., 2.]])
    """
    return np.multiply(value, np.eye(size)) if np.ndim(value) == 0 else value


def hidden_labels(
    concentration: ArrayLike, n_components: int, obs: Plate, name: str = "z", weights: str = "weights"
) -> Categorical:
    """Return the labels ``z`` of rows, whose ``weights`` have a Dirichlet prior."""
    return Categorical(name, Dirichlet(weights, as_vector(concentration, n_components)), plates=obs)


def normal_vector(
    name: str, size: int, mean: ArrayLike, precision: ArrayLike, plates: Plate | tuple[()] = ()
) -> MultivariateNormal:
    """Return a Normal vector whose mean and precision may be numbers."""
    return MultivariateNormal(name, as_vector(mean, size), as_matrix(precision, size), plates=plates)


def precision_matrix(
    size: int,
    df: ArrayLike | None,
    inverse_scale: ArrayLike,
    plates: Plate | tuple[()] = (),
    smallest_variance: ArrayLike | None = None,
) -> Wishart:
    """Return the ``precision`` of ``size`` columns; its degrees of freedom are ``size + 1`` if none are given."""
    return Wishart(
        "precision",
        size + 1 if df is None else df,
        as_matrix(inverse_scale, size),
        smallest_variance=smallest_variance,
        plates=plates,
    )


def means_and_precisions(
    size: int,
    mean: ArrayLike,
    mean_precision: ArrayLike,
    df: ArrayLike | None,
    inverse_scale: ArrayLike,
    component: Plate,
    tied: Plate | None = None,
) -> NormalWishart:
    """Return ``theta``, means and precisions of components with one joint prior."""
    return NormalWishart(
        "theta",
        as_vector(mean, size),
        mean_precision,
        size + 1 if df is None else df,
        as_matrix(inverse_scale, size),
        plates=component,
        tied=tied,
    )

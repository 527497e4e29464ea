"""Predictions of the missing entries of vectors from the observed ones, by draws of everything above them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..._typing import AnyArray, Array
from ...language import Constant, Data, MultivariateNormal, Node, Plate, Variable, nodes_above
from ...lazy.rows import LazyRows, as_floats
from ...numerics.randomness import generator
from ..simulation import check_labels, conditional, known_arrays, one_by_one, settle_sizes
from .given_in_some_rows import with_observed
from .prediction import Prediction

N_DRAWS = 200


def vectors_later(
    leaves: Sequence[Variable],
    data: Any,
    data_plate: Plate | None,
    local: Mapping[str, Any],
    drawn: Callable[[int, np.random.Generator], Mapping[str, Any]],
) -> dict[str, Callable[[], Prediction]]:
    """Return a function that predicts the missing entries of partly given vectors.

    Parameters
    ----------
    leaves
        Observed variables that are among the data.
    data
        Name -> array, missing entries as NaN.
    data_plate
        The plate of the rows.
    local
        Factors of the hidden variables of the rows, given the observed entries.
    drawn
        Returns a given number of draws of all global variables.
    """
    found = [leaf for leaf in leaves if _lacks_entries(leaf, data, data_plate)]
    return {
        leaf.name: partial(lambda own: partly_given(own, data, local, drawn(N_DRAWS, generator(0))), leaf)
        for leaf in found
    }


def _lacks_entries(leaf: Variable, data: Any, data_plate: Plate | None) -> bool:
    """Whether some vectors of an observed variable, one in each row, are missing in part or as a whole."""
    if not isinstance(leaf, MultivariateNormal) or leaf.plates != (data_plate,):
        return False
    values = data[leaf.name]
    return not isinstance(values, LazyRows) and bool(np.isnan(as_floats(values)).any())


def partly_given(
    leaf: Variable, data: Mapping[str, Any], local: Mapping[str, Any], draws: Mapping[str, Any]
) -> Prediction:
    r"""Return the prediction of a vector in each row from those of its entries that are observed.

    .. math:: x_m \mid x_o \sim N\bigl(\mu_m + \Sigma_{mo} \Sigma_{oo}^{-1} (x_o - \mu_o),\;
              \Sigma_{mm} - \Sigma_{mo} \Sigma_{oo}^{-1} \Sigma_{om}\bigr)

    given each of 200 draws of the parameters and of what is hidden in the row, both from q. An observed entry has its
    value and a standard deviation of 0.

    Parameters
    ----------
    leaf
        The observed variable, with a vector in each row.
    data
        Name -> array, missing entries as NaN.
    local
        Factors of the hidden variables of the rows, given the observed entries.
    draws
        Name -> 200 draws of a global variable.
    """
    values = as_floats(data[leaf.name])
    nodes = list(nodes_above([leaf]))
    given = {node.name: data[node.name] for node in nodes if isinstance(node, Data) and node.name in data}
    known = known_arrays(nodes, given)
    sizes = {plate.name: len(values) for plate in leaf.plates}
    rng = generator(0)
    hidden = {
        name: factor.sample(N_DRAWS, rng)
        for name, factor in local.items()
        if any(node.name == name for node in nodes)
    }
    parts = []
    for drawn in one_by_one({**draws, **hidden}, N_DRAWS):
        own = {**known, **drawn}
        check_labels([leaf], own, settle_sizes(nodes, sizes, _with_shapes(nodes, own), {}))
        member: Any = conditional(leaf, own)
        parts.append(conditioned(values, np.asarray(member.mean), np.asarray(member.covariance)))
    means, sds = (np.stack(own) for own in zip(*parts, strict=True))
    found = Prediction.of_parts(np.full(means.shape, 1.0 / N_DRAWS), means, sds)
    # what is observed is exact, without the rounding of the sums
    return with_observed(found, values)


def _with_shapes(nodes: list[Node], values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        node.name: values[node.name]
        for node in nodes
        if not isinstance(node, Constant) and node.name in values
    }


def conditioned(values: Array, mean: Array, covariance: Array) -> tuple[Array, Array]:
    """Return mean and standard deviation of the entries of Normal vectors given those that are observed.

    Parameters
    ----------
    values
        Shape (N, D); NaN where an entry is missing.
    mean, covariance
        Of each vector, (N, D) and (N, D, D), or of all, (1, D) and (1, D, D).

    Examples
    --------
    >>> mean, sd = conditioned(
    ...     np.array([[2.0, np.nan]]), np.zeros((1, 2)), np.array([[[1.0, 0.6], [0.6, 1.0]]])
    ... )
    >>> mean.round(3), sd.round(3)
    (array([[2. , 1.2]]), array([[0. , 0.8]]))
    """
    n_rows, size = values.shape
    mean = np.broadcast_to(mean, (n_rows, size))
    covariance = np.broadcast_to(covariance, (n_rows, size, size))
    found, sd = values.copy(), np.zeros(values.shape)
    missing = np.isnan(values)
    patterns, which = np.unique(missing, axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        rows = np.flatnonzero(np.ravel(which) == number)
        m, o = np.flatnonzero(pattern), np.flatnonzero(~pattern)
        if not len(m):
            continue
        ahead, spread = mean[np.ix_(rows, m)], _block(covariance, rows, m, m)
        if len(o):
            across = _block(covariance, rows, m, o)
            weights = np.linalg.solve(_block(covariance, rows, o, o), across.swapaxes(1, 2)).swapaxes(1, 2)
            left = values[np.ix_(rows, o)] - mean[np.ix_(rows, o)]
            ahead = ahead + np.einsum("nij,nj->ni", weights, left)
            spread = spread - weights @ across.swapaxes(1, 2)
        found[np.ix_(rows, m)] = ahead
        sd[np.ix_(rows, m)] = np.sqrt(np.maximum(np.diagonal(spread, axis1=1, axis2=2), 0.0))
    return found, sd


def _block(matrices: Array, rows: AnyArray, one: AnyArray, other: AnyArray) -> Array:
    return matrices[rows[:, None, None], one[None, :, None], other[None, None, :]]
